"""A check of a belief as charts: likelihoods, memory, stays and times of day."""

from __future__ import annotations

import math
from collections.abc import Iterator
from typing import TYPE_CHECKING

import numpy as np

from quiltwork.report.charts import BarChart, Chart, Line, LineChart

if TYPE_CHECKING:
    from quiltwork.beliefs.goodness_of_fit import Comparison
    from quiltwork.influence.checks import BeliefCheck

_MOST_STATES = 4
_MOST_POINTS = 200


def check_charts(check: BeliefCheck) -> list[Chart]:
    """Return the pictures of a check: of its best belief, and of the commonest states."""
    sample, one = check.sample, check.best
    seen = np.bincount(np.concatenate(sample.paths), minlength=len(sample.states))
    chosen = np.sort(np.argsort(-seen, kind="stable")[:_MOST_STATES]).tolist()
    names = [str(state) for state in sample.states]
    return [
        _likelihoods(check),
        _leak(check),
        *(chart for state in chosen for chart in _of_state(one, state, names[state])),
    ]


def _likelihoods(check: BeliefCheck) -> BarChart:
    scores = [
        *(
            ("this belief" if n == 0 else f"belief {n + 1}", m.per_step)
            for n, m in enumerate(check.members)
        ),
        *((f"fitted: {one.name}", one.per_step) for one in check.candidates),
    ]
    best = max(score for _, score in scores)
    lost = tuple((name, best - score) for name, score in scores if math.isfinite(score))
    return BarChart(
        "How much less likely a step is than under the best",
        f"{check.score_title}; up to 0.01 beside the best passes. A belief that rules a step "
        "out has no bar.",
        "nats per step",
        lost,
    )


def _leak(check: BeliefCheck) -> BarChart:
    bars = [("promised", float(check.epsilon))]
    if math.isfinite(check.level):
        bars.append((f"under: {check.candidates[0].name}", check.level))
    return BarChart(
        "What a histogram would tell",
        f"Of {check.length:,} time points, calibrated with this belief, if what fits the sample "
        "best were true.",
        "epsilon",
        tuple(bars),
    )


def _of_state(one: Comparison, state: int, name: str) -> Iterator[Chart]:
    lags = np.array(one.lags, dtype=np.float64)
    yield LineChart(
        f"Memory of {name!r}",
        "The autocorrelation of being in this state, so many steps apart.",
        "steps apart",
        "autocorrelation",
        (
            _line("sample", lags, one.autocorrelation[:, state], marks=True),
            _line("belief", lags, one.believed[:, state]),
        ),
        log_x=len(one.lags) > 1,
    )
    seen, said = one.stays[state], one.believed_stays[state]
    if seen is not None and said is not None:
        both = [np.array(stay.longer[:_MOST_POINTS]) for stay in (seen, said)]
        yield LineChart(
            f"Stays in {name!r}",
            "The share of stays that last longer than so many time points.",
            "time points",
            "share of stays",
            (
                _line("sample", np.arange(len(both[0])), both[0], marks=True),
                _line("belief", np.arange(len(both[1])), both[1]),
            ),
        )
    if one.hours is not None:
        hours = np.arange(24) + 0.5
        yield LineChart(
            f"Time of day of {name!r}",
            "The share of time spent in this state by hour of the day.",
            "hour",
            "share of time",
            (
                _line("sample", hours, one.hours.sample[:, state], marks=True),
                _line("belief", hours, one.hours.belief[:, state]),
            ),
        )


def _line(
    name: str,
    across: np.ndarray[tuple[int, ...], np.dtype[np.generic]],
    up: np.ndarray[tuple[int, ...], np.dtype[np.generic]],
    *,
    marks: bool = False,
) -> Line:
    points = zip(across.tolist(), up.tolist(), strict=True)
    return Line(name, tuple((x, y) for x, y in points if math.isfinite(y)), marks)
