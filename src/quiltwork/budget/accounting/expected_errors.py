"""Expected errors of planned answers, and the range of the signal to compare them with.

Both are for one cell, in units of the answer; noise is given on the query's integers.
"""

from __future__ import annotations

import math
from fractions import Fraction

from quiltwork.beliefs import Label
from quiltwork.errors import InvalidInputError
from quiltwork.exact import float_up
from quiltwork.noise import RoundedGaussian, TwoSidedGeometric
from quiltwork.noise.exponential import expected_shortfall
from quiltwork.queries import Histogram, MostCommon, Query, Sum, Transitions


def expected_error(
    query: Query, scale: float, length: int, states: tuple[Label, ...] | None
) -> float:
    """Return the expected absolute error of one cell under geometric noise, in answer units.

    For the most common state, a bound on how far its count lies below the largest on average. A
    sum or mean is rounded to a grid so fine that its noise is practically continuous.
    """
    unit = _unit(query, length)
    if isinstance(query, MostCommon):
        labels = query.states or states
        if labels is None:
            raise InvalidInputError("Name the states of the query: most_common(states=[…]).")
        return expected_shortfall(Fraction(scale), len(labels))
    if isinstance(query, Sum):
        return float_up(Fraction(scale) * unit)
    return float_up(Fraction(TwoSidedGeometric.from_scale(scale).expected_absolute) * unit)


def expected_gaussian_error(query: Query, sigma: float, length: int) -> float:
    """Return the expected absolute error of one cell under Gaussian noise, in answer units."""
    if isinstance(query, Sum):
        return float_up(Fraction(sigma * math.sqrt(2 / math.pi)) * _unit(query, length))
    error = RoundedGaussian.from_scale(sigma).expected_absolute
    return float_up(Fraction(error) * _unit(query, length))


def signal_range(query: Query, length: int) -> float:
    """Return how much one cell of the answer can vary over all sequences, in answer units."""
    start, stop = query.window(length)
    if isinstance(query, Histogram | MostCommon):
        steps = query.points(length)
    elif isinstance(query, Transitions):
        steps = stop - start
    else:
        steps = int(query.l1_sensitivity(start, stop, length))
    return float_up(steps * _unit(query, length))


def _unit(query: Query, length: int) -> Fraction:
    return query.grid(query.points(length))[1]
