"""t-closeness: the sensitive values of every group are distributed nearly as in the whole table.

Distances are computed in integers as long as floats hold them.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from fractions import Fraction
from functools import cached_property
from typing import TYPE_CHECKING, ClassVar, Literal, TypeAlias, get_args

import numpy as np
from numpy.typing import NDArray

from quiltwork.arguments import choice
from quiltwork.errors import InvalidInputError
from quiltwork.exact import Number, shortened, to_fraction
from quiltwork.tables.codes.group import SparseCounts
from quiltwork.tables.codes.histogram import SecretCounts
from quiltwork.tables.constraints.coalition_bounds import Status
from quiltwork.tables.constraints.constraint import Constraint, agreeing
from quiltwork.tables.constraints.corners import (
    ROUNDING,
    Corners,
    Floats,
    Ints,
    bound_histograms,
    worst_corners,
)

if TYPE_CHECKING:
    from quiltwork.tables.codes.encoding import CodedTable

Distance: TypeAlias = Literal["equal", "ordered"]
_LARGEST_INTEGER = 2.0**53


@dataclass(frozen=True)
class TCloseness(Constraint):
    """Earth mover's distance to the whole table at most t, computed exactly.

    `distance="equal"`: every two values are equally far apart, so the distance is half the sum of
    the differences. `distance="ordered"`: the values that occur lie on a line, evenly spaced in
    their order (numbers, dates, or a declared order). The whole table is the reference, whatever a
    coalition takes away. Generalization monotonic, not EG monotonic.

    Raises:
        InvalidInputError: unless 0 ≤ t < 1 and the distance is one of the two.
    """

    t: Number
    distance: Distance = "equal"
    reference: tuple[int, ...] | None = None
    eg_monotonic: ClassVar[bool] = False
    generalization_monotonic: ClassVar[bool] = True
    corners_suffice: ClassVar[bool] = True

    def __post_init__(self) -> None:
        if not 0 <= to_fraction(self.t, "t") < 1:
            raise InvalidInputError(f"t must be at least 0 and below 1, not {shortened(self.t)}.")
        choice(self.distance, get_args(Distance), "The distance")

    def bind(self, encoded: CodedTable) -> TCloseness:
        """Take the distribution of the whole table as the reference.

        Raises:
            InvalidInputError: for the ordered distance on values without an order, and for values
                of which it is not known whether they are one.
        """
        if self.distance == "ordered" and encoded.sensitive_kind == "categorical":
            raise InvalidInputError(
                "The ordered distance needs sensitive values with an order; declare it with "
                "Table(…, ordinal={column: values in order}), or take distance='equal'."
            )
        together = encoded.class_of
        if together is not None and (np.bincount(together)[: len(encoded.classes)] > 1).any():
            raise InvalidInputError(
                "Sensitive values count as one under the labels of their hierarchy, by which "
                "distributions are closer than by the values: take t-closeness without levels."
            )
        if encoded.respelled:
            raise InvalidInputError(
                f"Column {encoded.respelled[0]!r} has a sensitive value in several spellings, such "
                "as 1.5 and 1.50 or Flu and flu. Should they be two values, distributions are "
                "further apart than if they are one; spell it in one way for t-closeness "
                "(quiltwork check shows them)."
            )
        width = len(encoded.classes)
        codes = encoded.row_classes.astype(np.int64)
        if encoded.subject is not None:
            codes = np.unique(encoded.subject * (width + 1) + codes) % (width + 1)
        counts = np.bincount(codes, minlength=width + 1)[:width]
        return replace(self, reference=tuple(counts.tolist()))

    def holds(self, left: SecretCounts) -> bool:
        """Tell whether the distance is at most t."""
        distance = self.emd(left)
        return distance is not None and distance <= to_fraction(self.t, "t")

    def fitness(self, left: SecretCounts) -> float:
        """Return (1 − distance) / (1 − t)."""
        distance = self.emd(left)
        if distance is None:
            return 0.0
        return agreeing(float((1 - distance) / (1 - to_fraction(self.t, "t"))), self.holds(left))

    def emd(self, left: SecretCounts) -> Fraction | None:
        """Return the earth mover's distance to the reference; None if there are no records.

        Raises:
            InvalidInputError: if the constraint was not bound to a table.
        """
        whole = self.whole
        here = np.zeros(len(whole), dtype=np.int64)
        here[left.values] = left.counts
        total = int(here.sum())
        if total == 0:
            return None
        return _distance(here, total, whole, self.distance)

    @property
    def table_values(self) -> int | None:
        """How many values the whole table has, which it compares with."""
        return len(self.whole)

    @property
    def compares_with_whole(self) -> bool:
        """Whether rows that are left out change what groups are compared with."""
        return True

    def with_reference(self, counts: tuple[int, ...]) -> TCloseness:
        """Return it with the whole table's counts by value."""
        return replace(self, reference=counts)

    def bound(self, counts: SparseCounts, m: int) -> Status:
        """Decide groups that fail as they are, and those far from failing."""
        return bound_histograms(self, counts, m)

    def worst_between(self, low: Ints, high: Ints) -> Corners | None:
        """Look in each box for a histogram that violates; columns are sensitive values."""
        largest = int(high.sum(axis=1).max(initial=1))
        return worst_corners(ExcessDistance.of(self, largest), self, low, high)

    @property
    def whole(self) -> NDArray[np.int64]:
        """How often each value occurs in the whole table.

        Raises:
            InvalidInputError: if the constraint was not bound to a table.
        """
        if self.reference is None:
            raise InvalidInputError(
                "t-closeness compares with the whole table; call bind(table.encoded) first."
            )
        return np.array(self.reference, dtype=np.int64)

    def __str__(self) -> str:
        return f"{self.t}-closeness" + (" (ordered)" if self.distance == "ordered" else "")


def _distance(
    here: NDArray[np.int64], total: int, whole: NDArray[np.int64], distance: Distance
) -> Fraction:
    overall = int(whole.sum())
    exact = np.int64 if total * overall < 2**60 else object
    gaps = here.astype(exact) * overall - whole.astype(exact) * total
    if distance == "equal":
        return Fraction(int(np.abs(gaps).sum()), 2 * total * overall)
    moved = sum(map(int, np.abs(np.cumsum(gaps))[:-1]))
    return Fraction(moved, max(len(here) - 1, 1) * total * overall)


@dataclass(frozen=True, eq=False)
class ExcessDistance:
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
    def of(cls, part: TCloseness, largest: int) -> ExcessDistance:
        """Prepare a bound constraint for groups of at most `largest` records."""
        whole = part.whole.astype(np.float64)
        total, values = int(whole.sum()), max(len(whole), 2)
        t = to_fraction(part.t, "t") * (values - 1 if part.distance == "ordered" else 2)
        if 8 * t.denominator * values * total * largest < _LARGEST_INTEGER:
            factor, slack, rounding = float(t.denominator), float(t.numerator * total), 0.0
        else:
            factor, slack = 1.0, float(t) * total
            rounding = 8.0 * (values + 8) * values * total * ROUNDING
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
        chords = 8.0 * (high.shape[1] + 8) ** 2 * self._total * self.factor * ROUNDING
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
