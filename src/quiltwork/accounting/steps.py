"""Piecewise constant functions of time with integer values, changed on one window at a time.

Adding a window copies two lists and touches the pieces within the window; nothing depends on the
length of the series.
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import accumulate
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

Integers: TypeAlias = NDArray[Any]
"""Integers of type int64, or Python's own where int64 could overflow."""

_SAFE = 1 << 60


@dataclass(frozen=True, eq=False)
class Steps:
    """The function that is levels[j] from corners[j] on, and 0 before the first corner.

    >>> Steps().plus(2, 3, 5).plus(3, 4, 1).on(1, 5).tolist()
    [0, 5, 6, 1, 0]
    """

    corners: Sequence[int] = ()
    levels: Sequence[int] = ()

    def plus(self, first: int, last: int, value: int) -> Steps:
        """Add `value` on first..last; an empty window changes nothing."""
        if value == 0 or last < first:
            return self
        corners, levels = list(self.corners), list(self.levels)
        for corner in (first, last + 1):
            place = bisect_left(corners, corner)
            if place == len(corners) or corners[place] != corner:
                corners.insert(place, corner)
                levels.insert(place, levels[place - 1] if place else 0)
        low, high = bisect_left(corners, first), bisect_left(corners, last + 1)
        levels[low:high] = [level + value for level in levels[low:high]]
        return Steps(corners, levels)

    def times(self, factor: int) -> Steps:
        """Multiply by an integer."""
        return Steps(self.corners, [level * factor for level in self.levels])

    def at(self, time: int) -> int:
        """The value at one time."""
        place = bisect_right(self.corners, time)
        return self.levels[place - 1] if place else 0

    def on(self, first: int, last: int) -> Integers:
        """The values at first..last, as an array; at least one time point."""
        low, high = bisect_right(self.corners, first), bisect_right(self.corners, last)
        starts = [first, *self.corners[low:high], last + 1]
        levels = [self.at(first), *self.levels[low:high]]
        return np.repeat(as_integers(levels, last - first + 1), np.diff(starts))

    def corners_within(self, first: int, last: int) -> Sequence[int]:
        """The corners in first..last."""
        low, high = bisect_left(self.corners, first), bisect_right(self.corners, last)
        return self.corners[low:high]

    @cached_property
    def _sums(self) -> list[int]:
        """The sum of all values before each corner."""
        pieces = zip(self.corners, self.corners[1:], self.levels, strict=False)
        return list(accumulate((level * (b - a) for a, b, level in pieces), initial=0))

    def sum_before(self, time: int) -> int:
        """The sum of all values before `time`. O(log corners) after the first call."""
        place = bisect_left(self.corners, time)
        if place == 0:
            return 0
        return self._sums[place - 1] + self.levels[place - 1] * (time - self.corners[place - 1])


def as_integers(values: list[int], count: int) -> Integers:
    """Pack integers so that sums of `count` of them, and of a few such sums, cannot overflow."""
    largest = max(map(abs, values), default=0)
    kind = np.int64 if largest * (count + 1) < _SAFE else object
    return np.array(values, dtype=kind)
