"""The folder of a holdout or a leaderboard: where its tables are, its transcript, its secret.

`holdout.json` holds places, for its owner to read and to mend after a move. Nothing rests on it:
the transcript knows the tables by a keyed digest, the ledger by its identity and which column is
what, and no password is ever written.
"""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, closing, contextmanager, nullcontext, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from quiltwork import files
from quiltwork.errors import InvalidInputError, StorageError, without_passwords
from quiltwork.exact import shortened
from quiltwork.holdout.sealed_log import sealed_lines, secret_path
from quiltwork.holdout.studies import Study, read_study, read_table
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
"""Seconds for which a question waits while others are answered."""


@dataclass(frozen=True)
class HoldoutPaths:
    """What `holdout.json` says: where tables and ledger are; a board has no training table."""

    train: str | None
    holdout: str
    ledger: str | None


@dataclass(frozen=True)
class FolderFiles:
    """The files of a board in a folder: its log, where its tables are, what was predicted."""

    folder: str
    paths: HoldoutPaths
    wait: float = WAIT

    @property
    def log(self) -> Path:
        """Of its lines."""
        return board_path(self.folder)

    def table(self, side: str) -> tuple[list[str], Any]:
        """Return the header and the rows of `train` or `holdout`, as text."""
        path = self.paths.train if side == "train" else self.paths.holdout
        if path is None:
            raise InvalidInputError("Rounds need a training table; a Ladder needs labels only.")
        return read_table(path)

    def named(self, side: str) -> str:
        """Return how messages call a table: by its path."""
        return str(self.paths.train if side == "train" else self.paths.holdout)

    def keep(self, number: int, content: bytes) -> None:
        """Keep what was predicted, for the owner only."""
        kept = Path(self.folder) / _KEPT
        try:
            kept.mkdir(mode=0o700, exist_ok=True)
        except OSError as error:
            raise files.unwritable(kept, error) from None
        files.write(kept / f"{number:06}", content, files.OWNER_ONLY)

    def kept(self, number: int) -> bytes:
        """Return what was predicted."""
        return files.read_bytes(Path(self.folder) / _KEPT / f"{number:06}")

    def payer(self) -> AbstractContextManager[Ledger | None]:
        """Open the ledger that pays for rounds, if there is one."""
        return open_ledger(self.paths.ledger)


def board_of(folder: str, wait: float = WAIT) -> Board:
    """Return the leaderboard of a folder.

    Raises:
        InvalidInputError: if there is none.
    """
    from quiltwork.holdout.board import Board

    found = load(folder)
    if not board_path(folder).exists():
        raise InvalidInputError(f"{folder!r} is no leaderboard: it is the folder of a holdout.")
    return Board(FolderFiles(folder, found, wait))


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
    """Begin a leaderboard in a folder; the tables stay where they are.

    The options are those of `Board.create`. If it fails nothing is left.
    """
    from quiltwork.holdout.board import Board

    refuse_password(ledger)
    files.as_path(labels)
    paths = HoldoutPaths(train and os.path.abspath(train), os.path.abspath(labels), ledger)
    is_new = not os.path.lexists(_named(folder))
    make_folder(folder)
    name = options.pop("name", "") or Path(folder).resolve().name
    place = FolderFiles(folder, paths)
    try:
        made = Board.create(place, columns, scorings, rule, name=name, **options)
    except BaseException:
        if is_new:
            with suppress(OSError):
                os.rmdir(folder)
        raise
    save(folder, paths)
    return made


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
    found, lines = load(folder), [transcript_path(folder), board_path(folder)]
    made = [_named(folder) / _CONFIGURATION, *lines, *map(secret_path, lines)]
    return [*map(str, made), *filter(None, (found.train, found.holdout))]


def read_transcript_of(folder: str, checkpoint: str | None = None) -> Transcript:
    """Read and verify the transcript, by its secret too unless that is another user's."""
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


def save(folder: str, paths: HoldoutPaths) -> None:
    """Write where things are, in a new folder, which only its owner may read."""
    path = Path(folder) / _CONFIGURATION
    files.write(path, files.dump(SCHEMA, 2, vars(paths)) + "\n", files.OWNER_ONLY)


def load(folder: str) -> HoldoutPaths:
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
        f"{str(path)!r} is damaged ({problem.rstrip('.')}). It only says where things are: write "
        "it again as docs/reference/files.md describes, or put back a copy."
    )


def study_of(folder: str) -> tuple[Study, Transcript]:
    """Return the tables of a folder's holdout, and its transcript so far."""
    paths, found = load(folder), read_transcript_of(folder)
    if found.about.columns is None or paths.train is None:
        raise StorageError(
            f"The holdout in {folder!r} does not know which column is what: it was begun in Python."
        )
    return read_study(paths.train, paths.holdout, found.columns), found


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
