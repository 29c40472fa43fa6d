"""Charts of diagnostics: likelihoods, memory, stays, times of day, and the price of caution."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING

import numpy as np

from quiltwork.exact import Number, to_fraction
from quiltwork.report.charts import BarChart, Chart, Line, LineChart

if TYPE_CHECKING:
    from quiltwork.beliefs.goodness_of_fit import Comparison
    from quiltwork.influence.diagnostics import BeliefCheck

_MOST_STATES = 4
_MOST_POINTS = 200


def check_charts(check: BeliefCheck) -> list[Chart]:
    """Return the charts of a check: of its best belief, and of the most frequent states."""
    sample, best = check.sample, check.best
    counts = np.bincount(np.concatenate(sample.paths), minlength=len(sample.states))
    chosen = np.sort(np.argsort(-counts, kind="stable")[:_MOST_STATES]).tolist()
    names = [str(state) for state in sample.states]
    return [
        _likelihoods(check),
        _leak(check),
        *(chart for state in chosen for chart in _of_state(best, state, names[state])),
    ]


def _likelihoods(check: BeliefCheck) -> BarChart:
    """The loss of likelihood of each belief and candidate."""
    scores = [
        *(
            ("this belief" if n == 0 else f"belief {n + 1}", member.per_step)
            for n, member in enumerate(check.members)
        ),
        *((f"fitted: {candidate.name}", candidate.per_step) for candidate in check.candidates),
    ]
    best = max(score for _, score in scores)
    bars = tuple((name, best - score) for name, score in scores if math.isfinite(score))
    return BarChart(
        "How much less likely a step is than under the best",
        f"{check.score_title}; up to 0.01 beside the best passes. A belief that rules a step "
        "out has no bar.",
        "nats per step",
        bars,
    )


def _leak(check: BeliefCheck) -> BarChart:
    """The promised and the actual leakage of a histogram."""
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


def _of_state(comparison: Comparison, state: int, name: str) -> Iterator[Chart]:
    """The charts of one state."""
    lags = np.array(comparison.lags, dtype=np.float64)
    yield LineChart(
        f"Memory of {name!r}",
        "The autocorrelation of being in this state, so many steps apart.",
        "steps apart",
        "autocorrelation",
        (
            _line("sample", lags, comparison.autocorrelation[:, state], marks=True),
            _line("belief", lags, comparison.believed[:, state]),
        ),
        log_x=len(comparison.lags) > 1,
    )
    observed, believed = comparison.stays[state], comparison.believed_stays[state]
    if observed is not None and believed is not None:
        both = [np.array(stay.longer[:_MOST_POINTS]) for stay in (observed, believed)]
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
    if comparison.hours is not None:
        hours = np.arange(24) + 0.5
        yield LineChart(
            f"Time of day of {name!r}",
            "The share of time spent in this state by hour of the day.",
            "hour",
            "share of time",
            (
                _line("sample", hours, comparison.hours.sample[:, state], marks=True),
                _line("belief", hours, comparison.hours.belief[:, state]),
            ),
        )


def _line(
    name: str,
    across: np.ndarray[tuple[int, ...], np.dtype[np.generic]],
    up: np.ndarray[tuple[int, ...], np.dtype[np.generic]],
    *,
    marks: bool = False,
) -> Line:
    """A line through the finite points."""
    points = zip(across.tolist(), up.tolist(), strict=True)
    return Line(name, tuple((x, y) for x, y in points if math.isfinite(y)), marks)


def caution_chart(noise: Sequence[tuple[float, float]], length: int, epsilon: Number) -> BarChart:
    """Draw the noise against the distance of each probability from the chain's."""
    return BarChart(
        "Noise against how wrong the belief may be",
        f"The scale of the noise of a histogram of {length:,} time points at ε = "
        f"{float(to_fraction(epsilon, 'epsilon')):g}, if each probability may be off by so much.",
        "noise scale",
        tuple((f"off by {distance:g}", scale) for distance, scale in noise),
    )
