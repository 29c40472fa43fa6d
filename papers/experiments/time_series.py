"""The Markov Quilt Mechanism and the sweep: worked examples and histograms of real series."""

from __future__ import annotations

import warnings
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import product
from statistics import mean
from typing import TYPE_CHECKING, Any

from papers.registry import Progress, experiment, shared_file, tracked
from papers.result import Figure, Findings, Row, Sheet, Value
from quiltwork.errors import QuiltworkWarning, UnsupportedError
from quiltwork.report.charts import Line, LineChart

if TYPE_CHECKING:
    from quiltwork.beliefs import Belief, MarkovChain
    from quiltwork.beliefs.matrices import FloatArray

METHODS = ("entry", "sweep", "exact", "approx", "spectral", "group")
EPSILONS = (0.2, 1.0, 5.0)
NOISE_EPSILONS = (0.1, 0.5, 1.0, 2.0, 5.0)
POWER_EDGES = {
    "4 levels": (0.3, 1, 2.5),
    "10 levels": (0.2, 0.3, 0.4, 0.6, 1, 1.5, 2, 3, 4),
}
SHORT = {
    "one person (mean of five)": "one",
    "all five together": "five",
    "4 levels": "4-levels",
    "10 levels": "10-levels",
}
"""File names of the figures."""
FLOOR_POINTS = 400
"""On either side of the secret, at most."""


@experiment(
    "mqm-worked-examples",
    title="The worked examples of the Markov Quilt Mechanism",
    item="markov-quilt-composition, Algorithm 1 (examples of the original mechanism)",
)
def worked_examples(progress: Progress) -> Findings:
    """T = 100, ε = 1: the scale printed by Song, Wang and Chaudhuri is that of an unknown start."""
    from quiltwork import MarkovChain, calibrate, influence_curve

    first = MarkovChain([[0.9, 0.1], [0.4, 0.6]], initial=[1, 0])
    anywhere = MarkovChain([[0.9, 0.1], [0.4, 0.6]], initial="any")
    second = MarkovChain([[0.8, 0.2], [0.3, 0.7]], initial=[0.9, 0.1])
    start = MarkovChain([[0.9, 0.1], [0.4, 0.6]], initial=[0.8, 0.2])
    rows = []
    for name, chain, published in (
        ("first chain, start known", first, 13.0219),
        ("first chain, any start", anywhere, None),
        ("second chain", second, None),
    ):
        calibration = calibrate(chain, 100, 1.0, "exact")
        note = f"worst node X_{calibration.node}, quilt {calibration.quilt}"
        rows.append(Row(f"scale, {name}", calibration.scale, published, note=note))
        swept = calibrate(chain, 100, 1.0)
        note = f"worst node X_{swept.node}, neighbours add {swept.influence:.4f}"
        rows.append(Row(f"scale, {name}, by the sweep", swept.scale, note=note))
    name, level = "ten releases of ε = 1, together", 10 / calibrate(start, 100, 1.0, "exact").scale
    joint = influence_curve(start, 100, method="exact").epsilon(level)
    rows.append(Row(name, joint, note="joint quilt; 10 by Theorem 3.7"))
    swept_total = influence_curve(start, 100).epsilon(level)
    rows.append(Row(f"{name}, by the sweep", swept_total, note="the same noise"))
    return Findings(
        "The scale that the first paper on quilts prints counts states that cannot occur from "
        "its start, and is that of any start; with supports respected the known start needs a "
        "little less noise. Quilts charge as if the adversary saw them; the sweep charges for "
        "what the answer reveals about them, which is a fraction of that.",
        tuple(rows),
    )


@experiment(
    "activity-histograms",
    title="Histograms of physical activity",
    item="markov-quilt-composition, Example 1",
)
def activity(progress: Progress) -> Findings:
    """Five people, a week of minutes each, four levels; beliefs come from the other people.

    The individual task releases one person's relative frequencies under the chains of the others;
    the aggregate task pools all five under the set of all leave-one-out chains.
    """
    others = list(activity_chains().values())
    longest = max(length for _, length in others)
    tasks = {
        "one person (mean of five)": [Job([chain], length, 1, 4) for chain, length in others],
        "all five together": [Job([chain for chain, _ in others], longest, len(others), 4)],
    }
    return _histogram_errors(tasks, progress)


def activity_chains() -> dict[Any, tuple[MarkovChain, int]]:
    """Return, for every person, the chain of the others and the length of the person's series."""
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
    return {
        person: (
            MarkovChain.fit(
                [people[other] for other in people if other != person], states=series.states
            ),
            len(people[person]),
        )
        for person in people
    }


@experiment(
    "power-histograms",
    title="Histograms of household power",
    item="markov-quilt-composition, Example 2",
)
def power(progress: Progress) -> Findings:
    """One household in 2008, ten-minute means in four and ten public levels.

    The chain is fitted on the first half of the year and the second half is released.
    """
    tasks = {}
    for levels, edges in POWER_EDGES.items():
        chain, length = power_chain(edges)
        tasks[levels] = [Job([chain], length, 1, chain.size)]
    return _histogram_errors(tasks, progress)


def power_chain(edges: Sequence[float]) -> tuple[MarkovChain, int]:
    """Return the chain of the first half of the year, and the length of the second half."""
    from quiltwork import MarkovChain
    from quiltwork.series import read_series

    series = read_series(
        shared_file("data/power_household_10min.csv.gz"),
        "active_power_kw",
        edges=list(edges),
        missing="state",
    )
    (readings,) = series.data.values()
    half = len(readings) // 2
    return MarkovChain.fit(readings[:half], states=series.states), len(readings) - half


@experiment(
    "sweep-noise",
    title="Noise by quilts, by the sweep, and the floor of all mechanisms",
)
def sweep_noise(progress: Progress) -> Findings:
    """Noise scales for a count (the papers' example) or a histogram (real series), and their floor.

    With less noise than the floor, some mechanism of the same level per point leaks more than ε. So
    no bound that depends on levels alone can allow less.
    """
    from quiltwork import calibrate, queries

    cases = _noise_cases()
    table: list[tuple[Value, ...]] = []
    for name, (chain, length, moved) in tracked(progress, cases.items()):
        query = queries.histogram() if moved == 2 else queries.count(chain.states[0])
        for epsilon in NOISE_EPSILONS:
            scales = [
                calibrate(chain, length, epsilon, method, query).scale
                for method in ("sweep", "exact", "approx")
            ]
            floor = noise_floor(chain, length, moved, epsilon)
            table.append((name, epsilon, floor, *scales, round(scales[1] / scales[0], 2)))
    rows = [
        Row(f"{name}, ε = 1: MQMExact over sweep", table[5 * n + 2][-1], unit="times")
        for n, name in enumerate(cases)
    ]
    header = ("series", "epsilon", "floor", "sweep", "MQMExact", "approx", "MQMExact / sweep")
    return Findings(
        "Noise scales. With less than the floor, some mechanism of the same level per point leaks "
        "more than ε, so no bound that depends on levels alone can be lower. The sweep is nearly "
        "always at the floor.",
        tuple(rows),
        (),
        (Sheet("scales", header, tuple(table)),),
    )


def _noise_cases() -> dict[str, tuple[MarkovChain, int, int]]:
    """Return name → chain, length, and how far one point moves the answer."""
    from quiltwork import MarkovChain

    cases = {"the papers' example, stationary": (MarkovChain([[0.9, 0.1], [0.4, 0.6]]), 100, 1)}
    try:
        chain, length = next(iter(activity_chains().values()))
        cases["activity, minutes, 4 states"] = chain, length, 2
        for levels, edges in POWER_EDGES.items():
            chain, length = power_chain(edges)
            cases[f"power, ten minutes, {levels}"] = chain, length, 2
    except UnsupportedError:
        pass  # without the data, only the example is computed
    return cases


def noise_floor(chain: MarkovChain, length: int, moved: int, epsilon: float) -> float:
    """Return a scale at which some mechanism of level moved/scale per point leaks ε.

    The mechanism says yes with probability proportional to e^(level·n), n the number of points
    in some set of states, one set before the node and one after it.
    """
    law, points = chain.stationary, min((length - 1) // 2, FLOOR_POINTS)
    backward = (law[:, None] * chain.transition / law).T

    def leakage(level: float) -> float:
        after, before = (
            _largest_ratio(rows, level, points) for rows in (chain.transition, backward)
        )
        return level + float((before + after).max())

    low, high = moved / epsilon, moved * length / epsilon
    while high / low > 1 + 1e-6:
        middle = (low * high) ** 0.5
        low, high = (middle, high) if leakage(moved / middle) > epsilon else (low, middle)
    return low


def _largest_ratio(rows: FloatArray, level: float, points: int) -> FloatArray:
    """Return the largest log E[h | x]/E[h | x'] over sets of states, h = e^(level·visits).

    All sets where there are few states, else those of the lowest ones.
    """
    import numpy as np

    size = len(rows)
    if size <= 12:
        sets = np.arange(1, 2**size - 1)[:, None] >> np.arange(size) & 1
    else:
        sets = np.tri(size - 1, size, dtype=np.int64)
        sets = np.concatenate([sets, 1 - sets])
    grown, expected = np.exp(level * sets), np.ones(sets.shape)
    for _ in range(points):
        expected = (grown * expected) @ rows.T
        expected /= expected.max(axis=1, keepdims=True)
    logs = np.log(expected)
    return np.asarray((logs[:, :, None] - logs[:, None, :]).max(axis=0))


@dataclass(frozen=True)
class Job:
    """A release of relative frequencies of several subjects under a list of beliefs."""

    beliefs: Sequence[Belief]
    length: int
    subjects: int
    cells: int

    def error(self, epsilon: float, method: str) -> float:
        """Return the expected L1 error, exactly from the law of the noise."""
        from quiltwork import calibrate, queries
        from quiltwork.noise import TwoSidedGeometric

        with warnings.catch_warnings():
            warnings.simplefilter("ignore", QuiltworkWarning)
            calibration = calibrate(
                self.beliefs, self.length, epsilon, method, queries.frequencies()
            )
        noise = TwoSidedGeometric.from_scale(calibration.integer_scale).expected_absolute
        return self.cells * noise / (self.length * self.subjects)


def _histogram_errors(tasks: Mapping[str, Sequence[Job]], progress: Progress) -> Findings:
    """Expected L1 error of relative frequencies, for every task, method and epsilon."""
    errors = {
        (task, epsilon, method): mean(job.error(epsilon, method) for job in tasks[task])
        for task, epsilon, method in tracked(progress, product(tasks, EPSILONS, METHODS))
    }
    rows = [
        Row(f"{task}, ε = {epsilon:g}, {method}", errors[task, epsilon, method], unit="L1")
        for task, epsilon, method in product(tasks, EPSILONS, ("sweep", "exact"))
    ]
    header = ("task", "epsilon", *METHODS)
    table: list[tuple[Value, ...]] = [
        (task, epsilon, *(errors[task, epsilon, method] for method in METHODS))
        for task, epsilon in product(tasks, EPSILONS)
    ]
    figures = [_figure(task, errors) for task in tasks]
    return Findings(
        "Expected L1 error of the released relative frequencies. Entry DP protects a single time "
        "point only if the others are independent of it, which is false here; it is shown as the "
        "floor. Errors above 1 are useless: frequencies sum to 1.",
        tuple(rows),
        tuple(figures),
        (Sheet("errors", header, tuple(table)),),
    )


def _figure(task: str, errors: Mapping[tuple[str, float, str], float]) -> Figure:
    def points(method: str) -> Iterable[tuple[float, float]]:
        return ((epsilon, errors[task, epsilon, method]) for epsilon in EPSILONS)

    return Figure(
        SHORT[task],
        LineChart(
            f"{task}: error against privacy",
            "Expected L1 error of relative frequencies for each method over epsilon.",
            "epsilon",
            "expected L1 error",
            tuple(Line(method, tuple(points(method))) for method in METHODS),
            log_x=True,
            log_y=True,
        ),
    )
