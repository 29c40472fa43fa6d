"""The largest level at which the worst node leaks no more than it may.

What leaks rises with the level. An endless series at the highest level bounds every other, and its
largest level is found from few fixed points; where ends or windows are felt, the level is raised
from there.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import replace
from typing import Protocol

import numpy as np

from quiltwork.influence.sweep.leakage import Leak, Sweep
from quiltwork.influence.sweep.levels import Levels
from quiltwork.influence.sweep.program import FloatArray, IntArray
from quiltwork.influence.sweep.sides import Exact

_CLOSE = 2.0**-32
_TURNS = 80
_ENOUGH = 1e12

NOTHING = Leak(0.0, 1, 0.0, 0.0, 0.0)


class Sweepable(Protocol):
    """What tells, for any levels, what every node leaks: a `Sweep` of a series, or a tree."""

    def worst(self, levels: Levels, nodes: range) -> Leak:
        """The node among `nodes` that leaks most."""

    def profile(self, levels: Levels, nodes: range) -> tuple[IntArray, IntArray, FloatArray]:
        """Runs of nodes (first, last) and a bound on what each of their nodes leaks."""

    def known_all(self, nodes: range) -> bool:
        """Whether no node has anything to hide."""


def largest_factor(
    sweep: Sweepable, unit: Levels, nodes: range, epsilon: float
) -> tuple[float, Leak]:
    """Return the largest x at which `unit` times x leaks at most ε about `nodes`, and that leak.

    Infinite where nothing can be learnt about them. x is within a relative 2^-31 of the largest.
    """
    own, most = _highest(unit, nodes)
    if most == 0 or sweep.known_all(nodes):
        return math.inf, replace(NOTHING, node=nodes.start)
    low = epsilon / unit.total
    if isinstance(sweep, Sweep):
        _forget(sweep)
    if isinstance(sweep, Sweep) and own == most:
        endless = _endless(sweep, unit, epsilon, epsilon / own)
        if endless is not None and endless[0] >= low and _unfelt(sweep, unit, nodes, endless[0]):
            factor, leak = endless
            return _short(factor), replace(leak, node=_middle(sweep, unit, nodes))
        low = max(low, endless[0] if endless is not None else 0.0)

    def leak_at(factor: float) -> Leak:
        return sweep.worst(unit.times(factor), nodes)

    factor, leak = _raised(leak_at, low, epsilon)
    return _short(factor), leak


def _forget(sweep: Sweep) -> None:
    for side in (sweep.left, sweep.right):
        if isinstance(side, Exact) and side.walk.period == 1 and side.walk.size > 1:
            side.homogeneous.forget()


def _short(factor: float) -> float:
    """The factor rounded down to 36 bits, beyond which it depends on the order of sums."""
    if math.isinf(factor):
        return factor
    mantissa, exponent = math.frexp(factor)
    return math.ldexp(math.floor(mantissa * 2**36), exponent - 36)


def _highest(unit: Levels, nodes: range) -> tuple[float, float]:
    """The highest own level among the nodes, and the highest of all levels."""
    ends = np.array([nodes.start]), np.array([nodes.stop - 1])
    own = float(unit.most(unit.own, *ends)[0])
    return own, max(float(row.max()) for row in (unit.own, unit.forward, unit.backward))


def _endless(sweep: Sweep, unit: Levels, epsilon: float, high: float) -> tuple[float, Leak] | None:
    """The largest factor in an endless series of the highest levels."""
    levels = tuple(float(row.max()) for row in (unit.own, unit.forward, unit.backward))

    def leak_at(factor: float) -> Leak:
        found = sweep.constant(*(level * factor for level in levels))
        return Leak(math.inf, 1, 0.0, 0.0, 0.0) if found is None else found

    low = high
    while leak_at(low).leak > epsilon:
        high, low = low, low / 4
        if high < epsilon / (unit.total * 4):
            return None
    best = leak_at(low)
    if low == high:
        return low, best
    return _search(leak_at, (low, best), (high, leak_at(high)), epsilon)


def _raised(leak_at: Callable[[float], Leak], low: float, epsilon: float) -> tuple[float, Leak]:
    """The largest factor from one on that fits: steps in proportion until one is too large."""
    best, limit = leak_at(low), low * _ENOUGH
    while best.leak > epsilon:  # early nodes may leak more than those of an endless series
        high, worst = low, best
        low *= min(1 - 2.0**-36, epsilon / best.leak * (1 - _CLOSE))
        best = leak_at(low)
        if best.leak <= epsilon:
            return _search(leak_at, (low, best), (high, worst), epsilon)
    while best.leak < epsilon * (1 - _CLOSE):
        ahead = low * min(2.0, (epsilon / max(best.leak, epsilon / 4)) ** 2) * (1 + _CLOSE)
        found = leak_at(ahead)
        if found.leak > epsilon:
            return _search(leak_at, (low, best), (ahead, found), epsilon)
        low, best = ahead, found
        if low > limit:
            return math.inf, best
    return low, best


def _search(
    leak_at: Callable[[float], Leak],
    fits: tuple[float, Leak],
    exceeds: tuple[float, Leak],
    epsilon: float,
) -> tuple[float, Leak]:
    """The largest factor that fits: secants on logarithms that keep both ends (Illinois)."""
    (low, best), (high, worst) = fits, exceeds
    a, b = math.log(low), math.log(high)
    below, above = (math.log(max(one.leak, 1e-300) / epsilon) for one in (best, worst))
    side = 0
    for _ in range(_TURNS):
        if b - a <= _CLOSE or best.leak >= epsilon * (1 - _CLOSE):
            break
        share = below / (below - above) if math.isfinite(above) else 0.5
        guess = a + (b - a) * min(max(share, 2.0**-20), 1 - 2.0**-20) - _CLOSE / 4
        found = leak_at(math.exp(guess))
        value = math.log(max(found.leak, 1e-300) / epsilon)
        if value <= 0:
            a, below, best = guess, value, found
            above, side = (above / 2 if side == -1 else above), -1
        else:
            b, above = guess, value
            below, side = (below / 2 if side == 1 else below), 1
    return math.exp(a) * (1 - 2.0**-52), best


def _unfelt(sweep: Sweep, unit: Levels, nodes: range, factor: float) -> bool:
    """Whether some node lies so deep inside the highest levels that no end is felt there.

    From a given start an early node may leak more than any later one, so there it is not asked.
    """
    if sweep.walk.laws is None or nodes.start <= len(sweep.walk.possible):
        return False
    deep, first, last = _deepest(sweep, unit, nodes)
    highest = (row[deep] == row.max() for row in (unit.own, unit.forward, unit.backward))
    room = (last - first - sweep.episode + 1) // 2
    if room < 1 or not all(highest):
        return False
    for side, level in ((sweep.left, unit.backward[deep]), (sweep.right, unit.forward[deep])):
        if not isinstance(side, Exact) or side.walk.period > 1:
            return False
        if side.homogeneous.felt(float(level) * factor, room) >= room:
            return False
    return True


def _deepest(sweep: Sweep, unit: Levels, nodes: range) -> tuple[int, int, int]:
    """The longest run of a level, and its first and last secret node."""
    deep = int(np.argmax(unit.last - unit.first))
    first = max(int(unit.first[deep]), nodes.start, len(sweep.walk.possible) + 1)
    return deep, first, min(int(unit.last[deep]), nodes.stop - 1)


def _middle(sweep: Sweep, unit: Levels, nodes: range) -> int:
    _, first, last = _deepest(sweep, unit, nodes)
    return (first + last + 1) // 2
