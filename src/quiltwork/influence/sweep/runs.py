"""One side swept through a series: runs of equal levels, until the bounds converge.

Within a run bounds approach their fixed point as fast as the chain forgets. Once they hardly move,
a certificate ends the run: slightly raised bounds that one more period does not exceed hold at all
remaining nodes, since a step is monotone. So the cost follows the number of runs and how long each
takes to converge, not the length. Chains that forget too slowly use the fixed point of the level
for the rest of a run.

In a public order of matrices (`Timeline.order`) nothing converges. There bounds are rounded up
slightly at the first node of every day, and a day with the same bounds, levels and matrices as an
earlier one reuses its results.

Theorem: docs/theory/sweep.md (Endless series)
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from quiltwork.influence.sweep.levels import Levels
from quiltwork.influence.sweep.program import FloatArray, IntArray
from quiltwork.influence.sweep.step import ExactSide, Side

_FIRST = 32
"""Nodes of a run that are swept before convergence is checked."""
_SLOW = 1024
"""After this many nodes of a run, bounds without a fixed point are set to infinity."""
_FORGETS = 256
_SLACKS = (2.0**-31, 2.0**-29)
"""How far a certificate is raised above the bounds, relative to the largest bound."""
_LEAST_SLACK = 2.0**-40
_LAST_SLACK = 2.0**-8
_CELLS = 1 << 22
"""Numbers computed in one call."""
_GRID = 2.0**40
"""Bounds at the first node of a day are rounded up to multiples of 1/`_GRID`."""


@dataclass(frozen=True, eq=False)
class TableSegment:
    """Steps first..last of a side, in the order of the sweep, as rows of its table.

    Step p has row `row + (p − first) % cycle`. Steady segments have fewer rows than steps.
    """

    first: int
    last: int
    row: int
    cycle: int

    @property
    def steady(self) -> bool:
        """Whether rows are used more than once."""
        return self.cycle <= self.last - self.first


class SideBounds:
    """The bounds of one side at the nodes from `begin` to `end`, in this direction.

    Args:
        side: the recursion.
        levels: the level spent on every node.
        begin: the first node.
        end: the last one.
        start: (n, …) the bounds at the last n nodes up to the first one.
        toward: 1 for the left side, −1 for the right. The two sides of a box are one object, so the
            direction cannot be read from the side.
        cap: (period, …) further bounds that hold at every node, by phase.
        most: the number of nodes to sweep; after that runs end with the fixed point of their level.
    """

    def __init__(
        self,
        side: Side,
        levels: Levels,
        begin: int,
        end: int,
        start: FloatArray,
        toward: int,
        cap: FloatArray | None = None,
        most: int = 1 << 62,
    ) -> None:
        self.side, self.levels, self.begin, self.toward = side, levels, begin, toward
        self.count, self.cap, self._left = abs(end - begin) + 1, cap, most
        self._period, self._widest = side.period, side.spans[-1]
        self._turns = -(-self._widest // self._period) * self._period
        self._known: dict[tuple[bytes, ...], tuple[int, FloatArray]] = {}
        self._fixed_points: dict[float, FloatArray | None] = {}
        self._marks = self._places_of_marks()
        self._rest = side.boundary_value(np.array([1 << 40]))[0]
        self._rows, self._pieces, self._size = [start[-1:]], [TableSegment(0, 0, 0, 1)], 1
        self._values = levels.backward if toward > 0 else levels.forward
        self._follow(start)
        self.table = np.concatenate(self._rows)
        self._first = np.array([piece.first for piece in self._pieces])
        self._row = np.array([piece.row for piece in self._pieces])
        self._cycle = np.array([piece.cycle for piece in self._pieces])
        self._steady = np.array([piece.steady for piece in self._pieces])

    def at(self, nodes: IntArray) -> FloatArray:
        """The bounds at these nodes."""
        steps = (nodes - self.begin) * self.toward
        segment = np.searchsorted(self._first, steps, side="right") - 1
        return np.asarray(
            self.table[self._row[segment] + (steps - self._first[segment]) % self._cycle[segment]]
        )

    def is_steady(self, nodes: IntArray) -> np.ndarray:
        """Whether nodes lie in a steady segment."""
        steps = (nodes - self.begin) * self.toward
        return np.asarray(self._steady[np.searchsorted(self._first, steps, side="right") - 1])

    @property
    def cuts(self) -> IntArray:
        """Nodes at which a steady segment begins or has ended."""
        steady = [piece for piece in self._pieces if piece.steady]
        ends = [end for segment in steady for end in (segment.first, segment.last)]
        nodes = self.begin + self.toward * np.array(ends, dtype=np.int64).reshape(-1, 2)
        low, high = np.sort(nodes, axis=1).T
        return np.concatenate([low, high + 1])

    def _node(self, place: int) -> int:
        return self.begin + self.toward * place

    def _runs(self) -> tuple[IntArray, IntArray, FloatArray]:
        """First and last step and level of every run of equal levels on the way."""
        first, last = self.levels.first - self.begin, self.levels.last - self.begin
        values = self._values
        if self.toward < 0:
            first, last, values = -last[::-1], -first[::-1], values[::-1]
        inside = (last >= 0) & (first < self.count)
        first, values = np.maximum(first[inside], 0), values[inside]
        changes = np.append(True, values[1:] != values[:-1])
        first, values = first[changes], values[changes]
        return first, np.append(first[1:] - 1, self.count - 1), values

    def _follow(self, ring: FloatArray) -> None:
        """Sweep all runs, each until it converges."""
        first, last, values = self._runs()
        place, run, final = 0, 0, len(first) - 1
        # convergence is only checked in runs with at least this many nodes left
        enough = _FIRST + self._turns + self._period
        chunk = enough
        size = last - first
        while place < self.count - 1:
            at = run
            while at < final and (int(size[at]) if at > run else int(last[at]) - place) <= enough:
                at += 1
            end = int(last[at])
            stop = min(max(int(first[at]), place) + chunk, end)
            stop = min(stop, place + max(1, _CELLS // self._rest.size))
            ring = self._sweep(ring, place, stop)
            self._left -= stop - place
            place = stop
            if place == end or place < first[at]:
                run, chunk = (min(at + 1, final), enough) if place == end else (at, chunk)
                continue
            run, level = at, float(values[at])
            if place - first[at] >= _SLOW and self._repeats(ring, place, int(first[at]), end):
                ring = self._without_unbounded(ring, place, level)
            steady = self._settled(ring, place, int(first[at]), end, level)
            if steady is None:
                chunk *= 2
                continue
            steady = self._capped(steady, self._node(place + 1))
            self._keep(place + 1, end, steady)
            enough = max(enough, min(place - int(first[at]), 4 * enough))
            rows = np.arange(end - self._turns + 1, end + 1) - place - 1
            ring, place, run, chunk = steady[rows % len(steady)], end, min(at + 1, final), enough

    def _settled(
        self, ring: FloatArray, place: int, first: int, last: int, level: float
    ) -> FloatArray | None:
        """Bounds, period by period, for the rest of a run; None if they still move."""
        if not self._repeats(ring, place, first, last):
            return None
        period, begins = self._period, place - self._turns + 1
        current, before = ring[-period:], ring[-2 * period : -period]
        infinite = ~np.isfinite(current)
        turn = ring[-self._turns :].reshape(-1, period, *ring.shape[1:]).max(axis=0)
        if (infinite != ~np.isfinite(before)).any():
            return None if self._left > 0 else self.side.unbounded(period)
        with np.errstate(invalid="ignore"):
            change = float(np.abs(np.where(infinite, 0.0, turn - before)).max(initial=0.0))
            above_boundary = np.where(
                infinite | ~np.isfinite(self._rest), 0.0, current - self._rest
            )
        scale = float(np.abs(above_boundary).max(initial=0.0))
        falls = bool((turn <= before).all())  # falling bounds keep falling and need no slack
        for share in _SLACKS:
            slack = max(share * scale, _LEAST_SLACK)
            if change > slack:
                continue
            # a tighter certificate first: without slack if the bounds fall
            for more in (0.0, slack) if falls else (slack,):
                if (certified := self._certified(turn, more, begins, level)) is not None:
                    return certified
        return None if self._left > 0 else self._for_ever(turn, scale, begins, place, level)

    def _repeats(self, ring: FloatArray, place: int, first: int, last: int) -> bool:
        """Whether steps repeat from here to the end of a run, and have done so for a period."""
        timeline = self.side.timeline if isinstance(self.side, ExactSide) else None
        if timeline is not None and timeline.order is not None:
            return False
        begins, needed = place - self._turns + 1, self._turns + self._period
        if begins < max(first, 0) or len(ring) < needed or last - place <= needed:
            return False
        return self.toward < 0 or self._node(begins) >= self.side.repeats_from(self.toward)

    def _without_unbounded(self, ring: FloatArray, place: int, level: float) -> FloatArray:
        """The ring with +inf where no fixed point exists: rising bounds never converge."""
        fixed = self._fixed(place, level)
        if fixed is None:  # a sweep from +inf is finite exactly where the chain forgets
            steps = -(-_FORGETS // self._period) * self._period
            start = self.side.unbounded(self._turns)
            levels = np.full(self._turns + steps, level)
            first = self._node(place - self._turns + 1)
            fixed = self.side.follow(start, first, levels)[-self._period :]
        rows = np.arange(len(ring))[::-1] % self._period
        return np.where(np.isinf(fixed[self._period - 1 - rows]), np.inf, ring)

    def _fixed(self, place: int, level: float) -> FloatArray | None:
        """The fixed point at this level, for the period up to a step; None if there is none."""
        if level not in self._fixed_points:
            self._fixed_points[level] = self.side.fixed(level)
        fixed = self._fixed_points[level]
        if fixed is None:
            return None
        nodes = self._node(place) + self.toward * (np.arange(self._period) - self._period + 1)
        return np.asarray(fixed[(nodes - 1) % len(fixed)])

    def _certified(
        self, turn: FloatArray, slack: float, begins: int, level: float
    ) -> FloatArray | None:
        """The turn slightly raised, if one more turn does not exceed it."""
        size = turn.shape[-1]
        off = ~np.eye(size, dtype=np.bool_) if size > 1 else np.ones((1, 1), dtype=np.bool_)
        raised = turn + slack * off
        rows = np.tile(raised, (self._turns // self._period, 1, 1))
        levels = np.full(self._turns + self._period, level)
        ahead = self.side.follow(rows, self._node(begins), levels)[self._turns :]
        ahead = self._capped(ahead, self._node(begins + self._turns))
        return raised if (ahead <= raised).all() else None

    def _for_ever(
        self, turn: FloatArray, scale: float, begins: int, place: int, level: float
    ) -> FloatArray:
        """Bounds that no step at this level exceeds, from bounds that converge too slowly.

        +inf where the chain does not forget; the leakage of a node is at most the total spent.
        """
        fixed = self._fixed(place, level)
        if fixed is not None:
            if (turn <= fixed).all():
                return fixed
            turn = np.maximum(turn, fixed)
        slack = max(scale * _SLACKS[-1], _LEAST_SLACK)
        while slack <= _LAST_SLACK * max(scale, _LEAST_SLACK):
            if (certified := self._certified(turn, slack, begins, level)) is not None:
                return certified
            slack *= 8
        return self.side.unbounded(self._period)

    def _sweep(self, ring: FloatArray, place: int, stop: int) -> FloatArray:
        """Sweep from one step to another; the bounds of the last nodes up to there."""
        tail = self._turns + self._period
        position = place
        while position < stop:
            cut = self._marks[np.searchsorted(self._marks, position, side="right") :][:1]
            until = min(int(cut[0]), stop) if len(cut) else stop
            rows = self._rows_between(ring, position, until)
            ring = np.concatenate([ring, rows])[-tail:]
            position = until
        return ring

    def _rows_between(self, ring: FloatArray, place: int, stop: int) -> FloatArray:
        """Compute and store the rows of the steps after one up to another."""
        available = min(len(ring), self._widest)
        ring = ring[-available:]
        first = self._node(place - available + 1)
        nodes = first + self.toward * np.arange(available + stop - place)
        spent = self.levels.at(self._values, nodes)
        key = None
        if len(self._marks) and place in self._marks:
            # rounding up makes days start alike more often, and only raises bounds
            ring = np.ceil(ring * _GRID) / _GRID
            key = self._key(ring, nodes, spent)
            if (cached := self._known.get(key)) is not None:
                self._pieces.append(TableSegment(place + 1, stop, cached[0], stop - place))
                return cached[1]
        rows = self.side.follow(ring, first, spent)[available:]
        rows = self._capped(rows, self._node(place + 1))
        if key is not None:
            self._known[key] = self._size, rows
        self._keep(place + 1, stop, rows)
        return rows

    def _capped(self, rows: FloatArray, first: int) -> FloatArray:
        """Bounds of nodes from one on, each at most the cap of its phase."""
        if self.cap is None:
            return rows
        nodes = first + self.toward * np.arange(len(rows))
        return np.asarray(np.minimum(rows, self.cap[(nodes - 1) % len(self.cap)]))

    def _key(self, ring: FloatArray, nodes: IntArray, spent: FloatArray) -> tuple[bytes, ...]:
        """The inputs that determine the bounds of a day, as a cache key."""
        assert isinstance(self.side, ExactSide)  # noqa: S101  (only these have an order)
        timeline, left = self.side.timeline, self.side.to_left
        steps = [
            timeline.product_at(span, nodes - span if left else nodes) for span in self.side.spans
        ]
        possible = timeline.possible_at(nodes).tobytes() if left else b""
        return ring.tobytes(), spent.tobytes(), possible, *(index.tobytes() for index in steps)

    def _places_of_marks(self) -> IntArray:
        """The steps at which days begin; none for two states, which are swept as fast as
        looked up.
        """
        marks = getattr(getattr(self.side, "timeline", None), "marks", None)
        if marks is None or not isinstance(self.side, ExactSide) or self.side.timeline.size == 2:
            return np.empty(0, dtype=np.int64)
        places = np.sort((marks - self.begin) * self.toward)
        return np.asarray(places[(places > 0) & (places < self.count)])

    def _keep(self, first: int, last: int, rows: FloatArray) -> None:
        """Store rows as a segment."""
        self._pieces.append(TableSegment(first, last, self._size, len(rows)))
        self._rows.append(rows)
        self._size += len(rows)
