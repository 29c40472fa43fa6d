"""The infinite horizon: bounds at every node of a long series, from which stretches are swept.

All of them rise with the levels, so they hold for every series with nowhere higher levels.

Theorem: docs/theory/sweep.md
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from quiltwork.caching import cached_property
from quiltwork.influence.sweep.levels import Levels, few_levels
from quiltwork.influence.sweep.program import FloatArray
from quiltwork.influence.sweep.step import ExactSide, Side

if TYPE_CHECKING:
    from quiltwork.influence.sweep.leakage import Sweep

_BITS, _GRID = 30, 24
_END = 2.0**-_BITS
_CONVERGED = 2.0**-36
_STRIDE = 32
SHORT = 512
"""Series of up to this length are swept from end to end."""
SMALL_PIECE = 256
"""The least number of nodes of a stretch that is swept on its own."""
MOST_WARM_UP = 4096
"""A stretch starts at most this many nodes further out."""


class InfiniteHorizon:
    """Infinite series at the levels of a given series."""

    def __init__(self, sweep: Sweep, levels: Levels) -> None:
        """Choose a grid of levels up to the highest."""
        self.sweep, self.length = sweep, levels.length
        ordered = isinstance(sweep.right, ExactSide) and sweep.right.timeline.order is not None
        self.short = levels.length <= SHORT or ordered or _reaches_everywhere(sweep, levels)
        """Whether the series is swept from end to end, in one piece."""
        grid_size = max(4, min(_GRID, 64 * _GRID // sweep.timeline.size**2))
        self.grids = tuple(
            row.max(keepdims=True) if self.short else few_levels(row, grid_size)
            for row in (levels.backward, levels.forward)
        )

    @property
    def warm_up(self) -> int:
        """The number of nodes further out at which the sweep of a stretch starts."""
        return self.length if self.short else self.probes[2]

    @cached_property
    def outer(self) -> tuple[FloatArray | None, FloatArray | None]:
        """Bounds, by phase, at every late node, left and right; None where there is no bound."""
        before, after = (float(grid[-1]) for grid in self.grids)
        if self.short:
            return self.sweep.long_span_bound(before), None
        right = self.sweep.right.fixed(after)
        if not self.sweep.has_given_start:
            return self.sweep.left_bounds(before), right
        # a certificate for the stationary law does not hold for a given start: take that of any
        # start, and add the log-ratios of the late law
        contracted = None if self.sweep.coarse is None else self.sweep.coarse.fixed(before)
        return (
            None if contracted is None else contracted + self.sweep.timeline.late_prior_log_ratios,
            right,
        )

    @cached_property
    def probes(self) -> tuple[FloatArray, FloatArray, int]:
        """Bounds deep inside runs of each grid level, and the number of nodes after which they
        hold.
        """
        left, steps = self._probe(self.sweep.left, 1, self.grids[0], self.outer[0])
        right, more = self._probe(self.sweep.right, -1, self.grids[1], self.outer[1])
        return left, right, max(steps, more)

    def _probe(
        self, side: Side, toward: int, grid: FloatArray, outer: FloatArray | None
    ) -> tuple[FloatArray, int]:
        """Sweep an infinite series of each level until it converges; the worst over a period.

        The highest level is also swept from the boundary value, which shows how far an end reaches.
        """
        period, node = self.sweep.timeline.period, self.sweep.late_node
        node += (1 << 40) // period * period
        start = side.unbounded(1) if outer is None else outer[[0]]
        inner_bounds: list[FloatArray] = []
        longest = 0
        from_end = _Probe(
            side, side.boundary_value(np.array([node])), node, toward, float(grid[-1])
        )
        for level in grid[::-1].tolist():
            probe = _Probe(side, start, node, toward, level)
            while True:
                probe.extend(max(_STRIDE, period, probe.steps))
                settled = agree(probe.rows[-1], probe.rows[-1 - period], 0.0)
                if not inner_bounds:
                    from_end.extend(probe.steps - from_end.steps)
                    settled = settled and agree(probe.rows[-1], from_end.rows[-1], _END)
                if settled or probe.steps >= min(self.length, MOST_WARM_UP) + period:
                    break
            inner_bounds.append(probe.rows[-period:].max(axis=0))
            longest = max(longest, probe.steps)
        return np.array(inner_bounds[::-1]), longest + side.spans[-1]


class _Probe:
    """A side that is swept at one level for as many nodes as needed."""

    def __init__(self, side: Side, start: FloatArray, node: int, toward: int, level: float) -> None:
        self.side, self.rows, self.node, self.toward = side, start, node, toward
        self.level, self.steps = level, 0

    def extend(self, steps: int) -> None:
        """Sweep `steps` more nodes."""
        recent = min(len(self.rows), self.side.spans[-1])
        first = self.node + self.toward * (self.steps - recent + 1)
        levels = np.full(recent + steps, self.level)
        ahead = self.side.follow(self.rows[-recent:], first, levels)[recent:]
        self.rows = np.concatenate([self.rows, ahead])
        self.steps += steps


def agree(first: FloatArray, second: FloatArray, tolerance: float) -> bool:
    """Whether bounds agree within a tolerance; infinite bounds are not compared."""
    both = np.isfinite(first) & np.isfinite(second)
    apart = np.abs(first[both] - second[both]).max(initial=0.0)
    largest = np.abs(first[both]).max(initial=0.0)
    return bool(apart <= max(tolerance, _CONVERGED) * (1e-3 + largest))


def _reaches_everywhere(sweep: Sweep, levels: Levels) -> bool:
    """Whether a warm-up would be about as long as the series itself."""
    side, most = sweep.right, levels.length // 4
    if levels.length > MOST_WARM_UP or sweep.timeline.period > 1 or sweep.timeline.size == 1:
        return False
    level = float(levels.forward.max())
    return (
        isinstance(side, ExactSide) and side.homogeneous.boundary_reach(level, most, _BITS) >= most
    )
