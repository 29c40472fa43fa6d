"""The folder of a holdout or a leaderboard: `holdout.json`, its transcript and its secret.

`holdout.json` holds paths only, which its owner may edit after moving files. Nothing else depends
on it: the transcript identifies the tables by a keyed digest, the ledger by its identity, and the
columns by role. Passwords are never written.
"""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, closing, contextmanager, nullcontext, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from quiltwork import files
from quiltwork.arguments import instance
from quiltwork.errors import InvalidInputError, StorageError, without_passwords
from quiltwork.exact import shortened
from quiltwork.holdout.prediction_tables import (
    TrainHoldoutTables,
    read_table,
    read_train_and_holdout,
)
from quiltwork.holdout.sealed_log import sealed_lines, secret_path
from quiltwork.holdout.transcript import load_transcript, read_transcript

if TYPE_CHECKING:
    from quiltwork.budget import Ledger
    from quiltwork.holdout import ReusableHoldout
    from quiltwork.holdout.board import Board
    from quiltwork.holdout.metrics import Scoring
    from quiltwork.holdout.transcript import Columns, Transcript

SCHEMA = "holdout"
_CONFIGURATION, _TRANSCRIPT, _BOARD = "holdout.json", "transcript.jsonl", "board.jsonl"
_KEPT = "submissions"
WAIT = 60.0
"""Seconds to wait while another process answers."""


@dataclass(frozen=True)
class HoldoutPaths:
    """The contents of `holdout.json`: paths of the tables and the ledger's URL.

    A board without rounds has no training table.
    """

    train: str | None
    holdout: str
    ledger: str | None


@dataclass(frozen=True)
class FolderFiles:
    """The files of a board in a folder (`board.BoardFiles`)."""

    folder: str
    paths: HoldoutPaths
    wait: float = WAIT

    @property
    def log(self) -> Path:
        """Path of the log."""
        return board_path(self.folder)

    def table(self, side: str) -> tuple[list[str], Any]:
        """Return the header and the rows of `train` or `holdout`, as text."""
        path = self.paths.train if side == "train" else self.paths.holdout
        if path is None:
            raise InvalidInputError("Rounds need a training table; a Ladder needs labels only.")
        return read_table(path)

    def named(self, side: str) -> str:
        """Return the name of a table for messages: its path."""
        return str(self.paths.train if side == "train" else self.paths.holdout)

    def keep(self, number: int, content: bytes) -> None:
        """Store a submission's predictions, readable by the owner only."""
        kept = Path(self.folder) / _KEPT
        try:
            kept.mkdir(mode=0o700, exist_ok=True)
        except OSError as error:
            raise files.unwritable(kept, error) from None
        files.write(kept / f"{number:06}", content, files.OWNER_ONLY)

    def kept(self, number: int) -> bytes:
        """Return the stored predictions of a submission."""
        return files.read_bytes(Path(self.folder) / _KEPT / f"{number:06}")

    def payer(self) -> AbstractContextManager[Ledger | None]:
        """Open the ledger that is debited for rounds, if there is one."""
        return open_ledger(self.paths.ledger)


def board_of(folder: str, wait: float = WAIT) -> Board:
    """Open the leaderboard of a folder.

    Raises:
        InvalidInputError: if there is none.
    """
    from quiltwork.holdout.board import Board

    paths = load(folder)
    if not board_path(folder).exists():
        raise InvalidInputError(f"{folder!r} is not a leaderboard: it is the folder of a holdout.")
    return Board(FolderFiles(folder, paths, wait))


def create_board(
    folder: str,
    labels: str,
    columns: Columns,
    scorings: Scoring | Sequence[Scoring],
    rule: str = "ladder",
    *,
    train: str | None = None,
    ledger: str | None = None,
    **options: Any,
) -> Board:
    """Create a leaderboard in a folder; the tables stay where they are.

    Args:
        folder: where to create it.
        labels: the CSV file of labels.
        columns: the roles of its columns.
        scorings: the metric; several under `rounds`.
        rule: "ladder", "one bit" or "rounds".
        train: under `rounds`, the CSV file of training rows.
        ledger: under `rounds`, the URL of the ledger to debit.
        options: those of `Board.create`.

    If it fails, nothing is left behind.
    """
    from quiltwork.holdout.board import Board

    refuse_password(ledger)
    rows = None if train is None else os.path.abspath(files.as_path(train))
    paths = HoldoutPaths(rows, os.path.abspath(files.as_path(labels)), ledger)
    is_new = not os.path.lexists(_folder_path(folder))
    make_folder(folder)
    name = options.pop("name", "") or Path(folder).resolve().name
    folder_files = FolderFiles(folder, paths)
    try:
        board = Board.create(folder_files, columns, scorings, rule, name=name, **options)
    except BaseException:
        # Only a folder that this call created is removed again.
        if is_new:
            with suppress(OSError):
                os.rmdir(folder)
        raise
    save(folder, paths)
    return board


def transcript_path(folder: str) -> Path:
    """Return the path of a holdout's transcript."""
    return _folder_path(folder) / _TRANSCRIPT


def _folder_path(folder: object) -> Path:
    if not isinstance(folder, str | Path) or "\0" in str(folder) or not str(folder):
        raise InvalidInputError(f"folder must be the path of a folder, not {shortened(folder)}.")
    return Path(folder)


def board_path(folder: str) -> Path:
    """Return the path of a leaderboard's log."""
    return _folder_path(folder) / _BOARD


def own_files(folder: str) -> list[str]:
    """Return all paths of a folder and its tables, which must not be overwritten."""
    paths, logs = load(folder), [transcript_path(folder), board_path(folder)]
    own = [_folder_path(folder) / _CONFIGURATION, *logs, *map(secret_path, logs)]
    return [*map(str, own), *filter(None, (paths.train, paths.holdout))]


def read_transcript_of(folder: str, checkpoint: str | None = None) -> Transcript:
    """Read and verify the transcript, with its seal unless the secret belongs to another user."""
    path = transcript_path(folder)
    secret = secret_path(path)
    # Another user's secret cannot be read: then the chain of hashes is verified without the seal.
    if path.exists() and (os.access(secret, os.R_OK) or not os.path.lexists(secret)):
        return read_transcript(sealed_lines(path), checkpoint)
    return load_transcript(path, checkpoint)


def make_folder(folder: str) -> None:
    """Create the folder of a new holdout; a folder that holds one is refused."""
    for name in (_CONFIGURATION, _TRANSCRIPT, _BOARD):
        if os.path.lexists(_folder_path(folder) / name):
            raise StorageError(
                f"{str(_folder_path(folder) / name)!r} exists already: {folder!r} is the folder of "
                "a holdout or a leaderboard. Choose another one."
            )
    try:
        _folder_path(folder).mkdir(parents=True, exist_ok=True)
    except (OSError, ValueError) as error:
        reason = getattr(error, "strerror", None) or error
        raise StorageError(f"The folder {folder!r} could not be made: {reason}.") from None
    files.check_writable(Path(folder) / _CONFIGURATION)


def save(folder: str, paths: HoldoutPaths) -> None:
    """Write `holdout.json` in a new folder, readable by the owner only."""
    path = Path(folder) / _CONFIGURATION
    files.write(path, files.dump(SCHEMA, 2, vars(paths)) + "\n", files.OWNER_ONLY)


def load(folder: str) -> HoldoutPaths:
    """Read `holdout.json`."""
    path = _folder_path(folder) / _CONFIGURATION
    try:
        text = path.read_bytes()
    except (OSError, ValueError) as error:
        reason = getattr(error, "strerror", None) or error
        raise InvalidInputError(
            f"There is no holdout in {folder!r} ({reason}); create one with `quiltwork holdout "
            "create`."
        ) from None
    try:
        document = files.load(text, SCHEMA, (2,))
        return HoldoutPaths(*(_text(document, name) for name in ("train", "holdout", "ledger")))
    except (InvalidInputError, KeyError) as error:
        raise _damaged(path, str(error)) from None


def _text(document: Mapping[str, Any], name: str) -> Any:
    value = document[name]
    if not isinstance(value, str) and (name == "holdout" or value is not None):
        raise InvalidInputError(f"{name} must be text, not {type(value).__name__}")
    return value


def _damaged(path: Path, problem: str) -> StorageError:
    return StorageError(
        f"{str(path)!r} is damaged ({problem.rstrip('.')}). It only holds paths: rewrite it as "
        "docs/reference/files.md describes, or restore a copy."
    )


def tables_and_transcript(folder: str) -> tuple[TrainHoldoutTables, Transcript]:
    """Return the tables of a folder's holdout, and its transcript so far."""
    paths, transcript = load(folder), read_transcript_of(folder)
    if transcript.about.columns is None or paths.train is None:
        raise StorageError(
            f"The holdout in {folder!r} has no column roles, because it was created in Python; ask "
            "it there."
        )
    return read_train_and_holdout(paths.train, paths.holdout, transcript.columns), transcript


@contextmanager
def resumed(
    folder: str, rows: tuple[Any, Any], dataset: str | None, ledger: str | None, wait: float = WAIT
) -> Iterator[ReusableHoldout]:
    """Open the holdout of a folder for a block, with its ledger at another URL if it was moved.

    Waits up to `wait` seconds for another process that holds it.
    """
    from quiltwork.holdout import ReusableHoldout

    if ledger is not None and dataset is None:
        raise InvalidInputError(f"The holdout in {folder!r} debits no ledger; leave out --ledger.")
    url = ledger or load(folder).ledger
    if url is None and dataset is not None:
        raise InvalidInputError(
            f"The holdout in {folder!r} debits the ledger's dataset {dataset!r}, but holdout.json "
            "has no URL of that ledger; give --ledger."
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
    """Refuse a URL that contains a password, which must not be written to a file."""
    if url is not None and without_passwords(instance(url, str, "ledger")) != url:
        raise InvalidInputError(
            "The ledger's URL contains a password, which must not be stored in the holdout's "
            "folder. Leave it out and set PGPASSWORD or use ~/.pgpass."
        )
