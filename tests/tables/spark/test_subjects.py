"""People with several records on Spark: counted once, and known to all who hold any of them."""

from __future__ import annotations

import pickle
from collections import Counter, defaultdict
from itertools import combinations
from types import SimpleNamespace

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.compute as pc
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from quiltwork.errors import InvalidInputError, UnsupportedError
from quiltwork.tables.anonymization import anonymize
from quiltwork.tables.constraints import EntropyLDiversity, KAnonymity, LDiversity, TCloseness
from quiltwork.tables.distinct import who_knows
from quiltwork.tables.group import count_groups
from quiltwork.tables.partitioning.mondrian import CutRules
from quiltwork.tables.partitioning.recipe import Recipe
from quiltwork.tables.spark import (
    anonymize_spark,
    blocks,
    domains,
    finish,
    people,
    tree,
    verification,
    verify_spark,
)
from quiltwork.tables.spark.tree import Router
from quiltwork.tables.table import Table
from quiltwork.tables.verification import group_is_private, verify_m_privacy
from quiltwork.tables.verification.all_groups import groups_withstand
from tests.tables.spark.comparing import collected, sorted_rows

pytestmark = [
    pytest.mark.filterwarnings("ignore:PySpark does not yet fully support pandas:FutureWarning"),
    pytest.mark.filterwarnings("ignore::ResourceWarning"),
]
KNOWN = ["age", "zip", "pay"]
HOSPITALS = ["A", "B", "C", "D", "E"]
LIMITS = KAnonymity(8) & LDiversity(3)


def visits(rows: int, seed: int = 0) -> pd.DataFrame:
    """Records of people of whom many were seen twice, some of them elsewhere."""
    rng = np.random.default_rng(seed)
    person = rng.integers(0, int(0.7 * rows), rows)
    usual = rng.choice(HOSPITALS, int(0.7 * rows))[person]
    away = rng.random(rows) < 0.3
    return pd.DataFrame(
        {
            "hospital": np.where(away, rng.choice(HOSPITALS, rows), usual),
            "person": [f"p{number}" for number in person],
            "age": rng.integers(18, 90, rows),
            "zip": rng.choice(list("NSEWX"), rows),
            "pay": np.round(rng.gamma(2.0, 20.0, rows)),
            "ill": rng.choice(["flu", "cold", "asthma", "gout", "none"], rows),
        }
    )


def roles(frame: object, **more) -> Table:
    return Table(frame, "hospital", KNOWN, "ill", subject="person", **more)


@pytest.fixture(scope="module")
def source(spark):
    frame = visits(1200)
    return frame, spark.createDataFrame(frame)


@pytest.fixture(scope="module")
def baseline(source):
    """People come in four partitions, records in several subtrees."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(people, "ROWS_PER_PARTITION", 300)
        published = anonymize_spark(roles(source[1]), LIMITS, 2, "baseline", subtree_rows=200)
    yield published
    published.unpersist()


def test_the_baseline_is_exactly_that_of_the_local_backend(source, baseline):
    local = anonymize(roles(source[0]), LIMITS, m=2, method="baseline")
    assert baseline.subtrees > 4
    assert sorted_rows(collected(baseline.frame)) == sorted_rows(local.frame)
    assert baseline.frame.columns == [*KNOWN, "ill"]


def test_every_coalition_leaves_k_people_and_l_values_in_every_group(source, baseline):
    """Brute force on the published rows; who knows whom comes from the source alone."""
    rows = collected(baseline.table.frame)
    assert rows["person"].nunique() == source[0]["person"].nunique()
    sizes = source[0].groupby("person").size()
    assert sorted(rows.groupby("person").size()) == sorted(sizes)
    assert set(rows["person"] // 2**32) == {0, 1, 2, 3}
    knows = rows.groupby("person")["hospital"].agg(frozenset)
    expected = source[0].groupby("person")["hospital"].agg(frozenset)
    assert Counter(knows) == Counter(expected)
    least = []
    for _, group in rows.groupby(KNOWN):
        inside = set(group["hospital"])
        has = group.groupby("person")["ill"].agg(set)
        least.append(len(has))
        for coalition in combinations(HOSPITALS, 2):
            if inside <= set(coalition):
                continue
            left = [values for who, values in has.items() if not knows[who] & set(coalition)]
            assert len(left) >= 8
            assert len(set().union(*left)) >= 3
    assert min(part.smallest for part in baseline.verdicts) == min(least)


def test_constraints_on_the_distribution_of_values_count_people(source):
    asked = TCloseness(0.25) & EntropyLDiversity(2)
    found = anonymize_spark(roles(source[1]), asked, 0, "baseline", subtree_rows=700)
    local = anonymize(roles(source[0]), asked, m=0, method="baseline")
    assert sorted_rows(collected(found.frame)) == sorted_rows(local.frame)
    found.unpersist()


def test_quality_and_suppression_with_subjects_as_on_one_machine(source):
    choices = {"method": "baseline", "quality": True, "suppression": 0.05}
    found = anonymize(roles(source[1]), KAnonymity(6), 1, **choices)
    local = anonymize(roles(source[0]), KAnonymity(6), 1, **choices)
    assert found.suppressed == local.suppressed > 0
    assert sorted_rows(collected(found.frame)) == sorted_rows(local.frame)
    found.unpersist()


def test_distributed_verification_finds_how_many_people_any_two_leave(spark):
    frame = visits(400, seed=3)
    frame["age"], frame["zip"], frame["pay"] = frame["age"] // 40, "N", 0
    there = spark.createDataFrame(frame)
    knows = frame.groupby("person")["hospital"].agg(set)
    least = min(
        sum(not knows[who] & set(pair) for who in group["person"].unique())
        for _, group in frame.groupby("age")
        for pair in combinations(HOSPITALS, 2)
    )
    assert verify_m_privacy(roles(there), KAnonymity(least), m=2).private
    found = verify_m_privacy(roles(there), KAnonymity(least + 1), m=2)
    expected = verify_m_privacy(roles(frame), KAnonymity(least + 1), m=2)
    assert not found.private
    assert (found.left_size, found.group) == (least, expected.group)


def test_records_without_a_person_and_too_many_sets_are_refused(source, monkeypatch):
    first = source[0]["person"][0]
    lost = source[1].replace(first, None, "person")
    number = int((source[0]["person"] == first).sum())
    with pytest.raises(InvalidInputError, match=f"has {number} missing .* needs a subject"):
        verify_spark(roles(lost), KAnonymity(2), 1)
    monkeypatch.setattr(people, "MOST_CIRCLES", 5)
    with pytest.raises(UnsupportedError, match="more than 5 different sets of providers"):
        verify_spark(roles(source[1]), KAnonymity(2), 1)


def drawn(seed: int, rows: int) -> blocks.BlockRecords:
    rng = np.random.default_rng(seed)
    person = rng.integers(0, max(1, rows // 2), rows)
    provider = np.where(rng.random(rows) < 0.5, person % 4, rng.integers(0, 4, rows))
    codes = (rng.integers(0, 2, rows),)
    return blocks.BlockRecords(codes, provider, rng.integers(0, 4, rows), person, None)


@given(st.integers(0, 10**6), st.integers(8, 60), st.integers(0, 3))
@settings(max_examples=60)
def test_people_of_nodes_decide_as_the_groups_of_a_local_table(seed, count, m):
    """Blocks that hold different people are counted one by one and added up."""
    rows = drawn(seed, count)
    who, sets = who_knows(rows.person, rows.provider, 4)
    rows = blocks.BlockRecords(rows.codes, rows.provider, rows.sensitive, rows.person, who)
    whole = SimpleNamespace(providers=tuple("ABCD"), sensitive_values=tuple("wxyz"), circles=sets)
    encoded = domains.Domains(
        (), (), (), whole.providers, (), whole.sensitive_values, "categorical", None, {}, count
    )
    local = encoded.encoded((), rows.provider, rows.sensitive, rows.person, None)
    node = rows.codes[0]
    for asked in (KAnonymity(3), LDiversity(2), KAnonymity(2) & EntropyLDiversity(2)):
        totals: Counter = Counter()
        for block in (0, 1):
            part = np.flatnonzero(rows.person % 2 == block)
            if len(part):
                counts, kinds = people._counted(rows.take(part), node[part])
                for key, at, circle, number in zip(kinds, *counts, strict=True):
                    totals[int(at), int(circle), key] += int(number)
        for at in np.unique(node).tolist():
            here = [(circle, key, n) for (place, circle, key), n in totals.items() if place == at]
            who_, kind, number = (
                np.array(c, dtype=t)
                for c, t in zip(zip(*here, strict=True), (np.int64, object, np.int64), strict=True)
            )
            found = people._gathered(whole, who_, kind, number)
            group = count_groups(
                local, np.zeros((node == at).sum(), dtype=np.int64), 1, np.flatnonzero(node == at)
            ).cut(0)
            assert bool(groups_withstand(found, asked, m)[0]) == group_is_private(group, asked, m)
            own = defaultdict(set)
            for row in np.flatnonzero(node == at):
                own[rows.person[row]].add(rows.provider[row])
            assert found.weight.sum() == len(own)


def test_what_workers_run_gives_the_same_in_this_process(source):
    """The functions that Spark ships to workers, one after the other on Arrow batches."""
    table = roles(source[1])
    known = domains.read_domains(table, source[1])
    asked = domains.bound(LIMITS, known)
    columns = [*KNOWN, "ill", "hospital", "person"]
    rows = pa.Table.from_pandas(source[0][columns], preserve_index=False)
    packed = list(blocks._encoder(known, "hospital", "person")(iter(rows.to_batches(500))))
    assert len(packed) == 1
    assert not list(blocks._encoder(known, "hospital", "person")(iter([])))
    router = Router(1)
    router.cut(0, axis=0, last=30)
    counter = people._counter(tree._places(known, router, [1, 2]))
    counted = pa.Table.from_batches(counter(iter(packed))).to_pandas()
    ages = np.unique(source[0]["age"])
    left = source[0]["age"] <= ages[30]
    everyone = counted[counted["kind"] != b"inside"].groupby("node")["people"].sum()
    assert everyone.tolist() == [source[0][side]["person"].nunique() for side in (left, ~left)]
    sent = pa.Table.from_batches(tree._sender(known, router, [1, 2])(iter(packed)))
    plan = Recipe(asked, 1, "baseline", CutRules(split="loss"), quality=True)
    finisher = finish._finisher(table, known, plan)
    parts = [finisher(sent.filter(pc.equal(sent["subtree"], node))) for node in (1, 2)]
    verifier = verification._verifier(table, known, asked, 1)
    (found,) = verifier(iter(pa.concat_tables(parts).to_batches()))
    assert pickle.loads(found["verdict"][0].as_py()).verdict.private  # noqa: S301
    numberer = people._numberer(columns.index("person"), columns.index("hospital"), known)
    numbered = pa.Table.from_batches(numberer(iter(rows.to_batches(500)))).to_pandas()
    order = {name: code for code, name in enumerate(sorted(set(source[0]["person"])))}
    assert numbered["person"].tolist() == [order[name] for name in source[0]["person"]]
    alone = source[0].groupby("person")["hospital"].transform("nunique") == 1
    assert (numbered["quiltwork_circle"] < 5).tolist() == alone.tolist()
    assert not list(numberer(iter([])))
