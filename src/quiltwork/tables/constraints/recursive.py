"""Recursive (c, l)-diversity: the most frequent value does not outweigh the rare ones."""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from typing import ClassVar

import numpy as np

from quiltwork.exact import Number, integer, positive_fraction
from quiltwork.tables.constraints.base import MOST, Constraint, agreeing
from quiltwork.tables.constraints.secret_counts import SecretCounts


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
        """Read c and l."""
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

    def __str__(self) -> str:
        """Name it."""
        return f"recursive ({self.c}, {self.l})-diversity"
