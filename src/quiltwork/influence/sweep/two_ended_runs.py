"""A run of one level between two ends that are both felt everywhere in it.

At a constant level what lies beyond a node tells more the further away the end is, so that bounds
at every few nodes serve those in between; and where the chain changes slowly, steps of several
nodes lose little.

Cost: one step per side and stride, O(k³) each for all pairs of a few states.

Theorem: docs/theory/sweep.md (Endless series)
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from quiltwork.influence.kernel import power
from quiltwork.influence.ratios import product_margin
from quiltwork.influence.sweep.endless import MOST_WARM_UP
from quiltwork.influence.sweep.leakage import Leak, Sweep
from quiltwork.influence.sweep.levels import Levels
from quiltwork.influence.sweep.program import FloatArray, IntArray
from quiltwork.influence.sweep.sides import Exact
from quiltwork.influence.sweep.stretches import endless
from quiltwork.influence.sweep.tolerances import MARGIN, SLACK
from quiltwork.lazy import cached_property

_CELLS = 1 << 22
_NEXT = 2.0**-7
_TOO_FAR = 0.5
_FORGOTTEN = 8.0
_MOST_WORK = 1 << 27
"""So many entries of programs are looked at for one side: some seconds for 51 states."""


@dataclass(frozen=True, eq=False)
class TwoEndedRun:
    """Series whose levels are at most constant ones on first..last, and 0 outside.

    Attributes:
        levels: the highest own, forward and backward level.
        total: what changing everything costs.
        stride: how many nodes a step takes.
    """

    sweep: Sweep
    left: Exact
    right: Exact
    levels: tuple[float, float, float]
    total: float
    first: int
    last: int
    nodes: range
    stride: int = 1

    @classmethod
    def of(cls, sweep: Sweep, unit: Levels, nodes: range) -> TwoEndedRun | None:
        """See a series so; None where nodes differ in their matrices, states or levels."""
        left, right = sweep.left, sweep.right
        if not (isinstance(left, Exact) and isinstance(right, Exact)):
            return None
        if sweep.walk.size == 1 or not (left.uniform() and right.uniform()):
            return None
        rows = unit.own, unit.forward, unit.backward
        runs = np.flatnonzero(np.max(rows, axis=0) > 0)
        if len(runs) > 1:
            return None
        first, last = int(unit.first[runs[0]]), int(unit.last[runs[-1]])
        highest = tuple(float(row.max()) for row in rows)
        stop = max(nodes.start, nodes.stop - sweep.episode) + 1
        asked = range(nodes.start, stop)
        levels, total = (highest[0], highest[1], highest[2]), unit.total
        whole = cls(sweep, left, right, levels, total, first, last, asked)
        work = (last - first) * len(sweep.walk.pairs[0]) * sweep.walk.size**2
        most = _MOST_WORK if sweep.walk.all_told else 8 * _MOST_WORK  # durations leave short trees
        return whole.in_strides(1 + work // most)

    @property
    def steps(self) -> int:
        """How many steps lead from one end to the other."""
        return -(-(self.last - self.first) // self.stride)

    @property
    def programs(self) -> int:
        """How many programs one side takes."""
        return self.steps * len(self.sweep.walk.pairs[0])

    @property
    def rounding(self) -> float:
        """What a sweep adds on nodes outside, where nothing is spent: so that accounts agree."""
        if self.sweep.walk.size == 2:
            return 0.0
        outside = min(self.sweep.length - (self.last - self.first + 1), 2 * MOST_WARM_UP)
        odds = self.left.rest(np.array([1 << 40]))
        most = float(np.abs(odds[np.isfinite(odds)]).max(initial=0.0))
        return 4 * outside * (MARGIN + SLACK * most)

    @cached_property
    def overlaps(self) -> FloatArray:
        """The shares that two rows have in common.

        About the largest of them more is told by a level that is moved one node nearer.
        """
        matrix = self.sweep.walk.steps[0]
        x, y = self.sweep.walk.pairs
        return np.asarray(np.minimum(matrix[x], matrix[y]).sum(axis=1))

    @property
    def forgets(self) -> bool:
        """Whether the middle hardly feels an end, for all pairs of states."""
        return (self.last - self.first) * float(self.overlaps.min()) > _FORGOTTEN

    @property
    def short(self) -> int:
        """The stride for which the way to the next node stepped on is little of the whole run."""
        return max(self.stride, 1 + int((self.last - self.first) * _NEXT))

    @property
    def worthwhile(self) -> bool:
        """Whether strides are short enough to tell more than a series without ends does."""
        return (self.stride - 1) * float(self.overlaps.max()) < _TOO_FAR

    def in_strides(self, stride: int) -> TwoEndedRun:
        """The same in steps of so many nodes, where one is taken at a time."""
        walk = self.sweep.walk
        if stride == self.stride or walk.spans != (1,):
            return self
        steps = power(walk.steps[0], stride)[np.newaxis]
        longer = replace(walk, steps=steps)
        sides = (Exact(longer, to_left=to_left) for to_left in (True, False))
        left, right = sides
        return replace(self, left=left, right=right, stride=stride)

    def belief_bound(self, factor: float) -> tuple[float, float]:
        """About what the worst node leaks, and how much more it would in a run of one node more.

        No bound: what lies between two nodes that are stepped on is interpolated.
        """
        own, forward, backward = (level * factor for level in self.levels)
        more = self.sweep.episode - 1
        left, right = self._bounds(self.left, backward, 1), self._bounds(self.right, forward, -1)
        nodes = max(self.last - self.first - more, 0)
        steps = min(nodes // self.stride, self.steps - 1)
        told = []
        for whole in (steps, steps + 1):
            behind = np.arange(whole + 1)
            where = np.full(whole + 1, self.nodes.start)
            before, after = self.sweep.parts(where, left[behind], right[whole - behind])
            told.append(float((before + after).max()))
        each = (told[1] - told[0]) / self.stride
        return own + more * forward + told[0] + (nodes - steps * self.stride) * each, each

    def beyond(self, stride: int) -> int:
        """How many nodes too many are counted where distances are rounded up to strides."""
        rest = (self.last - self.first) % stride
        return (
            stride - 1 if rest == 1 or stride == 1 else stride if rest == 0 else 2 * stride - rest
        )

    def leak(self, factor: float) -> Leak:
        """What the worst node leaks at these levels times a factor."""
        own, forward, backward = (level * factor for level in self.levels)
        more = self.sweep.episode - 1
        left = self._bounds(self.left, backward, 1)
        if (known := self.sweep.by_long_spans(backward)) is not None:
            left = np.minimum(left, known)
        right = self._bounds(self.right, forward, -1)
        worst, best = Leak(0.0, self.nodes.start, 0.0, 0.0, 0.0), (0.0, False)
        rounding = self.rounding
        size = max(1, _CELLS // self.sweep.walk.size**2)
        every = np.arange(self.nodes.start, self.nodes.stop)
        # a secret outside is bounded as one at the end is, which is charged itself, at any pair
        any_pair = self.sweep.about_all_pairs()
        places = np.stack(
            [
                self._strides(every - self.first),
                self._strides(self.last - every - more),
                np.maximum(np.minimum(every + more, self.last) - np.maximum(every, self.first), -1),
            ]
        )
        apart = np.append(True, (np.diff(places) != 0).any(axis=0))  # the others are like these
        every, places = every[apart], places[:, apart]
        for begin in range(0, len(every), size):
            nodes = every[begin : begin + size]
            behind, beyond, touched = places[:, begin : begin + size]
            alone = own + np.maximum(touched, 0) * forward
            before, after = self.sweep.told(nodes, alone, left[behind], right[beyond])
            if self.sweep.walk.kept is not None:
                sides = any_pair.told(nodes, alone, left[behind], right[beyond])
                before, after = np.where(touched >= 0, (before, after), sides)
            leak = (alone + before + after) * (1 + 2.0**-50) + rounding
            top = int(np.lexsort((touched >= 0, leak))[-1])
            if (float(leak[top]), bool(touched[top] >= 0)) > best:
                best = float(leak[top]), bool(touched[top] >= 0)
                parts = alone[top], before[top], after[top]
                worst = Leak(best[0], int(nodes[top]), *map(float, parts))
        return replace(worst, leak=min(worst.leak, self.total * factor * (1 + 2.0**-50)))

    def _strides(self, distance: IntArray) -> IntArray:
        """Which bounds hold so far from an end: those of the next node that was stepped on."""
        return np.asarray(-(-np.clip(distance, 0, self.last - self.first) // self.stride))

    def _bounds(self, side: Exact, level: float, toward: int) -> FloatArray:
        """Bounds 0, 1, … strides away from the end."""
        margin = float(product_margin(self.stride, self.sweep.walk.size)) if self.stride > 1 else 0
        gap = (self.stride - 1) * level * (1 + 2.0**-50) + margin
        node = np.array([1 << 40])
        levels = np.array([level])
        found = endless(side, side.rest(node), 1 << 40, toward, levels, self.steps, gap)
        return np.asarray(found[0])
