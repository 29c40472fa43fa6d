"""Counting decides exactly as trying every coalition does."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pandas
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from evidence.mondrian_reference import withstands
from evidence.random_tables import guard_of, random_records
from quiltwork.tables.constraints import (
    EntropyLDiversity,
    KAnonymity,
    LDiversity,
    RecursiveLDiversity,
    TCloseness,
)
from quiltwork.tables.partitioning.coded_records import CodedRecords
from quiltwork.tables.partitioning.guards import ANONYMIZATION_ALPHA, Guard
from quiltwork.tables.partitioning.nodes import Nodes, starts_of
from quiltwork.tables.verification import group_is_private, group_verification
from tests.sizes import sample


def groups_and_rows(records: CodedRecords, seed: int) -> Nodes:
    """Cut the rows into runs of random sizes."""
    rng = np.random.default_rng(seed)
    sizes = []
    while sum(sizes) < records.count:
        sizes.append(min(int(rng.integers(1, 15)), records.count - sum(sizes)))
    return Nodes(rng.permutation(records.count), starts_of(np.array(sizes)))


def expected(records: CodedRecords, nodes: Nodes, k: int, l: int, m: int) -> list[bool]:  # noqa: E741
    runs = np.split(nodes.rows, nodes.starts[1:])
    return [
        withstands(zip(records.provider[run], records.sensitive[run], strict=True), k, l, m)
        for run in runs
    ]


@settings(max_examples=150)
@given(
    seed=st.integers(0, 10**6),
    providers=st.integers(1, 7),
    values=st.integers(1, 6),
    k=st.integers(1, 6),
    l=st.integers(1, 4),
    m=st.integers(0, 6),
)
def test_counts_decide_as_every_coalition_does(seed, providers, values, k, l, m):  # noqa: E741
    records = random_records(seed, providers=providers, values=values)
    nodes = groups_and_rows(records, seed)
    found = guard_of(k, l, m).private(records, nodes.rows, nodes.starts)
    assert found.tolist() == expected(records, nodes, k, l, m)


@settings(max_examples=60)
@given(seed=st.integers(0, 10**6), l=st.integers(2, 4), m=st.integers(1, 4))
def test_tables_of_counts_and_sorted_counts_agree(seed, l, m):  # noqa: E741
    records = random_records(seed, providers=6, values=5)
    nodes = groups_and_rows(records, seed)
    rare = replace(records, values=10**9)  # too many that might occur for a table
    found = guard_of(2, l, m).private(rare, nodes.rows, nodes.starts)
    assert found.tolist() == expected(records, nodes, 2, l, m)


def test_one_provider_per_record_needs_no_search():
    records = random_records(5, rows=200, values=6)
    alone = replace(records, provider=np.arange(200, dtype=np.int32), providers=200)
    nodes = groups_and_rows(alone, 1)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(group_verification, "group_is_private", None)  # reached: an error
        found = guard_of(3, 2, 2).private(alone, nodes.rows, nodes.starts)
    assert found.tolist() == expected(alone, nodes, 3, 2, 2)


@settings(max_examples=sample(20, full=40), deadline=None)
@given(
    seed=st.integers(0, 10**6),
    m=st.integers(0, 3),
    loose=st.sampled_from(
        [EntropyLDiversity(1.5), RecursiveLDiversity(2, 2), TCloseness(0.5), TCloseness(0.6)]
    ),
    people=st.booleans(),
)
def test_the_guard_decides_as_each_group_alone(seed, m, loose, people):
    """Settled together, part after part, as the verification decides one group at a time."""
    from evidence.random_tables import random_frame, records_of
    from quiltwork.tables.codes.group import count_groups
    from quiltwork.tables.table import Table

    frame = random_frame(seed, rows=30)
    frame["who"] = np.random.default_rng(seed).integers(0, 25, len(frame))
    subject = "who" if people else None
    table = Table(frame, "owner", ["age", "town"], "ill", subject=subject)
    constraint = (loose & KAnonymity(2) & LDiversity(2)).bind(table.encoded)
    records = records_of(table.encoded)
    nodes = groups_and_rows(records, seed)
    found = Guard(constraint, m, table.encoded).private(records, nodes.rows, nodes.starts)
    ids = records.ids[nodes.rows]
    counts = count_groups(table.encoded, nodes.node_of_row(), nodes.count, ids)
    expected = [group_is_private(counts.cut(i), constraint, m) for i in range(nodes.count)]
    assert found.tolist() == expected


@pytest.mark.parametrize("subject", [None, "person"])
@pytest.mark.parametrize(
    "asked",
    [KAnonymity(6) & LDiversity(4), KAnonymity(6) & EntropyLDiversity(3) & TCloseness(0.3)],
    ids=str,
)
def test_the_guard_scores_whole_groups(subject, asked):
    from quiltwork.tables.codes.group import count_groups
    from quiltwork.tables.constraints.constraint import score
    from quiltwork.tables.partitioning.coded_records import records_of
    from quiltwork.tables.table import Table

    rng = np.random.default_rng(5)
    rows = {name: rng.integers(0, most, 300) for name, most in (("p", 4), ("q", 40), ("s", 6))}
    frame = pandas.DataFrame(rows | {"person": rng.integers(0, 200, 300)})
    encoded = Table(frame, "p", ["q"], "s", subject=subject).encoded
    asked = asked.bind(encoded)
    labels = np.unique(rows["q"], return_inverse=True)[1]
    starts = starts_of(np.bincount(labels))
    guard = Guard(asked, 1, encoded)
    found = guard.scores(records_of(encoded), np.argsort(labels, kind="stable"), starts)
    counts = count_groups(encoded, labels, len(starts))
    each = [score(asked, counts.cut(g).left(()), ANONYMIZATION_ALPHA) for g in range(counts.groups)]
    np.testing.assert_allclose(found, each, rtol=1e-8)
