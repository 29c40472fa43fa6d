"""The grid of a sum or mean, and the noise that protects the answer on it.

Quilts price the grid itself, and totals of numbers are charged one step of it. The exact leakage
of "optimal-scale" is that of the values as they are, and moving every answer by at most δ adds at
most 2δ/σ to it: where values do not lie on the grid, a thousandth of ε is kept for that.

Theorem: docs/theory/exact-calibration.md
"""

from __future__ import annotations

from collections.abc import Callable
from fractions import Fraction

from quiltwork.errors import UnsupportedError
from quiltwork.influence import Calibration
from quiltwork.queries.base import Query, States
from quiltwork.queries.numbers import NumericSum

_SHARE = Fraction(1, 1024)


def on_grid(
    query: Query,
    calibrated: Callable[..., Calibration],
    epsilon: Fraction,
    states: States,
    points: int,
    longest: int,
) -> tuple[Query, Calibration]:
    """Return the query on its grid, and the calibration that makes it ε-private there.

    Args:
        query: as it was asked.
        calibrated: calibrates the query to a level, or another one on its grid.
        epsilon: the level.
        states: the public ones; () where none are known.
        points: time points asked about, over all subjects.
        longest: the most that are asked about of one subject.

    Raises:
        UnsupportedError: if no grid is fine enough for the method "optimal-scale".
    """
    found = calibrated(epsilon)
    fine = query.refined(_ranges(query, found), points)
    if isinstance(fine, NumericSum):
        return fine, calibrated(epsilon, fine)
    if str(found.method) != "optimal-scale" or _moved(fine, states, longest) == 0:
        return fine, found
    found = calibrated(epsilon * (1 - _SHARE))
    fine = query.refined(_ranges(query, found) * min(Fraction(1), epsilon), points)
    noise = found.exact_scale * query.divisor(points)
    if 2 * _moved(fine, states, longest) > epsilon * _SHARE * noise:
        raise UnsupportedError(
            f"The values of the states lie on no grid that is fine enough for a {query.kind} with "
            "method='optimal-scale' at this epsilon; use method='exact'."
        )
    return fine, found


def _ranges(query: Query, found: Calibration) -> Fraction:
    """The noise in ranges hi − lo, as `refined` takes it."""
    return found.integer_scale / query.subdivision


def _moved(fine: Query, states: States, points: int) -> Fraction:
    """How far the grid may move a subject's total."""
    return fine.rounding(states, points, 1) * fine.divisor(points)
