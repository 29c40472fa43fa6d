"""Chapter: how one person spends the day, released from a series whose moments hang together."""

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
"""What one moment moves in a histogram: one count down, one up."""


def chapter() -> Chapter:
    """Tell what a release of one person's series is worth, and what other ways would take."""
    belief, answer, estimates = released()
    scales = _scales(belief)
    ignored = _level_if_ignored(belief)
    return Chapter(
        "time-series",
        "Time series: moments that betray each other",
        _lines(estimates, scales, ignored),
        _parts(estimates, scales, ignored),
        {
            "release": json.loads(answer.to_json()),
            "scales": scales,
            "level_if_dependence_is_ignored": ignored,
            "truth": {one.label: one.truth for one in estimates},
        },
    )


def released() -> tuple[MarkovChain, Release, tuple[Estimate, ...]]:
    """Fit a belief on volunteers, release another person's series under it."""
    from quiltwork.beliefs import MarkovChain
    from quiltwork.queries import histogram
    from quiltwork.series import release

    days = MarkovChain(TRANSITION, states=STATES)
    volunteers = [days.sample(LENGTH, SEED + one) for one in range(1, VOLUNTEERS + 1)]
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
    """Return the noise on every count that each way of protecting a moment takes."""
    from quiltwork.influence import calibrate

    return {
        method: MOVED * calibrate(belief, LENGTH, EPSILON, method=method).scale
        for method in ("sweep", "exact", "approx", "group")
    }


def _level_if_ignored(belief: MarkovChain) -> float:
    """Return the level that noise for independent moments still has when they depend."""
    from quiltwork.influence import influence_curve

    return float(influence_curve(belief, LENGTH).epsilon(EPSILON))


def _lines(
    estimates: tuple[Estimate, ...], scales: dict[str, float], ignored: float
) -> tuple[str, ...]:
    return (
        f"One simulated person, {LENGTH:,} moments, epsilon = {EPSILON} for each of them:",
        *(f"  {one.label:<5} {one.value:>5}   {one.low} to {one.high}" for one in estimates),
        f"Noise scale {scales['sweep']:.1f}; protecting all moments at once would take "
        f"{scales['group']:,.0f}.",
        f"Noise of scale {MOVED}, as if moments were independent, protects each only at epsilon = "
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
        ("sweep", scales["sweep"], "every moment, under the belief"),
        ("Markov quilt, exact", scales["exact"], "every moment, under the belief"),
        ("Markov quilt, bounded", scales["approx"], "every moment, under the belief"),
        ("group privacy", scales["group"], "every moment, whatever the dependence"),
        ("as if moments were independent", MOVED, f"every moment, but only at ε = {ignored:.1f}"),
    ]
    return (
        paragraph(
            "A tracker notes every ten minutes whether its wearer rests, walks or runs. Whoever "
            "walks now probably walked ten minutes ago, so hiding one moment means hiding what "
            "its neighbours say about it. The belief how moments hang together is fitted on "
            f"{VOLUNTEERS} volunteers, not on the person it protects."
        ),
        facts(
            {
                "privacy level": f"ε = {EPSILON}",
                "protects": "every single moment",
                "noise scale": f"{scales['sweep']:.1f} on every count",
            }
        ),
        figure(chart),
        table(
            "What each way of protecting a moment takes",
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
