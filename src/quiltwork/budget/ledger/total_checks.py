"""Totals from scratch, and whether the rows that are kept say the same."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace
from fractions import Fraction

from quiltwork.budget.accounting.account import Account
from quiltwork.budget.ledger.account_rows import Kept, digest
from quiltwork.budget.ledger.catching_up import loaded, settled_account
from quiltwork.budget.ledger.datasets import Analyst, DatasetState, replayed
from quiltwork.budget.ledger.entries import Entry
from quiltwork.budget.ledger.log_tables import Tables
from quiltwork.budget.ledger.records import Share
from quiltwork.budget.ledger.total_rows import check_log_reaches, seal, summed, texts
from quiltwork.errors import StorageError
from quiltwork.exact import float_down, float_up

_SAME_TOTAL = Fraction(1, 2**26)


def added_up(name: str, entries: Iterable[Entry]) -> tuple[DatasetState, dict[str, Account]]:
    """Add up a dataset's entries: its state, and the account of each analyst alone."""
    state, alone = replayed(name, entries)
    return replace(state, digest=digest(texts(state.analysts))), alone


def are_right(tables: Tables, name: str) -> bool:
    """Add up a dataset's entries, check its budget and caps, and say whether its rows are right.

    Totals that were never written, or not since an older version, are not wrong.

    Raises:
        StorageError: if an entry is damaged, or the debits exceed the budget or a cap.
    """
    expected, alone = added_up(name, tables.steps(name))
    expected.check_budget()
    for analyst, own in alone.items():
        _check_cap(expected, analyst, own)
    stored = tables.total(name)
    if stored is None:
        return True
    if stored[1] == seal(name, stored[0]):
        check_log_reaches(tables, name, stored[0])
    return _is_right(tables, stored, expected)


def _check_cap(state: DatasetState, analyst: str, own: Account) -> None:
    """Check that what was granted to an analyst fits the cap she had then, or has now."""
    known, now = state.analysts[analyst], state.shares.get(analyst, Share()).cap
    if known.held_to is None or now is None:
        return
    cap = max(known.held_to, now)
    limit = cap * (1 + _SAME_TOTAL)
    if known.charged > limit or (state.account.total > limit and not own.fits(limit)):
        raise StorageError(
            f"{analyst!r} was granted {float_up(max(known.charged, own.total)):.9g} of "
            f"{state.name!r}, above the cap of {float_down(cap):.9g}: totals were changed or "
            "entries put in. Allot that much, or retire the dataset."
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


def are_bound(tables: Tables, name: str) -> bool:
    """Whether a dataset's rows are bound to its last entry, or were never written.

    Cost: its rows. That they are what all entries add up to is for `are_right`.
    """
    stored, last = tables.total(name), tables.last_step(name)
    if stored is None or last is None:
        return True
    state = loaded(tables, name, last, stored, None, tuple)
    if state is None:
        return False
    found = state.analysts.items()
    return all(digest(tables.levels(name, who)) == one.kept.digest for who, one in found)
