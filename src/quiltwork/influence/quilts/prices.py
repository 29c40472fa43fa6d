"""Prices of candidates: the noise that one asks for, or what it leaks at a given noise.

Both grow with the cost of what is nearby and with the influence. Floats only compare candidates;
the number that is reported is computed in fractions and rounded up, with a relative 2^-40 on top
where influence is involved (`docs/theory/rounding.md`).
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
    """The noise a candidate asks for: cost/(ε − e), +∞ where e ≥ ε."""

    epsilon: Fraction

    @cached_property
    def _level(self) -> float:
        return float_down(self.epsilon)

    def __call__(self, cost: IntArray, influence: FloatArray) -> FloatArray:
        """One scale per candidate, never below the true one where there is influence."""
        room = self._level - influence
        with np.errstate(divide="ignore", invalid="ignore"):
            return np.where(room > 0, _compared(cost / room, influence), np.inf)

    def rounded_up(self, found: BestQuilt) -> Fraction:
        """The scale of one candidate; exact if it has no influence."""
        if found.influence == 0:
            return found.cost / self.epsilon
        scale = found.cost / (self.epsilon - Fraction(found.influence))
        return Fraction(float_up(scale * _SLACK))


@dataclass(frozen=True)
class LeakAt:
    """What a candidate leaks at a DP level x for one substituted node: cost·x + e."""

    level: Fraction

    @cached_property
    def _level(self) -> float:
        return float_up(self.level)

    def __call__(self, cost: IntArray, influence: FloatArray) -> FloatArray:
        """One leakage per candidate, never below the true one where there is influence."""
        return _compared(cost * self._level + influence, influence)

    def rounded_up(self, found: BestQuilt) -> float:
        """The leakage of one candidate; exact up to one rounding if it has no influence."""
        leak = found.cost * self.level + Fraction(found.influence)
        return float_up(leak if found.influence == 0 else leak * _SLACK)


def _compared(price: FloatArray, influence: FloatArray) -> FloatArray:
    return np.where(influence > 0, price * _COMPARISON, price)
