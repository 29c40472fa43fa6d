"""Sums and means of numeric states, or of numbers, between public bounds.

Each state's value is rounded to a public grid of 2^bits steps between lo and hi, the steps are
added as integers, integer noise is added, and division comes last, so rounding costs no privacy.
The sensitivity to one point is 2^bits steps. The grid is chosen from the noise, before the data are
read, and so fine that rounding costs less than a thousandth of the noise (up to about 10⁷ points at
ε = 1; beyond, what 64-bit integers allow). Where the states have a smaller range than the bounds,
their range is used: the answers are the same, with a smaller sensitivity.

Numbers that are not states are added exactly and the total is rounded once: under a Gaussian
belief all of them change a little together, and rounding each would turn that into whole steps.
The single rounding is charged one step.

Theorem: docs/theory/public-grid-queries.md
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from fractions import Fraction
from typing import Any, ClassVar, Self, TypeGuard

import numpy as np
from numpy.typing import NDArray

from quiltwork.beliefs.states import Label
from quiltwork.errors import InvalidInputError
from quiltwork.exact import float_down, float_up, integer, to_fraction
from quiltwork.queries.query import IntArray, Integers, Query, Sensitivity, States, counts_of

_FINENESS_BITS = 10
_ONCE_BITS = 20
_NOISELESS_BITS = 40
_SAFE_BITS = 62
_LARGEST_BOUND = Fraction(10) ** 150
_CHUNK = 1 << 22


@dataclass(frozen=True, kw_only=True)
class Sum(Query):
    """The sum of the values of the states, each between lo and hi.

    A state's value is its label, which must be a number. One outside lo..hi is refused, or clipped
    with `clip`; rows of beliefs without states are always clipped, since a refusal would leak.
    `bits` is set by `refined`, to 1 or more. A query as the user writes it has bits 0: no grid yet,
    and its sensitivity is in ranges hi − lo.
    """

    kind: ClassVar[str] = "sum"

    lo: Fraction
    hi: Fraction
    clip: bool = False
    bits: int = 0

    def __post_init__(self) -> None:
        super().__post_init__()
        object.__setattr__(self, "lo", to_fraction(self.lo, "lo"))
        object.__setattr__(self, "hi", to_fraction(self.hi, "hi"))
        integer(self.bits, "bits", 0)
        if not isinstance(self.clip, bool):
            raise InvalidInputError(f"clip must be True or False, not {self.clip!r}.")
        if max(abs(self.lo), abs(self.hi)) > _LARGEST_BOUND:
            raise InvalidInputError(
                f"The bounds of a {self.kind} lie beyond ±1e150, where answers and noise would "
                "leave the range of floats; give values in a larger unit."
            )
        if self.lo >= self.hi:
            raise InvalidInputError(
                f"lo must be below hi, not {float(self.lo)!r} and {float(self.hi)!r}; give the "
                "smallest and the largest value that a time point may have."
            )
        if self.hi - self.lo < 1 / _LARGEST_BOUND:
            raise InvalidInputError(
                f"The bounds of a {self.kind} are less than 1e-150 apart, where noise would vanish "
                "in rounding; give values in a smaller unit."
            )

    @property
    def span(self) -> Fraction:
        """The width of the range, hi − lo."""
        return self.hi - self.lo

    @property
    def step(self) -> Fraction:
        """The distance between neighbouring grid points: (hi − lo)/2^bits."""
        return self.span / (1 << self.bits)

    @property
    def subdivision(self) -> int:
        """The number of grid steps in the range hi − lo."""
        return 1 << self.bits

    @property
    def sensitivity(self) -> Sensitivity:
        """The range hi − lo per time point, in steps."""
        return Sensitivity(self.subdivision)

    def refined(self, scale: Fraction, points: int) -> Self:
        """Return the query on a grid for noise of `scale` ranges: points·step ≤ scale/2^10 ranges.

        Rounding changes the sum by at most half a step per point, noise of scale σ ranges by about
        σ. The integer noise then has a scale of at most points·2^11 steps. Sums and sensitivities
        stay below 2^62 steps.
        """
        return self._with_steps(points * (1 << _FINENESS_BITS), scale, points)

    def _with_steps(self, steps: int, scale: Fraction, points: int) -> Self:
        """Return the query with at least `steps` steps in `scale` ranges, as far as they fit."""
        # points·2^bits must stay below 2^62: sums and sensitivities are 64-bit integers.
        safe = max(1, _SAFE_BITS - points.bit_length())
        if scale == 0:
            return replace(self, bits=min(_NOISELESS_BITS, safe))
        return replace(self, bits=min(max(1, (math.ceil(steps / scale) - 1).bit_length()), safe))

    def check(self, states: States) -> None:
        """Raise InvalidInputError for labels that are not numbers, or outside lo..hi unclipped."""
        for label in states:
            self._value(label)

    def narrowed(self, states: States) -> Self:
        """Return the query with the range of the states' values as its bounds.

        The answers are the same for every sequence of these states, and the sensitivity is the
        range of the states instead of hi − lo.

        >>> Sum(lo=0, hi=100).narrowed((20, 22.5, 30)).span
        Fraction(10, 1)
        """
        # The belief names all states, so their range is public; bounds wider than it cost nothing.
        values = [self._value(label) for label in states]
        if self.bits or len(set(values)) < 2:
            return self
        return replace(self, lo=min(values), hi=max(values))

    def _value(self, label: Label) -> Fraction:
        infinite = label in (math.inf, -math.inf)
        if not has_value(label) or (infinite and not self.clip):
            raise InvalidInputError(
                f"The state {label!r} is not a finite number; a {self.words} needs a belief whose "
                "states are finite numbers."
            )
        if infinite:
            return self.hi if label > 0 else self.lo
        value = to_fraction(int(label) if isinstance(label, bool) else label, "A state")
        if self.lo <= value <= self.hi:
            return value
        if self.clip:
            return min(max(value, self.lo), self.hi)
        raise InvalidInputError(
            f"The state {label!r} lies outside {float(self.lo)!r}..{float(self.hi)!r}; widen the "
            "bounds, or pass clip=True to count it as the nearer bound."
        )

    def steps(self, states: States) -> list[int]:
        """Return the value of each state in steps above lo, 0..2^bits, rounded half up."""
        half = Fraction(1, 2)
        return [math.floor((self._value(s) - self.lo) / self.step + half) for s in states]

    def values(self, states: States) -> list[Fraction]:
        """Return the value of each state: on the grid if there is one, else exact."""
        if self.bits == 0:
            return [self._value(s) for s in states]
        return [self.lo + self.step * m for m in self.steps(states)]

    def evaluate(self, codes: IntArray, states: States) -> Integers:
        """Return the exact sum of steps: a count per state times its steps."""
        counts = np.zeros(len(states), dtype=np.int64)
        for piece in self.pieces(codes):
            counts += counts_of(piece, len(states))  # public gaps have no state and add nothing
        total = sum(int(n) * m for n, m in zip(counts, self.steps(states), strict=True))
        return np.array([total], dtype=object)

    def cells(self, states: States) -> tuple[Any, ...]:
        """Return one cell, named by the kind."""
        return (self.kind,)

    def grid(self, points: int) -> tuple[Fraction, Fraction]:
        """Return the grid points·lo + step·m."""
        return self.lo * points, self.step

    def rounding(self, states: States, points: int, subjects: int) -> Fraction:
        """Return points times the largest distance of a state to the grid, at most half a step."""
        distances = [
            abs(self.lo + m * self.step - self._value(s))
            for s, m in zip(states, self.steps(states), strict=True)
        ]
        _, unit = self.grid(points)
        return max(distances, default=self.step / 2) * points * unit / self.step

    def present(self, noisy: Integers, states: States, points: int) -> float:
        """Return one number."""
        offset, unit = self.grid(points)
        return float(offset + unit * int(noisy[0]))

    def parameters(self) -> dict[str, Any]:
        """Return bounds, clipping and the grid."""
        return {"lo": str(self.lo), "hi": str(self.hi), "clip": self.clip, "bits": self.bits}


def has_value(label: Label) -> TypeGuard[float]:
    """Return whether a label is a number, infinities included."""
    return isinstance(label, (int, float)) and label == label  # NaN differs from itself


@dataclass(frozen=True, kw_only=True)
class Mean(Sum):
    """The mean of the values of the states: (integer sum + integer noise)·step/n, above lo."""

    kind: ClassVar[str] = "mean"

    def grid(self, points: int) -> tuple[Fraction, Fraction]:
        """Return the grid lo + step/points·m."""
        return self.lo, self.step / points

    def divisor(self, points: int) -> int:
        """Return the number of points."""
        return points


@dataclass(frozen=True, kw_only=True)
class NumericSum(Sum):
    """The sum of numbers that are not states, each clipped to lo..hi.

    `evaluate` takes the numbers themselves, as floats, instead of codes.
    """

    kind: ClassVar[str] = "numeric_sum"

    @property
    def sensitivity(self) -> Sensitivity:
        """The range per time point, plus one step for the rounding of the total."""
        return Sensitivity(self.subdivision, once=int(self.bits > 0))

    def refined(self, scale: Fraction, points: int) -> Self:
        """Return the query on a grid for noise of `scale` ranges: step ≤ scale/2^20 ranges."""
        return self._with_steps(1 << _ONCE_BITS, scale, points)

    def check(self, states: States) -> None:
        """Accept anything: numbers need no states."""

    def evaluate(self, codes: NDArray[Any], states: States) -> Integers:
        """Return the exact sum of the window's clipped numbers, rounded half up."""
        runs = [codes[start - 1 : stop] for start, stop in self.windows(len(codes))]
        part = np.concatenate(runs).astype(np.float64, copy=False)
        total = clipped_total(part, self.lo, self.hi) - self.lo * len(part)
        return np.array([math.floor(total / self.step + Fraction(1, 2))], dtype=object)

    def cells(self, states: States) -> tuple[Any, ...]:
        """Return one cell, named as for states."""
        return (self.kind.removeprefix("numeric_"),)

    def rounding(self, states: States, points: int, subjects: int) -> Fraction:
        """Return half a step per total."""
        _, unit = self.grid(points)
        return subjects * unit / 2


@dataclass(frozen=True, kw_only=True)
class NumericMean(NumericSum, Mean):
    """The mean of numbers that are not states: `NumericSum` over the number of points."""

    kind: ClassVar[str] = "numeric_mean"


def of_numbers(query: Sum) -> NumericSum:
    """Return the sum or mean as a query on numbers that are not states."""
    if isinstance(query, NumericSum):
        return query
    kind = NumericMean if isinstance(query, Mean) else NumericSum
    return kind(
        lo=query.lo, hi=query.hi, clip=True, start=query.start, stop=query.stop, runs=query.runs
    )


def clipped_total(values: NDArray[np.float64], lo: Fraction, hi: Fraction) -> Fraction:
    """Return the exact sum of floats, each clipped to lo..hi. O(n).

    A float is an integer of 53 bits times a power of two; the halves of these integers are added
    power by power, in chunks whose sums fit 53 bits. NaN counts as lo.
    """
    # Rounded into the range: the floats between them are exactly those in lo..hi.
    low, high = float_up(lo), float_down(hi)
    total = Fraction(0)
    for begin in range(0, len(values), _CHUNK):
        part = values[begin : begin + _CHUNK]
        above = part > high
        inside = part[~above & (part >= low)]
        total += hi * int(above.sum()) + lo * int(len(part) - above.sum() - len(inside))
        mantissa, power = np.frexp(inside)
        whole = (mantissa * 2.0**53).astype(np.int64)
        least = int(power.min(initial=0))
        # Halves of at most 27 bits: 2^22 of them add up below 2^53, where floats are exact.
        for half, bits in ((whole >> 26, 26), (whole & ((1 << 26) - 1), 0)):
            sums = np.bincount(power - least, weights=half.astype(np.float64))
            exact = (Fraction(int(s)) * Fraction(2) ** k for k, s in enumerate(sums) if s)
            total += sum(exact, Fraction(0)) * Fraction(2) ** (least - 53 + bits)
    return total
