"""Verification: is the log what was written, and does it cost what was recorded?

First the chain of hashes, in one pass over all entries, each of which must be allowed to follow
those before. Then a replay of every dataset: what its debits cost together must be within the bound
recorded with them. Totals only rise, so a dataset is priced after some dozen debits and not after
each. Snapshots that differ from what the entries add up to are replaced.

Theorem: docs/theory/ledger.md
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from fractions import Fraction
from typing import Any

from quiltwork.budget.ledger.checkpoints import Checkpoint, check_against
from quiltwork.budget.ledger.claims import VERSION, RecordedBound
from quiltwork.budget.ledger.entries import (
    Entry,
    Head,
    damaged,
    follow,
    origin,
    reading,
    scoped_key,
)
from quiltwork.budget.ledger.ledger_records import NOTES, read_note
from quiltwork.budget.ledger.log import Log
from quiltwork.budget.ledger.snapshots import Snapshot, StateCache, write_snapshot
from quiltwork.budget.ledger.state import DatasetState, fold, initial_state
from quiltwork.budget.ledger.store import Store
from quiltwork.errors import StorageError
from quiltwork.exact import float_up

_ROUNDING_OF_SWEEPS = Fraction(1, 2**26)
_PRICING_INTERVAL = Fraction(11, 10)
"""A replayed dataset is priced again when its entries have grown by this factor."""


def verified(store: Store, against: Checkpoint | None) -> Checkpoint:
    """Verify the log and all datasets; return where the log ends.

    Raises:
        StorageError: at the first thing that is not as it was written.
    """

    def work(log: Log) -> tuple[Checkpoint, list[str]]:
        end = check_log(log, against)
        return end, [name for name in log.datasets() if not _replay(log, name)]

    end, stale = store.read(work)
    if stale and not store.database.read_only:
        store.write_batched(lambda log: _rewrite_snapshots(log, stale))
    return end


def check_log(log: Log, checkpoint: Checkpoint | None) -> Checkpoint:
    """Verify pages, chain, columns, transitions and the checkpoint; return where the log ends.

    Raises:
        StorageError: at the first thing that is wrong.
    """
    log.check_pages()
    if checkpoint is not None:
        hash_there = log.hash_at(checkpoint.count)
        check_against(checkpoint, log.ledger_id, log.head.count, hash_there)
    head = _check_entries(log, Head(0, origin(log.ledger_id)), {})
    return Checkpoint(log.ledger_id, head.count, head.hash)


def _check_entries(log: Log, head: Head, datasets: dict[str, _Progress]) -> Head:
    """Verify the entries after `head`, when `datasets` had come so far; return the last one."""
    entries = follow(head, log.all_entries(head.count))
    columns = {seq: (key, debit) for seq, key, debit in log.marks(head.count)}
    for entry, body in check_transitions(entries, datasets):
        key, analyst = body.get("key"), body.get("analyst") if entry.kind == "debit" else None
        scoped = None if key is None else scoped_key(key, analyst)
        # The unique indexes rest on these columns, which the hash does not cover.
        if columns.pop(entry.seq, (None, None)) != (scoped, body.get("debit")):
            raise damaged(entry, "its key or its debit is not what it was")
        head = Head(entry.seq, entry.hash)
    if columns:
        raise StorageError("The ledger is damaged: there are keys of entries that do not exist.")
    return head


def _replay(log: Log, name: str) -> bool:
    """Fold a dataset from its beginning and compare its costs with the recorded bounds.

    Returns whether its snapshot, if there is one, is what the entries add up to.

    Raises:
        StorageError: if it costs more than a bound, its budget, or the cap of an analyst.
    """
    row = log.snapshot(name)
    snapshot = None if row is None else Snapshot(*row)
    stored = None if snapshot is None else snapshot.state(log, name)
    snapshot_end = None if stored is None else stored.head.count
    is_right = snapshot is None
    steps = log.steps(name)
    state, due, pending = initial_state(next(steps)), Fraction(0), list[Entry]()
    state.claim.check(name, state.account.secrets)
    for entry in steps:
        pending.append(entry)
        if entry.seq == snapshot_end or state.steps + len(pending) >= due:
            state = _fold_and_check(state, pending)
            is_right |= entry.seq == snapshot_end and Snapshot.of(state) == snapshot
            due, pending = state.steps * _PRICING_INTERVAL, []
    state = _fold_and_check(state, pending)
    state.check_budget()
    for analyst in state.analysts:
        _check_cap(state, analyst)
    return is_right


def _fold_and_check(state: DatasetState, entries: Sequence[Entry]) -> DatasetState:
    """Return the state after some entries, compared with the bound that the last debit records.

    Raises:
        StorageError: if it costs more.
    """
    after = fold(state, entries)
    for entry in [entry for entry in entries if entry.kind in ("debit", "extend")][-1:]:
        _check_bound(after, entry)
    return after


def _check_bound(state: DatasetState, entry: Entry) -> None:
    """Compare the cost of a dataset after a debit with the bound that the debit records.

    A debit granted by another version of the bounds may cost more now: there the budget decides.

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


def _check_cap(state: DatasetState, name: str) -> None:
    """Check that the debits of an analyst fit the cap of that time, or the present one.

    Raises:
        StorageError: if they do not, by more than rounding can explain.
    """
    analyst = state.analysts[name]
    if analyst.granted_under is None or analyst.cap is None:
        return
    cap = max(analyst.granted_under, analyst.cap)
    limit = cap * (1 + _ROUNDING_OF_SWEEPS)
    own = analyst.account
    if analyst.charged > limit or (state.account.spent > limit and not own.fits(limit)):
        text = state.claim.format_amount
        raise StorageError(
            f"{name!r} was granted {text(max(analyst.charged, own.spent))} of "
            f"{state.name!r}, above the cap of {text(cap, up=False)}, as this version "
            "of quiltwork prices it. Nothing more is granted to this analyst."
        )


def _rewrite_snapshots(log: Log, names: Iterable[str]) -> None:
    """Fold datasets from their beginning and write their snapshots."""
    for name in names:
        steps = log.steps(name)
        write_snapshot(log, fold(initial_state(next(steps)), steps))


def verified_since(log: Log, states: StateCache, since: Checkpoint) -> Checkpoint:
    """Verify the entries since a checkpoint; return where the log ends.

    Raises:
        StorageError: at the first thing that is not as it was written.
    """
    check_against(since, log.ledger_id, log.head.count, log.hash_at(since.count))
    before = Head(since.count, since.hash)
    new = list(follow(before, log.all_entries(since.count)))
    head = _check_entries(log, before, _progress_until(log, new, since.count))
    for name in {entry.dataset: None for entry in new if entry.kind not in (*NOTES, "answer")}:
        state = states.latest(log, name)
        granted = [e for e in new if e.dataset == name and e.kind in ("debit", "extend")]
        for entry in granted[-1:]:
            _check_bound(state, entry)
        state.check_budget()
        for analyst in state.analysts.keys() & {e.content.get("analyst") for e in granted}:
            _check_cap(state, analyst)
    return Checkpoint(log.ledger_id, head.count, head.hash)


def _progress_until(log: Log, new: Iterable[Entry], until: int) -> dict[str, _Progress]:
    """Return how far datasets had come at entry `until`, as far as the `new` entries need it."""
    names = {entry.dataset for entry in new if entry.kind not in NOTES}
    kinds = {name: log.last_kind(name, until) for name in names}
    datasets = {name: _Progress(retired=kind == "retire") for name, kind in kinds.items() if kind}
    for entry in new:
        if entry.kind == "debit" and entry.dataset in datasets:
            datasets[entry.dataset].keys |= _key_used_before(log, entry, until)
        number = entry.content.get("debit")
        if entry.kind != "answer" or not isinstance(number, int) or number > until:
            continue
        debit, answer = log.at(number), log.answer_to(number)
        if debit is None or answer is None or entry.dataset not in datasets:
            continue
        if (debit.dataset, debit.kind, answer.seq) == (entry.dataset, "debit", entry.seq):
            datasets[entry.dataset].debits.add(number)
    return datasets


def _key_used_before(log: Log, entry: Entry, until: int) -> set[str]:
    """Return the key of a debit, if its analyst had used it by entry number `until`."""
    key, analyst = entry.content.get("key"), entry.content.get("analyst")
    if not isinstance(key, str) or not isinstance(analyst, str | None):
        return set()  # check_transitions reports what is wrong with the entry
    earlier = log.all_with_key(entry.dataset, key, analyst)
    return {scoped_key(key, analyst)} if any(entry.seq <= until for entry in earlier) else set()


@dataclass
class _Progress:
    """How far a dataset has come: its debits, the keys used, and the debits answered."""

    retired: bool = False
    debits: set[int] = field(default_factory=set)
    keys: set[str] = field(default_factory=set)
    answered: set[int] = field(default_factory=set)


def check_transitions(
    entries: Iterable[Entry], datasets: dict[str, _Progress] | None = None
) -> Iterator[tuple[Entry, dict[str, Any]]]:
    """Yield entries with their bodies while each may follow those before; update `datasets`.

    A dataset is created once and before all else, a debit uses a key once, an answer belongs to a
    debit that has none, and nothing is granted after retirement.
    """
    datasets = {} if datasets is None else datasets
    for entry in entries:
        body = entry.content
        progress = datasets.get(entry.dataset)
        if entry.kind in NOTES:
            read_note(entry)
        elif entry.kind == "create":
            if progress is not None:
                raise damaged(entry, "it creates a dataset a second time")
            datasets[entry.dataset] = _Progress()
        elif progress is None:
            raise damaged(entry, "its dataset was never created")
        else:
            with reading(entry):
                _advance(progress, entry, body)
        yield entry, body


def _advance(progress: _Progress, entry: Entry, body: dict[str, Any]) -> None:
    """Record an entry of a created dataset, if it may follow those before."""
    match entry.kind:
        case "debit":
            if progress.retired:
                raise damaged(entry, "it debits a retired dataset")
            if not isinstance(body["key"], str | None):
                raise damaged(entry, "its key is no text")
            if body["key"] is not None:
                key = scoped_key(body["key"], body["analyst"])
                if key in progress.keys:
                    raise damaged(entry, "its key was used before")
                progress.keys.add(key)
            progress.debits.add(entry.seq)
        case "answer":
            if body["debit"] not in progress.debits or body["debit"] in progress.answered:
                raise damaged(entry, "it answers no debit, or one that was answered before")
            progress.answered.add(body["debit"])
        case "retire" | "reopen":
            progress.retired = entry.kind == "retire"
        case "extend" | "allot" | "register":
            pass
        case _:
            raise damaged(entry, f"nothing of kind {entry.kind!r} is ever written")
