"""Where something that only rises, or only falls, passes what is allowed: brackets and their ends.

`largest_within` follows secants on logarithms that keep both ends of a bracket (Illinois), where
an evaluation is dear; `bisect` halves a bracket, where it is cheap or has a yes or no only. Both
say which end is safe: what fits was evaluated.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from fractions import Fraction
from typing import TypeVar

T = TypeVar("T")
N = TypeVar("N", float, Fraction)
_TURNS = 80
_ENOUGH = 1e12
_LEAST = 1e-300


def largest_within(
    evaluate: Callable[[float], T],
    value: Callable[[T], float],
    start: float,
    limit: float,
    close: float,
    guess: float | None = None,
) -> tuple[float, T] | None:
    """The largest x at which `value(evaluate(x))` is at most `limit`, and what is found there.

    Values rise with x, about in proportion. The search begins at `start`, or at a `guess` above it;
    x or its value is within a share of `close` of what is allowed. None where not even the start
    fits, infinite where 10^12 times the start still does. Cost: some five to ten evaluations.

    >>> x, square = largest_within(lambda x: x * x, float, 1.0, 2.0, 2.0**-40)
    >>> x <= 2**0.5 < x * (1 + 1e-11)
    True
    """
    low = start if guess is None else guess
    best = evaluate(low)
    high: float | None = None
    above = 0.0
    while value(best) > limit:  # from above down to one that fits
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
        if ahead > start * _ENOUGH:
            return math.inf, best
        found = evaluate(ahead)
        if value(found) > limit:
            high, above = ahead, _log_ratio(value(found), limit)
        else:
            low, best = ahead, found
    return _between(evaluate, value, (low, best), (high, above), limit, close)


def bisect(fits: Callable[[N], bool], low: N, high: N, steps: int) -> tuple[N, N]:
    """Halve a bracket so many times: `high` fits and `low` is taken not to, before and after.

    The ends may stand in any order, so that the one that fits may be the lower one.

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
    """The same between one that fits and one that exceeds the limit by so much."""
    (low, best), (high, above) = fits, exceeds
    a, b = math.log(low), math.log(high)
    below, side = _log_ratio(value(best), limit), 0
    for _ in range(_TURNS):
        if b - a <= close or value(best) >= limit * (1 - close):
            break
        share = below / (below - above) if math.isfinite(above) else 0.5
        x = a + (b - a) * min(max(share, 2.0**-20), 1 - 2.0**-20) - close / 2
        found = evaluate(math.exp(x))
        now = _log_ratio(value(found), limit)
        if now <= 0:
            a, below, best = x, now, found
            above, side = (above / 2 if side == -1 else above), -1
        else:
            b, above = x, now
            below, side = (below / 2 if side == 1 else below), 1
    return math.exp(a) * (1 - 2.0**-52), best


def _log_ratio(value: float, limit: float) -> float:
    return math.log(max(value, _LEAST) / limit)
