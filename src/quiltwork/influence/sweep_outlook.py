"""A belief seen by the sweep: the noise it asks for and what it makes of some noise.

Theorem: docs/theory/sweep.md
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from fractions import Fraction
from functools import lru_cache
from typing import Literal

import numpy as np

from quiltwork.beliefs import Belief
from quiltwork.exact import float_down, float_up
from quiltwork.influence.profile import Profile, Run, combined, runs_of
from quiltwork.influence.question import NoiseNeeded, Question
from quiltwork.influence.sweep import Leak, Levels, Sweep, Sweepable, largest_factor, sweep_of
from quiltwork.influence.sweep.endless import MOST_WARM_UP, SHORT
from quiltwork.influence.sweep.program import FloatArray, IntArray

_ROUNDING = 1 + Fraction(1, 2**50)
_SAME = 1 + Fraction(1, 2**28)
_PROFILE_LEVELS = 32
_LEVELS = 3


@dataclass(frozen=True, eq=False)
class SweptOutlook:
    """One belief seen by the sweep, for a series of a given length."""

    belief: Belief
    length: int
    method: Literal["sweep"] = "sweep"

    def sweep(self, episode: int = 1) -> Sweepable:
        """The sweep itself; the last few are kept, with what they have learnt."""
        return _sweep_of(self.belief, self.length, episode)

    def scale(self, question: Question, epsilon: Fraction) -> NoiseNeeded:
        """The least noise with which no secret leaks more than epsilon."""
        unit = question.charge.levels(self.length)
        factor, leak = largest_factor(
            self.sweep(question.episode), unit, question.nodes, float_down(epsilon)
        )
        if math.isinf(factor):
            return self._said(question, leak, Fraction(0))
        bound = _ROUNDING / Fraction(factor)
        answer = self._said(question, leak, bound)
        everything = question.charge.change(1, self.length)
        scale = _exact_if_alone(answer, answer.change / epsilon, bound)
        if scale < everything / epsilon:
            return replace(answer, scale=scale)
        nearby = answer.nearby if answer.change == everything else self.length
        return NoiseNeeded(everything / epsilon, answer.node, everything, nearby, 0.0)

    def _said(self, question: Question, leak: Leak, scale: Fraction) -> NoiseNeeded:
        """What is told about the secret that leaks most, at some noise.

        Where neighbours add nothing, that is the one that is charged so much: a bound over many
        secrets may have been found at another.
        """
        more, added = question.episode - 1, leak.before + leak.after
        first, last = question.nodes.start, question.nodes.stop - 1
        starts = np.array([leak.node])
        if added == 0 and leak.own > 0:
            runs = question.charge.levels(self.length)
            ends = np.concatenate([[leak.node], runs.first, runs.last - more])
            starts = np.clip(ends, first, max(first, last - more))  # the one found goes first
        changes = question.charge.changes(starts, np.minimum(starts + more, self.length))
        so_much = changes <= leak.own * float(scale) * (1 + 2.0**-24)
        which = int(np.argmax(np.where(so_much, changes, -1)))
        node, change = int(starts[which]), int(changes[which])
        points = min(more, self.length - node) + 1
        return NoiseNeeded(scale, node, change, points, added, (), leak.before)

    def told(self, question: Question, scale: Fraction) -> tuple[float, NoiseNeeded]:
        """What noise of this scale leaks about the worst secret, rounded up, and which that is."""
        if scale == 0:
            return 0.0, NoiseNeeded(scale, question.nodes.start, 0, 0, 0.0)
        found = self.worst(question, scale)
        answer = self._said(question, found, scale)
        if found.leak == 0:
            return 0.0, answer
        leak = float_up(_exact_if_alone(answer, answer.change / scale, Fraction(found.leak)))
        return min(leak, float_up(question.charge.change(1, self.length) / scale)), answer

    def worst(self, question: Question, scale: Fraction) -> Leak:
        """The worst secret at this scale."""
        levels = question.charge.levels(self.length).times(float_up(1 / scale))
        sweep = self.sweep(question.episode)
        found = at_highest_levels(sweep, levels, question.nodes)
        return found or sweep.worst(levels, question.nodes)

    def profile(self, question: Question, epsilon: Fraction) -> Profile:
        """The scale that each node needs: the least of some scales at which it leaks ε or less."""
        needed = float_up(self.scale(question, epsilon).scale)
        nodes = question.nodes
        if needed == 0:
            return Profile((Run(nodes.start, nodes.stop - 1, 0.0),))
        unit = question.charge.levels(self.length)
        least = float(unit.own.max()) / float(epsilon)
        scales = np.geomspace(needed, max(min(least, needed) / 64, needed / 4096), _PROFILE_LEVELS)
        sweep, found = self.sweep(question.episode), []
        for scale in scales.tolist():
            first, last, leak = sweep.profile(unit.times(1 / scale), nodes)
            fits = leak <= float(epsilon) * (1 + 2.0**-30)
            asked = np.where(leak == 0, 0.0, scale)  # about known nodes nothing leaks
            found.append(runs_of(first, last, np.where(fits, asked, needed)))
            if found[1:] and not fits.any():
                break
        return combined(found, np.minimum)


def at_highest_levels(sweep: Sweepable, levels: Levels, nodes: range) -> Leak | None:
    """The leak of an endless series of the highest levels, where states have many behind them.

    It bounds every node of a stationary one, and takes seconds where a sweep of all takes minutes.
    Lower levels serve as well, if what is spent above them is added as a whole: few points cost
    little so. None where no level has a bound and a sweep takes seconds.
    """
    if not isinstance(sweep, Sweep) or sweep.walk.all_told or levels.length <= SHORT:
        return None
    if sweep.walk.laws is None or len(sweep.walk.possible):
        return None
    own, sizes = sweep.charged(levels).own, levels.last - levels.first + 1
    level, known = float(own.max()), False
    if level == 0:
        return None
    node, rest = (nodes.start + nodes.stop) // 2, max(levels.total - level, 0.0) / 2
    worst = Leak(levels.total, node, level, rest, rest)
    for _ in range(_LEVELS):
        found = sweep.constant(level, level, level)
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


def _exact_if_alone(found: NoiseNeeded, exact: Fraction, bound: Fraction) -> Fraction:
    """What a secret's own charge comes to, where neighbours add nothing and that is the bound."""
    return exact if found.influence == 0 and exact * _SAME >= bound else bound


@lru_cache(maxsize=32)
def _sweep_of(belief: Belief, length: int, episode: int) -> Sweepable:
    return sweep_of(belief, length, episode)
