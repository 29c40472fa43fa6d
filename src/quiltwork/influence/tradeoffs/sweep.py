"""The f-sweep: the leakage of Gaussian releases on a window about its worst time point, as a curve.

A window of few points is swept from end to end. For longer ones curves are iterated from η_γ, which
is a bound, until they converge: every iterate bounds every node of every series of that level, and
nodes outside the window leak less than those at its ends. Cost: some tens of steps for chains that
mix, 1/(1 − τ) times more for slow ones; a step takes O(k⁴·points) at most.

Theorem: docs/theory/f-sweep.md
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from quiltwork.influence.kernel.tradeoffs import CurveKernel
from quiltwork.influence.tradeoffs.chain_kernels import ChainKernels
from quiltwork.influence.tradeoffs.curves import CurveGrid, FloatArray

SHORT = 48
"""Windows of up to this many points are swept from end to end."""
_MOST_STEPS = 20_000
_LOOK_AGAIN = 8
"""All reference states are tried in every eighth step, in the others only useful ones."""
_SETTLED = 1e-4
_NEGLIGIBLE = 1e-3


@dataclass(frozen=True)
class Window:
    """The points of a query in a series of `length`, of which `episode` in a row are one secret."""

    first: int
    last: int
    length: int
    episode: int = 1

    @property
    def points(self) -> int:
        """The number of points."""
        return self.last - self.first + 1


@dataclass(frozen=True, eq=False)
class Settled:
    """Curves that bound every node, by phase, `steps` after a start, up to a level."""

    level: float
    curves: dict[int, FloatArray]
    steps: int


@dataclass(frozen=True, eq=False)
class TradeoffSweep:
    """The f-sweep of one chain on one grid.

    Args:
        kernels: of the chain.
        grid: of the curves.
        precision: curves below it need not converge; a share of δ.
        pure: the sum of pure levels that every point of a window has besides.
    """

    kernels: ChainKernels
    grid: CurveGrid
    precision: float
    pure: float = 0.0
    settled: dict[int, list[Settled]] = field(default_factory=dict, init=False)
    """Curves of infinite series, by direction and level."""

    def worst(self, level: float, window: Window) -> FloatArray:
        """The curve of the worst secret if every point of the window has this level."""
        return _Sweep(self, level, window).worst()


class _Sweep:
    """The curves of one level."""

    def __init__(self, sweep: TradeoffSweep, level: float, window: Window) -> None:
        self.kernels, self.grid, self.window = sweep.kernels, sweep.grid, window
        self.precision = sweep.precision * _NEGLIGIBLE
        self.operations = CurveKernel(self.kernels.size, sweep.grid.gamma)
        self.cache, self.size_of_level = sweep.settled, level
        self.level = sweep.grid.gaussian(level, sweep.pure)
        together = min(window.episode, window.points) * (1 + 2.0**-50)
        self.block = sweep.grid.gaussian(level * together, sweep.pure * together)
        self.spread = sweep.grid.spread(self.kernels.diameter)
        self.tolerance = _SETTLED / self.kernels.mixing_steps

    def worst(self) -> FloatArray:
        """The curve of the worst secret."""
        if self.kernels.independent:
            return self.block
        window = self.window
        pairs = self.kernels.size * (self.kernels.size - 1)
        if window.length <= SHORT:
            return self._swept(1, window.length)
        # nodes outside the window leak less than its ends only if all pairs are secret
        if window.points <= SHORT and self.kernels.apart.sum() == pairs:
            return self._swept(window.first, window.last)
        return self._endless()

    def _swept(self, first: int, last: int) -> FloatArray:
        """A sweep from end to end: no leakage before the first and after the last of
        these nodes.
        """
        nodes = range(first, last + 1)
        rights, lefts = {last: self._boundary()}, {first: self._boundary(first)}
        for node in reversed(nodes[:-1]):
            rights[node] = self._right(node, rights[node + 1], self._level_at(node + 1))
        for node in nodes[:-1]:
            lefts[node + 1] = self._left(node, lefts[node], self._level_at(node))
        extra = min(self.window.episode, len(nodes)) - 1
        secret_curves = []
        for node in nodes[: len(nodes) - extra]:
            end = node + extra
            pairs = self._pairs_at(node), self._pairs_at(end)
            secret_curves.append(
                self._secret_curve(rights[end], lefts[node], pairs[0], pairs[1], extra)
            )
        return np.asarray(np.max(secret_curves, axis=0))

    def _level_at(self, node: int) -> FloatArray:
        """The curve of the release at a node; no leakage outside the window."""
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
            curves = self._boundary(window.first)
            for node in range(window.first, start + steps + 1):
                phase, pairs_here = (node - 1) % period, self._pairs_at(node)
                lefts[phase] = np.maximum(lefts[phase], _of_pairs(curves, pairs_here))
                pairs[phase] = pairs[phase] | pairs_here
                curves = self._left(node, curves, self.level)
        extra = min(window.episode, window.points) - 1
        curves_of_phases = []
        for phase in range(period):
            end = (phase + extra) % period
            curves_of_phases.append(
                self._secret_curve(rights[end], lefts[phase], pairs[phase], pairs[end], extra)
            )
        return np.asarray(np.max(curves_of_phases, axis=0))

    def _pairs_at(self, node: int) -> NDArray[np.uint8]:
        """The pairs of different possible states of a node."""
        possible = self.kernels.possible_at(node)
        return (possible[:, None] & possible[None] & _different(self.kernels.size)).astype(np.uint8)

    def _settled(
        self, step: Callable[..., FloatArray], direction: int
    ) -> tuple[dict[int, FloatArray], int]:
        """Iterates from η_γ, by the phase of their node, and the number of steps.

        Curves of a higher level bound this one, so the iteration starts from the next higher cached
        level.
        """
        period, begin = self.kernels.period, len(self.kernels.first) + 1
        node = begin + (period * _MOST_STEPS if direction < 0 else 0)
        bounds = np.ones((self.kernels.size, self.kernels.size, len(self.grid.gamma)))
        cached = [
            entry for entry in self.cache.get(direction, []) if entry.level >= self.size_of_level
        ]
        higher = min(cached, key=lambda entry: entry.level, default=None)
        if higher is not None:
            bounds = higher.curves[(node - 1) % period]
        curves: dict[int, FloatArray] = {}
        change, count = 0.0, 0
        while count < _MOST_STEPS or len(curves) < period:
            source = node - 1 if direction < 0 else node
            bounds = step(source, bounds, self.level, every=count % _LOOK_AGAIN == 0)
            node, count = node + direction, count + 1
            phase = (node - 1) % period
            if phase in curves:
                before = curves[phase]
                least = np.maximum(before, self.precision)
                change = max(change, float((np.abs(bounds - before) / least).max()))
            else:
                change = np.inf
            curves[phase] = bounds
            if count % period == 0:
                if change <= self.tolerance:
                    break
                change = 0.0
        steps = count + (0 if higher is None else higher.steps)
        self.cache.setdefault(direction, []).append(Settled(self.size_of_level, curves, steps))
        return curves, steps

    def _right(
        self, node: int, curves: FloatArray, level: FloatArray, every: bool = True
    ) -> FloatArray:
        """r of a node from r of the next one, whose level is given."""
        right = self.kernels.right
        if right is None:
            return self._spread(curves, level)
        kernel = right[(node - 1) % self.kernels.period]
        all_states = np.ones(self.kernels.size, dtype=np.uint8)
        return self.operations.step(
            level, kernel, curves, self.kernels.apart, all_states, every=every
        )

    def _left(
        self, node: int, curves: FloatArray, level: FloatArray, every: bool = True
    ) -> FloatArray:
        """l of the next node from l of a node, whose level is given."""
        kernel = self.kernels.left_from(node)
        if kernel is None:
            return self._spread(curves, level)
        possible, margin = self.kernels.possible_at(node + 1), self.kernels.margin
        return self.operations.step(
            level, kernel, curves, self.kernels.apart, possible, margin, every
        )

    def _spread(self, curves: FloatArray, level: FloatArray) -> FloatArray:
        """One step with one curve for all pairs."""
        pairs = ~np.eye(self.kernels.size, dtype=bool)
        curve = self.operations.spread_step(level, self.spread, curves[pairs].max(axis=0))
        return np.where(pairs[:, :, None], curve, 0.0)

    def _boundary(self, node: int | None = None) -> FloatArray:
        """The curves at an end: no leakage; no bound for states that the node cannot take."""
        size = self.kernels.size
        possible = np.ones(size, dtype=np.uint8) if node is None else self.kernels.possible_at(node)
        impossible_pairs = ~(possible[:, None] & possible[None]).astype(bool) & ~np.eye(
            size, dtype=bool
        )
        return np.where(impossible_pairs[:, :, None], 1.0, np.zeros((1, 1, len(self.grid.gamma))))

    def _secret_curve(
        self,
        right: FloatArray,
        left: FloatArray,
        first: NDArray[np.uint8],
        last: NDArray[np.uint8],
        extra: int,
    ) -> FloatArray:
        """The curve of a secret of 1 + `extra` nodes, whose ends take these pairs of states."""
        if extra == 0:
            secret_pairs = self.kernels.apart & first
            return self.operations.leak(self.level, right, left, self.kernels.apart, secret_pairs)
        ends = (_of_pairs(right, last), _of_pairs(left, first))
        after, before = (curves.max(axis=(0, 1)) for curves in ends)
        return self.operations.compose(self.operations.compose(self.block, after), before)


def _of_pairs(curves: FloatArray, pairs: NDArray[np.uint8]) -> FloatArray:
    """The curves of the given pairs, 0 for others."""
    return np.where(pairs[:, :, None] > 0, curves, 0.0)


def _different(size: int) -> NDArray[np.uint8]:
    """All pairs of different states."""
    return (1 - np.eye(size)).astype(np.uint8)
