"""Powers as sums of exponentials: x^p = x^q·Σ_m c_m·e^(−t_m·x), up to a proven relative error.

With q = ⌈p⌉ and s = q − p, x^(−s) is Euler's integral 1/Γ(s)·∫ e^(s·u)·exp(−x·e^u) du, and the
trapezoidal rule in u converges geometrically. About 150 terms, all positive, reach 1e-14 for every
x from 1 to 10⁶; whole powers need one. Unlike powers, the terms are kept by shifts, which is what
recursions need.

Theorem: geometric-mechanism, *Powers that are no integers*.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from fractions import Fraction
from math import comb

import numpy as np

from quiltwork.counts.consumers.losses import FloatArray, IntArray

_STEP = 0.27
_LARGEST_RATE = 40.0
_LUMPED = 1e-15


@dataclass(frozen=True, eq=False)
class PowerSum:
    """x^degree·Σ weights[m]·exp(−rates[m]·x), within `error`·x^p of x^p for x = 1..largest."""

    degree: int
    weights: FloatArray
    rates: FloatArray
    error: float

    def __call__(self, x: FloatArray) -> FloatArray:
        """Return the sum at every x."""
        terms = np.exp(-np.multiply.outer(np.asarray(x), self.rates)) @ self.weights
        return np.asarray(x**self.degree * terms)

    def sources(self, distance: IntArray) -> FloatArray:
        """Return x^d·e^(−t_m·x) for every distance, as rows over (m, d = 0..degree)."""
        x = distance.astype(np.float64)[:, None, None]
        powers = x ** np.arange(self.degree + 1)
        return np.asarray((np.exp(-self.rates[:, None] * x) * powers).reshape(len(distance), -1))

    def targets(self, distance: IntArray) -> FloatArray:
        """Return what sources must be multiplied with so that a sum over (m, d) is (x + y)^p."""
        y = distance.astype(np.float64)[:, None, None]
        d = np.arange(self.degree + 1)
        binomials = np.array([float(comb(self.degree, int(j))) for j in d])
        terms = self.weights[:, None] * np.exp(-self.rates[:, None] * y) * binomials
        return np.asarray((terms * y ** (self.degree - d)).reshape(len(distance), -1))

    def shifter(self, gap: int) -> Callable[[FloatArray], FloatArray]:
        """Return what turns mean sources into those at distances larger by `gap`.

        (x + gap)^d·e^(−t·(x+gap)) is a sum of x^e·e^(−t·x) with positive coefficients.
        """
        size = self.degree + 1
        steps = float(gap) ** np.arange(size)
        pascal = np.zeros((size, size))
        for d in range(size):
            pascal[: d + 1, d] = [comb(d, e) * steps[d - e] for e in range(d + 1)]
        decay = np.exp(-self.rates * gap)[:, None]

        def shift(moments: FloatArray) -> FloatArray:
            return np.asarray((decay * (moments.reshape(-1, size) @ pascal)).ravel())

        return shift


def power_sum(exponent: Fraction, largest: int) -> PowerSum:
    """Write x^exponent, exponent > 0, as a sum of exponentials for the integers 1..largest."""
    degree = math.ceil(exponent)
    if exponent == degree:
        return PowerSum(degree, np.ones(1), np.zeros(1), 0.0)
    s = float(degree - exponent)
    scale = _STEP / math.gamma(s)
    # Below `low`, exponentials are 1 on the whole range, up to _LUMPED of the sum.
    slack = -math.expm1(-(1 + s) * _STEP)
    low = math.log(_LUMPED * slack / scale) / (1 + s) - math.log(largest)
    count = math.ceil((math.log(_LARGEST_RATE) - low) / _STEP)
    nodes = low + _STEP * np.arange(1, count + 1)
    lumped = scale * math.exp(s * low) / -math.expm1(-s * _STEP)
    return PowerSum(
        degree,
        np.concatenate([[lumped], scale * np.exp(s * nodes)]),
        np.concatenate([[0.0], np.exp(nodes)]),
        _LUMPED + _beyond(s, scale, float(nodes[-1])) + _aliasing(s) + _rounding(low),
    )


def _beyond(s: float, scale: float, last: float) -> float:
    """Bound the terms after the last node, relative to x^(−s), for every x ≥ 1."""
    rate = math.exp(last + _STEP)
    ratio = math.exp(s * _STEP - rate * math.expm1(_STEP))
    return scale * math.exp(s * (last + _STEP) - rate) / (1 - ratio)


def _rounding(low: float) -> float:
    """Bound what rounding nodes and weights to floats does: nodes reach down to `low`."""
    return 2.0**-52 * (10 - low)


def _aliasing(s: float) -> float:
    """Bound the trapezoidal rule's relative error: 2·Σ_{j≥1} |Γ(s + 2πi·j/step)| / Γ(s).

    |Γ(s+iy)| ≤ √(2π)·|z|^(s−1/2)·e^(−πy/2)·e^(1/(6|z|)) (DLMF 5.6.9); later terms fall by far
    more than half.
    """
    y = 2 * math.pi / _STEP
    size = math.hypot(s, y)
    exponent = (s - 0.5) * math.log(size) + 1 / (6 * size) - math.pi * y / 2
    return 4 * math.sqrt(2 * math.pi) * math.exp(exponent) / math.gamma(s)
