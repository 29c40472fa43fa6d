"""The largest level at which the worst node leaks no more than it may.

What leaks rises with the level. An endless series at the highest level bounds every other, and its
largest level is found from few fixed points; where ends or windows are felt, the level is raised
from there.
"""

from __future__ import annotations

import math
from dataclasses import replace
from typing import Protocol

import numpy as np

from quiltwork.influence.sweep.endless import MOST_WARM_UP, SHORT
from quiltwork.influence.sweep.leakage import Leak, Sweep
from quiltwork.influence.sweep.levels import Levels
from quiltwork.influence.sweep.program import FloatArray, IntArray
from quiltwork.influence.sweep.secants import raised, search, secants
from quiltwork.influence.sweep.sides import Contracted, Exact
from quiltwork.influence.sweep.two_ended_runs import TwoEndedRun

_CLOSE = 2.0**-32
_FAIR = 2.0**-9
_HARDLY = 2.0**-8
_ROUGH = 2.0**-4
_LOST, _MUCH, _RISING = 0.007, 0.25, 0.125
_CLOSE_BY = 0.01
_TRIES, _TIMES = 4, 8
_FINE = 2.0**-12
_LITTLE, _MANY = 2000, 20_000
_NEWTON = 20
_NEAR = 2.0**-22
_FEW = 16
_SETTLED = 2.0**-28  # an account sweeps until bounds change by less than about that
_FROM_END_TO_END = 300_000
_MOST_PROGRAMS = 2_000_000
_MOST_STATES = 24
_MOST_AT_ALL = 8_000_000  # where the other way is to protect all nodes at once

NOTHING = Leak(0.0, 1, 0.0, 0.0, 0.0)
Balance = tuple[float, FloatArray, FloatArray]
"""A factor, and what the two sides tell at it."""


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

    Infinite where nothing can be learnt about them. x is within a relative 2^-27 of the largest; of
    slow chains whose ends are felt far inside within about two percent.
    """
    if isinstance(sweep, Sweep):
        unit = sweep.charged(unit)
        _forget(sweep)
    own, most = _highest(unit, nodes)
    if most == 0 or sweep.known_all(nodes):
        return math.inf, replace(NOTHING, node=nodes.start)
    low = epsilon / unit.total
    best = low, _all_at_once(epsilon, own * low)
    if isinstance(sweep, Sweep) and own == most and unit.length > _FEW:
        between = _between(sweep, unit, nodes)
        if between is not None and (rising := _in_strides(between, low, epsilon, _RISING)):
            best = secants(rising[0].leak, best, *rising[1:], epsilon, _CLOSE_BY)[0]
            return _short(best[0]), best[1]
        about = _balanced(sweep, unit, epsilon, _HARDLY)
        ends = between is not None and between.programs <= _FROM_END_TO_END
        unfelt = (
            about is not None
            and about[0] > low
            and _unfelt(sweep, unit, nodes, about[0], long=ends)
        )
        between = None if unfelt else between
        if between is not None and about is not None:
            best = _between_ends(between, best, about[0], epsilon)
            if best[0] > about[0] * (1 + 2 * _HARDLY):
                return _short(best[0]), best[1]
        endless = _endless(sweep, unit, epsilon, about)
        best = best if endless is None or endless[0] < best[0] else endless
        if unfelt or (about is None and _unfelt(sweep, unit, nodes, best[0], long=False)):
            factor = best[0] * (1 - _SETTLED)
            return _short(factor), replace(best[1], node=_middle(sweep, unit, nodes))
        if between is not None and about is None:
            best = _between_ends(between, best, 0.0, epsilon)
        factor, leak = best
        if between is not None:
            return _short(factor), leak
        low = factor
    if isinstance(sweep, Sweep) and sweep.coarse is not None and _long_work(sweep, unit.length):
        start = _whatever_the_start(sweep, sweep.coarse, unit, epsilon)
        factor, leak = max(best, start, key=lambda one: one[0])
        return _short(factor * (1 - _SETTLED)), replace(leak, node=_middle(sweep, unit, nodes))

    def leak_at(factor: float) -> Leak:
        return sweep.worst(unit.times(factor), nodes)

    close = _CLOSE
    if isinstance(sweep, Sweep) and unit.length > SHORT:
        many = sweep.walk.programs > _MANY
        close = _FINE if many else _FAIR if _felt_far(sweep, unit, low) else _CLOSE
    factor, leak = raised(leak_at, (low, leak_at(low)), epsilon, close)
    return _short(factor), leak


def worst_between_ends(sweep: Sweep, levels: Levels, nodes: range) -> Leak | None:
    """The worst node of any levels, as if the highest were spent on all from the first to the last.

    None where noise is not found so either. Cost: a sweep of the whole series.
    """
    between = _between(sweep, sweep.charged(levels).flat(), nodes)
    return between.leak(1.0) if between is not None and between.worthwhile else None


def _between(sweep: Sweep, unit: Levels, nodes: range) -> TwoEndedRun | None:
    """A series of one level that is swept from end to end; None where it is not, or too long."""
    if len(nodes) < unit.length:  # secrets near an end, say, of which less is told
        return None
    run = TwoEndedRun.of(sweep, unit, nodes)
    if run is None or sweep.walk.spans == (1,):
        return run
    return None if _long_work(sweep, run.last - run.first + 1) else run


def _between_ends(
    between: TwoEndedRun, fits: tuple[float, Leak], endless: float, epsilon: float
) -> tuple[float, Leak]:
    """The largest factor for a run of one level that feels both its ends, from one that fits.

    Long strides are quick, and what they add to a leak grows with them: so the stride that costs
    little is known beforehand, and the factor is met at the first or second try. It is not looked
    for where an endless series, which has about the factor given, allows as much.
    """
    start, slope, close = max(fits[0], endless), 1.0, _CLOSE
    if not between.worthwhile:
        return fits
    if between.programs > _LITTLE:
        close = _FAIR
        if (found := _in_strides(between, start, epsilon)) is not None:
            between, start, slope = found
            close = _CLOSE_BY
            if start < endless * (1 + _CLOSE_BY):
                return fits
    return secants(between.leak, fits, start, slope, epsilon, close)[0]


def _in_strides(
    between: TwoEndedRun, factor: float, epsilon: float, rising: float = -math.inf
) -> tuple[TwoEndedRun, float, float] | None:
    """The longest strides that cost little; about the factor there, and how leaks grow with it.

    None where it is not known, or where one node more than there are would add less to the leak
    than a share of its level: then an endless series may do.
    """
    plain = between.sweep.walk.spans == (1,) and between.sweep.walk.size > 2
    endless = rising > 0 and between.forgets
    if not plain or endless or between.programs <= _LITTLE or not between.worthwhile:
        return None
    stride = _TIMES * between.short
    while True:
        long, longer = between.in_strides(stride), between.in_strides(2 * stride)
        last, further = longer.belief_bound(factor)
        if further < rising * factor * between.levels[1]:
            return None
        each = (last - long.belief_bound(factor)[0]) / (longer.stride - long.stride)
        least = last - each * (longer.stride - between.stride)
        if not math.isfinite(least):
            return None
        if stride <= 4 * between.stride or least > last * (1 - _MUCH):
            break
        stride = max(stride // 4, 4 * between.stride)
    strides = np.arange(between.stride, between.short + 1)
    extra = np.array([between.beyond(stride) for stride in strides.tolist()])
    told = max(least, last / 4) + each * (strides - between.stride) + extra * further
    best = int(np.flatnonzero(told <= told[0] * (1 + _LOST))[-1])
    share, slope, lowest = float(told[best]) / last, 1.0, factor
    for _ in range(_TRIES):
        step = (math.log(epsilon / (share * last)) - _CLOSE_BY / 2) / slope
        factor = min(max(factor * math.exp(step), lowest), epsilon / between.levels[0])
        if abs(step) < _ROUGH:
            break
        before, last = last, longer.belief_bound(factor)[0]
        slope = min(max(math.log(last / before) / step, 0.25), 4.0)
    return between.in_strides(int(strides[best])), factor, slope


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


def _endless(
    sweep: Sweep, unit: Levels, epsilon: float, about: Balance | None = None
) -> tuple[float, Leak] | None:
    """The largest factor in an endless series of the highest levels."""
    own, forward, backward = (float(row.max()) for row in (unit.own, unit.forward, unit.backward))

    def leak_at(factor: float) -> Leak:
        found = sweep.constant(own * factor, forward * factor, backward * factor)
        return Leak(math.inf, 1, 0.0, 0.0, 0.0) if found is None else found

    if sweep.walk.programs > _MANY:
        coarse = sweep.coarse if isinstance(sweep.left, Exact) else None
        start = None
        if coarse is not None:
            start = _endless(replace(sweep, left=coarse, right=coarse), unit, epsilon)
        low = epsilon / unit.total
        fits = (low, _all_at_once(epsilon, own * low)) if start is None else start
        return secants(leak_at, fits, fits[0], 1.0, epsilon, _FINE)[0]
    found = _balanced(sweep, unit, epsilon * (1 - _CLOSE / 4), _NEAR, about)
    low = high = epsilon / own if found is None else found[0]
    worst: Leak | None = None
    while (best := leak_at(low)).leak > epsilon:
        worst, high = best, low
        low *= max(0.25, 1 - _CLOSE / 4 - (1 + 2.0**-6) * (worst.leak / epsilon - 1))
        if high < epsilon / (unit.total * 4):
            return None
    if worst is None:
        return raised(leak_at, (low, best), epsilon, _CLOSE)
    return search(leak_at, (low, best), (high, worst), epsilon, _CLOSE)


def _balanced(
    sweep: Sweep, unit: Levels, epsilon: float, near: float, about: Balance | None = None
) -> Balance | None:
    """About the factor at which ε leaks, with what both sides tell then.

    Newton's method on both sides and the factor at once, from what was found before.
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
    if about is not None:
        factor, told, tells = about
    for _ in range(_NEWTON):
        one, two = before.tangent(backward * factor, told), after.tangent(forward * factor, tells)
        sides = [(one.ahead + tilt)[asked], two.ahead[asked]]
        rates = [backward * one.rate[asked], forward * two.rate[asked]]
        if sweep.episode > 1:  # the two ends differ independently of each other
            for place, top in enumerate([int(np.argmax(side)) for side in sides]):
                sides[place], rates[place] = sides[place][[top]], rates[place][[top]]
        room = epsilon - alone * factor - sides[0] - sides[1]
        ahead = factor + float((room / (alone + rates[0] + rates[1])).min(initial=math.inf))
        if not math.isfinite(ahead):
            return None
        step = min(max(ahead, factor / 8), 8 * factor, high) - factor
        told = np.maximum(one.ahead + step * backward * one.rate, before.rest)
        tells = np.maximum(two.ahead + step * forward * two.rate, after.rest)
        factor += step
        if abs(step) <= near * factor and max(one.moved, two.moved) <= near:
            before.guess(backward * factor, told)
            after.guess(forward * factor, tells)
            return factor, told, tells
    return None


def _unfelt(sweep: Sweep, unit: Levels, nodes: range, factor: float, *, long: bool) -> bool:
    """Whether some node lies so deep inside the highest levels that no end is felt there.

    From a given start an early node may leak more than any later one, so there it is not asked.
    Further than sweeps begin out it is looked at where `long` ones are swept from end to end.
    """
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
    if room < 1 or not all(highest):
        return False
    if room > MOST_WARM_UP and not long:  # no sweep begins further out
        return True
    return sweep.walk.period == 1 and _reach(sweep, unit, factor, room) < room


def _felt_far(sweep: Sweep, unit: Levels, factor: float) -> bool:
    """Whether sweeps are long: an end is felt beyond what is swept in one piece."""
    plain = sweep.walk.period == 1 and not sweep.walk.independent
    return plain and _reach(sweep, unit, factor, SHORT) >= SHORT


def _reach(sweep: Sweep, unit: Levels, factor: float, most: int) -> int:
    """About how many nodes away an end is felt on either side; at most `most`."""
    sides = (sweep.left, unit.backward), (sweep.right, unit.forward)
    little = unit.length * len(sweep.walk.pairs[0]) <= _LITTLE
    bits, found = 24 if little else 9, [0]
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
