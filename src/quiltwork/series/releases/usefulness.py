"""Judging series: what an error is compared with, what drives the noise, what would help.

Before anything is paid the expected error is compared with what a cell may be expected to be
(`signal_of`), which is public. Afterwards it is compared with the released numbers alone, so that
judging tells nothing more about the data.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from typing import TYPE_CHECKING

import numpy as np

from quiltwork.beliefs import Label
from quiltwork.budget.accounting.expected_errors import signal_range
from quiltwork.budget.judging import Usefulness, judge
from quiltwork.exact import percent
from quiltwork.influence import Calibration
from quiltwork.influence.calibration import decisive_belief
from quiltwork.influence.diagnostics import driving_states
from quiltwork.influence.gaussian_noise import GaussianCalibration
from quiltwork.queries.custom import CustomQuery
from quiltwork.queries.numbers import Sum
from quiltwork.wording import argument

if TYPE_CHECKING:
    from quiltwork.series.releases.noise_plan import NoisePlan
    from quiltwork.series.releases.record import Release

_USEFUL = 0.1
_TIED = 50
_NO_VALUE = ("missing", None)


def signal_of(plan: NoisePlan, cells: int) -> float:
    """What a cell may be expected to be, in units of the answer, before anything is known.

    How much it can vary at all, over all subjects; an even share where cells share a public total.
    """
    each = signal_range(plan.query, plan.length)
    alike = plan.points / _points_of_one(plan)  # as many of the longest have so many points
    all_of_them = each if plan.query.divisor(2) > 1 else each * alike
    shared = plan.total is not None
    return all_of_them / cells if shared else all_of_them


def usefulness_of(release: Release) -> Usefulness:
    """Judge a release by what was released."""
    if release.mechanism == "exponential":
        return judge(release.expected_error, release.points, f"{release.points:,} time points")
    query, values = release.query, np.asarray(release.value, dtype=float)
    signed = isinstance(query, CustomQuery) or (isinstance(query, Sum) and query.lo < 0)
    largest = float(np.max(np.abs(values) if signed else values))
    points = release.query.points(release.length)
    of = f"the largest number, {largest:,.6g}, of this window of {points:,} time points"
    found = judge(release.expected_error, largest, of)
    if signed:
        return found
    together = release.interval(simultaneous=True)
    lost = int(np.count_nonzero(np.ravel(together.low) <= 0))
    return found.with_lost_cells(lost, len(release.cells), "cell")


def advice(plan: NoisePlan, error: float, signal: float) -> Iterator[str]:
    """Say what drives the noise, as far as the belief tells, and what would help."""
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
    drives = driving_states(calibration) if share > _TIED else None
    if share > _TIED:
        pair = " or ".join(sorted(map(repr, drives or ())))
        apart = f", most of all whether it is {pair}" if pair else ""
        yield (
            f"{percent(share / 100, 0)} of ε go to what neighbours tell about time point "
            f"{calibration.node}{apart}."
        )
    one_point, two_points = (plan.query.l1_sensitivity(1, stop, None) for stop in (1, 2))
    if 1 < short < math.inf and two_points > one_point:
        needed = _points_of_one(plan) * short
        yield (
            f"About {math.ceil(needed):,} time points{' of each' if plan.subjects > 1 else ''} "
            "would make it useful: noise does not grow with their number."
        )
    if share > _TIED and short > 1:
        yield from _fewer_ties(drives, calibration)


def _of_gaussian(plan: NoisePlan, calibration: GaussianCalibration, short: float) -> Iterator[str]:
    """Say what hangs together, and how often Gaussian noise would pay."""
    if calibration.level and calibration.excess > 1 + 1e-3:
        yield (
            f"What time points tell about each other asks for {calibration.excess:.3g} times the "
            "noise that each alone would need."
        )
    if 1 < short < math.inf:
        needed = _points_of_one(plan) * short
        yield (
            f"About {math.ceil(needed):,} time points{' of each' if plan.subjects > 1 else ''} "
            "would make it useful: noise does not grow with their number."
        )


def _points_of_one(plan: NoisePlan) -> int:
    return plan.query.points(plan.length)


def _fewer_ties(drives: tuple[Label, Label] | None, calibration: Calibration) -> Iterator[str]:
    if drives is not None and any(state in _NO_VALUE for state in drives):
        yield (
            "Gaps are a state of their own, which their neighbours give away; read with "
            f"{argument('missing', 'public')} where when a series was silent is public and says "
            "nothing about its "
            "states."
        )
    if calibration.problem.episode == 1:
        yield f"A longer step ({argument('every')}) or fewer states may tie neighbours less."
