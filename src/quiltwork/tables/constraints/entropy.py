"""Entropy l-diversity: the entropy of the sensitive values of every group is at least log l."""

from __future__ import annotations

import math
from dataclasses import dataclass
from fractions import Fraction
from typing import ClassVar

import numpy as np

from quiltwork.errors import InvalidInputError
from quiltwork.exact import Number, shortened, to_fraction
from quiltwork.tables.constraints.base import Constraint, agreeing
from quiltwork.tables.constraints.secret_counts import SecretCounts

_CLOSE = 1e-11
_MOST = 10**15
_MOST_RECORDS = 20_000
"""Ties are decided in integers of about this many digits; a larger one counts as a failure."""


@dataclass(frozen=True)
class EntropyLDiversity(Constraint):
    """Entropy at least log l in every group. Generalization monotonic, not EG monotonic.

    Decided in integers where floats are too close to tell, so that l equally frequent values are
    l-diverse.

    Raises:
        InvalidInputError: unless l is a number from 1 to 10¹⁵.

    >>> EntropyLDiversity(2).holds(SecretCounts.of([0, 1])), EntropyLDiversity(2).holds(
    ...     SecretCounts.of([0, 1, 1])
    ... )
    (True, False)
    """

    l: Number  # noqa: E741  (the field's own letter)
    eg_monotonic: ClassVar[bool] = False
    generalization_monotonic: ClassVar[bool] = True
    corners_suffice: ClassVar[bool] = True

    def __post_init__(self) -> None:
        """Read l."""
        if not 1 <= to_fraction(self.l, "l") <= _MOST:
            raise InvalidInputError(
                f"l must be at least 1 and at most {_MOST:g}, not {shortened(self.l)}."
            )

    def holds(self, left: SecretCounts) -> bool:
        """Tell whether Σ n·log(N/n) ≥ N·log l."""
        total = int(left.counts.sum())
        if total == 0:
            return False
        bound = total * math.log(self._level)
        surplus = total * _entropy(left) - bound
        if abs(surplus) > _CLOSE * (total + bound):
            return surplus > 0
        return _exactly_at_least(left.counts.tolist(), self._level)

    def fitness(self, left: SecretCounts) -> float:
        """Return the effective number of values, e^entropy, over l."""
        effective = math.exp(_entropy(left)) if left.counts.sum() else 0.0
        return agreeing(effective / float(self._level), self.holds(left))

    @property
    def _level(self) -> Fraction:
        return to_fraction(self.l, "l")

    def __str__(self) -> str:
        """Name it."""
        return f"entropy {self.l}-diversity"


def _entropy(left: SecretCounts) -> float:
    shares = left.counts / left.counts.sum()
    return float(-(shares * np.log(shares)).sum())


def _exactly_at_least(counts: list[int], level: Fraction) -> bool:
    """Tell whether N^N ≥ l^N · Π n^n in integers; only shares matter, so divide by the gcd."""
    common = math.gcd(*counts)
    numbers = [n // common for n in counts]
    total = sum(numbers)
    if total > _MOST_RECORDS:
        return False
    product = math.prod(n**n for n in numbers)
    return bool((total * level.denominator) ** total >= level.numerator**total * product)
