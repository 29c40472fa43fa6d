"""The largest level at which the worst node leaks no more than it may.

What leaks rises with the level. An endless series at the highest level bounds every other, and its
largest level comes from Newton's method on both sides and the level at once; where ends or windows
are felt, the root finder goes on from there.

Theorem: docs/theory/sweep.md
"""

from __future__ import annotations

import math
from dataclasses import replace
from typing import Protocol

import numpy as np

from quiltwork.influence.sweep.horizon import MOST_WARM_UP
from quiltwork.influence.sweep.leakage import Leak, Sweep
from quiltwork.influence.sweep.levels import Levels
from quiltwork.influence.sweep.program import FloatArray, IntArray
from quiltwork.influence.sweep.step import Contracted, Exact
from quiltwork.roots import largest_within

_CLOSE = 2.0**-32
_FAIR, _OFTEN, _SETTLES = 2.0**-20, 16, 512
"""How close to ε a leak is where one evaluation takes a second; else `_CLOSE`. Most chains settle
within 512 nodes."""
_FROM_END_TO_END = 300_000
"""A series whose ends are felt thousands of nodes away is swept up to so many programs."""
_NEWTON = 20
_NEAR = 2.0**-22
_FEW = 16
_SETTLED = 2.0**-27
"""Two sweeps that begin at different nodes differ by about so much."""
_BITS, _HARDLY = 24, 9
"""An end is unfelt where it moves bounds by less than a share of 2^-24; of 2^-9 in long sweeps."""
_MOST_PROGRAMS = 2_000_000
_MOST_STATES = 24
_MOST_AT_ALL = 8_000_000  # where the other way is to protect all nodes at once

NOTHING = Leak(0.0, 1, 0.0, 0.0, 0.0)
Balance = tuple[float, FloatArray, FloatArray]
"""A factor, and what the two sides tell at it."""


class Sweepable(Protocol):
    """What tells, for any levels, what every node leaks: a `Sweep` of a series, or a tree."""

    def fresh(self) -> Sweepable:
        """The same for another question, with nothing learnt from those before."""

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

    Infinite where nothing can be learnt about them. x is within a relative 2^-27 of the largest.
    """
    if isinstance(sweep, Sweep):
        unit = sweep.charged(unit)
    own, most = _highest(unit, nodes)
    if most == 0 or sweep.known_all(nodes):
        return math.inf, replace(NOTHING, node=nodes.start)
    low = epsilon / unit.total
    best = low, _all_at_once(epsilon, own * low)
    if isinstance(sweep, Sweep) and own == most and unit.length > _FEW:
        endless = _endless(sweep, unit, epsilon)
        if endless is not None and endless[0] > low:
            best = endless
            if _unfelt(sweep, unit, nodes, best[0]):
                factor = best[0] * (1 - _SETTLED)
                return _short(factor), replace(best[1], node=_middle(sweep, unit, nodes))
    if isinstance(sweep, Sweep) and sweep.coarse is not None and _long_work(sweep, unit.length):
        start = _whatever_the_start(sweep, sweep.coarse, unit, epsilon)
        factor, leak = max(best, start, key=lambda one: one[0])
        return _short(factor * (1 - _SETTLED)), replace(leak, node=_middle(sweep, unit, nodes))

    def leak_at(factor: float) -> Leak:
        return sweep.worst(unit.times(factor), nodes)

    def leak_of(found: Leak) -> float:
        return found.leak

    guess = best[0] if best[0] > low else None
    much = isinstance(sweep, Sweep) and sweep.affordable(min(unit.length, _SETTLES)) < _OFTEN
    close, least = _FAIR if much else _CLOSE, low * (1 - _CLOSE)
    found = largest_within(leak_at, leak_of, least, epsilon, close, guess) or (least, best[1])
    return _short(found[0]), found[1]


def _endless(sweep: Sweep, unit: Levels, epsilon: float) -> tuple[float, Leak] | None:
    """The largest factor in an endless series of the highest levels; None where it has no bound."""
    own, forward, backward = (float(row.max()) for row in (unit.own, unit.forward, unit.backward))
    worst = Leak(math.inf, 1, 0.0, 0.0, 0.0)

    def leak_at(factor: float) -> Leak:
        found = sweep.constant(own * factor, forward * factor, backward * factor)
        return worst if found is None else found

    low = epsilon / unit.total
    about = _balanced(sweep, unit, epsilon * (1 - _CLOSE / 4))
    guess = None if about is None else max(about[0], low / 4)
    return largest_within(leak_at, lambda one: one.leak, low / 4, epsilon, _CLOSE, guess)


def _balanced(sweep: Sweep, unit: Levels, epsilon: float) -> Balance | None:
    """About the factor at which ε leaks, with what both sides tell then.

    Newton's method on both sides and the factor at once.
    """
    own, forward, backward = (float(row.max()) for row in (unit.own, unit.forward, unit.backward))
    left, right = sweep.left, sweep.right
    if not (isinstance(left, Exact) and isinstance(right, Exact)):
        return None
    if sweep.walk.period > 1 or sweep.walk.size == 1 or sweep.walk.limits is None:
        return None
    before, after = left.homogeneous, right.homogeneous
    pairs = sweep.walk.pairs
    tilt = sweep.walk.tilts(np.array([1 << 40]))[0][pairs]
    asked = np.isfinite(tilt) & sweep.walk.secret[pairs]
    if not asked.any():  # late nodes have one state left
        return None
    alone = own + (sweep.episode - 1) * forward
    alike = (before.start(1.0) + tilt)[asked], after.start(1.0)[asked]
    most = backward * alike[0].max(initial=0.0) + forward * alike[1].max(initial=0.0)
    factor, high = epsilon / (alone + float(most)), epsilon / own
    told, tells = before.start(backward * factor), after.start(forward * factor)
    for _ in range(_NEWTON):
        one, two = before.tangent(backward * factor, told), after.tangent(forward * factor, tells)
        sides = [(one.ahead + tilt)[asked], two.ahead[asked]]
        rates = [backward * one.rate[asked], forward * two.rate[asked]]
        if sweep.episode > 1:  # the two ends differ independently of each other
            for place, top in enumerate([int(np.argmax(side)) for side in sides]):
                sides[place], rates[place] = sides[place][[top]], rates[place][[top]]
        room = epsilon - alone * factor - sides[0] - sides[1]
        with np.errstate(invalid="ignore", divide="ignore"):  # of equations without a solution
            ahead = factor + float((room / (alone + rates[0] + rates[1])).min(initial=math.inf))
        if not math.isfinite(ahead):
            return None
        step = min(max(ahead, factor / 8), 8 * factor, high) - factor
        told = np.maximum(one.ahead + step * backward * one.rate, before.rest)
        tells = np.maximum(two.ahead + step * forward * two.rate, after.rest)
        factor += step
        if abs(step) <= _NEAR * factor and max(one.moved, two.moved) <= _NEAR:
            before.guess(backward * factor, told)
            after.guess(forward * factor, tells)
            return factor, told, tells
    return None


def _unfelt(sweep: Sweep, unit: Levels, nodes: range, factor: float) -> bool:
    """Whether some node lies so deep inside the highest levels that no end is felt there.

    From a given start an early node may leak more than any later one, so there it is not asked."""
    if sweep.walk.independent:  # what is exact as it is
        return False
    if sweep.walk.laws is None:
        if not sweep.walk.possible.all():  # and earlier ones may have more states
            return False
    elif nodes.start <= len(sweep.walk.possible):
        return False
    deep, first, last = _deepest(sweep, unit, nodes)
    highest = (row[deep] == row.max() for row in (unit.own, unit.forward, unit.backward))
    room = (last - first - sweep.episode + 1) // 2
    if room < 1 or not all(highest) or sweep.walk.order is not None:
        return False
    most = min(room, MOST_WARM_UP)
    many = unit.length * len(sweep.walk.pairs[0]) * len(sweep.walk.spans) > _FROM_END_TO_END
    bits = _HARDLY if many else _BITS
    if sweep.walk.period == 1 and _reach(sweep, unit, factor, most, bits) < most:
        return True
    return many and room > MOST_WARM_UP


def _long_work(sweep: Sweep, length: int) -> bool:
    """Whether one number for all states has to do: sweeps take minutes, or never meet the law.

    A given start is followed for some time only; what comes later begins with any start's bounds.
    """
    walk, steps = sweep.walk, min(length, MOST_WARM_UP)
    if walk.laws is not None and len(walk.laws) > steps:
        if length > len(walk.laws) and sweep.coarse is not None and sweep.coarse.diameters:
            return True
        steps = len(walk.laws)
    most = _MOST_PROGRAMS if sweep.coarse is not None and sweep.coarse.diameters else _MOST_AT_ALL
    return len(walk.pairs[0]) * len(walk.spans) * steps > most


def _whatever_the_start(
    sweep: Sweep, side: Contracted, unit: Levels, epsilon: float
) -> tuple[float, Leak]:
    """The largest factor for every start at once, in an endless series or all at once."""
    nothing = np.empty((0, sweep.walk.size), dtype=np.bool_)
    ever = np.ones((sweep.walk.period, sweep.walk.size))
    walk = replace(sweep.walk, laws=None, possible=nothing, limits=ever)
    exact = walk.period == 1 and walk.size <= _MOST_STATES
    left = Exact(walk, to_left=True) if exact else side
    own, low = float(unit.own.max()), epsilon / unit.total
    found = [(low, _all_at_once(epsilon, own * low))]
    for one, other in ((side, side), (left, sweep.right)):
        endless = replace(sweep, walk=walk, left=one, right=other)
        if (better := _endless(endless, unit, epsilon)) is not None:
            found.append(better)
    return max(found, key=lambda one: one[0])


def _all_at_once(epsilon: float, own: float) -> Leak:
    """What a node in the middle leaks where all that is spent is spent on it."""
    half = max(epsilon - own, 0.0) / 2
    return Leak(epsilon, 1, min(own, epsilon), half, half)


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


def _reach(sweep: Sweep, unit: Levels, factor: float, most: int, bits: int) -> int:
    """About how many nodes away an end is felt on either side; at most `most`."""
    sides = (sweep.left, unit.backward), (sweep.right, unit.forward)
    found = [0]
    for side, levels in sides:
        if isinstance(side, Contracted):
            found.append(side.felt(most, bits))
        elif isinstance(side, Exact) and side.walk.size > 1:
            found.append(side.homogeneous.felt(float(levels.max()) * factor, most, bits))
    return max(found)


def _deepest(sweep: Sweep, unit: Levels, nodes: range) -> tuple[int, int, int]:
    """The longest run of the highest level, and its first and last secret node."""
    longest = np.where(unit.own == unit.own.max(), unit.last - unit.first, -1)
    deep = int(np.argmax(longest))
    first = max(int(unit.first[deep]), nodes.start, len(sweep.walk.possible) + 1)
    return deep, first, min(int(unit.last[deep]), nodes.stop - 1)


def _middle(sweep: Sweep, unit: Levels, nodes: range) -> int:
    _, first, last = _deepest(sweep, unit, nodes)
    return (first + last + 1) // 2
