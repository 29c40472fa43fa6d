"""How far histograms violate t-closeness and entropy diversity, for many at once.

Each is a convex function F of the histogram x, positive exactly where the constraint is violated,
with a linear upper bound on a box: the chord of every convex term and a tangent of the concave one.
Distances are computed in integers as long as floats hold them.

Theorem: docs/theory/m-privacy.md
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from math import log
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from quiltwork.exact import to_fraction
from quiltwork.tables.constraints.base import Constraint
from quiltwork.tables.constraints.entropy import EntropyLDiversity
from quiltwork.tables.constraints.t_closeness import TCloseness

Floats = NDArray[np.float64]
Flags = NDArray[np.bool_]

_LARGEST_INTEGER = 2.0**53
_ROUNDING = 2.0**-50
_TANGENTS = 3


class Excess(Protocol):
    """A convex function of histograms that is positive exactly where a constraint is violated."""

    def at(self, points: Floats) -> tuple[Floats, Floats]:
        """Return F at each point, and how far rounding may be off (0 where it is exact)."""
        ...

    def line(self, low: Floats, high: Floats) -> tuple[Floats, Floats]:
        """Return (constant, slopes) of a linear function that F does not exceed in the box."""
        ...


@dataclass(frozen=True, eq=False)
class Distance:
    """F(x) = factor·Σ_j |gap_j(x)| − slack·N: the distance to the whole table against t.

    The gaps are W·x_v − w_v·N (equal distance), or the same with running sums (ordered), for the
    whole table's w and W = Σ w.

    Attributes:
        whole: w.
        expected: w or its running sums without the last, which has no gap.
        ordered: whether gaps are those of running sums.
        factor, slack: such that F is an integer; rounded if it would not fit a float.
        rounding: a share of the total N by which F may be off; 0 if it is exact.
    """

    whole: Floats
    expected: Floats
    ordered: bool
    factor: float
    slack: float
    rounding: float

    @classmethod
    def of(cls, part: TCloseness, largest: int) -> Distance:
        """Prepare a bound constraint for groups of at most `largest` records."""
        whole = part.whole.astype(np.float64)
        total, values = int(whole.sum()), max(len(whole), 2)
        t = to_fraction(part.t, "t") * (values - 1 if part.distance == "ordered" else 2)
        if 8 * t.denominator * values * total * largest < _LARGEST_INTEGER:
            factor, slack, rounding = float(t.denominator), float(t.numerator * total), 0.0
        else:
            factor, slack = 1.0, float(t) * total
            rounding = 8.0 * (values + 8) * values * total * _ROUNDING
        ordered = part.distance == "ordered"
        expected = np.cumsum(whole)[:-1] if ordered else whole
        return cls(whole, expected, ordered, factor, slack, rounding)

    @cached_property
    def _total(self) -> float:
        return float(self.whole.sum())

    def at(self, points: Floats) -> tuple[Floats, Floats]:
        """Return F; exact integers unless they are too large."""
        number = points.sum(axis=1)
        here = np.cumsum(points, axis=1)[:, :-1] if self.ordered else points
        gaps = here * self._total - self.expected * number[:, None]
        value = self.factor * np.abs(gaps).sum(axis=1) - self.slack * number
        return value, self.rounding * number

    def line(self, low: Floats, high: Floats) -> tuple[Floats, Floats]:
        """Replace |gap| by its chord over the gap's range in the box."""
        least, most = self._gaps(low, high)
        open_ = (least < 0) & (most > 0)
        width = np.where(open_, most - least, 1.0)
        sign = np.where(open_, (most + least) / width, np.where(most > 0, 1.0, -1.0))
        over = np.where(open_, -2.0 * most * (least / width), 0.0)  # the chord above |gap|
        chords = 8.0 * (high.shape[1] + 8) ** 2 * self._total * self.factor * _ROUNDING
        doubt = np.where(open_.any(axis=1), chords, self.rounding) * high.sum(axis=1)
        return self.factor * over.sum(axis=1) + doubt, self._slopes(sign)

    def _gaps(self, low: Floats, high: Floats) -> tuple[Floats, Floats]:
        """Return the least and the largest gap of each kind in each box."""
        fewest, most = low.sum(axis=1)[:, None], high.sum(axis=1)[:, None]
        if self.ordered:
            low, high = np.cumsum(low, axis=1)[:, :-1], np.cumsum(high, axis=1)[:, :-1]
        rest = self._total - self.expected
        return (
            rest * low - self.expected * (most - high),
            rest * high - self.expected * (fewest - low),
        )

    def _slopes(self, sign: Floats) -> Floats:
        """Return the slope of F in each value where gaps count with these signs."""
        common = sign @ self.expected
        own = sign
        if self.ordered:
            own = np.zeros((len(sign), len(self.whole)))
            own[:, :-1] = np.cumsum(sign[:, ::-1], axis=1)[:, ::-1]
        return self.factor * (own * self._total - common[:, None]) - self.slack


@dataclass(frozen=True, eq=False)
class Entropy:
    """F(x) = N·log l − (N·log N − Σ x·log x): how much entropy is missing, times N."""

    level: float

    def at(self, points: Floats) -> tuple[Floats, Floats]:
        """Return F and its rounding."""
        number = points.sum(axis=1)
        value = _n_log_n(points).sum(axis=1) - _n_log_n(number) + number * self.level
        return value, self._doubt(points)

    def line(self, low: Floats, high: Floats) -> tuple[Floats, Floats]:
        """Replace x·log x by chords and N·log N by the best of a few tangents."""
        width = high - low
        rise = (_n_log_n(high) - _n_log_n(low)) / np.maximum(width, 1.0) + self.level
        fixed = (_n_log_n(low) - np.where(width > 0, rise - self.level, 0.0) * low).sum(axis=1)
        rise = np.where(width > 0, rise, self.level)
        fewest = low.sum(axis=1)
        least, steepest = np.full(len(low), np.inf), np.zeros(len(low))
        at = np.maximum(fewest, 1.0)
        for _ in range(_TANGENTS):
            steep = np.log(at) + 1.0
            slope = rise - steep[:, None]
            corner = np.where(slope > 0, high, low)
            value = at + (slope * corner).sum(axis=1)
            better = value < least
            least, steepest = np.where(better, value, least), np.where(better, steep, steepest)
            at = np.maximum(corner.sum(axis=1), 1.0)
        constant = fixed + np.exp(steepest - 1.0) + self._doubt(high)
        return constant, rise - steepest[:, None]

    def _doubt(self, points: Floats) -> Floats:
        number = points.sum(axis=1)
        terms = points.shape[1] + 64
        doubt: Floats = terms * _ROUNDING * (_n_log_n(number) + number * (self.level + 1) + 1)
        return doubt


def excess_of(part: Constraint, largest: int) -> Excess:
    """Return how far a constraint is violated in histograms of at most `largest` records."""
    if isinstance(part, TCloseness):
        return Distance.of(part, largest)
    if isinstance(part, EntropyLDiversity):
        return Entropy(log(to_fraction(part.l, "l")))
    raise TypeError(f"{part} is not known as a function of histograms")


def _n_log_n(numbers: Floats) -> Floats:
    result: Floats = numbers * np.log(np.maximum(numbers, 1.0))
    return result
