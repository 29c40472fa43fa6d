"""What sums and means of clipped numbers spend on each time point."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from quiltwork.influence.quilts.protocol import FloatArray, IntArray
from quiltwork.lazy import cached_property

if TYPE_CHECKING:
    from quiltwork.queries.numbers import Sum

_UP = 1 + 2.0**-40


@dataclass(frozen=True, eq=False)
class SumLevels:
    """Run j begins at node first[j] (first[0] is 1) and ends before the next, or at `length`.

    `level` is what moving a number of the run by the whole range costs; `once` is what every
    release costs for putting its answer on a grid, whatever moves.
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
            turns |= {start: float(query.moves.point), stop + 1: 0.0}
        kept = [turn for turn in turns.items() if turn[0] <= length]
        first, level = (np.array(column) for column in zip(*kept, strict=True))
        return cls(first, level, length, float(query.moves.once))

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
        """What moving every number by the whole range costs, rounded up."""
        return math.fsum((self.level * (self.last - self.first + 1)).tolist()) * _UP + self.once

    def at(self, nodes: IntArray) -> FloatArray:
        """The levels of these nodes."""
        return self.level[np.searchsorted(self.first, nodes, side="right") - 1]

    def between(self, start: IntArray, stop: IntArray) -> FloatArray:
        """The levels of start..stop added up, for many stretches."""
        sizes = self.last - self.first + 1
        before = np.concatenate([[0.0], np.cumsum(self.level * sizes)])

        def upto(nodes: IntArray) -> FloatArray:
            run = np.searchsorted(self.first, nodes, side="right") - 1
            return before[run] + self.level[run] * (nodes - self.first[run] + 1)

        return np.asarray(upto(stop) - upto(start) + self.at(start))
