"""The bound of a belief by the sweep: the noise it needs, and the leakage at a given noise.

Theorem: docs/theory/sweep.md
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from fractions import Fraction
from functools import lru_cache
from typing import ClassVar, Literal

import numpy as np

from quiltwork.beliefs import Belief, HiddenChain, MarkovChain
from quiltwork.beliefs.secrets import SecretPairs
from quiltwork.exact import float_down, float_up
from quiltwork.influence.belief_bound import (
    BeliefBound,
    CalibrationProblem,
    Charges,
    WorstPoint,
    WorstSecret,
)
from quiltwork.influence.profile import Profile, Run, combined, runs_of
from quiltwork.influence.quilts.quilt_bound import QuiltBound, default_quilts
from quiltwork.influence.sweep import (
    Leak,
    Levels,
    Sweep,
    Sweepable,
    largest_factor,
    sweep_of,
)
from quiltwork.influence.sweep.leakage import MOST_WARM_UP, SHORT
from quiltwork.influence.sweep.program import FloatArray, IntArray
from quiltwork.influence.sweep.step import ExactSide

_TIE = 2.0**-40
"""Charges within this relative distance of the largest are compared as fractions."""
_ROUNDING = 1 + Fraction(1, 2**50)
_SAME = 1 + Fraction(1, 2**28)
"""A bound within this factor of a secret's own charge is that charge: neighbours add nothing."""
_PROFILE_LEVELS = 32
_LEVELS = 3


@dataclass(frozen=True, eq=False)
class SweepBound(BeliefBound):
    """The bound of one belief by the sweep, for a series of a given length."""

    belief: Belief
    length: int
    method: Literal["sweep"] = "sweep"
    pairs: SecretPairs | None = None
    theorem: ClassVar[str] = "Sweep"
    by_levels: ClassVar[bool] = True
    swept: ClassVar[bool] = True

    def sweep(self, episode: int = 1) -> Sweepable:
        """The sweep of this belief, from a small cache of sweeps without their results."""
        return _sweep_of(self.belief, self.length, episode, self.pairs).without_cache()

    def required_scale(self, problem: CalibrationProblem, epsilon: Fraction) -> WorstSecret:
        """The least noise with which no secret leaks more than epsilon."""
        unit = problem.charge.levels(self.length)
        factor, leak = largest_factor(
            self.sweep(problem.episode), unit, problem.nodes, float_down(epsilon)
        )
        if math.isinf(factor):
            return self._worst_secret(problem, leak, Fraction(0))
        bound = _ROUNDING / Fraction(factor)
        answer = self._worst_secret(problem, leak, bound)
        total_change = problem.charge.change(1, self.length)
        scale = _exact_if_alone(answer, answer.change / epsilon, bound)
        # noise for changing every node at once is always sufficient
        if scale < total_change / epsilon:
            return replace(answer, scale=scale)
        nearby = answer.nearby if answer.change == total_change else self.length
        return WorstSecret(total_change / epsilon, answer.node, total_change, nearby, 0.0)

    def _worst_secret(
        self, problem: CalibrationProblem, leak: Leak, scale: Fraction
    ) -> WorstSecret:
        """The secret that leaks most, with its sensitivity and influence.

        Where neighbours add nothing, it is the one with this charge: a bound over many secrets may
        have been attained at another node.
        """
        more, influence = problem.episode - 1, leak.before + leak.after
        first, last = problem.nodes.start, problem.nodes.stop - 1
        starts = np.array([leak.node])
        if influence == 0 and leak.own > 0:
            runs = problem.charge.levels(self.length)
            ends = np.concatenate([[leak.node], runs.first, runs.last - more])
            starts = np.clip(
                ends, first, max(first, last - more)
            )  # the node of the leak comes first, so that it wins ties
        changes = problem.charge.changes(starts, np.minimum(starts + more, self.length))
        is_charged = changes <= leak.own * float(scale) * (1 + 2.0**-24)
        index = int(np.argmax(np.where(is_charged, changes, -1)))
        node, change = int(starts[index]), int(changes[index])
        points = min(more, self.length - node) + 1
        return WorstSecret(scale, node, change, points, influence, (), leak.before)

    def leakage_of(self, problem: CalibrationProblem, scale: Fraction) -> tuple[float, WorstSecret]:
        """The leakage of noise of this scale about the worst secret, rounded up, and that
        secret.
        """
        if scale == 0:
            return 0.0, WorstSecret(scale, problem.nodes.start, 0, 0, 0.0)
        worst = self.worst_leak(problem, scale)
        answer = self._worst_secret(problem, worst, scale)
        if worst.leak == 0:
            return 0.0, answer
        leak = float_up(_exact_if_alone(answer, answer.change / scale, Fraction(worst.leak)))
        # nothing leaks more than the release itself spends
        return min(leak, float_up(problem.charge.change(1, self.length) / scale)), answer

    def worst_leak(self, problem: CalibrationProblem, scale: Fraction) -> Leak:
        """The worst secret at this scale."""
        levels = problem.charge.levels(self.length).times(float_up(1 / scale))
        sweep = self.sweep(problem.episode)
        leak = at_highest_levels(sweep, levels, problem.nodes)
        return leak or sweep.worst(levels, problem.nodes)

    def scale_profile(self, problem: CalibrationProblem, epsilon: Fraction) -> Profile:
        """The scale that each node needs: the least of some scales at which it leaks ε or less."""
        needed = float_up(self.required_scale(problem, epsilon).scale)
        nodes = problem.nodes
        if needed == 0:
            return Profile((Run(nodes.start, nodes.stop - 1, 0.0),))
        unit = problem.charge.levels(self.length)
        # no node needs less than its own level asks for
        least = float(unit.own.max()) / float(epsilon)
        scales = np.geomspace(needed, max(min(least, needed) / 64, needed / 4096), _PROFILE_LEVELS)
        sweep, profiles = self.sweep(problem.episode), []
        for scale in scales.tolist():
            first, last, leak = sweep.profile(unit.times(1 / scale), nodes)
            suffices = leak <= float(epsilon) * (1 + 2.0**-30)
            needed_scales = np.where(leak == 0, 0.0, scale)  # nodes without a secret need no noise
            profiles.append(runs_of(first, last, np.where(suffices, needed_scales, needed)))
            if profiles[1:] and not suffices.any():
                break
        return combined(profiles, np.minimum)

    def leakage_at(self, charges: Charges, nodes: range, episode: int) -> WorstPoint:
        """The worst secret of all releases together."""
        levels = charges.levels(self.length)
        worst = _worst_of_levels(self.sweep(episode), levels, nodes)
        if worst.before + worst.after:
            exact = Fraction(worst.leak)
        else:
            exact = Fraction(0)
            if worst.leak:
                exact = _largest_charge(charges, levels, nodes, episode, worst.own)
        exact = min(exact, charges.total)
        return WorstPoint(exact, worst.node, worst.own, worst.before, worst.after)

    def profile(self, charges: Charges, nodes: range, episode: int) -> tuple[IntArray, FloatArray]:
        """The first nodes of runs, and a bound on the leakage of each run."""
        first, _, leak = self.sweep(episode).profile(charges.levels(self.length), nodes)
        return first, leak

    def by_quilts(self) -> QuiltBound:
        """The bound by the sharpest quilts: swept levels do not add up."""
        return QuiltBound(self.belief, self.length, default_quilts(self.belief))

    def hides_all(self, episode: int) -> bool:
        """Whether every time point has several possible states, distinguishable in the data."""
        sweep = self.sweep(episode)
        return isinstance(sweep, Sweep) and sweep.timeline.all_secret

    def largest_level(self, nodes: range, episode: int, epsilon: float) -> float:
        """The largest level on all time points that leaks at most ε."""
        unit = Levels.constant(1.0, self.length)
        return largest_factor(self.sweep(episode), unit, nodes, epsilon)[0]

    def driving_states(
        self, problem: CalibrationProblem, scale: Fraction
    ) -> tuple[int, int] | None:
        """The pair of values at which an infinite series of these levels leaks most.

        None for boxes and for matrices that change with the time of day.
        """
        belief, sweep = self.belief, self.sweep()
        if not isinstance(belief, MarkovChain | HiddenChain) or not isinstance(sweep, Sweep):
            return None
        unit = problem.charge.levels(self.length).times(1 / float(scale))
        pair = _worst_pair(sweep, sweep.charged_levels(unit))
        inner = belief.inner if isinstance(belief, HiddenChain) else belief
        if pair is None or sweep.timeline.size != inner.size:  # impossible states were removed
            return None
        shown = belief.shown[list(pair)] if isinstance(belief, HiddenChain) else pair
        return int(shown[0]), int(shown[1])


def at_highest_levels(sweep: Sweepable, levels: Levels, nodes: range) -> Leak | None:
    """The leakage of an infinite series of the highest levels, for chains with hidden states.

    It bounds every node of a stationary series, and takes seconds where a sweep of all nodes takes
    minutes. A lower level serves as well if the excess above it is added in full: that costs little
    if few points exceed it. None where no level has a bound and a sweep takes seconds.
    """
    if not isinstance(sweep, Sweep) or sweep.timeline.fully_observed or levels.length <= SHORT:
        return None
    if sweep.timeline.laws is None or len(sweep.timeline.possible):
        return None
    own, sizes = sweep.charged_levels(levels).own, levels.last - levels.first + 1
    level, has_bound = float(own.max()), False
    if level == 0:
        return None
    node, half_rest = (nodes.start + nodes.stop) // 2, max(levels.total - level, 0.0) / 2
    worst = Leak(levels.total, node, level, half_rest, half_rest)
    for _ in range(_LEVELS):
        constant = sweep.constant_levels(level, level, level)
        has_bound = has_bound or constant is not None
        above = float((np.maximum(own - level, 0.0) * sizes).sum())
        leak = math.inf if constant is None else (constant.leak + above) * (1 + 2.0**-40)
        if (
            constant is not None
            and leak < worst.leak
            and (above == 0 or constant.before + constant.after)
        ):
            worst = replace(constant, node=node, leak=leak)
        rate = min(math.inf if constant is None else constant.leak, levels.total) / level
        lower = _cheapest(own, sizes, rate)
        # no cheaper level is left to try
        if not 0 < lower < level:
            break
        level = lower
    return worst if has_bound or not sweep.affordable(MOST_WARM_UP) else None


def _cheapest(own: FloatArray, sizes: IntArray, rate: float) -> float:
    """The level with the least cost, its excess included, if the infinite series costs `rate` per
    level.
    """
    order = np.argsort(own)
    levels, sizes = own[order], sizes[order]
    spent, counts = (np.cumsum(row[::-1])[::-1] for row in (levels * sizes, sizes))
    return float(levels[np.argmin(spent - levels * counts + rate * levels)])


def _exact_if_alone(worst: WorstSecret, exact: Fraction, bound: Fraction) -> Fraction:
    """The secret's own charge if its neighbours add nothing and the bound agrees with it, else the
    bound.
    """
    return exact if worst.influence == 0 and exact * _SAME >= bound else bound


@lru_cache(maxsize=32)
def _sweep_of(belief: Belief, length: int, episode: int, pairs: SecretPairs | None) -> Sweepable:
    """The cached sweep of a belief."""
    return sweep_of(belief, length, episode, pairs)


def _worst_pair(sweep: Sweep, levels: Levels) -> tuple[int, int] | None:
    """The pair of states at which `Sweep.constant_levels` is attained; None if all pairs share a
    bound.
    """
    timeline, left, right = sweep.timeline, sweep.left, sweep.right
    if timeline.period > 1 or not isinstance(right, ExactSide):
        return None
    before, after = (
        sweep.left_bounds(float(levels.backward.max())),
        right.fixed(levels.forward.max()),
    )
    if before is None or after is None:
        return None
    late_node = np.array([len(timeline.possible) + 2])
    if isinstance(left, ExactSide):
        before = before + timeline.prior_log_ratios(late_node)
    possible = timeline.possible_at(late_node)[0]
    secret = possible[:, np.newaxis] & possible & timeline.secret
    x, y = np.divmod(np.argmax(np.where(secret, (before + after)[0], -np.inf)), timeline.size)
    return int(x), int(y)


def _worst_of_levels(sweep: Sweepable, levels: Levels, nodes: range) -> Leak:
    """The worst node of a chain or tree.

    For chains with hidden states the highest levels at all nodes are tried too, and where a sweep
    would take minutes, those at all nodes from the first to the last release.
    """
    highest = at_highest_levels(sweep, levels, nodes)
    if highest is not None and len(levels.first) == 1:
        return highest
    is_slow = isinstance(sweep, Sweep) and not sweep.affordable(MOST_WARM_UP)
    worst = sweep.worst(levels.flat() if highest is not None and is_slow else levels, nodes)
    return highest if highest is not None and highest.leak < worst.leak else worst


def _largest_charge(
    charges: Charges, levels: Levels, nodes: range, episode: int, most: float
) -> Fraction:
    """The largest exact charge of a secret itself, where neighbours add nothing.

    Floats select the secrets close to the maximum; only their exact charges are compared. A charge
    above `most` belongs to a node without a secret.
    """
    first, last = nodes.start, nodes.stop - episode
    starts = np.clip(levels.first, first, last)
    starts = np.unique(starts[(levels.last >= first) & (levels.first < nodes.stop)])
    if episode > 1:
        ends = np.clip(levels.last - episode + 1, first, last)
        starts = np.unique(np.concatenate([starts, ends]))
    costs = levels.block(starts, starts + episode - 1)
    fits = costs <= most * (1 + _TIE)
    starts, costs = starts[fits], costs[fits]
    close = starts[costs >= costs.max() * (1 - _TIE)].tolist()
    return max(charges.charge(start, start + episode - 1) for start in close)
