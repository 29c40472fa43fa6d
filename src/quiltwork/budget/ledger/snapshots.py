"""States of datasets, from a snapshot and the entries after it; what is read is remembered.

The log is the truth. A snapshot is the state after some entry, as one row with its digest; what a
process remembers is the same in memory. Either is used only if the log still has that entry, by
number and hash, which covers everything before it, and nothing is missing after it. One that is
missing, damaged, stale or of another moment grants nothing and accuses nobody: the state is added
up from the beginning, and written anew with a later debit.

Theorem: docs/theory/ledger.md
"""

from __future__ import annotations

import hashlib
import json
from dataclasses import dataclass, replace
from typing import Any

from quiltwork.budget.ledger.claims import AnyAccount
from quiltwork.budget.ledger.entries import Draft, Entry, canonical
from quiltwork.budget.ledger.log import Log, now
from quiltwork.budget.ledger.records import unknown
from quiltwork.budget.ledger.state import DatasetState, begun, folded
from quiltwork.errors import QuiltworkError

TAIL, SHARE = 1000, 10
"""A snapshot is written when so many entries came after the last, and such a share of all."""
_RECENT = 8
"""So many states of a dataset are remembered: readers may see less than has been written since."""

_UNREADABLE = (
    *(ArithmeticError, AttributeError, LookupError, RecursionError, TypeError, ValueError),
)


@dataclass(frozen=True)
class Snapshot:
    """A dataset's state as text, and what tells whether it was changed."""

    body: str
    digest: str

    @classmethod
    def of(cls, state: DatasetState) -> Snapshot:
        """Write a state. O(changes of its levels)."""
        body = canonical(state.to_body())
        return cls(body, _digest(state.name, body))

    def state(self, log: Log, name: str) -> DatasetState | None:
        """The state that was written; None if it is not one of this log."""
        if self.digest != _digest(name, self.body):
            return None
        try:
            body = json.loads(self.body)
            first, last = log.at(int(body["created"])), log.at(int(body["head"][0]))
            if first is None or last is None or first.dataset != name or last.dataset != name:
                return None
            found = begun(first).with_body(body)
            return found if last.hash == found.head.hash else None
        except (*_UNREADABLE, QuiltworkError):
            return None  # whatever is wrong with the log itself is said by whoever reads that


class States:
    """The states of datasets; threads share what was read last."""

    def __init__(self) -> None:
        """Know nothing yet."""
        self._known: dict[str, tuple[DatasetState, ...]] = {}  # the latest first

    def found(self, log: Log, name: str) -> DatasetState:
        """Return a dataset's state with everything that this transaction sees.

        Cost: the entries since the state remembered, or the snapshot, or the beginning.

        Raises:
            InvalidInputError: if there is no such dataset; it lists those there are.
            StorageError: if an entry is damaged, or missing before others.
        """
        recent = self._known.get(name, ())
        heads = ((one, one.head) for one in recent)
        known = next((one for one, end in heads if log.hash_at(end.count) == end.hash), None)
        if known is None:
            known = _stored(log, name) or _first(log, name)
        state = folded(known, log.steps(name, known.head.count))
        self._remember(state)
        return state

    def _remember(self, state: DatasetState) -> None:
        others = [one for one in self._known.get(state.name, ()) if one.head != state.head]
        others.append(state)
        others.sort(key=lambda one: one.head.count, reverse=True)
        self._known[state.name] = tuple(others[:_RECENT])

    def add(
        self, log: Log, state: DatasetState, entries: list[Entry], account: AnyAccount | None = None
    ) -> DatasetState:
        """Remember a state with entries just written; write a snapshot, if the last is far behind.

        The `account` with them may be given. Cost: that of a snapshot, once in many entries.
        """
        after = folded(state, entries, account)
        if after.steps - after.kept > max(TAIL, after.steps // SHARE):
            write_snapshot(log, after)
            after = replace(after, kept=after.steps)
        self._remember(after)
        return after


def write_snapshot(log: Log, state: DatasetState) -> None:
    """Write the snapshot of a state in the place of the one before."""
    snapshot = Snapshot.of(state)
    log.put_snapshot(state.name, snapshot.body, snapshot.digest)


def _stored(log: Log, name: str) -> DatasetState | None:
    found = log.snapshot(name)
    return None if found is None else Snapshot(*found).state(log, name)


def _first(log: Log, name: str) -> DatasetState:
    entry = next(log.steps(name), None)
    if entry is None:
        raise unknown(name, log.datasets())
    return begun(entry)


def _digest(name: str, body: str) -> str:
    return hashlib.sha256(canonical({name: body}).encode()).hexdigest()


def append_step(
    log: Log, states: States, state: DatasetState, kind: str, body: dict[str, Any], identity: str
) -> DatasetState:
    """Append an entry that changes what a dataset grants, and remember the state with it."""
    text = canonical({**body, "after": state.head.count, "at": now()})
    entry = log.append(Draft(identity, state.name, kind, text))
    return states.add(log, state, [entry])
