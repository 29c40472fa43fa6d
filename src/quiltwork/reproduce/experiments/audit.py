"""The exact audit: how much noise promises waste, and every route to a private count."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

from quiltwork.report.charts import Line, LineChart
from quiltwork.reproduce.registry import Progress, experiment
from quiltwork.reproduce.result import Figure, Result, Row, Sheet, Value
from quiltwork.reproduce.shared import shared_file

if TYPE_CHECKING:
    from quiltwork.beliefs import MarkovChain

EPSILONS = (0.2, 0.5, 1.0, 2.0, 5.0)
DISTANCES = (1e-5, 1e-4, 1e-3, 3e-3, 0.01, 0.02, 0.05)


def _example() -> MarkovChain:
    from quiltwork import MarkovChain

    return MarkovChain([[0.9, 0.1], [0.4, 0.6]], initial=[0.8, 0.2])


@experiment(
    "exact-calibration",
    title="Exact calibration against the quilt mechanism and the sweep",
    item="quiltwork",
    quick={"length": 100},
    full={"length": 1000},
)
def exact_calibration(progress: Progress, length: int) -> Result:
    """One count on the example chain: the noise of each method, and what it really leaks."""
    from quiltwork import audit, calibrate, influence_curve, queries

    chain, count = _example(), queries.count(1)
    rows, quilts, swept, exact = [], [], [], []
    for done, epsilon in enumerate(EPSILONS, start=1):
        by_quilts = calibrate(chain, length, epsilon, "exact", count).scale
        by_sweep = calibrate(chain, length, epsilon, "sweep", count).scale
        least = calibrate(chain, length, epsilon, "optimal-scale", count).scale
        true = audit.leakage(chain, length, [(count, by_quilts)])
        charged = influence_curve(chain, length).epsilon(1 / least)
        rows += [
            Row(
                f"ε = {epsilon:g}: scale, exact quilts", by_quilts, note=f"really leaks {true:.4g}"
            ),
            Row(f"ε = {epsilon:g}: scale, sweep", by_sweep),
            Row(
                f"ε = {epsilon:g}: scale, exact calibration",
                least,
                note=f"a ledger charges {charged:.4g}",
            ),
        ]
        quilts.append((epsilon, by_quilts))
        swept.append((epsilon, by_sweep))
        exact.append((epsilon, least))
        progress(done, len(EPSILONS))
    chart = LineChart(
        "Noise that a count needs",
        "Noise scale over epsilon for exact quilts, the sweep and exact calibration.",
        "epsilon",
        "noise scale",
        (
            Line("exact quilts", tuple(quilts)),
            Line("sweep", tuple(swept)),
            Line("exact calibration", tuple(exact)),
        ),
        log_x=True,
        log_y=True,
    )
    return Result(
        f"A count over {length} time points of the example chain. Exact calibration adds the "
        "least noise whose true level is ε; it is priced by the influence curve if anything "
        "else is released.",
        tuple(rows),
        (Figure("exact-calibration", chart),),
    )


@experiment(
    "count-routes",
    title="Every route to a private count",
    item="quiltwork",
    quick={"length": 30},
    full={"length": 100},
)
def count_routes(progress: Progress, length: int) -> Result:
    """Every route to a private count at ε = 1, from group DP down to the optimal mechanism."""
    from quiltwork import queries
    from quiltwork.counts import compare_routes

    found = compare_routes(_example(), length, 1, queries.count(1))
    progress(1, 1)
    chart = found.chart()
    rows = tuple(
        Row(
            name,
            row.error,
            unit=chart.axis,
            note=f"leaks {row.level:.4g}; {row.nearby:.4g} at chains off by {found.distance:g}; "
            f"for {row.scope}",
        )
        for (name, _), row in zip(chart.bars, found.rows, strict=True)
    )
    header, table = found.table()
    cells = tuple(tuple(_cell(cell) for cell in row) for row in table)
    return Result(
        "All rows but entry DP have the same proven level. Remaps use the chain's own "
        "distribution of counts as the prior. The optimal mechanisms trust the chain completely: "
        "their level rises most when it is slightly wrong.",
        rows,
        (Figure("errors", chart),),
        (Sheet("routes", header, cells),),
    )


def _cell(value: Value | bool) -> Value:
    """Say yes, no and none in words; the files have no infinities."""
    if isinstance(value, bool):
        return "yes" if value else "no"
    return "none" if isinstance(value, float) and math.isinf(value) else value


@experiment(
    "exact-calibration-robustness",
    title="What a slightly wrong belief costs",
    item="quiltwork",
    quick={"length": 30},
    full={"length": 100},
)
def wrong_beliefs(progress: Progress, length: int) -> Result:
    """Exact calibration at ε = 1: levels found at nearby chains, and the proven bound."""
    from quiltwork import calibrate, queries
    from quiltwork.counts import robustness

    chain, count = _example(), queries.count(1)
    scale = calibrate(chain, length, 1, "optimal-scale", count).exact_scale
    found = []
    for done, distance in enumerate(DISTANCES, start=1):
        found.append(robustness(chain, length, count, scale, distance))
        progress(done, len(DISTANCES))
    rows = tuple(
        Row(
            f"entries off by {one.distance:g}",
            one.observed,
            unit="largest level found",
            note=f"bound {one.bound:.4g}, by {one.by}",
        )
        for one in found
    )
    chart = LineChart(
        "Level when the belief is wrong",
        "Largest level found and proven bound over the entrywise distance of the true chain.",
        "distance",
        "level",
        (
            Line("largest level found", tuple((one.distance, one.observed) for one in found)),
            Line("proven bound", tuple((one.distance, one.bound) for one in found)),
        ),
        log_x=True,
    )
    return Result(
        f"A count over {length} time points, calibrated exactly to ε = 1 under the example chain.",
        rows,
        (Figure("exact-calibration-robustness", chart),),
    )


@experiment(
    "activity-exact-calibration",
    title="Exact calibration on windows of physical activity",
    item="quiltwork",
    quick={"length": 60},
    full={"length": 240},
)
def activity_windows(progress: Progress, length: int) -> Result:
    """Five people; each one's chain is fitted on the others, one window of minutes is released."""
    from quiltwork import MarkovChain, audit, calibrate, queries
    from quiltwork.series import read_series

    series = read_series(
        shared_file("data/activity_nhanes.csv.gz"),
        "state4",
        time="minute_of_record",
        subject="seqn",
        states=(0, 1, 2, 3),
    )
    people, rows = series.data, []
    for done, one in enumerate(people, start=1):
        chain = MarkovChain.fit([people[p] for p in people if p != one], states=series.states)
        for state in series.states:
            count = queries.count(state)
            by_quilts = calibrate(chain, length, 1, "exact", count).scale
            by_sweep = calibrate(chain, length, 1, "sweep", count).scale
            least = calibrate(chain, length, 1, "optimal-scale", count).scale
            true = audit.leakage(chain, length, [(count, by_quilts)])
            name = f"person {one}, minutes in state {state}"
            rows += [
                Row(f"{name}: scale, exact quilts", by_quilts, note=f"really leaks {true:.3g}"),
                Row(f"{name}: scale, sweep", by_sweep),
                Row(f"{name}: scale, exact calibration", least),
            ]
        progress(done, len(people))
    return Result(
        f"Counts of minutes per activity level in windows of {length} minutes at ε = 1, under "
        "chains fitted on the other people.",
        tuple(rows),
    )
