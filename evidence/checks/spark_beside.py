"""The same rows on Spark and on one machine whose memory holds their codes: one table, two costs.

Spark writes its generated rows to Parquet files. A process of its own reads them as Arrow and makes
the same table with the local backend; its processor seconds and memory are those of reading, too.
"""

from __future__ import annotations

import json
import resource
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

from evidence.checks.spark_scale import ASKED, KNOWN, generated
from evidence.local_spark import java_home, local_session
from quiltwork.tables import Table, anonymize
from quiltwork.tables.metrics.loss import publication_loss
from quiltwork.tables.partitioning.mondrian import CutRules
from quiltwork.tables.partitioning.recipe import Recipe
from quiltwork.tables.spark import anonymize_spark

NAME = "Spark beside one machine"
CLAIM = "Spark and one machine make the same table of the same rows; one machine's memory goes far"
BOTH, ALONE = 10_000_000, 50_000_000


def check(
    both: int, alone: int, progress: Callable[[int, int], None] = lambda done, total: None
) -> dict[str, object]:
    """Make a table of so many rows on both, and one of so many on one machine alone."""
    found: dict[str, object] = {}
    with tempfile.TemporaryDirectory() as folder, local_session(java_home()) as session:
        for rows in dict.fromkeys((both, alone)):
            frame = generated(session, rows, max(2, rows // 500_000))
            frame.write.parquet(str(Path(folder, str(rows))))
            progress(1, 4)
        start = time.perf_counter()
        table = Table(session.read.parquet(str(Path(folder, str(both)))), "hospital", KNOWN, "ill")
        made = anonymize_spark(table, Recipe(ASKED, 2, "baseline", CutRules()))
        told = made.report()
        made.unpersist()
        seconds = time.perf_counter() - start
        progress(2, 4)
        for rows in dict.fromkeys((both, alone)):
            here = _in_a_process(Path(folder, str(rows)))
            if rows == both:
                for name in ("groups", "k", "gcp"):
                    assert abs(told[name] - here[name]) < 1e-9, (name, told[name], here[name])
                found["rows on both"] = rows
                found["groups, the same on both"] = told["groups"]
                found["certainty penalty (GCP), the same"] = round(told["gcp"], 6)
                found["seconds on Spark, all cores, session running"] = round(seconds)
            found[f"{rows:,} rows on one machine, groups"] = here["groups"]
            found[f"{rows:,} rows on one machine, processor seconds"] = round(here["seconds"])
            found[f"{rows:,} rows on one machine, peak MiB"] = round(here["peak"])
        progress(4, 4)
    return found


def _in_a_process(folder: Path) -> dict[str, float]:
    code = f"from evidence.checks.spark_beside import locally; locally({str(folder)!r})"
    done = subprocess.run([sys.executable, "-c", code], check=True, capture_output=True, text=True)
    return dict(json.loads(done.stdout))


def locally(folder: str) -> None:
    """Read the files, publish their rows, and print what that took."""
    from pyarrow import parquet

    words = ["hospital", "zip", "sex", "job", "ill"]
    rows = parquet.read_table(folder, read_dictionary=words)
    made = anonymize(Table(rows, "hospital", KNOWN, "ill"), ASKED, 2, "baseline")
    used = resource.getrusage(resource.RUSAGE_SELF)
    found = {
        "groups": made.boxes.count,
        "k": int(made.sizes.min()),
        "gcp": publication_loss(made).gcp,
        "seconds": used.ru_utime + used.ru_stime,
        "peak": used.ru_maxrss / 1024,
    }
    print(json.dumps(found))


def run(progress: Callable[[int, int], None]) -> dict[str, object]:
    return check(BOTH, ALONE, progress)
