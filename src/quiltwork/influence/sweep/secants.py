"""The largest factor of a level that leaks no more than it may, where a leak is known at any one.

What leaks rises with the level, about in proportion: secants on logarithms meet it in few steps.
"""

from __future__ import annotations

import math
from collections.abc import Callable

from quiltwork.influence.sweep.leakage import Leak

_TURNS, _STEPS = 80, 20
_ENOUGH = 1e12


def secants(
    leak_at: Callable[[float], Leak],
    fits: tuple[float, Leak],
    factor: float,
    slope: float,
    epsilon: float,
    close: float,
) -> tuple[tuple[float, Leak], float]:
    """The largest factor found that leaks at most ε, and how leaks grow there, on logarithms."""
    last: tuple[float, float] | None = None
    for _ in range(_STEPS):
        found = leak_at(factor)
        if math.isinf(found.leak):  # no bound so high up
            factor = math.sqrt(factor * fits[0])
            continue
        room = math.log(epsilon / found.leak)
        if room >= 0 and factor >= fits[0]:  # by finer steps, so at least as good
            fits = factor, found
        if 0 <= room <= close:
            break
        if last is not None and last[0] != factor:
            measured = (last[1] - room) / math.log(factor / last[0])
            slope = min(max(measured, 0.25), 4.0)
        last = factor, room
        factor *= math.exp((room - close / 2) / slope)
        if factor <= fits[0]:
            break
    return fits, slope


def raised(
    leak_at: Callable[[float], Leak], start: tuple[float, Leak], epsilon: float, close: float
) -> tuple[float, Leak]:
    """The largest factor from one on that fits: steps in proportion until one is too large."""
    (low, best), limit = start, start[0] * _ENOUGH
    while best.leak > epsilon:  # early nodes may leak more than those of an endless series
        high, worst = low, best
        low *= min(1 - 2.0**-36, epsilon / best.leak * (1 - close))
        best = leak_at(low)
        if best.leak <= epsilon:
            return search(leak_at, (low, best), (high, worst), epsilon, close)
    while best.leak < epsilon * (1 - close):
        ahead = low * min(2.0, (epsilon / max(best.leak, epsilon / 4)) ** 2) * (1 + close)
        found = leak_at(ahead)
        if found.leak > epsilon:
            return search(leak_at, (low, best), (ahead, found), epsilon, close)
        low, best = ahead, found
        if low > limit:
            return math.inf, best
    return low, best


def search(
    leak_at: Callable[[float], Leak],
    fits: tuple[float, Leak],
    exceeds: tuple[float, Leak],
    epsilon: float,
    close: float,
) -> tuple[float, Leak]:
    """The largest factor that fits: secants on logarithms that keep both ends (Illinois)."""
    (low, best), (high, worst) = fits, exceeds
    a, b = math.log(low), math.log(high)
    below, above = (math.log(max(one.leak, 1e-300) / epsilon) for one in (best, worst))
    side = 0
    for _ in range(_TURNS):
        if b - a <= close or best.leak >= epsilon * (1 - close):
            break
        share = below / (below - above) if math.isfinite(above) else 0.5
        guess = a + (b - a) * min(max(share, 2.0**-20), 1 - 2.0**-20) - close / 4
        found = leak_at(math.exp(guess))
        value = math.log(max(found.leak, 1e-300) / epsilon)
        if value <= 0:
            a, below, best = guess, value, found
            above, side = (above / 2 if side == -1 else above), -1
        else:
            b, above = guess, value
            below, side = (below / 2 if side == 1 else below), 1
    return math.exp(a) * (1 - 2.0**-52), best
