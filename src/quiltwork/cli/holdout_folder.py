"""The folder of a holdout on the command line: where its tables are, its transcript, its secret."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from quiltwork import files
from quiltwork.delimited import column_position, even_rows, with_csv
from quiltwork.errors import InvalidInputError

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from quiltwork.beliefs import Belief
    from quiltwork.holdout import ReusableHoldout
    from quiltwork.holdout.transcript import Transcript

SCHEMA = "holdout"
_CONFIGURATION, _TRANSCRIPT = "holdout.json", "transcript.jsonl"


@dataclass(frozen=True)
class Configuration:
    """What the folder of a holdout remembers: names of files and columns, no data."""

    train: str
    holdout: str
    identity: str
    target: str | None
    group: str | None
    ledger: str | None
    dataset: str | None


def read_table(path: str) -> tuple[list[str], NDArray[Any]]:
    """Read a CSV file as its header and an array of text.

    Raises:
        InvalidInputError: if it cannot be read, or a row has another number of columns.
    """
    import numpy as np

    def read(reader: Iterator[list[str]]) -> tuple[list[str], list[list[str]]]:
        header = next(reader, [])
        return header, list(even_rows(reader, len(header), path))

    header, rows = with_csv(path, read)
    if not rows:
        raise InvalidInputError(f"{path!r} has no rows.")
    return header, np.array(rows, dtype=str)


def read_predictions(path: str, identity: str) -> dict[str, str]:
    """Read a CSV file with the id column and a column `prediction`.

    Raises:
        InvalidInputError: if a column is missing or an id occurs twice.
    """
    header, rows = read_table(path)
    ids = rows[:, column_position(header, identity, path)]
    said = rows[:, column_position(header, "prediction", path)]
    found = dict(zip(ids.tolist(), said.tolist(), strict=True))
    if len(found) != len(ids):
        raise InvalidInputError(f"An id occurs twice in {path!r}; give one prediction for each.")
    return found


def columns_of(configuration: Configuration) -> list[str]:
    """Return the header that both tables share.

    Raises:
        InvalidInputError: if they differ.
    """
    header, _ = read_table(configuration.train)
    other, _ = read_table(configuration.holdout)
    if header != other:
        raise InvalidInputError(
            f"{configuration.train!r} has the columns {', '.join(header)} and "
            f"{configuration.holdout!r} has {', '.join(other)}; give tables with the same ones."
        )
    return header


def transcript_path(folder: str) -> Path:
    """Return where the transcript is."""
    return Path(folder) / _TRANSCRIPT


def read_transcript_of(folder: str, checkpoint: str | None = None) -> Transcript:
    """Read and verify the transcript, against its secret too where that may be read.

    Raises:
        StorageError: if it does not verify.
    """
    import os

    from quiltwork.holdout.storage import check_seal, read_secret, secret_path
    from quiltwork.holdout.transcript import load_transcript

    path = transcript_path(folder)
    # The secret first: another process may be adding lines, which are there before their seal.
    secret = read_secret(path) if os.access(secret_path(path), os.R_OK) else None
    found = load_transcript(path, checkpoint)
    if secret is not None:
        check_seal(found.lines(), secret)
    return found


def save(folder: str, configuration: Configuration) -> None:
    """Write the configuration of a new folder."""
    Path(folder).mkdir(parents=True, exist_ok=True)
    text = files.dump(SCHEMA, 1, asdict(configuration))
    (Path(folder) / _CONFIGURATION).write_text(text + "\n", encoding="utf-8")


def load(folder: str) -> Configuration:
    """Read the configuration of a folder.

    Raises:
        InvalidInputError: if the folder is no holdout's.
    """
    try:
        text = (Path(folder) / _CONFIGURATION).read_text(encoding="utf-8")
    except OSError:
        raise InvalidInputError(
            f"There is no holdout in {folder!r}; make one with quiltwork holdout create."
        ) from None
    document = files.load(text, SCHEMA, (1,))
    return Configuration(**{name: document[name] for name in Configuration.__annotations__})


def belief_about(configuration: Configuration) -> Belief | None:
    """Return clusters by the group column, None without one.

    Raises:
        InvalidInputError: if a group has rows on both sides.
    """
    if configuration.group is None:
        return None
    from quiltwork.beliefs import Clusters

    sides = []
    for path in (configuration.train, configuration.holdout):
        header, rows = read_table(path)
        sides.append(rows[:, column_position(header, configuration.group, path)].tolist())
    if set(sides[0]) & set(sides[1]):
        raise InvalidInputError(
            f"A group of column {configuration.group!r} has rows in both tables; the holdout must "
            "be independent of the training set, so keep groups whole."
        )
    return Clusters(sides[1])


def resume(folder: str) -> ReusableHoldout:
    """Open the holdout of a folder; close it when done."""
    from quiltwork.holdout import ReusableHoldout

    configuration = load(folder)
    return ReusableHoldout.resume(
        transcript_path(folder),
        read_table(configuration.train)[1],
        read_table(configuration.holdout)[1],
        ledger=open_ledger(configuration.ledger),
        dataset=configuration.dataset,
    )


def open_ledger(url: str | None) -> Any:
    """Open the ledger, if there is one."""
    if url is None:
        return None
    from quiltwork.ledger import Ledger

    return Ledger.open(url)
