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
from quiltwork.tables.constraints.constraint import MAX_COUNT, Constraint, consistent_with
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
        object.__setattr__(self, "l", integer(self.l, "l", 1, MAX_COUNT))

    def holds(self, records: SecretCounts) -> bool:
        """Return whether the most frequent value occurs less than c times as often as the tail."""
        highest, tail = self._weights(records)
        return highest < self._factor * tail

    def fitness(self, records: SecretCounts) -> float:
        """Return c·tail / r₁."""
        highest, tail = self._weights(records)
        return consistent_with(
            float(self._factor * tail / highest) if highest else 0.0, self.holds(records)
        )

    def _weights(self, records: SecretCounts) -> tuple[int, int]:
        """Return r₁ and the tail r_l + r_{l+1} + …."""
        falling = np.sort(records.counts)[::-1]
        # An empty set of records has no most frequent value, and violates the constraint.
        return int(falling[0]) if len(falling) else 0, int(falling[self.l - 1 :].sum())

    @property
    def _factor(self) -> Fraction:
        return positive_fraction(self.c, "c")

    @property
    def records_needed(self) -> int:
        """The fewest records, each of another person, that can satisfy it."""
        return self.l

    def bound(self, counts: SparseCounts, m: int) -> Status:
        """Decide groups that violate it as they are, and groups far from violating it."""
        return bound_histograms(self, counts, m)

    def worst_between(self, low: Ints, high: Ints) -> Corners | None:
        """Search each box for a histogram that violates; columns are sensitive values."""
        return _worst_recursive(self._factor, self.l, low, high)

    def __str__(self) -> str:
        return f"recursive ({self.c}, {self.l})-diversity"


def _worst_recursive(factor: Fraction, level: int, low: Ints, high: Ints) -> Corners:
    """Try each box with one value at its maximum, and with none: O(values · log values) per box."""
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
    highest = np.concatenate((falling[:, :1], np.maximum(high, falling[:, :1])), axis=1)
    tails = np.concatenate((total - head, tail), axis=1)
    violates = at_least(highest, factor.denominator, tails, factor.numerator)
    violated: Flags = np.asarray(violates.any(axis=1))
    raised_value = np.argmax(violates, axis=1) - 1
    point, with_raised = low.copy(), np.flatnonzero(violated & (raised_value >= 0))
    point[with_raised, raised_value[with_raised]] = high[with_raised, raised_value[with_raised]]
    return Corners(~violated, violated, point, rows)
