"""The Markov Quilt Mechanism: the worked examples and histograms of real series."""

from __future__ import annotations

import warnings
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import product
from statistics import mean
from typing import TYPE_CHECKING

from quiltwork.errors import QuiltworkWarning
from quiltwork.report.charts import LineChart, Series
from quiltwork.reproduce.registry import Progress, experiment
from quiltwork.reproduce.result import Figure, Result, Row, Sheet, Value
from quiltwork.reproduce.shared import shared_file

if TYPE_CHECKING:
    from quiltwork.beliefs import Belief

METHODS = ("entry", "sweep", "exact", "approx", "spectral", "group")
EPSILONS = (0.2, 1.0, 5.0)


@experiment(
    "mqm-worked-examples",
    title="The worked examples of the Markov Quilt Mechanism",
    item="markov-quilt-composition, Algorithm 1 (examples of the original mechanism)",
    quick={},
    full={},
)
def worked_examples(progress: Progress) -> Result:
    """T = 100, ε = 1: the printed scale is that of an unknown start; a known start needs less."""
    from quiltwork import MarkovChain, calibrate, influence_curve

    first = MarkovChain([[0.9, 0.1], [0.4, 0.6]], initial=[1, 0])
    anywhere = MarkovChain([[0.9, 0.1], [0.4, 0.6]], initial="any")
    second = MarkovChain([[0.8, 0.2], [0.3, 0.7]], initial=[0.9, 0.1])
    start = MarkovChain([[0.9, 0.1], [0.4, 0.6]], initial=[0.8, 0.2])
    rows = []
    for name, chain, published in (
        ("first chain, start known", first, 13.0219),
        ("first chain, any start", anywhere, 13.0219),
        ("second chain", second, None),
    ):
        found = calibrate(chain, 100, 1.0, "exact")
        note = f"worst node X_{found.node}, quilt {found.quilt}"
        rows.append(Row(f"scale, {name}", found.scale, published, note=note))
        swept = calibrate(chain, 100, 1.0)
        note = f"worst node X_{swept.node}, neighbours add {swept.influence:.4f}"
        rows.append(Row(f"scale, {name}, by the sweep", swept.scale, note=note))
    name, level = "ten releases of ε = 1, together", 10 / calibrate(start, 100, 1.0, "exact").scale
    joint = influence_curve(start, 100, method="exact").epsilon(level)
    rows.append(Row(name, joint, 10.0, note="published: Theorem 3.7; ours: joint quilt"))
    swept_total = influence_curve(start, 100).epsilon(level)
    rows.append(Row(f"{name}, by the sweep", swept_total, note="the same noise"))
    progress(1, 1)
    return Result(
        "The printed scale of the first example counts states that cannot occur from its start; "
        "with supports respected the known start needs a little less noise. Quilts pay as if the "
        "adversary saw them; the sweep pays for what the answer tells about them, which is a "
        "fraction.",
        tuple(rows),
    )


@experiment(
    "activity-histograms",
    title="Histograms of physical activity",
    item="markov-quilt-composition, Example 1",
    quick={},
    full={},
)
def activity(progress: Progress) -> Result:
    """Five people, a week of minutes each, four levels; beliefs come from the other people.

    The individual task releases one person's relative frequencies under the chains of the others;
    the aggregate task pools all five under the set of all leave-one-out chains.
    """
    from quiltwork import MarkovChain
    from quiltwork.series import read_series

    series = read_series(
        shared_file("data/activity_nhanes.csv.gz"),
        "state4",
        time="minute_of_record",
        subject="seqn",
        states=(0, 1, 2, 3),
    )
    people = series.data
    others = {
        one: MarkovChain.fit([people[p] for p in people if p != one], states=series.states)
        for one in people
    }
    tasks = {
        "one person (mean of five)": [Job([others[p]], len(people[p]), 1, 4) for p in people],
        "all five together": [Job(list(others.values()), max(series.lengths), len(people), 4)],
    }
    return _histogram_errors("activity", tasks, progress)


@experiment(
    "power-histograms",
    title="Histograms of household power",
    item="markov-quilt-composition, Example 2",
    quick={},
    full={},
)
def power(progress: Progress) -> Result:
    """One household in 2008, ten-minute means in four and ten public levels.

    The chain is fitted on the first half of the year and the second half is released.
    """
    from quiltwork import MarkovChain
    from quiltwork.series import read_series

    tasks = {}
    for levels, edges in (
        ("4 levels", [0.3, 1, 2.5]),
        ("10 levels", [0.2, 0.3, 0.4, 0.6, 1, 1.5, 2, 3, 4]),
    ):
        series = read_series(
            shared_file("data/power_household_10min.csv.gz"),
            "active_power_kw",
            edges=edges,
            missing="state",
        )
        (readings,) = series.data.values()
        half = len(readings) // 2
        chain = MarkovChain.fit(readings[:half], states=series.states)
        tasks[levels] = [Job([chain], len(readings) - half, 1, len(series.states))]
    return _histogram_errors("power", tasks, progress)


@dataclass(frozen=True)
class Job:
    """Relative frequencies of some subjects under some beliefs."""

    beliefs: Sequence[Belief]
    length: int
    subjects: int
    cells: int

    def error(self, epsilon: float, method: str) -> float:
        """Expected L1 error, exactly from the law of the noise."""
        from quiltwork import calibrate, queries
        from quiltwork.noise import TwoSidedGeometric

        with warnings.catch_warnings():
            warnings.simplefilter("ignore", QuiltworkWarning)
            found = calibrate(self.beliefs, self.length, epsilon, method, queries.frequencies())
        noise = TwoSidedGeometric.from_scale(found.integer_scale).expected_absolute
        return self.cells * noise / (self.length * self.subjects)


def _histogram_errors(name: str, tasks: Mapping[str, Sequence[Job]], progress: Progress) -> Result:
    """Expected L1 error of relative frequencies, for every task, method and epsilon."""
    wanted = list(product(tasks, EPSILONS, METHODS))
    errors: dict[tuple[str, float, str], float] = {}
    for done, (task, epsilon, method) in enumerate(wanted, 1):
        errors[task, epsilon, method] = mean(job.error(epsilon, method) for job in tasks[task])
        progress(done, len(wanted))
    rows = [
        Row(f"{task}, ε = {epsilon:g}, {method}", errors[task, epsilon, method], unit="L1")
        for task, epsilon, method in product(tasks, EPSILONS, ("sweep", "exact"))
    ]
    header = ("task", "epsilon", *METHODS)
    table: list[tuple[Value, ...]] = [
        (task, epsilon, *(errors[task, epsilon, method] for method in METHODS))
        for task, epsilon in product(tasks, EPSILONS)
    ]
    figures = [_figure(name, task, errors) for task in tasks]
    return Result(
        "Expected L1 error of the released relative frequencies. Entry DP protects a single time "
        "point only if the others say nothing about it, which is false here; it is shown as the "
        "floor. Errors above 1 are useless: frequencies sum to 1.",
        tuple(rows),
        tuple(figures),
        (Sheet(f"{name}-l1-errors", header, tuple(table)),),
    )


def _figure(name: str, task: str, errors: Mapping[tuple[str, float, str], float]) -> Figure:
    def points(method: str) -> Iterable[tuple[float, float]]:
        return ((epsilon, errors[task, epsilon, method]) for epsilon in EPSILONS)

    return Figure(
        f"{name}-{task.split(' (')[0].replace(' ', '-')}",
        LineChart(
            f"{task}: error against privacy",
            "Expected L1 error of relative frequencies for each method over epsilon.",
            "epsilon",
            "expected L1 error",
            tuple(Series(method, tuple(points(method))) for method in METHODS),
            log_x=True,
            log_y=True,
        ),
    )
