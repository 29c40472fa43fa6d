"""The exact audit: how much noise promises waste, and every route to a private count."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

from quiltwork.report.charts import Line, LineChart
from quiltwork.reproduce.experiments.time_series import activity_chains
from quiltwork.reproduce.registry import Progress, experiment, tracked
from quiltwork.reproduce.result import Figure, Findings, Row, Sheet, Value

if TYPE_CHECKING:
    from quiltwork.beliefs import MarkovChain
    from quiltwork.queries import Query

EPSILONS = (0.2, 0.5, 1.0, 2.0, 5.0)
DISTANCES = (1e-5, 1e-4, 1e-3, 3e-3, 0.01, 0.02, 0.05)


def _example() -> MarkovChain:
    from quiltwork import MarkovChain

    return MarkovChain([[0.9, 0.1], [0.4, 0.6]], initial=[0.8, 0.2])


def _scales(
    chain: MarkovChain, length: int, epsilon: float, count: Query
) -> tuple[float, float, float, float]:
    """Return the scales by quilts, by the sweep and exactly, and what the first really leaks."""
    from quiltwork import audit, calibrate

    quilts, swept, least = (
        calibrate(chain, length, epsilon, method, count).scale
        for method in ("exact", "sweep", "optimal-scale")
    )
    return quilts, swept, least, audit.leakage(chain, length, [(count, quilts)])


@experiment(
    "exact-calibration",
    title="Exact calibration against the quilt mechanism and the sweep",
    quick={"length": 100},
    full={"length": 1000},
)
def exact_calibration(progress: Progress, length: int) -> Findings:
    """One count on the example chain: the noise of each method, and what it really leaks."""
    from quiltwork import influence_curve, queries

    chain, count = _example(), queries.count(1)
    rows, quilts, swept, exact = [], [], [], []
    for epsilon in tracked(progress, EPSILONS):
        by_quilts, by_sweep, least, true = _scales(chain, length, epsilon, count)
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
    return Findings(
        f"A count over {length} time points of the example chain. Exact calibration adds the "
        "least noise whose true level is ε; it is priced by the influence curve if anything "
        "else is released.",
        tuple(rows),
        (Figure("scales", chart),),
    )


@experiment(
    "count-routes",
    title="Every route to a private count",
    quick={"length": 30},
    full={"length": 100},
)
def count_routes(progress: Progress, length: int) -> Findings:
    """Every route to a private count at ε = 1, from group DP down to the optimal mechanism."""
    from quiltwork import queries
    from quiltwork.counts import compare_routes

    found = compare_routes(_example(), length, 1, queries.count(1))
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
    return Findings(
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
    quick={"length": 30},
    full={"length": 100},
)
def wrong_beliefs(progress: Progress, length: int) -> Findings:
    """Exact calibration at ε = 1: levels found at nearby chains, and the proven bound."""
    from quiltwork import calibrate, queries
    from quiltwork.counts import robustness

    chain, count = _example(), queries.count(1)
    scale = calibrate(chain, length, 1, "optimal-scale", count).exact_scale
    found = [robustness(chain, length, count, scale, one) for one in tracked(progress, DISTANCES)]
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
    return Findings(
        f"A count over {length} time points, calibrated exactly to ε = 1 under the example chain.",
        rows,
        (Figure("levels", chart),),
    )


@experiment(
    "activity-exact-calibration",
    title="Exact calibration on windows of physical activity",
    quick={"length": 60},
    full={"length": 240},
)
def activity_windows(progress: Progress, length: int) -> Findings:
    """Five people; each one's chain is fitted on the others, one window of minutes is released."""
    from quiltwork import queries

    rows = []
    for one, (chain, _) in tracked(progress, activity_chains().items()):
        for state in chain.states:
            by_quilts, by_sweep, least, true = _scales(chain, length, 1, queries.count(state))
            name = f"person {one}, minutes in state {state}"
            rows += [
                Row(f"{name}: scale, exact quilts", by_quilts, note=f"really leaks {true:.3g}"),
                Row(f"{name}: scale, sweep", by_sweep),
                Row(f"{name}: scale, exact calibration", least),
            ]
    return Findings(
        f"Counts of minutes per activity level in windows of {length} minutes at ε = 1, under "
        "chains fitted on the other people.",
        tuple(rows),
    )
