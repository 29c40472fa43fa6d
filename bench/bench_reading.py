"""Reading 10.4 million rows of CSV and counting states, against pandas, in processes of their own.

pandas counts once and forgets the order; quiltwork keeps every sequence in order, ready for a
release, and counts then; rows in no order are sorted for that, through a temporary file.
"""

from __future__ import annotations

import sys
import tempfile
from pathlib import Path

import numpy as np
import pyarrow as pa
from pyarrow import csv

from bench.harness import compare_commands

METERS, POINTS = 1_000, 10_400
EDGES = [0.5, 2]
STATES = ["low", "middle", "high"]

QUILTWORK = """import sys
from quiltwork.series import read_series
series = read_series(sys.argv[1], {arguments})
from quiltwork.queries import histogram
print(sum(histogram().evaluate(one.codes, series.states) for one in series.data.coded.values()))"""
PANDAS = """import sys, pandas as pd
frame = pd.read_csv(sys.argv[1], {arguments})
print({counted}.value_counts())"""


def write(folder: Path) -> tuple[Path, Path, Path]:
    """Quarters of an hour of many meters, the same in no order, and states alone; simulated."""
    random = np.random.default_rng(0)
    kw = np.round(random.gamma(1.5, 0.6, METERS * POINTS), 3)
    moments = np.datetime64("2026-01-01T00:00") + 15 * np.arange(POINTS)
    names = pa.array([f"m{i:04d}" for i in range(METERS)])
    times = pa.array(np.datetime_as_string(moments).tolist())
    table = pa.table(
        {
            "time": times.take(pa.array(np.tile(np.arange(POINTS), METERS))),
            "meter": names.take(pa.array(np.repeat(np.arange(METERS), POINTS))),
            "kw": kw,
        }
    )
    meters, shuffled, states = (folder / f"{name}.csv" for name in ("meters", "shuffled", "states"))
    csv.write_csv(table, meters)
    csv.write_csv(table.take(pa.array(random.permutation(len(kw)))), shuffled)
    found = pa.array(STATES).take(pa.array(np.searchsorted(EDGES, kw, side="right")))
    csv.write_csv(pa.table({"state": found}), states)
    return meters, shuffled, states


def main() -> None:
    with tempfile.TemporaryDirectory() as folder:
        meters, shuffled, states = write(Path(folder))
        timed = '"kw", time="time", subject="meter", edges=[0.5, 2]'
        cut = 'pd.cut(frame["kw"], [float("-inf"), 0.5, 2, float("inf")], right=False)'
        parsed = 'parse_dates=["time"]'
        for title, path, own, other, counted in (
            ("rows of meters", meters, timed, parsed, cut),
            ("rows of meters in no order", shuffled, timed, parsed, cut),
            ("states", states, '"state"', "", 'frame["state"]'),
        ):
            read = PANDAS.format(arguments=other, counted=counted)
            rows = compare_commands(
                f"Reading 10.4 million {title}",
                {
                    "quiltwork": [
                        *(sys.executable, "-c"),
                        *(QUILTWORK.format(arguments=own), str(path)),
                    ],
                    "pandas": [sys.executable, "-c", read, str(path)],
                },
                repeats=3,
            )
            print(f"quiltwork takes {1 / rows[1].ratio:.2f} times as long as pandas\n")


if __name__ == "__main__":
    main()
