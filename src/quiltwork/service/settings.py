"""What a curator is started with: where its data are, what it takes, whom it listens to."""

from __future__ import annotations

import base64
import binascii
import ipaddress
import os
import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path

from quiltwork.errors import InvalidInputError, StorageError

KEY = "QUILTWORK_KEY"
"""The environment variable with the key of files at rest: 32 bytes, as base64 or hexadecimal."""
NEW_KEY = "QUILTWORK_NEW_KEY"  # that which `quiltwork rotate-key` seals with
OWNER_ONLY_FOLDER = 0o700
LOOPBACK = ("127.0.0.1", "localhost", "::1")


@dataclass(frozen=True)
class Limits:
    """The most that one request may bring; what is larger is refused before it is read."""

    document: int = 1_000_000  # bytes of a JSON document
    depth: int = 32  # how deeply it may be nested
    upload: int = 64_000_000  # bytes of an upload as it is sent
    unpacked: int = 20  # how many times its own size an upload may unpack to
    bytes: int = 256_000_000  # of an upload once it is unpacked, whatever its size
    rows: int = 5_000_000
    columns: int = 200
    field: int = 1_000  # characters of one cell
    requests: int = 16  # half of them are the most that one token makes at the same time
    reads: int = 4  # requests that only read and are worked on at the same time; others wait
    changes: int = 4  # all other requests: of one token half of them
    uploads: int = 4  # files that are received at the same time: slow ones block nothing else
    pause: float = 20.0  # seconds for which nothing more of a body may come


@dataclass(frozen=True)
class Settings:
    """One curator."""

    database: str  # URL of the ledger's database, which holds the curator's own tables too
    data: Path  # the folder of files at rest; only its user may read it
    key: bytes | None = field(default=None, repr=False)  # of files at rest; None leaves them plain
    allowed_hosts: tuple[str, ...] = LOOPBACK  # names under which requests may come in
    limits: Limits = Limits()
    proxies: tuple[str, ...] = ()  # addresses of proxies that may say who has signed in
    user_header: str = ""  # the header in which they do; "" if nobody signs in so

    def __post_init__(self) -> None:
        """Check that one of the two does not stand alone, and that the header is a plain name."""
        if bool(self.proxies) != bool(self.user_header):
            raise InvalidInputError(
                "Signing in at a proxy needs both: its address (--trust-proxy) and the header in "
                "which it says who has signed in (--user-header)."
            )
        if self.user_header and not re.fullmatch(r"[A-Za-z][A-Za-z0-9-]*", self.user_header):
            raise InvalidInputError("A header is named by letters, digits and dashes.")
        if self.user_header.lower() in _TAKEN_HEADERS:
            raise InvalidInputError(f"The header {self.user_header!r} means something else.")
        for address in self.proxies:
            try:
                ipaddress.ip_address(address)
            except ValueError:
                raise InvalidInputError(f"{address!r} is no address of a proxy.") from None


_TAKEN_HEADERS = {"host", "cookie", "authorization", "content-type", "content-length", "origin"}


def key_from(environment: Mapping[str, str] = os.environ, name: str = KEY) -> bytes | None:
    """Return the key of files at rest that the environment holds; None without one.

    Raises:
        InvalidInputError: for what is no key; an empty one too, since who sets it means a key.
    """
    if name not in environment:
        return None
    text = environment[name].strip()
    try:
        key = bytes.fromhex(text) if len(text) == 64 else base64.b64decode(text, validate=True)
    except (ValueError, binascii.Error):
        key = b""
    if len(key) != 32:
        raise InvalidInputError(
            f"{name} {'must be' if text else 'is set and empty; it must be'} 32 random bytes in "
            "base64 or hexadecimal; make one with `openssl rand -base64 32`, and keep it apart "
            "from the data. Only without the variable are files kept in the clear."
        )
    return key


def private_folder(path: Path) -> Path:
    """Make a folder that only its user can read, or check that one is."""
    try:
        path.mkdir(mode=OWNER_ONLY_FOLDER, parents=True, exist_ok=True)
        others = path.stat().st_mode & 0o077
    except OSError as error:
        raise StorageError(f"The data directory {str(path)!r}: {error.strerror}.") from None
    if others and os.name != "nt":
        raise StorageError(
            f"The data directory {str(path)!r} can be read by others; run chmod 700 on it, or "
            "name another one."
        )
    return path
