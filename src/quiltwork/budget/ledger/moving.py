"""A ledger that begins from a backup, or goes on in another database."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from quiltwork.budget.ledger.backups import Backup, before_move, refuse_moved, retire
from quiltwork.budget.ledger.store import Store
from quiltwork.budget.ledger.tables import Tables
from quiltwork.budget.ledger.totals import Totals
from quiltwork.errors import InvalidInputError


@dataclass(frozen=True)
class Place:
    """Where a ledger is, or will be."""

    store: Store
    totals: Totals
    url: str


def begin_from(there: Place, backup: Backup, lost: Mapping[str, Iterable[Any]]) -> None:
    """Write a backup where there is no ledger yet, in one transaction; debit what was lost."""

    def work(tables: Tables) -> None:
        backup.insert(tables, there.totals, lost)

    there.totals.begin(work, backup.ledger_id)


def move(here: Place, there: Place) -> None:
    """Retire every dataset here, write them all there, and note that here.

    Where that was begun before it is finished: what is there already is not written again.

    Raises:
        InvalidInputError: if both are one place, there is a ledger there, or this one was moved.
        StorageError: if one of them cannot be written.
    """
    if there.url == here.url:
        raise InvalidInputError(f"The ledger is at {here.url!r} already; name another place.")
    moving, moved = (f"{doing} to {there.url}" for doing in ("moving", "moved"))

    def check(tables: Tables) -> None:
        for name in tables.datasets():
            refuse_moved(here.totals.found(tables, name).retired)

    def close(tables: Tables) -> tuple[str, ...]:
        states = [here.totals.found(tables, name) for name in tables.datasets()]
        for state in states:
            refuse_moved(state.retired)
            if state.retired is None:
                retire(tables, here.totals, state, moving)
        return tuple(state.name for state in states)

    def closed(tables: Tables) -> None:
        for state in [here.totals.found(tables, name) for name in names]:
            if state.retired == moving:
                retire(tables, here.totals, state, moved)

    here.store.read(check)
    backup = here.store.read(lambda tables: before_move(tables, moving))
    begun = here.store.read(lambda tables: tables.head.count) > len(backup.entries)

    def look(tables: Tables) -> bool:
        if begun and backup.arrived(tables):
            return True
        backup.check_empty(tables)
        return False

    arrived = there.store.begin(look, backup.ledger_id)  # before anything is closed
    names = here.totals.write(close)
    if not arrived:
        backup = here.store.read(lambda tables: before_move(tables, moving))
        begin_from(there, backup, dict.fromkeys(names, ()))
    here.totals.write(closed)
