"""Root finding for monotone functions: the largest argument whose value is within a limit.

`largest_within` uses the Illinois method on logarithms, for functions that are expensive to
evaluate; `bisect` halves a bracket, for cheap ones or those that say only yes or no. Both return an
argument that was evaluated and found to be within the limit.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from fractions import Fraction
from typing import TypeVar

T = TypeVar("T")
N = TypeVar("N", float, Fraction)
_MOST_EVALUATIONS = 80
_UNLIMITED = 1e12
_LEAST = 1e-300


def largest_within(
    evaluate: Callable[[float], T],
    value: Callable[[T], float],
    start: float,
    limit: float,
    close: float,
    guess: float | None = None,
) -> tuple[float, T] | None:
    """Return the largest x at which `value(evaluate(x))` is at most `limit`, and `evaluate(x)`.

    Values must rise with x, about in proportion. Cost: some five to ten evaluations.

    Args:
        evaluate: computes the result at x.
        value: the number of a result that is compared with the limit.
        start: the least x.
        limit: of the value.
        close: the relative tolerance: x or its value is this close to what is allowed.
        guess: where to begin, above `start`.

    Returns:
        None if not even `start` is within the limit; x is infinite if 10^12 times `start` still is.

    >>> x, square = largest_within(lambda x: x * x, float, 1.0, 2.0, 2.0**-40)
    >>> x <= 2**0.5 < x * (1 + 1e-11)
    True
    """
    low = start if guess is None else guess
    best = evaluate(low)
    high: float | None = None
    above = 0.0
    while value(best) > limit:  # descend from a guess that is too large
        if low <= start:
            return None
        high, above = low, _log_ratio(value(best), limit)
        step = math.exp(-above) if math.isfinite(above) else 0.25
        low = max(start, low * min(1 - 2.0**-36, max(step, 2.0**-8) * (1 - close)))
        best = evaluate(low)
    while high is None:
        if value(best) >= limit * (1 - close):
            return low, best
        ratio = limit / max(value(best), limit / 4)
        ahead = low * min(2.0, ratio**2) * (1 + close)
        if ahead > start * _UNLIMITED:
            return math.inf, best
        result = evaluate(ahead)
        if value(result) > limit:
            high, above = ahead, _log_ratio(value(result), limit)
        else:
            low, best = ahead, result
    return _between(evaluate, value, (low, best), (high, above), limit, close)


def bisect(fits: Callable[[N], bool], low: N, high: N, steps: int) -> tuple[N, N]:
    """Halve a bracket `steps` times, keeping `fits(high)` true; `low` is taken not to fit.

    `low` may be the larger number, for a condition that fails above a threshold.

    >>> bisect(lambda x: x * x >= 2, 1.0, 2.0, 10)
    (1.4140625, 1.4150390625)
    """
    for _ in range(steps):
        middle = (low + high) / 2
        low, high = (low, middle) if fits(middle) else (middle, high)
    return low, high


def _between(
    evaluate: Callable[[float], T],
    value: Callable[[T], float],
    fits: tuple[float, T],
    exceeds: tuple[float, float],
    limit: float,
    close: float,
) -> tuple[float, T]:
    """Close the bracket between an x within the limit and one beyond it (the Illinois method)."""
    (low, best), (high, above) = fits, exceeds
    a, b = math.log(low), math.log(high)
    below, side = _log_ratio(value(best), limit), 0
    for _ in range(_MOST_EVALUATIONS):
        if b - a <= close or value(best) >= limit * (1 - close):
            break
        share = below / (below - above) if math.isfinite(above) else 0.5
        x = a + (b - a) * min(max(share, 2.0**-20), 1 - 2.0**-20) - close / 2
        result = evaluate(math.exp(x))
        now = _log_ratio(value(result), limit)
        if now <= 0:
            a, below, best = x, now, result
            # Illinois: halving the other end's value keeps the secant from stalling there.
            above, side = (above / 2 if side == -1 else above), -1
        else:
            b, above = x, now
            below, side = (below / 2 if side == 1 else below), 1
    return math.exp(a) * (1 - 2.0**-52), best


def _log_ratio(value: float, limit: float) -> float:
    return math.log(max(value, _LEAST) / limit)
