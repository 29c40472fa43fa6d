"""Where a budget of questions lives: in two files that survive a crash.

`NAME.jsonl` is public: a first line that says what was begun, then lines that each hold the hash of
the one before; a line is on the disk before anything in it is shown. `NAME.jsonl.secret` holds the
key of the commitment to the data, for a holdout the noise of the current threshold, and how the
lines ended, so that a cut or edited file is refused. It is replaced atomically. The last of the
lines that are written together carries a code that only the key gives, so that nobody else adds
any. Both are their owner's only, and one process at a time may hold them.
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

_BETWEEN_LOOKS = 0.02
_LONGEST_NAME = 200


class Committed(Protocol):
    """What the lines of a file tell; it knows the data by a keyed digest."""

    @property
    def commitment(self) -> str:
        """The digest."""


Read = TypeVar("Read", bound=Committed)


@dataclass(frozen=True)
class Secret:
    """What must not be published while the budget lasts.

    `key` is of the commitment to the data. `round` says which threshold the noise `threshold`, in
    steps, belongs to, from 0, None before the first is drawn; of a board of one bit, the submission
    that is the best, and its score. `debit`, `entry` and `paid` are key, number and hash of the
    current round's debit. `lines` of the transcript are sealed, `last` is the hash of the last of
    them, which through the chain covers all; later ones were interrupted.
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
    """Two files, locked while this object lives."""

    def __init__(self, path: Path, handle: IO[bytes], lines: int, last_line: str) -> None:
        self._path, self._handle, self.code = path, handle, ""
        self._lines, self._last = lines, last_line

    @classmethod
    def create(cls, path: str | Path, header: str, secret: Secret) -> tuple[SealedLog, Secret]:
        """Start the two files; return the secret that seals the first line."""
        target = files.as_path(path)
        if os.path.lexists(secret_path(target)):
            raise StorageError(
                f"{str(secret_path(target))!r} exists already, the secret of another transcript "
                "of this name; choose another name."
            )
        try:
            descriptor = os.open(target, os.O_RDWR | os.O_CREAT | os.O_EXCL, files.OWNER_ONLY)
        except FileExistsError:
            raise StorageError(
                f"{str(target)!r} exists already; resume it, or choose another name."
            ) from None
        except (OSError, ValueError) as error:
            raise files.unwritable(target, error) from None
        made = cls(target, os.fdopen(descriptor, "r+b", buffering=0), 1, header)
        try:
            _lock(made._handle, target)
            sealed = replace(secret, lines=1, last=line_hash(header))
            made._replace_secret(sealed)
            made._write([header])
            files.sync_folder(Path(os.path.realpath(target)).parent)
        except BaseException as error:
            made.close()
            for left in (target, secret_path(target)):
                with suppress(OSError):
                    left.unlink(missing_ok=True)
            if isinstance(error, OSError):
                raise files.unwritable(target, error) from None
            raise
        return made, sealed

    def append(self, bodies: Sequence[Mapping[str, Any]], secret: Secret) -> Secret:
        """Write lines, then seal them; both are on the disk before this returns the new secret."""
        lines, last = [], self._last
        for body in bodies:
            last = chained(body, last)
            lines.append(last)
        if lines:
            self.code = _code(secret, lines)
            last = chained({**bodies[-1], "code": self.code}, ([self._last, *lines])[-2])
            lines[-1] = last
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
        """Let another process take over."""
        self._handle.close()

    __del__ = close

    def _replace_secret(self, secret: Secret) -> None:
        target = secret_path(self._path)
        unfinished = target.with_name(target.name + ".new")
        flags = os.O_WRONLY | os.O_CREAT | os.O_TRUNC
        descriptor = os.open(unfinished, flags, files.OWNER_ONLY)
        with os.fdopen(descriptor, "w", encoding="utf-8") as file:
            json.dump(asdict(secret), file)
            file.flush()
            os.fsync(file.fileno())
        os.replace(unfinished, target)
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
    """Open the two files and verify them: by `read`, by the seal, and that they belong to the data.

    `commit` is the data's digest under a key, `wait` how many seconds another process may still
    hold them, `at_once` how many lines are written before a seal, None for any number. What an
    interruption left without a seal is sealed now. Also returns whether the last line was cut off;
    it is gone then.
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
        found, secret = read(text), read_secret(target)
        lines = split_lines(text)
        check_seal(lines, secret, at_once)
        known = lines if _is_own(lines, secret) else lines[: secret.lines]
        if len(known) < len(lines):
            if at_once is not None:
                raise StorageError(
                    f"Line {len(lines)} was added by somebody who does not hold the secret; remove "
                    "it."
                )
            # A batch that was cut off between two lines, or what somebody added: never shown.
            lines, whole, torn = known, "\n".join(known).encode(), torn or b"\n"
            found = read("\n".join(lines))
        if not hmac.compare_digest(found.commitment, commit(secret.key)):
            raise StorageError(
                f"{str(target)!r} belongs to other data: give the rows it was begun with, row for "
                "row."
            )
        if torn:
            handle.truncate(len(whole) + 1)
        handle.seek(0, os.SEEK_END)
    except BaseException as error:
        handle.close()
        if isinstance(error, UnicodeDecodeError):
            raise StorageError(f"{str(target)!r} is no transcript: it is no text.") from None
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
    return opened, found, secret, bool(torn)


def whole_lines(path: Path) -> str:
    """Read a transcript as far as its lines are whole: another process may be adding one."""
    return files.read_bytes(path).rpartition(b"\n")[0].decode(errors="replace")


def sealed_lines(path: Path) -> str:
    """Read the lines that the secret beside them seals; later ones were shown to nobody yet.

    Refused if a sealed line was cut or changed, or there is no secret, or an old one.
    """
    for looks_left in (2, 1, 0):
        # The secret first: another process may be adding lines, which are there before their seal.
        secret = read_secret(path)
        lines = split_lines(whole_lines(path))
        check_seal(lines, secret)
        try:
            check_written_together(lines, secret)
            break
        except StorageError:  # or that process has sealed more than once since
            if not looks_left:
                raise
    return "\n".join(lines[: secret.lines])


def check_seal(lines: Sequence[str], secret: Secret, at_once: int | None = None) -> None:
    """Refuse a transcript that lacks, or has changed, a line that the secret seals.

    Lines after the sealed ones were written by a process that ended before it showed their answers;
    they stay, so rounds may be lost by interrupting, and are never regained. If there are more of
    them than are written `at_once`, the secret is an old one.
    """
    if at_once is not None and len(lines) > secret.lines + at_once:
        raise _older(secret, lines)
    if not 1 <= secret.lines <= len(lines) or line_hash(lines[secret.lines - 1]) != secret.last:
        raise StorageError(
            f"The transcript was cut, edited or replaced: its secret seals {secret.lines} lines "
            f"that are not all there as they were ({len(lines)} found). Put back the latest "
            "transcript; without it this holdout answers no more."
        )


def _code(secret: Secret, lines: Sequence[str]) -> str:
    """Return what only the secret's holder can put on the last of lines written together."""
    return hmac.new(bytes.fromhex(secret.key), "\n".join(lines).encode(), "sha256").hexdigest()


def _is_own(lines: Sequence[str], secret: Secret) -> bool:
    """Whether the lines that are not sealed yet are whole, and written by the secret's holder."""
    check_written_together(lines, secret)
    added = list(lines[secret.lines :])
    if not added:
        return True
    body = files.parse(added[-1])
    last = {k: v for k, v in body.items() if k not in ("code", "previous")}
    added[-1] = chained(last, lines[-2])
    found = ascii(body.get("code"))  # which may be any text: only ASCII can be compared
    return hmac.compare_digest(found, ascii(_code(secret, added)))


def check_written_together(lines: Sequence[str], secret: Secret) -> None:
    """Refuse an old secret: of the lines that it does not seal, one before the last has a code."""
    if any('"code": "' in line for line in lines[secret.lines : -1]):
        raise _older(secret, lines)


def _older(secret: Secret, lines: Sequence[str]) -> StorageError:
    return StorageError(
        f"The secret seals {secret.lines} lines, and there are {len(lines)}: it is older than "
        "they are, or lines were added. Put back the latest secret."
    )


def chained(body: Mapping[str, Any], previous: str) -> str:
    """Write a line that comes after the line `previous`."""
    linked = {**body, "previous": line_hash(previous)}
    return json.dumps(linked, sort_keys=True, ensure_ascii=False)


def read_chained(lines: Sequence[str]) -> list[dict[str, Any]]:
    """Read the lines after the first, each of which must hold the hash of the one before."""
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
    """Say which line of a transcript it is that lacks something or holds what makes no sense."""
    try:
        yield
    except KeyError as error:
        raise StorageError(f"Line {line} of the transcript lacks {error}.") from None
    except InvalidInputError as error:
        raise StorageError(f"Line {line} of the transcript cannot be read: {error}") from None


def check_text(text: object, name: str) -> None:
    """Refuse what cannot be written to a transcript, before anything is asked."""
    if not isinstance(text, str):
        raise InvalidInputError(f"{name} must be text, not {shortened(text)}.")
    try:
        text.encode()
    except UnicodeEncodeError:
        raise InvalidInputError(
            f"{name} is {shortened(text)}, which has half of a surrogate pair and cannot be "
            "written; remove it."
        ) from None


def check_team(team: object) -> None:
    """Refuse a name that is empty, does not show, or would be a formula in a spreadsheet."""
    check_text(team, "team")
    name = str(team)
    if not name.strip() or name != name.strip() or len(name) > _LONGEST_NAME:
        raise InvalidInputError(
            f"The team has no name, spaces around it, or one of more than {_LONGEST_NAME} letters."
        )
    if not name.isprintable() or name.lstrip().startswith(("=", "+", "-", "@")):
        raise InvalidInputError(
            f"team is {shortened(name)}, which a terminal or a spreadsheet may take for a command; "
            "leave out control characters, and =, +, - or @ in front."
        )


def text_of(body: Mapping[str, Any], name: str) -> str:
    """Return a field that must be text, of which every letter can be written."""
    check_text(body[name], name)
    return str(body[name])


def split_lines(text: str) -> list[str]:
    """Split at line feeds only: labels may hold the other characters that end lines in Unicode."""
    return text.removesuffix("\n").split("\n") if text else []


def line_hash(line: str) -> str:
    """Return the SHA-256 of a line."""
    return hashlib.sha256(line.encode()).hexdigest()


def new_secret() -> Secret:
    """Return a secret with a fresh key and no threshold yet."""
    return Secret(secrets.token_hex(32))


def secret_path(path: Path) -> Path:
    """Return where the secret of a transcript is."""
    return path.with_name(path.name + ".secret")


def read_secret(path: Path) -> Secret:
    """Read the secret of a transcript."""
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
            f"{str(secret_path(path))!r} is missing or damaged; without it the holdout cannot go "
            "on. Start a new one, with new data."
        ) from None


def _lock(handle: IO[Any], path: Path, wait: float = 0) -> None:
    """Refuse a second process, unless the first lets go within `wait` seconds."""
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
                    f"{str(path)!r} is in use by another process; one owner answers all questions."
                ) from None
        time.sleep(_BETWEEN_LOOKS)
