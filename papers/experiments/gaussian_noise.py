"""Gaussian noise on chains: its scale, when it pays, and the true leakage of protected days."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

from papers.registry import Progress, experiment, shared_file, tracked
from papers.result import Figure, Findings, Row, Sheet, Value
from quiltwork.errors import UnsupportedError
from quiltwork.report.charts import Line, LineChart

if TYPE_CHECKING:
    from quiltwork.beliefs import MarkovChain

RELEASES = (1, 10, 50, 100, 365)
DELTAS = (1e-6, 1e-9)
STAYS = (0.6, 0.8, 0.9, 0.95)
RHOS = (0.015, 0.002)
DAYS = 365


@experiment(
    "gaussian-noise",
    title="Gaussian and geometric noise for many questions about the same time points",
)
def gaussian_noise(progress: Progress) -> Findings:
    """ε = 1: σ and mean absolute error for K questions, and from which K on Gaussian noise pays."""
    from quiltwork import MarkovChain, calibrate, queries
    from quiltwork.queries import Query

    two = MarkovChain([[0.9, 0.1], [0.4, 0.6]])
    cases: dict[str, tuple[MarkovChain, int, Query]] = {
        "two states, a count": (two, 100, queries.count(1))
    }
    try:
        minutes, length = activity_chain()
        cases["activity, minutes, 4 states, a histogram"] = minutes, length, queries.histogram()
    except UnsupportedError:
        pass  # without the data, only the example is computed
    rows: list[Row] = []
    table: list[tuple[Value, ...]] = []
    curves = []
    for name, (chain, length, query) in tracked(progress, cases.items()):
        scale = calibrate(chain, length, 1, query=query).scale
        for delta in DELTAS:
            sigmas = {
                releases: calibrate(
                    chain, length, 1, query=query, noise="gaussian", delta=delta, releases=releases
                ).scale
                for releases in RELEASES
            }
            sigma = sigmas[1]
            rows.append(Row(f"{name}: σ of one question, δ = {delta:g}", sigma))
            pays = (sigma * math.sqrt(2 / math.pi) / scale) ** 2
            rows.append(Row(f"{name}: as good as geometric at K, δ = {delta:g}", pays))
            for releases, shared in sigmas.items():
                errors = releases * scale, shared * math.sqrt(2 / math.pi)
                table.append((name, delta, releases, shared, *errors, errors[0] / errors[1]))
            gain = table[-1][-1]
            rows.append(
                Row(f"{name}: 365 questions, δ = {delta:g}, less error", gain, unit="times")
            )
        table_rows = [row for row in table if row[0] == name and row[1] == DELTAS[0]]
        curves.append((name, table_rows))
    header = ("series", "delta", "questions", "sigma", "geometric error", "Gaussian error", "gain")
    return Findings(
        "Levels of geometric noise add up: K questions need K times the noise. Of Gaussian noise "
        "the squares add up, and √K times the noise is enough. So Gaussian noise is worse for a "
        "single question and has several times less error for a team or for rolling windows.",
        tuple(rows),
        (Figure("errors", _chart(curves)),),
        (Sheet("noise", header, tuple(table)),),
    )


def activity_chain() -> tuple[MarkovChain, int]:
    """Return the chain of five people's minutes in four levels, and the length of a series."""
    from quiltwork import MarkovChain
    from quiltwork.series import read_series

    series = read_series(
        shared_file("data/activity_nhanes.csv.gz"),
        "state4",
        time="minute_of_record",
        subject="seqn",
        states=(0, 1, 2, 3),
    )
    people = list(series.data.values())
    return MarkovChain.fit(people, states=series.states, smoothing=0), len(people[0])


def _chart(curves: list[tuple[str, list[tuple[Value, ...]]]]) -> LineChart:
    lines = []
    for name, rows in curves:
        for column, noise in ((4, "geometric"), (5, "Gaussian")):
            points = tuple((float(row[2]), float(row[column])) for row in rows)
            lines.append(
                Line(f"{name.split(',')[0]}, {noise}", points, dashed=noise == "geometric")
            )
    return LineChart(
        "Mean absolute error of one answer",
        "K questions about the same time points, ε = 1, δ = 1e-6.",
        "questions K",
        "mean absolute error",
        tuple(lines),
        log_y=True,
    )


@experiment(
    "protected-days",
    title="The leakage about days that are protected one by one",
    quick={"chains": 2},
    full={"chains": 4},
)
def protected_days(progress: Progress, chains: int) -> Findings:
    """365 days with Gaussian noise of level ρ each, δ = 1e-6, on chains of two states."""
    from quiltwork import MarkovChain, monitor

    rows: list[Row] = []
    table: list[tuple[Value, ...]] = []
    for stay in tracked(progress, STAYS[-chains:]):
        chain = MarkovChain([[stay, 1 - stay], [1 - stay, stay]])
        for rho in RHOS:
            watch = monitor(chain, rho=rho, length=DAYS, delta=1e-6)
            table.append((rho, stay, watch.claimed, watch.most_by_now, watch.alike))
            rows.append(Row(f"ρ = {rho:g}, P(stay) = {stay:g}", watch.most_by_now))
    header = ("rho", "P(stay)", "claimed about a day", "leakage about a day", "all days alike")
    return Findings(
        "The leakage about a day that is protected as an independent unit is larger than claimed, "
        "because days are correlated; how much larger depends on how long habits last. On two "
        "states it is exact.",
        tuple(rows),
        (),
        (Sheet("days", header, tuple(table)),),
    )
