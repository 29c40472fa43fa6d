"""A ledger that begins from a backup, or goes on in another database."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from itertools import takewhile
from typing import Any

from quiltwork.budget.ledger.amounts import identifier
from quiltwork.budget.ledger.backups import MOVING, Backup, retire
from quiltwork.budget.ledger.entries import Entry, Head, follow, origin
from quiltwork.budget.ledger.log_tables import Tables
from quiltwork.budget.ledger.records import NOTES
from quiltwork.budget.ledger.totals import Totals
from quiltwork.errors import InvalidInputError

_MOVED = "moved to "


def begin_from(there: Totals, backup: Backup, lost: Mapping[str, Iterable[Any]]) -> None:
    """Write a backup where there is no ledger yet, in one transaction; debit what was lost."""

    def work(tables: Tables) -> None:
        backup.insert(tables, there, lost)

    there.begin(work, backup.ledger_id)


def move(here: Totals, there: Totals) -> None:
    """Retire every dataset here, write them all there, and note that here.

    Where that was begun before it is finished: what is there already is not written again.

    Raises:
        InvalidInputError: if both are one place, there is a ledger there, or this one was moved.
        StorageError: if one of them cannot be written.
    """
    here.store.check_writable()
    url = there.store.database.url
    if url == here.store.database.url:
        raise InvalidInputError(f"The ledger is at {url!r} already; name another place.")
    moving, moved = f"{MOVING}{url}", f"{_MOVED}{url}"

    def check(tables: Tables) -> None:
        for name in tables.datasets():
            _refuse_moved(here.found(tables, name).retired, moving)

    def close(tables: Tables) -> tuple[str, ...]:
        states = [here.found(tables, name) for name in tables.datasets()]
        for state in states:
            _refuse_moved(state.retired, moving)
            if state.retired is None:
                retire(tables, here, state, moving)
        return tuple(state.name for state in states)

    def closed(tables: Tables) -> None:
        for state in [here.found(tables, name) for name in names]:
            if state.retired == moving:
                retire(tables, here, state, moved)

    here.store.read(check)
    backup = here.store.read(lambda tables: _before_move(tables, moving))
    begun = here.store.read(lambda tables: tables.head.count) > len(backup.entries)

    def look(tables: Tables) -> bool:
        if begun and backup.arrived(tables):
            return True
        backup.check_empty(tables)
        return False

    arrived = there.store.begin(look, backup.ledger_id)  # before anything is closed
    names = here.write(close)
    if not arrived:
        backup = here.store.read(lambda tables: _before_move(tables, moving))
        begin_from(there, backup, dict.fromkeys(names, ()))
    here.write(closed)


def _refuse_moved(retired: str | None, moving: str) -> None:
    """Refuse to move a ledger twice; `retired` is why one of its datasets is closed.

    Raises:
        InvalidInputError: if it goes on elsewhere, or another move has begun.
    """
    if retired is not None and retired.startswith(MOVING) and retired != moving:
        raise InvalidInputError(
            f"The ledger is {retired}, and may be there already; move it to that place, which "
            "finishes what was begun. A second copy would be a second budget."
        )
    if retired is not None and retired.startswith(_MOVED):
        raise InvalidInputError(
            f"The ledger was {retired}; go on there. A second copy would be a second budget."
        )


def own_reason(reason: Any) -> str:
    """Read why a user retires a dataset; not for what a move says.

    Raises:
        InvalidInputError: if it is no text, or says that.
    """
    text = identifier(reason, "reason")
    if text.startswith((_MOVED, MOVING)):
        raise InvalidInputError(
            f"A reason that begins with {text.split(' to ')[0]!r} is kept for `move`; move the "
            "ledger, or give another reason."
        )
    return text


def refuse_moving(tables: Tables) -> None:
    """Refuse a new dataset where a move has begun: it would be left behind.

    Raises:
        InvalidInputError: if the ledger is moving, or has moved.
    """
    latest = {entry.dataset: str(entry.content["reason"]) for entry in tables.of_kind("retire")}
    for reason in latest.values():
        if reason.startswith((_MOVED, MOVING)):
            raise InvalidInputError(
                f"The ledger is {reason}; finish that with `move`, and begin the dataset there."
            )


def _before_move(tables: Tables, moving: str) -> Backup:
    """Read the log as it was before its datasets were retired for this reason.

    Raises:
        InvalidInputError: if anything but answers was written since: it would be left behind.
    """
    entries = list(follow(Head(0, origin(tables.ledger_id)), tables.all_entries()))

    def closes(entry: Entry) -> bool:
        return entry.kind == "retire" and entry.content.get("reason") == moving

    kept = tuple(takewhile(lambda entry: not closes(entry), entries))
    for entry in entries[len(kept) :]:
        if entry.kind not in ("answer", *NOTES) and not closes(entry):
            raise InvalidInputError(
                f"Entry {entry.seq} was written after the ledger began {moving}, and would be left "
                "behind. Take a backup of it and restore that, saying what may be lost."
            )
    return Backup(tables.ledger_id, kept)
