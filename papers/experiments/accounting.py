"""Many releases from the same series: the composition theorems, and a fleet's year."""

from __future__ import annotations

import math
import time
from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from statistics import median
from typing import TYPE_CHECKING

from papers.registry import Progress, experiment, shared_file, tracked
from papers.result import Figure, Findings, Row, Sheet
from quiltwork.errors import UnsupportedError
from quiltwork.report.charts import Line, LineChart

if TYPE_CHECKING:
    from quiltwork.beliefs import MarkovChain
    from quiltwork.budget import Planned

DAY = 144
SCALE = 50
TYPICAL = (
    (0.83, 0.16, 0.0085, 0.0015),
    (0.18, 0.70, 0.11, 0.01),
    (0.01, 0.20, 0.70, 0.09),
    (0.002, 0.03, 0.36, 0.608),
)
"""Typical transition probabilities between four levels of household power in ten minutes."""


@experiment(
    "composition-theorem-3-4",
    title="Levels of Pufferfish mechanisms do not add up",
    item="markov-quilt-composition, Theorem 3.4",
)
def theorem_3_4(progress: Progress) -> Findings:
    """Two answers about X_1 + X_2 with p = .9, q = .01: the maximum over all answers."""
    from papers.examples.theorem_3_4 import compare

    comparison = compare(0.9, 0.01)
    return Findings(
        "The same noisy sum, released once and twice: the level of both exceeds twice the level "
        "of one, so arbitrary Pufferfish mechanisms are refused by the accountant.",
        (
            Row("(max S)²/e²", round(comparison.one**2 / math.e**2, 4), 6.2672),
            Row(
                "max D/e²", round(comparison.two / math.e**2, 4), 6.3448, note="printed as a bound"
            ),
            Row("twice the level of one", comparison.twice_the_level),
            Row("level of both", comparison.level_of_both),
        ),
    )


@experiment(
    "composition-many-releases",
    title="What K releases of ε = 1 cost together",
    item="markov-quilt-composition, Theorems 2.6 and 3.7",
    quick={"most": 20},
    full={"most": 200},
)
def many_releases(progress: Progress, most: int) -> Findings:
    """MQMExact of level 1 on the example chain, K times: the sweep and a joint quilt against K."""
    from quiltwork.beliefs import MarkovChain
    from quiltwork.budget import Accountant, Spending
    from quiltwork.influence import calibrate, influence_curve

    chain = MarkovChain([[0.9, 0.1], [0.4, 0.6]], initial=[0.8, 0.2])
    level = 1 / calibrate(chain, 100, 1, "exact").exact_scale
    spending, quilts = Spending.dp(level, 1, 100), influence_curve(chain, 100, method="exact")
    account, swept, joint = Accountant(chain, 100), [], []
    for done in tracked(progress, range(1, most + 1)):
        account.add(spending)
        swept.append((float(done), account.epsilon()))
        joint.append((float(done), quilts.epsilon(done * level)))
    rows = [
        row
        for k in (1, 2, 5, 10, 20, 50, 100, 200)
        if k <= most
        for row in (
            Row(f"{k} releases, sweep", swept[k - 1][1], note=f"{k} by Theorem 3.7"),
            Row(f"{k} releases, joint quilt", joint[k - 1][1]),
        )
    ]
    chart = LineChart(
        "K releases of level 1",
        "The joint cost of K releases, each of level 1, against the sum of the levels.",
        "releases",
        "ε",
        (
            Line("sum of levels", tuple((x, x) for x, _ in swept)),
            Line("joint quilt", tuple(joint)),
            Line("sweep", tuple(swept)),
        ),
        log_x=True,
        log_y=True,
    )
    return Findings(
        "All releases share one quilt per time point, so its influence is paid once and not K "
        "times. The sweep charges for what the releases reveal about the neighbours, which is at "
        "most what the quilt itself would reveal.",
        tuple(rows),
        (Figure("costs", chart),),
    )


@dataclass(frozen=True)
class Home:
    """The cost of a home's year by three methods, and the time to compute the sweep.

    `linear` is Theorem 3.7, which adds up the costs of quilts.
    """

    name: str
    swept: float
    linear: float
    as_if_independent: float
    seconds: float


@experiment(
    "fleet-year",
    title="A year of daily, weekly and monthly histograms for a fleet of homes",
    quick={"homes": 10},
    full={"homes": 1000},
)
def fleet_year(progress: Progress, homes: int) -> Findings:
    """429 histograms of 4 levels per home, 52,560 points each, noise of scale 50."""
    from quiltwork import queries
    from quiltwork.budget import calendar, plan

    histogram = queries.histogram()
    year = calendar(2025, DAY, daily=histogram, weekly=histogram, monthly=histogram)
    chains = fleet(homes)
    homes_priced = [
        price(f"home {number}", chain, year)
        for number, chain in tracked(progress, enumerate(chains, 1))
    ]
    real = real_home()
    if real is not None:
        homes_priced.append(price("the real home", real, year))
    planned = plan(chains[0], length=365 * DAY, budget=4, queries=year)
    rows = [
        *_rows("simulated homes, median", homes_priced[:homes]),
        *(_rows("the real home", homes_priced[homes:]) if real is not None else ()),
        Row("expected error of a cell", planned.items[0].expected_error, note="plan for ε = 4"),
        Row("… with the budget split evenly", planned.items[0].naive_error),
        Row("slowest total", max(home.seconds for home in homes_priced), unit="s"),
    ]
    sheet = Sheet(
        "homes",
        ("home", "sweep", "sum of single costs", "as if independent", "seconds"),
        tuple(
            (h.name, h.swept, h.linear, h.as_if_independent, round(h.seconds, 3))
            for h in homes_priced
        ),
    )
    return Findings(
        f"{len(homes_priced)} homes with {len(year)} releases each, noise of scale {SCALE} on "
        "every count. The sum of single costs is useless; the assumption of independent time "
        "points claims less than what leaks; the sweep is sound and small.",
        tuple(rows),
        (Figure("totals", _totals(homes_priced)),),
        (sheet,),
    )


def _totals(homes: Sequence[Home]) -> LineChart:
    ranked = sorted(homes, key=lambda home: home.swept)

    def line(name: str, values: Sequence[float]) -> Line:
        return Line(name, tuple((float(i), v) for i, v in enumerate(values, 1)))

    return LineChart(
        "A year of 429 releases: what it costs, home by home",
        "Homes in order of their joint cost: by the sweep, by the sum of single costs (far above "
        "it), and under the false assumption of independence (below it).",
        "home",
        "ε",
        (
            line("sweep", [home.swept for home in ranked]),
            line("sum of single costs", [home.linear for home in ranked]),
            line("as if independent (not private)", [home.as_if_independent for home in ranked]),
        ),
        log_y=True,
    )


def fleet(homes: int) -> list[MarkovChain]:
    """Return chains of different homes: rows drawn around typical ones, all entries positive."""
    import numpy as np

    from quiltwork.beliefs import MarkovChain

    rng = np.random.default_rng(2025)
    chains = []
    for _ in range(homes):
        rows = np.array([rng.dirichlet(200 * np.array(row)) + 1e-4 for row in TYPICAL])
        chains.append(MarkovChain(rows / rows.sum(axis=1, keepdims=True)))
    return chains


def real_home() -> MarkovChain | None:
    """Return the chain of the real household, or None if its data are missing."""
    from quiltwork.beliefs import MarkovChain
    from quiltwork.series import read_series

    try:
        path = shared_file("data/power_household_10min.csv.gz")
    except UnsupportedError:
        return None
    series = read_series(path, "active_power_kw", edges=[0.3, 1, 2.5], missing="public")
    return MarkovChain.fit(list(series.data.values()), states=series.states)


def price(name: str, chain: MarkovChain, year: Sequence[Planned]) -> Home:
    """Return the cost of a year of releases by three methods."""
    from quiltwork.budget import Accountant, Spending
    from quiltwork.budget.accounting.theorems import costs_by_quilts
    from quiltwork.exact import float_up

    length = 365 * DAY
    spendings = [Spending.of_query(planned.query, SCALE, length) for planned in year]
    started = time.perf_counter()
    account = Accountant(chain, length)
    account.add_all(spendings)
    swept = account.epsilon()
    seconds = time.perf_counter() - started
    linear = float_up(sum(costs_by_quilts(account.after()), Fraction(0)))
    return Home(name, swept, linear, 3 * 2 / SCALE, seconds)


def _rows(name: str, homes: Sequence[Home]) -> list[Row]:
    return [
        Row(f"{name}: sweep", median(home.swept for home in homes), unit="ε"),
        Row(f"{name}: sum of single costs", median(home.linear for home in homes), unit="ε"),
        Row(f"{name}: as if independent", homes[0].as_if_independent, unit="ε", note="not private"),
    ]
