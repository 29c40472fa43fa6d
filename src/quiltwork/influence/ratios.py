"""Log-ratios of powers of a transition matrix that never lose a support.

Products of non-negative matrices keep relative accuracy, so the error of a log-ratio after d steps
is at most the margin added here (`docs/theory/rounding.md`). What is possible at all is decided by
boolean powers: 0/0 is skipped, x/0 is +∞, and an entry too small to be accurate counts as 0 below
a fraction line.
"""

from __future__ import annotations

from functools import cached_property
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

from quiltwork.beliefs.structure import boolean_power
from quiltwork.influence.protocol import FloatArray

BoolArray: TypeAlias = NDArray[np.bool_]

UNIT_ROUNDOFF = 2.0**-53
_TINY = 2.0**-960
_LOG_ERROR = 2.0**-50
_CHUNK = 1 << 20


def product_margin(steps: Any, size: int) -> Any:
    """Bound the error of a log-ratio of entries of products of `steps` k×k matrices.

    Theorem: docs/theory/rounding.md
    """
    return 4.0 * (size + 8) * UNIT_ROUNDOFF * steps


class Powers:
    """P, P², …, P^reach with their supports and log-ratios.

    O(k³·reach) time for each kind of ratio, O(k²·reach) memory.
    """

    def __init__(self, transition: FloatArray, reach: int) -> None:
        self.transition = transition
        self.reach = reach
        self.size = len(transition)

    @cached_property
    def values(self) -> FloatArray:
        """P^d at index d − 1."""
        found = np.empty((self.reach, self.size, self.size))
        return _by_doubling(found, self.transition)

    @cached_property
    def positive(self) -> BoolArray | None:
        """The support of P^d at index d − 1; None if every entry of P is positive."""
        step = self.transition > 0
        if step.all():
            return None
        found = np.empty((self.reach, self.size, self.size), dtype=np.bool_)
        return _supports_by_doubling(found, step)

    @cached_property
    def forward(self) -> FloatArray:
        """R_d[x, x'] = max_z log P^d(x, z)/P^d(x', z) at index d − 1, margin included."""
        ratios = self._with_margins(row_ratios(self.values, self.positive))
        ratios[:, _equal_rows(self.transition)] = 0.0
        return falling(ratios)

    def backward(self, support: BoolArray) -> FloatArray:
        """G_d[x, x'] = max log P^d(z, x)/P^d(z, x') over z in `support`, margin included."""
        values = self.values[:, support].transpose(0, 2, 1)
        positive = None if self.positive is None else self.positive[:, support].transpose(0, 2, 1)
        return falling(self._with_margins(row_ratios(values, positive)))

    def backward_at(self, distance: int, support: BoolArray) -> FloatArray:
        """`backward` at one distance only, for a support of its own."""
        part = slice(distance - 1, distance)
        values = self.values[part, support].transpose(0, 2, 1)
        known = None if self.positive is None else self.positive[part, support].transpose(0, 2, 1)
        return with_margin(row_ratios(values, known)[0], distance, self.size)

    def _with_margins(self, ratios: FloatArray) -> FloatArray:
        steps = np.arange(1, self.reach + 1)[:, np.newaxis, np.newaxis]
        return with_margin(ratios, steps, self.size)


def with_margin(ratios: FloatArray, steps: Any, size: int) -> FloatArray:
    """Add what rounding in `steps` products and the logarithm itself may have taken away."""
    return np.asarray(ratios + product_margin(steps, size) + np.abs(ratios) * _LOG_ERROR)


def row_ratios(values: FloatArray, positive: BoolArray | None) -> FloatArray:
    """Return max_z log A(x, z)/A(x', z) for each pair of rows of each matrix A. O(n·k²·m).

    +∞ for a row x' that lacks a column of x, where an entry below is too small to be accurate, and
    for empty rows, about which nothing is claimed.
    """
    count, size, columns = values.shape
    above, below = _fraction_parts(values, positive)
    result = np.empty((count, size, size))
    step = max(1, _CHUNK // max(1, size * size * columns))
    rows = max(1, min(size, _CHUNK // max(1, size * columns)))
    with np.errstate(divide="ignore", invalid="ignore", over="ignore"):
        for first in range(0, count, step):
            part = slice(first, first + step)
            for row in range(0, size, rows):
                these = slice(row, row + rows)
                ratio = above[part, :, None, :] / below[part, None, these, :]
                result[part, :, these] = np.fmax.reduce(ratio, axis=-1)
        result = np.log(result)
    result[~np.isfinite(result)] = np.inf
    return result


def _fraction_parts(
    values: FloatArray, positive: BoolArray | None
) -> tuple[FloatArray, FloatArray]:
    if positive is None:
        if float(values.min(initial=1.0)) >= _TINY:
            return values, values
        positive = np.ones(values.shape, dtype=np.bool_)
    above = np.where(positive, np.maximum(values, _TINY), 0.0)
    below = np.where(positive & (values >= _TINY), values, 0.0)
    return above, below


def backward_far(transition: FloatArray, steps: int, support: BoolArray) -> FloatArray:
    """`Powers.backward_at` for any number of steps, by squaring. O(k³ log steps)."""
    value = np.linalg.matrix_power(transition, steps)[support].T[np.newaxis]
    step = transition > 0
    known = None if step.all() else boolean_power(step, steps)[support].T[np.newaxis]
    return with_margin(row_ratios(value, known)[0], steps, len(transition))


def forward_far(transition: FloatArray, steps: int) -> FloatArray:
    """`Powers.forward` at one distance, by squaring. O(k³ log steps)."""
    step = transition > 0
    known = None if step.all() else boolean_power(step, steps)[np.newaxis]
    value = np.linalg.matrix_power(transition, steps)[np.newaxis]
    ratios = with_margin(row_ratios(value, known)[0], steps, len(transition))
    ratios[_equal_rows(transition)] = 0.0
    return ratios


def _equal_rows(matrix: FloatArray) -> BoolArray:
    numbers = np.unique(matrix, axis=0, return_inverse=True)[1].ravel()
    return np.asarray(numbers[:, np.newaxis] == numbers)


def log_ratios(most: FloatArray, least: FloatArray, possible: BoolArray) -> FloatArray:
    """Return log most(x')/least(x) as a matrix [x, x']; +∞ where `least` is too small to trust."""
    above = np.where(possible, np.maximum(most, _TINY), 1.0)
    below = np.where(possible, np.where(least >= _TINY, least, 0.0), 1.0)
    with np.errstate(divide="ignore", over="ignore"):
        return np.asarray(np.log(above[None, :] / below[:, None]))


def falling(rows: FloatArray) -> FloatArray:
    """Lower each bound to those at smaller distances, which hold at larger ones too."""
    return np.minimum.accumulate(rows, axis=0)


def _by_doubling(found: FloatArray, step: FloatArray) -> FloatArray:
    found[0] = step
    done = 1
    while done < len(found):
        more = min(done, len(found) - done)
        np.matmul(found[:more], found[done - 1], out=found[done : done + more])
        done += more
    return found


def _supports_by_doubling(found: BoolArray, step: BoolArray) -> BoolArray:
    found[0] = step
    done = 1
    while done < len(found):
        more = min(done, len(found) - done)
        last = found[done - 1].astype(np.float32)
        found[done : done + more] = (found[:more].astype(np.float32) @ last) > 0
        done += more
    return found
