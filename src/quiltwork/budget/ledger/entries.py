"""Entries of the log: immutable, numbered from 1 and chained by SHA-256.

An entry's hash covers its number, identity, dataset, kind, body and the hash before it, so that one
known hash detects whatever was changed, removed or inserted before it. A body is stored as the very
text that was hashed. Cost: one SHA-256 per entry.

Theorem: docs/theory/ledger.md
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any

from quiltwork.errors import StorageError
from quiltwork.exact import shortened

_CANONICAL = json.JSONEncoder(sort_keys=True, separators=(",", ":"), allow_nan=False)


@dataclass(frozen=True)
class Draft:
    """An entry before it is appended; its random `id` makes a retried commit idempotent."""

    id: str
    dataset: str
    kind: str
    body: str


@dataclass(frozen=True)
class Entry:
    """One line of the log; `body` is canonical JSON."""

    seq: int
    id: str
    dataset: str
    kind: str
    body: str
    hash: str

    @property
    def content(self) -> dict[str, Any]:
        """The body as a dictionary.

        Raises:
            StorageError: if it is none.
        """
        try:
            content: dict[str, Any] = json.loads(self.body)
        except (RecursionError, TypeError, ValueError):
            content = None  # type: ignore[assignment]
        if not isinstance(content, dict):
            raise damaged(self, "its body is no JSON object")
        return content


@dataclass(frozen=True)
class Head:
    """The end of a log: its number of entries and the last hash."""

    count: int
    hash: str


def damaged(entry: Entry, problem: str) -> StorageError:
    """Return the error for a damaged entry, naming the entry and its dataset."""
    return StorageError(
        f"The ledger is damaged at entry {entry.seq} (dataset {shortened(entry.dataset)}): "
        f"{problem}. Restore a backup and retire the datasets it may have lost debits of."
    )


@contextmanager
def reading(entry: Entry) -> Iterator[None]:
    """Convert errors in reading an entry's body into a `StorageError` that names the entry."""
    try:
        yield
    except KeyError as error:
        raise damaged(entry, f"its body lacks {error}") from error
    except (AttributeError, RecursionError, TypeError, ValueError) as error:
        raise damaged(entry, f"its body cannot be read ({shortened(str(error))})") from error


def canonical(body: Mapping[str, Any]) -> str:
    """Write a body as canonical JSON, one text for equal values: sorted keys, ASCII, no NaN.

    >>> canonical({"length": 3, "budget": "1/10"})
    '{"budget":"1/10","length":3}'
    """
    return _CANONICAL.encode(body)


def scoped_key(key: str, analyst: str | None) -> str:
    """Return an idempotency key as stored in the `key` column: every analyst has own keys.

    The separator is not printable, so that no name and no key contains it.
    """
    return key if analyst is None else f"{analyst}\x1f{key}"


def origin(ledger_id: str) -> str:
    """Return the hash that precedes the first entry, different for every ledger."""
    return hashlib.sha256(f"quiltwork/ledger/{ledger_id}".encode()).hexdigest()


def appended(head: Head, draft: Draft) -> Entry:
    """Return the entry that a draft becomes after `head`."""
    seq = head.count + 1
    digest = _digest(head.hash, seq, draft.id, draft.dataset, draft.kind, draft.body)
    return Entry(seq, draft.id, draft.dataset, draft.kind, draft.body, digest)


def follow(head: Head, entries: Iterable[Entry]) -> Iterator[Entry]:
    """Yield entries unchanged while each continues the chain from `head`.

    Raises:
        StorageError: at the first one that is missing, out of place or changed.
    """
    for entry in entries:
        if entry.seq != head.count + 1:
            raise StorageError(
                f"The ledger is damaged: entry {head.count + 1} is missing and {entry.seq} stands "
                "in its place. Restore a backup and retire the datasets it may have lost debits of."
            )
        expected = _digest(head.hash, entry.seq, entry.id, entry.dataset, entry.kind, entry.body)
        if entry.hash != expected:
            raise StorageError(
                f"The ledger is damaged: entry {entry.seq} (dataset {entry.dataset!r}) or the one "
                "before it was changed after it was written. Restore a backup and retire the "
                "datasets it may have lost debits of."
            )
        head = Head(entry.seq, entry.hash)
        yield entry


def _digest(previous: str, *fields: object) -> str:
    text = _CANONICAL.encode([previous, *fields])
    return hashlib.sha256(text.encode("ascii")).hexdigest()


def now() -> str:
    """Return the time for an entry, in UTC to the second."""
    return datetime.now(UTC).isoformat(timespec="seconds")
