"""Quality, hierarchies and progress on Spark, as on one machine."""

from __future__ import annotations

import os
import subprocess
import sys

import numpy as np
import pandas as pd
import pytest

from quiltwork.errors import InvalidInputError, UnsupportedError
from quiltwork.tables.anonymization import anonymize
from quiltwork.tables.constraints import KAnonymity, LDiversity
from quiltwork.tables.partitioning.mondrian import CutRules
from quiltwork.tables.partitioning.recipe import Recipe
from quiltwork.tables.spark import (
    anonymize_spark,
    verify_spark,
)
from quiltwork.tables.table import Table
from tests.tables.spark.comparing import sorted_rows

pytestmark = [
    pytest.mark.filterwarnings("ignore:PySpark does not yet fully support pandas:FutureWarning"),
    pytest.mark.filterwarnings("ignore::ResourceWarning"),
]
KNOWN = ["age", "zip", "pay"]
LIMITS = KAnonymity(8) & LDiversity(3)
BASELINE = Recipe(LIMITS, 1, "baseline", CutRules())
ZIPS = [(str(z), f"{z // 100}**", f"{z // 1000}***", "*") for z in range(12000, 15000, 50)]


def people(rows: int, seed: int = 0) -> pd.DataFrame:
    rng = np.random.default_rng(seed)
    return pd.DataFrame(
        {
            "hospital": rng.choice(["A", "B", "C", "D"], rows, p=[0.5, 0.3, 0.18, 0.02]),
            "age": rng.integers(18, 90, rows),
            "zip": rng.choice(np.arange(12000, 15000, 50), rows),
            "pay": np.round(rng.gamma(2.0, 20.0, rows)),
            "ill": rng.choice(["flu", "cold", "asthma", "gout", "none"], rows),
        }
    )


def roles(frame: object, **more) -> Table:
    return Table(frame, "hospital", KNOWN, "ill", **more)


@pytest.fixture(scope="module")
def source(spark):
    frame = people(1500)
    return frame, spark.createDataFrame(frame)


def test_hierarchies_are_cut_between_labels_as_locally(source):
    tree = {"zip": ZIPS}
    found = anonymize_spark(roles(source[1], hierarchies=tree), BASELINE, subtree_rows=400)
    local = anonymize(roles(source[0], hierarchies=tree), LIMITS, 1, "baseline")
    assert found.subtrees > 2
    assert sorted_rows(found.frame) == sorted_rows(local.frame)
    found.unpersist()


def test_progress_tells_of_passes_and_of_the_end(source):
    told: list[tuple[int, int]] = []
    found = anonymize_spark(roles(source[1]), BASELINE, lambda *at: told.append(at), 400)
    found.unpersist()
    done = [at for at, _ in told]
    assert {rows for _, rows in told} == {1500}
    # One pass for the root, two levels of cuts; then the subtrees.
    assert done == [500, 1000, 1500, 0, 1500]


def test_a_callback_that_fails_ends_the_work(source):
    def stop(done: int, total: int) -> None:
        raise KeyError(done)

    with pytest.raises(KeyError):
        anonymize(roles(source[1]), LIMITS, 1, "baseline", progress=stop)


def test_values_that_local_tables_refuse_are_refused(source, spark):
    with pytest.raises(UnsupportedError, match="no rows are left out"):
        anonymize(roles(source[1]), KAnonymity(2), 1, suppression=0.1)
    endless = source[1].replace(float(source[0]["pay"].max()), float("inf"), "pay")
    with pytest.raises(InvalidInputError, match="have no finite width"):
        anonymize(roles(endless), KAnonymity(2), 1)
    number = int((source[0]["hospital"] == "D").sum())
    nobody = source[1].replace("D", None, "hospital")
    with pytest.raises(InvalidInputError, match=f"has {number} missing .* needs a provider"):
        verify_spark(roles(nobody), KAnonymity(2), 1)
    number = int((source[0]["ill"] == "flu").sum())
    with pytest.raises(InvalidInputError, match=f"'ill' has {number} missing"):
        verify_spark(roles(source[1].replace("flu", None, "ill")), KAnonymity(2), 1)


def test_without_java_spark_is_refused_in_a_sentence(tmp_path):
    code = (
        "import pyarrow as pa, quiltwork as qw\n"
        "table = qw.Table(pa.table({'age': [1, 1], 'ill': ['a', 'b']}), None, ['age'], 'ill')\n"
        "try:\n    qw.anonymize(table, qw.KAnonymity(2), 0, backend='spark')\n"
        "except qw.UnsupportedError as error:\n    print(error)\n"
    )
    (tmp_path / "bin").mkdir()
    env = {**os.environ, "JAVA_HOME": str(tmp_path), "PYTHONPATH": os.pathsep.join(sys.path)}
    done = subprocess.run(
        [sys.executable, "-W", "ignore", "-c", code],
        env=env,
        capture_output=True,
        text=True,
        check=False,
        timeout=120,
    )
    assert "needs Java 17 or newer" in done.stdout, done.stderr
