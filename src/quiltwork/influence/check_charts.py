"""A check of a belief as charts: likelihoods, memory and stays."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

import numpy as np

from quiltwork.report.charts import BarChart, Chart, Line, LineChart

if TYPE_CHECKING:
    from quiltwork.beliefs.goodness_of_fit import Comparison
    from quiltwork.influence.checks import BeliefCheck

_MOST_STATES = 4


def check_charts(check: BeliefCheck) -> list[Chart]:
    """Return the pictures of a check: of its best belief, and of the commonest states."""
    sample, one = check.sample, check.best
    seen = np.bincount(np.concatenate(sample.paths), minlength=len(sample.states))
    chosen = np.sort(np.argsort(-seen, kind="stable")[:_MOST_STATES]).tolist()
    names = {state: str(sample.states[state]) for state in chosen}
    return [
        _likelihoods(check),
        _leak(check),
        _stays(one, names),
        *(_memory(one, state, name) for state, name in names.items()),
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
        "By steps that were held out; up to 0.01 counts as fitting. A belief that rules a step "
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


def _stays(one: Comparison, names: dict[int, str]) -> BarChart:
    pairs = [
        (f"{name}: {who}", float(mean))
        for state, name in names.items()
        for who, mean in (("sample", one.stays[state]), ("belief", one.believed_stays[state]))
    ]
    return BarChart(
        "How long states last",
        "The mean number of time points of a stay.",
        "time points",
        tuple(pair for pair in pairs if math.isfinite(pair[1])),
    )


def _memory(one: Comparison, state: int, name: str) -> LineChart:
    columns = ("sample", one.autocorrelation[:, state]), ("belief", one.believed[:, state])
    return LineChart(
        f"Memory of {name!r}",
        "The autocorrelation of being in this state, so many steps apart.",
        "steps apart",
        "autocorrelation",
        tuple(
            Line(
                who,
                tuple((lag, y) for lag, y in zip(one.lags, up.tolist(), strict=True) if y == y),
                marks=who == "sample",
            )
            for who, up in columns
        ),
        log_x=len(one.lags) > 1,
    )
