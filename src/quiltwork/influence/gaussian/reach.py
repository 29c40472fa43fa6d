"""Reach: how far a series shifts when a stretch of it is shifted, distance by distance.

Given a stretch of a stationary series, the mean of the number d steps later is linear in it. The
shift is largest at corners, where every number of the stretch shifts by one unit up or down; only
the first and last `memory` numbers of a stretch matter to an autoregression. Means follow the
recursion of the autoregression from exact initial values, in the longest floats of the machine.
Beyond the stored distances, a bound on the rest is proved from the norm of a power of the companion
matrix.

Theorem: docs/theory/gaussian.md
"""

from __future__ import annotations

from dataclasses import dataclass
from decimal import Decimal, localcontext
from fractions import Fraction
from functools import lru_cache
from itertools import product
from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray

from quiltwork.beliefs import GaussianSeries
from quiltwork.beliefs.gaussian_algebra import solved, toeplitz
from quiltwork.errors import UnsupportedError
from quiltwork.influence.quilts.protocol import FloatArray

LongArray: TypeAlias = NDArray[np.longdouble]

_MOST_DISTANCES = 1 << 20
_MOST_FREE = 10
"""Numbers of a stretch that shift freely, at most; there are 2^9 corners then."""
_BLOCK = 256
_NEGLIGIBLE = 2.0**-60
_UNIT = 2.0**-53
_LONG_UNIT = float(np.finfo(np.longdouble).eps)
_MOST_CELLS = 1 << 24
_SQUARINGS = 60
_UP = 1 + 2.0**-30


@dataclass(frozen=True, eq=False)
class Reach:
    """The largest shift of numbers after a stretch, per unit shift of its numbers.

    Attributes:
        corners: one row per corner, one column per distance 1, 2, …
        tail: bounds the sum beyond the last distance, and all rounding errors.
    """

    corners: FloatArray
    tail: float

    @property
    def farthest(self) -> FloatArray:
        """The largest shift over all corners, per distance."""
        return np.asarray(self.corners.max(axis=0))


@lru_cache(maxsize=32)
def reach_of(belief: GaussianSeries, episode: int, distances: int) -> Reach:
    """Return the reach of a stretch of `episode` numbers, up to this many distances.

    O(2^free·distances), free the smaller of the stretch and the belief's memory; distances end
    where the rest is negligible, and at 2^20.

    Raises:
        UnsupportedError: if too many numbers of a stretch shift freely.
    """
    memory = len(belief.correlations)
    free = episode if belief.finite else min(episode, memory)
    if free > _MOST_FREE:
        raise UnsupportedError(
            f"Episodes of {episode} time points under {belief.summary()} have 2^{free} directions, "
            f"too many to compute. Protect episodes of up to {_MOST_FREE} time points, or use an "
            f"autoregression of at most {_MOST_FREE} coefficients."
        )
    weights = _weights(belief, free)
    most = min(distances, _MOST_DISTANCES, _MOST_CELLS // len(weights))
    if belief.finite:
        return Reach(_finite(belief, weights, min(most, memory)), 0.0)
    return _recursive(belief, weights, distances, most)


def _weights(belief: GaussianSeries, free: int) -> list[list[Fraction]]:
    """C⁻¹·corner for every corner up to its sign, the last number of the stretch first."""
    covariance = toeplitz((Fraction(1), *belief.correlations, *[Fraction(0)] * free)[:free])
    corners = [(1, *signs) for signs in product((1, -1), repeat=free - 1)]
    weights = [solved(covariance, [Fraction(sign) for sign in corner]) for corner in corners]
    return [solution for solution in weights if solution is not None]


def _finite(belief: GaussianSeries, weights: list[list[Fraction]], most: int) -> FloatArray:
    """Σ_a weight_a·ρ_{d+a}, which ends where correlations do."""
    lags = [*belief.correlations, *[Fraction(0)] * len(weights[0])]
    shifts = [
        [sum((w * lags[d + a] for a, w in enumerate(row)), Fraction(0)) for d in range(most)]
        for row in weights
    ]
    return np.abs(np.array(shifts, dtype=np.float64).reshape(len(weights), most)) * (1 + 4 * _UNIT)


def _recursive(
    belief: GaussianSeries, weights: list[list[Fraction]], distances: int, most: int
) -> Reach:
    """The recursion y_d = Σ_j ar_j·y_{d−j}, from the means of the last `memory` numbers."""
    memory = len(belief.ar)
    rho = (Fraction(1), *belief.correlations)
    starts = [
        [sum((w * rho[abs(j - a)] for a, w in enumerate(row)), Fraction(0)) for j in range(memory)]
        for row in weights
    ]
    state = np.array([[_long(mean) for mean in row] for row in starts]).T  # the latest number first
    response = _responses(belief)
    step = response[-1 : -memory - 1 : -1]
    amplification, shrinks = _decay(response, step)
    parts: list[FloatArray] = []
    count, tail, total = 0, np.inf, 0.0
    while count < most and tail > _NEGLIGIBLE * total:
        shifts = np.abs(response @ state).astype(np.float64)
        state = step @ state
        parts.append(shifts)
        count += _BLOCK
        total += float(shifts.max(axis=1).sum())
        tail = amplification * float(np.abs(state).max()) / (1 - shrinks)
    corners = np.concatenate(parts)[:most].T if parts else np.zeros((len(weights), 0))
    rounding = _error(belief, amplification, shrinks, count) * total
    return Reach(corners, rounding if distances <= corners.shape[1] else rounding + tail * _UP)


def _long(number: Fraction) -> np.longdouble:
    """The nearest long double."""
    # more digits than a long double has
    with localcontext(prec=40):
        return np.longdouble(str(Decimal(number.numerator) / Decimal(number.denominator)))


def _responses(belief: GaussianSeries) -> LongArray:
    """Row d: the mean d steps ahead as a function of the last `memory` numbers, latest first."""
    memory = len(belief.ar)
    coefficients = np.array([_long(coefficient) for coefficient in belief.ar])
    rows = [np.eye(memory, dtype=np.longdouble)[j] for j in reversed(range(memory))]
    for _ in range(_BLOCK):
        rows.append(coefficients @ np.array(rows[: -memory - 1 : -1]))
    return np.array(rows[memory:])


def _decay(response: LongArray, step: LongArray) -> tuple[float, float]:
    """Return g and r < 1 with Σ_d |y_{n+d}| ≤ g/(1−r)·max|state_n|.

    One block adds at most its rows' sums; squaring the step until its norm is below 1/2 doubles
    the blocks: the sum over 2k blocks is at most that over k times (1 + the norm of k steps).
    """
    spread, power = float(np.abs(response).sum()), step
    for _ in range(_SQUARINGS):
        shrinks = float(np.abs(power).sum(axis=1).max())
        # further blocks then add at most as much again: 1/(1 − r) is below 2
        if shrinks < 0.5:
            return spread, shrinks
        spread, power = spread * (1 + shrinks), power @ power
    raise UnsupportedError(
        "This series forgets too slowly for a bound on its leakage. Use coefficients farther from "
        "those of a series that never forgets."
    )


def _error(belief: GaussianSeries, spread: float, shrinks: float, count: int) -> float:
    """Bound the relative error of sums of the recursion.

    Every rounding error is propagated by the responses, and again by the steps made of them; powers
    of a single coefficient only lose a rounding each.
    """
    memory = len(belief.ar)
    size = 1 + float(sum(abs(coefficient) for coefficient in belief.ar))
    growth = (1 + spread / (1 - shrinks)) ** 2 if memory > 1 else 1.0
    return _LONG_UNIT * (4 * (memory + 2) * size * growth + 2 * count) + 4 * _UNIT
