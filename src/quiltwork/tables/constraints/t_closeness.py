"""t-closeness: the sensitive values of every group are distributed nearly as in the whole table.

Distances are computed in integers as long as floats represent them exactly.
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
from quiltwork.tables.constraints.constraint import Constraint, consistent_with
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
    coalition removes. Generalization monotonic, not EG monotonic.

    Raises:
        InvalidInputError: unless 0 ≤ t < 1 and the distance is one of the two.

    >>> import pandas
    >>> from quiltwork.tables import Table, verify_m_privacy
    >>> frame = pandas.DataFrame({"age": ["2*", "2*", "3*", "3*"], "ill": [*"abaa"]})
    >>> verify_m_privacy(Table(frame, None, ["age"], "ill"), TCloseness(0.25), m=0).private
    True
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
        """Return the constraint with the whole table's distribution as reference.

        Raises:
            InvalidInputError: for the ordered distance on values without an order, and for values
                that may or may not be the same.
        """
        if self.distance == "ordered" and encoded.sensitive_kind == "categorical":
            raise InvalidInputError(
                "The ordered distance needs sensitive values with an order. Declare it with "
                "Table(…, ordinal={column: values in order}), or use distance='equal'."
            )
        class_of = encoded.class_of
        if class_of is not None and (np.bincount(class_of)[: len(encoded.classes)] > 1).any():
            raise InvalidInputError(
                "Sensitive values are counted by the labels of their hierarchy, by which "
                "distributions are closer than by the values. Use t-closeness without levels."
            )
        if encoded.respelled:
            raise InvalidInputError(
                f"Column {encoded.respelled[0]!r} has a sensitive value in several spellings, such "
                "as 1.5 and 1.50 or Flu and flu. If they were two values, distributions would be "
                "further apart than if they are one. Spell each value in one way for t-closeness "
                "(quiltwork check shows the spellings)."
            )
        width = len(encoded.classes)
        codes = encoded.row_classes.astype(np.int64)
        # A person counts once per value in the whole table, as in groups.
        if encoded.subject is not None:
            codes = np.unique(encoded.subject * (width + 1) + codes) % (width + 1)
        counts = np.bincount(codes, minlength=width + 1)[:width]
        return replace(self, reference=tuple(counts.tolist()))

    def holds(self, records: SecretCounts) -> bool:
        """Return whether the distance is at most t."""
        distance = self.emd(records)
        return distance is not None and distance <= to_fraction(self.t, "t")

    def fitness(self, records: SecretCounts) -> float:
        """Return (1 − distance) / (1 − t)."""
        distance = self.emd(records)
        if distance is None:
            return 0.0
        return consistent_with(
            float((1 - distance) / (1 - to_fraction(self.t, "t"))), self.holds(records)
        )

    def emd(self, records: SecretCounts) -> Fraction | None:
        """Return the earth mover's distance to the reference, or None for no records.

        Raises:
            InvalidInputError: if the constraint was not bound to a table.
        """
        reference = self.whole
        histogram = np.zeros(len(reference), dtype=np.int64)
        histogram[records.values] = records.counts
        total = int(histogram.sum())
        if total == 0:
            return None
        return _distance(histogram, total, reference, self.distance)

    @property
    def table_values(self) -> int | None:
        """The number of values of the whole table, which it compares with."""
        return len(self.whole)

    @property
    def compares_with_whole(self) -> bool:
        """Whether it compares groups with the whole table, so that left-out rows matter."""
        return True

    def with_reference(self, counts: tuple[int, ...]) -> TCloseness:
        """Return it with the whole table's counts by value as reference."""
        return replace(self, reference=counts)

    def bound(self, counts: SparseCounts, m: int) -> Status:
        """Decide groups that violate it as they are, and groups far from violating it."""
        return bound_histograms(self, counts, m)

    def worst_between(self, low: Ints, high: Ints) -> Corners | None:
        """Search each box for a histogram that violates; columns are sensitive values."""
        largest = int(high.sum(axis=1).max(initial=1))
        return worst_corners(ExcessDistance.of(self, largest), self, low, high)

    @property
    def whole(self) -> NDArray[np.int64]:
        """The number of records with each value in the whole table.

        Raises:
            InvalidInputError: if the constraint was not bound to a table.
        """
        if self.reference is None:
            raise InvalidInputError(
                "t-closeness compares with the whole table: call bind(table.encoded) first."
            )
        return np.array(self.reference, dtype=np.int64)

    def __str__(self) -> str:
        return f"{self.t}-closeness" + (" (ordered)" if self.distance == "ordered" else "")


def _distance(
    histogram: NDArray[np.int64], total: int, reference: NDArray[np.int64], distance: Distance
) -> Fraction:
    """Return the earth mover's distance between two histograms, exactly."""
    overall = int(reference.sum())
    # Integers keep the comparison with t exact; Python integers beyond 2^60.
    exact = np.int64 if total * overall < 2**60 else object
    gaps = histogram.astype(exact) * overall - reference.astype(exact) * total
    if distance == "equal":
        return Fraction(int(np.abs(gaps).sum()), 2 * total * overall)
    moved = sum(map(int, np.abs(np.cumsum(gaps))[:-1]))
    return Fraction(moved, max(len(histogram) - 1, 1) * total * overall)


@dataclass(frozen=True, eq=False)
class ExcessDistance:
    """F(x) = factor·Σ_j |gap_j(x)| − slack·N: the distance to the whole table minus t, scaled.

    The gaps are W·x_v − w_v·N (equal distance), or the same with running sums (ordered), for the
    whole table's w and W = Σ w.

    Attributes:
        whole: w.
        expected: w, or its running sums without the last, which has no gap.
        ordered: whether gaps are those of running sums.
        factor, slack: chosen so that F is an integer; rounded if it would not fit a float.
        rounding: the rounding error of F as a share of the total N; 0 if F is exact.
    """

    whole: Floats
    expected: Floats
    ordered: bool
    factor: float
    slack: float
    rounding: float

    @classmethod
    def of(cls, part: TCloseness, largest: int) -> ExcessDistance:
        """Build F for a bound constraint and groups of at most `largest` records."""
        whole = part.whole.astype(np.float64)
        total, values = int(whole.sum()), max(len(whole), 2)
        t = to_fraction(part.t, "t") * (values - 1 if part.distance == "ordered" else 2)
        # Below 2^53 all terms are exact in floats, so that ties at t are decided correctly.
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
        """Return F at each point, and a bound on its rounding error (0 where it is exact)."""
        number = points.sum(axis=1)
        sums = np.cumsum(points, axis=1)[:, :-1] if self.ordered else points
        gaps = sums * self._total - self.expected * number[:, None]
        value = self.factor * np.abs(gaps).sum(axis=1) - self.slack * number
        return value, self.rounding * number

    def line(self, low: Floats, high: Floats) -> tuple[Floats, Floats]:
        """Return (constant, slopes) of a linear upper bound on F in each box.

        Each |gap| is replaced by its chord over the gap's range in the box.
        """
        least, most = self._gaps(low, high)
        open_ = (least < 0) & (most > 0)
        width = np.where(open_, most - least, 1.0)
        sign = np.where(open_, (most + least) / width, np.where(most > 0, 1.0, -1.0))
        chord_excess = np.where(
            open_, -2.0 * most * (least / width), 0.0
        )  # of the chord over |gap|
        chords = 8.0 * (high.shape[1] + 8) ** 2 * self._total * self.factor * ROUNDING
        doubt = np.where(open_.any(axis=1), chords, self.rounding) * high.sum(axis=1)
        return self.factor * chord_excess.sum(axis=1) + doubt, self._slopes(sign)

    def _gaps(self, low: Floats, high: Floats) -> tuple[Floats, Floats]:
        """Return the least and the largest gap of each value in each box."""
        lowest_total, highest_total = low.sum(axis=1)[:, None], high.sum(axis=1)[:, None]
        if self.ordered:
            low, high = np.cumsum(low, axis=1)[:, :-1], np.cumsum(high, axis=1)[:, :-1]
        remainder = self._total - self.expected
        return (
            remainder * low - self.expected * (highest_total - high),
            remainder * high - self.expected * (lowest_total - low),
        )

    def _slopes(self, sign: Floats) -> Floats:
        """Return the slope of F in each value, given the sign with which each gap counts."""
        common = sign @ self.expected
        own = sign
        if self.ordered:
            own = np.zeros((len(sign), len(self.whole)))
            own[:, :-1] = np.cumsum(sign[:, ::-1], axis=1)[:, ::-1]
        return self.factor * (own * self._total - common[:, None]) - self.slack
