"""Chapter: a table of counts by the geometric mechanism, and one reader of it."""

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
    """Release how residents travel to work, with intervals that hold the truth."""
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
    rows = [(one.label, int(one.value), f"{one.low} to {one.high}") for one in estimates]
    lines = [f"  {one.label:<8} {one.value:>4}   {one.low} to {one.high}" for one in estimates]
    return Chapter(
        "counts",
        "Counts: a table that anyone may read",
        (
            f"{PEOPLE:,} simulated residents, epsilon = {float(EPSILON):g} for one of them added "
            "or removed:",
            *lines,
            f"Each interval holds the true count with probability {float(CONFIDENCE):g}.",
        ),
        (
            paragraph(
                "A town asks its residents how they travel to work and publishes the counts. "
                "Exact integer noise keeps any one resident's answer hidden, and the interval "
                "beside each count says how far off it may be."
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
    places = np.searchsorted(edges, draws, side="right")
    return [MODES[place] for place in places]


def tally(answers: Sequence[str]) -> dict[str, int]:
    """Count each mode, absent ones included."""
    return {mode: answers.count(mode) for mode in MODES}
