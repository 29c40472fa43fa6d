"""The folder of a holdout on the command line: where its tables are, its transcript, its secret.

`holdout.json` holds places and names of columns, for its owner to read and to mend after a move.
Nothing rests on it: the transcript knows the tables by a keyed digest and the ledger by its
identity, and no password is ever written.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from quiltwork import files
from quiltwork.delimited import column_position, even_rows, with_csv
from quiltwork.errors import InvalidInputError, StorageError

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from quiltwork.beliefs import Belief
    from quiltwork.holdout import ReusableHoldout
    from quiltwork.holdout.transcript import Transcript
    from quiltwork.ledger import Ledger

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
    """Read a CSV file with the id column and a column `prediction`; ids as `plain_label` has them.

    Raises:
        InvalidInputError: if a column is missing or an id occurs twice.
    """
    from quiltwork.holdout.questions import plain_label

    header, rows = read_table(path)
    ids = rows[:, column_position(header, identity, path)]
    said = rows[:, column_position(header, "prediction", path)]
    found = dict(zip(map(plain_label, ids.tolist()), said.tolist(), strict=True))
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


def make_folder(folder: str) -> None:
    """Make the folder of a new holdout, if it is not there.

    Raises:
        StorageError: if it cannot be made, or its configuration could not be written.
    """
    try:
        Path(folder).mkdir(parents=True, exist_ok=True)
    except (OSError, ValueError) as error:
        reason = getattr(error, "strerror", None) or error
        raise StorageError(f"The folder {folder!r} could not be made: {reason}.") from None
    files.check_writable(Path(folder) / _CONFIGURATION)


def save(folder: str, configuration: Configuration) -> None:
    """Write the configuration of a new folder, which only its owner may read."""
    text = files.dump(SCHEMA, 1, asdict(configuration))
    files.write(Path(folder) / _CONFIGURATION, text + "\n", files.OWNER_ONLY)


def load(folder: str) -> Configuration:
    """Read the configuration of a folder.

    Raises:
        InvalidInputError: if the folder is no holdout's.
        StorageError: if the configuration is damaged.
    """
    path = Path(folder) / _CONFIGURATION
    try:
        text = path.read_bytes()
    except (OSError, ValueError) as error:
        reason = getattr(error, "strerror", None) or error
        raise InvalidInputError(
            f"There is no holdout in {folder!r} ({reason}); make one with quiltwork holdout create."
        ) from None
    try:
        document = files.load(text, SCHEMA, (1,))
        places = {name: document[name] for name in Configuration.__annotations__}
    except (InvalidInputError, KeyError) as error:
        raise _damaged(path, str(error)) from None
    for name, value in places.items():
        needed = name in ("train", "holdout", "identity")
        if not isinstance(value, str) and (needed or value is not None):
            raise _damaged(path, f"{name} must be text, not {type(value).__name__}")
    return Configuration(**places)


def _damaged(path: Path, problem: str) -> StorageError:
    return StorageError(
        f"{str(path)!r} is damaged ({problem.rstrip('.')}). It only says where things are: write "
        "it again as docs/reference/files.md describes, or put back a copy."
    )


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


def resume(folder: str, ledger: str | None = None) -> ReusableHoldout:
    """Open the holdout of a folder, with its ledger at another URL if need be; close it when done.

    Raises:
        StorageError: if that is another ledger than the one it was created with.
    """
    from quiltwork.holdout import ReusableHoldout

    configuration = load(folder)
    if ledger is not None and configuration.dataset is None:
        raise InvalidInputError(f"The holdout in {folder!r} debits no ledger; leave out --ledger.")
    return ReusableHoldout.resume(
        transcript_path(folder),
        read_table(configuration.train)[1],
        read_table(configuration.holdout)[1],
        ledger=open_ledger(ledger or configuration.ledger),
        dataset=configuration.dataset,
    )


def open_ledger(url: str | None) -> Ledger | None:
    """Open the ledger, if there is one."""
    if url is None:
        return None
    from quiltwork.ledger import Ledger

    return Ledger.open(url)


def refuse_password(url: str | None) -> None:
    """Refuse a URL that could not be kept in a file as it is.

    Raises:
        InvalidInputError: if there is a password in it.
    """
    from urllib.parse import parse_qsl, urlsplit

    try:
        parts = urlsplit(url or "")
        names = [name for name, _ in parse_qsl(parts.query, keep_blank_values=True)]
        secret = parts.password is not None or any("password" in name.lower() for name in names)
    except ValueError:
        return  # Ledger.open says what is wrong with it
    if secret:
        raise InvalidInputError(
            "The ledger's URL has a password in it, and the folder of a holdout keeps none. Leave "
            "it out and give it as PostgreSQL's own programs get it: PGPASSWORD or ~/.pgpass."
        )
