"""The folder of a holdout or a leaderboard: where its tables are, its transcript, its secret.

`holdout.json` holds places, for its owner to read and to mend after a move. Nothing rests on it:
the transcript knows the tables by a keyed digest, the ledger by its identity and which column is
what, and no password is ever written.
"""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping
from contextlib import AbstractContextManager, closing, contextmanager, nullcontext
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from quiltwork import files
from quiltwork.errors import InvalidInputError, StorageError, without_passwords
from quiltwork.exact import shortened
from quiltwork.holdout.studies import Study, read_study

if TYPE_CHECKING:
    from quiltwork.budget import Ledger
    from quiltwork.holdout import ReusableHoldout
    from quiltwork.holdout.transcript import Transcript

SCHEMA = "holdout"
_CONFIGURATION, _TRANSCRIPT, _BOARD = "holdout.json", "transcript.jsonl", "board.jsonl"
WAIT = 60.0
"""Seconds for which a question waits while others are answered."""


@dataclass(frozen=True)
class Places:
    """What `holdout.json` says: where tables and ledger are; a board has no training table."""

    train: str | None
    holdout: str
    ledger: str | None


def transcript_path(folder: str) -> Path:
    """Return where the transcript is."""
    return _named(folder) / _TRANSCRIPT


def _named(folder: object) -> Path:
    if not isinstance(folder, str | Path) or "\0" in str(folder) or not str(folder):
        raise InvalidInputError(f"folder must be the name of one, not {shortened(folder)}.")
    return Path(folder)


def board_path(folder: str) -> Path:
    """Return where the board of a leaderboard is."""
    return _named(folder) / _BOARD


def own_files(folder: str) -> list[str]:
    """Return what a folder is made of, there or not, and its tables: nothing may overwrite it."""
    from quiltwork.holdout.storage import secret_path

    found, lines = load(folder), [transcript_path(folder), board_path(folder)]
    made = [_named(folder) / _CONFIGURATION, *lines, *map(secret_path, lines)]
    return [*map(str, made), *filter(None, (found.train, found.holdout))]


def whole_lines(path: Path) -> str:
    """Read a transcript as far as its lines are whole: another process may be adding one."""
    return files.contents(path).rpartition(b"\n")[0].decode(errors="replace")


def sealed_lines(path: Path) -> str:
    """Read the lines that the secret beside them seals; later ones were shown to nobody yet.

    Refused if a sealed line was cut or changed, or there is no secret, or an old one.
    """
    from quiltwork.holdout import storage

    for looks_left in (2, 1, 0):
        # The secret first: another process may be adding lines, which are there before their seal.
        secret = storage.read_secret(path)
        lines = storage.split_lines(whole_lines(path))
        storage.check_seal(lines, secret)
        try:
            storage.check_written_together(lines, secret)
            break
        except StorageError:  # or that process has sealed more than once since
            if not looks_left:
                raise
    return "\n".join(lines[: secret.lines])


def read_transcript_of(folder: str, checkpoint: str | None = None) -> Transcript:
    """Read and verify the transcript, by its secret too unless that is another user's."""
    from quiltwork.holdout.storage import secret_path
    from quiltwork.holdout.transcript import load_transcript, read_transcript

    path = transcript_path(folder)
    secret = secret_path(path)
    if path.exists() and (os.access(secret, os.R_OK) or not os.path.lexists(secret)):
        return read_transcript(sealed_lines(path), checkpoint)
    return load_transcript(path, checkpoint)


def make_folder(folder: str) -> None:
    """Make the folder of a new holdout, if it is not there; another's folder is refused."""
    for name in (_CONFIGURATION, _TRANSCRIPT, _BOARD):
        if os.path.lexists(_named(folder) / name):
            raise StorageError(
                f"{str(_named(folder) / name)!r} exists already: {folder!r} is the folder of a "
                "holdout or a leaderboard. Choose another one."
            )
    try:
        _named(folder).mkdir(parents=True, exist_ok=True)
    except (OSError, ValueError) as error:
        reason = getattr(error, "strerror", None) or error
        raise StorageError(f"The folder {folder!r} could not be made: {reason}.") from None
    files.check_writable(Path(folder) / _CONFIGURATION)


def save(folder: str, places: Places) -> None:
    """Write where things are, in a new folder, which only its owner may read."""
    path = Path(folder) / _CONFIGURATION
    files.write(path, files.dump(SCHEMA, 2, vars(places)) + "\n", files.OWNER_ONLY)


def load(folder: str) -> Places:
    """Read where the things of a folder are."""
    path = _named(folder) / _CONFIGURATION
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
    value = document[name]
    if not isinstance(value, str) and (name == "holdout" or value is not None):
        raise InvalidInputError(f"{name} must be text, not {type(value).__name__}")
    return value


def _damaged(path: Path, problem: str) -> StorageError:
    return StorageError(
        f"{str(path)!r} is damaged ({problem.rstrip('.')}). It only says where things are: write "
        "it again as docs/reference/files.md describes, or put back a copy."
    )


def study_of(folder: str) -> tuple[Study, Transcript]:
    """Return the tables of a folder's holdout, and its transcript so far."""
    places, found = load(folder), read_transcript_of(folder)
    if found.columns is None or places.train is None:
        raise StorageError(
            f"The holdout in {folder!r} does not know which column is what: it was begun in Python."
        )
    return read_study(places.train, places.holdout, found.columns), found


@contextmanager
def resumed(
    folder: str, rows: tuple[Any, Any], dataset: str | None, ledger: str | None, wait: float = WAIT
) -> Iterator[ReusableHoldout]:
    """Open the holdout of a folder for a block, with its ledger at another URL if need be.

    While another process asks, this waits its turn, for up to `wait` seconds.
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
    path = transcript_path(folder)
    with open_ledger(None if dataset is None else url) as payer:
        opened = ReusableHoldout.resume(path, *rows, payer, dataset, wait)
        with closing(opened):
            yield opened


def open_ledger(url: str | None) -> AbstractContextManager[Ledger | None]:
    """Open the ledger for a block, if there is one."""
    if url is None:
        return nullcontext()
    from quiltwork.budget import Ledger

    return Ledger.open(url)


def refuse_password(url: str | None) -> None:
    """Refuse a URL with a password in it, which could not be kept in a file as it is."""
    if url is not None and without_passwords(url) != url:
        raise InvalidInputError(
            "The ledger's URL has a password in it, and the folder of a holdout keeps none. Leave "
            "it out and give it as PostgreSQL's own programs get it: PGPASSWORD or ~/.pgpass."
        )
