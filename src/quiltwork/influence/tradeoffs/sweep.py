"""The f-sweep: what Gaussian releases on a window tell about its worst time point, as a curve.

A window of few points is swept from end to end. For longer ones curves are iterated from
η_γ, which is a bound, until they settle: every iterate bounds every node of every series of that
level, and nodes outside the window leak less than those at its ends. Cost: some tens of steps for
chains that mix, 1/(1 − τ) times more for slow ones; a step takes O(k⁴·points) at most.

Theorem: docs/theory/f-sweep.md
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from quiltwork.influence.kernel.tradeoffs import Bench
from quiltwork.influence.tradeoffs.chain_kernels import ChainKernels
from quiltwork.influence.tradeoffs.curves import CurveGrid, FloatArray

SHORT = 48
"""Windows of so many points are swept from end to end."""
_MOST_STEPS = 20_000
_LOOK_AGAIN = 8
"""All reference states are tried in every step of this many."""
_SETTLED = 1e-4
_NEGLIGIBLE = 1e-3


@dataclass(frozen=True)
class Window:
    """The points asked about in a series of `length`, of which `episode` in a row are secret."""

    first: int
    last: int
    length: int
    episode: int = 1

    @property
    def points(self) -> int:
        """How many there are."""
        return self.last - self.first + 1


@dataclass(frozen=True, eq=False)
class Settled:
    """Curves that bound every node, by phase, `steps` after a start, up to a level."""

    level: float
    curves: dict[int, FloatArray]
    steps: int


@dataclass(frozen=True, eq=False)
class TradeoffSweep:
    """Curves of one chain on one grid.

    Args:
        precision: curves below it need not settle; a share of δ.
        pure: what every point of a window has of mechanisms with pure levels besides.
    """

    kernels: ChainKernels
    grid: CurveGrid
    precision: float
    pure: float = 0.0
    settled: dict[int, list[Settled]] = field(default_factory=dict, init=False)
    """By direction, the levels that were swept without an end."""

    def worst(self, level: float, window: Window) -> FloatArray:
        """What the worst secret leaks if every point of the window is of this level."""
        return _Sweep(self, level, window).worst()


class _Sweep:
    """The curves of one level."""

    def __init__(self, of: TradeoffSweep, level: float, window: Window) -> None:
        self.kernels, self.grid, self.window = of.kernels, of.grid, window
        self.precision = of.precision * _NEGLIGIBLE
        self.bench = Bench(self.kernels.size, of.grid.gamma)
        self.kept, self.size_of_level = of.settled, level
        self.level = of.grid.gaussian(level, of.pure)
        together = min(window.episode, window.points) * (1 + 2.0**-50)
        self.block = of.grid.gaussian(level * together, of.pure * together)
        self.spread = of.grid.spread(self.kernels.diameter)
        self.tolerance = _SETTLED / self.kernels.steps_that_matter

    def worst(self) -> FloatArray:
        if self.kernels.independent:
            return self.block
        window = self.window
        pairs = self.kernels.size * (self.kernels.size - 1)
        if window.length <= SHORT:
            return self._swept(1, window.length)
        if window.points <= SHORT and self.kernels.apart.sum() == pairs:
            return self._swept(window.first, window.last)
        return self._endless()

    def _swept(self, first: int, last: int) -> FloatArray:
        """From end to end: before the first and after the last of these nodes nothing is told."""
        nodes = range(first, last + 1)
        rights, lefts = {last: self._nothing()}, {first: self._nothing(first)}
        for node in reversed(nodes[:-1]):
            rights[node] = self._right(node, rights[node + 1], self._level_at(node + 1))
        for node in nodes[:-1]:
            lefts[node + 1] = self._left(node, lefts[node], self._level_at(node))
        more = min(self.window.episode, len(nodes)) - 1
        told = []
        for node in nodes[: len(nodes) - more]:
            end = node + more
            pairs = self._pairs_at(node), self._pairs_at(end)
            told.append(self._told(rights[end], lefts[node], pairs[0], pairs[1], more))
        return np.asarray(np.max(told, axis=0))

    def _level_at(self, node: int) -> FloatArray:
        inside = self.window.first <= node <= self.window.last
        return self.level if inside else self.grid.nothing

    def _endless(self) -> FloatArray:
        """Curves that bound every node, phase by phase; on the left also those after a start."""
        kernels, window = self.kernels, self.window
        period, start = kernels.period, len(kernels.first)
        settled, steps = self._settled(self._left, 1)
        rights = settled if kernels.reversible else self._settled(self._right, -1)[0]
        late = range(start + 1, start + 1 + period)
        pairs = {(node - 1) % period: self._pairs_at(node) for node in late}
        lefts = {phase: _of_pairs(curves, pairs[phase]) for phase, curves in settled.items()}
        if window.first <= start:
            curves = self._nothing(window.first)
            for node in range(window.first, start + steps + 1):
                phase, can = (node - 1) % period, self._pairs_at(node)
                lefts[phase] = np.maximum(lefts[phase], _of_pairs(curves, can))
                pairs[phase] = pairs[phase] | can
                curves = self._left(node, curves, self.level)
        more = min(window.episode, window.points) - 1
        told = []
        for phase in range(period):
            end = (phase + more) % period
            told.append(self._told(rights[end], lefts[phase], pairs[phase], pairs[end], more))
        return np.asarray(np.max(told, axis=0))

    def _pairs_at(self, node: int) -> NDArray[np.uint8]:
        """The pairs of different states that a node can take."""
        can = self.kernels.possible_at(node)
        return (can[:, None] & can[None] & _different(self.kernels.size)).astype(np.uint8)

    def _settled(
        self, step: Callable[..., FloatArray], direction: int
    ) -> tuple[dict[int, FloatArray], int]:
        """Iterates that began with η_γ, by the phase of their node, and how many steps it took.

        What bounds a higher level bounds this one, so they go on from the next higher one known.
        """
        period, begin = self.kernels.period, len(self.kernels.first) + 1
        node = begin + (period * _MOST_STEPS if direction < 0 else 0)
        bounds = np.ones((self.kernels.size, self.kernels.size, len(self.grid.gamma)))
        known = [one for one in self.kept.get(direction, []) if one.level >= self.size_of_level]
        higher = min(known, key=lambda one: one.level, default=None)
        if higher is not None:
            bounds = higher.curves[(node - 1) % period]
        curves: dict[int, FloatArray] = {}
        change, taken = 0.0, 0
        while taken < _MOST_STEPS or len(curves) < period:
            source = node - 1 if direction < 0 else node
            bounds = step(source, bounds, self.level, every=taken % _LOOK_AGAIN == 0)
            node, taken = node + direction, taken + 1
            phase = (node - 1) % period
            if phase in curves:
                before = curves[phase]
                least = np.maximum(before, self.precision)
                change = max(change, float((np.abs(bounds - before) / least).max()))
            else:
                change = np.inf
            curves[phase] = bounds
            if taken % period == 0:
                if change <= self.tolerance:
                    break
                change = 0.0
        steps = taken + (0 if higher is None else higher.steps)
        self.kept.setdefault(direction, []).append(Settled(self.size_of_level, curves, steps))
        return curves, steps

    def _right(
        self, node: int, curves: FloatArray, level: FloatArray, every: bool = True
    ) -> FloatArray:
        """r of a node from r of the next one, whose level is given."""
        right = self.kernels.right
        if right is None:
            return self._spread(curves, level)
        kernel = right[(node - 1) % self.kernels.period]
        can = np.ones(self.kernels.size, dtype=np.uint8)
        return self.bench.step(level, kernel, curves, self.kernels.apart, can, every=every)

    def _left(
        self, node: int, curves: FloatArray, level: FloatArray, every: bool = True
    ) -> FloatArray:
        """l of the next node from l of a node, whose level is given."""
        kernel = self.kernels.left_from(node)
        if kernel is None:
            return self._spread(curves, level)
        can, margin = self.kernels.possible_at(node + 1), self.kernels.margin
        return self.bench.step(level, kernel, curves, self.kernels.apart, can, margin, every)

    def _spread(self, curves: FloatArray, level: FloatArray) -> FloatArray:
        """The same with one curve for all pairs."""
        pairs = ~np.eye(self.kernels.size, dtype=bool)
        found = self.bench.spread_step(level, self.spread, curves[pairs].max(axis=0))
        return np.where(pairs[:, :, None], found, 0.0)

    def _nothing(self, node: int | None = None) -> FloatArray:
        """Nothing is told; about states that a node cannot take nothing is known."""
        size = self.kernels.size
        can = np.ones(size, dtype=np.uint8) if node is None else self.kernels.possible_at(node)
        none = ~(can[:, None] & can[None]).astype(bool) & ~np.eye(size, dtype=bool)
        return np.where(none[:, :, None], 1.0, np.zeros((1, 1, len(self.grid.gamma))))

    def _told(
        self,
        right: FloatArray,
        left: FloatArray,
        first: NDArray[np.uint8],
        last: NDArray[np.uint8],
        more: int,
    ) -> FloatArray:
        """What is told about a secret of 1 + more nodes, whose ends take these pairs of states."""
        if more == 0:
            asked = self.kernels.apart & first
            return self.bench.leak(self.level, right, left, self.kernels.apart, asked)
        ends = (_of_pairs(right, last), _of_pairs(left, first))
        after, before = (curves.max(axis=(0, 1)) for curves in ends)
        return self.bench.compose(self.bench.compose(self.block, after), before)


def _of_pairs(curves: FloatArray, pairs: NDArray[np.uint8]) -> FloatArray:
    """The curves of some pairs; of others nothing is asked."""
    return np.where(pairs[:, :, None] > 0, curves, 0.0)


def _different(size: int) -> NDArray[np.uint8]:
    return (1 - np.eye(size)).astype(np.uint8)
