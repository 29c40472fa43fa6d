"""What still fits into an account: the largest level, the most repetitions, the least noise."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from fractions import Fraction
from typing import TypeAlias

from quiltwork.budget.accounting.account import Account, by_theorem_3_6
from quiltwork.budget.accounting.worst_point import Secrets
from quiltwork.budget.spending import Spending
from quiltwork.errors import BudgetExceeded, UnsupportedError
from quiltwork.exact import (
    Number,
    float_down,
    float_up,
    format_down,
    format_up,
    positive_fraction,
    to_fraction,
)
from quiltwork.noise.geometric import MAX_SCALE_BITS
from quiltwork.queries import Query

Grants: TypeAlias = Callable[[Sequence[Spending]], bool]
"""Whether releases are granted together."""

_LARGEST_SCALE = 2.0**MAX_SCALE_BITS
_MOST_REPETITIONS = 10**12
_LARGEST_FACTOR = Fraction(10**300)
_LARGEST_OF_NUMBERS = 1e200
_CLOSE = 2.0**-34
_FIRST, _SOON, _BEYOND = 2.0**-6, 2.0**-20, 2.0**-36
_TINY = 2.0**-100
_JUST_ABOVE = 1 + 2.0**-44
_PATIENCE = 3
_THREE_DIGITS = 2.0**-10
_ROUNDING_OF_SWEEPS = Fraction(1, 2**26)
_GRID_OF_NUMBERS = Fraction(1, 2**18)
_NOTHING = 1e-6
"""A release that needs more than 10⁶ times its noise does not fit, for a person."""


def largest_factor(account: Account, budget: Fraction, spendings: Sequence[Spending]) -> float:
    """The largest x such that these releases, all charges times x, still fit.

    A secret inside a window leaks at least half of that window's level, so the search can end
    where every level is four times the budget; if that still fits, the answer is infinity. Numbers
    of which small differences are hidden leak less, so there it goes on.
    """
    units = _priced(account, spendings)
    levels = [one.dp_epsilon for one in spendings if one.dp_epsilon]

    def total(factor: float) -> Fraction:
        return account.plus_scaled(units, factor).total

    high = float_up(min(4 * budget / min(levels, default=Fraction(1)), _LARGEST_FACTOR))
    while _of_numbers(account) and high < _LARGEST_OF_NUMBERS and total(high) <= budget:
        high *= 2.0**20
    found = largest_level(total, account.total, budget, high)
    return math.inf if found == high else found


def _of_numbers(account: Account) -> bool:
    return not all(one.by_levels for one in account.secrets.bounds)


def what_fits(
    account: Account,
    budget: Fraction,
    refused: Sequence[Spending],
    grants: Grants | None = None,
) -> str:
    """Say with which level and noise releases that exceed the budget would fit.

    Within the budget they may be refused for other reasons: `grants` tells.
    """
    if any(one.composes_by != "levels" for one in refused):
        return "Ask for more noise or a shorter window."
    factor = largest_granted(largest_factor(account, budget, refused), refused, grants)
    if factor < _NOTHING:
        return "Nothing fits on this window any more."
    noise = f"{format_up(1 / factor)} times"
    if len(refused) > 1:
        return f"Together they fit with {noise} their noise."
    fitting = refused[0].times(factor)
    level = format_down(float_down(fitting.dp_epsilon or Fraction(0)))
    alone = format_down(float_down(level_alone(account.secrets, fitting)))
    return (
        f"On this window a dp_epsilon of {level} fits, with {noise} this noise; a release with "
        f"epsilon {alone} has it."
    )


def largest_granted(most: float, refused: Sequence[Spending], grants: Grants | None) -> float:
    """The largest factor up to `most` that is granted, to three digits; 0 if none is."""

    def granted(factor: float) -> bool:
        return grants is None or grants([one.times(factor) for one in refused])

    if most < _NOTHING or math.isinf(most) or granted(most):
        return most
    low, high = _NOTHING, most
    if not granted(low):
        return 0.0
    while high > low * (1 + _THREE_DIGITS):
        middle = math.sqrt(low * high)
        low, high = (middle, high) if granted(middle) else (low, middle)
    return low


def level_alone(secrets: Secrets, spending: Spending) -> Fraction:
    """The ε for which a release of this level can be asked for: what it leaks alone.

    A little less, so that the noise that is found for it is not below its own; of numbers a little
    more, as they pay for their grid, which depends on the noise.
    """
    less = _ROUNDING_OF_SWEEPS if spending.span is None else _GRID_OF_NUMBERS
    return Account(secrets).plus([spending]).total * (1 - less)


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


def largest_level(
    total: Callable[[float], Fraction], now: Fraction, limit: Fraction, high: float
) -> float:
    """The largest float x ≤ high with total(x) ≤ limit, up to a relative 2⁻³⁴.

    `total` never falls from total(0) = `now`; if total(high) fits, the answer is high. Totals are
    smooth or made of straight pieces, so secants find the answer in few steps, and halving takes
    over where they do not. Close to it a guess goes a little further, so that the answer lies
    between it and the one before. Whatever is returned, if not 0, was tried and fits.
    """
    low, below, least = 0.0, now - limit, high * _TINY
    if below > 0 or (below == 0 and total(least) > limit):
        return 0.0
    older, newer, tried = (low, below), (low, below), False
    waited, width, guess = 0, high, high * _FIRST
    while high - low > _CLOSE * high and high > least:
        if not tried and not guess < high:
            guess = high
        elif not low < guess < high:
            guess = low + (high - low) / 2
            waited, width = 0, high - low
        excess = total(guess) - limit
        if excess <= 0 and guess == high:
            return high
        older, newer, tried = newer, (guess, excess), tried or excess > 0
        low, high = (guess, high) if excess <= 0 else (low, guess)
        if excess == 0 and total(guess * _JUST_ABOVE) > limit:
            return guess
        waited = waited + 1 if high - low > width / 2 else 0
        width = min(width, high - low) if waited == 0 else width
        guess = math.inf
        if waited < _PATIENCE:
            guess = _secant(*older, *newer)
            if excess and abs(guess - newer[0]) < _SOON * guess:
                guess *= 1 - math.copysign(_BEYOND, excess)
    return low


def _secant(x: float, fx: Fraction, y: float, fy: Fraction) -> float:
    """Where the line through both points is 0; the nearest float, so that 1/10 is found as 0.1."""
    if fx == fy:
        return math.inf
    return float(Fraction(y) - fy * (Fraction(y) - Fraction(x)) / (fy - fx))


def largest_number(fits: Callable[[int], bool], most: int) -> int:
    """The largest n in 0..most with fits(n), where fits(0) holds and fits never comes back.

    O(log n) questions.
    """
    high = 1
    while high <= most and fits(high):
        high *= 2
    low, high = high // 2, min(high, most + 1)
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (middle, high) if fits(middle) else (low, middle)
    return low


def least_scales(
    account: Account, budget: Fraction, asked: Sequence[tuple[Query, Fraction]], length: int
) -> list[float]:
    """The least noise, in proportion to 1/weight, with which queries on their windows fit together.

    0 where they have nothing to hide. What is returned was tried: a scale is rounded otherwise than
    a factor, the last digit of a total may go either way, and numbers pay for their grid.
    """
    factor = largest_factor(
        account, budget, [Spending.of_query(query, 1 / weight, length) for query, weight in asked]
    )
    less = _JUST_ABOVE - 1
    while True:
        scales = [_scale_for(account, budget, factor, weight) for _, weight in asked]
        paired = zip(asked, scales, strict=True)
        if math.isinf(factor) or account.plus(
            planned_spending(query, scale, length) for (query, _), scale in paired
        ).fits(budget):
            return scales
        factor, less = factor / (1 + less), 4 * less


def planned_spending(query: Query, scale: Number, length: int, label: str = "") -> Spending:
    """What the answer to a query with this noise spends, the grid of numbers included."""
    wanted = positive_fraction(scale, "scale")
    fine = query.refined(wanted, query.points(length))
    return Spending.of_query(fine, wanted * fine.subdivision, length, label=label)


def _scale_for(account: Account, budget: Fraction, factor: float, weight: Fraction) -> float:
    """The least float that, read as a decimal, is a noise scale of at least 1/(factor·weight).

    0 for a factor without end.

    Raises:
        BudgetExceeded: if no noise that this package draws is enough.
    """
    scale = math.inf
    if factor:
        wanted = Fraction(0) if math.isinf(factor) else 1 / (to_fraction(factor, "factor") * weight)
        scale = float_up(wanted)
        if to_fraction(scale, "scale") < wanted:
            scale = math.nextafter(scale, math.inf)
    if scale > _LARGEST_SCALE:
        raise BudgetExceeded(
            f"What was released before costs {float_up(account.total):.12g}, and the budget is "
            f"{float_up(budget):.12g}: nothing is left for a release of any noise this package "
            "draws."
        )
    return scale
