"""Snapshots and cached states: a dataset's state without folding its whole log again.

The log is the truth. A snapshot is the state after some entry, stored as one row with its digest; a
`StateCache` holds states in memory. Either is used only if the log still has that entry, by number
and hash (which covers everything before it), and no entry after it is missing. A snapshot that is
absent, damaged, stale or of another log is ignored: the state is folded from the beginning, and a
later debit writes a new snapshot.

Theorem: docs/theory/ledger.md
"""

from __future__ import annotations

import hashlib
import json
from dataclasses import dataclass, replace
from typing import Any

from quiltwork.budget.ledger.claims import AnyAccount
from quiltwork.budget.ledger.entries import Draft, Entry, canonical, now
from quiltwork.budget.ledger.ledger_records import unknown_dataset
from quiltwork.budget.ledger.log import Log
from quiltwork.budget.ledger.state import DatasetState, fold, initial_state
from quiltwork.errors import QuiltworkError

TAIL, SHARE = 1000, 10
"""A snapshot is due once the entries after the last one exceed TAIL and 1/SHARE of all."""
_CACHED_STATES = 8
"""States cached per dataset: a reader's transaction may see an older log than a writer's."""

_UNREADABLE = (
    *(ArithmeticError, AttributeError, LookupError, RecursionError, TypeError, ValueError),
)


@dataclass(frozen=True)
class Snapshot:
    """A dataset's state as canonical JSON, and a digest that detects changes to it."""

    body: str
    digest: str

    @classmethod
    def of(cls, state: DatasetState) -> Snapshot:
        """Write a state. O(changes of its levels)."""
        body = canonical(state.to_body())
        return cls(body, _digest(state.name, body))

    def state(self, log: Log, name: str) -> DatasetState | None:
        """Return the state that was written; None if it is not one of this log."""
        if self.digest != _digest(name, self.body):
            return None
        try:
            body = json.loads(self.body)
            first, last = log.at(int(body["created"])), log.at(int(body["head"][0]))
            if first is None or last is None or first.dataset != name or last.dataset != name:
                return None
            state = initial_state(first).restored(body)
            return state if last.hash == state.head.hash else None
        except (*_UNREADABLE, QuiltworkError):
            return None  # damage to the log itself is reported by whoever folds it


class StateCache:
    """The latest states of datasets, shared by the threads of a process."""

    def __init__(self) -> None:
        """Start empty."""
        self._recent: dict[str, tuple[DatasetState, ...]] = {}  # the newest first

    def latest(self, log: Log, name: str) -> DatasetState:
        """Return a dataset's state with every entry that this transaction sees.

        Cost: the entries since the cached state, or the snapshot, or the beginning.

        Raises:
            InvalidInputError: if there is no such dataset; the message lists some that exist.
            StorageError: if an entry is damaged or missing.
        """
        cached = self._recent.get(name, ())
        start = next(
            (state for state in cached if log.hash_at(state.head.count) == state.head.hash), None
        )
        if start is None:
            start = _stored(log, name) or _first(log, name)
        state = fold(start, log.steps(name, start.head.count))
        self._cache(state)
        return state

    def _cache(self, state: DatasetState) -> None:
        states = [other for other in self._recent.get(state.name, ()) if other.head != state.head]
        states.append(state)
        states.sort(key=lambda state: state.head.count, reverse=True)
        self._recent[state.name] = tuple(states[:_CACHED_STATES])

    def advance(
        self, log: Log, state: DatasetState, entries: list[Entry], account: AnyAccount | None = None
    ) -> DatasetState:
        """Cache a state with entries just written; write a snapshot if one is due.

        The resulting `account` may be given. Cost: that of a snapshot, once in many entries.
        """
        after = fold(state, entries, account)
        if after.steps - after.snapshot_steps > max(TAIL, after.steps // SHARE):
            write_snapshot(log, after)
            after = replace(after, snapshot_steps=after.steps)
        self._cache(after)
        return after


def write_snapshot(log: Log, state: DatasetState) -> None:
    """Replace the snapshot of a dataset."""
    snapshot = Snapshot.of(state)
    log.put_snapshot(state.name, snapshot.body, snapshot.digest)


def _stored(log: Log, name: str) -> DatasetState | None:
    row = log.snapshot(name)
    return None if row is None else Snapshot(*row).state(log, name)


def _first(log: Log, name: str) -> DatasetState:
    entry = next(log.steps(name), None)
    if entry is None:
        raise unknown_dataset(name, log.datasets())
    return initial_state(entry)


def _digest(name: str, body: str) -> str:
    return hashlib.sha256(canonical({name: body}).encode()).hexdigest()


def append_change(
    log: Log,
    states: StateCache,
    state: DatasetState,
    kind: str,
    body: dict[str, Any],
    identity: str,
) -> DatasetState:
    """Append an entry that changes what a dataset grants, and return the state after it."""
    text = canonical({**body, "after": state.head.count, "at": now()})
    entry = log.append(Draft(identity, state.name, kind, text))
    return states.advance(log, state, [entry])
