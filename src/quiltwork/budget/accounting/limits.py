"""The largest request that still fits: a level, a number of repetitions, the noise of a query."""

from __future__ import annotations

import math
from collections.abc import Callable
from fractions import Fraction

from quiltwork.exact import float_up, to_fraction
from quiltwork.noise.geometric import MAX_SCALE_BITS

LARGEST_SCALE = 2.0**MAX_SCALE_BITS

_CLOSE = 2.0**-34
_TINY = 2.0**-100
_JUST_ABOVE = 1 + 2.0**-44
_PATIENCE = 3


def largest_level(
    total: Callable[[float], Fraction], now: Fraction, limit: Fraction, high: float
) -> float:
    """The largest float x ≤ high with total(x) ≤ limit, up to a relative 2⁻³⁴.

    `total` never falls from total(0) = `now`; if total(high) fits, the answer is high. Totals are
    smooth or made of straight pieces, so secants find the answer in few steps, and halving takes
    over where they do not. Whatever is returned, if not 0, was tried and fits.
    """
    above = total(high) - limit
    if above <= 0:
        return high
    low, below = 0.0, now - limit
    least = high * _TINY
    if below > 0 or (below == 0 and total(least) > limit):
        return 0.0
    older, newer = (low, below), (high, above)
    waited, width = 0, high
    while high - low > _CLOSE * high and high > least:
        guess = _secant(*older, *newer) if waited < _PATIENCE else math.inf
        if not low < guess < high:
            guess = low + (high - low) / 2
            waited, width = 0, high - low
        excess = total(guess) - limit
        older, newer = newer, (guess, excess)
        low, high = (guess, high) if excess <= 0 else (low, guess)
        if excess == 0 and total(guess * _JUST_ABOVE) > limit:
            return guess
        waited = waited + 1 if high - low > width / 2 else 0
        width = min(width, high - low) if waited == 0 else width
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


def scale_for(factor: float, weight: Fraction = Fraction(1)) -> float:
    """The least float that, read as a decimal, is a noise scale of at least 1/(factor·weight)."""
    wanted = 1 / (to_fraction(factor, "factor") * weight)
    scale = float_up(wanted)
    return scale if to_fraction(scale, "scale") >= wanted else math.nextafter(scale, math.inf)
