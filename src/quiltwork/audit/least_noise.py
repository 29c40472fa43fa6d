"""Exact calibration: the least noise whose exact leakage is at most ε.

Larger noise is post-processing of smaller noise, so the leakage falls with the scale and bisection
finds the least scale; the safe end is returned. Where the two ends decide, a step costs
milliseconds at any length. Otherwise laws are computed once, only the noise changes, and a node
that is private at the unsafe end is not evaluated again.

The result is private under the beliefs given and no others: where they may be slightly wrong, give
several, or sweep a `ChainBox` around them.

Theorem: docs/theory/exact-calibration.md
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction

import numpy as np

from quiltwork.audit.additive import JointStatistic
from quiltwork.audit.ends import Ends, TiltedChain
from quiltwork.audit.node_levels import LawBlock, Laws, NodeLevels, Rate, block_levels
from quiltwork.audit.power_iteration import OutOfRangeError
from quiltwork.beliefs.matrices import FloatArray
from quiltwork.errors import UnsupportedError
from quiltwork.exact import float_down
from quiltwork.roots import bisect
from quiltwork.wording import argument

_HALVINGS = 40
_DOUBLINGS = 8
_SMALLEST = 2.0**-12
_SLACK = 1 + 2.0**-20


@dataclass(frozen=True)
class LeastScale:
    """The least scale, rounded up, with the node, belief and statistic that require it.

    The scale is in units of the statistics' totals.
    """

    scale: Fraction
    node: int | None
    belief: int
    statistic: int


def least_scale(laws: Sequence[Sequence[Laws]], epsilon: Fraction) -> LeastScale:
    """Return the least common noise scale at which every statistic leaks at most ε.

    `laws[b][s]` are those of statistic s under belief b; all parts of a statistic share one unit.
    The scale is that of the noise on the totals, within a relative 2^-39 of the least one.

    Raises:
        UnsupportedError: if ε is so small that rounding errors hide it.
        TooLargeError: if the ends may not decide and a law is out of reach.

    Theorem: docs/theory/exact-calibration.md
    """
    best, level = LeastScale(Fraction(0), None, 1, 0), float_down(epsilon)
    for belief, per_statistic in enumerate(laws, start=1):
        for index, law in enumerate(per_statistic):
            unit = law.statistic.parts[0].unit
            # A statistic that already fits at the best scale so far needs no search of its own.
            low = float(best.scale / unit)
            scale, node = _at_ends(law, level, low) or LeastNoiseSearch(law, level).search(low)
            if Fraction(scale) * unit > best.scale:
                best = LeastScale(Fraction(scale) * unit, node, belief, index)
    return best


def _at_ends(laws: Laws, epsilon: float, low: float) -> tuple[float, int | None] | None:
    """Return the least scale by the two ends; None where another output may leak more.

    Just below this scale the ends leak more than ε, so no smaller scale suffices; that no other
    output leaks more is checked at the scale itself.
    """
    series = TiltedChain(laws)
    if series.order is None:
        return None

    def ends(scale: float) -> Ends:
        # The rate of no noise is infinite; the laws decide this case.
        if scale == 0:
            raise OutOfRangeError
        return series.ends([1 / scale] * len(laws.statistic.parts))

    def fits(scale: float) -> bool:
        return float(ends(scale).leak.max()) <= epsilon

    try:
        # `low` is the scale required by other statistics; if it suffices, this one adds nothing.
        enough = low > 0 and fits(low)
        safe = max(sufficient_scale(laws.statistic, epsilon), 2 * low)
        scale = low if enough else _least(fits, epsilon, low, safe)
        decisive = ends(scale)
    except OutOfRangeError:
        return None
    # The ends are only a lower bound unless the tilted chain is monotone at this very scale.
    if not series.exact(decisive):
        return None
    return scale, None if enough else int(decisive.starts[decisive.leak.argmax()])


def _least(fits: Callable[[float], bool], epsilon: float, low: float, safe: float) -> float:
    """Return the safe end of a bracket around the least scale above `low` that fits.

    By bisection. A scale that suffices in theory is doubled until rounding errors do not hide it.
    """
    for _ in range(_DOUBLINGS):
        if fits(safe):
            break
        safe *= 2
    else:
        raise UnsupportedError(
            f"epsilon is {epsilon:g}, too small to separate the exact leakage from rounding "
            f"errors; use {argument('method', 'exact')}."
        )
    while safe / 2 > max(low, _SMALLEST) and fits(safe / 2):
        safe /= 2
    # Below the smallest scale the only candidate is no noise at all.
    if safe / 2 <= _SMALLEST and low == 0 and fits(0.0):
        return 0.0
    return bisect(fits, max(low, safe / 2 if safe / 2 > _SMALLEST else 0.0), safe, _HALVINGS)[1]


class LeastNoiseSearch:
    """The search for the least noise of one statistic under one belief, over all its nodes."""

    def __init__(self, laws: Laws, epsilon: float, logs: bool = False) -> None:
        self.laws, self.epsilon = laws, epsilon
        self.blocks: list[LawBlock] = list(laws.blocks(logs=logs or not laws.in_floats))

    def search(self, low: float) -> tuple[float, int | None]:
        """Return the least scale from `low` on that fits all nodes, rounded up, and its node.

        The node that leaks most is bisected alone, then its scale is tried on all nodes, until none
        fails: mostly two or three rounds. Blocks differ in their rounding margins, so each round
        also adds a step, which doubles: at most some forty rounds.
        """
        step, node = 0.0, None
        enough = sufficient_scale(self.laws.statistic, self.epsilon)
        worst = self._failing(low) if low > 0 else self._worst(self._levels(max(enough, low)))
        while worst is not None:
            node = worst
            single = replace(self.laws, nodes=range(worst, worst + 1))
            logs = bool(self.blocks) and self.blocks[0].logs
            alone = LeastNoiseSearch(single, self.epsilon, logs=logs)
            scale = _least(alone.fits, self.epsilon, low, max(enough, 2 * low))
            low = max(scale, low * (1 + step))
            # The step doubles, so that two nodes whose margins differ cannot alternate for long.
            step = max(2 * step, 2.0**-_HALVINGS)
            worst = self._failing(low)
        return low, node

    def fits(self, scale: float) -> bool:
        """Return whether no node leaks more than ε at this scale."""
        return all(bool((level.leak <= self.epsilon).all()) for level in self._levels(scale))

    def _failing(self, scale: float) -> int | None:
        """Drop the nodes that are private at this scale; return the worst of the others."""
        levels = self._levels(scale)
        failing = [level.leak > self.epsilon for level in levels]
        worst = self._worst(levels) if any(part.any() for part in failing) else None
        pairs = zip(self.blocks, failing, strict=True)
        self.blocks = [block.only(part) for block, part in pairs if part.any()]
        return worst

    def _worst(self, levels: list[NodeLevels]) -> int | None:
        if not levels:
            return None
        part = max(levels, key=lambda level: float(level.leak.max()))
        return int(part.nodes[part.leak.argmax()])

    def _levels(self, scale: float) -> list[NodeLevels]:
        if not self.blocks:
            return []
        rates = _rates(self.laws.statistic, scale)
        if scale or self.blocks[0].logs:
            levels = [block_levels(block, self.laws, rates) for block in self.blocks]
            if not any(level is None for level in levels):
                return [level for level in levels if level is not None]
        self._use_logarithms()
        levels = [block_levels(block, self.laws, rates) for block in self.blocks]
        return [level for level in levels if level is not None]

    def _use_logarithms(self) -> None:
        # Logarithms cost far more, so only the nodes that are still open are computed again.
        remaining = np.concatenate([block.nodes for block in self.blocks])
        span = range(int(remaining.min()), int(remaining.max()) + 1)
        blocks = replace(self.laws, nodes=span).blocks(logs=True)
        chosen = [block.only(np.isin(block.nodes, remaining)) for block in blocks]
        self.blocks = [block for block in chosen if len(block.nodes)]


def sufficient_scale(statistic: JointStatistic, epsilon: float) -> float:
    """Return a scale at which even the whole range of the statistics leaks at most ε."""
    whole = sum(part.size - 1 for part in statistic.parts)
    return max(whole / epsilon, 2.0**-10) * _SLACK


def _rates(statistic: JointStatistic, scale: float | FloatArray) -> tuple[Rate, ...]:
    with np.errstate(divide="ignore"):
        return (np.divide(1.0, scale),) * len(statistic.parts)


def scales_per_node(laws: Laws, epsilon: Fraction, logs: bool = False) -> FloatArray:
    """Return the scale that each node requires alone, rounded up; 0 for nodes with one state.

    In units of the integer statistic. All nodes are bisected side by side, each with its own noise.
    """
    needed = np.zeros(len(laws.nodes))
    for block in laws.blocks(logs=logs or not laws.in_floats):
        low = np.zeros(len(block.nodes))
        high = np.full(len(block.nodes), sufficient_scale(laws.statistic, float_down(epsilon)))
        for _ in range(_HALVINGS):
            middle = (low + high) / 2
            levels = block_levels(block, laws, _rates(laws.statistic, middle[:, None]))
            if levels is None:
                return scales_per_node(laws, epsilon, logs=True)
            fits = levels.leak <= float_down(epsilon)
            low, high = np.where(fits, low, middle), np.where(fits, middle, high)
        needed[block.nodes - laws.nodes.start] = high
    return needed
