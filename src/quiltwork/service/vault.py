"""Files at rest: named at random, for their user only, sealed where the curator has a key.

A sealed file is AES-256-GCM in chunks: each has its own nonce, and is bound to its file, its place
and to being the last, so that nothing can be cut, swapped or put in. Deleting overwrites a file
before its name goes; what a file system or a backup keeps of it elsewhere is not ours to reach,
and is unreadable without the key.
"""

from __future__ import annotations

import os
import re
import secrets
import struct
import time
from collections import deque
from collections.abc import Iterable, Iterator, Set
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from itertools import islice
from pathlib import Path
from typing import Any

from quiltwork.errors import InvalidInputError, QuiltworkError, StorageError
from quiltwork.files import OWNER_ONLY, sync_folder

_CHUNK = 1 << 20
_MAGIC = b"quiltwork sealed 1\n"
_TAG = 16
_ABANDONED = 3600
_NAME = re.compile(r"[0-9a-f]{32}")
_CHECK, _CHECKED = "key.check", b"the key of this folder"
CHANGING = "key.changing"
"""A file that is there while the key is being changed (`rotation.py`), sealed with the new one."""


@dataclass(frozen=True)
class Vault:
    """A folder of files; with a key, what is in them can be read only with it."""

    folder: Path
    key: bytes | None = field(default=None, repr=False)

    @classmethod
    def opened(cls, folder: Path, key: bytes | None) -> Vault:
        """Return the vault of a folder, if the key is the one that its files are sealed with.

        A file of the folder, sealed when a key is first given, says so: without it a wrong key
        would show only when a file is read, after others had been written that the right one
        cannot read.

        Raises:
            StorageError: without the key, and for another one.
        """
        found = cls(folder, key)
        if (folder / CHANGING).exists():
            raise StorageError(
                f"The key of the files in {str(folder)!r} is being changed, or that was "
                "interrupted: run `quiltwork rotate-key` again, with both keys, until it ends."
            )
        check = folder / _CHECK
        sealed = [_CHECK] if check.exists() else list(islice(found._sealed_names(), 1))
        if sealed and key is None:
            raise StorageError(
                f"The files in {str(folder)!r} are sealed, and there is no key: set QUILTWORK_KEY "
                "to the one that they were sealed with."
            )
        for name in sealed:
            try:
                deque(found.read_named(name), maxlen=0)
            except StorageError:
                raise StorageError(
                    f"QUILTWORK_KEY is another key than the one that the files in {str(folder)!r} "
                    "are sealed with, or they were changed. Start it with the right key."
                ) from None
        if key is not None and not check.exists():
            found.mark()
        return found

    def mark(self, name: str = _CHECK) -> None:
        """Seal the check value, by which the key is known again."""
        self._write(name, [_CHECKED])

    def write(self, parts: Iterable[bytes]) -> str:
        """Keep some bytes durably; return the name they are found under.

        Whatever `parts` raises is raised, and nothing is kept.
        """
        return self._write(secrets.token_hex(16), parts)

    def _write(self, name: str, parts: Iterable[bytes]) -> str:
        path = self.written_beside(name, parts)
        try:
            path.rename(self.folder / name)
            sync_folder(self.folder)
        except OSError as error:
            raise StorageError(f"The data directory: {error.strerror}.") from None
        return name

    def written_beside(self, name: str, parts: Iterable[bytes]) -> Path:
        """Write what a name is to hold beside it, durably; return where."""
        path = self.folder / f"{name}.part"
        path.unlink(missing_ok=True)
        try:
            descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, OWNER_ONLY)
            with os.fdopen(descriptor, "wb") as file:
                for part in self._sealed(name, parts) if self.key else parts:
                    file.write(part)
                file.flush()
                os.fsync(file.fileno())
        except OSError as error:
            overwrite(path)
            raise StorageError(f"The data directory: {error.strerror}.") from None
        except BaseException:
            overwrite(path)
            raise
        return path

    def read(self, name: str) -> Iterator[bytes]:
        """Yield what is kept under a name, unless it was changed or needs another key."""
        self._path(name)
        yield from self.read_named(name)

    def read_named(self, name: str) -> Iterator[bytes]:
        """Yield what a file of the folder holds, be it one that `names` leaves out."""
        try:
            with (self.folder / name).open("rb") as file:
                start = file.read(len(_MAGIC))
                if start == _MAGIC:
                    yield from self._opened(name, file)
                else:
                    yield start
                    while part := file.read(_CHUNK):
                        yield part
        except OSError as error:
            raise StorageError(f"A file of the data directory: {error.strerror}.") from None

    def delete(self, name: str) -> None:
        """Overwrite and remove a file; nothing happens if it is gone."""
        overwrite(self._path(name))
        sync_folder(self.folder)

    def aged(self, name: str) -> str:
        """Let a file be so old that `clean` deletes it unless it is needed; return its name."""
        with suppress(FileNotFoundError):
            os.utime(self._path(name), (0, 0))
        return name

    def names(self) -> set[str]:
        """Return all names."""
        return {path.name for path in self.folder.iterdir() if _NAME.fullmatch(path.name)}

    def in_the_clear(self) -> int:
        """How many files are not sealed: those written while there was no key."""
        return len(self.names()) - sum(1 for _ in self._sealed_names())

    def _sealed_names(self) -> Iterator[str]:
        return (name for name in sorted(self.names()) if self.is_sealed(name))

    def is_sealed(self, name: str) -> bool:
        """Whether a file of the folder is sealed, with whatever key."""
        with (self.folder / name).open("rb") as file:
            return file.read(len(_MAGIC)) == _MAGIC

    def clean(self, needed: Set[str]) -> None:
        """Delete what no name needs and what was not finished, if it is an hour old.

        Younger files may be those that a request or a publication is about to name.
        """
        for path in list(self.folder.iterdir()):
            with suppress(FileNotFoundError):
                if path.name in needed or path.lstat().st_mtime >= time.time() - _ABANDONED:
                    continue
                if path.is_symlink():
                    path.unlink()  # what it led to ended with its process
                elif _NAME.fullmatch(path.stem):
                    overwrite(path)

    @contextmanager
    def plain(self, name: str, suffix: str) -> Iterator[Path]:
        """Lend a path at which other code can read the file as it was sent (`lent`)."""
        with self.lent(self.read(name), suffix) as path:
            yield path

    @contextmanager
    def lent(self, parts: Iterable[bytes], suffix: str) -> Iterator[Path]:
        """Lend a path at which other code can read some bytes.

        On Linux it is in memory only; elsewhere it is on the disk while it is lent. Errors that
        quote the path leave as sentences about "the file".
        """
        lent = self.folder / f"{secrets.token_hex(16)}{suffix}"
        create = getattr(os, "memfd_create", None)
        descriptor = (
            create("curator")
            if create is not None
            else os.open(lent, os.O_RDWR | os.O_CREAT | os.O_EXCL, OWNER_ONLY)
        )
        try:
            with os.fdopen(descriptor, "wb", closefd=False) as file:
                for part in parts:
                    file.write(part)
            if create is not None:
                lent.symlink_to(f"/proc/{os.getpid()}/fd/{descriptor}")
            yield lent
        except QuiltworkError as error:
            text = str(error).replace(repr(str(lent)), "the file").replace(str(lent), "the file")
            raise type(error)(text) from None
        finally:
            os.close(descriptor)
            if lent.is_symlink():
                lent.unlink()
            else:
                overwrite(lent)

    def _path(self, name: str) -> Path:
        if not _NAME.fullmatch(name):
            raise InvalidInputError("This is no name of a file at rest.")
        return self.folder / name

    def _cipher(self) -> Any:
        if self.key is None:
            raise StorageError("A file of the data directory is sealed, and there is no key.")
        from cryptography.hazmat.primitives.ciphers.aead import AESGCM

        return AESGCM(self.key)

    def _sealed(self, name: str, parts: Iterable[bytes]) -> Iterator[bytes]:
        cipher, salt = self._cipher(), secrets.token_bytes(8)
        yield _MAGIC + salt
        for place, (part, last) in enumerate(_chunks(parts)):
            bound = f"{name}:{place}:{int(last)}".encode()
            yield cipher.encrypt(salt + struct.pack(">I", place), part, bound)

    def _opened(self, name: str, file: Any) -> Iterator[bytes]:
        from cryptography.exceptions import InvalidTag

        cipher, salt = self._cipher(), file.read(8)
        part, place = file.read(_CHUNK + _TAG), 0
        while part:
            following = file.read(_CHUNK + _TAG)
            bound = f"{name}:{place}:{int(not following)}".encode()
            try:
                yield cipher.decrypt(salt + struct.pack(">I", place), part, bound)
            except InvalidTag:
                raise StorageError(
                    "A file of the data directory was changed, or sealed with another key."
                ) from None
            part, place = following, place + 1
        if not place:
            raise StorageError("A file of the data directory was cut.")


def overwrite(path: Path) -> None:
    """Overwrite and remove a file; nothing happens if it is gone."""
    with suppress(FileNotFoundError):
        with path.open("r+b") as file:
            left = os.fstat(file.fileno()).st_size
            while left > 0:
                left -= file.write(bytes(min(left, _CHUNK)))
            file.flush()
            os.fsync(file.fileno())
        path.unlink()


def _chunks(parts: Iterable[bytes]) -> Iterator[tuple[bytes, bool]]:
    """Cut bytes into chunks of one size; the last, perhaps empty, is told."""
    held = b""
    for part in parts:
        held += part
        while len(held) > _CHUNK:
            yield held[:_CHUNK], False
            held = held[_CHUNK:]
    yield held, True
