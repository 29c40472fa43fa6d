"""Constraints on how sensitive values are distributed in every group.

Entropy l-diversity: their entropy is at least log l. Recursive (c, l)-diversity: the most frequent
value does not outweigh the rare ones. t-closeness: they are distributed nearly as in the whole
table. None of them is EG monotonic: each can fail when records are added.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from fractions import Fraction
from typing import TYPE_CHECKING, ClassVar, Literal, TypeAlias, get_args

import numpy as np
from numpy.typing import NDArray

from quiltwork.arguments import choice
from quiltwork.errors import InvalidInputError
from quiltwork.exact import Number, integer, positive_fraction, shortened, to_fraction
from quiltwork.tables.constraints.constraint import MOST, Constraint, SecretCounts, agreeing

if TYPE_CHECKING:
    from quiltwork.tables.encoding import CodedTable

_CLOSE = 1e-11
_MOST = 10**15
_MOST_RECORDS = 20_000
"""Ties are decided in integers of about this many digits; a larger one counts as a failure."""
Distance: TypeAlias = Literal["equal", "ordered"]


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

    def __str__(self) -> str:
        return f"recursive ({self.c}, {self.l})-diversity"


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
        if encoded.joined:
            raise InvalidInputError(
                "A sensitive value has several spellings, such as 1.5 and 1.50. Should they be "
                "two values, distributions are further apart than if they are one; spell it in "
                "one way for t-closeness."
            )
        codes = encoded.sensitive.astype(np.int64)
        if encoded.subject is not None:
            width = len(encoded.sensitive_values)
            codes = np.unique(encoded.subject * width + codes) % width
        counts = np.bincount(codes, minlength=len(encoded.sensitive_values))
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
