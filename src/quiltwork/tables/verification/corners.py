"""The worst corners of many boxes at once: branch and bound in arrays.

A box holds the histograms between what a coalition leaves and the whole group. A violation of
t-closeness or entropy diversity is a convex function F > 0 of the histogram x, so the constraint
fails in the box if and only if it fails at a corner. Each round bounds F on every box by a linear
function (the chord of every convex term and a tangent of the concave one), looks at the corner
where that is largest, and halves the boxes that are still in doubt; most boxes need one round.
Distances are computed in integers as long as floats hold them. Cost: O(values) per box and round,
exponential only in the values on which bounds stay in doubt.

Theorem: docs/theory/m-privacy.md
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property
from math import log
from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray

from quiltwork.exact import positive_fraction, to_fraction
from quiltwork.tables.constraints.constraint import Constraint, SecretCounts
from quiltwork.tables.constraints.distributions import (
    EntropyLDiversity,
    RecursiveLDiversity,
    TCloseness,
)
from quiltwork.tables.group import Group

Floats = NDArray[np.float64]
Flags = NDArray[np.bool_]

_LARGEST_INTEGER = 2.0**53
_ROUNDING = 2.0**-50
_TANGENTS = 3
Ints = NDArray[np.int64]
DECIDED = (EntropyLDiversity, RecursiveLDiversity, TCloseness)
"""The constraints that can fail when records are added and are decided here."""
MOST_BOXES = 1024
"""Parts of one box that may be in doubt at a time; beyond, nothing is decided."""


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
        """Return F at each point, and how far rounding may be off (0 where it is exact)."""
        number = points.sum(axis=1)
        here = np.cumsum(points, axis=1)[:, :-1] if self.ordered else points
        gaps = here * self._total - self.expected * number[:, None]
        value = self.factor * np.abs(gaps).sum(axis=1) - self.slack * number
        return value, self.rounding * number

    def line(self, low: Floats, high: Floats) -> tuple[Floats, Floats]:
        """Return (constant, slopes) of a linear function that F does not exceed in the box.

        |gap| is replaced by its chord over the gap's range in the box.
        """
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


def _n_log_n(numbers: Floats) -> Floats:
    result: Floats = numbers * np.log(np.maximum(numbers, 1.0))
    return result


Excess: TypeAlias = Distance | Entropy
"""A convex function of histograms that is positive exactly where a constraint is violated."""


@dataclass(frozen=True, eq=False)
class Corners:
    """What a search found in each of several boxes.

    Attributes:
        safe: whether F ≤ 0 in all of it.
        violated: whether a corner with F > 0 was found.
        point: that corner.
        looked: how many boxes were looked at.
    """

    safe: Flags
    violated: Flags
    point: Ints
    looked: int


def _worst_corners(
    excess: Excess, part: Constraint, low: Ints, high: Ints, most_boxes: int
) -> Corners:
    """Look in each box for a corner that violates `part`.

    One is neither safe nor violated where more than `most_boxes` parts of it were in doubt.
    """
    violated: Flags = np.asarray(
        ~low.any(axis=1)
    )  # no records at all violate every one of these constraints
    point, given_up = low.copy(), np.zeros(len(low), dtype=np.bool_)
    owner = np.flatnonzero(~violated)
    looked = len(low) - len(owner)
    lows, highs = low[owner].astype(np.float64), high[owner].astype(np.float64)
    while len(owner):
        looked += len(owner)
        constant, slope = excess.line(lows, highs)
        corner = np.where(slope > 0, highs, lows)
        upper = constant + (slope * corner).sum(axis=1)
        value, doubt = excess.at(corner)
        _confirm(part, corner, value, doubt)
        hit = value > doubt
        violated[owner[hit]], point[owner[hit]] = True, corner[hit].astype(np.int64)
        open_ = (upper > 0) & (lows < highs).any(axis=1) & ~violated[owner]
        given_up |= np.bincount(owner[open_], minlength=len(low)) > most_boxes
        open_ &= ~given_up[owner]
        lows, highs = _split(lows[open_], highs[open_])
        owner = np.tile(owner[open_], 2)
    return Corners(~violated & ~given_up, violated, point, looked)


def _confirm(part: Constraint, corner: Floats, value: Floats, doubt: Floats) -> None:
    """Ask the constraint itself where rounding leaves the sign open; changes `value`."""
    for i in np.flatnonzero(np.abs(value) <= doubt).tolist():
        if doubt[i] > 0:
            holds = part.holds(SecretCounts.from_histogram(corner[i].astype(np.int64)))
            value[i] = -np.inf if holds else np.inf


def _split(low: Floats, high: Floats) -> tuple[Floats, Floats]:
    """Cut every box in two: the value with most open records raised, or not."""
    rows = np.arange(len(low))
    widest = np.argmax(high - low, axis=1)
    raised, lowered = low.copy(), high.copy()
    raised[rows, widest] = high[rows, widest]
    lowered[rows, widest] = low[rows, widest]
    return np.concatenate((raised, low)), np.concatenate((high, lowered))


def find_violations(
    part: Constraint, low: Ints, high: Ints, most_boxes: int = MOST_BOXES
) -> Corners:
    """Look for histograms between `low` and `high` that violate; columns are sensitive values.

    For t-closeness a column for each value of the table, for the others as many as are needed.
    """
    if isinstance(part, RecursiveLDiversity):
        return _worst_recursive(part, low, high)
    if isinstance(part, EntropyLDiversity):
        entropy = Entropy(log(to_fraction(part.l, "l")))
        return _worst_corners(entropy, part, low, high, most_boxes)
    if isinstance(part, TCloseness):
        largest = int(high.sum(axis=1).max(initial=1))
        return _worst_corners(Distance.of(part, largest), part, low, high, most_boxes)
    raise TypeError(f"{part} is not known as a function of histograms")


def violations_of_group(group: Group, part: Constraint, kept: Ints) -> Corners:
    """Look between what coalitions leave of one group, the rows of `kept`, and the whole group.

    Rows and the points that are found are weights by kind.
    """
    column, width = np.arange(len(group.values)), len(group.values)
    if isinstance(part, TCloseness):
        column, width = group.values, len(part.whole)
    high = np.broadcast_to(group.total, kept.shape)
    if group.kinds is None:  # a kind is a value
        spread = np.zeros((2, len(kept), width), dtype=np.int64)
        spread[:, :, column] = kept, high
        found = find_violations(part, *spread)
        return replace(found, point=found.point[:, column])
    values = np.zeros((len(group.kinds), width), dtype=np.int64)
    values[:, column] = group.kinds
    alone = group.kinds.sum(axis=1) == 1
    more = np.where(alone, high - kept, 0)
    found = find_violations(part, kept @ values, (kept + more) @ values)
    raised = (found.point > kept @ values) @ values.T > 0
    found = replace(found, point=kept + np.where(raised, more, 0))
    # Fewer sets are in between than the box by value holds: it proves safety only.
    outer = find_violations(part, kept @ values, high @ values)
    return replace(found, safe=outer.safe, looked=found.looked + outer.looked)


def _worst_recursive(part: RecursiveLDiversity, low: Ints, high: Ints) -> Corners:
    """Try each box with one value raised, and with none: O(values · log values) per box."""
    rows, columns = low.shape
    order = np.argsort(-low, axis=1, kind="stable")
    falling = np.take_along_axis(low, order, axis=1)
    top = part.l - 1
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
    factor = positive_fraction(part.c, "c")
    bad = at_least(most, factor.denominator, tails, factor.numerator)
    violated: Flags = np.asarray(bad.any(axis=1))
    one = np.argmax(bad, axis=1) - 1
    point, some = low.copy(), np.flatnonzero(violated & (one >= 0))
    point[some, one[some]] = high[some, one[some]]
    return Corners(~violated, violated, point, rows)


def at_least(left: Ints, by: int, right: Ints, times: int) -> Flags:
    """Tell where left·by ≥ right·times, in integers of any size."""
    largest = max(int(left.max(initial=1)) * by, int(right.max(initial=1)) * times)
    if largest < 2**62:
        return np.asarray(left * by >= right * times)
    return np.asarray(left.astype(object) * by >= right.astype(object) * times, dtype=np.bool_)
