"""What is known of all series of some levels before a stretch of one is swept.

Bounds that hold at every node, and those deep inside runs of a level; how far an end is felt. All
of it rises with the levels, so that it serves every series of the same length whose levels are
nowhere higher.

Theorem: docs/theory/sweep.md
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from quiltwork.influence.sweep.levels import Levels, few_levels
from quiltwork.influence.sweep.program import FloatArray
from quiltwork.influence.sweep.sides import Exact, Side
from quiltwork.influence.sweep.stretches import agree, endless
from quiltwork.lazy import cached_property

if TYPE_CHECKING:
    from quiltwork.influence.sweep.leakage import Sweep

_BITS, _GRID = 30, 24
_END = 2.0**-_BITS
_STRIDE = 32
SHORT = 512
MOST_WARM_UP = 4096
"""So many nodes further out a sweep begins at most."""


class Endless:
    """Endless series of the levels of one series."""

    def __init__(self, sweep: Sweep, levels: Levels) -> None:
        """Look at levels up to the highest."""
        self.sweep, self.length = sweep, levels.length
        self.short = levels.length <= SHORT or _felt_everywhere(sweep, levels)
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

    @property
    def settles(self) -> bool:
        """Whether bounds deep inside a run do not rest on those that a sweep begins with."""
        if self.short:
            return False
        known = self.sweep.by_long_spans(float(self.grids[0][-1]))
        begun = self.outer[0]
        if known is not None and begun is not None and (begun >= known).any():
            return False  # long spans are not swept: what they say stays as it began
        return self.probes[2] < min(self.length, MOST_WARM_UP)

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

        The last lane begins where nothing lies beyond: it tells how far an end can be felt.
        """
        period, node = self.sweep.walk.period, self.sweep.late
        node += (1 << 40) // period * period
        start = side.unknown(1) if outer is None else outer[[0]]
        bounds = np.concatenate([*[start] * len(grid), side.rest(np.array([node]))])
        levels = np.append(grid, grid[-1])
        most = min(self.length, MOST_WARM_UP) + period
        steps, stride = 0, max(_STRIDE, period)
        while True:
            found = endless(side, bounds, node, toward, levels, stride)
            node, steps = node + toward * stride, steps + stride
            bounds, stride = found[:, -1], 2 * stride
            settled = agree(found[:-1, -1], found[:-1, -1 - period], 0.0)
            if steps >= most or (settled and agree(bounds[-1], bounds[-2], _END)):
                return found[:-1, -period:].max(axis=1), steps + side.spans[-1]


def _felt_everywhere(sweep: Sweep, levels: Levels) -> bool:
    """Whether a sweep that begins further out begins about as far out as the series is long."""
    side, most = sweep.right, levels.length // 4
    if levels.length > MOST_WARM_UP or sweep.walk.period > 1 or sweep.walk.size == 1:
        return False
    level = float(levels.forward.max())
    return isinstance(side, Exact) and side.homogeneous.felt(level, most, _BITS) >= most
