"""Usefulness of a release: the expected error against the signal, and what would lower it.

Before a release the expected error is compared with the expected size of a cell (`signal_of`),
which is public. Afterwards it is compared with the released numbers alone, so judging reveals
nothing more about the data.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from typing import TYPE_CHECKING

import numpy as np

from quiltwork.beliefs import Label
from quiltwork.budget.accounting.expected_errors import signal_range
from quiltwork.budget.judging import Usefulness, judge
from quiltwork.exact import format_number, percent
from quiltwork.influence import Calibration
from quiltwork.influence.calibration import decisive_belief
from quiltwork.influence.diagnostics import driving_states
from quiltwork.influence.gaussian_noise import GaussianCalibration
from quiltwork.queries.custom import CustomQuery
from quiltwork.queries.numbers import Sum
from quiltwork.wording import argument

if TYPE_CHECKING:
    from quiltwork.series.releases.noise_plan import NoisePlan
    from quiltwork.series.releases.released_answer import ReleasedAnswer

_USEFUL = 0.1
_DEPENDENT = 50
"""Percent of ε from which on neighbours are named as the cause of the noise."""
_NO_VALUE = ("missing", None)


def signal_of(plan: NoisePlan, cells: int) -> float:
    """Return the expected size of a cell, in units of the answer, from public values alone.

    It is the range over all subjects; an even share of it where cells share a public total.
    """
    each = signal_range(plan.query, plan.length)
    alike = plan.points / _points_of_one(plan)  # the number of longest subjects with as many points
    together = each if plan.query.divisor(2) > 1 else each * alike
    shared = plan.total is not None
    return together / cells if shared else together


def usefulness_of(release: ReleasedAnswer) -> Usefulness:
    """Judge a release by the released numbers."""
    if release.mechanism == "exponential":
        return judge(release.expected_error, release.points, f"{release.points:,} time points")
    query, values = release.query, np.asarray(release.value, dtype=float)
    signed = isinstance(query, CustomQuery) or (isinstance(query, Sum) and query.lo < 0)
    largest = float(np.max(np.abs(values) if signed else values))
    points = release.query.points(release.length)
    of = f"the largest number, {format_number(largest, 6)}, of this window of "
    if release.subjects > 1:
        most = release.points + (release.gaps or 0) < points * release.subjects
        of += f"{release.subjects:,} sequences of {'up to ' if most else ''}"
    of += f"{points:,} time points"
    usefulness = judge(release.expected_error, largest, of)
    if signed:
        return usefulness
    together = release.interval(simultaneous=True)
    lost = int(np.count_nonzero(np.ravel(together.low) <= 0))
    return usefulness.with_lost_cells(lost, len(release.cells), "cell")


def advice(plan: NoisePlan, error: float, signal: float) -> Iterator[str]:
    """Yield sentences on what causes the noise, and on what would lower the error."""
    calibration = plan.calibration
    short = error / (_USEFUL * signal) if signal > 0 else math.inf
    if isinstance(calibration, GaussianCalibration):
        yield from _of_gaussian(plan, calibration, short)
        return
    if not calibration.bounds:
        if 1 < short < math.inf:
            yield f"About {math.ceil(plan.subjects * short):,} persons would make it useful."
        return
    yield from decisive_belief(calibration)
    share = 100 * calibration.influence / float(calibration.epsilon)
    drives = driving_states(calibration) if share > _DEPENDENT else None
    if share > _DEPENDENT:
        pair = " or ".join(sorted(map(str, drives or ())))
        apart = f", most of all about whether it is {pair}" if pair else ""
        yield (
            f"{percent(share / 100, 0)} of ε pays for what neighbouring time points reveal about "
            f"time point {calibration.node:,}{apart}."
        )
    one_point, two_points = (plan.query.l1_sensitivity(1, stop, None) for stop in (1, 2))
    if 1 < short < math.inf and two_points > one_point:
        needed = _points_of_one(plan) * short
        yield (
            f"About {math.ceil(needed):,} time points{' of each' if plan.subjects > 1 else ''} "
            "would make it useful: noise does not grow with their number."
        )
    if share > _DEPENDENT and short > 1:
        yield from _weaker_dependence(drives, calibration)


def _of_gaussian(plan: NoisePlan, calibration: GaussianCalibration, short: float) -> Iterator[str]:
    """Yield sentences on dependence between time points, and on how many would suffice."""
    if calibration.level and calibration.excess > 1 + 1e-3:
        times = f"{format_number(calibration.excess, 3)} times"
        yield (
            f"Dependence between time points asks for {times} the noise that each alone would need."
        )
    if 1 < short < math.inf:
        needed = _points_of_one(plan) * short
        yield (
            f"About {math.ceil(needed):,} time points{' of each' if plan.subjects > 1 else ''} "
            "would make it useful: noise does not grow with their number."
        )


def _points_of_one(plan: NoisePlan) -> int:
    return plan.query.points(plan.length)


def _weaker_dependence(
    drives: tuple[Label, Label] | None, calibration: Calibration
) -> Iterator[str]:
    if drives is not None and any(state in _NO_VALUE for state in drives):
        yield (
            "Gaps are a state of their own, which their neighbours reveal. Read with "
            f"{argument('missing', 'public')} if when the series was silent is public and says "
            "nothing about its states."
        )
    if calibration.problem.episode == 1:
        yield f"A longer step ({argument('every')}) or fewer states may weaken the dependence."
