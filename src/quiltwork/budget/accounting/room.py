"""What still fits into an account within a budget."""

from __future__ import annotations

import math
from collections.abc import Sequence
from fractions import Fraction

from quiltwork.budget.accounting.account import Account
from quiltwork.budget.accounting.limits import largest_level, largest_number
from quiltwork.budget.accounting.rules import by_theorem_3_6
from quiltwork.budget.spending import Spending
from quiltwork.errors import UnsupportedError
from quiltwork.exact import float_up

_MOST_REPETITIONS = 10**12
_LARGEST_FACTOR = Fraction(10**300)


def largest_factor(account: Account, budget: Fraction, spendings: Sequence[Spending]) -> float:
    """The largest x such that these releases, all charges times x, still fit.

    A secret inside a window leaks at least half of that window's level, so the search can end
    where every level is four times the budget; if that still fits, the answer is infinity.
    """
    units = _priced(account, spendings)
    levels = [one.dp_epsilon for one in spendings if one.dp_epsilon]

    def total(factor: float) -> Fraction:
        return account.plus_scaled(units, factor).total

    high = float_up(min(4 * budget / min(levels, default=Fraction(1)), _LARGEST_FACTOR))
    found = largest_level(total, account.total, budget, high)
    return math.inf if found == high else found


def how_many_more(account: Account, budget: Fraction, spending: Spending) -> int | float:
    """How many more releases like this one fit; infinity if they cost nothing."""
    after = account.plus([spending])
    if spending.composes_by == "nothing":
        return int(after.fits(budget))
    if spending.composes_by == "general":
        price = by_theorem_3_6(spending)
        return max(0, (budget - account.total) // price) if price else math.inf
    units = _priced(account, [spending])

    def fits(number: int) -> bool:
        return account.plus_scaled(units, number).fits(budget)

    found = largest_number(fits, _MOST_REPETITIONS)
    return math.inf if found == _MOST_REPETITIONS else found


def _priced(account: Account, spendings: Sequence[Spending]) -> Account:
    """An account of these releases alone, after checking that they may follow."""
    if any(spending.composes_by != "levels" for spending in spendings):
        raise UnsupportedError(
            "Only releases with a level for substituting one time point can be scaled; this one "
            "is priced by its own epsilon."
        )
    account.plus(spendings)
    return Account(account.secrets).plus(spendings)
