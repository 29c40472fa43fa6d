"""Where a holdout's budget lives: in memory, or in two files that survive a crash.

`NAME.jsonl` is the public transcript; a line is on the disk before its answer is shown.
`NAME.jsonl.secret` (readable by its owner only) holds the key of the commitment, the noise of the
current threshold, and how the transcript ended, so that a cut or edited one is refused. It is
replaced atomically. One process at a time may hold them.
"""

from __future__ import annotations

import json
import os
import secrets
from collections.abc import Sequence
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import IO, Any, Protocol

from quiltwork.errors import InvalidInputError, StorageError
from quiltwork.exact import integer
from quiltwork.holdout.transcript import (
    Entry,
    Transcript,
    chained,
    line_hash,
    read_transcript,
    split_lines,
)


@dataclass(frozen=True)
class Secret:
    """What must not be published while the budget lasts.

    Attributes:
        key: of the commitment to the data, hexadecimal.
        round: which threshold the noise belongs to, from 0; None before the first is drawn.
        threshold: the noise of the current threshold, in steps.
        debit: the ledger's key of the current round, if it was debited.
        entry: the number of that debit in the ledger.
        lines: how many lines of the transcript are sealed; later ones were interrupted.
        last: the hash of the last of these, which through the chain covers all of them.
    """

    key: str
    round: int | None = None
    threshold: int = 0
    debit: str | None = None
    entry: int | None = None
    lines: int = 0
    last: str = ""

    def __repr__(self) -> str:
        """Betray nothing."""
        return "Secret(...)"


class Storage(Protocol):
    """Keeps entries and the secret; returns only once they are safe."""

    def append(self, entries: Sequence[Entry], secret: Secret) -> Secret:
        """Add entries; return the secret that seals them."""

    def keep(self, secret: Secret) -> None:
        """Replace the secret."""


class Memory:
    """Lives as long as the process."""

    def append(self, entries: Sequence[Entry], secret: Secret) -> Secret:
        """Nothing to do: the holdout has them."""
        return secret

    def keep(self, secret: Secret) -> None:
        """Nothing to do: the holdout has it."""


class Files:
    """Two files, locked while this object lives."""

    def __init__(self, path: Path, handle: IO[bytes], lines: int, last_line: str) -> None:
        """Take over a locked transcript; `create` and `open_files` make these."""
        self._path = path
        self._handle = handle
        self._lines = lines
        self._last = last_line

    @classmethod
    def create(
        cls, path: str | Path, transcript: Transcript, secret: Secret
    ) -> tuple[Files, Secret]:
        """Start the two files; return the secret that seals the first line.

        Raises:
            StorageError: if one is there already, or cannot be written.
        """
        target = _read_path(path)
        try:
            handle = open(target, "x+b", buffering=0)  # noqa: SIM115  (kept locked)
        except FileExistsError:
            raise StorageError(
                f"{str(target)!r} exists already; resume it, or choose another name."
            ) from None
        except OSError as error:
            raise StorageError(
                f"{str(target)!r} could not be written: {error.strerror or error}."
            ) from None
        _lock(handle, target)
        header = transcript.header()
        made = cls(target, handle, 1, header)
        sealed = replace(secret, lines=1, last=line_hash(header))
        made.keep(sealed)
        made._write([header])
        _sync_folder(target)
        return made, sealed

    def append(self, entries: Sequence[Entry], secret: Secret) -> Secret:
        """Write the entries' lines, then seal them; both are on the disk before this returns."""
        lines, last = [], self._last
        for entry in entries:
            last = chained(entry, last)
            lines.append(last)
        self._write(lines)
        self._lines += len(lines)
        self._last = last
        sealed = replace(secret, lines=self._lines, last=line_hash(last))
        self.keep(sealed)
        return sealed

    def keep(self, secret: Secret) -> None:
        """Replace the secret file atomically."""
        target = secret_path(self._path)
        unfinished = target.with_name(target.name + ".new")
        try:
            descriptor = os.open(unfinished, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600)
            with os.fdopen(descriptor, "w", encoding="utf-8") as file:
                json.dump(asdict(secret), file)
                file.flush()
                os.fsync(file.fileno())
            os.replace(unfinished, target)
            _sync_folder(target)
        except OSError as error:
            raise _withheld(error) from None

    def close(self) -> None:
        """Let another process take over."""
        self._handle.close()

    def __del__(self) -> None:
        """Let go with the object."""
        self._handle.close()

    def _write(self, lines: Sequence[str]) -> None:
        try:
            rest = memoryview("".join(line + "\n" for line in lines).encode())
            while rest:
                rest = rest[self._handle.write(rest) :]
            os.fsync(self._handle.fileno())
        except OSError as error:
            raise _withheld(error) from None


def _withheld(error: OSError) -> StorageError:
    return StorageError(
        f"The transcript could not be written ({error.strerror or error}); the answer is withheld."
    )


def open_files(path: str | Path) -> tuple[Files, Transcript, Secret]:
    """Open the two files, verify them, and charge a round for a line that was cut off.

    Raises:
        StorageError: if they are missing, damaged or held by another process.
    """
    target = _read_path(path)
    try:
        handle = open(target, "r+b", buffering=0)  # noqa: SIM115  (kept locked)
    except FileNotFoundError:
        raise InvalidInputError(f"There is no holdout at {str(target)!r}.") from None
    except OSError as error:
        raise InvalidInputError(
            f"{str(target)!r} cannot be opened: {error.strerror or error}."
        ) from None
    _lock(handle, target)
    try:
        whole, _, torn = handle.read().rpartition(b"\n")
        text = whole.decode()
        transcript, secret = read_transcript(text), read_secret(target)
        lines = split_lines(text)
        check_seal(lines, secret)
    except UnicodeDecodeError:
        handle.close()
        raise StorageError(f"{str(target)!r} is no transcript: it is no text.") from None
    except BaseException:
        handle.close()
        raise
    if torn:
        handle.truncate(len(whole) + 1)
    handle.seek(0, os.SEEK_END)
    files = Files(target, handle, len(lines), lines[-1])
    if torn and transcript.remaining:
        transcript, secret = give_up_round(files, transcript, secret)
    return files, transcript, secret


def check_seal(lines: Sequence[str], secret: Secret) -> None:
    """Refuse a transcript that lacks, or has changed, a line that the secret seals.

    Lines after the sealed ones were written by a process that ended before it showed their answers;
    they stay, so rounds may be lost by interrupting, and are never regained.

    Raises:
        StorageError: if the transcript was cut, edited or replaced by an older one.
    """
    if not 1 <= secret.lines <= len(lines) or line_hash(lines[secret.lines - 1]) != secret.last:
        raise StorageError(
            f"The transcript was cut, edited or replaced: its secret seals {secret.lines} lines "
            f"that are not all there as they were ({len(lines)} found). Put back the latest "
            "transcript; without it this holdout answers no more."
        )


def give_up_round(
    storage: Storage, transcript: Transcript, secret: Secret
) -> tuple[Transcript, Secret]:
    """Charge a round whose end is not known, so that nothing is regained by interrupting."""
    entry = Entry(len(transcript.entries) + 1, "interrupted", None, False, transcript.remaining - 1)
    sealed = storage.append([entry], secret)
    return replace(transcript, entries=(*transcript.entries, entry)), sealed


def _read_path(path: object) -> Path:
    if not isinstance(path, (str, os.PathLike)) or "\0" in str(path):
        raise InvalidInputError(f"path must be the name of a file, not {path!r}.")
    return Path(path)


def new_secret() -> Secret:
    """Return a secret with a fresh key and no threshold yet."""
    return Secret(secrets.token_hex(32))


def secret_path(path: Path) -> Path:
    """Return where the secret of a transcript is."""
    return path.with_name(path.name + ".secret")


def read_secret(path: Path) -> Secret:
    """Read the secret of a transcript.

    Raises:
        StorageError: if it is missing or damaged.
    """
    try:
        secret = Secret(**json.loads(secret_path(path).read_text(encoding="utf-8")))
        bytes.fromhex(secret.key)
        integer(secret.lines, "lines", 1)
        return secret
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
