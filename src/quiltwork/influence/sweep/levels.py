"""Levels: the privacy level that all releases together spend on each time point, as runs.

Every node has three levels. `own` is the cost of changing it alone; `forward` is what a change adds
to one that comes from the left, `backward` to one that comes from the right. For releases that
charge per point all three are equal; a pair of neighbours, and a window that is charged once, are
paid by the first of their nodes that changes.

Theorem: docs/theory/sweep.md
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

import numpy as np

from quiltwork.caching import cached_property
from quiltwork.influence.sweep.program import FloatArray, IntArray

if TYPE_CHECKING:
    from quiltwork.queries.query import Query

UP = 1 + 2.0**-51
_MANY = 1 << 24
"""Series up to this length are looked up in a table, which takes 8 bytes per node."""


@dataclass(frozen=True, eq=False)
class Levels:
    """Run j begins at node first[j] (first[0] is 1) and ends before the next, or at `length`.

    `total` is the cost of changing every node. All numbers are rounded up.
    """

    first: IntArray
    own: FloatArray
    forward: FloatArray
    backward: FloatArray
    length: int
    total: float

    @classmethod
    def constant(cls, level: float, length: int) -> Levels:
        """The same level at all nodes."""
        levels = np.array([level])
        return cls(np.array([1]), levels, levels, levels, length, level * length * UP)

    @classmethod
    def of_points(cls, levels: FloatArray) -> Levels:
        """One level per node."""
        every = np.asarray(levels, dtype=np.float64)
        first = np.flatnonzero(np.append(True, np.diff(every) != 0))
        runs = every[first]
        return cls(first + 1, runs, runs, runs, len(every), float(every.sum()) * (1 + 2.0**-40))

    @cached_property
    def last(self) -> IntArray:
        """The last node of each run."""
        return np.append(self.first[1:] - 1, self.length)

    def joined(self) -> Levels:
        """Merge neighbouring runs of equal levels."""
        rows = np.stack([self.own, self.forward, self.backward])
        kept = np.append(True, (np.diff(rows) != 0).any(axis=0))
        own, forward, backward = rows[:, kept]
        return Levels(self.first[kept], own, forward, backward, self.length, self.total)

    def flat(self) -> Levels:
        """The highest levels at all nodes from the first to the last with a level above 0."""
        rows = np.stack([self.own, self.forward, self.backward])
        nonzero = np.flatnonzero(rows.max(axis=0) > 0)
        if not len(nonzero):
            return self
        begin, end = int(self.first[nonzero[0]]), int(self.last[nonzero[-1]])
        first = np.array([1, begin, end + 1])
        kept = np.append(np.diff(first) > 0, end < self.length)
        highest = rows.max(axis=1)[:, np.newaxis] * np.array([0.0, 1.0, 0.0])[kept]
        return Levels(first[kept], highest[0], highest[1], highest[2], self.length, self.total)

    def times(self, factor: float) -> Levels:
        """All levels times a factor, rounded up."""
        up = factor * UP
        own, forward, backward = self.own * up, self.forward * up, self.backward * up
        return Levels(self.first, own, forward, backward, self.length, self.total * up)

    def run_of(self, nodes: IntArray) -> IntArray:
        """The index of each node's run."""
        runs: IntArray = np.searchsorted(self.first, nodes, side="right") - 1
        return runs

    def at(self, values: FloatArray, nodes: IntArray) -> FloatArray:
        """The values of these nodes' runs; 0 outside the series."""
        inside = (nodes >= 1) & (nodes <= self.length)
        if self.length < _MANY and 4 * len(nodes) > self.length:  # a table is quicker
            table = np.repeat(values, np.diff(self.first, append=self.length + 1))
            return np.where(inside, table[np.clip(nodes, 1, self.length) - 1], 0.0)
        runs = np.clip(self.run_of(nodes), 0, None)
        return np.where(inside, values[runs], 0.0)

    def block(self, start: IntArray, stop: IntArray) -> FloatArray:
        """The cost of changing all of start..stop: the first node alone, then what each further one
        adds.

        Within a run that is a product. Across runs it is a difference of sums, and their rounding
        error is charged too: it may exceed a small level after large ones.
        """
        cost = self.at(self.own, start)
        if (stop == start).all():
            return cost
        ends, run = self._before(stop + 1), self.run_of(np.clip(start + 1, 1, self.length))
        # each run adds one rounding of a sum as large as `ends`
        lost = ends * (len(self.first) + 3) * 2.0**-52
        across = ends - self._before(start + 1) + lost
        same_run = (start >= 1) & (stop <= self.length) & (run == self.run_of(stop))
        added = np.where(same_run, self.forward[run] * (stop - start), across)
        return np.asarray((cost + np.where(stop > start, added, 0.0)) * (1 + 2.0**-40))

    def _before(self, nodes: IntArray) -> FloatArray:
        """The sums of the forward levels of all nodes before these."""
        inside = np.clip(nodes, 1, self.length + 1)
        sizes = np.diff(np.append(self.first, self.length + 1))
        upto = np.concatenate([[0.0], np.cumsum(self.forward * sizes)])
        runs = np.minimum(self.run_of(inside), len(self.first) - 1)
        return np.asarray(upto[runs] + self.forward[runs] * (inside - self.first[runs]))

    def most(self, values: FloatArray, start: IntArray, stop: IntArray) -> FloatArray:
        """The largest value of the runs that meet each stretch start..stop. O(runs log runs)."""
        low = np.clip(self.run_of(start), 0, None)
        high = np.clip(self.run_of(stop), low, None)
        tables = self._tables(values)
        width = np.frexp((high - low + 1).astype(np.float64))[1] - 1
        largest = np.empty(len(low))
        for power in np.unique(width).tolist():
            chosen = width == power
            # two overlapping intervals of a power of two cover the range
            table = tables[power]
            largest[chosen] = np.maximum(table[low[chosen]], table[high[chosen] - (1 << power) + 1])
        return largest

    def _tables(self, values: FloatArray) -> list[FloatArray]:
        """Largest values of 1, 2, 4, … runs from each run on."""
        tables = [values]
        while 2 ** len(tables) <= len(values):
            half = 1 << (len(tables) - 1)
            tables.append(np.maximum(tables[-1][:-half], tables[-1][half:]))
        return tables


def few_levels(levels: FloatArray, most: int) -> FloatArray:
    """The distinct levels, or about `most` levels that cover them from above."""
    distinct = np.unique(levels)
    if len(distinct) <= most:
        return distinct
    # levels far below the highest hardly matter: one grid step covers them
    low = max(float(distinct[distinct > 0].min()), float(distinct[-1]) / 4096)
    grid = np.geomspace(low, float(distinct[-1]), most)
    grid[-1] = distinct[-1]
    return np.concatenate([[0.0], grid])


@dataclass(frozen=True)
class Charge:
    """The sensitivity of a query in L1, in its integers, when points of its window change.

    `point` for every point, `pair` for every pair of neighbours in the window that a change
    touches, and `once` for touching the window at all; for several `runs`, once for each of them.
    """

    start: int
    stop: int
    point: int
    pair: int = 0
    once: int = 0
    runs: tuple[tuple[int, int], ...] = ()

    @classmethod
    def of(cls, query: Query | None, length: int) -> Charge:
        """The charge of a query on its window; without one, 1 for every point of the series."""
        if query is None:
            return cls(1, length, 1)
        return cls(*query.window(length), *query.sensitivity, query.runs)

    def change(self, first: int, last: int) -> int:
        """The sensitivity to a change of all of first..last."""
        return int(self.changes(np.array([first]), np.array([last]))[0])

    def changes(self, first: IntArray, last: IntArray) -> IntArray:
        """The same for many stretches at once."""
        if self.runs:
            parts = [replace(self, start=a, stop=b, runs=()) for a, b in self.runs]
            return np.asarray(sum(part.changes(first, last) for part in parts))
        low, high = np.maximum(first, self.start), np.minimum(last, self.stop)
        size = np.maximum(high - low + 1, 0)
        pairs = np.minimum(high, self.stop - 1) - np.maximum(low - 1, self.start) + 1
        return np.asarray(
            self.point * size + (size > 0) * (self.pair * np.maximum(pairs, 0) + self.once)
        )

    def levels(self, length: int) -> Levels:
        """The levels of one release with noise of scale 1."""
        begins, ends = np.array(self.runs or [(self.start, self.stop)]).T
        nodes = np.unique(np.concatenate([[1], begins, begins + 1, ends, ends + 1]))
        nodes = nodes[nodes <= length]
        run = np.maximum(np.searchsorted(begins, nodes, side="right") - 1, 0)
        start, stop = begins[run], ends[run]
        inside = ((nodes >= start) & (nodes <= stop)).astype(np.float64)
        pair_after = inside * (nodes < stop) * self.pair
        pair_before = inside * (nodes > start) * self.pair
        own = inside * (self.point + self.once) + pair_after + pair_before
        forward = inside * (self.point + self.once * (nodes == start)) + pair_after
        backward = inside * (self.point + self.once * (nodes == stop)) + pair_before
        size, count = int((ends - begins + 1).sum()), len(begins)
        total = float(self.point * size + self.pair * (size - count) + self.once * count)
        return Levels(nodes, own, forward, backward, length, total).joined()
