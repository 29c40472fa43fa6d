"""Entropy l-diversity: the entropy of the sensitive values of every group is at least log l."""

from __future__ import annotations

import math
from dataclasses import dataclass
from fractions import Fraction
from typing import ClassVar

import numpy as np

from quiltwork.errors import InvalidInputError
from quiltwork.exact import Number, shortened, to_fraction
from quiltwork.tables.codes.group import SparseCounts
from quiltwork.tables.codes.histogram import SecretCounts
from quiltwork.tables.constraints.coalition_bounds import Status
from quiltwork.tables.constraints.constraint import Constraint, consistent_with
from quiltwork.tables.constraints.corners import (
    ROUNDING,
    Corners,
    Floats,
    Ints,
    bound_histograms,
    worst_corners,
)

_CLOSE = 1e-11  # relative surplus below which floats do not decide the sign
_MOST = 10**15
_MOST_RECORDS = 20_000
"""Near ties are decided by integers of about this many digits; larger ones count as violated."""
_TANGENTS = 3  # more hardly tighten the bound on N·log N


@dataclass(frozen=True)
class EntropyLDiversity(Constraint):
    """Entropy at least log l in every group. Generalization monotonic, not EG monotonic.

    Where floats are too close to decide, integers do, so that l equally frequent values are
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
        if not 1 <= to_fraction(self.l, "l") <= _MOST:
            raise InvalidInputError(
                f"l must be at least 1 and at most {_MOST:g}, not {shortened(self.l)}."
            )

    def holds(self, records: SecretCounts) -> bool:
        """Return whether Σ n·log(N/n) ≥ N·log l."""
        total = int(records.counts.sum())
        if total == 0:
            return False
        bound = total * math.log(self._level)
        surplus = total * _entropy(records) - bound
        # Beyond this margin the rounding of logarithms cannot change the sign.
        if abs(surplus) > _CLOSE * (total + bound):
            return surplus > 0
        return _exactly_at_least(records.counts.tolist(), self._level)

    def fitness(self, records: SecretCounts) -> float:
        """Return the effective number of values, e^entropy, divided by l."""
        effective = math.exp(_entropy(records)) if records.counts.sum() else 0.0
        return consistent_with(effective / float(self._level), self.holds(records))

    @property
    def _level(self) -> Fraction:
        return to_fraction(self.l, "l")

    @property
    def records_needed(self) -> int:
        """The fewest records, each of another person, that can satisfy it."""
        return math.ceil(self._level)

    def bound(self, counts: SparseCounts, m: int) -> Status:
        """Decide groups that violate it as they are, and groups far from violating it."""
        return bound_histograms(self, counts, m)

    def worst_between(self, low: Ints, high: Ints) -> Corners | None:
        """Search each box for a histogram that violates; columns are sensitive values."""
        return worst_corners(MissingEntropy(math.log(self._level)), self, low, high)

    def __str__(self) -> str:
        return f"entropy {self.l}-diversity"


def _entropy(records: SecretCounts) -> float:
    shares = records.counts / records.counts.sum()
    return float(-(shares * np.log(shares)).sum())


def _exactly_at_least(counts: list[int], level: Fraction) -> bool:
    """Return whether N^N ≥ l^N · Π n^n, in integers; only shares matter, so divide by the gcd."""
    common = math.gcd(*counts)
    numbers = [n // common for n in counts]
    total = sum(numbers)
    # Larger powers would take too long; counting a tie as violated is the safe answer.
    if total > _MOST_RECORDS:
        return False
    product = math.prod(n**n for n in numbers)
    return bool((total * level.denominator) ** total >= level.numerator**total * product)


@dataclass(frozen=True, eq=False)
class MissingEntropy:
    """F(x) = N·log l − (N·log N − Σ x·log x): the entropy that is missing, times N."""

    level: float

    def at(self, points: Floats) -> tuple[Floats, Floats]:
        """Return F at each point, and a bound on its rounding error."""
        number = points.sum(axis=1)
        value = _n_log_n(points).sum(axis=1) - _n_log_n(number) + number * self.level
        return value, self._doubt(points)

    def line(self, low: Floats, high: Floats) -> tuple[Floats, Floats]:
        """Bound F by chords of x·log x and the best of a few tangents of N·log N."""
        width = high - low
        chord = (_n_log_n(high) - _n_log_n(low)) / np.maximum(width, 1.0) + self.level
        fixed = (_n_log_n(low) - np.where(width > 0, chord - self.level, 0.0) * low).sum(axis=1)
        chord = np.where(width > 0, chord, self.level)
        fewest = low.sum(axis=1)
        least, best_tangent = np.full(len(low), np.inf), np.zeros(len(low))
        at = np.maximum(fewest, 1.0)
        # Every tangent gives a valid bound; iterating moves the contact point towards the best one.
        for _ in range(_TANGENTS):
            tangent = np.log(at) + 1.0
            slope = chord - tangent[:, None]
            corner = np.where(slope > 0, high, low)
            value = at + (slope * corner).sum(axis=1)
            better = value < least
            least, best_tangent = (
                np.where(better, value, least),
                np.where(better, tangent, best_tangent),
            )
            at = np.maximum(corner.sum(axis=1), 1.0)
        constant = fixed + np.exp(best_tangent - 1.0) + self._doubt(high)
        return constant, chord - best_tangent[:, None]

    def _doubt(self, points: Floats) -> Floats:
        number = points.sum(axis=1)
        terms = points.shape[1] + 64
        doubt: Floats = terms * ROUNDING * (_n_log_n(number) + number * (self.level + 1) + 1)
        return doubt


def _n_log_n(numbers: Floats) -> Floats:
    result: Floats = numbers * np.log(np.maximum(numbers, 1.0))
    return result
