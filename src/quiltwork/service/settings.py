"""The settings of a curator: where its data are, request limits, allowed hosts and proxies."""

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
"""The environment variable with the encryption key: 32 bytes in base64 or hexadecimal."""
NEW_KEY = "QUILTWORK_NEW_KEY"  # the key that `quiltwork rotate-key` changes to
OWNER_ONLY_FOLDER = 0o700
LOOPBACK = ("127.0.0.1", "localhost", "::1")


@dataclass(frozen=True)
class Limits:
    """Upper limits for one request; a larger one is refused before it is read in full."""

    document: int = 1_000_000  # bytes of a JSON document
    depth: int = 32  # how deeply it may be nested
    upload: int = 64_000_000  # bytes of an upload as it is sent
    unpacked: int = 20  # how many times its own size an upload may unpack to
    bytes: int = 256_000_000  # of an upload after unpacking, whatever its size
    rows: int = 5_000_000
    columns: int = 200
    field: int = 1_000  # characters of one cell
    requests: int = 16  # one token may have half as many in flight
    reads: int = 4  # reading requests worked on at the same time; others wait
    changes: int = 4  # all other requests worked on at the same time; one token has half
    uploads: int = 4  # files received at the same time; slow ones block nothing else
    pause: float = 20.0  # seconds that a body may stall


@dataclass(frozen=True)
class Settings:
    """The settings of one curator."""

    database: str  # URL of the ledger's database, which also holds the curator's own tables
    data: Path  # the data directory; only the server's user may read it
    key: bytes | None = field(default=None, repr=False)  # None stores files unencrypted
    allowed_hosts: tuple[str, ...] = LOOPBACK  # host names that requests may use
    limits: Limits = Limits()
    proxies: tuple[str, ...] = ()  # addresses of proxies that may name a signed-in user
    user_header: str = ""  # the header in which they do; "" if there is no sign-in by proxy

    def __post_init__(self) -> None:
        """Check that proxies and their header are given together, and that both are valid."""
        if bool(self.proxies) != bool(self.user_header):
            raise InvalidInputError(
                "Sign-in by a proxy needs both its address (--trust-proxy) and the header with "
                "the user's name (--user-header)."
            )
        if self.user_header and not re.fullmatch(r"[A-Za-z][A-Za-z0-9-]*", self.user_header):
            raise InvalidInputError("The name of a header has letters, digits and dashes only.")
        if self.user_header.lower() in _TAKEN_HEADERS:
            raise InvalidInputError(f"The header {self.user_header!r} has another use in HTTP.")
        for address in self.proxies:
            try:
                ipaddress.ip_address(address)
            except ValueError:
                raise InvalidInputError(f"{address!r} is not an IP address.") from None


_TAKEN_HEADERS = {"host", "cookie", "authorization", "content-type", "content-length", "origin"}


def key_from(environment: Mapping[str, str] = os.environ, name: str = KEY) -> bytes | None:
    """Return the encryption key from the environment; None if the variable is not set.

    Raises:
        InvalidInputError: for a malformed key; also for an empty one, since setting the variable
            shows that encryption is wanted.
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
            f"{name} {'must be' if text else 'is empty; it must be'} 32 random bytes in "
            "base64 or hexadecimal. Make a key with `openssl rand -base64 32` and keep it apart "
            "from the data. To store files unencrypted, unset the variable."
        )
    return key


def private_folder(path: Path) -> Path:
    """Create a folder that only its user can read, or check that an existing one is private."""
    try:
        path.mkdir(mode=OWNER_ONLY_FOLDER, parents=True, exist_ok=True)
        others = path.stat().st_mode & 0o077
    except OSError as error:
        raise StorageError(f"The data directory {str(path)!r}: {error.strerror}.") from None
    if others and os.name != "nt":
        raise StorageError(
            f"Other users can read the data directory {str(path)!r}. Run chmod 700 on it, or "
            "choose another one."
        )
    return path
