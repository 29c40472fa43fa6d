"""Pairs of laws as privacy losses with their masses, and releases about one time point each.

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
"""The rounding error of splitting a cell's mass between its ends, as a share of the mass."""
_PER_DEVIATION = 32
"""Cells per standard deviation."""
_FAR = 9.0
"""Losses beyond this many standard deviations count as unbounded."""


@dataclass(frozen=True, eq=False)
class PrivacyLosses:
    """A pair of laws P, Q: its privacy losses log P/Q and their masses under P.

    `unbounded` is the mass under P where Q has none.
    """

    loss: FloatArray
    mass: FloatArray
    unbounded: float = 0.0

    def excess(self, epsilon: float) -> float:
        """H at e^ε, rounded up."""
        above = self.loss > epsilon
        return (
            float(self.mass[above] @ -np.expm1(epsilon - self.loss[above])) * _UP + self.unbounded
        )

    def epsilon(self, delta: float) -> float:
        """The least ε at which δ holds, rounded up; inf if there is none."""
        if self.unbounded > delta:
            return math.inf
        low, high = 0.0, max(float(self.loss.max()), 0.0)
        if self.excess(0.0) <= delta:
            return 0.0
        while high - low > high * 1e-9:
            middle = (low + high) / 2
            low, high = (low, middle) if self.excess(middle) <= delta else (middle, high)
        return high


class StepRelease(Hashable, Protocol):
    """A release about each time point, of a level that can be varied."""

    @property
    def level(self) -> float:
        """The level, in the unit of the release."""

    @property
    def reach(self) -> float:
        """The size of its losses, as a Gaussian level."""

    @property
    def losses(self) -> PrivacyLosses:
        """The privacy losses of one release."""

    def epsilon(self, times: int, delta: float) -> float:
        """ε of this many releases about one secret."""

    def at(self, level: float) -> Self:
        """The same kind of release at another level."""


@dataclass(frozen=True)
class GaussianRelease:
    """Gaussian noise of level μ."""

    level: float

    @property
    def reach(self) -> float:
        """μ itself."""
        return self.level

    @property
    def losses(self) -> PrivacyLosses:
        """N(μ²/2, μ²), with the mass of each cell split between its ends."""
        from scipy.special import ndtr

        mu = self.level
        edges = mu * (mu / 2 + np.arange(-_FAR, _FAR + 1e-9, 1 / _PER_DEVIATION))
        mass_p, mass_q = (_between(ndtr, edges / mu - shift) for shift in (mu / 2, -mu / 2))
        low, high = np.exp(-edges[:-1]), np.exp(-edges[1:])
        # the split that keeps the mass of both laws: connecting the dots
        upper = np.clip((mass_p * low - mass_q) / (low - high), 0, mass_p)
        mass = np.zeros(len(edges))
        mass[1:] += upper + mass_p * _SPLIT
        mass[:-1] += mass_p - upper + mass_p * _SPLIT
        mass[0] += float(ndtr(-_FAR))
        return PrivacyLosses(edges, mass * _UP, float(ndtr(-_FAR)) * _UP)

    def epsilon(self, times: int, delta: float) -> float:
        """ε of several releases: squares of levels add up."""
        return gaussian_epsilon(self.level * math.sqrt(times) * (1 + 2.0**-50), delta)

    def at(self, level: float) -> GaussianRelease:
        """Gaussian noise of another μ."""
        return GaussianRelease(level)


def _between(ndtr: Callable[[FloatArray], FloatArray], at: FloatArray) -> FloatArray:
    """The probabilities of the cells between places, computed in the tail where nothing cancels."""
    low, high = at[:-1], at[1:]
    return np.asarray(np.where(low > 0, ndtr(-low) - ndtr(-high), ndtr(high) - ndtr(low)))


@dataclass(frozen=True)
class BoundedRelease:
    """Any mechanism that is (ε, δ)-private for substituting its time point: `level` is ε."""

    level: float
    slack: float = 0.0

    @property
    def reach(self) -> float:
        """ε itself: losses are ±ε."""
        return self.level

    @property
    def losses(self) -> PrivacyLosses:
        """The losses that dominate every (ε, δ) mechanism (Kairouz, Oh and Viswanath 2015)."""
        likelier = 1 / (1 + math.exp(-self.level))
        mass = np.array([1 - likelier, likelier]) * ((1 - self.slack) * _UP)
        return PrivacyLosses(np.array([-self.level, self.level * _UP]), mass, self.slack)

    def epsilon(self, times: int, delta: float) -> float:
        """ε of several releases: their losses are a binomial walk, exactly."""
        from scipy.stats import binom

        successes = np.arange(times + 1)
        chance = binom.pmf(successes, times, 1 / (1 + math.exp(-self.level))) * (1 + 1e-9)
        unbounded = -math.expm1(times * math.log1p(-self.slack)) if self.slack else 0.0
        steps = (2 * successes - times).astype(np.float64) * (self.level * _UP)
        return PrivacyLosses(steps, chance * (1 - unbounded), unbounded * _UP).epsilon(delta)

    def at(self, level: float) -> BoundedRelease:
        """The same mechanism at another ε and the same δ."""
        return BoundedRelease(level, self.slack)
