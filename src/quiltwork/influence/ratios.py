"""Log-ratios between rows of non-negative matrices, with exact supports.

Products of non-negative matrices keep relative accuracy, so the error of a log-ratio after d steps
is at most the margin added here (`docs/theory/rounding.md`). Supports are boolean matrices: 0/0 is
skipped, x/0 is +∞, and an entry too small to be accurate counts as 0 in a denominator.
"""

from __future__ import annotations

from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

from quiltwork.influence.quilts.protocol import FloatArray

BoolArray: TypeAlias = NDArray[np.bool_]

UNIT_ROUNDOFF = 2.0**-53
_TINY = 2.0**-960
"""Smaller entries may have lost accuracy to underflow."""
_LOG_ERROR = 2.0**-50
_CHUNK = 1 << 18
"""Entries per chunk, so that intermediate arrays stay in the cache."""


def product_margin(steps: Any, size: int) -> Any:
    """Bound the error of a log-ratio of entries of products of `steps` k×k matrices.

    Theorem: docs/theory/rounding.md
    """
    return 4.0 * (size + 8) * UNIT_ROUNDOFF * steps


def with_margin(ratios: FloatArray, steps: Any, size: int) -> FloatArray:
    """Add the rounding error of `steps` products and of the logarithm itself."""
    return np.asarray(ratios + product_margin(steps, size) + np.abs(ratios) * _LOG_ERROR)


def row_ratios(values: FloatArray, positive: BoolArray | None) -> FloatArray:
    """Return max_z log A(x, z)/A(x', z) for each pair of rows of each matrix A. O(n·k²·m).

    `positive` marks the possible entries; None: all. +∞ for a row x' that lacks a column of x,
    where a denominator is too small to be accurate, and for empty rows, about which nothing is
    claimed.
    """
    count, size, columns = values.shape
    above, below = _fraction_parts(values, positive)
    # np.max is several times faster than np.fmax, which passes over the NaN of 0/0
    largest = np.max if above is below else np.fmax.reduce
    result = np.empty((count, size, size))
    step = max(1, _CHUNK // max(1, size * size * columns))
    rows = max(1, min(size, _CHUNK // max(1, size * columns)))
    with np.errstate(divide="ignore", invalid="ignore", over="ignore"):
        for first in range(0, count, step):
            part = slice(first, first + step)
            for row in range(0, size, rows):
                chunk = slice(row, row + rows)
                ratio = above[part, :, None, :] / below[part, None, chunk, :]
                result[part, :, chunk] = largest(ratio, axis=-1)
        result = np.log(result)
    # NaN comes from rows without entries, about which nothing is claimed
    result[~np.isfinite(result)] = np.inf
    return result


def _fraction_parts(
    values: FloatArray, positive: BoolArray | None
) -> tuple[FloatArray, FloatArray]:
    """The entries as numerators and as denominators, rounded apart."""
    if positive is None:
        if float(values.min(initial=1.0)) >= _TINY:
            return values, values
        positive = np.ones(values.shape, dtype=np.bool_)
    # up in the numerator, down in the denominator: the ratio can only grow
    above = np.where(positive, np.maximum(values, _TINY), 0.0)
    below = np.where(positive & (values >= _TINY), values, 0.0)
    return above, below


def log_ratios(most: FloatArray, least: FloatArray, possible: BoolArray) -> FloatArray:
    """Return log most(x')/least(x) as a matrix [x, x']; +∞ where `least` is too small to be
    accurate.
    """
    above = np.where(possible, np.maximum(most, _TINY), 1.0)
    below = np.where(possible, np.where(least >= _TINY, least, 0.0), 1.0)
    with np.errstate(divide="ignore", over="ignore"):
        return np.asarray(np.log(above[None, :] / below[:, None]))


def equal_rows(matrix: FloatArray) -> BoolArray:
    """Return which pairs of rows are equal bit for bit."""
    numbers = np.unique(matrix, axis=0, return_inverse=True)[1].ravel()
    return np.asarray(numbers[:, np.newaxis] == numbers)
