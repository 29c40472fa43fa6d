"""Piecewise constant functions of time with integer values, changed on one window at a time.

Corners are kept in blocks of a few hundred that are shared between a function and its successors,
so that a change costs what lies within its window, whatever came before and however long the
series is.
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

Integers: TypeAlias = NDArray[Any]
"""Integers of type int64, or Python's own where int64 could overflow."""

_SAFE = 1 << 60
_BLOCK = 256


@dataclass(frozen=True, eq=False)
class Block:
    """The function is levels[j] from corners[j] on; at least one corner, never changed."""

    corners: list[int]
    levels: list[int]

    @property
    def first(self) -> int:
        """The first corner."""
        return self.corners[0]

    @cached_property
    def sum(self) -> int:
        """The sum of the values from the first corner up to the last, without it."""
        ends = self.corners[1:]
        return sum(v * (b - a) for a, b, v in zip(self.corners, ends, self.levels, strict=False))

    def sum_before(self, time: int) -> int:
        """The sum of the values from the first corner up to `time`, without it."""
        if time > self.corners[-1]:
            return self.sum + self.levels[-1] * (time - self.corners[-1])
        place = bisect_left(self.corners, time)
        cut = Block([*self.corners[:place], time], [*self.levels[:place], 0])
        return cut.sum

    def plus(self, first: int, last: int, value: int) -> Block:
        """Add `value` at the corners in first..last."""
        low, high = bisect_left(self.corners, first), bisect_right(self.corners, last)
        raised = [level + value for level in self.levels[low:high]]
        return Block(self.corners, [*self.levels[:low], *raised, *self.levels[high:]])

    def with_corner(self, time: int) -> tuple[Block, ...]:
        """Make `time` a corner; a block that is full comes back in two halves."""
        place = bisect_left(self.corners, time)
        if place < len(self.corners) and self.corners[place] == time:
            return (self,)
        level = self.levels[place - 1] if place else 0
        corners = [*self.corners[:place], time, *self.corners[place:]]
        levels = [*self.levels[:place], level, *self.levels[place:]]
        if len(corners) <= _BLOCK:
            return (Block(corners, levels),)
        half = len(corners) // 2
        return Block(corners[:half], levels[:half]), Block(corners[half:], levels[half:])

    def without_corner(self, time: int) -> tuple[Block, ...]:
        """Let the level before `time` go on; a block without corners is none."""
        place = bisect_left(self.corners, time)
        corners = [*self.corners[:place], *self.corners[place + 1 :]]
        levels = [*self.levels[:place], *self.levels[place + 1 :]]
        return (Block(corners, levels),) if corners else ()


@dataclass(frozen=True, eq=False)
class Steps:
    """A piecewise constant function that is 0 before its first corner.

    >>> Steps().plus(2, 3, 5).plus(3, 4, 1).on(1, 5).tolist()
    [0, 5, 6, 1, 0]
    """

    blocks: tuple[Block, ...] = ()

    def plus(self, first: int, last: int, value: int) -> Steps:
        """Add `value` on first..last; an empty window changes nothing."""
        if value == 0 or last < first:
            return self
        steps = self._with_corner(first)._with_corner(last + 1)
        low, high = steps._block(first), steps._block(last) + 1
        changed = (block.plus(first, last, value) for block in steps.blocks[low:high])
        steps = Steps((*steps.blocks[:low], *changed, *steps.blocks[high:]))
        return steps._without_idle_corner(first)._without_idle_corner(last + 1)

    def combined(self, other: Steps, factor: int) -> Steps:
        """Add `factor` times another function. O(corners of both)."""
        corners = sorted({*self.corners(), *other.corners()})
        return Steps.of(corners, [self.at(time) + factor * other.at(time) for time in corners])

    @classmethod
    def of(cls, corners: Sequence[int], levels: Sequence[int]) -> Steps:
        """The function that is levels[j] from corners[j] on; corners in order."""
        kept = [j for j in range(len(corners)) if levels[j] != (levels[j - 1] if j else 0)]
        parts = (kept[i : i + _BLOCK // 2] for i in range(0, len(kept), _BLOCK // 2))
        return cls(tuple(Block([corners[j] for j in p], [levels[j] for j in p]) for p in parts))

    def corners(self) -> Iterator[int]:
        """The times at which the value changes."""
        return (corner for block in self.blocks for corner in block.corners)

    def support(self) -> Iterator[int]:
        """The times at which the value is not 0; it must end with 0."""
        corners, levels = list(self.corners()), [n for block in self.blocks for n in block.levels]
        for first, end, level in zip(corners, corners[1:], levels, strict=False):
            yield from range(first, end) if level else ()

    def _block(self, time: int) -> int:
        """The block that holds the last corner at or before `time`, or the first block."""
        return max(0, bisect_right(self.blocks, time, key=lambda block: block.first) - 1)

    def _with_corner(self, time: int) -> Steps:
        if not self.blocks:
            return Steps((Block([time], [0]),))
        place = self._block(time)
        blocks = self.blocks[place].with_corner(time)
        return Steps((*self.blocks[:place], *blocks, *self.blocks[place + 1 :]))

    def _without_idle_corner(self, time: int) -> Steps:
        """Drop a corner where nothing changes, so that windows that meet leave no trace."""
        if self.at(time) != self.at(time - 1):
            return self
        place = self._block(time)
        blocks = self.blocks[place].without_corner(time)
        return Steps((*self.blocks[:place], *blocks, *self.blocks[place + 1 :]))

    def times(self, factor: int) -> Steps:
        """Multiply by an integer."""
        scaled = (Block(b.corners, [level * factor for level in b.levels]) for b in self.blocks)
        return Steps(tuple(scaled))

    def at(self, time: int) -> int:
        """The value at one time."""
        if not self.blocks:
            return 0
        block = self.blocks[self._block(time)]
        place = bisect_right(block.corners, time)
        return block.levels[place - 1] if place else 0

    def on(self, first: int, last: int) -> Integers:
        """The values at first..last, as an array; at least one time point."""
        starts, levels = [first], [self.at(first)]
        for corners, values in self._within(first + 1, last):
            starts += corners
            levels += values
        lengths = np.diff([*starts, last + 1])
        return np.repeat(as_integers(levels, last - first + 1), lengths)

    def corners_within(self, first: int, last: int) -> list[int]:
        """The corners in first..last."""
        return [corner for corners, _ in self._within(first, last) for corner in corners]

    def _within(self, first: int, last: int) -> list[tuple[list[int], list[int]]]:
        """The corners in first..last with the levels from them on, block by block."""
        if not self.blocks:
            return []
        found = []
        for block in self.blocks[self._block(first) : self._block(last) + 1]:
            low, high = bisect_left(block.corners, first), bisect_right(block.corners, last)
            found.append((block.corners[low:high], block.levels[low:high]))
        return found

    def arrays(self) -> tuple[Integers, list[int]]:
        """All corners, and the levels from them on."""
        corners = np.array(list(self.corners()), dtype=np.int64)
        return corners, [level for block in self.blocks for level in block.levels]

    def sum_before(self, time: int) -> int:
        """The sum of all values before `time`. O(blocks) when their sums are known."""
        ends = [*(block.first for block in self.blocks[1:]), time]
        return sum(
            block.sum_before(min(end, time))
            for block, end in zip(self.blocks, ends, strict=False)
            if block.first < time
        )


def as_integers(values: list[int], count: int) -> Integers:
    """Pack integers so that sums of `count` of them, and of a few such sums, cannot overflow."""
    largest = max(map(abs, values), default=0)
    kind = np.int64 if largest * (count + 1) < _SAFE else object
    return np.array(values, dtype=kind)
