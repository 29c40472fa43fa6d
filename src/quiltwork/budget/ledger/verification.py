"""Is the log what was written, and does it make sense? One pass over all entries."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from typing import Any

from quiltwork.budget.ledger.checkpoints import Checkpoint, check_against
from quiltwork.budget.ledger.entries import (
    Entry,
    Head,
    damaged,
    follow,
    origin,
    reading,
    scoped_key,
)
from quiltwork.budget.ledger.log_tables import Tables
from quiltwork.budget.ledger.records import NOTES, read_note
from quiltwork.budget.ledger.total_checks import are_bound, are_right
from quiltwork.budget.ledger.totals import Totals
from quiltwork.errors import StorageError


def check_log(tables: Tables, checkpoint: Checkpoint | None) -> Checkpoint:
    """Check pages, chain, columns, states and the checkpoint; return where the log ends.

    Raises:
        StorageError: at the first thing that is wrong.
    """
    tables.check_pages()
    if checkpoint is not None:
        found = tables.hash_at(checkpoint.count)
        check_against(checkpoint, tables.ledger_id, tables.head.count, found)
    head = _checked(tables, Head(0, origin(tables.ledger_id)), {})
    return Checkpoint(tables.ledger_id, head.count, head.hash)


def _checked(tables: Tables, head: Head, datasets: dict[str, _Progress]) -> Head:
    """Check chain, columns and states of the entries after `head`; return the last of them.

    `datasets` are as they were then.
    """
    entries = follow(head, tables.all_entries(head.count))
    marks = {seq: (key, debit) for seq, key, debit in tables.marks(head.count)}
    for entry, body in check_states(entries, datasets):
        key, who = body.get("key"), body.get("analyst") if entry.kind == "debit" else None
        mark = None if key is None else scoped_key(key, who)
        if marks.pop(entry.seq, (None, None)) != (mark, body.get("debit")):
            raise damaged(entry, "its key or its debit is not what it was")
        head = Head(entry.seq, entry.hash)
    if marks:
        raise StorageError("The ledger is damaged: there are keys of entries that do not exist.")
    return head


def verified_since(tables: Tables, totals: Totals, since: Checkpoint) -> Checkpoint:
    """Check what was written since a checkpoint; return where the log ends.

    Raises:
        StorageError: at the first thing that is not as it was written.
    """
    found = tables.hash_at(since.count)
    check_against(since, tables.ledger_id, tables.head.count, found)
    before = Head(since.count, since.hash)
    new = list(follow(before, tables.all_entries(since.count)))
    head = _checked(tables, before, _progress(tables, new, since.count))
    touched = {entry.dataset for entry in new}
    for name in tables.datasets():
        if name in touched:
            if not are_bound(tables, name):
                raise StorageError(
                    f"The totals kept for {name!r} are not those of its last entry: somebody "
                    "changed them. verify() adds up all entries; find out who writes to the "
                    "ledger's tables."
                )
            totals.found(tables, name).check_budget()
    return Checkpoint(tables.ledger_id, head.count, head.hash)


def _progress(tables: Tables, new: Iterable[Entry], until: int) -> dict[str, _Progress]:
    """How far datasets had come at entry number `until`, as far as the `new` ones rest on it."""
    retired = set(tables.named("retire", until))
    found = {name: _Progress(retired=name in retired) for name in tables.named("create", until)}
    for entry in new:
        if entry.kind == "debit" and entry.dataset in found:
            found[entry.dataset].keys |= _used_before(tables, entry, until)
        debit = entry.content.get("debit")
        if entry.kind != "answer" or not isinstance(debit, int) or debit > until:
            continue
        paid, answer = tables.at(debit), tables.answer_to(debit)
        if paid is None or answer is None or entry.dataset not in found:
            continue
        if (paid.dataset, paid.kind, answer.seq) == (entry.dataset, "debit", entry.seq):
            found[entry.dataset].debits.add(debit)
    return found


def _used_before(tables: Tables, entry: Entry, until: int) -> set[str]:
    """The key of a debit, if its analyst had used it by entry number `until`."""
    key, who = entry.content.get("key"), entry.content.get("analyst")
    if not isinstance(key, str) or not isinstance(who, str | None):
        return set()  # whoever reads the entry says what is wrong with it
    earlier = tables.all_with_key(entry.dataset, key, who)
    return {scoped_key(key, who)} if any(one.seq <= until for one in earlier) else set()


@dataclass
class _Progress:
    """How far a dataset has come."""

    retired: bool = False
    debits: set[int] = field(default_factory=set)
    keys: set[str] = field(default_factory=set)
    answered: set[int] = field(default_factory=set)


def check_states(
    entries: Iterable[Entry], datasets: dict[str, _Progress] | None = None
) -> Iterator[tuple[Entry, dict[str, Any]]]:
    """Yield entries with their bodies while each is a step forward; `datasets` follow them.

    A dataset is created once and before all else, a debit uses a key once, an answer belongs to a
    debit that has none, and nothing is granted after retirement.
    """
    datasets = {} if datasets is None else datasets
    for entry in entries:
        body = entry.content
        known = datasets.get(entry.dataset)
        if entry.kind in NOTES:
            read_note(entry)
        elif entry.kind == "create":
            if known is not None:
                raise damaged(entry, "it creates a dataset a second time")
            datasets[entry.dataset] = _Progress()
        elif known is None:
            raise damaged(entry, "its dataset was never created")
        else:
            with reading(entry):
                _step(known, entry, body)
        yield entry, body


def _step(known: _Progress, entry: Entry, body: dict[str, Any]) -> None:
    """Note one entry after the first of a dataset, if it may follow those before."""
    match entry.kind:
        case "debit":
            if known.retired:
                raise damaged(entry, "it debits a retired dataset")
            if not isinstance(body["key"], str | None):
                raise damaged(entry, "its key is no text")
            if body["key"] is not None:
                key = scoped_key(body["key"], body["analyst"])
                if key in known.keys:
                    raise damaged(entry, "its key was used before")
                known.keys.add(key)
            known.debits.add(entry.seq)
        case "answer":
            if body["debit"] not in known.debits or body["debit"] in known.answered:
                raise damaged(entry, "it answers no debit, or one that was answered before")
            known.answered.add(body["debit"])
        case "retire":
            known.retired = True
        case "extend" | "allot" | "register":
            pass
        case _:
            raise damaged(entry, f"nothing of kind {entry.kind!r} is ever written")


def verified(totals: Totals, against: Checkpoint | None) -> Checkpoint:
    """Check the log and all totals; return where the log ends.

    Raises:
        StorageError: at the first thing that is not as it was written. Totals that are wrong are
            set right before.
    """

    def work(tables: Tables) -> tuple[Checkpoint, list[str]]:
        found = check_log(tables, against)
        return found, [name for name in tables.datasets() if not are_right(tables, name)]

    found, wrong = totals.store.read(work)
    may_write = not totals.store.database.read_only
    for name in wrong if may_write else ():
        totals.set_right(name)
    if wrong:
        then = "have been" if may_write else "will, by whoever debits next, be"
        raise StorageError(
            f"The totals kept for {', '.join(map(repr, wrong))} were not what the entries add up "
            "to: somebody changed them. The entries are intact, no budget is exceeded, and the "
            f"totals {then} set right; find out who writes to the ledger's tables."
        )
    return found
