"""Cuts between providers are taken where they help, so that nothing gets wider than without."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from evidence.mondrian_reference import withstands
from evidence.random_tables import random_records
from quiltwork.tables.partitioning import mondrian as mondrian_module
from quiltwork.tables.partitioning import provider_aware as provider_aware_module
from quiltwork.tables.partitioning.guards import CountingGuard
from quiltwork.tables.partitioning.mondrian import CutRules, leaves_of, mondrian, whole
from quiltwork.tables.partitioning.nodes import Nodes, bounds, starts_of
from quiltwork.tables.partitioning.provider_aware import provider_aware
from tests.sizes import sample


def as_sets(labels) -> set[frozenset[int]]:
    return {frozenset(np.flatnonzero(labels == g).tolist()) for g in np.unique(labels)}


def loss(records, labels) -> float:
    sizes = np.bincount(labels)
    nodes = Nodes(np.argsort(labels, kind="stable"), starts_of(sizes))
    return float((records.axes.widths(*bounds(records, nodes)).sum(axis=0) * sizes).sum())


@settings(max_examples=20)
@given(seed=st.integers(0, 10**6), m=st.integers(0, 4), providers=st.integers(1, 5))
def test_never_wider_than_the_baseline_and_private(seed, m, providers):
    records = random_records(seed, rows=150, codes=10, providers=providers)
    guard = CountingGuard(3, 2, m)
    baseline = mondrian(records, guard, CutRules())
    aware = provider_aware(records, guard, CutRules(provider_splits=True))
    assert loss(records, aware) <= loss(records, baseline) + 1e-9
    for group in range(aware.max() + 1):
        rows = aware == group
        assert withstands(
            zip(records.provider[rows], records.sensitive[rows], strict=True), 3, 2, m
        )


def compared_in_full(records, guard, rules):
    """The same comparison with every tree grown to its end."""
    plain = replace(rules, provider_splits=False)
    best = [
        leaf for level in leaves_of(records, whole(records), guard, rules) for leaf in cut(level)
    ]
    steps = list(provider_aware_module._checkpoints(records, guard, plain))
    for nodes in steps[::-1]:
        for node in cut(nodes):
            alone = Nodes(np.array(node), np.zeros(1, dtype=np.int64))
            parts = provider_aware_module._apart(records, alone, guard)
            other = [
                leaf for level in leaves_of(records, parts, guard, plain) for leaf in cut(level)
            ]
            here = [leaf for leaf in best if leaf[0] in set(node)]
            if lost(records, other) < lost(records, here) - 1e-9:
                best = [leaf for leaf in best if leaf not in here] + other
    return {frozenset(leaf) for leaf in best}


def cut(nodes) -> list[list[int]]:
    return [rows.tolist() for rows in np.split(nodes.rows, nodes.starts[1:])] if nodes.count else []


def lost(records, leaves) -> float:
    spread = [
        sum(np.ptp(p[c[leaf]]) for p, c in zip(records.places, records.codes, strict=True))
        for leaf in leaves
    ]
    return sum(len(leaf) * width for leaf, width in zip(leaves, spread, strict=True))


@settings(max_examples=sample(6, full=12))
@given(
    seed=st.integers(0, 10**6),
    m=st.integers(0, 4),
    providers=st.integers(2, 12),
    apart=st.booleans(),
    batch=st.sampled_from([30, 1000]),
    split=st.sampled_from(["range", "loss"]),
)
def test_giving_up_early_keeps_what_pays(seed, m, providers, apart, batch, split):
    """Also where providers hold different regions, so that cutting between them mostly pays."""
    records = random_records(seed, rows=160, codes=30, providers=providers)
    if apart:
        region = np.argsort(np.argsort(records.codes[0], kind="stable")) * providers // 160
        records = replace(records, provider=region)
    guard, rules = CountingGuard(3, 2, m), CutRules(provider_splits=True, split=split)
    with pytest.MonkeyPatch.context() as patch:
        for module in (mondrian_module, provider_aware_module):
            patch.setattr(module, "BATCH", batch)
        found = provider_aware(records, guard, rules)
    assert as_sets(found) == compared_in_full(records, guard, rules)


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
    labels = provider_aware(records, CountingGuard(1, 3, m), rules)
    assert labels.min() == 0
    assert np.bincount(labels).min() > 0


def test_with_everybody_but_one_colluding_providers_are_better_off_apart():
    records = random_records(3, rows=1500, codes=40, quasi=3, providers=5)
    guard = CountingGuard(5, 1, 4)
    baseline = mondrian(records, guard, CutRules())
    aware = provider_aware(records, guard, CutRules(provider_splits=True))
    assert loss(records, aware) < 0.8 * loss(records, baseline)
    alone = sum(len(set(records.provider[aware == g])) == 1 for g in range(aware.max() + 1))
    assert alone > 0
