"""Is the log what was written, and does it cost what was recorded?

First the chain of hashes, in one pass over all entries, of which each must be a step forward. Then
every dataset from its beginning: what its debits cost together must be within the bound that was
recorded with them. Totals only rise, so a dataset is priced after some dozen debits and not after
each. Snapshots that are not what the entries add up to are written anew.

Theorem: docs/theory/ledger.md
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from fractions import Fraction
from typing import Any

from quiltwork.budget.ledger.bounds import VERSION, RecordedBound
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
from quiltwork.budget.ledger.log import Log
from quiltwork.budget.ledger.records import NOTES, read_note
from quiltwork.budget.ledger.snapshots import Snapshot, States, write_snapshot
from quiltwork.budget.ledger.state import DatasetState, begun, folded
from quiltwork.budget.ledger.store import Store
from quiltwork.errors import StorageError
from quiltwork.exact import float_up

_SAME_TOTAL = Fraction(1, 2**26)
_PRICED_AGAIN = Fraction(11, 10)
"""A dataset is priced again when it has so many times the entries it had then."""


def verified(store: Store, against: Checkpoint | None) -> Checkpoint:
    """Check the log and all datasets; return where the log ends.

    Raises:
        StorageError: at the first thing that is not as it was written.
    """

    def work(log: Log) -> tuple[Checkpoint, list[str]]:
        found = check_log(log, against)
        return found, [name for name in log.datasets() if not _replayed(log, name)]

    found, wrong = store.read(work)
    if wrong and not store.database.read_only:
        store.write_together(lambda log: _write_anew(log, wrong))
    return found


def check_log(log: Log, checkpoint: Checkpoint | None) -> Checkpoint:
    """Check pages, chain, columns, states and the checkpoint; return where the log ends.

    Raises:
        StorageError: at the first thing that is wrong.
    """
    log.check_pages()
    if checkpoint is not None:
        found = log.hash_at(checkpoint.count)
        check_against(checkpoint, log.ledger_id, log.head.count, found)
    head = _checked(log, Head(0, origin(log.ledger_id)), {})
    return Checkpoint(log.ledger_id, head.count, head.hash)


def _checked(log: Log, head: Head, datasets: dict[str, _Progress]) -> Head:
    """Check chain, columns and states of the entries after `head`; return the last of them.

    `datasets` are as they were then.
    """
    entries = follow(head, log.all_entries(head.count))
    marks = {seq: (key, debit) for seq, key, debit in log.marks(head.count)}
    for entry, body in check_states(entries, datasets):
        key, who = body.get("key"), body.get("analyst") if entry.kind == "debit" else None
        mark = None if key is None else scoped_key(key, who)
        if marks.pop(entry.seq, (None, None)) != (mark, body.get("debit")):
            raise damaged(entry, "its key or its debit is not what it was")
        head = Head(entry.seq, entry.hash)
    if marks:
        raise StorageError("The ledger is damaged: there are keys of entries that do not exist.")
    return head


def _replayed(log: Log, name: str) -> bool:
    """Add up a dataset from its beginning and compare it with the bounds that were recorded.

    Returns whether its snapshot, if there is one, is what the entries add up to.

    Raises:
        StorageError: if it costs more than a bound, its budget, or the cap of an analyst.
    """
    row = log.snapshot(name)
    stored = None if row is None else Snapshot(*row)
    written = None if stored is None else stored.state(log, name)
    at, is_right = (None if written is None else written.head.count), stored is None
    steps = log.steps(name)
    state, due, some = begun(next(steps)), Fraction(0), list[Entry]()
    state.claim.check(name, state.account.secrets)
    for entry in steps:
        some.append(entry)
        if entry.seq == at or state.steps + len(some) >= due:
            state = _after(state, some)
            is_right |= entry.seq == at and Snapshot.of(state) == stored
            due, some = state.steps * _PRICED_AGAIN, []
    state = _after(state, some)
    state.check_budget()
    for who in state.analysts:
        _check_cap(state, who)
    return is_right


def _after(state: DatasetState, entries: Sequence[Entry]) -> DatasetState:
    """The state after some entries, compared with the bound that the last debit of them records.

    Raises:
        StorageError: if it costs more.
    """
    after = folded(state, entries)
    for entry in [one for one in entries if one.kind in ("debit", "extend")][-1:]:
        _check_bound(after, entry)
    return after


def _check_bound(state: DatasetState, entry: Entry) -> None:
    """Compare what a dataset costs after a debit with the bound that the debit records.

    What was granted by another version may be dearer now: then the budget alone decides.

    Raises:
        StorageError: if it costs more.
    """
    with reading(entry):
        bound = RecordedBound.from_body(entry.content["bound"])
    if bound.version == VERSION and not bound.allows(state.account):
        raise damaged(
            entry,
            f"it records that everything up to it costs {bound.total:.9g} at most, and by the same "
            f"version of the bounds the entries cost {float_up(state.account.spent):.9g} together",
        )


def _check_cap(state: DatasetState, analyst: str) -> None:
    """Check that what was granted to an analyst fits the cap she had then, or has now.

    Raises:
        StorageError: if it does not, by more than rounding can explain.
    """
    known = state.analysts[analyst]
    if known.held_to is None or known.cap is None:
        return
    cap = max(known.held_to, known.cap)
    limit = cap * (1 + _SAME_TOTAL)
    own = known.account
    if known.charged > limit or (state.account.spent > limit and not own.fits(limit)):
        raise StorageError(
            f"{analyst!r} was granted {state.claim.shown(max(known.charged, own.spent))} of "
            f"{state.name!r}, above the cap of {state.claim.shown(cap, up=False)}, as this version "
            "of quiltwork prices it. Nothing more is granted to this analyst."
        )


def _write_anew(log: Log, names: Iterable[str]) -> None:
    """Add up datasets from their beginning and write their snapshots."""
    for name in names:
        steps = log.steps(name)
        write_snapshot(log, folded(begun(next(steps)), steps))


def verified_since(log: Log, states: States, since: Checkpoint) -> Checkpoint:
    """Check what was written since a checkpoint; return where the log ends.

    Raises:
        StorageError: at the first thing that is not as it was written.
    """
    found = log.hash_at(since.count)
    check_against(since, log.ledger_id, log.head.count, found)
    before = Head(since.count, since.hash)
    new = list(follow(before, log.all_entries(since.count)))
    head = _checked(log, before, _progress(log, new, since.count))
    for name in {entry.dataset: None for entry in new if entry.kind not in (*NOTES, "answer")}:
        state = states.found(log, name)
        granted = [e for e in new if e.dataset == name and e.kind in ("debit", "extend")]
        for entry in granted[-1:]:
            _check_bound(state, entry)
        state.check_budget()
        for who in state.analysts.keys() & {e.content.get("analyst") for e in granted}:
            _check_cap(state, who)
    return Checkpoint(log.ledger_id, head.count, head.hash)


def _progress(log: Log, new: Iterable[Entry], until: int) -> dict[str, _Progress]:
    """How far datasets had come at entry number `until`, as far as the `new` ones rest on it."""
    names = {entry.dataset for entry in new if entry.kind not in NOTES}
    kinds = {name: log.last_kind(name, until) for name in names}
    found = {name: _Progress(retired=one == "retire") for name, one in kinds.items() if one}
    for entry in new:
        if entry.kind == "debit" and entry.dataset in found:
            found[entry.dataset].keys |= _used_before(log, entry, until)
        debit = entry.content.get("debit")
        if entry.kind != "answer" or not isinstance(debit, int) or debit > until:
            continue
        paid, answer = log.at(debit), log.answer_to(debit)
        if paid is None or answer is None or entry.dataset not in found:
            continue
        if (paid.dataset, paid.kind, answer.seq) == (entry.dataset, "debit", entry.seq):
            found[entry.dataset].debits.add(debit)
    return found


def _used_before(log: Log, entry: Entry, until: int) -> set[str]:
    """The key of a debit, if its analyst had used it by entry number `until`."""
    key, who = entry.content.get("key"), entry.content.get("analyst")
    if not isinstance(key, str) or not isinstance(who, str | None):
        return set()  # whoever reads the entry says what is wrong with it
    earlier = log.all_with_key(entry.dataset, key, who)
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
        case "retire" | "reopen":
            known.retired = entry.kind == "retire"
        case "extend" | "allot" | "register":
            pass
        case _:
            raise damaged(entry, f"nothing of kind {entry.kind!r} is ever written")
