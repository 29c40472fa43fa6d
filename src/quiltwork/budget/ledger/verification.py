"""Is the log what was written, and does it make sense? One pass over all entries."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field, replace
from fractions import Fraction
from typing import Any

from quiltwork.budget.accounting.account import Account
from quiltwork.budget.ledger.account_rows import Kept, digest
from quiltwork.budget.ledger.catching_up import added_up, loaded, settled_account
from quiltwork.budget.ledger.checkpoints import Checkpoint, check_against
from quiltwork.budget.ledger.datasets import Analyst, DatasetState
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
from quiltwork.budget.ledger.records import NOTES, Share, read_note, read_share
from quiltwork.budget.ledger.total_rows import check_log_reaches, seal, summed
from quiltwork.budget.ledger.totals import Totals
from quiltwork.errors import StorageError
from quiltwork.exact import float_down, float_up

_SAME_TOTAL = Fraction(1, 2**26)


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
    for name in {entry.dataset: None for entry in new}:
        if tables.last_step(name) is None:
            continue  # a note may be of no dataset
        if not _are_bound(tables, name):
            raise StorageError(
                f"The totals kept for {name!r} are not those of its last entry. verify() adds up "
                "all entries and sets them right."
            )
        state = totals.found(tables, name)
        state.check_budget()
        for who, cap in _held_to(tables, state, new).items():
            _check_cap(state, who, cap, totals.alone(tables, state, who))
    return Checkpoint(tables.ledger_id, head.count, head.hash)


def _held_to(
    tables: Tables, state: DatasetState, new: Iterable[Entry]
) -> dict[str, Fraction | None]:
    """The cap that the last of the `new` debits of each analyst with a share was granted under.

    Cost: none, if no share was set since; else the database looks at all entries.
    """
    own = [entry for entry in new if entry.dataset == state.name]
    last = {one.content["analyst"]: one.seq for one in own if one.kind == "debit"}
    if not any(one.kind == "allot" for one in own):
        return {who: share.cap for who, share in state.shares.items() if who in last}
    caps: dict[str, Fraction | None] = {}
    for entry in tables.of_kind("allot") if any(last) else ():
        who = entry.content["analyst"]
        if entry.dataset == state.name and entry.seq < last.get(who, 0):
            caps[who] = read_share(entry.content).cap
    return caps


def _progress(tables: Tables, new: Iterable[Entry], until: int) -> dict[str, _Progress]:
    """How far datasets had come at entry number `until`, as far as the `new` ones rest on it."""
    names = {entry.dataset for entry in new if entry.kind not in NOTES}
    kinds = {name: tables.last_kind(name, until) for name in names}
    found = {name: _Progress(retired=one == "retire") for name, one in kinds.items() if one}
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
        return found, [name for name in tables.datasets() if not _are_right(tables, name)]

    found, wrong = totals.store.read(work)
    may_write = not totals.store.database.read_only
    for name in wrong if may_write else ():
        totals.set_right(name)
    if wrong:
        then = "have been" if may_write else "will, by whoever debits next, be"
        raise StorageError(
            f"The totals kept for {', '.join(map(repr, wrong))} are not what the entries add up "
            "to; why is not known. The entries are intact, no budget is exceeded, and the totals "
            f"{then} set right."
        )
    return found


def _are_right(tables: Tables, name: str) -> bool:
    """Add up a dataset's entries, check its budget and caps, and say whether its rows are right.

    Totals that were never written, or not since an older version, are not wrong.

    Raises:
        StorageError: if an entry is damaged, or the debits exceed the budget or a cap.
    """
    expected, alone = added_up(name, tables.steps(name))
    expected.check_budget()
    for analyst, own in alone.items():
        _check_cap(expected, analyst, expected.analysts[analyst].held_to, own)
    stored = tables.total(name)
    if stored is None:
        return True
    if stored[1] == seal(name, stored[0]):
        check_log_reaches(tables, name, stored[0])
    return _is_right(tables, stored, expected)


def _check_cap(state: DatasetState, analyst: str, then: Fraction | None, own: Account) -> None:
    """Check that what was granted to an analyst fits the cap she had then, or has now.

    Raises:
        StorageError: if it does not, by more than rounding can explain.
    """
    known, now = state.analysts[analyst], state.shares.get(analyst, Share()).cap
    if then is None or now is None:
        return
    cap = max(then, now)
    limit = cap * (1 + _SAME_TOTAL)
    if known.charged > limit or (state.account.total > limit and not own.fits(limit)):
        raise StorageError(
            f"{analyst!r} was granted {float_up(max(known.charged, own.total)):.9g} of "
            f"{state.name!r}, above the cap of {float_down(cap):.9g}, as this version of quiltwork "
            "prices it. Nothing more is granted to this analyst."
        )


def _is_right(tables: Tables, stored: tuple[str, str], expected: DatasetState) -> bool:
    """Whether a dataset's own row and its levels say what was added up, and nothing below."""
    state = loaded(tables, expected.name, expected.last, stored, None, tuple)
    if state is None or summed(replace(state, digest=0)) != summed(replace(expected, digest=0)):
        return False
    total, safe = expected.account.worst.exact, state.safe
    return (
        Kept.of(state.account)[0] == expected.kept
        and state.ahead.peak >= expected.kept.peak
        and abs(state.ahead.total - expected.ahead.total) * 2**200 <= 1
        and (state.found is None or abs(state.found.worst.exact - total) <= total * _SAME_TOTAL)
        and (not safe or expected.is_safe_level(safe))
        and state.analysts.keys() == expected.analysts.keys()
        and all(_is_own_right(tables, state, *one) for one in expected.analysts.items())
    )


def _is_own_right(tables: Tables, state: DatasetState, name: str, expected: Analyst) -> bool:
    """Whether an analyst's row and her levels say what was added up."""
    known = state.analysts[name]
    try:
        settled = settled_account(tables, state, name)
    except (ArithmeticError, ValueError):
        return False
    kept = Kept.of(settled.plus(state.ahead.of(name)))[0]
    return replace(known, kept=kept) == expected


def _are_bound(tables: Tables, name: str) -> bool:
    """Whether a dataset's rows are bound to its last entry, or were never written.

    Cost: its rows. That they are what all entries add up to is for `_are_right`.
    """
    stored, last = tables.total(name), tables.last_step(name)
    if stored is None or last is None:
        return True
    state = loaded(tables, name, last, stored, None, tuple)
    if state is None:
        return False
    found = state.analysts.items()
    return all(digest(tables.levels(name, who)) == one.kept.digest for who, one in found)
