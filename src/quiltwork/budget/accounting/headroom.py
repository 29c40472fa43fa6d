"""Headroom of an account: the largest level, the most repetitions and the least noise that fit."""

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
"""A function that decides whether releases are granted together."""

_LARGEST_SCALE = 2.0**MAX_SCALE_BITS
_MOST_REPETITIONS = 10**12
_LARGEST_FACTOR = Fraction(10**300)
_LARGEST_FACTOR_OF_NUMBERS = 1e200
_TOLERANCE = 2.0**-34
_FIRST_GUESS, _NEAR, _OVERSHOOT = 2.0**-6, 2.0**-20, 2.0**-36
_SMALLEST_LEVEL = 2.0**-100
_JUST_ABOVE = 1 + 2.0**-44
_PATIENCE = 3
_THREE_DIGITS = 2.0**-10
_ROUNDING_OF_SWEEPS = Fraction(1, 2**26)
_GRID_OF_NUMBERS = Fraction(1, 2**18)
_SMALLEST_USEFUL = 1e-6
"""Below this factor a release would need more than 10⁶ times its noise: say that nothing fits."""


def largest_factor(account: Account, budget: Fraction, spendings: Sequence[Spending]) -> float:
    """Return the largest x such that these releases, with all charges times x, still fit.

    A secret inside a window leaks at least half of that window's level, so the search can end
    where every level is four times the budget; if that still fits, the result is infinity. Under
    Gaussian beliefs, where only small differences are hidden, less leaks and the search goes on.
    """
    units = _account_of(account, spendings)
    levels = [spending.dp_epsilon for spending in spendings if spending.dp_epsilon]

    def total(factor: float) -> Fraction:
        return account.plus_scaled(units, factor).total

    high = float_up(min(4 * budget / min(levels, default=Fraction(1)), _LARGEST_FACTOR))
    is_gaussian = not all(bound.by_levels for bound in account.secrets.bounds)
    while is_gaussian and high < _LARGEST_FACTOR_OF_NUMBERS and total(high) <= budget:
        high *= 2.0**20
    factor = largest_level(total, account.total, budget, high)
    return math.inf if factor == high else factor


def what_fits(
    account: Account,
    budget: Fraction,
    refused: Sequence[Spending],
    grants: Grants | None = None,
) -> str:
    """Say at which level and noise releases that exceed the budget would fit.

    Within the budget other limits may refuse them: `grants` decides about those.
    """
    if any(spending.composes_by != "levels" for spending in refused):
        return "Ask for more noise or a shorter window."
    factor = largest_granted(largest_factor(account, budget, refused), refused, grants)
    if factor < _SMALLEST_USEFUL:
        return "Nothing fits on this window any more."
    noise = f"{format_up(1 / factor)} times"
    if len(refused) > 1:
        return f"Together they fit with {noise} their noise."
    fitting = refused[0].times(factor)
    level = format_down(float_down(fitting.dp_epsilon or Fraction(0)))
    alone = format_down(float_down(epsilon_alone(account.secrets, fitting)))
    return (
        f"On this window a dp_epsilon of {level} fits, with {noise} this noise; a release with "
        f"epsilon {alone} has it."
    )


def largest_granted(most: float, refused: Sequence[Spending], grants: Grants | None) -> float:
    """Return the largest factor up to `most` that is granted, to three digits; 0 if none is."""

    def granted(factor: float) -> bool:
        return grants is None or grants([spending.times(factor) for spending in refused])

    if most < _SMALLEST_USEFUL or math.isinf(most) or granted(most):
        return most
    low, high = _SMALLEST_USEFUL, most
    if not granted(low):
        return 0.0
    while high > low * (1 + _THREE_DIGITS):
        middle = math.sqrt(low * high)
        low, high = (middle, high) if granted(middle) else (low, middle)
    return low


def epsilon_alone(secrets: Secrets, spending: Spending) -> Fraction:
    """Return the ε at which `release` gives a release this spending: its leakage alone.

    Slightly less, so that calibration at this ε never finds less noise; the margin is larger for
    sums and means, whose grid is charged too and depends on the noise.
    """
    margin = _ROUNDING_OF_SWEEPS if spending.span is None else _GRID_OF_NUMBERS
    return Account(secrets).plus([spending]).total * (1 - margin)


def how_many_more(account: Account, budget: Fraction, spending: Spending) -> int | float:
    """Return how many more releases like this one fit; infinity if they cost nothing."""
    after = account.plus([spending])
    if spending.composes_by == "nothing":
        return int(after.fits(budget))
    if spending.composes_by == "general":
        price = by_theorem_3_6(spending)
        return max(0, (budget - account.total) // price) if price else math.inf
    units = _account_of(account, [spending])

    def fits(number: int) -> bool:
        return account.plus_scaled(units, number).fits(budget)

    number = largest_number(fits, _MOST_REPETITIONS)
    return math.inf if number == _MOST_REPETITIONS else number


def _account_of(account: Account, spendings: Sequence[Spending]) -> Account:
    """Return an account of these releases alone, after checking that they may follow."""
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
    """Return the largest float x ≤ high with total(x) ≤ limit, up to a relative 2⁻³⁴.

    `total` never falls from total(0) = `now`; if total(high) fits, the result is high. Totals are
    smooth or piecewise linear, so the secant method converges in a few steps, and bisection takes
    over where it does not. A result other than 0 was tried and fits.
    """
    low, excess, smallest = 0.0, now - limit, high * _SMALLEST_LEVEL
    if excess > 0 or (excess == 0 and total(smallest) > limit):
        return 0.0
    older, newer, has_upper_end = (low, excess), (low, excess), False
    slow_steps, width, guess = 0, high, high * _FIRST_GUESS
    while high - low > _TOLERANCE * high and high > smallest:
        if not has_upper_end and not guess < high:
            guess = high
        elif not low < guess < high:
            guess = low + (high - low) / 2
            slow_steps, width = 0, high - low
        excess = total(guess) - limit
        if excess <= 0 and guess == high:
            return high
        older, newer, has_upper_end = newer, (guess, excess), has_upper_end or excess > 0
        low, high = (guess, high) if excess <= 0 else (low, guess)
        if excess == 0 and total(guess * _JUST_ABOVE) > limit:
            return guess
        slow_steps = slow_steps + 1 if high - low > width / 2 else 0
        width = min(width, high - low) if slow_steps == 0 else width
        guess = math.inf
        if slow_steps < _PATIENCE:
            guess = _secant(*older, *newer)
            if excess and abs(guess - newer[0]) < _NEAR * guess:
                guess *= 1 - math.copysign(_OVERSHOOT, excess)  # to bracket the root at once
    return low


def _secant(x: float, fx: Fraction, y: float, fy: Fraction) -> float:
    """Return the root of the line through two points, as the nearest float: 1/10 becomes 0.1."""
    if fx == fy:
        return math.inf
    return float(Fraction(y) - fy * (Fraction(y) - Fraction(x)) / (fy - fx))


def largest_number(fits: Callable[[int], bool], most: int) -> int:
    """Return the largest n in 0..most with fits(n), by doubling and bisection.

    `fits` must hold at 0, and at no number above one where it does not. Cost: O(log n) calls.
    """
    high = 1
    while high <= most and fits(high):
        high *= 2
    low, high = high // 2, min(high, most + 1)
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (middle, high) if fits(middle) else (low, middle)
    return low


def smallest_scales(
    account: Account, budget: Fraction, weighted: Sequence[tuple[Query, Fraction]], length: int
) -> list[float]:
    """Return the least noise scales, in proportion to 1/weight, with which queries fit together.

    0 where they have nothing to hide. The result was tried: a scale is rounded differently from a
    factor, the last digit of a total may go either way, and the grid of sums is charged too.
    """
    factor = largest_factor(
        account,
        budget,
        [Spending.of_query(query, 1 / weight, length) for query, weight in weighted],
    )
    margin = _JUST_ABOVE - 1
    while True:
        scales = [_scale_for(account, budget, factor, weight) for _, weight in weighted]
        spendings = (
            planned_spending(query, scale, length)
            for (query, _), scale in zip(weighted, scales, strict=True)
        )
        if math.isinf(factor) or account.plus(spendings).fits(budget):
            return scales
        factor, margin = factor / (1 + margin), 4 * margin


def planned_spending(
    query: Query, scale: Number, length: int, label: str = "", *, gaussian: bool = False
) -> Spending:
    """Return the spending of a query with geometric or Gaussian noise, grid of numbers included."""
    exact_scale = positive_fraction(scale, "scale")
    fine = query.refined(exact_scale, query.points(length))
    record = Spending.of_gaussian if gaussian else Spending.of_query
    return record(fine, exact_scale * fine.subdivision, length, label=label)


def _scale_for(account: Account, budget: Fraction, factor: float, weight: Fraction) -> float:
    """Return the least float that, as a decimal, is a noise scale of at least 1/(factor·weight).

    0 for an infinite factor.

    Raises:
        BudgetExceeded: if no noise that this package draws is enough.
    """
    scale = math.inf
    if factor:
        exact = Fraction(0) if math.isinf(factor) else 1 / (to_fraction(factor, "factor") * weight)
        scale = float_up(exact)
        if to_fraction(scale, "scale") < exact:  # its shortest decimal may be below the float
            scale = math.nextafter(scale, math.inf)
    if scale > _LARGEST_SCALE:
        raise BudgetExceeded(
            f"The releases made before cost {float_up(account.total):.12g}, and the budget is "
            f"{float_up(budget):.12g}: nothing is left for a release of any noise this package "
            "draws."
        )
    return scale
