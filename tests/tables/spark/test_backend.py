"""Anonymization on a real local Spark: the local backend's result, verified where rows are."""

from __future__ import annotations

import pickle

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.compute as pc
import pytest

from evidence.checks.spark_scale import measured
from quiltwork.errors import InvalidInputError, NotPrivateError, UnsupportedError
from quiltwork.tables.anonymization import anonymize
from quiltwork.tables.constraints import EntropyLDiversity, KAnonymity, LDiversity, TCloseness
from quiltwork.tables.m_privacy import verify_m_privacy
from quiltwork.tables.partitioning.mondrian import CutRules
from quiltwork.tables.partitioning.recipe import Recipe
from quiltwork.tables.spark import anonymize_spark, domains, tree, verify_spark, workers
from quiltwork.tables.spark.tree import Router
from quiltwork.tables.table import Table
from tests.tables.spark.comparing import collected, sorted_rows

pytestmark = [
    pytest.mark.filterwarnings("ignore:PySpark does not yet fully support pandas:FutureWarning"),
    pytest.mark.filterwarnings("ignore::ResourceWarning"),
]
KNOWN = ["age", "zip", "pay", "born"]
LIMITS = KAnonymity(8) & LDiversity(3)


def people(rows: int, seed: int = 0) -> pd.DataFrame:
    rng = np.random.default_rng(seed)
    return pd.DataFrame(
        {
            "hospital": rng.choice(["A", "B", "C", "D"], rows, p=[0.4, 0.3, 0.2, 0.1]),
            "age": rng.integers(18, 90, rows),
            "zip": rng.choice(["N", "S, or so", "E", "W", "X"], rows, p=[0.3, 0.3, 0.2, 0.1, 0.1]),
            "pay": np.round(rng.gamma(2.0, 20.0, rows)),
            "born": pd.to_datetime("1970-01-01").date(),
            "ill": rng.choice(["flu", "cold", "asthma", "gout", "none"], rows),
        }
    )


def roles(frame: object, **more) -> Table:
    return Table(frame, "hospital", KNOWN, "ill", **more)


def test_missing_values_and_chapters_count_as_on_one_machine(spark):
    frame = people(900, 7).replace({"ill": {"none": "cramp"}})
    frame.loc[::9, "ill"] = None
    tree = [
        (ill, "chest" if ill in ("flu", "cold", "asthma") else "other", "*")
        for ill in sorted(frame["ill"].dropna().unique())
    ]
    more = {"missing": "value", "hierarchies": {"ill": tree}, "levels": {"ill": 1}}
    limits = KAnonymity(8) & LDiversity(2)
    local = anonymize(roles(frame, **more), limits, 1, "baseline", split="range")
    there = anonymize(roles(spark.createDataFrame(frame), **more), limits, 1, "baseline")
    shown = collected(there.frame).fillna("")
    assert sorted_rows(shown) == sorted_rows(local.frame.fillna(""))
    assert there.report()["distinct_l"] == 2
    again = Table(there.frame, None, KNOWN, "ill", **more)
    assert not verify_spark(again, KAnonymity(8) & LDiversity(3), 0).private


@pytest.fixture(scope="module")
def source(spark):
    frame = people(1600)
    return frame, spark.createDataFrame(frame)


@pytest.fixture(scope="module")
def baseline(source):
    published = anonymize_spark(
        roles(source[1]), Recipe(LIMITS, 1, "baseline", CutRules()), subtree_rows=250
    )
    yield published
    published.unpersist()


def test_the_baseline_is_exactly_that_of_the_local_backend(source, baseline):
    local = anonymize(roles(source[0]), LIMITS, m=1, method="baseline")
    assert baseline.subtrees > 4
    assert sorted_rows(collected(baseline.frame)) == sorted_rows(local.frame)


def test_the_published_frame_is_a_spark_frame_without_providers_in_a_canonical_order(baseline):
    from pyspark.sql import DataFrame

    assert isinstance(baseline.frame, DataFrame)
    assert baseline.frame.columns == [*KNOWN, "ill"]
    rows = [tuple(row) for row in baseline.frame.toArrow().to_pylist()]
    shown = collected(baseline.frame).astype(str).to_numpy().tolist()
    assert rows
    assert shown == sorted(shown)


def test_the_table_for_checks_carries_providers_and_is_private(source, baseline):
    local = roles(collected(baseline.table.frame), missing="value")
    assert verify_m_privacy(local, LIMITS, m=1).private
    assert sorted(local.frame["hospital"]) == sorted(source[0]["hospital"])
    verdict = verify_spark(baseline.table, LIMITS, 1)
    assert verdict.private
    assert verdict.m == 1


def test_distributed_verification_finds_the_breach_that_the_local_one_finds(source, baseline):
    local = roles(collected(baseline.table.frame), missing="value")
    for asked, m in [(KAnonymity(8), 3), (LDiversity(5), 1), (KAnonymity(60), 0)]:
        expected = verify_m_privacy(local, asked, m)
        found = verify_spark(baseline.table, asked, m)
        assert found.private == expected.private is False
        single = verify_m_privacy(
            roles(local.frame[matches(local.frame, found.group)], missing="value"), asked, m
        )
        assert not single.private


def matches(frame: pd.DataFrame, group: tuple) -> pd.Series:
    chosen = pd.Series(True, index=frame.index)
    for name, value in zip(KNOWN, group, strict=True):
        chosen &= frame[name] == value
    return chosen


def test_groups_and_losses_are_those_of_the_published_rows(baseline):
    rows = collected(baseline.frame)
    sizes = rows.groupby(KNOWN).size()
    groups = collected(baseline.groups)
    assert sorted(groups["count"]) == sorted(sizes)
    assert sum(part.groups for part in baseline.verdicts) == len(sizes)
    assert min(part.smallest for part in baseline.verdicts) == sizes.min() >= 8
    assert sum(part.squares for part in baseline.verdicts) == (sizes**2).sum()
    assert 0 < baseline.gcp < 0.5


def test_provider_aware_never_loses_more_than_the_baseline(source, baseline):
    aware = anonymize(roles(source[1]), LIMITS, m=1, method="provider-aware", backend="spark")
    assert aware.gcp <= baseline.gcp + 1e-12
    assert verify_spark(aware.table, LIMITS, 1).private
    aware.unpersist()


def test_each_provider_alone(source):
    found = anonymize_spark(
        roles(source[1]), Recipe(LIMITS, 2, "separate", CutRules()), subtree_rows=250
    )
    local = anonymize(roles(source[0]), LIMITS, m=2, method="separate", split="range")
    assert sorted_rows(collected(found.frame)) == sorted_rows(local.frame)
    found.unpersist()


def test_constraints_that_depend_on_the_whole_table(source):
    asked = TCloseness(0.2) & EntropyLDiversity(3)
    found = anonymize_spark(
        roles(source[1]), Recipe(asked, 0, "baseline", CutRules()), subtree_rows=800
    )
    local = anonymize(roles(source[0]), asked, m=0, method="baseline")
    assert sorted_rows(collected(found.frame)) == sorted_rows(local.frame)
    found.unpersist()


def test_a_local_frame_with_missing_values_orders_and_several_secrets(spark):
    frame = people(900, seed=4).drop(columns="born")
    frame["size"] = np.random.default_rng(5).choice(["small", "medium", "large"], 900)
    doses = ["0.50", "1.5", "10"]  # as a file spells them
    frame["dose"] = pd.Categorical(np.resize(doses, 900), doses, ordered=True)
    frame.loc[::7, "pay"] = np.nan
    frame["zip"] = frame["zip"].astype("category")
    frame["old"] = frame["age"] > 60
    table = Table(
        frame,
        "hospital",
        ["age", "zip", "pay", "size", "dose"],
        ["ill", "old"],
        ordinal={"size": ["small", "medium", "large"]},
        missing="value",
    )
    found = anonymize(table, KAnonymity(5), m=1, method="baseline", backend="spark")
    local = anonymize(table, KAnonymity(5), m=1, method="baseline")
    columns = list(local.frame.columns)
    assert found.frame.columns == columns
    shown = collected(found.frame)[columns].astype(str).to_numpy().tolist()
    assert sorted(shown) == sorted(local.frame.astype(str).to_numpy().tolist())
    found.unpersist()


def test_what_cannot_be_private_is_refused_before_anything_is_published(source):
    with pytest.raises(NotPrivateError, match="Even one group"):
        anonymize_spark(roles(source[1]), Recipe(KAnonymity(1500), 1, "baseline", CutRules()))
    few = int(source[0]["hospital"].isin(["C", "D"]).sum())
    message = f"'C' alone cannot fulfil .* have {few} rows in total, and 0"
    with pytest.raises(NotPrivateError, match=message):
        anonymize_spark(roles(source[1]), Recipe(KAnonymity(400), 1, "separate", CutRules()))


def test_writing_makes_a_folder_of_files(baseline, tmp_path):
    target = baseline.write(tmp_path / "out.parquet")
    read = pd.read_parquet(target)
    assert len(read) == 1600
    assert "hospital" not in read
    with pytest.raises(InvalidInputError, match="already exists"):
        baseline.write(target)


def test_the_report_is_what_the_verification_counted(baseline, tmp_path):
    found = baseline.report(tmp_path / "report.html")
    sizes = collected(baseline.groups)["count"]
    assert (found["k"], found["groups"], found["rows"]) == (sizes.min(), len(sizes), 1600)
    assert found["distinct_l"] >= 3
    assert "Published Spark table" in (tmp_path / "report.html").read_text(encoding="utf-8")


def test_a_subject_column_is_refused_with_what_to_do(source):
    table = roles(source[1].withColumn("person", source[1]["age"]), subject="person")
    for call in (anonymize, verify_m_privacy):
        with pytest.raises(UnsupportedError, match="backend='local'"):
            call(table, KAnonymity(2), 1)


def test_generated_rows_as_in_the_full_count(spark):
    found = measured(spark, 3000)
    assert found["rows"] == 3000
    assert found["smallest group"] >= 30
    assert 0 < found["rows of results brought to the driver"] < 3000


def test_what_workers_run_gives_the_same_in_this_process(source):
    """The functions that Spark ships to workers, one after the other on Arrow batches."""
    table = roles(source[1])
    known = domains.read_domains(table, source[1])
    asked = domains.bind_constraint(LIMITS, known)
    columns = [*KNOWN, "hospital", "ill"]
    batches = pa.Table.from_pandas(source[0][columns], preserve_index=False).to_batches(500)
    packed = list(workers._encoder(known, "hospital")(iter(batches)))
    router = Router(1)
    router.cut(0, axis=0, last=30)
    counted = pa.Table.from_batches(tree._counter(known, router, [1, 2])(iter(packed)))
    ages = counted.filter(pc.equal(counted["array"], 0))
    by_age = np.unique(source[0]["age"], return_counts=True)[1]
    assert sorted(ages["records"].to_pylist()) == sorted(by_age.tolist())
    sent = pa.Table.from_batches(tree._sender(known, router, [1, 2])(iter(packed)))
    assert set(sent["subtree"].to_pylist()) == {1, 2}
    plan = Recipe(asked, 1, "provider-aware", CutRules(provider_splits=True))
    finisher = workers._finisher(table, known, plan)
    parts = [finisher(sent.filter(pc.equal(sent["subtree"], node))) for node in (1, 2)]
    published = pa.concat_tables(parts).select(columns)
    verifier = workers._verifier(table, known, asked, 1)
    (found,) = verifier(iter(published.to_batches()))
    verdict = pickle.loads(found["verdict"][0].as_py())  # noqa: S301
    assert verdict.verdict.private
    assert verdict.rows == 1600
    assert verdict.smallest == published.to_pandas().groupby(KNOWN).size().min()
