"""The first private histogram of a CSV file of 100,000 rows, in a cold process; and import cost.

Seconds depend on what else the machine does; the ratios are taken within each repeat.
"""

from __future__ import annotations

import csv
import sys
import tempfile
from pathlib import Path

import numpy as np

from bench.harness import compare_commands

ROWS = 100_000
CATEGORIES = ("rest", "walk", "run", "cycle")
SCRIPTS = Path(__file__).resolve().parent / "scripts"


def write_rows(path: Path) -> None:
    """Rows with a time and a state; simulated, so the seed is of no consequence."""
    states = np.random.default_rng(0).choice(CATEGORIES, size=ROWS)
    with path.open("w", newline="", encoding="utf-8") as file:
        writer = csv.writer(file)
        writer.writerow(["minute", "state"])
        writer.writerows(enumerate(states.tolist()))


def main() -> None:
    python, categories = sys.executable, ",".join(CATEGORIES)
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "activity.csv"
        write_rows(path)
        count = ["count", str(path), "--by", "state", "--categories", categories, "--epsilon", "1"]
        rows = compare_commands(
            "Cold start, histogram of 100,000 rows",
            {
                "quiltwork": [python, "-m", "quiltwork", *count],
                "bare python": [python, "-c", ""],
                "opendp": [python, str(SCRIPTS / "opendp_histogram.py"), str(path), categories],
                "diffprivlib": [
                    *(python, "-W", "ignore"),
                    *(str(SCRIPTS / "diffprivlib_histogram.py"), str(path), categories),
                ],
            },
            repeats=9,
        )
    over = rows[0].median_seconds - rows[1].median_seconds
    print(f"quiltwork takes {over:.3f} s more than Python's own start\n")
    compare_commands(
        "Import",
        {
            "import numpy": [python, "-c", "import numpy"],
            "import quiltwork": [python, "-c", "import quiltwork"],
            "import quiltwork, a chain and a release": [
                *(python, "-c"),
                "import quiltwork as q; q.MarkovChain; q.release; q.calibrate",
            ],
            "import scipy.stats": [python, "-c", "import scipy.stats"],
            "import pandas": [python, "-c", "import pandas"],
        },
        repeats=9,
    )


if __name__ == "__main__":
    main()
