"""Noise: the largest level at which the worst node leaks at most ε.

Leakage rises with the level. An infinite series at the highest level bounds every other, and its
largest level comes from Newton's method on both sides and the level at once; where ends or windows
matter, a bracketed root finder goes on from there.

Theorem: docs/theory/sweep.md
"""

from __future__ import annotations

import math
from dataclasses import replace
from typing import Protocol

import numpy as np

from quiltwork.influence.sweep.leakage import MOST_WARM_UP, Leak, Sweep
from quiltwork.influence.sweep.levels import Levels
from quiltwork.influence.sweep.program import FloatArray, IntArray
from quiltwork.influence.sweep.step import ContractionSide, ExactSide
from quiltwork.roots import largest_within

_CLOSE = 2.0**-32
_FAIR, _OFTEN, _SETTLES = 2.0**-20, 16, 512
"""Relative tolerance at ε if one evaluation takes a second (`_FAIR`), else `_CLOSE`. Most chains
converge within 512 nodes."""
_FROM_END_TO_END = 300_000
"""A series whose ends matter thousands of nodes away is swept whole up to this many programs."""
_NEWTON = 20
_NEAR = 2.0**-22
_FEW = 16
_SETTLED = 2.0**-27
"""Two sweeps that start at different nodes differ by about this much."""
_BITS, _HARDLY = 24, 9
"""An end is negligible if it moves bounds by less than a share of 2^-24; of 2^-9 in long sweeps."""
_MOST_PROGRAMS = 2_000_000
_MOST_STATES = 24
_MOST_AT_ALL = 8_000_000  # if the only alternative is to charge all nodes at once

NO_LEAK = Leak(0.0, 1, 0.0, 0.0, 0.0)
Balance = tuple[float, FloatArray, FloatArray]
"""A factor, and the bounds of the two sides at it."""


class Sweepable(Protocol):
    """A bound on the leakage of every node at any levels: a `Sweep` of a series, or of a tree."""

    def without_cache(self) -> Sweepable:
        """A copy without cached results, for a new calibration."""

    def worst(self, levels: Levels, nodes: range) -> Leak:
        """The node among `nodes` with the largest leakage."""

    def profile(self, levels: Levels, nodes: range) -> tuple[IntArray, IntArray, FloatArray]:
        """Runs of nodes (first, last) and a bound on the leakage of each of their nodes."""

    def all_deterministic(self, nodes: range) -> bool:
        """Whether no node has a secret."""


def largest_factor(
    sweep: Sweepable, unit: Levels, nodes: range, epsilon: float
) -> tuple[float, Leak]:
    """Return the largest x at which `unit` times x leaks at most ε about `nodes`, and that leak.

    Infinite if no node has a secret. x is within a relative 2^-27 of the largest.
    """
    if isinstance(sweep, Sweep):
        unit = sweep.charged_levels(unit)
    own, most = _highest(unit, nodes)
    if most == 0 or sweep.all_deterministic(nodes):
        return math.inf, replace(NO_LEAK, node=nodes.start)
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
        factor, leak = max(best, start, key=lambda option: option[0])
        # a sweep from another node may differ by this much
        return _short(factor * (1 - _SETTLED)), replace(leak, node=_middle(sweep, unit, nodes))

    def leak_at(factor: float) -> Leak:
        return sweep.worst(unit.times(factor), nodes)

    def leak_of(root: Leak) -> float:
        return root.leak

    guess = best[0] if best[0] > low else None
    is_slow = isinstance(sweep, Sweep) and sweep.affordable(min(unit.length, _SETTLES)) < _OFTEN
    # charging everything at once always fits, so the bracket has a lower end
    close, least = _FAIR if is_slow else _CLOSE, low * (1 - _CLOSE)
    root = largest_within(leak_at, leak_of, least, epsilon, close, guess) or (least, best[1])
    return _short(root[0]), root[1]


def _endless(sweep: Sweep, unit: Levels, epsilon: float) -> tuple[float, Leak] | None:
    """The largest factor in an infinite series of the highest levels; None if it has no bound."""
    own, forward, backward = (float(row.max()) for row in (unit.own, unit.forward, unit.backward))
    worst = Leak(math.inf, 1, 0.0, 0.0, 0.0)

    def leak_at(factor: float) -> Leak:
        leak = sweep.constant_levels(own * factor, forward * factor, backward * factor)
        return worst if leak is None else leak

    low = epsilon / unit.total
    about = _balanced(sweep, unit, epsilon * (1 - _CLOSE / 4))
    guess = None if about is None else max(about[0], low / 4)
    return largest_within(
        leak_at, lambda found_leak: found_leak.leak, low / 4, epsilon, _CLOSE, guess
    )


def _balanced(sweep: Sweep, unit: Levels, epsilon: float) -> Balance | None:
    """Newton's method on both sides and the factor at once: the factor at which ε leaks, about."""
    own, forward, backward = (float(row.max()) for row in (unit.own, unit.forward, unit.backward))
    left, right = sweep.left, sweep.right
    if not (isinstance(left, ExactSide) and isinstance(right, ExactSide)):
        return None
    if sweep.timeline.period > 1 or sweep.timeline.size == 1 or sweep.timeline.limits is None:
        return None
    before, after = left.homogeneous, right.homogeneous
    pairs = sweep.timeline.pairs
    tilt = sweep.timeline.prior_log_ratios(np.array([1 << 40]))[0][pairs]
    secret = np.isfinite(tilt) & sweep.timeline.secret[pairs]
    if not secret.any():  # late nodes have one state left
        return None
    own_rate = own + (sweep.episode - 1) * forward
    first_order = (before.start(1.0) + tilt)[secret], after.start(1.0)[secret]
    first_order_sum = backward * first_order[0].max(initial=0.0) + forward * first_order[1].max(
        initial=0.0
    )
    factor, high = epsilon / (own_rate + float(first_order_sum)), epsilon / own
    left_bounds, right_bounds = before.start(backward * factor), after.start(forward * factor)
    for _ in range(_NEWTON):
        left_step, right_step = (
            before.tangent(backward * factor, left_bounds),
            after.tangent(forward * factor, right_bounds),
        )
        sides = [(left_step.bounds + tilt)[secret], right_step.bounds[secret]]
        rates = [backward * left_step.rate[secret], forward * right_step.rate[secret]]
        if sweep.episode > 1:  # the two ends differ independently of each other
            for index, top in enumerate([int(np.argmax(side)) for side in sides]):
                sides[index], rates[index] = sides[index][[top]], rates[index][[top]]
        room = epsilon - own_rate * factor - sides[0] - sides[1]
        with np.errstate(invalid="ignore", divide="ignore"):  # of equations without a solution
            ahead = factor + float((room / (own_rate + rates[0] + rates[1])).min(initial=math.inf))
        if not math.isfinite(ahead):
            return None
        step = min(max(ahead, factor / 8), 8 * factor, high) - factor
        left_bounds = np.maximum(
            left_step.bounds + step * backward * left_step.rate, before.boundary_value
        )
        right_bounds = np.maximum(
            right_step.bounds + step * forward * right_step.rate, after.boundary_value
        )
        factor += step
        if abs(step) <= _NEAR * factor and max(left_step.residual, right_step.residual) <= _NEAR:
            before.guess(backward * factor, left_bounds)
            after.guess(forward * factor, right_bounds)
            return factor, left_bounds, right_bounds
    return None


def _unfelt(sweep: Sweep, unit: Levels, nodes: range, factor: float) -> bool:
    """Whether some node lies so deep inside the highest levels that no end matters there.

    From a given start an early node may leak more than any later one, so the answer is no there.
    """
    if sweep.timeline.independent:  # what is exact as it is
        return False
    if sweep.timeline.laws is None:
        if not sweep.timeline.possible.all():  # and earlier ones may have more states
            return False
    elif nodes.start <= len(sweep.timeline.possible):
        return False
    run, first, last = _deepest(sweep, unit, nodes)
    highest = (row[run] == row.max() for row in (unit.own, unit.forward, unit.backward))
    room = (last - first - sweep.episode + 1) // 2
    if room < 1 or not all(highest) or sweep.timeline.order is not None:
        return False
    most = min(room, MOST_WARM_UP)
    many = unit.length * len(sweep.timeline.pairs[0]) * len(sweep.timeline.spans) > _FROM_END_TO_END
    bits = _HARDLY if many else _BITS
    if sweep.timeline.period == 1 and _reach(sweep, unit, factor, most, bits) < most:
        return True
    return many and room > MOST_WARM_UP


def _long_work(sweep: Sweep, length: int) -> bool:
    """Whether one number for all pairs must do: a sweep would take minutes, or laws never converge.

    A given start is followed for a limited number of nodes; later ones use bounds of any start.
    """
    timeline, steps = sweep.timeline, min(length, MOST_WARM_UP)
    if timeline.laws is not None and len(timeline.laws) > steps:
        if length > len(timeline.laws) and sweep.coarse is not None and sweep.coarse.diameters:
            return True
        steps = len(timeline.laws)
    most = _MOST_PROGRAMS if sweep.coarse is not None and sweep.coarse.diameters else _MOST_AT_ALL
    return len(timeline.pairs[0]) * len(timeline.spans) * steps > most


def _whatever_the_start(
    sweep: Sweep, side: ContractionSide, unit: Levels, epsilon: float
) -> tuple[float, Leak]:
    """The largest factor for every start at once, in an infinite series or charging all at once."""
    nothing = np.empty((0, sweep.timeline.size), dtype=np.bool_)
    ever = np.ones((sweep.timeline.period, sweep.timeline.size))
    timeline = replace(sweep.timeline, laws=None, possible=nothing, limits=ever)
    exact = timeline.period == 1 and timeline.size <= _MOST_STATES
    left = ExactSide(timeline, to_left=True) if exact else side
    own, low = float(unit.own.max()), epsilon / unit.total
    candidates = [(low, _all_at_once(epsilon, own * low))]
    for left_side, right_side in ((side, side), (left, sweep.right)):
        endless = replace(sweep, timeline=timeline, left=left_side, right=right_side)
        if (better := _endless(endless, unit, epsilon)) is not None:
            candidates.append(better)
    return max(candidates, key=lambda left_side: left_side[0])


def _all_at_once(epsilon: float, own: float) -> Leak:
    """The leak of a node in the middle to which everything spent is charged."""
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
    """About how many nodes away an end matters on either side; at most `most`."""
    sides = (sweep.left, unit.backward), (sweep.right, unit.forward)
    reaches = [0]
    for side, levels in sides:
        if isinstance(side, ContractionSide):
            reaches.append(side.boundary_reach(most, bits))
        elif isinstance(side, ExactSide) and side.timeline.size > 1:
            reaches.append(
                side.homogeneous.boundary_reach(float(levels.max()) * factor, most, bits)
            )
    return max(reaches)


def _deepest(sweep: Sweep, unit: Levels, nodes: range) -> tuple[int, int, int]:
    """The longest run of the highest level, and its first and last secret node."""
    longest = np.where(unit.own == unit.own.max(), unit.last - unit.first, -1)
    run = int(np.argmax(longest))
    first = max(int(unit.first[run]), nodes.start, len(sweep.timeline.possible) + 1)
    return run, first, min(int(unit.last[run]), nodes.stop - 1)


def _middle(sweep: Sweep, unit: Levels, nodes: range) -> int:
    """The node in the middle of the longest run of the highest level."""
    _, first, last = _deepest(sweep, unit, nodes)
    return (first + last + 1) // 2
