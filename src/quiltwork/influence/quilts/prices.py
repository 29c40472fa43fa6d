"""Prices of candidates: the noise that a quilt needs, or its leakage at a given noise.

Both grow with the cost of the nearby set and with the influence. Floats only compare candidates;
the result is computed in fractions and rounded up, with a relative 2^-40 on top where influence is
involved (`docs/theory/rounding.md`).
"""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property

import numpy as np

from quiltwork.exact import float_down, float_up
from quiltwork.influence.quilts.intervals import BestQuilt
from quiltwork.influence.quilts.protocol import FloatArray, IntArray

_SLACK = 1 + Fraction(1, 2**40)
_COMPARISON = 1 + 2.0**-48


@dataclass(frozen=True)
class ScaleFor:
    """The noise that a candidate needs: cost/(ε − e), +∞ where e ≥ ε."""

    epsilon: Fraction

    @cached_property
    def _level(self) -> float:
        return float_down(self.epsilon)

    def __call__(self, cost: IntArray, influence: FloatArray) -> FloatArray:
        """One scale per candidate, not below the exact one where there is influence."""
        room = self._level - influence
        with np.errstate(divide="ignore", invalid="ignore"):
            return np.where(room > 0, _compared(cost / room, influence), np.inf)

    def rounded_up(self, candidate: BestQuilt) -> Fraction:
        """The scale of one candidate; exact if it has no influence."""
        if candidate.influence == 0:
            return candidate.cost / self.epsilon
        scale = candidate.cost / (self.epsilon - Fraction(candidate.influence))
        # rounded to a float above, so that printing and reading lose nothing
        return Fraction(float_up(scale * _SLACK))


@dataclass(frozen=True)
class LeakAt:
    """The leakage of a candidate at a DP level x for one substituted node: cost·x + e."""

    level: Fraction

    @cached_property
    def _level(self) -> float:
        return float_up(self.level)

    def __call__(self, cost: IntArray, influence: FloatArray) -> FloatArray:
        """One leakage per candidate, not below the exact one where there is influence."""
        return _compared(cost * self._level + influence, influence)

    def rounded_up(self, candidate: BestQuilt) -> float:
        """The leakage of one candidate; exact up to one rounding if it has no influence."""
        leak = candidate.cost * self.level + Fraction(candidate.influence)
        return float_up(leak if candidate.influence == 0 else leak * _SLACK)


def _compared(price: FloatArray, influence: FloatArray) -> FloatArray:
    """Round prices that involve influence up, so that floats never prefer a worse candidate."""
    return np.where(influence > 0, price * _COMPARISON, price)
