"""How far histograms violate t-closeness and entropy diversity, for many of them at once.

Both are convex functions F of the histogram x, positive exactly where the constraint is violated,
each with a linear upper bound on a box that is exact at its ends: the chord of every convex term
and a tangent of the concave one. t-closeness is computed in integers as long as floats hold them.

Theorem: m-privacy
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from math import log

import numpy as np

from quiltwork.exact import to_fraction
from quiltwork.publishing.constraints.base import Constraint
from quiltwork.publishing.constraints.entropy import EntropyLDiversity
from quiltwork.publishing.constraints.t_closeness import TCloseness
from quiltwork.publishing.verification.corners import Excess, Flags, Floats

_LARGEST_INTEGER = 2.0**53
_ROUNDING = 2.0**-50
_TANGENTS = 3


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
        whole = np.array(part.reference, dtype=np.float64)
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
        value[number == 0] = np.inf
        return value, self.rounding * number

    def narrowed(self, low: Floats, high: Floats) -> tuple[Floats, Floats]:
        """Fix the values in which F rises, or falls, all over the box."""
        least, most = self._gaps(low, high)
        sign = np.where(least >= 0, 1.0, np.where(most <= 0, -1.0, 0.0))
        slope = self._slopes(sign)
        spread = self.factor * self._spread(sign == 0)
        fall = slope + spread <= -self.rounding
        rise = (slope - spread >= self.rounding) & ~fall
        return np.where(rise, high, low), np.where(fall, low, high)

    def bound(self, low: Floats, high: Floats) -> tuple[Floats, Flags]:
        """Replace |gap| by its chord over the gap's range in the box."""
        least, most = self._gaps(low, high)
        open_ = (least < 0) & (most > 0)
        width = np.where(open_, most - least, 1.0)
        sign = np.where(open_, (most + least) / width, np.where(most > 0, 1.0, -1.0))
        over = np.where(open_, -2.0 * most * (least / width), 0.0).sum(axis=1)
        slope = self._slopes(sign)
        raised = slope > 0
        upper = self.factor * over + (slope * np.where(raised, high, low)).sum(axis=1)
        number = high.sum(axis=1)
        chords = 8.0 * (high.shape[1] + 8) ** 2 * self._total * self.factor * _ROUNDING
        doubt = np.where(open_.any(axis=1), chords, self.rounding) * number
        return upper + doubt, raised

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

    def _spread(self, open_: Flags) -> Floats:
        """Return how far slopes can be off if the open gaps may have either sign."""
        rest = self._total - self.expected
        if not self.ordered:
            return (open_ @ self.expected)[:, None] + open_ * (rest - self.expected)
        above, below = np.cumsum((open_ * rest)[:, ::-1], axis=1)[:, ::-1], open_ * self.expected
        spread = np.zeros((len(open_), len(self.whole)))
        spread[:, :-1] += above
        spread[:, 1:] += np.cumsum(below, axis=1)
        return spread


@dataclass(frozen=True, eq=False)
class Entropy:
    """F(x) = N·log l − (N·log N − Σ x·log x): how much entropy is missing, times N."""

    level: float

    def at(self, points: Floats) -> tuple[Floats, Floats]:
        """Return F and its rounding; an empty histogram violates."""
        number = points.sum(axis=1)
        value = _n_log_n(points).sum(axis=1) - _n_log_n(number) + number * self.level
        value[number == 0] = np.inf
        return value, self._doubt(points)

    def narrowed(self, low: Floats, high: Floats) -> tuple[Floats, Floats]:
        """Fix the values that are better raised, or not, whichever others are.

        What raising a value gains falls with the number of other records.
        """
        width = high - low
        gain = _n_log_n(high) - _n_log_n(low) + width * self.level
        fewest, most = low.sum(axis=1)[:, None], high.sum(axis=1)[:, None]
        at_best = gain - _n_log_n(fewest + width) + _n_log_n(fewest)
        at_worst = gain - _n_log_n(most) + _n_log_n(most - width)
        doubt = self._doubt(high)[:, None]
        return np.where(at_worst >= doubt, high, low), np.where(at_best <= -doubt, low, high)

    def bound(self, low: Floats, high: Floats) -> tuple[Floats, Flags]:
        """Replace x·log x by chords and N·log N by the best of a few tangents."""
        width = high - low
        rise = _n_log_n(high) - _n_log_n(low) + width * self.level
        fewest = low.sum(axis=1)
        fixed = _n_log_n(low).sum(axis=1) + fewest * self.level
        upper = np.full(len(low), np.inf)
        raised = np.zeros(low.shape, dtype=np.bool_)
        at = np.maximum(fewest, 1.0)
        for _ in range(_TANGENTS):
            steep = np.log(at) + 1.0
            gain = rise - width * steep[:, None]
            chosen = gain > 0
            value = fixed + at - steep * fewest + np.where(chosen, gain, 0.0).sum(axis=1)
            better = value < upper
            upper, raised = (
                np.where(better, value, upper),
                np.where(better[:, None], chosen, raised),
            )
            at = np.maximum(fewest + np.where(chosen, width, 0.0).sum(axis=1), 1.0)
        return upper + self._doubt(high), raised

    def _doubt(self, points: Floats) -> Floats:
        number = points.sum(axis=1)
        terms = points.shape[1] + 64
        doubt: Floats = terms * _ROUNDING * (_n_log_n(number) + number * (self.level + 1) + 1)
        return doubt


def excess_of(part: Constraint, largest: int) -> Excess | None:
    """Return how far a constraint is violated, or None if it is not of these two kinds."""
    if isinstance(part, TCloseness):
        return Distance.of(part, largest)
    if isinstance(part, EntropyLDiversity):
        return Entropy(log(to_fraction(part.l, "l")))
    return None


def _n_log_n(numbers: Floats) -> Floats:
    result: Floats = numbers * np.log(np.maximum(numbers, 1.0))
    return result
