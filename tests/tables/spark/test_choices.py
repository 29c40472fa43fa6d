"""Quality, suppression, hierarchies and progress on Spark, as on one machine."""

from __future__ import annotations

import os
import subprocess
import sys
from fractions import Fraction

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from quiltwork.errors import InvalidInputError, NotPrivateError
from quiltwork.tables.anonymization import anonymize
from quiltwork.tables.constraints import KAnonymity, LDiversity, TCloseness
from quiltwork.tables.partitioning.recipe import fitting
from quiltwork.tables.spark import (
    anonymize_spark,
    backend,
    finish,
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


def test_quality_in_one_subtree_is_that_of_the_local_backend(source):
    found = anonymize(roles(source[1]), LIMITS, 1, quality=True)
    local = anonymize(roles(source[0]), LIMITS, 1, quality=True)
    assert sorted_rows(found.frame) == sorted_rows(local.frame)
    found.unpersist()


def test_quality_in_many_subtrees_loses_less_than_without_and_about_as_much_as_locally(source):
    local = anonymize(roles(source[0]), LIMITS, 1, "baseline", quality=True)
    plain = anonymize(roles(source[0]), LIMITS, 1, "baseline")
    found = anonymize_spark(
        roles(source[1]), LIMITS, 1, "baseline", split="loss", quality=True, subtree_rows=400
    )
    assert found.subtrees > 2
    best, usual = (pub.report().loss.gcp for pub in (local, plain))
    assert found.gcp < usual - 0.5 * (usual - best)
    assert verify_spark(found.table, LIMITS, 1).private
    found.unpersist()


@pytest.mark.parametrize(
    ("asked", "m", "share", "passes"),
    [(LIMITS, 1, Fraction(1, 20), 0), (KAnonymity(8) & TCloseness(0.5), 0, Fraction(1, 3), 1)],
)
def test_suppression_leaves_out_the_groups_that_the_local_backend_does(
    source, asked, m, share, passes, monkeypatch
):
    """Only a constraint that compares groups with the whole table counts the whole again."""
    counted = []
    again = backend.domains_left
    monkeypatch.setattr(backend, "domains_left", lambda *a: counted.append(a) or again(*a))
    local = anonymize(roles(source[0]), asked, m, "baseline", suppression=share)
    found = anonymize_spark(
        roles(source[1]), asked, m, "baseline", suppression=share, subtree_rows=400
    )
    assert found.subtrees > 2
    assert found.suppressed == local.suppressed > 0
    assert sorted_rows(found.frame) == sorted_rows(local.frame)
    report = found.report()
    assert (report["rows"], report["suppressed"]) == (1500 - local.suppressed, local.suppressed)
    assert len(counted) == passes
    found.unpersist()


def test_providers_that_cannot_alone_are_left_out_within_the_budget(source):
    few = int((source[0]["hospital"] == "D").sum())
    asked = KAnonymity(few + 1)
    found = anonymize(roles(source[1]), asked, 1, "separate", suppression=0.1)
    local = anonymize(roles(source[0]), asked, 1, "separate", suppression=0.1)
    assert found.suppressed == local.suppressed >= few
    assert sorted_rows(found.frame) == sorted_rows(local.frame)
    assert "D" not in set(found.table.frame.toArrow().to_pandas()["hospital"])
    found.unpersist()
    with pytest.raises(NotPrivateError, match=f"such providers have {few} rows, and 15 may"):
        anonymize(roles(source[1]), asked, 1, "separate", suppression=0.01)


@given(st.lists(st.integers(1, 9), max_size=8), st.integers(0, 30))
def test_each_group_that_still_fits_is_left_out(sizes, room):
    expected, left = [], room
    for group, size in enumerate(sizes):
        if size <= left:
            expected, left = [*expected, group], left - size
    assert fitting(np.array(sizes, dtype=np.int64), room).tolist() == expected


def test_what_workers_leave_out():
    batch = pa.RecordBatch.from_pydict({finish.GROUP: [1, 7, 2, 7], "ill": list("abcd")})
    (kept,) = finish._without(np.array([7, 9]))(iter([batch]))
    assert kept.to_pydict() == {finish.GROUP: [1, 2], "ill": ["a", "c"]}


def test_hierarchies_are_cut_between_labels_as_locally(source):
    tree = {"zip": ZIPS}
    found = anonymize_spark(
        roles(source[1], hierarchies=tree), LIMITS, 1, "baseline", subtree_rows=400
    )
    local = anonymize(roles(source[0], hierarchies=tree), LIMITS, 1, "baseline")
    assert found.subtrees > 2
    assert sorted_rows(found.frame) == sorted_rows(local.frame)
    found.unpersist()


def test_progress_tells_of_passes_and_of_the_end(source):
    told: list[tuple[int, int]] = []
    found = anonymize_spark(
        roles(source[1]),
        LIMITS,
        1,
        "baseline",
        subtree_rows=400,
        progress=lambda *at: told.append(at),
    )
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
    endless = source[1].replace(float(source[0]["pay"].max()), float("inf"), "pay")
    with pytest.raises(InvalidInputError, match="have no width"):
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


def test_less_is_left_out_where_the_table_passes_only_so(spark):
    """The income of the one who is left out would stretch the scale of all others."""
    frame = pd.DataFrame(
        {"age": [1, 1, 2, 2, 3, 3, 4, 4, 5, 5, 900], "income": [1, 2, 1, 2, 1, 3, 3, 2, 3, 1, 1000]}
    )
    asked = TCloseness(0.25, distance="ordered")
    local = anonymize(Table(frame, None, ["age"], "income"), asked, 0, suppression=0.3)
    there = Table(spark.createDataFrame(frame), None, ["age"], "income")
    found = anonymize(there, asked, 0, suppression=0.3)
    assert found.suppressed == local.suppressed == 0
    assert sorted_rows(found.frame) == sorted_rows(local.frame)
    found.unpersist()
