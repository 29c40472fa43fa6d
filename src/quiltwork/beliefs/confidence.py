"""Confidence boxes for the rows of a transition matrix from its counted transitions.

The number of visits to a state is random and depends on the path, so intervals for a fixed sample
size do not apply. The exits from a state are independent draws from its row, and each interval here
is time-uniform: it holds for all sample sizes at once (a Beta mixture martingale and Ville's
inequality), hence also at the random one.

Theorem: docs/theory/confidence-box.md
"""

from __future__ import annotations

import math
from fractions import Fraction
from typing import Any

import numpy as np

from quiltwork.beliefs.matrices import FloatArray, IntArray
from quiltwork.errors import InvalidInputError

_HALVINGS = 64


def box_bounds(fewest: IntArray, most: IntArray, error: Fraction) -> tuple[FloatArray, FloatArray]:
    """Return (lower, upper) that hold for all entries at once with probability ≥ 1 − error.

    `fewest` and `most` bound each true transition count; equal if the counts are known. O(k²).

    Theorem: docs/theory/confidence-box.md
    """
    share = math.log(error / _intervals_needed(len(fewest)))
    others_fewest = fewest.sum(axis=1, keepdims=True) - fewest
    others_most = most.sum(axis=1, keepdims=True) - most
    # The lower end increases with successes and decreases with failures, so the fewest against
    # the most bounds it for every count between.
    lower = lower_ends(fewest, others_most, share)
    upper = 1 - lower_ends(others_fewest, most, share)
    # 1 − x rounds to nearest; the next float up keeps the interval conservative.
    return lower, np.minimum(1.0, np.nextafter(upper, 2.0))


def _intervals_needed(size: int) -> int:
    """Return the number of simultaneous intervals; with two states one per row suffices."""
    return size * (size if size > 2 else 1)


def lower_ends(successes: IntArray, failures: IntArray, log_error: float) -> FloatArray:
    """Return the lower ends of the time-uniform intervals {p : p^s·(1−p)^f > error·m(s, f)}.

    Each distinct pair of counts is solved once; 0 successes give 0. O(k²) and 64 halvings.
    """
    ends = np.zeros(successes.shape)
    occurred = successes > 0
    if occurred.any():
        pairs = np.stack([successes[occurred], failures[occurred]], axis=1)
        distinct, index = np.unique(pairs, axis=0, return_inverse=True)
        ends[occurred] = _solve(distinct[:, 0], distinct[:, 1], log_error)[index.reshape(-1)]
    return ends


def _solve(successes: IntArray, failures: IntArray, log_error: float) -> FloatArray:
    """Return the lower ends for s > 0 by bisection, rounded outward.

    The threshold is lowered by more than the rounding errors of the logarithms, and the outer end
    of the bracket is returned, so intervals only get wider.
    """
    total = successes + failures
    threshold = log_error + _log_mixture(successes, failures)
    threshold -= 1e-9 + 1e-14 * (total + 1) * np.log(total + 2)
    outer = np.zeros(len(successes))
    # The interval always contains the frequency s/n, so it is a safe inner end of the bracket.
    inner = successes / total
    for _ in range(_HALVINGS):
        middle = (outer + inner) / 2
        log_likelihood = successes * np.log(middle) + failures * np.log1p(-middle)
        inside = log_likelihood >= threshold
        inner = np.where(inside, middle, inner)
        outer = np.where(inside, outer, middle)
    return outer


def _log_mixture(successes: IntArray, failures: IntArray) -> FloatArray:
    """Return log m(s, f), m(s, f) = B(s+½, f+½)/B(½, ½)."""
    joint = _log_gamma(successes, 0.5) + _log_gamma(failures, 0.5)
    return joint - _log_gamma(successes + failures, 1.0) - math.log(math.pi)


def _log_gamma(counts: IntArray, shift: float) -> FloatArray:
    return np.array([math.lgamma(n + shift) for n in counts.ravel()]).reshape(counts.shape)


def parse_count_bounds(lowest: Any, highest: Any) -> tuple[IntArray, IntArray]:
    """Return integer bounds on counts from real ones: rounded inward, at least 0."""
    fewest, most = _count_matrix(lowest, "lowest"), _count_matrix(highest, "highest")
    if fewest.shape != most.shape:
        raise InvalidInputError(
            f"lowest has shape {fewest.shape} and highest {most.shape}; give two matrices with "
            "one row and one column per state."
        )
    # True counts are integers: rounding the bounds inwards loses none.
    low, high = np.maximum(np.ceil(fewest), 0), np.floor(most)
    for row, column in np.argwhere(low > high)[:1]:
        raise InvalidInputError(
            f"No count lies between {float(fewest[row, column])!r} and "
            f"{float(most[row, column])!r} in row {row + 1}, position {column + 1}; widen the "
            "bounds."
        )
    return low.astype(np.int64), high.astype(np.int64)


def _count_matrix(values: Any, name: str) -> FloatArray:
    try:
        matrix = np.array(values, dtype=np.float64)
    except (TypeError, ValueError, OverflowError):
        matrix = np.empty(0)
    if matrix.ndim != 2 or matrix.shape[0] != matrix.shape[1] or matrix.size == 0:
        raise InvalidInputError(f"{name} must be a square matrix of transition counts.")
    # Above 2^53 a float no longer holds every integer.
    if not (np.abs(matrix) <= 2.0**53).all():
        raise InvalidInputError(f"{name} holds NaN, an infinity or a count above 2^53.")
    return matrix
