"""The vault: files at rest with random names, readable by the server's user only, encrypted.

With a key every file is sealed by AES-256-GCM in chunks. Each chunk has its own nonce and is
authenticated with its file's name, its position and whether it is the last, so chunks cannot be
cut, swapped or inserted. Deleting overwrites a file before removing it. Copies that a file system
or a backup keeps are out of reach, but unreadable without the key.
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
KEY_CHECK, _CHECKED = "key.check", b"the key of this folder"
CHANGING = "key.changing"
"""The name of a file that exists during a key rotation (`rotation.py`), sealed with the new key."""


@dataclass(frozen=True)
class Vault:
    """A folder of files, encrypted if there is a key."""

    folder: Path
    key: bytes | None = field(default=None, repr=False)

    @classmethod
    def opened(cls, folder: Path, key: bytes | None) -> Vault:
        """Return the vault of a folder, after checking that its files are sealed with this key.

        The check reads a file that is sealed when a key is first used. Without it a wrong key would
        show only at the first read, after new files had been sealed that the right key cannot open.

        Raises:
            StorageError: if the key is missing or wrong, or a key rotation is unfinished.
        """
        vault = cls(folder, key)
        if (folder / CHANGING).exists():
            raise StorageError(
                f"A key rotation of {str(folder)!r} is running or was interrupted. Run "
                "`quiltwork rotate-key` again with the same two keys until it ends."
            )
        check = folder / KEY_CHECK
        sealed = [KEY_CHECK] if check.exists() else list(islice(vault._sealed_names(), 1))
        if sealed and key is None:
            raise StorageError(
                f"The files in {str(folder)!r} are encrypted, but QUILTWORK_KEY is not set. Set it "
                "to the key that they were encrypted with."
            )
        for name in sealed:
            try:
                deque(vault.read_any(name), maxlen=0)
            except StorageError:
                raise StorageError(
                    f"QUILTWORK_KEY does not open the files in {str(folder)!r}: it is another key "
                    "than the one they were encrypted with, or they were altered. Set the right "
                    "key."
                ) from None
        if key is not None and not check.exists():
            vault.write_check()
        return vault

    def write_check(self, name: str = KEY_CHECK) -> None:
        """Seal the value by which a later start recognizes the key."""
        self._write(name, [_CHECKED])

    def write(self, parts: Iterable[bytes]) -> str:
        """Store bytes durably; return the file's name.

        An exception from `parts` is passed on, and nothing is stored.
        """
        return self._write(secrets.token_hex(16), parts)

    def _write(self, name: str, parts: Iterable[bytes]) -> str:
        path = self.write_aside(name, parts)
        try:
            path.rename(self.folder / name)
            sync_folder(self.folder)
        except OSError as error:
            raise StorageError(f"The data directory: {error.strerror}.") from None
        return name

    def write_aside(self, name: str, parts: Iterable[bytes]) -> Path:
        """Write the content of a file durably under a temporary name; return that path."""
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
        """Yield a file's content; StorageError if it was altered or needs another key."""
        self._path(name)
        yield from self.read_any(name)

    def read_any(self, name: str) -> Iterator[bytes]:
        """Yield the content of any file of the folder, the key check included."""
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
        """Overwrite and remove a file, if it exists."""
        overwrite(self._path(name))
        sync_folder(self.folder)

    def mark_unused(self, name: str) -> str:
        """Age a file so that `clean` deletes it unless it is still referenced; return its name."""
        with suppress(FileNotFoundError):
            os.utime(self._path(name), (0, 0))
        return name

    def names(self) -> set[str]:
        """Return the names of all stored files."""
        return {path.name for path in self.folder.iterdir() if _NAME.fullmatch(path.name)}

    def unencrypted(self) -> int:
        """Return how many files are not encrypted: those written while there was no key."""
        return len(self.names()) - sum(1 for _ in self._sealed_names())

    def _sealed_names(self) -> Iterator[str]:
        return (name for name in sorted(self.names()) if self.is_sealed(name))

    def is_sealed(self, name: str) -> bool:
        """Whether a file of the folder is encrypted, with any key."""
        with (self.folder / name).open("rb") as file:
            return file.read(len(_MAGIC)) == _MAGIC

    def clean(self, referenced: Set[str]) -> None:
        """Delete unreferenced and unfinished files that are at least an hour old.

        A younger file may be one that a request or a publication is about to reference.
        """
        for path in list(self.folder.iterdir()):
            with suppress(FileNotFoundError):
                if path.name in referenced or path.lstat().st_mtime >= time.time() - _ABANDONED:
                    continue
                if path.is_symlink():
                    path.unlink()  # the memory it pointed to ended with its process
                elif _NAME.fullmatch(path.stem):
                    overwrite(path)

    @contextmanager
    def plain(self, name: str, suffix: str) -> Iterator[Path]:
        """Lend a path at which other code can read the decrypted file (`lent`)."""
        with self.lent(self.read(name), suffix) as path:
            yield path

    @contextmanager
    def lent(self, parts: Iterable[bytes], suffix: str) -> Iterator[Path]:
        """Lend a path at which other code can read the given bytes.

        On Linux they are in memory only; elsewhere on disk until the block ends. Errors that quote
        the path are rewritten to speak of "the file".
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
            raise InvalidInputError("The name is not that of a stored file.")
        return self.folder / name

    def _cipher(self) -> Any:
        if self.key is None:
            raise StorageError("A file of the data directory is encrypted, and no key is set.")
        from cryptography.hazmat.primitives.ciphers.aead import AESGCM

        return AESGCM(self.key)

    def _sealed(self, name: str, parts: Iterable[bytes]) -> Iterator[bytes]:
        cipher, salt = self._cipher(), secrets.token_bytes(8)
        yield _MAGIC + salt
        for position, (chunk, last) in enumerate(_chunks(parts)):
            bound = f"{name}:{position}:{int(last)}".encode()
            # The random salt differs for each file, the counter for each chunk: no nonce repeats.
            yield cipher.encrypt(salt + struct.pack(">I", position), chunk, bound)

    def _opened(self, name: str, file: Any) -> Iterator[bytes]:
        from cryptography.exceptions import InvalidTag

        cipher, salt = self._cipher(), file.read(8)
        chunk, position = file.read(_CHUNK + _TAG), 0
        while chunk:
            following = file.read(_CHUNK + _TAG)
            bound = f"{name}:{position}:{int(not following)}".encode()
            try:
                yield cipher.decrypt(salt + struct.pack(">I", position), chunk, bound)
            except InvalidTag:
                raise StorageError(
                    "A file of the data directory was altered, or encrypted with another key."
                ) from None
            chunk, position = following, position + 1
        if not position:
            raise StorageError("A file of the data directory was truncated.")


def overwrite(path: Path) -> None:
    """Overwrite and remove a file, if it exists."""
    with suppress(FileNotFoundError):
        with path.open("r+b") as file:
            left = os.fstat(file.fileno()).st_size
            while left > 0:
                left -= file.write(bytes(min(left, _CHUNK)))
            file.flush()
            os.fsync(file.fileno())
        path.unlink()


def _chunks(parts: Iterable[bytes]) -> Iterator[tuple[bytes, bool]]:
    """Yield chunks of one size, each with whether it is the last, which may be empty."""
    buffer = b""
    for part in parts:
        buffer += part
        while len(buffer) > _CHUNK:
            yield buffer[:_CHUNK], False
            buffer = buffer[_CHUNK:]
    yield buffer, True
