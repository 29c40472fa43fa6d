"""Sums and means of numeric states between public bounds.

Each state's value is put on a public grid of 2^bits steps between lo and hi, the steps are added
as integers, integer noise is added, and division comes last: nothing extra is charged. One point
moves the sum by at most 2^bits steps. The grid is chosen from the noise, before the data are
read, so fine that putting values on it costs less than a thousandth of the noise (up to about
10⁷ points at ε = 1; beyond, what 64-bit integers allow).

Theorem: docs/theory/public-grid-queries.md
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from fractions import Fraction
from typing import Any, ClassVar, Self, TypeGuard

import numpy as np

from quiltwork.beliefs.states import Label
from quiltwork.errors import InvalidInputError
from quiltwork.exact import integer, to_fraction
from quiltwork.queries.base import IntArray, Integers, Query, States

_FINENESS_BITS = 10
_NOISELESS_BITS = 40
_SAFE_BITS = 62
_LARGEST_BOUND = Fraction(10) ** 150


@dataclass(frozen=True, kw_only=True)
class Sum(Query):
    """The sum of the values of the states, each between lo and hi.

    A state's value is its label, which must be a number. One outside lo..hi is refused, or moved
    to the nearer end with `clip`; rows of beliefs without states are always moved, since a refusal
    would tell about them. `bits` is set by `refined`, to 1 or more; a query as the user
    writes it has bits 0: no grid yet, and its `change` counts whole ranges hi − lo.
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
        """Steps in the range hi − lo."""
        return 1 << self.bits

    def _change_of_points(self, points: IntArray) -> IntArray:
        return points * self.subdivision

    def refined(self, scale: Fraction, points: int) -> Self:
        """Choose the grid for a noise of `scale` ranges: all points' steps are ≤ scale/2^10 ranges.

        Rounding moves the sum by at most half a step per point, and noise of scale σ ranges moves
        it by about σ. The integer noise then has a scale of at most points·2^11 steps. Sums and
        changes stay below 2^62 steps.
        """
        safe = max(1, _SAFE_BITS - points.bit_length())
        if scale == 0:
            return replace(self, bits=min(_NOISELESS_BITS, safe))
        wanted = math.ceil(points * (1 << _FINENESS_BITS) / scale)
        return replace(self, bits=min(max(1, (wanted - 1).bit_length()), safe))

    def check(self, states: States) -> None:
        """Refuse labels that are no numbers, or lie outside lo..hi without `clip`."""
        for label in states:
            self._value(label)

    def _value(self, label: Label) -> Fraction:
        infinite = label in (math.inf, -math.inf)
        if not has_value(label) or (infinite and not self.clip):
            raise InvalidInputError(
                f"The state {label!r} has no numeric value; a {self.kind} needs a belief whose "
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
            f"bounds, or pass clip=True to count it as the nearer one."
        )

    def steps(self, states: States) -> list[int]:
        """The value of each state in steps above lo, 0..2^bits, rounded half up."""
        half = Fraction(1, 2)
        return [math.floor((self._value(s) - self.lo) / self.step + half) for s in states]

    def values(self, states: States) -> list[Fraction]:
        """What a time point in each state adds: on the grid if there is one, else exactly."""
        if self.bits == 0:
            return [self._value(s) for s in states]
        return [self.lo + self.step * m for m in self.steps(states)]

    def evaluate(self, codes: IntArray, states: States) -> Integers:
        """Add up steps exactly, in integers: a count per state times its steps."""
        counts = np.bincount(self.part(codes), minlength=len(states))
        total = sum(int(n) * m for n, m in zip(counts, self.steps(states), strict=True))
        return np.array([total], dtype=object)

    def cells(self, states: States) -> tuple[Any, ...]:
        """One cell, named by the kind."""
        return (self.kind,)

    def grid(self, points: int) -> tuple[Fraction, Fraction]:
        """Sums lie on points·lo + step·m."""
        return self.lo * points, self.step

    def rounding(self, states: States, points: int, subjects: int) -> Fraction:
        """The worst state's distance to the grid (half a step if unknown), once per point."""
        distances = [
            abs(self.lo + m * self.step - self._value(s))
            for s, m in zip(states, self.steps(states), strict=True)
        ]
        _, unit = self.grid(points)
        return max(distances, default=self.step / 2) * points * unit / self.step

    def present(self, noisy: Integers, states: States, points: int) -> float:
        """One number."""
        offset, unit = self.grid(points)
        return float(offset + unit * int(noisy[0]))

    def parameters(self) -> dict[str, Any]:
        """Bounds, clipping and the grid."""
        return {"lo": str(self.lo), "hi": str(self.hi), "clip": self.clip, "bits": self.bits}


def has_value(label: Label) -> TypeGuard[float]:
    """Tell whether a label is a number between any bounds, infinities included."""
    return isinstance(label, (int, float)) and label == label  # NaN differs from itself


@dataclass(frozen=True, kw_only=True)
class Mean(Sum):
    """The mean of the values of the states: (integer sum + integer noise)·step/n, above lo."""

    kind: ClassVar[str] = "mean"

    def grid(self, points: int) -> tuple[Fraction, Fraction]:
        """Means lie on lo + step/points·m."""
        return self.lo, self.step / points

    def divisor(self, points: int) -> int:
        """The sum is divided by the number of points."""
        return points
