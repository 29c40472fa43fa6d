"""The worst stretch of a series, or the worst row, under a Gaussian belief.

The leakage about a stretch is the level spent on it, plus on both sides the level at each distance
times the shift of the numbers there. It is equal for all stretches farther from every change of
level than the correlation reaches, so only stretches near such a change are computed: O(runs +
nodes near their ends), for any length.

Theorem: docs/theory/gaussian.md
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from quiltwork.beliefs import GaussianRows
from quiltwork.caching import cached_property
from quiltwork.influence.gaussian.reach import Reach
from quiltwork.influence.quilts.protocol import FloatArray, IntArray
from quiltwork.influence.sweep import Leak

if TYPE_CHECKING:
    from quiltwork.queries.numbers import Sum


_UP = 1 + 2.0**-40


@dataclass(frozen=True, eq=False)
class SumLevels:
    """The levels of sums: run j begins at node first[j] (first[0] is 1) and ends before the next.

    `level` is the cost of shifting a number of the run by the whole range; `once` is the cost of
    every release for rounding its answer to a grid, independent of the shift.
    """

    first: IntArray
    level: FloatArray
    length: int
    once: float = 0.0

    @classmethod
    def of(cls, query: Sum, length: int) -> SumLevels:
        """One release of a sum or mean with noise of scale 1 on its integers."""
        turns = {1: 0.0}
        for start, stop in query.windows(length):
            turns |= {start: float(query.sensitivity.point), stop + 1: 0.0}
        kept = [turn for turn in turns.items() if turn[0] <= length]
        first, level = (np.array(column) for column in zip(*kept, strict=True))
        return cls(first, level, length, float(query.sensitivity.once))

    @cached_property
    def last(self) -> IntArray:
        """The last node of each run."""
        return np.append(self.first[1:] - 1, self.length)

    @property
    def most(self) -> float:
        """The highest level."""
        return float(self.level.max())

    @cached_property
    def total(self) -> float:
        """The cost of shifting every number by the whole range, rounded up."""
        return math.fsum((self.level * (self.last - self.first + 1)).tolist()) * _UP + self.once

    def at(self, nodes: IntArray) -> FloatArray:
        """The levels of these nodes."""
        return self.level[np.searchsorted(self.first, nodes, side="right") - 1]

    def between(self, start: IntArray, stop: IntArray) -> FloatArray:
        """The sums of the levels of start..stop, for many stretches."""
        sizes = self.last - self.first + 1
        before = np.concatenate([[0.0], np.cumsum(self.level * sizes)])

        def upto(nodes: IntArray) -> FloatArray:
            run = np.searchsorted(self.first, nodes, side="right") - 1
            return before[run] + self.level[run] * (nodes - self.first[run] + 1)

        return np.asarray(upto(stop) - upto(start) + self.at(start))


_MOST_NODES = 1 << 22
_UNIT = 2.0**-52


@dataclass(frozen=True, eq=False)
class SeriesLeakage:
    """Leakage about a stationary series, whose secrets are stretches of `episode` numbers.

    `ratio` is the hidden difference as a multiple of the range: a number shifts by at most ratio
    times its reach, and after clipping by at most 1.
    """

    reach: Reach
    episode: int
    ratio: float

    def worst(self, spent: SumLevels, nodes: range) -> Leak:
        """The stretch within `nodes` with the largest leakage, by its first node."""
        starts = self._starts(nodes)
        most = self._highest_parts(spent)
        inside = self._inner_stretch(spent, starts)
        if inside is not None and spent.at(inside)[0] == spent.most:
            return self._capped(spent, int(inside[0]), *(part[0] for part in most))
        near = self._near(spent, starts)
        if near is None:
            return self._capped(spent, starts.start, *(part[0] for part in most))
        candidates = near if inside is None else np.union1d(near, inside)
        own, before, after = self.parts(spent, candidates)
        index = int(np.argmax(own + before + after))
        return self._capped(spent, int(candidates[index]), own[index], before[index], after[index])

    def profile(self, spent: SumLevels, nodes: range) -> tuple[IntArray, IntArray, FloatArray]:
        """Runs of nodes, and the leakage about a stretch that begins in each."""
        starts = self._starts(nodes)
        near = self._near(spent, starts)
        if near is None:
            every = np.array([starts.start]), np.array([nodes.stop - 1])
            return *every, np.array([self.worst(spent, nodes).leak])
        first = np.union1d(near, np.append(near + 1, starts.start))
        first = first[first < starts.stop]
        own, before, after = self.parts(spent, first)
        last = np.append(first[1:] - 1, nodes.stop - 1)
        return first, last, np.minimum(own + before + after + spent.once, spent.total)

    def parts(
        self, spent: SumLevels, starts: IntArray
    ) -> tuple[FloatArray, FloatArray, FloatArray]:
        """The level spent on each stretch itself, and the leakage through numbers before and after
        it.
        """
        stops = starts + self.episode - 1
        own = spent.between(starts, stops) * min(self.ratio, 1.0)
        before = self._side_leakage(spent, starts, forward=False)
        after = self._side_leakage(spent, stops, forward=True)
        return own, before, after

    def _side_leakage(self, spent: SumLevels, ends: IntArray, *, forward: bool) -> FloatArray:
        """The leakage on one side of the stretches that end at these ascending nodes,
        rounded up.
        """
        total = np.zeros((len(self._sums), len(ends)))
        farthest = self._sums.shape[1] - 1
        for a, b, level in zip(spent.first, spent.last, spent.level, strict=True):
            if level == 0:
                continue
            low, high = (a - farthest, b) if forward else (a, b + farthest)
            affected = slice(*np.searchsorted(ends, [low, high + 1]))
            near, far = (a, b) if forward else (-b, -a)
            offset = -ends[affected] if forward else ends[affected]
            near, far = near + offset, far + offset
            inner = self._sums[:, np.clip(near - 1, 0, farthest)]
            outer = self._sums[:, np.clip(far, 0, farthest)]
            total[:, affected] += level * (outer - inner)
        slack = spent.most * (self._tail_bound + self._sums.max() * _UNIT * (4 + farthest))
        return np.asarray(np.minimum(total[0], total[1:].max(axis=0)) + slack)

    @cached_property
    def _sums(self) -> FloatArray:
        """Cumulative sums over distances: of the capped reach first, then of each corner without a
        cap.
        """
        corners = self.reach.corners * self.ratio
        rows = np.vstack([np.minimum(self.reach.farthest * self.ratio, 1.0), corners])
        return np.concatenate([np.zeros((len(rows), 1)), np.cumsum(rows, axis=1)], axis=1)

    @property
    def _tail_bound(self) -> float:
        return self.reach.tail * self.ratio

    @property
    def _distances(self) -> int:
        return int(self._sums.shape[1]) - 1

    def _highest_parts(self, spent: SumLevels) -> tuple[FloatArray, FloatArray, FloatArray]:
        """The parts of a stretch surrounded by the highest level, which bound those of
        any other.
        """
        middle = np.array([self._distances + 1])
        length = 2 * self._distances + self.episode
        constant = SumLevels(np.array([1]), np.array([spent.most]), length, spent.once)
        return self.parts(constant, middle)

    def _starts(self, nodes: range) -> range:
        return range(nodes.start, max(nodes.stop - self.episode, nodes.start) + 1)

    def _inner_stretch(self, spent: SumLevels, starts: range) -> IntArray | None:
        """A stretch with no change of level within reach, of those the one with the
        highest level.
        """
        low = np.maximum(spent.first + self._distances, starts.start)
        high = np.minimum(spent.last - self._distances - self.episode + 1, starts.stop - 1)
        fits = np.flatnonzero(low <= high)
        if len(fits) == 0:
            return None
        best = fits[np.argmax(spent.level[fits])]
        return low[best : best + 1]

    def _near(self, spent: SumLevels, starts: range) -> IntArray | None:
        """All stretches near a change of level or an end; None if there are too many."""
        corners = np.unique(np.concatenate([spent.first, [spent.length + 1]]))
        width = self._distances + self.episode
        low = np.maximum(corners - width, starts.start)
        high = np.minimum(corners + self._distances, starts.stop - 1)
        sizes = np.maximum(high - low + 1, 0)
        if int(sizes.sum()) > _MOST_NODES:
            return None
        pieces = [np.arange(a, b + 1) for a, b in zip(low, high, strict=True) if a <= b]
        return np.unique(np.concatenate(pieces)) if pieces else np.array([starts.start])

    def _capped(self, spent: SumLevels, node: int, own: float, before: float, after: float) -> Leak:
        own += spent.once
        return Leak(min(own + before + after, spent.total), node, own, before, after)


@dataclass(frozen=True, eq=False)
class RowsLeakage:
    """Leakage about rows of families; the secret is the number of one row."""

    belief: GaussianRows
    ratio: float

    @cached_property
    def relative_shifts(self) -> FloatArray:
        """The shift of row t per shift of row i, as a share of the range: entry [i, t],
        rounded up.
        """
        deviations = self.belief.deviations
        slopes = np.abs(self.belief.correlation) * deviations / deviations[:, np.newaxis]
        return np.minimum(slopes * self.ratio * (1 + (self.belief.size + 8) * _UNIT), 1.0)

    def worst(self, spent: SumLevels, nodes: range) -> Leak:
        """The row among `nodes` with the largest leakage."""
        first, _, leak = self.profile(spent, nodes)
        index = int(np.argmax(leak))
        own = float(spent.at(first)[index]) * min(self.ratio, 1.0) + spent.once
        influence = max(0.0, float(leak[index]) - own)
        return Leak(float(leak[index]), int(first[index]), own, 0.0, influence)

    def profile(self, spent: SumLevels, nodes: range) -> tuple[IntArray, IntArray, FloatArray]:
        """The leakage about each row. O(rows·size of a family)."""
        size = self.belief.size
        levels = spent.at(np.arange(1, self.belief.length + 1)).reshape(-1, size)
        leaks = (levels @ self.relative_shifts.T).ravel() * (1 + size * _UNIT) + spent.once
        rows = np.arange(nodes.start, nodes.stop)
        return rows, rows, np.minimum(leaks[rows - 1], spent.total)
