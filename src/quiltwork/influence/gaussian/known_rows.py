"""Leakage to adversaries who also know the numbers of other rows.

If no partial correlation is negative, known rows only bring the other rows closer: an adversary who
knows none learns most. Otherwise, if no correlation among m rows exceeds a bound below 1/(m − 2),
the shift of the others is bounded whatever is known.

Theorem: docs/theory/gaussian.md
"""

from __future__ import annotations

from functools import singledispatch

import numpy as np

from quiltwork.beliefs import Gaussian, GaussianRows, GaussianSeries
from quiltwork.errors import UnsupportedError
from quiltwork.influence.gaussian.reach import reach_of
from quiltwork.influence.gaussian.worst_stretch import RowsLeakage, SeriesLeakage, SumLevels
from quiltwork.influence.quilts.protocol import FloatArray

_UNIT = 2.0**-52
_UP = 2.0**-40


@singledispatch
def known_rows_factor(belief: Gaussian, length: int) -> float:
    """Return the factor on the level of a sum of clipped numbers, rounded up.

    The product is the level against adversaries who know any other rows. Hidden is a true
    difference of at most the range.

    Raises:
        UnsupportedError: if known rows may increase the leakage, and no bound is known.
    """
    raise UnsupportedError(f"{type(belief).__name__} is no Gaussian belief.")


@known_rows_factor.register
def _(belief: GaussianSeries, length: int) -> float:
    _refuse_within(belief)
    if len(belief.ar) != 1:
        raise UnsupportedError(
            "Leakage to adversaries who know some of the numbers is proved for autoregressions "
            f"with one coefficient, and the belief is {belief.summary()}. Use calibrate, which "
            "protects against adversaries who know none."
        )
    leakage = SeriesLeakage(reach_of(belief, 1, length - 1), 1, 1.0)
    return leakage.worst(_level_one(length), range(1, length + 1)).leak


@known_rows_factor.register
def _(belief: GaussianRows, length: int) -> float:
    _refuse_within(belief)
    if not belief.bounded and _only_positive_partial_correlations(belief.correlation):
        return RowsLeakage(belief, 1.0).worst(_level_one(length), range(1, length + 1)).leak
    return min(bounded_factor(belief), float(belief.size))


def bounded_factor(belief: GaussianRows) -> float:
    """1 + the largest total shift of the others, over n known rows, where no |correlation| exceeds
    ρ.

    Each of m − 1 − n shifts by at most ρ/(1 − nρ), and by at most √((1 − (n−1)ρ)/((1 − nρ)(1 +
    ρ))), times the ratio of deviations. Without clipping; numbers clipped to the range also shift
    by at most that, each. Rounded up.

    Raises:
        UnsupportedError: unless ρ < 1/(m − 2).
    """
    size, rho = belief.size, belief.largest
    if rho * (size - 2) >= 1:
        raise UnsupportedError(
            f"Among {size} rows with correlations up to {rho:g}, of any sign, the leakage to an "
            "adversary who knows some rows is unbounded; the bound needs correlations below "
            f"1/{size - 2}. Clusters(labels) protects whatever the correlations."
        )
    known_rows = np.arange(size - 1)
    regressed = rho / (1 - known_rows * rho)
    deviation = np.sqrt((1 - (known_rows - 1) * rho) / ((1 - known_rows * rho) * (1 + rho)))
    shifts = (size - 1 - known_rows) * np.minimum(regressed, deviation)
    spread = float(belief.deviations.max() / belief.deviations.min())
    return float(1 + shifts.max(initial=0.0) * spread * (1 + _UP)) * (1 + _UP)


def _only_positive_partial_correlations(correlation: FloatArray) -> bool:
    """Whether no partial correlation is negative; 0 up to rounding counts as 0."""
    inverse = np.linalg.inv(correlation)
    # the backward error of an inverse grows with its norm
    error = 64 * len(inverse) * _UNIT * float(np.linalg.norm(inverse, 2))
    return bool((inverse - np.diag(np.diag(inverse)) <= error).all())


def _level_one(length: int) -> SumLevels:
    return SumLevels(np.array([1]), np.array([1.0]), length)


def _refuse_within(belief: Gaussian) -> None:
    """Refuse a smaller difference than the range."""
    if belief.within is not None:
        raise UnsupportedError(
            "A Bayesian level is about differences as large as the range of the query. Leave "
            "within out of the belief."
        )
