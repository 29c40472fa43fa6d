"""The exact audit: how much noise promises waste."""

from __future__ import annotations

from typing import TYPE_CHECKING

from quiltwork.report.charts import Line, LineChart
from quiltwork.reproduce.experiments.time_series import activity_chains
from quiltwork.reproduce.registry import Progress, experiment, tracked
from quiltwork.reproduce.result import Figure, Findings, Row

if TYPE_CHECKING:
    from quiltwork.beliefs import MarkovChain
    from quiltwork.queries import Query

EPSILONS = (0.2, 0.5, 1.0, 2.0, 5.0)


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
