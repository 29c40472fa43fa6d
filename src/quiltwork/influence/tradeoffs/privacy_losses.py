"""Pairs of laws as privacy losses with their masses, and what is released about each time point.

Theorem: docs/theory/f-sweep.md (one mechanism per time point)
"""

from __future__ import annotations

import math
from collections.abc import Callable, Hashable
from dataclasses import dataclass
from typing import Protocol, Self

import numpy as np

from quiltwork.influence.tradeoffs.curves import FloatArray, gaussian_epsilon

_UP = 1 + 2.0**-40
_SPLIT = 1e-11
"""Of the mass of a cell: how far connecting its dots may be off."""
_PER_DEVIATION = 32
_FAR = 9.0


@dataclass(frozen=True, eq=False)
class Losses:
    """A pair of laws by its privacy losses log P/Q, their masses under P, and where Q has none."""

    loss: FloatArray
    mass: FloatArray
    never: float = 0.0

    def excess(self, epsilon: float) -> float:
        """H at e^ε, rounded up."""
        above = self.loss > epsilon
        return float(self.mass[above] @ -np.expm1(epsilon - self.loss[above])) * _UP + self.never

    def epsilon(self, delta: float) -> float:
        """The least ε at which δ is kept, rounded up; inf if none does."""
        if self.never > delta:
            return math.inf
        low, high = 0.0, max(float(self.loss.max()), 0.0)
        if self.excess(0.0) <= delta:
            return 0.0
        while high - low > high * 1e-9:
            middle = (low + high) / 2
            low, high = (low, middle) if self.excess(middle) <= delta else (middle, high)
        return high


class StepRelease(Hashable, Protocol):
    """What is released about each time point, by a level that can be raised and lowered."""

    @property
    def level(self) -> float:
        """In its own unit."""

    @property
    def reach(self) -> float:
        """About how far its loss goes, as a Gaussian level."""

    @property
    def losses(self) -> Losses:
        """Those of one release."""

    def epsilon(self, times: int, delta: float) -> float:
        """ε of so many about one and the same secret."""

    def at(self, level: float) -> Self:
        """The same kind at another level."""


@dataclass(frozen=True)
class GaussianRelease:
    """Gaussian noise of level μ."""

    level: float

    @property
    def reach(self) -> float:
        """μ itself."""
        return self.level

    @property
    def losses(self) -> Losses:
        """Losses are N(μ²/2, μ²); the mass of each cell is put on its ends."""
        from scipy.special import ndtr

        mu = self.level
        edges = mu * (mu / 2 + np.arange(-_FAR, _FAR + 1e-9, 1 / _PER_DEVIATION))
        inside, other = (_between(ndtr, edges / mu - shift) for shift in (mu / 2, -mu / 2))
        low, high = np.exp(-edges[:-1]), np.exp(-edges[1:])
        upper = np.clip((inside * low - other) / (low - high), 0, inside)
        mass = np.zeros(len(edges))
        mass[1:] += upper + inside * _SPLIT
        mass[:-1] += inside - upper + inside * _SPLIT
        mass[0] += float(ndtr(-_FAR))
        return Losses(edges, mass * _UP, float(ndtr(-_FAR)) * _UP)

    def epsilon(self, times: int, delta: float) -> float:
        """Squares of levels add up."""
        return gaussian_epsilon(self.level * math.sqrt(times) * (1 + 2.0**-50), delta)

    def at(self, level: float) -> GaussianRelease:
        """Of another μ."""
        return GaussianRelease(level)


def _between(ndtr: Callable[[FloatArray], FloatArray], at: FloatArray) -> FloatArray:
    """The chances of the cells between some places, from the side where nothing cancels."""
    low, high = at[:-1], at[1:]
    return np.asarray(np.where(low > 0, ndtr(-low) - ndtr(-high), ndtr(high) - ndtr(low)))


@dataclass(frozen=True)
class BoundedRelease:
    """Any mechanism that is (ε, δ)-private for substituting its time point: `level` is ε."""

    level: float
    slack: float = 0.0

    @property
    def reach(self) -> float:
        """Losses are ±ε."""
        return self.level

    @property
    def losses(self) -> Losses:
        """Those that dominate every such mechanism (Kairouz, Oh and Viswanath 2015)."""
        likelier = 1 / (1 + math.exp(-self.level))
        mass = np.array([1 - likelier, likelier]) * ((1 - self.slack) * _UP)
        return Losses(np.array([-self.level, self.level * _UP]), mass, self.slack)

    def epsilon(self, times: int, delta: float) -> float:
        """Of so many, losses are a binomial walk; exactly what the worst of them tell."""
        from scipy.stats import binom

        won = np.arange(times + 1)
        chance = binom.pmf(won, times, 1 / (1 + math.exp(-self.level))) * (1 + 1e-9)
        never = -math.expm1(times * math.log1p(-self.slack)) if self.slack else 0.0
        steps = (2 * won - times).astype(np.float64) * (self.level * _UP)
        return Losses(steps, chance * (1 - never), never * _UP).epsilon(delta)

    def at(self, level: float) -> BoundedRelease:
        """Of another ε and the same δ."""
        return BoundedRelease(level, self.slack)
