"""How far off a noisy answer will be, and how much it could vary at all."""

from __future__ import annotations

from fractions import Fraction

from quiltwork.beliefs import Label
from quiltwork.errors import InvalidInputError
from quiltwork.exact import float_up
from quiltwork.noise import TwoSidedGeometric
from quiltwork.noise.exponential import expected_shortfall
from quiltwork.queries import Histogram, MostCommon, Query, Sum, Transitions


def expected_error(
    query: Query, scale: float, length: int, states: tuple[Label, ...] | None
) -> float:
    """The expected absolute error of one cell, in units of the answer.

    For the most common state, a bound on how far its count lies below the largest on average. A
    sum or mean is put on a grid so fine that its noise is as good as continuous.
    """
    unit = _unit(query, length)
    if isinstance(query, MostCommon):
        known = query.states or states
        if known is None:
            raise InvalidInputError("Name the states of the query: most_common(states=[…]).")
        return expected_shortfall(Fraction(scale), len(known))
    if isinstance(query, Sum):
        return float_up(Fraction(scale) * unit)
    return float_up(Fraction(TwoSidedGeometric.from_scale(scale).expected_absolute) * unit)


def signal_range(query: Query, length: int) -> float:
    """How much one cell of the answer can vary over all sequences, in units of the answer."""
    start, stop = query.window(length)
    if isinstance(query, Histogram | MostCommon):
        steps = stop - start + 1
    elif isinstance(query, Transitions):
        steps = stop - start
    else:
        steps = int(query.change(start, stop, length))
    return float_up(steps * _unit(query, length))


def _unit(query: Query, length: int) -> Fraction:
    start, stop = query.window(length)
    return query.grid(stop - start + 1)[1]
