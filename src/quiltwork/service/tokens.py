"""Tokens: 256 random bits with a prefix and a checksum, kept as their hash, shown once.

A token is `qwk_`, 64 hexadecimal digits, and 8 of their CRC-32: a scanner finds it in a file, and
what is mistyped is refused without asking the database. The hash is a plain SHA-256, which is
enough for what cannot be guessed.
"""

from __future__ import annotations

import hashlib
import re
import secrets
import zlib

PREFIX = "qwk_"
_SHAPE = re.compile(rf"{PREFIX}([0-9a-f]{{64}})([0-9a-f]{{8}})")


def new_token() -> str:
    """Return a new token; it is never stored as it is.

    >>> is_token(new_token()), is_token("qwk_" + 72 * "0")
    (True, False)
    """
    body = secrets.token_hex(32)
    return f"{PREFIX}{body}{_checksum(body)}"


def is_token(text: str) -> bool:
    """Whether a text has the shape and the checksum of a token; asks nobody."""
    found = _SHAPE.fullmatch(text)
    return found is not None and _checksum(found[1]) == found[2]


def hashed(token: str) -> str:
    """Return what is stored of a token."""
    return hashlib.sha256(token.encode()).hexdigest()


def _checksum(body: str) -> str:
    return f"{zlib.crc32(body.encode()):08x}"
