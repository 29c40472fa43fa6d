"""The folder of a holdout on the command line: where its tables are, its transcript, its secret.

`holdout.json` holds places, for its owner to read and to mend after a move. Nothing rests on it:
the transcript knows the tables by a keyed digest, the ledger by its identity and which column is
what, and no password is ever written.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from quiltwork import files
from quiltwork.delimited import column_position, even_rows, with_csv
from quiltwork.errors import InvalidInputError, StorageError
from quiltwork.holdout.transcript import Columns

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from quiltwork.beliefs import Belief
    from quiltwork.budget import Ledger
    from quiltwork.holdout import ReusableHoldout
    from quiltwork.holdout.transcript import Transcript

SCHEMA = "holdout"
_CONFIGURATION, _TRANSCRIPT = "holdout.json", "transcript.jsonl"


@dataclass(frozen=True)
class Places:
    """What `holdout.json` says: where the tables and the ledger are.

    Attributes:
        train: the path of the training table.
        holdout: the path of the holdout.
        ledger: where the ledger is, or None.
    """

    train: str
    holdout: str
    ledger: str | None


@dataclass(frozen=True, eq=False)
class Study:
    """Both tables, as text, and which of their columns is what."""

    columns: Columns
    header: list[str]
    train: NDArray[Any]
    holdout: NDArray[Any]

    def position(self, column: str) -> int:
        """Return which column that is, from 0."""
        return column_position(self.header, column, "the tables")

    def belief(self) -> Belief | None:
        """Return clusters by the group column, None without one.

        Raises:
            InvalidInputError: if a group has rows on both sides.
        """
        if self.columns.group is None:
            return None
        from quiltwork.beliefs import Clusters

        at = self.position(self.columns.group)
        if set(self.train[:, at]) & set(self.holdout[:, at]):
            raise InvalidInputError(
                f"A group of column {self.columns.group!r} has rows in both tables; the holdout "
                "must be independent of the training set, so keep groups whole."
            )
        return Clusters(self.holdout[:, at].tolist())


def read_study(places: Places, columns: Columns) -> Study:
    """Read both tables and check what is public about them, before anything is asked.

    Raises:
        InvalidInputError: if they do not go together.
    """
    from quiltwork.holdout.questions import check_tables

    header, train = read_table(places.train)
    other, held = read_table(places.holdout)
    if header != other:
        raise InvalidInputError(
            f"{places.train!r} has the columns {', '.join(header)} and {places.holdout!r} has "
            f"{', '.join(other)}; give tables with the same ones."
        )
    study = Study(columns, header, train, held)
    for name in filter(None, (columns.identity, columns.target, columns.group)):
        study.position(name)
    target = None if columns.target is None else study.position(columns.target)
    check_tables(header, train, held, study.position(columns.identity), target)
    return study


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


def save(folder: str, places: Places) -> None:
    """Write where things are, in a new folder, which only its owner may read."""
    path = Path(folder) / _CONFIGURATION
    files.write(path, files.dump(SCHEMA, 2, vars(places)) + "\n", files.OWNER_ONLY)


def load(folder: str) -> Places:
    """Read where the things of a folder are.

    Raises:
        InvalidInputError: if the folder is no holdout's.
        StorageError: if `holdout.json` is damaged.
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
        document = files.load(text, SCHEMA, (2,))
        return Places(*(_text(document, name) for name in ("train", "holdout", "ledger")))
    except (InvalidInputError, KeyError) as error:
        raise _damaged(path, str(error)) from None


def _text(document: Mapping[str, Any], name: str) -> Any:
    value, needed = document[name], name in ("train", "holdout")
    if not isinstance(value, str) and (needed or value is not None):
        raise InvalidInputError(f"{name} must be text, not {type(value).__name__}")
    return value


def _damaged(path: Path, problem: str) -> StorageError:
    return StorageError(
        f"{str(path)!r} is damaged ({problem.rstrip('.')}). It only says where things are: write "
        "it again as docs/reference/files.md describes, or put back a copy."
    )


def study_of(folder: str) -> tuple[Study, Transcript]:
    """Return the tables of a folder's holdout, and its transcript so far.

    Raises:
        StorageError: if the folder is damaged.
    """
    places, found = load(folder), read_transcript_of(folder)
    if found.columns is None:
        raise StorageError(
            f"The holdout in {folder!r} does not know which column is what: it was begun in Python."
        )
    return read_study(places, found.columns), found


def resume(folder: str, study: Study, dataset: str | None, ledger: str | None) -> ReusableHoldout:
    """Open the holdout of a folder, with its ledger at another URL if need be; close it when done.

    Raises:
        StorageError: if that is another ledger than the one it was created with.
    """
    from quiltwork.holdout import ReusableHoldout

    if ledger is not None and dataset is None:
        raise InvalidInputError(f"The holdout in {folder!r} debits no ledger; leave out --ledger.")
    url = ledger or load(folder).ledger
    if url is None and dataset is not None:
        raise InvalidInputError(
            f"The holdout in {folder!r} debits the ledger's dataset {dataset!r}, and holdout.json "
            "does not say where that ledger is; give --ledger."
        )
    return ReusableHoldout.resume(
        transcript_path(folder),
        study.train,
        study.holdout,
        ledger=None if dataset is None else open_ledger(url),
        dataset=dataset,
    )


def open_ledger(url: str | None) -> Ledger | None:
    """Open the ledger, if there is one."""
    if url is None:
        return None
    from quiltwork.budget import Ledger

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
