"""Recursive (c, l)-diversity: the most frequent value does not outweigh the rare ones."""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from typing import ClassVar

import numpy as np

from quiltwork.exact import Number, integer, positive_fraction
from quiltwork.tables.codes.group import SparseCounts
from quiltwork.tables.codes.histogram import SecretCounts
from quiltwork.tables.constraints.coalition_bounds import Status
from quiltwork.tables.constraints.constraint import MOST, Constraint, agreeing
from quiltwork.tables.constraints.corners import Corners, Flags, Ints, at_least, bound_histograms


@dataclass(frozen=True)
class RecursiveLDiversity(Constraint):
    """r₁ < c·(r_l + r_{l+1} + …) for the frequencies r₁ ≥ r₂ ≥ … of every group.

    Generalization monotonic, not EG monotonic.

    Raises:
        InvalidInputError: unless c is a number > 0 and l an integer ≥ 1.

    >>> RecursiveLDiversity(2, 2).holds(SecretCounts.of([0, 0, 1, 2]))
    True
    """

    c: Number
    l: int  # noqa: E741  (the field's own letter)
    eg_monotonic: ClassVar[bool] = False
    generalization_monotonic: ClassVar[bool] = True
    corners_suffice: ClassVar[bool] = True

    def __post_init__(self) -> None:
        positive_fraction(self.c, "c")
        object.__setattr__(self, "l", integer(self.l, "l", 1, MOST))

    def holds(self, left: SecretCounts) -> bool:
        """Tell whether the most frequent value is below c times the tail."""
        most, tail = self._weights(left)
        return most < self._factor * tail

    def fitness(self, left: SecretCounts) -> float:
        """Return c·tail / r₁."""
        most, tail = self._weights(left)
        return agreeing(float(self._factor * tail / most) if most else 0.0, self.holds(left))

    def _weights(self, left: SecretCounts) -> tuple[int, int]:
        falling = np.sort(left.counts)[::-1]
        return int(falling[0]) if len(falling) else 0, int(falling[self.l - 1 :].sum())

    @property
    def _factor(self) -> Fraction:
        return positive_fraction(self.c, "c")

    @property
    def records_needed(self) -> int:
        """How many records it takes at least, each its own person."""
        return self.l

    def bound(self, counts: SparseCounts, m: int) -> Status:
        """Decide groups that fail as they are, and those far from failing."""
        return bound_histograms(self, counts, m)

    def worst_between(self, low: Ints, high: Ints) -> Corners | None:
        """Look in each box for a histogram that violates; columns are sensitive values."""
        return _worst_recursive(self._factor, self.l, low, high)

    def __str__(self) -> str:
        return f"recursive ({self.c}, {self.l})-diversity"


def _worst_recursive(factor: Fraction, level: int, low: Ints, high: Ints) -> Corners:
    """Try each box with one value raised, and with none: O(values · log values) per box."""
    rows, columns = low.shape
    order = np.argsort(-low, axis=1, kind="stable")
    falling = np.take_along_axis(low, order, axis=1)
    top = level - 1
    heads = np.concatenate((np.zeros((rows, 1), np.int64), np.cumsum(falling, axis=1)), axis=1)
    head = heads[:, min(top, columns)][:, None]
    shorter = heads[:, min(max(top - 1, 0), columns)][:, None]
    total = heads[:, -1:]
    rank = np.empty_like(order)
    np.put_along_axis(rank, order, np.arange(columns)[None, :], axis=1)
    raised = np.where(rank < top, head + high - low, np.maximum(head, shorter + high))
    tail = total + high - low - (raised if top else 0)
    most = np.concatenate((falling[:, :1], np.maximum(high, falling[:, :1])), axis=1)
    tails = np.concatenate((total - head, tail), axis=1)
    bad = at_least(most, factor.denominator, tails, factor.numerator)
    violated: Flags = np.asarray(bad.any(axis=1))
    one = np.argmax(bad, axis=1) - 1
    point, some = low.copy(), np.flatnonzero(violated & (one >= 0))
    point[some, one[some]] = high[some, one[some]]
    return Corners(~violated, violated, point, rows)
