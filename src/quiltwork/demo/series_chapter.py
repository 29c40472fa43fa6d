"""The demo's chapter on time series: one person's activity, whose time points are correlated."""

from __future__ import annotations

import json
from fractions import Fraction
from typing import TYPE_CHECKING, Any

from quiltwork.demo.tour import Chapter
from quiltwork.report import Estimate, IntervalChart, code, facts, figure, paragraph, table

if TYPE_CHECKING:
    from quiltwork.beliefs import MarkovChain
    from quiltwork.series import Release

STATES = ("rest", "walk", "run")
TRANSITION = ((0.85, 0.13, 0.02), (0.35, 0.55, 0.10), (0.20, 0.50, 0.30))
LENGTH = 4 * 7 * 144
"""Four weeks in steps of ten minutes."""
VOLUNTEERS = 20
EPSILON = Fraction(1)
CONFIDENCE = 0.95
SEED = 19620817
MOVED = 2
"""The sensitivity of a histogram to one time point: one count falls, one rises."""


def chapter() -> Chapter:
    """Release a histogram of one person's series, and compare the noise of other methods."""
    belief, answer, estimates = released()
    scales = _scales(belief)
    ignored = _level_if_ignored(belief)
    return Chapter(
        "time-series",
        "Time series: correlated time points",
        _lines(estimates, scales, ignored),
        _parts(estimates, scales, ignored),
        {
            "release": json.loads(answer.to_json()),
            "scales": scales,
            "level_if_dependence_is_ignored": ignored,
            "truth": {estimate.label: estimate.truth for estimate in estimates},
        },
    )


def released() -> tuple[MarkovChain, Release, tuple[Estimate, ...]]:
    """Fit a belief to volunteers, and release another person's series under it."""
    from quiltwork.beliefs import MarkovChain
    from quiltwork.queries import histogram
    from quiltwork.series import release

    days = MarkovChain(TRANSITION, states=STATES)
    volunteers = [days.sample(LENGTH, SEED + i) for i in range(1, VOLUNTEERS + 1)]
    belief = MarkovChain.fit(volunteers, smoothing=0.5, states=STATES)
    person = days.sample(LENGTH, SEED)
    answer = release(person, histogram(), belief, epsilon=EPSILON)
    low, high = answer.interval(CONFIDENCE)
    return belief, answer, tuple(
        Estimate(
            state, int(answer.value[i]), max(0, int(low[i])), int(high[i]),
            truth=int((person == state).sum()),
        )
        for i, state in enumerate(answer.cells)
    )  # fmt: skip


def _scales(belief: MarkovChain) -> dict[str, float]:
    """Return the noise scale of every count by method."""
    from quiltwork.influence import calibrate

    return {
        method: MOVED * calibrate(belief, LENGTH, EPSILON, method=method).scale
        for method in ("sweep", "exact", "approx", "group")
    }


def _level_if_ignored(belief: MarkovChain) -> float:
    """Return the actual level of noise that was calibrated for independent time points."""
    from quiltwork.influence import influence_curve

    return float(influence_curve(belief, LENGTH).epsilon(EPSILON))


def _lines(
    estimates: tuple[Estimate, ...], scales: dict[str, float], ignored: float
) -> tuple[str, ...]:
    return (
        f"One simulated person, {LENGTH:,} time points, epsilon = {EPSILON} for each of them:",
        *(f"  {e.label:<5} {e.value:>5}   {e.low} to {e.high}" for e in estimates),
        f"Noise scale {scales['sweep']:.1f}; protecting all time points at once takes "
        f"{scales['group']:,.0f}.",
        f"Noise of scale {MOVED}, for independent time points, protects each only at epsilon = "
        f"{ignored:.1f}.",
    )


def _parts(estimates: tuple[Estimate, ...], scales: dict[str, float], ignored: float) -> Any:
    chart = IntervalChart(
        title="Four weeks of one person",
        description=f"Released counts of ten-minute steps with their {100 * CONFIDENCE:g} % "
        "intervals, and the true counts, known here because the person is simulated.",
        axis="steps of ten minutes",
        estimates=estimates,
    )
    rows = [
        ("sweep", scales["sweep"], "every time point, under the belief"),
        ("Markov quilt, exact", scales["exact"], "every time point, under the belief"),
        ("Markov quilt, bounded", scales["approx"], "every time point, under the belief"),
        ("group privacy", scales["group"], "every time point, under any dependence"),
        ("assuming independence", MOVED, f"every time point, but only at ε = {ignored:.1f}"),
    ]
    return (
        paragraph(
            "A tracker records every ten minutes whether its wearer rests, walks or runs. A person "
            "who walks now probably walked ten minutes ago, so protecting one time point includes "
            "what its neighbours reveal about it. The belief about this correlation is fitted to "
            f"{VOLUNTEERS} volunteers, not to the person it protects."
        ),
        facts(
            {
                "privacy level": f"ε = {EPSILON}",
                "protects": "every single time point",
                "noise scale": f"{scales['sweep']:.1f} on every count",
            }
        ),
        figure(chart),
        table(
            "The noise of each method",
            ["method", "noise scale", "protects"],
            rows,
        ),
        paragraph("The same from files:"),
        code(
            "quiltwork fit volunteers.csv --value activity --subject person \\\n"
            "    --single -o belief.json\n"
            "quiltwork release person.csv --value activity --belief belief.json \\\n"
            f"    --query histogram --epsilon {EPSILON}"
        ),
    )
