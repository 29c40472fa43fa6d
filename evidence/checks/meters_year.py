"""A year of a thousand smart meters, in files: counted on one machine and through Spark."""

from __future__ import annotations

import resource
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

from evidence.local_spark import java_home, local_session
from quiltwork.beliefs import Grid, MarkovChain
from quiltwork.queries import histogram, transitions
from quiltwork.queries.query import Query
from quiltwork.series import read_fleet, read_series

NAME = "A year of meters"
CLAIM = "1,000 files of 35,040 quarters of an hour are counted alike on one machine and on Spark"
METERS, DAYS = 1_000, 365
STATES = ("low", "middle", "high")
GRID = Grid(step="15min", edges=[0.5, 2], labels=STATES)
BELIEF = MarkovChain(
    [[0.85, 0.13, 0.02], [0.3, 0.6, 0.1], [0.1, 0.4, 0.5]], states=STATES, grid=GRID
)
OPTIONS = {"time": "time", "subject": "filename", "beliefs": BELIEF}


def write(folder: Path, meters: int, days: int) -> dict[str, int]:
    """Simulated loads, a file for each meter; return how many quarters are in each state."""
    random, found = np.random.default_rng(16), np.zeros(3, dtype=np.int64)
    moments = np.datetime64("2026-01-01T00:00") + 15 * np.arange(96 * days)
    times = np.datetime_as_string(moments)
    busy = 0.2 + 0.8 * ((np.arange(96 * days) % 96 > 28) & (np.arange(96 * days) % 96 < 92))
    for meter in range(meters):
        kw = np.round(busy * random.gamma(2, 0.6, len(times)), 2)
        found += np.bincount(np.digitize(kw, [0.5, 2]), minlength=3)
        rows = np.char.add(np.char.add(times, ","), np.char.mod("%.2f", kw))
        text = "\n".join(["time,kw", *rows.tolist()])
        (folder / f"m{meter:04d}.csv").write_text(text)
    return dict(zip(STATES, found.tolist(), strict=True))


def check(
    meters: int,
    days: int,
    session: Any,
    progress: Callable[[int, int], None] = lambda done, total: None,
) -> dict[str, object]:
    """Write the files, count them here and there, and compare with what was written."""
    with tempfile.TemporaryDirectory(prefix="quiltwork-meters-") as name:
        folder = Path(name)
        written = write(folder, meters, days)
        progress(1, 3)
        begin = time.monotonic()
        here = read_series(folder, "kw", **OPTIONS)
        mondays = here.windows("Mondays 18:00-22:00")
        asked: list[Query] = [histogram(), histogram().on_runs(mondays), transitions()]
        coded = list(here.data.coded.values())
        counts = [sum(query.evaluate(one.codes, STATES) for one in coded) for query in asked]
        local, peak = time.monotonic() - begin, resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
        progress(2, 3)
        begin = time.monotonic()
        there = read_fleet(session, folder, "kw", **OPTIONS)
        totals = [there.data.total(query.evaluate, STATES) for query in asked]
        spark = time.monotonic() - begin
        progress(3, 3)
    assert counts[0].tolist() == list(written.values()), "not what was written"
    for query, one, other in zip(asked, counts, totals, strict=True):
        assert one.tolist() == other.tolist(), f"{query.kind} differs on Spark"
    assert there.lengths == here.lengths
    return {
        "rows": f"{here.points:,}",
        **{state: f"{many:,}" for state, many in written.items()},
        "questions with equal answers": len(asked),
        "seconds on one machine": f"{local:.0f}",
        "peak memory there, MiB": peak // 1024,
        "seconds on Spark, every question reads the files": f"{spark:.0f}",
    }


def run(progress: Callable[[int, int], None]) -> dict[str, object]:
    """The full count, on a small Spark of its own."""
    with local_session(java_home()) as session:
        return check(METERS, DAYS, session, progress)
