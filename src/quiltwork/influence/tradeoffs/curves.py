"""Trade-off curves on a grid: upper bounds of H_γ(P‖Q) = Σ (P − γQ)₊ for γ = e^ε ≥ 1.

Theorem: docs/theory/f-sweep.md
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray

FloatArray: TypeAlias = NDArray[np.float64]

_FINE = 0.005
"""Spacing in log γ, as a share of ε: σ is then within half a percent of that of finer grids."""
_COARSE = 0.1
"""The largest spacing, as a share of ε."""
_GROWTH = 0.015
_FAR = 1.3
"""Beyond this multiple of ε the spacing grows."""
_END = 10.0
"""The end of the grid, as a multiple of ε."""
_LARGEST = 700.0
"""The largest ε: e^700 is still a float."""


@dataclass(frozen=True, eq=False)
class CurveGrid:
    """The grid γ_0 = 1 < γ_1 < … on which curves are stored."""

    gamma: FloatArray

    @classmethod
    def near(cls, epsilon: float, level: float, steps: float = 1.0) -> CurveGrid:
        """A grid that is fine near 1, where levels like this one fall, and coarse far beyond ε.

        `steps` is about the number of steps of the chain that matter: each adds an error of the
        order of the square of the spacing.
        """
        fine = _FINE * epsilon * min(1.0, math.sqrt(10 / steps))
        nearest = min(fine, level / 4)
        places = [0.0]
        end = min(_END * epsilon, _LARGEST)
        while places[-1] < end:
            place = places[-1]
            beyond = max(0.0, place - _FAR * epsilon)
            spacing = max(nearest, min(fine, _GROWTH * place))
            places.append(place + min(spacing + beyond / 10, max(spacing, _COARSE * epsilon)))
        return cls(np.exp(np.minimum(places, max(end, 1.01 * places[-2]))))

    def gaussian(self, level: float, pure: float = 0.0) -> FloatArray:
        """The curve of Gaussian noise of this level, together with a pure level; rounded up."""
        if pure:
            return np.array([mixed_curve(level, pure, gamma) for gamma in self.gamma.tolist()])
        return np.array([gaussian_curve(level, gamma) for gamma in self.gamma.tolist()])

    @property
    def nothing(self) -> FloatArray:
        """The curve of equal laws."""
        return np.zeros(len(self.gamma))

    def spread(self, diameter: float) -> FloatArray:
        """The largest η_γ of two rows whose cross-ratios are at most e^diameter."""
        if math.isinf(diameter):
            return np.ones(len(self.gamma))
        if diameter <= 0:
            return self.nothing
        # a larger diameter is a larger spread
        padded = diameter * (1 + 2.0**-46)
        top = np.maximum(math.exp(padded / 2) * (1 + 2.0**-46) - np.sqrt(self.gamma), 0) ** 2
        return np.minimum(top / math.expm1(diameter) * (1 + 2.0**-40), 1.0)

    def epsilon(self, curve: FloatArray, delta: float) -> float:
        """The least ε at which a curve is at most δ, by chords of the grid; inf if there
        is none.
        """
        below = np.flatnonzero(curve <= delta)
        if not len(below):
            return math.inf
        index = int(below[0])
        if index == 0:
            return 0.0
        low, high = float(curve[index]), float(curve[index - 1])
        # rounded so that ε comes out too large, never too small
        share = (delta - low) / (high - low) * (1 - 2.0**-40)
        ends = float(self.gamma[index]), float(self.gamma[index - 1])
        return math.log(ends[0] - share * (ends[0] - ends[1])) * (1 + 2.0**-40)

    def delta(self, curve: FloatArray, epsilon: float) -> float:
        """The value of a curve at e^ε by a chord, rounded up; beyond the grid its last value."""
        return float(np.interp(math.exp(epsilon), self.gamma, curve)) * (1 + 2.0**-40)


def gaussian_curve(level: float, gamma: float) -> float:
    """H_γ of N(μ, 1) against N(0, 1), rounded up.

    Φ(a) − γΦ(b) with a = μ/2 − ln γ/μ and b = a − μ. An argument that is off by a relative 2^-52
    moves a tail of Φ by some b²·2^-52 of it, and γΦ(b) ≤ Φ(a).

    >>> round(gaussian_curve(1.0, 1.0), 6)
    0.382925
    """
    if level <= 0:
        return 0.0
    shift = math.log(gamma) / level
    a, b = level / 2 - shift, -level / 2 - shift
    high, low = (math.erfc(-argument / math.sqrt(2)) / 2 for argument in (a, b))
    # the larger term bounds both: γΦ(b) ≤ Φ(a)
    error = (16 + 4 * b * b) * 2.0**-51 * high
    return min(1.0, max(0.0, high - gamma * low) + error)


def mixed_curve(level: float, pure: float, gamma: float) -> float:
    """H_γ of Gaussian noise of level μ together with any mechanism of a pure level s; rounded up.

    Both act on the same point, in any order, so their product bounds them: the worst mechanism of
    level s returns one answer e^s times as often in one world as in the other.

    >>> round(mixed_curve(0.2, 0.3, 1.0), 6)
    0.15466
    """
    likelier = math.exp(pure) * (1 + 2.0**-50)
    share = likelier / (1 + likelier) * (1 + 2.0**-50)
    likely = share * _at_any(level, gamma / likelier * (1 - 2.0**-51))
    unlikely = (1 - share) * (1 + 2.0**-46) * _at_any(level, gamma * likelier * (1 - 2.0**-48))
    return min(1.0, (likely + unlikely) * (1 + 2.0**-48))


def _at_any(level: float, gamma: float) -> float:
    """The curve of a Gaussian at any γ; below 1 by the curve of the reversed pair."""
    if gamma >= 1:
        return gaussian_curve(level, gamma)
    # H_γ(P‖Q) = 1 − γ + γ·H_{1/γ}(Q‖P)
    return 1 - gamma + gamma * gaussian_curve(level, 1 / gamma) + 2.0**-50


def gaussian_level(epsilon: float, delta: float, pure: float = 0.0) -> float:
    """The largest μ at which Gaussian noise is (ε, δ), rounded down; 0 if the pure level uses up ε.

    >>> round(gaussian_level(1.0, 1e-6), 6)
    0.236704
    """
    # a smaller γ is a larger curve: the check is on the safe side
    gamma = math.exp(epsilon) * (1 - 2.0**-48)

    def suffices(level: float) -> bool:
        return (mixed_curve(level, pure, gamma) if pure else gaussian_curve(level, gamma)) <= delta

    low, high = 0.0, 1.0
    if pure >= epsilon:
        return 0.0
    while suffices(high):
        low, high = high, 2 * high
    while high - low > max(high * 2.0**-45, 1e-12):
        middle = (low + high) / 2
        low, high = (middle, high) if suffices(middle) else (low, middle)
    return low


def level_of_pure(epsilon: float) -> float:
    """The least μ whose trade-off dominates every mechanism of a pure level, rounded up.

    2Φ⁻¹(e^ε/(1 + e^ε)), by the inverse error function, which keeps the digits of small levels.

    >>> round(level_of_pure(0.057), 4)
    0.0714
    """
    from scipy.special import erfinv

    return float(2 * math.sqrt(2) * erfinv(math.tanh(epsilon / 2))) * (1 + 2.0**-40)


def pure_of_level(level: float) -> float:
    """The largest pure level dominated by Gaussian noise of level μ, rounded down.

    >>> round(pure_of_level(0.0711), 4)
    0.0567
    """
    share = math.erf(level / (2 * math.sqrt(2))) * (1 - 2.0**-50)
    return 2 * math.atanh(share) * (1 - 2.0**-40)


def gaussian_epsilon(level: float, delta: float) -> float:
    """The least ε at which Gaussian noise of this level is (ε, δ), rounded up.

    >>> round(gaussian_epsilon(0.236704, 1e-6), 5)
    1.0
    """
    if gaussian_curve(level, 1.0) <= delta:
        return 0.0
    low, high = 0.0, min(level, _LARGEST)
    while gaussian_curve(level, math.exp(high)) > delta:
        if high >= _LARGEST:
            return math.inf
        low, high = high, min(2 * high, _LARGEST)
    while high - low > high * 2.0**-45:
        middle = (low + high) / 2
        suffices = gaussian_curve(level, math.exp(middle) * (1 - 2.0**-48)) <= delta
        low, high = (low, middle) if suffices else (middle, high)
    return high
