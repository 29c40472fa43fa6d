"""Power iteration with error bounds: A^n·x for non-negative matrices and any number of steps.

While one matrix acts, the direction of A^n·x converges (Birkhoff: in Hilbert's metric
d(x, y) = max log(x/y) − min log(x/y) a positive matrix of projective diameter Δ contracts by
tanh(Δ/4)). So steps are computed one by one until the start is forgotten, and one limit with a
proven distance replaces all later ones: the cost depends on the mixing time, not on the length.

Theorem: docs/theory/exact-leakage.md
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from quiltwork.beliefs.matrices import FloatArray, IntArray

_FORGOTTEN = 48
"""Halvings after which a distance is below the rounding errors."""
_HALVING_DIAMETER = 2.0
"""tanh(2/4) < 1/2: a matrix of this projective diameter halves all distances."""
_MOST_NUMBERS = 1 << 24
_SMALLEST_ENTRY = 1e-100
_SMALLEST_SHARE = 1e-200


class OutOfRangeError(ArithmeticError):
    """Raised where floats could lose a number to underflow, or the steps do not fit in memory."""


@dataclass(frozen=True, eq=False)
class PowerIteration:
    """The vectors A^n·x up to factors, by number of steps n; each holds until the next one.

    Attributes:
        starts: the numbers of steps 0 = d_0 < d_1 < … from which a vector holds.
        logs: the logarithms of the vectors, of shape (vectors, states); −∞ for 0.
        slack: bounds on their error in Hilbert's metric.
    """

    starts: IntArray
    logs: FloatArray
    slack: FloatArray

    def at(self, distances: IntArray) -> tuple[FloatArray, FloatArray]:
        """Return the logarithms and slacks after these numbers of steps."""
        index = np.searchsorted(self.starts, distances, side="right") - 1
        return self.logs[index], self.slack[index]


def iterate(
    vector: FloatArray, legs: Sequence[tuple[FloatArray, int]], error: float
) -> PowerIteration:
    """Return the products of a vector with legs of matrices, each (matrix, number of steps).

    Args:
        vector: the start, non-negative.
        legs: matrices with non-negative entries and how often each acts.
        error: the relative error of every entry of the result of one step, at most.

    Cost: O(k²·min(steps, 48·p)) per leg, p the steps after which distances halve.

    Raises:
        OutOfRangeError: if a positive number could be lost to underflow, or the chain forgets too
            slowly for this many steps.
    """
    current, distance, slack = _shares(vector[None])[0], 0, 0.0
    starts, blocks = [np.zeros(1, dtype=np.int64)], [current[None]]
    slacks: list[FloatArray] = [np.zeros(1)]
    for matrix, steps in legs:
        limit = _settle(matrix, steps // _FORGOTTEN)
        # 48 contractions by 0.47 bring the distance below rounding; then the limit stands for all
        # later steps.
        explicit = steps if limit is None else _FORGOTTEN * limit.halving
        if explicit * len(matrix) > _MOST_NUMBERS:
            raise OutOfRangeError
        if explicit:
            vectors = _products(matrix, current, explicit)
            steps_taken = np.arange(1, explicit + 1)
            starts.append(distance + steps_taken)
            blocks.append(vectors)
            slacks.append(np.asarray(slack + 4 * error * steps_taken, dtype=np.float64))
            current, slack = vectors[-1], float(slacks[-1][-1])
        if limit is not None and explicit < steps:
            # Distances to the limit never increase: the last explicit step bounds all later ones.
            slack += _apart(current, limit.vector)
            slack += 4 * limit.halving * (limit.residual + 4 * error)
            current = limit.vector
            starts.append(np.array([distance + explicit + 1]))
            blocks.append(current[None])
            slacks.append(np.array([slack]))
        distance += steps
    with np.errstate(divide="ignore"):
        logs = np.log(np.concatenate(blocks))
    return PowerIteration(np.concatenate(starts), logs, np.concatenate(slacks))


@dataclass(frozen=True, eq=False)
class _Limit:
    """An approximate Perron vector of a matrix, and the number of steps that halves distances."""

    vector: FloatArray
    halving: int
    residual: float


def _settle(matrix: FloatArray, most: int) -> _Limit | None:
    """Return the limit of a matrix's powers; None if halving distances takes over `most` steps."""
    power, halving = _scaled(matrix), 1
    while halving <= most:
        if power.min() < _SMALLEST_ENTRY:
            diameter = math.inf
        else:
            logs = np.log(power)
            rows = logs[:, None] - logs[None]
            diameter = float((rows.max(axis=2) - rows.min(axis=2)).max())
        if diameter <= _HALVING_DIAMETER:
            break
        power, halving = _scaled(power @ power), 2 * halving
    else:
        return None
    # 64 halvings in all: the columns agree to the last digit of a float.
    for _ in range(6):
        power = _scaled(power @ power)
    vector = _shares(power.sum(axis=1)[None])[0]
    return _Limit(vector, halving, _apart(matrix @ vector, vector))


def _apart(x: FloatArray, y: FloatArray) -> float:
    """Return Hilbert's distance between two positive vectors."""
    return float(np.ptp(np.log(x / y)))


def _products(matrix: FloatArray, vector: FloatArray, steps: int) -> FloatArray:
    """Return A·x, A²·x, …, A^steps·x, scaled, by √steps powers and as many starting vectors.

    Every positive factor is at least 1e-100 and every entry at least 1e-200, so no product
    underflows.
    """
    powers = [_scaled(matrix)]
    if _smallest(powers[0]) < _SMALLEST_ENTRY:
        raise OutOfRangeError
    # √steps powers applied to √steps vectors: few products, each of large matrices.
    while len(powers) ** 2 < steps:
        following = _scaled(powers[-1] @ powers[0])
        if _smallest(following) < _SMALLEST_ENTRY:
            break
        powers.append(following)
    heads = [vector]
    while len(heads) * len(powers) < steps:
        heads.append(_shares((powers[-1] @ heads[-1])[None])[0])
    k = len(matrix)
    vectors = np.stack(heads) @ np.stack(powers).transpose(2, 0, 1).reshape(k, -1)
    return _shares(vectors.reshape(-1, k)[:steps])


def _shares(vectors: FloatArray) -> FloatArray:
    """Return rows over a power of two near their largest entry; too small entries raise."""
    # Scaling by powers of two is exact and adds no rounding error.
    scaled = np.ldexp(vectors, -np.frexp(vectors.max(axis=1))[1][:, None])
    if not np.isfinite(scaled).all() or _smallest(scaled) < _SMALLEST_SHARE:
        raise OutOfRangeError
    return np.asarray(scaled)


def _scaled(matrix: FloatArray) -> FloatArray:
    return np.asarray(np.ldexp(matrix, -np.frexp(matrix.max())[1]))


def _smallest(values: FloatArray) -> float:
    return float(values[values > 0].min(initial=1.0))
