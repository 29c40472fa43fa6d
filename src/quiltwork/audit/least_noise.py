"""Exact calibration: the least noise whose exact leakage is at most ε.

Larger noise is post-processing of smaller, so the leakage falls with the scale and bisection
finds the least one; the safe end is returned. Where the two ends decide, a step costs milliseconds
at any length. Otherwise laws are computed once, only the noise changes, and a node that is private
at the unsafe end is never looked at again.

The result is private under the beliefs given and under nothing else: where
they may be slightly wrong, give several, or sweep a `ChainBox` around them.

Theorem: docs/theory/exact-calibration.md
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction

import numpy as np

from quiltwork.audit.additive import Joint
from quiltwork.audit.ends import Ends, TiltedChain
from quiltwork.audit.node_levels import LawBlock, Laws, NodeLevels, Rate, block_levels
from quiltwork.audit.orbits import OutOfRangeError
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
    """The least scale, rounded up, and the node, belief and statistic that need it.

    The scale is in units of the statistics' totals.
    """

    scale: Fraction
    node: int | None
    belief: int
    statistic: int


def least_scale(laws: Sequence[Sequence[Laws]], epsilon: Fraction) -> LeastScale:
    """Return the least common scale with which every statistic leaks at most ε under each belief.

    `laws[b][s]` are those of statistic s under belief b; all parts of a statistic have one unit.
    The scale is that of the noise on their totals, within a relative 2^-39 of the least one.

    Raises:
        UnsupportedError: if ε is so small that rounding errors hide it.
        TooLargeError: if the ends may not decide and a law is out of reach.

    Theorem: docs/theory/exact-calibration.md
    """
    best, level = LeastScale(Fraction(0), None, 1, 0), float_down(epsilon)
    for belief, per_statistic in enumerate(laws, start=1):
        for index, one in enumerate(per_statistic):
            unit = one.statistic.parts[0].unit
            low = float(best.scale / unit)
            scale, node = _at_ends(one, level, low) or Search(one, level).search(low)
            if Fraction(scale) * unit > best.scale:
                best = LeastScale(Fraction(scale) * unit, node, belief, index)
    return best


def _at_ends(laws: Laws, epsilon: float, low: float) -> tuple[float, int | None] | None:
    """The least scale by what the two ends tell; None where another output may tell more.

    Just below the scale found the ends tell more than ε, so no smaller one will do; that none
    tells more at this scale itself is checked there.
    """
    series = TiltedChain(laws)
    if series.order is None:
        return None

    def ends(scale: float) -> Ends:
        if scale == 0:
            raise OutOfRangeError
        return series.ends([1 / scale] * len(laws.statistic.parts))

    def fits(scale: float) -> bool:
        return float(ends(scale).leak.max()) <= epsilon

    try:
        enough = low > 0 and fits(low)
        safe = max(surely_enough(laws.statistic, epsilon), 2 * low)
        scale = low if enough else _least(fits, epsilon, low, safe)
        found = ends(scale)
    except OutOfRangeError:
        return None
    if not series.exact(found):
        return None
    return scale, None if enough else int(found.starts[found.leak.argmax()])


def _least(fits: Callable[[float], bool], epsilon: float, low: float, safe: float) -> float:
    """The safe end of a bracket around the least scale above `low` that fits, by bisection.

    A scale that is surely enough is doubled until rounding errors do not hide that it is.
    """
    for _ in range(_DOUBLINGS):
        if fits(safe):
            break
        safe *= 2
    else:
        raise UnsupportedError(
            f"epsilon is {epsilon:g}, too small to tell the exact leakage from rounding errors; "
            f"use {argument('method', 'exact')}."
        )
    while safe / 2 > max(low, _SMALLEST) and fits(safe / 2):
        safe /= 2
    if safe / 2 <= _SMALLEST and low == 0 and fits(0.0):
        return 0.0
    return bisect(fits, max(low, safe / 2 if safe / 2 > _SMALLEST else 0.0), safe, _HALVINGS)[1]


class Search:
    """The least noise for one statistic under one belief; nodes that pass are dropped for good."""

    def __init__(self, laws: Laws, epsilon: float, logs: bool = False) -> None:
        self.laws, self.epsilon = laws, epsilon
        self.blocks: list[LawBlock] = list(laws.blocks(logs=logs or not laws.in_floats))

    def search(self, low: float) -> tuple[float, int | None]:
        """Return the least scale from `low` on that fits all nodes, rounded up, and who needs it.

        The node that leaks most is bisected alone, then all are tried with its scale, until none
        fails; mostly two or three rounds. Blocks differ in their rounding margins, so each round
        also adds a step, which doubles: there are never more than some forty.
        """
        step, node = 0.0, None
        enough = surely_enough(self.laws.statistic, self.epsilon)
        worst = self._failing(low) if low > 0 else self._worst(self._levels(max(enough, low)))
        while worst is not None:
            node = worst
            one = replace(self.laws, nodes=range(worst, worst + 1))
            alone = Search(one, self.epsilon, logs=bool(self.blocks) and self.blocks[0].logs)
            found = _least(alone.fits, self.epsilon, low, max(enough, 2 * low))
            low = max(found, low * (1 + step))
            step = max(2 * step, 2.0**-_HALVINGS)
            worst = self._failing(low)
        return low, node

    def fits(self, scale: float) -> bool:
        """Whether no node leaks more than ε at this scale."""
        return all(bool((level.leak <= self.epsilon).all()) for level in self._levels(scale))

    def _failing(self, scale: float) -> int | None:
        """Drop the nodes that are private at this scale; return the worst of the others."""
        found = self._levels(scale)
        kept = [level.leak > self.epsilon for level in found]
        worst = self._worst(found) if any(part.any() for part in kept) else None
        pairs = zip(self.blocks, kept, strict=True)
        self.blocks = [block.only(part) for block, part in pairs if part.any()]
        return worst

    def _worst(self, found: list[NodeLevels]) -> int | None:
        if not found:
            return None
        part = max(found, key=lambda level: float(level.leak.max()))
        return int(part.nodes[part.leak.argmax()])

    def _levels(self, scale: float) -> list[NodeLevels]:
        if not self.blocks:
            return []
        rates = _rates(self.laws.statistic, scale)
        if scale or self.blocks[0].logs:
            found = [block_levels(block, self.laws, rates) for block in self.blocks]
            if not any(level is None for level in found):
                return [level for level in found if level is not None]
        self._use_logarithms()
        found = [block_levels(block, self.laws, rates) for block in self.blocks]
        return [level for level in found if level is not None]

    def _use_logarithms(self) -> None:
        kept = np.concatenate([block.nodes for block in self.blocks])
        span = range(int(kept.min()), int(kept.max()) + 1)
        blocks = replace(self.laws, nodes=span).blocks(logs=True)
        chosen = [block.only(np.isin(block.nodes, kept)) for block in blocks]
        self.blocks = [block for block in chosen if len(block.nodes)]


def surely_enough(statistic: Joint, epsilon: float) -> float:
    """A scale at which not even the whole range of the statistics tells more than ε."""
    whole = sum(part.size - 1 for part in statistic.parts)
    return max(whole / epsilon, 2.0**-10) * _SLACK


def _rates(statistic: Joint, scale: float | FloatArray) -> tuple[Rate, ...]:
    with np.errstate(divide="ignore"):
        return (np.divide(1.0, scale),) * len(statistic.parts)


def scales_per_node(laws: Laws, epsilon: Fraction, logs: bool = False) -> FloatArray:
    """Return the scale that each node needs on its own, rounded up; 0 for nodes without doubt.

    In units of what the steps of the statistic add up to, as the searches above. Bisects all
    nodes side by side, each with a noise of its own.
    """
    needed = np.zeros(len(laws.nodes))
    for block in laws.blocks(logs=logs or not laws.in_floats):
        low = np.zeros(len(block.nodes))
        high = np.full(len(block.nodes), surely_enough(laws.statistic, float_down(epsilon)))
        for _ in range(_HALVINGS):
            middle = (low + high) / 2
            found = block_levels(block, laws, _rates(laws.statistic, middle[:, None]))
            if found is None:
                return scales_per_node(laws, epsilon, logs=True)
            fits = found.leak <= float_down(epsilon)
            low, high = np.where(fits, low, middle), np.where(fits, middle, high)
        needed[block.nodes - laws.nodes.start] = high
    return needed
