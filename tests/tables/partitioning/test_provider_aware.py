"""Cuts between providers are taken where they help, so that counts are never worse than without."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

from evidence.mondrian_reference import withstands
from evidence.random_tables import guard_of, random_records
from quiltwork.tables.codes.encoding import Column
from quiltwork.tables.partitioning.mondrian import CutRules, mondrian
from quiltwork.tables.partitioning.nodes import Nodes, bounds, starts_of
from quiltwork.tables.partitioning.provider_aware import UtilityProbe, provider_aware
from tests.sizes import sample


def questions_about(records, kind=UtilityProbe) -> UtilityProbe:
    values = tuple(range(len(records.axes.positions[0])))
    return kind.of(tuple(Column("q", "numeric", values, codes) for codes in records.codes))


class AnythingGoes(UtilityProbe):
    """Finds every exchange good for counts."""

    def better(self, now, instead):
        return np.ones(len(now), dtype=bool)


def loss(records, labels) -> float:
    sizes = np.bincount(labels)
    nodes = Nodes(np.argsort(labels, kind="stable"), starts_of(sizes))
    return float((records.axes.widths(*bounds(records, nodes)).sum(axis=0) * sizes).sum())


def error(questions, labels) -> float:
    """The mean error of the queries that decide."""
    groups = Nodes(np.argsort(labels, kind="stable"), starts_of(np.bincount(labels)))
    told = questions.answers(groups, np.zeros(groups.count, dtype=np.int64), 1)[0]
    return float(np.mean(np.abs(told - questions.truth) / questions.scale))


@settings(max_examples=20)
@given(
    seed=st.integers(0, 10**6),
    m=st.integers(0, 4),
    providers=st.integers(1, 12),
    apart=st.booleans(),
    split=st.sampled_from(["range", "loss", "fitness"]),
)
def test_counts_are_never_worse_than_the_baselines_and_groups_private(
    seed, m, providers, apart, split
):
    """Also where providers hold different regions, so that cutting between them mostly pays."""
    records = random_records(seed, rows=150, codes=10, providers=providers)
    if apart:
        region = np.argsort(np.argsort(records.codes[0], kind="stable")) * providers // 150
        records = replace(records, provider=region)
    guard, questions = guard_of(3, 2, m), questions_about(records)
    baseline = mondrian(records, guard, CutRules(split=split))
    aware = provider_aware(records, guard, CutRules(True, split), questions)
    assert error(questions, aware) <= error(questions, baseline) + 1e-9
    for group in range(aware.max() + 1):
        rows = aware == group
        assert withstands(
            zip(records.provider[rows], records.sensitive[rows], strict=True), 3, 2, m
        )


@settings(max_examples=sample(30, full=60))
@given(
    seed=st.integers(0, 10**6),
    rows=st.integers(40, 160),
    split=st.sampled_from(["range", "loss"]),
    relaxed=st.booleans(),
    m=st.integers(1, 3),
)
def test_every_row_has_a_group_however_nodes_are_cut(seed, rows, split, relaxed, m):
    records = random_records(seed, rows=rows, quasi=2, codes=20, providers=5)
    rules = CutRules(provider_splits=True, split=split, relaxed=relaxed)
    labels = provider_aware(records, guard_of(1, 3, m), rules, questions_about(records))
    assert labels.min() == 0
    assert np.bincount(labels).min() > 0


def test_with_everybody_but_one_colluding_providers_are_better_off_apart():
    # Codes are spread evenly, so that counts from wide boxes are as good.
    records = random_records(3, rows=1500, codes=40, quasi=3, providers=5)
    guard = guard_of(5, 1, 4)
    baseline = mondrian(records, guard, CutRules())
    aware = provider_aware(
        records, guard, CutRules(provider_splits=True), questions_about(records, AnythingGoes)
    )
    assert loss(records, aware) < 0.8 * loss(records, baseline)
    alone = sum(len(set(records.provider[aware == g])) == 1 for g in range(aware.max() + 1))
    assert alone > 0
