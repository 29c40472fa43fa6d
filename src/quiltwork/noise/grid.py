"""The public grid for real-valued queries.

A grid of step 2^-g is fixed from the noise scale before looking at data; a value is rounded to it
(half up, a translation-invariant rule) and integer noise is added in steps. Rounding can move two
neighbouring values one step further apart in each coordinate, which `rounded_sensitivity` charges
(`docs/theory/public-grid.md`).
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from fractions import Fraction

from quiltwork.errors import InvalidInputError
from quiltwork.exact import integer, positive_fraction, to_fraction

STEPS_PER_SCALE_BITS = 20


@dataclass(frozen=True)
class PublicGrid:
    """The multiples of a power of two.

    >>> grid = PublicGrid.for_scale(Fraction(3, 2))
    >>> grid.step, grid.round(0.3)
    (Fraction(1, 1048576), 314573)
    """

    step: Fraction

    def __post_init__(self) -> None:
        step = self.step
        if step <= 0 or any(n & (n - 1) for n in (step.numerator, step.denominator)):
            raise InvalidInputError(f"The step of a grid must be a power of two, not {step!r}.")

    @classmethod
    def for_scale(cls, scale: object, steps_bits: int = STEPS_PER_SCALE_BITS) -> PublicGrid:
        """The grid with between 2^steps_bits and 2^(steps_bits+1) steps to one noise scale."""
        value = positive_fraction(scale, "scale")
        exponent = value.numerator.bit_length() - value.denominator.bit_length()
        if Fraction(2) ** exponent > value:
            exponent -= 1
        return cls(Fraction(2) ** (exponent - steps_bits))

    def round(self, value: object) -> int:
        """Return the number of steps nearest to a value, read exactly; half a step rounds up.

        Raises:
            InvalidInputError: if the value is not a finite number.
        """
        if isinstance(value, float) and math.isfinite(value):
            return math.floor(Fraction(value) / self.step + Fraction(1, 2))
        return math.floor(to_fraction(value, "value") / self.step + Fraction(1, 2))

    def value(self, steps: int) -> Fraction:
        """The real number at `steps` steps."""
        return steps * self.step

    def rounded_sensitivity(self, sensitivity: object, coordinates: int = 1) -> int:
        """Return, in steps, the most that the rounded values of two neighbours differ in L1.

        If the values differ by L in L1 over d coordinates, their roundings differ by less than
        L/step + d steps and by a whole number of them: ⌈L/step⌉ − 1 + d for L > 0.

        >>> PublicGrid(Fraction(1, 4)).rounded_sensitivity(1)
        4
        """
        reach = to_fraction(sensitivity, "sensitivity") / self.step
        if reach < 0:
            raise InvalidInputError(f"sensitivity must not be negative, not {sensitivity!r}.")
        return math.ceil(reach) - 1 + integer(coordinates, "coordinates", 1) if reach else 0
