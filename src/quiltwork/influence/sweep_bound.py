"""A belief seen by the sweep: the noise it asks for and what it makes of some noise.

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
from quiltwork.influence.sweep.horizon import MOST_WARM_UP, SHORT
from quiltwork.influence.sweep.program import FloatArray, IntArray
from quiltwork.influence.sweep.step import ExactSide

_TIE = 2.0**-40
_ROUNDING = 1 + Fraction(1, 2**50)
_SAME = 1 + Fraction(1, 2**28)
_PROFILE_LEVELS = 32
_LEVELS = 3


@dataclass(frozen=True, eq=False)
class SweepBound(BeliefBound):
    """One belief seen by the sweep, for a series of a given length."""

    belief: Belief
    length: int
    method: Literal["sweep"] = "sweep"
    pairs: SecretPairs | None = None
    theorem: ClassVar[str] = "Sweep"
    by_levels: ClassVar[bool] = True
    swept: ClassVar[bool] = True

    def sweep(self, episode: int = 1) -> Sweepable:
        """The sweep itself; the last few are kept, without what they have learnt."""
        return _sweep_of(self.belief, self.length, episode, self.pairs).without_cache()

    def required_scale(self, problem: CalibrationProblem, epsilon: Fraction) -> WorstSecret:
        """The least noise with which no secret leaks more than epsilon."""
        unit = problem.charge.levels(self.length)
        factor, leak = largest_factor(
            self.sweep(problem.episode), unit, problem.nodes, float_down(epsilon)
        )
        if math.isinf(factor):
            return self._said(problem, leak, Fraction(0))
        bound = _ROUNDING / Fraction(factor)
        answer = self._said(problem, leak, bound)
        everything = problem.charge.change(1, self.length)
        scale = _exact_if_alone(answer, answer.change / epsilon, bound)
        if scale < everything / epsilon:
            return replace(answer, scale=scale)
        nearby = answer.nearby if answer.change == everything else self.length
        return WorstSecret(everything / epsilon, answer.node, everything, nearby, 0.0)

    def _said(self, problem: CalibrationProblem, leak: Leak, scale: Fraction) -> WorstSecret:
        """What is told about the secret that leaks most, at some noise.

        Where neighbours add nothing, that is the one that is charged so much: a bound over many
        secrets may have been found at another.
        """
        more, added = problem.episode - 1, leak.before + leak.after
        first, last = problem.nodes.start, problem.nodes.stop - 1
        starts = np.array([leak.node])
        if added == 0 and leak.own > 0:
            runs = problem.charge.levels(self.length)
            ends = np.concatenate([[leak.node], runs.first, runs.last - more])
            starts = np.clip(ends, first, max(first, last - more))  # the one found goes first
        changes = problem.charge.changes(starts, np.minimum(starts + more, self.length))
        so_much = changes <= leak.own * float(scale) * (1 + 2.0**-24)
        which = int(np.argmax(np.where(so_much, changes, -1)))
        node, change = int(starts[which]), int(changes[which])
        points = min(more, self.length - node) + 1
        return WorstSecret(scale, node, change, points, added, (), leak.before)

    def leakage_of(self, problem: CalibrationProblem, scale: Fraction) -> tuple[float, WorstSecret]:
        """What noise of this scale leaks about the worst secret, rounded up, and which that is."""
        if scale == 0:
            return 0.0, WorstSecret(scale, problem.nodes.start, 0, 0, 0.0)
        found = self.worst(problem, scale)
        answer = self._said(problem, found, scale)
        if found.leak == 0:
            return 0.0, answer
        leak = float_up(_exact_if_alone(answer, answer.change / scale, Fraction(found.leak)))
        return min(leak, float_up(problem.charge.change(1, self.length) / scale)), answer

    def worst(self, problem: CalibrationProblem, scale: Fraction) -> Leak:
        """The worst secret at this scale."""
        levels = problem.charge.levels(self.length).times(float_up(1 / scale))
        sweep = self.sweep(problem.episode)
        found = at_highest_levels(sweep, levels, problem.nodes)
        return found or sweep.worst(levels, problem.nodes)

    def scale_profile(self, problem: CalibrationProblem, epsilon: Fraction) -> Profile:
        """The scale that each node needs: the least of some scales at which it leaks ε or less."""
        needed = float_up(self.required_scale(problem, epsilon).scale)
        nodes = problem.nodes
        if needed == 0:
            return Profile((Run(nodes.start, nodes.stop - 1, 0.0),))
        unit = problem.charge.levels(self.length)
        least = float(unit.own.max()) / float(epsilon)
        scales = np.geomspace(needed, max(min(least, needed) / 64, needed / 4096), _PROFILE_LEVELS)
        sweep, found = self.sweep(problem.episode), []
        for scale in scales.tolist():
            first, last, leak = sweep.profile(unit.times(1 / scale), nodes)
            fits = leak <= float(epsilon) * (1 + 2.0**-30)
            asked = np.where(leak == 0, 0.0, scale)  # about known nodes nothing leaks
            found.append(runs_of(first, last, np.where(fits, asked, needed)))
            if found[1:] and not fits.any():
                break
        return combined(found, np.minimum)

    def leakage_at(self, charges: Charges, nodes: range, episode: int) -> WorstPoint:
        """The worst node of all that was spent."""
        levels = charges.levels(self.length)
        found = _worst_of_levels(self.sweep(episode), levels, nodes)
        if found.before + found.after:
            exact = Fraction(found.leak)
        else:
            exact = Fraction(0)
            if found.leak:
                exact = _largest_charge(charges, levels, nodes, episode, found.own)
        exact = min(exact, charges.total)
        return WorstPoint(exact, found.node, found.own, found.before, found.after)

    def profile(self, charges: Charges, nodes: range, episode: int) -> tuple[IntArray, FloatArray]:
        """Where runs of nodes begin and what each of them leaks at most."""
        first, _, leak = self.sweep(episode).profile(charges.levels(self.length), nodes)
        return first, leak

    def by_quilts(self) -> QuiltBound:
        """The same belief by its sharpest quilts: swept levels do not add up."""
        return QuiltBound(self.belief, self.length, default_quilts(self.belief))

    def hides_all(self, episode: int) -> bool:
        """Whether every time point may be any of several states, as the data show them."""
        sweep = self.sweep(episode)
        return isinstance(sweep, Sweep) and sweep.timeline.all_secret

    def largest_level(self, nodes: range, episode: int, epsilon: float) -> float:
        """The largest level on all time points that leaks at most ε."""
        unit = Levels.constant(1.0, self.length)
        return largest_factor(self.sweep(episode), unit, nodes, epsilon)[0]

    def driving_states(
        self, problem: CalibrationProblem, scale: Fraction
    ) -> tuple[int, int] | None:
        """The pair at which an endless series of these levels leaks most.

        None for boxes and for matrices that change with the time of day.
        """
        belief, sweep = self.belief, self.sweep()
        if not isinstance(belief, MarkovChain | HiddenChain) or not isinstance(sweep, Sweep):
            return None
        unit = problem.charge.levels(self.length).times(1 / float(scale))
        pair = _most_told(sweep, sweep.charged_levels(unit))
        inner = belief.inner if isinstance(belief, HiddenChain) else belief
        if (
            pair is None or sweep.timeline.size != inner.size
        ):  # states that never occur have no place
            return None
        shown = belief.shown[list(pair)] if isinstance(belief, HiddenChain) else pair
        return int(shown[0]), int(shown[1])


def at_highest_levels(sweep: Sweepable, levels: Levels, nodes: range) -> Leak | None:
    """The leak of an endless series of the highest levels, where states have many behind them.

    It bounds every node of a stationary one, and takes seconds where a sweep of all takes minutes.
    Lower levels serve as well, if what is spent above them is added as a whole: few points cost
    little so. None where no level has a bound and a sweep takes seconds.
    """
    if not isinstance(sweep, Sweep) or sweep.timeline.fully_observed or levels.length <= SHORT:
        return None
    if sweep.timeline.laws is None or len(sweep.timeline.possible):
        return None
    own, sizes = sweep.charged_levels(levels).own, levels.last - levels.first + 1
    level, known = float(own.max()), False
    if level == 0:
        return None
    node, rest = (nodes.start + nodes.stop) // 2, max(levels.total - level, 0.0) / 2
    worst = Leak(levels.total, node, level, rest, rest)
    for _ in range(_LEVELS):
        found = sweep.constant_levels(level, level, level)
        known = known or found is not None
        above = float((np.maximum(own - level, 0.0) * sizes).sum())
        leak = math.inf if found is None else (found.leak + above) * (1 + 2.0**-40)
        if found is not None and leak < worst.leak and (above == 0 or found.before + found.after):
            worst = replace(found, node=node, leak=leak)
        rate = min(math.inf if found is None else found.leak, levels.total) / level
        lower = _cheapest(own, sizes, rate)
        if not 0 < lower < level:
            break
        level = lower
    return worst if known or not sweep.affordable(MOST_WARM_UP) else None


def _cheapest(own: FloatArray, sizes: IntArray, rate: float) -> float:
    """The level that costs least, with all above it, if an endless one costs in proportion."""
    order = np.argsort(own)
    levels, sizes = own[order], sizes[order]
    spent, many = (np.cumsum(row[::-1])[::-1] for row in (levels * sizes, sizes))
    return float(levels[np.argmin(spent - levels * many + rate * levels)])


def _exact_if_alone(found: WorstSecret, exact: Fraction, bound: Fraction) -> Fraction:
    """What a secret's own charge comes to, where neighbours add nothing and that is the bound."""
    return exact if found.influence == 0 and exact * _SAME >= bound else bound


@lru_cache(maxsize=32)
def _sweep_of(belief: Belief, length: int, episode: int, pairs: SecretPairs | None) -> Sweepable:
    return sweep_of(belief, length, episode, pairs)


def _most_told(sweep: Sweep, levels: Levels) -> tuple[int, int] | None:
    """The pair at which `Sweep.constant_levels` is attained; None where all pairs have
    one bound.
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
    late = np.array([len(timeline.possible) + 2])
    if isinstance(left, ExactSide):
        before = before + timeline.prior_log_ratios(late)
    possible = timeline.possible_at(late)[0]
    secret = possible[:, np.newaxis] & possible & timeline.secret
    x, y = np.divmod(np.argmax(np.where(secret, (before + after)[0], -np.inf)), timeline.size)
    return int(x), int(y)


def _worst_of_levels(sweep: Sweepable, levels: Levels, nodes: range) -> Leak:
    """The worst node of a chain or tree.

    Of states with many behind them the highest levels on all nodes are looked at too, and where a
    sweep would take minutes those on all nodes from the first to the last release.
    """
    highest = at_highest_levels(sweep, levels, nodes)
    if highest is not None and len(levels.first) == 1:
        return highest
    much = isinstance(sweep, Sweep) and not sweep.affordable(MOST_WARM_UP)
    found = sweep.worst(levels.flat() if highest is not None and much else levels, nodes)
    return highest if highest is not None and highest.leak < found.leak else found


def _largest_charge(
    charges: Charges, levels: Levels, nodes: range, episode: int, most: float
) -> Fraction:
    """The most that is spent on a secret itself, in fractions, where nothing is added.

    Floats say which secrets are close to the most; of these the exact charges are compared. More
    than `most` is spent only on what is known anyway.
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
