"""The noise of a release, chosen before the data are used.

Calibration, grid and noise depend on the beliefs, the query and public lengths alone, so a plan is
public. Subjects are independent, so noise that protects one point of one subject protects all of
them. Sweep and quilts never need less noise for a longer series, so the longest subject decides;
the exact leakage may fall with length, so "optimal-scale" calibrates for every length.

Theorem: docs/theory/query-sensitivity.md
"""

from __future__ import annotations

import sys
from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

from quiltwork.beliefs import Belief
from quiltwork.beliefs.sets import digest
from quiltwork.errors import InvalidInputError, UnsupportedError
from quiltwork.influence import Calibration, GaussianCalibration
from quiltwork.influence.calibration_arguments import points_asked
from quiltwork.noise import RoundedGaussian, TwoSidedGeometric
from quiltwork.queries.custom import CustomQuery
from quiltwork.queries.numbers import NumericSum
from quiltwork.queries.query import Query, States
from quiltwork.series.releases.data import RecordedPoints
from quiltwork.series.releases.protection import Protection
from quiltwork.wording import argument

_LARGEST_FLOAT = Fraction(sys.float_info.max)
_plans: ContextVar[dict[Any, NoisePlan] | None] = ContextVar("plans", default=None)
_MOST_REMEMBERED = 128
_SHARE = Fraction(1, 1024)
_FAR = 10_000
"""Noise beyond so many scales has probability e^-10000, and no interval reaches so far."""


@dataclass(frozen=True, eq=False)
class NoisePlan:
    """A query on its grid and the integer noise that protects it.

    Attributes:
        query: the query, with its grid.
        calibration: the calibration of the scale.
        law: the distribution of the noise; the exponential mechanism uses its scale alone.
        points: the time points asked about, over all subjects; with public gaps, those recorded.
        length: the length of the longest subject.
        subjects: the number of subjects.
        delta: of Gaussian noise; else 0.
        recorded: the recorded time points and pairs, where gaps are public; else None.
    """

    query: Query
    calibration: Calibration | GaussianCalibration
    law: TwoSidedGeometric | RoundedGaussian
    points: int
    length: int
    subjects: int
    delta: Fraction = Fraction(0)
    recorded: RecordedPoints | None = None

    @property
    def total(self) -> Fraction | None:
        """The sum of the true cells, where it is public; else None."""
        if self.recorded is not None and self.query.sensitivity.pair:
            return Fraction(self.recorded.pairs)
        return self.query.total(self.points, self.subjects)

    @property
    def noise_scale(self) -> Fraction:
        """The scale of the integer noise, exactly."""
        return self.law.scale or Fraction(0)


def make_plan(
    query: Query,
    members: tuple[Belief, ...],
    lengths: Iterable[int],
    epsilon: Fraction,
    protection: Protection,
    recorded: RecordedPoints | None = None,
) -> NoisePlan:
    """Calibrate the query for subjects of these lengths and choose its grid.

    Public gaps are calibrated as if they had records: leaving a time point out only lowers its
    level, so this is an upper bound for every method whose levels compose.
    """
    counted, plans = Counter(lengths), _plans.get()
    if recorded is not None and isinstance(query, CustomQuery):
        raise UnsupportedError(
            "A custom query needs the state of every time point, and gaps have none; ask a named "
            f"query, or read with {argument('missing', 'state')}."
        )
    if recorded is not None and protection.method == "optimal-scale":
        raise UnsupportedError(
            f"{argument('method', 'optimal-scale')} is exact for a series without gaps; an "
            "answer that leaves points out may reveal more. Leave method out."
        )
    if plans is None or isinstance(query, CustomQuery):
        return _calibrated_plan(query, members, counted, epsilon, protection, recorded)
    # Queries are compared by their text, since those of the states 1 and True are equal.
    key = (repr(query), digest(members), *sorted(counted.items()), epsilon, protection, recorded)
    plan = plans.get(key)
    if plan is None:
        plan = _calibrated_plan(query, members, counted, epsilon, protection, recorded)
        while len(plans) >= _MOST_REMEMBERED and plans:
            plans.pop(next(iter(plans)), None)
        plans[key] = plan
    return plan


@contextmanager
def remembering(plans: dict[Any, NoisePlan]) -> Iterator[None]:
    """Use a cache of plans during a block, for services that repeat requests.

    Warnings of a plan are raised only when it is computed.
    """
    token = _plans.set(plans)
    try:
        yield
    finally:
        _plans.reset(token)


def _calibrated_plan(
    query: Query,
    members: tuple[Belief, ...],
    counted: Counter[int],
    epsilon: Fraction,
    protection: Protection,
    recorded: RecordedPoints | None,
) -> NoisePlan:
    points = points_asked(query, counted)
    longest = max(points_asked(query, Counter([n])) for n in counted)

    def calibrated(level: Fraction, gridded: Query = query) -> Calibration | GaussianCalibration:
        return protection.calibrated(gridded, members, counted, level)

    states = members[0].states or ()
    fine, calibration = _on_grid(query, calibrated, epsilon, states, points, longest)
    law = protection.law.from_scale(calibration.exact_scale / fine.grid(points)[1])
    shape = points if recorded is None else recorded.points, max(counted), counted.total()
    plan = NoisePlan(fine, calibration, law, *shape, protection.delta, recorded)
    _refuse_overflow(plan)
    return plan


def _refuse_overflow(plan: NoisePlan) -> None:
    """Refuse answers that may exceed the range of floats, from public quantities alone."""
    offset, unit = plan.query.grid(plan.points)
    integers = plan.subjects * plan.query.largest + _FAR * plan.noise_scale
    if abs(offset) + unit * integers > _LARGEST_FLOAT:
        raise InvalidInputError(
            f"The answer to this {plan.query.kind} may be too large for a float; give smaller "
            "bounds, or values in a larger unit."
        )


def _on_grid(
    query: Query,
    calibrated: Callable[..., Calibration | GaussianCalibration],
    epsilon: Fraction,
    states: States,
    points: int,
    longest: int,
) -> tuple[Query, Calibration | GaussianCalibration]:
    """Return the query on its grid, and the calibration that makes it ε-private there.

    Quilts price the grid itself, and totals of numbers are charged one step of it. "optimal-scale"
    is exact for the values themselves, and moving every answer by at most δ adds at most 2δ/σ to
    its leakage: where values are off the grid, a thousandth of ε is reserved for that. `points` is
    the number of time points over all subjects, `longest` the most of one subject.

    Theorem: docs/theory/exact-calibration.md
    """
    calibration = calibrated(epsilon)
    fine = query.refined(_ranges(query, calibration), points)
    if isinstance(fine, NumericSum):
        return fine, calibrated(epsilon, fine)
    if str(calibration.method) != "optimal-scale" or _moved(fine, states, longest) == 0:
        return fine, calibration
    calibration = calibrated(epsilon * (1 - _SHARE))
    fine = query.refined(_ranges(query, calibration) * min(Fraction(1), epsilon), points)
    noise = calibration.exact_scale * query.divisor(points)
    if 2 * _moved(fine, states, longest) > epsilon * _SHARE * noise:
        raise UnsupportedError(
            f"The values of the states lie on no grid that is fine enough for a {query.kind} with "
            f"{argument('method', 'optimal-scale')} at this epsilon; use "
            f"{argument('method', 'exact')}."
        )
    return fine, calibration


def _ranges(query: Query, calibration: Calibration | GaussianCalibration) -> Fraction:
    """Return the noise in ranges hi − lo, as `refined` takes it."""
    return calibration.integer_scale / query.subdivision


def _moved(fine: Query, states: States, points: int) -> Fraction:
    """Return how far the grid may move a subject's total."""
    return fine.rounding(states, points, 1) * fine.divisor(points)
