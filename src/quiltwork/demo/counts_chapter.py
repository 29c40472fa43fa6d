"""The demo's chapter on counts: a table released by the geometric mechanism."""

from __future__ import annotations

import json
from collections.abc import Sequence
from fractions import Fraction
from itertools import accumulate

from quiltwork.demo.tour import Chapter
from quiltwork.report import Estimate, IntervalChart, code, facts, figure, paragraph, table

EPSILON = Fraction(1, 10)
CONFIDENCE = Fraction(19, 20)
MODES = ("walk", "bicycle", "bus", "train", "car")
SHARES = (0.11, 0.19, 0.22, 0.08, 0.40)
PEOPLE = 1200
SEED = 20240229


def chapter() -> Chapter:
    """Release counts of how residents travel to work, with their intervals."""
    from quiltwork.counts import release_table

    truth = tally(survey())
    released = release_table(truth, epsilon=EPSILON, adjacency="add-remove", dimensions=["mode"])
    intervals = released.intervals(CONFIDENCE)
    estimates = tuple(
        Estimate(mode, released[mode], *intervals[mode], truth=truth[mode]) for mode in MODES
    )
    chart = IntervalChart(
        title="How residents travel to work",
        description=f"Released counts with their {float(100 * CONFIDENCE):g} % intervals, and the "
        "true counts, known here because the residents are simulated.",
        axis="residents",
        estimates=estimates,
    )
    rows = [(e.label, int(e.value), f"{e.low} to {e.high}") for e in estimates]
    lines = [f"  {e.label:<8} {e.value:>4}   {e.low} to {e.high}" for e in estimates]
    return Chapter(
        "counts",
        "Counts: a table that can be published",
        (
            f"{PEOPLE:,} simulated residents, epsilon = {float(EPSILON):g} for one of them added "
            "or removed:",
            *lines,
            f"Each interval contains the true count with probability {float(CONFIDENCE):g}.",
        ),
        (
            paragraph(
                "A town asks its residents how they travel to work and publishes the counts. "
                "Exact integer noise protects each resident's answer, and each count has an "
                "interval for the true one."
            ),
            facts(
                {
                    "privacy level": f"ε = {float(EPSILON):g}",
                    "protects": "one person added or removed",
                    "noise": "two-sided geometric",
                }
            ),
            figure(chart),
            table(
                "What is published",
                ["mode", "released count", f"{float(100 * CONFIDENCE):g} % interval"],
                rows,
            ),
            paragraph("The same from a CSV file with a column “mode”:"),
            code(
                f"quiltwork count residents.csv --by mode --epsilon {float(EPSILON):g} \\\n"
                f"    --categories {','.join(MODES)}"
            ),
        ),
        {
            "table": json.loads(released.to_json()),
            "intervals": {mode: list(intervals[mode]) for mode in MODES},
            "truth": truth,
        },
    )


def survey(people: int = PEOPLE, seed: int = SEED) -> list[str]:
    """Simulate the answers of `people` residents; the same seed gives the same people.

    >>> survey(3)
    ['bicycle', 'car', 'car']
    """
    import numpy as np

    edges = list(accumulate(SHARES))
    draws = np.random.default_rng(seed).random(people) * edges[-1]
    modes = np.searchsorted(edges, draws, side="right")
    return [MODES[mode] for mode in modes]


def tally(answers: Sequence[str]) -> dict[str, int]:
    """Return the count of each mode, including zeros."""
    return {mode: answers.count(mode) for mode in MODES}
