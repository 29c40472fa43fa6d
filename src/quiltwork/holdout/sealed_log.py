"""An append-only log sealed by a secret file, which survives crashes and reveals tampering.

`NAME.jsonl` is public: a first line with the settings, then lines that each hold the hash of the
line before. A line is durable before anything in it is shown. `NAME.jsonl.secret` holds the key of
the data's commitment, a holdout's current threshold noise, and the seal: the number of lines and
the hash of the last, so that a cut or edited file is refused. It is replaced atomically.

The last line of each batch carries a code that only the key can compute, so nobody else can append.
Both files are readable by their owner only, and one process at a time may hold them.
"""

from __future__ import annotations

import hashlib
import hmac
import json
import os
import secrets
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import asdict, dataclass, replace
from itertools import pairwise
from pathlib import Path
from typing import IO, Any, Protocol, TypeVar

from quiltwork import files
from quiltwork.errors import InvalidInputError, StorageError, UnsupportedError
from quiltwork.exact import integer, shortened

_RETRY_SECONDS = 0.02
_LONGEST_NAME = 200


class Committed(Protocol):
    """The content of a log, bound to its data by a keyed digest."""

    @property
    def commitment(self) -> str:
        """The digest."""


Read = TypeVar("Read", bound=Committed)


@dataclass(frozen=True)
class Secret:
    """The contents of the secret file, which must stay private while the budget lasts.

    Attributes:
        key: the key of the commitment to the data.
        round: the round, from 0, that `threshold` belongs to; None before the first. For a board of
            one bit, the submission with the best score.
        threshold: the threshold noise in steps; for a board of one bit, the best score.
        debit: the idempotency key of the current round's debit.
        entry: the number of that debit in the ledger.
        paid: its hash.
        lines: how many lines of the log are sealed; later ones were interrupted.
        last: the hash of the last sealed line, which through the chain covers all before it.
    """

    key: str
    round: int | None = None
    threshold: int = 0
    debit: str | None = None
    entry: int | None = None
    paid: str | None = None
    lines: int = 0
    last: str = ""

    def __repr__(self) -> str:
        return "Secret(...)"


class SealedLog:
    """An open log and its secret file, locked while this object lives."""

    def __init__(self, path: Path, handle: IO[bytes], lines: int, last_line: str) -> None:
        self._path, self._handle, self.code = path, handle, ""
        self._lines, self._last = lines, last_line

    @classmethod
    def create(cls, path: str | Path, header: str, secret: Secret) -> tuple[SealedLog, Secret]:
        """Create both files; return the secret that seals the first line."""
        target = files.as_path(path)
        if os.path.lexists(secret_path(target)):
            raise StorageError(
                f"{str(secret_path(target))!r} exists already: it is the secret of another "
                "transcript with this name. Choose another name."
            )
        try:
            # O_EXCL: of two processes that create the same file only one succeeds.
            descriptor = os.open(target, os.O_RDWR | os.O_CREAT | os.O_EXCL, files.OWNER_ONLY)
        except FileExistsError:
            raise StorageError(
                f"{str(target)!r} exists already; resume it, or choose another name."
            ) from None
        except (OSError, ValueError) as error:
            raise files.unwritable(target, error) from None
        log = cls(target, os.fdopen(descriptor, "r+b", buffering=0), 1, header)
        try:
            _lock(log._handle, target)
            sealed = replace(secret, lines=1, last=line_hash(header))
            log._replace_secret(sealed)
            log._write([header])
            files.sync_folder(Path(os.path.realpath(target)).parent)
        except BaseException as error:
            log.close()
            for path_left in (target, secret_path(target)):
                with suppress(OSError):
                    path_left.unlink(missing_ok=True)
            if isinstance(error, OSError):
                raise files.unwritable(target, error) from None
            raise
        return log, sealed

    def append(self, bodies: Sequence[Mapping[str, Any]], secret: Secret) -> Secret:
        """Write a batch of lines and seal them; durable before the new secret is returned."""
        lines, last = [], self._last
        for body in bodies:
            last = chain_line(body, last)
            lines.append(last)
        if lines:
            self.code = _code(secret, lines)
            last = chain_line({**bodies[-1], "code": self.code}, ([self._last, *lines])[-2])
            lines[-1] = last
        # Lines first, then the seal: a crash in between leaves complete lines that are not sealed
        # yet, which the next opening recognises by their code and seals. The reverse order would
        # leave a seal over lines that do not exist, and lose the log.
        with _withheld():
            self._write(lines)
        self._lines += len(lines)
        self._last = last
        sealed = replace(secret, lines=self._lines, last=line_hash(last))
        self.keep(sealed)
        return sealed

    def keep(self, secret: Secret) -> None:
        """Replace the secret file atomically."""
        with _withheld():
            self._replace_secret(secret)

    def close(self) -> None:
        """Release the lock, so that another process may open the log."""
        self._handle.close()

    __del__ = close

    def _replace_secret(self, secret: Secret) -> None:
        target = secret_path(self._path)
        # Written aside and renamed: a crash leaves the old secret or the new one.
        unfinished = target.with_name(target.name + ".new")
        flags = os.O_WRONLY | os.O_CREAT | os.O_TRUNC
        descriptor = os.open(unfinished, flags, files.OWNER_ONLY)
        with os.fdopen(descriptor, "w", encoding="utf-8") as file:
            json.dump(asdict(secret), file)
            file.flush()
            os.fsync(file.fileno())
        os.replace(unfinished, target)
        # The rename itself is durable only once the folder is.
        files.sync_folder(Path(os.path.realpath(target)).parent)

    def _write(self, lines: Sequence[str]) -> None:
        rest = memoryview("".join(line + "\n" for line in lines).encode())
        while rest:
            rest = rest[self._handle.write(rest) :]
        os.fsync(self._handle.fileno())


@contextmanager
def _withheld() -> Iterator[None]:
    try:
        yield
    except OSError as error:
        raise StorageError(
            f"The transcript could not be written ({error.strerror or error}); the answer is "
            "withheld."
        ) from None


def open_log(
    path: str | Path,
    read: Callable[[str], Read],
    commit: Callable[[str], str],
    wait: float = 0,
    at_once: int | None = None,
) -> tuple[SealedLog, Read, Secret, bool]:
    """Open and lock both files; verify content, seal, and the commitment to the data.

    Lines that an interruption left unsealed are sealed now; a line that was cut off is removed.

    Args:
        path: of the log.
        read: parses the lines and verifies them.
        commit: returns the data's digest under a key.
        wait: seconds to wait for another process that holds the lock.
        at_once: how many lines are written between two seals; None for any number.

    Returns:
        The open log, its content, its secret, and whether the last line was cut off.
    """
    target = files.as_path(path)
    try:
        handle = open(target, "r+b", buffering=0)  # noqa: SIM115  (kept locked)
    except FileNotFoundError:
        raise InvalidInputError(f"There is no transcript at {str(target)!r}.") from None
    except (OSError, ValueError) as error:
        reason = getattr(error, "strerror", None) or error
        raise InvalidInputError(f"{str(target)!r} cannot be opened: {reason}.") from None
    try:
        _lock(handle, target, wait)
        whole, _, torn = handle.read().rpartition(b"\n")
        text = whole.decode()
        content, secret = read(text), read_secret(target)
        lines = split_lines(text)
        check_seal(lines, secret, at_once)
        own_lines = lines if _is_own(lines, secret) else lines[: secret.lines]
        if len(own_lines) < len(lines):
            if at_once is not None:
                raise StorageError(
                    f"Line {len(lines)} was added without the secret, so not by this board; remove "
                    "it."
                )
            # Either a batch cut off between two lines or a forgery: no answer in it was ever shown.
            lines, whole, torn = own_lines, "\n".join(own_lines).encode(), torn or b"\n"
            content = read("\n".join(lines))
        if not hmac.compare_digest(content.commitment, commit(secret.key)):
            raise StorageError(
                f"{str(target)!r} belongs to other data: give exactly the rows it was created "
                "with, in the same order."
            )
        if torn:
            handle.truncate(len(whole) + 1)
        handle.seek(0, os.SEEK_END)
    except BaseException as error:
        handle.close()
        if isinstance(error, UnicodeDecodeError):
            raise StorageError(f"{str(target)!r} is not a transcript: it is not text.") from None
        if isinstance(error, OSError):
            reason = error.strerror or error
            raise StorageError(f"{str(target)!r} cannot be used: {reason}.") from None
        raise
    opened = SealedLog(target, handle, len(lines), lines[-1])
    if secret.lines < len(lines):
        try:
            secret = opened.append([], secret)
        except BaseException:
            opened.close()
            raise
    return opened, content, secret, bool(torn)


def whole_lines(path: Path) -> str:
    """Read the complete lines of a transcript that another process may be appending to."""
    return files.read_bytes(path).rpartition(b"\n")[0].decode(errors="replace")


def sealed_lines(path: Path) -> str:
    """Read the sealed lines, without a lock; answers in later lines have not been shown to anybody.

    Raises:
        StorageError: if a sealed line was cut or changed, or the secret is missing or outdated.
    """
    for retries in (2, 1, 0):
        # The secret is read first: a process that appends writes its lines before their seal.
        secret = read_secret(path)
        lines = split_lines(whole_lines(path))
        check_seal(lines, secret)
        try:
            check_written_together(lines, secret)
            break
        except StorageError:  # perhaps that process has sealed another batch meanwhile
            if not retries:
                raise
    return "\n".join(lines[: secret.lines])


def check_seal(lines: Sequence[str], secret: Secret, at_once: int | None = None) -> None:
    """Refuse a transcript in which a sealed line is missing or changed.

    Unsealed lines at its end were written by a process that stopped before it showed their answers.
    They stay, so interrupting can lose rounds and never regain them. More unsealed lines than are
    written `at_once` mean that the secret file is an old copy.
    """
    if at_once is not None and len(lines) > secret.lines + at_once:
        raise _outdated(secret, lines)
    if not 1 <= secret.lines <= len(lines) or line_hash(lines[secret.lines - 1]) != secret.last:
        raise StorageError(
            f"The transcript was cut, edited or replaced: its secret seals {secret.lines} lines, "
            f"and the {len(lines)} lines found do not match. Restore the latest transcript; "
            "without it this holdout gives no more answers."
        )


def _code(secret: Secret, lines: Sequence[str]) -> str:
    """Return the authentication code of a batch, which only the secret's holder can compute."""
    return hmac.new(bytes.fromhex(secret.key), "\n".join(lines).encode(), "sha256").hexdigest()


def _is_own(lines: Sequence[str], secret: Secret) -> bool:
    """Whether the unsealed lines are complete and written by the secret's holder."""
    check_written_together(lines, secret)
    added = list(lines[secret.lines :])
    if not added:
        return True
    body = files.parse(added[-1])
    last = {k: v for k, v in body.items() if k not in ("code", "previous")}
    added[-1] = chain_line(last, lines[-2])
    code = ascii(body.get("code"))  # compare_digest takes only ASCII text
    return hmac.compare_digest(code, ascii(_code(secret, added)))


def check_written_together(lines: Sequence[str], secret: Secret) -> None:
    """Refuse an outdated secret: a code before the last unsealed line was sealed later."""
    if any('"code": "' in line for line in lines[secret.lines : -1]):
        raise _outdated(secret, lines)


def _outdated(secret: Secret, lines: Sequence[str]) -> StorageError:
    return StorageError(
        f"The secret seals {secret.lines} lines, and the transcript has {len(lines)}: the secret "
        "is an older copy, or lines were added. Restore the latest secret."
    )


def chain_line(body: Mapping[str, Any], previous: str) -> str:
    """Return a line of JSON that carries the hash of the line `previous`."""
    linked = {**body, "previous": line_hash(previous)}
    return json.dumps(linked, sort_keys=True, ensure_ascii=False)


def verify_chain(lines: Sequence[str]) -> list[dict[str, Any]]:
    """Parse the lines after the first; each must hold the hash of the line before."""
    bodies = []
    for at, (previous, line) in enumerate(pairwise(lines), start=2):
        with reading(at):
            body = files.parse(line)
        if not isinstance(body, dict) or body.pop("previous", None) != line_hash(previous):
            raise StorageError(
                f"Line {at} of the transcript does not carry the hash of line {at - 1}: one of "
                "them was changed."
            )
        bodies.append(body)
    return bodies


@contextmanager
def reading(line: int) -> Iterator[None]:
    """Turn parse errors inside the block into errors that name the transcript's line."""
    try:
        yield
    except KeyError as error:
        raise StorageError(f"Line {line} of the transcript lacks {error}.") from None
    except InvalidInputError as error:
        raise StorageError(f"Line {line} of the transcript cannot be read: {error}") from None


def check_text(text: object, name: str) -> None:
    """Refuse text that cannot be written to a transcript."""
    if not isinstance(text, str):
        raise InvalidInputError(f"{name} must be text, not {shortened(text)}.")
    try:
        text.encode()
    except UnicodeEncodeError:
        raise InvalidInputError(
            f"{name} is {shortened(text)}, which contains half of a surrogate pair and cannot be "
            "written as UTF-8; remove it."
        ) from None


def check_team(team: object) -> None:
    """Refuse a team name that is empty, invisible, or a formula in a spreadsheet."""
    check_text(team, "team")
    name = str(team)
    if not name.strip() or name != name.strip() or len(name) > _LONGEST_NAME:
        raise InvalidInputError(
            f"The team's name is empty, has spaces around it, or is longer than {_LONGEST_NAME} "
            "letters."
        )
    if not name.isprintable() or name.lstrip().startswith(("=", "+", "-", "@")):
        raise InvalidInputError(
            f"team is {shortened(name)}, which a terminal or a spreadsheet may take for a command; "
            "leave out control characters, and =, +, - or @ in front."
        )


def text_of(body: Mapping[str, Any], name: str) -> str:
    """Return a field that must be text and can be encoded."""
    check_text(body[name], name)
    return str(body[name])


def split_lines(text: str) -> list[str]:
    """Split at line feeds only; labels may contain Unicode's other line separators."""
    return text.removesuffix("\n").split("\n") if text else []


def line_hash(line: str) -> str:
    """Return the SHA-256 of a line."""
    return hashlib.sha256(line.encode()).hexdigest()


def new_secret() -> Secret:
    """Return a secret with a fresh random key and no threshold yet."""
    return Secret(secrets.token_hex(32))


def secret_path(path: Path) -> Path:
    """Return the path of a transcript's secret file."""
    return path.with_name(path.name + ".secret")


def read_secret(path: Path) -> Secret:
    """Read and validate a transcript's secret file."""
    try:
        secret = Secret(**files.parse(secret_path(path).read_bytes()))
        bytes.fromhex(secret.key)
        integer(secret.lines, "lines", 1)
        for number in (secret.round, secret.entry):
            integer(number or 0, "number", 0)
        texts = all(isinstance(text, str | None) for text in (secret.debit, secret.paid))
        if not isinstance(secret.threshold, int) or not texts:
            raise TypeError(secret)
        return secret
    except (OSError, TypeError, ValueError):
        raise StorageError(
            f"{str(secret_path(path))!r} is missing or damaged, and without it the holdout cannot "
            "continue. Restore it, or start a new holdout with new data."
        ) from None


def _lock(handle: IO[Any], path: Path, wait: float = 0) -> None:
    """Lock the file, waiting up to `wait` seconds for another process."""
    try:
        import fcntl
    except ImportError:
        raise UnsupportedError(
            "This system has no file locks (flock), so two processes could spend one budget twice; "
            "leave out path=, or use Linux or macOS."
        ) from None
    until = time.monotonic() + wait
    while True:
        try:
            return fcntl.flock(handle.fileno(), fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError:
            if time.monotonic() >= until:
                raise StorageError(
                    f"{str(path)!r} is in use by another process; only one at a time may answer "
                    "questions."
                ) from None
        time.sleep(_RETRY_SECONDS)
