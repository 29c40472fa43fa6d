"""`Spending`: the record of one release for accounting, made by every system, stored by a ledger.

It records what happened, not what it costs: which time points were used, and by how much the
log-probability of an answer can change when some of them change. An accountant computes the cost of
a list of spendings under a belief. All numbers are exact fractions.

Changing the time points of a run A moves a release by at most

    per_point · |A ∩ S|  +  per_pair · (pairs of neighbours within S that touch A)  +  once

on the window S, and by nothing if A and S do not meet. A count or histogram pays per point,
transition counts per pair, and a rounded answer once more for its rounding.

Theorem: docs/theory/joint-quilt-accountant.md
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, fields, replace
from fractions import Fraction
from functools import lru_cache
from typing import Any, Literal, Protocol, TypeAlias, get_args

from quiltwork.arguments import choice, instance
from quiltwork.errors import InvalidInputError
from quiltwork.exact import (
    Number,
    integer,
    parse_stored_fraction,
    positive_fraction,
    shortened,
    to_fraction,
)
from quiltwork.queries import Query
from quiltwork.queries.query import parse_query

Composition: TypeAlias = Literal["levels", "squares", "general", "nothing"]
"""The theorem by which a release may be combined with others.

`levels`: any release with a level for substituting one time point; levels add up per time point.
`squares`: Gaussian noise, or any mechanism that it dominates; squares of levels add up per time
point. `general`: Theorem 3.6; needs `epsilon` and a `divergence` from everything before it.
`nothing`: no theorem combines it, as for an uncapped optimal mechanism: it must stay alone.
"""

_LARGEST = 10**100
_OMITTED = (("span", None), ("runs", ()), ("square", 0))
"""Default values that are left out of a record, as records of older versions lack these fields."""
_COMMON_FIELDS = {
    *("start", "stop", "per_point", "per_pair", "once", "composes_by", "epsilon", "divergence"),
    *("quilts", "label"),
}
_EXACT = ("per_point", "per_pair", "once", "epsilon", "divergence", "span", "square")


class HasSpending(Protocol):
    """Any object with a spending, such as a release."""

    @property
    def spending(self) -> Spending:
        """The record for accounting."""


@dataclass(frozen=True)
class Spending:
    """One release on the window start..stop (1-based, inclusive); see `dp` and `of_query`.

    Args:
        start: the first time point used.
        stop: the last.
        per_point: log-change for every changed time point of the window.
        per_pair: log-change for every pair of neighbours in the window that a change touches.
        once: log-change for touching the window at all.
        composes_by: the theorem that combines it with other releases.
        epsilon: the Pufferfish level the release alone was made for, where it was made for one;
            needed unless it composes by levels.
        divergence: Theorem 3.6's bound E against all releases before this one.
        quilts: a name of the quilt sets it was calibrated with; Theorem 2.6 needs equal ones.
        label: a name for people.
        runs: the parts of the window that were used, if not all of it; each is charged as a window.
        span: for a sum or mean of numbers, the width of the range that they were clipped to;
            accounts under Gaussian beliefs need it.
        square: for a release that composes by squares, μ² for substituting one time point of the
            window; `per_point`, `per_pair` and `once` are then sensitivities over σ.

    Raises:
        InvalidInputError: if a number is not exact and non-negative, the window is empty, or a
            field that the theorem in `composes_by` needs is missing.

    >>> Spending(1, 10, per_point=Fraction(1, 10)).cost(4, 6)
    Fraction(3, 10)
    """

    start: int
    stop: int
    per_point: Fraction = Fraction(0)
    per_pair: Fraction = Fraction(0)
    once: Fraction = Fraction(0)
    composes_by: Composition = "levels"
    epsilon: Fraction | None = None
    divergence: Fraction | None = None
    quilts: str | None = None
    label: str = ""
    span: Fraction | None = None
    runs: tuple[tuple[int, int], ...] = ()
    square: Fraction = Fraction(0)

    def __post_init__(self) -> None:
        start = integer(self.start, "The first time point of a window", 1)
        stop = integer(self.stop, "The last time point of a window", start)
        object.__setattr__(self, "start", start)
        object.__setattr__(self, "stop", stop)
        for name in _EXACT:
            object.__setattr__(self, name, _not_negative(getattr(self, name), name))
        choice(self.composes_by, get_args(Composition), "composes_by")
        instance(self.label, str, "label")
        if self.quilts is not None:
            instance(self.quilts, str, "quilts")
        self._check_theorem_fields()

    def _check_theorem_fields(self) -> None:
        if (self.square > 0) != (self.composes_by == "squares"):
            raise InvalidInputError(
                "square is the squared level of Gaussian noise; give it with composes_by='squares' "
                "and only there."
            )
        without_level = self.composes_by in ("general", "nothing")
        has_charges = self.per_point or self.per_pair or self.once
        if without_level and (self.epsilon is None or has_charges):
            raise InvalidInputError(
                f"A release that composes by {self.composes_by!r} is priced by its own epsilon and "
                "nothing else; give epsilon."
            )
        if (self.divergence is not None) != (self.composes_by == "general"):
            raise InvalidInputError(
                "divergence is Theorem 3.6's E against everything released before; give it with "
                "composes_by='general' and only there."
            )

    @classmethod
    def dp(cls, dp_epsilon: Number, start: int, stop: int, label: str = "") -> Spending:
        """Record any release that is dp_epsilon-DP for substituting one time point of the window.

        >>> Spending.dp(0.1, 1, 10).dp_epsilon
        Fraction(1, 10)
        """
        return cls(start, stop, per_point=positive_fraction(dp_epsilon, "dp_epsilon"), label=label)

    @classmethod
    def gaussian(
        cls,
        start: int,
        stop: int,
        *,
        rho: Number | None = None,
        gdp: Number | None = None,
        label: str = "",
    ) -> Spending:
        """Record Gaussian noise of ρ per time point of the window, or any release of level `gdp`.

        ρ = μ²/2 for substituting one time point. A mechanism that is only known to be
        ρ-zero-concentrated has no μ; give the least μ whose trade-off curve lies above its own.

        >>> Spending.gaussian(1, 10, rho=0.02).square
        Fraction(1, 25)
        """
        if (rho is None) == (gdp is None):
            raise InvalidInputError("Give rho= or gdp=, and only one of them.")
        if rho is not None:
            square = 2 * positive_fraction(rho, "rho")
        else:
            square = positive_fraction(gdp, "gdp") ** 2
        return cls(start, stop, composes_by="squares", square=square, label=label)

    @classmethod
    def of_gaussian(
        cls,
        query: Query,
        scale: Number,
        length: int,
        epsilon: Number | None = None,
        label: str = "",
    ) -> Spending:
        """Record the answer to a query with Gaussian noise of this standard deviation.

        >>> from quiltwork import queries
        >>> Spending.of_gaussian(queries.histogram(), 10, 100).square
        Fraction(1, 50)
        """
        sigma = positive_fraction(scale, "scale")
        spent = cls.of_query(query, sigma, length, epsilon=epsilon, label=label)
        return replace(spent, composes_by="squares", square=query.squared_l2_sensitivity / sigma**2)

    @classmethod
    def of_query(
        cls,
        query: Query,
        scale: Number,
        length: int,
        epsilon: Number | None = None,
        quilts: str | None = None,
        label: str = "",
    ) -> Spending:
        """Record the answer to a query with integer noise of this scale.

        `scale` is in units of the integers that `query.evaluate` returns; `epsilon` is the level
        that the noise was calibrated for, if it was.

        >>> from quiltwork import queries
        >>> Spending.of_query(queries.transitions(), 8, 100).per_pair
        Fraction(1, 4)
        """
        sigma = positive_fraction(scale, "scale")
        start, stop = parse_query(query).window(integer(length, "length", 1))
        level = None if epsilon is None else positive_fraction(epsilon, "epsilon")
        point, pair, once = query.sensitivity
        return cls(
            start,
            stop,
            point / sigma,
            pair / sigma,
            once / sigma,
            epsilon=level,
            quilts=quilts,
            label=label,
            span=getattr(query, "span", None),
            runs=query.runs,
        )

    @property
    def parts(self) -> tuple[Spending, ...]:
        """One spending for each run; the spending itself if it used its whole window."""
        if not self.runs:
            return (self,)
        return tuple(replace(self, start=a, stop=b, runs=()) for a, b in self.runs)

    def times(self, number: Number) -> Spending:
        """Return the spending of `number` such releases, or of one with so many times its charges.

        >>> Spending.dp(0.1, 1, 10).times(3).dp_epsilon
        Fraction(3, 10)
        """
        factor = positive_fraction(number, "number")
        charge_factor = factor
        if self.composes_by == "squares":  # charges are over σ, which falls by the square root
            charge_factor = Fraction(math.sqrt(factor)) * (1 + Fraction(1, 2**50))
        return replace(
            self,
            per_point=self.per_point * charge_factor,
            per_pair=self.per_pair * charge_factor,
            once=self.once * charge_factor,
            square=self.square * factor,
            epsilon=None,
            quilts=None,
        )

    @property
    def dp_epsilon(self) -> Fraction | None:
        """The level for substituting one time point; None where there is none."""
        if self.composes_by != "levels":
            return None
        # The second time point of a part touches two pairs, if any does.
        inner = ((part, min(part.start + 1, part.stop)) for part in self.parts)
        return max(part.cost(node, node) for part, node in inner)

    @property
    def method(self) -> str | None:
        """The calibration method, where `quilts` names it."""
        return None if self.quilts is None else self.quilts.partition(" at scale ")[0]

    def cost(self, first: int, last: int) -> Fraction:
        """Return the log-change when the time points first..last change.

        >>> Spending.dp(0.1, 5, 9).cost(1, 6)
        Fraction(1, 5)
        """
        if self.runs:
            return sum((part.cost(first, last) for part in self.parts), Fraction(0))
        low = max(integer(first, "first", 1), self.start)
        high = min(integer(last, "last", 1), self.stop)
        if high < low:
            return Fraction(0)
        pairs = max(0, min(high, self.stop - 1) - max(low - 1, self.start) + 1)
        return self.per_point * (high - low + 1) + self.per_pair * pairs + self.once

    def to_body(self) -> dict[str, Any]:
        """Write the record as JSON values, exact numbers as text.

        >>> Spending.dp(0.1, 1, 10, label="Monday").to_body()["per_point"]
        '1/10'
        """
        values = ((field.name, getattr(self, field.name)) for field in fields(self))
        body = {
            name: str(value) if isinstance(value, Fraction) else value
            for name, value in values
            if (name, value) not in _OMITTED
        }
        return {**body, "runs": [list(run) for run in self.runs]} if self.runs else body

    @classmethod
    def from_body(cls, body: Mapping[str, Any]) -> Spending:
        """Read what `to_body` wrote.

        Raises:
            InvalidInputError: if a field is unknown, missing or damaged.
        """
        arguments: dict[str, Any] = {
            name: _exact(name, value) if name in _EXACT else value for name, value in body.items()
        }
        if _is_valid_and_common(arguments):  # skips __post_init__: replays read 10⁵ of them
            spending = object.__new__(cls)
            spending.__dict__.update(arguments)
            return spending
        try:
            if "runs" in arguments:
                arguments["runs"] = tuple((start, stop) for start, stop in arguments["runs"])
            return cls(**arguments)
        except (TypeError, ValueError) as error:
            if isinstance(error, InvalidInputError):
                raise
            raise InvalidInputError(f"Not the record of a release: {error}.") from None


def _is_valid_and_common(body: Mapping[str, Any]) -> bool:
    """Whether these are valid fields of a release that composes by levels, as most do."""
    if body.keys() - {"span"} != _COMMON_FIELDS or body["composes_by"] != "levels":
        return False
    start, stop, quilts = body["start"], body["stop"], body["quilts"]
    numbers = [body[name] for name in ("per_point", "per_pair", "once")]
    numbers += [body[name] for name in ("epsilon", "span") if body.get(name) is not None]
    return (
        type(start) is int
        and type(stop) is int
        and 1 <= start <= stop
        and body["divergence"] is None
        and type(body["label"]) is str
        and (quilts is None or type(quilts) is str)
        and all(type(number) is Fraction for number in numbers)
        and all(0 <= number.numerator <= _LARGEST * number.denominator for number in numbers)
    )


def as_spending(release: HasSpending | Spending) -> Spending:
    """Return the spending of a release, or a spending as it is.

    Raises:
        InvalidInputError: if it is neither.
    """
    spending = release if isinstance(release, Spending) else getattr(release, "spending", None)
    if not isinstance(spending, Spending):
        raise InvalidInputError(
            f"{type(release).__name__} is no release; give what qw.release returned, or a Spending."
        )
    return spending


def _exact(name: str, text: Any) -> Fraction | None:
    if text is None:
        return None
    return (
        _cached(text, name) if isinstance(text, str) else parse_stored_fraction(text, _field(name))
    )


@lru_cache(maxsize=4096)
def _cached(text: str, name: str) -> Fraction:
    """Read a number; the same few numbers occur in most records."""
    return parse_stored_fraction(text, _field(name))


def _field(name: str) -> str:
    return f"The field {name!r}"


def _not_negative(value: Any, name: str) -> Fraction | None:
    if value is None and name in ("epsilon", "divergence", "span"):
        return None
    if type(value) is Fraction and 0 <= value.numerator <= _LARGEST * value.denominator:
        return value
    fraction = to_fraction(value, name)
    if fraction < 0:
        raise InvalidInputError(f"{name} must not be negative, not {shortened(value)}.")
    if fraction > _LARGEST:
        raise InvalidInputError(f"{name} is above 10^100, which protects nothing; add some noise.")
    return fraction
