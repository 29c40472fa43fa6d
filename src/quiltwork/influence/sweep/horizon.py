"""Where a stretch of a long series is swept from: bounds that hold at every node of it.

All of it rises with the levels, so that it serves every series whose levels are nowhere higher.

Theorem: docs/theory/sweep.md
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from quiltwork.caching import cached_property
from quiltwork.influence.sweep.levels import Levels, few_levels
from quiltwork.influence.sweep.program import FloatArray
from quiltwork.influence.sweep.step import Exact, Side

if TYPE_CHECKING:
    from quiltwork.influence.sweep.leakage import Sweep

_BITS, _GRID = 30, 24
_END = 2.0**-_BITS
_CONVERGED = 2.0**-36
_STRIDE = 32
SHORT = 512
SMALL_PIECE = 256
MOST_WARM_UP = 4096
"""So many nodes further out a sweep begins at most."""


class InfiniteHorizon:
    """Endless series of the levels of one series."""

    def __init__(self, sweep: Sweep, levels: Levels) -> None:
        """Look at levels up to the highest."""
        self.sweep, self.length = sweep, levels.length
        ordered = isinstance(sweep.right, Exact) and sweep.right.walk.order is not None
        self.short = levels.length <= SHORT or ordered or _reaches_everywhere(sweep, levels)
        """Whether the series is swept from end to end, in one piece."""
        most = max(4, min(_GRID, 64 * _GRID // sweep.walk.size**2))
        self.grids = tuple(
            row.max(keepdims=True) if self.short else few_levels(row, most)
            for row in (levels.backward, levels.forward)
        )

    @property
    def warm_up(self) -> int:
        """How many nodes further out a sweep begins."""
        return self.length if self.short else self.probes[2]

    @cached_property
    def outer(self) -> tuple[FloatArray | None, FloatArray | None]:
        """Bounds, by phase, that hold at every late node, left and right."""
        before, after = (float(grid[-1]) for grid in self.grids)
        if self.short:
            return self.sweep.by_long_spans(before), None
        right = self.sweep.right.fixed(after)
        if not self.sweep.started:
            return self.sweep.left_bounds(before), right
        # a certificate of the stationary law says nothing about another: any start's, and how
        # likely states are by then
        known = None if self.sweep.coarse is None else self.sweep.coarse.fixed(before)
        return None if known is None else known + self.sweep.walk.late_odds, right

    @cached_property
    def probes(self) -> tuple[FloatArray, FloatArray, int]:
        """Bounds deep inside runs of the grids' levels, and after how many nodes they hold."""
        left, steps = self._probe(self.sweep.left, 1, self.grids[0], self.outer[0])
        right, more = self._probe(self.sweep.right, -1, self.grids[1], self.outer[1])
        return left, right, max(steps, more)

    def _probe(
        self, side: Side, toward: int, grid: FloatArray, outer: FloatArray | None
    ) -> tuple[FloatArray, int]:
        """Run endless series of each level until nothing changes; the worst over a period.

        The highest level is also run from where nothing lies beyond: that tells how far an end can
        be felt.
        """
        period, node = self.sweep.walk.period, self.sweep.late
        node += (1 << 40) // period * period
        start = side.unknown(1) if outer is None else outer[[0]]
        deep: list[FloatArray] = []
        longest = 0
        from_end = _Probe(side, side.rest(np.array([node])), node, toward, float(grid[-1]))
        for level in grid[::-1].tolist():
            probe = _Probe(side, start, node, toward, level)
            while True:
                probe.extend(max(_STRIDE, period, probe.steps))
                settled = agree(probe.rows[-1], probe.rows[-1 - period], 0.0)
                if not deep:
                    from_end.extend(probe.steps - from_end.steps)
                    settled = settled and agree(probe.rows[-1], from_end.rows[-1], _END)
                if settled or probe.steps >= min(self.length, MOST_WARM_UP) + period:
                    break
            deep.append(probe.rows[-period:].max(axis=0))
            longest = max(longest, probe.steps)
        return np.array(deep[::-1]), longest + side.spans[-1]


class _Probe:
    """A side followed at one level, as far as it is asked to go."""

    def __init__(self, side: Side, start: FloatArray, node: int, toward: int, level: float) -> None:
        self.side, self.rows, self.node, self.toward = side, start, node, toward
        self.level, self.steps = level, 0

    def extend(self, steps: int) -> None:
        """Go on for so many nodes."""
        known = min(len(self.rows), self.side.spans[-1])
        first = self.node + self.toward * (self.steps - known + 1)
        levels = np.full(known + steps, self.level)
        ahead = self.side.follow(self.rows[-known:], first, levels)[known:]
        self.rows = np.concatenate([self.rows, ahead])
        self.steps += steps


def agree(one: FloatArray, other: FloatArray, tolerance: float) -> bool:
    """Whether bounds agree as far as it matters; where one is unknown nothing is compared."""
    both = np.isfinite(one) & np.isfinite(other)
    apart = np.abs(one[both] - other[both]).max(initial=0.0)
    largest = np.abs(one[both]).max(initial=0.0)
    return bool(apart <= max(tolerance, _CONVERGED) * (1e-3 + largest))


def _reaches_everywhere(sweep: Sweep, levels: Levels) -> bool:
    """Whether a sweep that begins further out begins about as far out as the series is long."""
    side, most = sweep.right, levels.length // 4
    if levels.length > MOST_WARM_UP or sweep.walk.period > 1 or sweep.walk.size == 1:
        return False
    level = float(levels.forward.max())
    return isinstance(side, Exact) and side.homogeneous.felt(level, most, _BITS) >= most
