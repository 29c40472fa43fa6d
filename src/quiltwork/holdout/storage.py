"""Where a holdout's budget lives: in memory, or in two files that survive a crash.

`NAME.jsonl` is the public transcript; a line is on the disk before its answer is shown.
`NAME.jsonl.secret` (readable by its owner only) holds the key of the commitment and the noise of
the current threshold, replaced atomically. One process at a time may hold them.
"""

from __future__ import annotations

import json
import os
import secrets
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import IO, Any, Protocol

from quiltwork.errors import InvalidInputError, StorageError
from quiltwork.holdout.transcript import Entry, Transcript, chained, read_transcript, split_lines


@dataclass(frozen=True)
class Secret:
    """What must not be published while the budget lasts.

    Attributes:
        key: of the commitment to the data, hexadecimal.
        round: which threshold the noise belongs to, from 0; None before the first is drawn.
        threshold: the noise of the current threshold, in steps.
        debit: the ledger's key of the current round, if it was debited.
        entry: the number of that debit in the ledger.
    """

    key: str
    round: int | None = None
    threshold: int = 0
    debit: str | None = None
    entry: int | None = None

    def __repr__(self) -> str:
        """Betray nothing."""
        return "Secret(...)"


class Storage(Protocol):
    """Keeps entries and the secret; returns only once they are safe."""

    def append(self, transcript: Transcript, entries: Sequence[Entry]) -> None:
        """Add entries after those of `transcript`."""

    def keep(self, secret: Secret) -> None:
        """Replace the secret."""


class Memory:
    """Lives as long as the process."""

    def append(self, transcript: Transcript, entries: Sequence[Entry]) -> None:
        """Nothing to do: the holdout has them."""

    def keep(self, secret: Secret) -> None:
        """Nothing to do: the holdout has it."""


class Files:
    """Two files, locked while this object lives."""

    def __init__(self, path: Path, handle: IO[str], last_line: str) -> None:
        """Take over a locked transcript; `create` and `open_files` make these."""
        self._path = path
        self._handle = handle
        self._last = last_line

    @classmethod
    def create(cls, path: str | Path, transcript: Transcript, secret: Secret) -> Files:
        """Start the two files.

        Raises:
            StorageError: if one is there already.
        """
        target = Path(path)
        try:
            handle = open(target, "x+", encoding="utf-8")  # noqa: SIM115  (kept locked)
        except FileExistsError:
            raise StorageError(
                f"{str(target)!r} exists already; resume it, or choose another name."
            ) from None
        _lock(handle, target)
        made = cls(target, handle, transcript.header())
        made.keep(secret)
        made._write([transcript.header()])
        _sync_folder(target)
        return made

    def append(self, transcript: Transcript, entries: Sequence[Entry]) -> None:
        """Write the entries' lines and wait until they are on the disk."""
        lines, last = [], self._last
        for entry in entries:
            last = chained(entry, last)
            lines.append(last)
        self._write(lines)
        self._last = last

    def keep(self, secret: Secret) -> None:
        """Replace the secret file atomically."""
        target = secret_path(self._path)
        unfinished = target.with_name(target.name + ".new")
        descriptor = os.open(unfinished, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600)
        with os.fdopen(descriptor, "w", encoding="utf-8") as file:
            json.dump(asdict(secret), file)
            file.flush()
            os.fsync(file.fileno())
        os.replace(unfinished, target)
        _sync_folder(target)

    def close(self) -> None:
        """Let another process take over."""
        self._handle.close()

    def __del__(self) -> None:
        """Let go with the object."""
        self._handle.close()

    def _write(self, lines: Sequence[str]) -> None:
        try:
            self._handle.write("".join(line + "\n" for line in lines))
            self._handle.flush()
            os.fsync(self._handle.fileno())
        except OSError as error:
            raise StorageError(
                f"The transcript could not be written ({error.strerror}); the answer is withheld."
            ) from None


def open_files(path: str | Path) -> tuple[Files, Transcript, Secret]:
    """Open the two files, verify them, and charge a round for a line that was cut off.

    Raises:
        StorageError: if they are missing, damaged or held by another process.
    """
    target = Path(path)
    try:
        handle = open(target, "r+", encoding="utf-8")  # noqa: SIM115  (kept locked)
    except FileNotFoundError:
        raise InvalidInputError(f"There is no holdout at {str(target)!r}.") from None
    _lock(handle, target)
    whole, _, torn = handle.read().rpartition("\n")
    try:
        transcript, secret = read_transcript(whole), _read_secret(target)
    except BaseException:
        handle.close()
        raise
    if torn:
        handle.seek(len((whole + "\n").encode()))
        handle.truncate()
    handle.seek(0, os.SEEK_END)
    files = Files(target, handle, split_lines(whole)[-1])
    if torn and transcript.remaining:
        transcript = give_up_round(files, transcript)
    return files, transcript, secret


def give_up_round(storage: Storage, transcript: Transcript) -> Transcript:
    """Charge a round whose end is not known, so that nothing is regained by interrupting."""
    entry = Entry(len(transcript.entries) + 1, "interrupted", None, False, transcript.remaining - 1)
    storage.append(transcript, [entry])
    return Transcript(**{**vars(transcript), "entries": (*transcript.entries, entry)})


def new_secret() -> Secret:
    """Return a secret with a fresh key and no threshold yet."""
    return Secret(secrets.token_hex(32))


def secret_path(path: Path) -> Path:
    """Return where the secret of a transcript is."""
    return path.with_name(path.name + ".secret")


def _read_secret(path: Path) -> Secret:
    try:
        return Secret(**json.loads(secret_path(path).read_text(encoding="utf-8")))
    except (OSError, TypeError, ValueError):
        raise StorageError(
            f"{str(secret_path(path))!r} is missing or damaged; without it the holdout cannot go "
            "on. Start a new one, with new data."
        ) from None


def _lock(handle: IO[Any], path: Path) -> None:
    """Refuse a second process, where the system has file locks."""
    try:
        import fcntl
    except ImportError:
        return
    try:
        fcntl.flock(handle.fileno(), fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError:
        handle.close()
        raise StorageError(
            f"{str(path)!r} is in use by another process; one owner answers all questions."
        ) from None


def _sync_folder(path: Path) -> None:
    if os.name == "nt":
        return
    descriptor = os.open(path.resolve().parent, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)
