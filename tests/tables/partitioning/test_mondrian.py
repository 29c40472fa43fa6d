"""The level-by-level core makes the partitions of a recursion written from the definition."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from evidence import mondrian_reference as reference
from evidence.random_tables import guard_of, random_records
from quiltwork.tables.partitioning import best_cuts, mondrian
from quiltwork.tables.partitioning.coded_records import Axes, CodedRecords
from quiltwork.tables.partitioning.mondrian import CutRules
from quiltwork.tables.partitioning.nodes import Nodes, starts_of

shapes = st.fixed_dictionaries(
    {
        "seed": st.integers(0, 10**6),
        "rows": st.integers(6, 120),
        "quasi": st.integers(1, 4),
        "codes": st.integers(1, 9),
        "providers": st.integers(1, 4),
    }
)


def as_sets(labels) -> set[frozenset[int]]:
    return {frozenset(np.flatnonzero(labels == g).tolist()) for g in np.unique(labels)}


def is_private(records: CodedRecords, k: int, l: int, m: int):  # noqa: E741
    def private(rows: list[int]) -> bool:
        pairs = zip(records.provider[rows], records.sensitive[rows], strict=True)
        return bool(rows) and reference.withstands(pairs, k, l, m)

    return private


@settings(max_examples=80)
@given(shape=shapes, k=st.integers(1, 5), l=st.integers(1, 3), m=st.integers(0, 3))
def test_partitions_are_those_of_the_reference(shape, k, l, m):  # noqa: E741
    records = random_records(**shape)
    labels = mondrian.mondrian(records, guard_of(k, l, m), CutRules())
    expected = reference.mondrian(
        records.codes.tolist(),
        [p.tolist() for p in records.axes.positions],
        is_private(records, k, l, m),
    )
    assert as_sets(labels) == expected


@settings(max_examples=30)
@given(shape=shapes, l=st.integers(1, 3))
def test_batches_and_sorted_counts_change_nothing(shape, l):  # noqa: E741
    records = random_records(**shape)
    guard = guard_of(2, l, 1)
    usual = mondrian.mondrian(records, guard, CutRules())
    places = tuple(np.repeat(places, 5000) for places in records.axes.positions)
    apart = replace(  # too far for bins
        records, codes=records.codes * np.int32(5000), axes=Axes(places, records.axes.trees)
    )
    for other in (records, apart):
        labels = mondrian.mondrian(other, guard, CutRules(), batch=10)
        assert as_sets(usual) == as_sets(labels)


@settings(max_examples=60)
@given(
    shape=shapes,
    split=st.sampled_from(["range", "loss", "fitness"]),
    provider_splits=st.booleans(),
    relaxed=st.booleans(),
    m=st.integers(0, 3),
)
def test_every_rule_gives_private_groups(shape, split, provider_splits, relaxed, m):
    records = random_records(**shape)
    private = is_private(records, 2, 2, m)
    everything = list(range(records.count))
    if not private(everything):
        return
    labels = mondrian.mondrian(
        records, guard_of(2, 2, m), CutRules(provider_splits, split, relaxed)
    )
    assert all(private(sorted(group)) for group in as_sets(labels))


def test_relaxed_cuts_halve_equal_values_and_strict_ones_never_part_them():
    records = random_records(3, rows=64, quasi=1, codes=2, providers=1)
    guard = guard_of(4, 1, 0)
    strict = mondrian.mondrian(records, guard, CutRules())
    for group in as_sets(strict):
        others = set(range(64)) - group
        codes = records.codes[0]
        assert not {codes[r] for r in group} & {codes[r] for r in others}
    relaxed = as_sets(mondrian.mondrian(records, guard, CutRules(relaxed=True)))
    assert len(relaxed) > len(as_sets(strict))


def test_equal_columns_make_one_group():
    records = random_records(1, rows=30, quasi=2, codes=1)
    labels = mondrian.mondrian(records, guard_of(2, 1, 0), CutRules())
    assert set(labels.tolist()) == {0}


ALIKE = {"seed": 1, "rows": 40, "quasi": 3, "codes": 4, "providers": 4}
"""Few values, so that records of several providers are alike."""


@settings(max_examples=60)
@example(shape=ALIKE, least=1, values=1, node_of=lambda r: r.provider % 2, parted=False)
@given(
    shape=shapes,
    least=st.integers(1, 6),
    values=st.integers(1, 3),
    node_of=st.sampled_from(
        [lambda records: 0 * records.ids, lambda records: records.provider % 2]
    ),
    parted=st.booleans(),
)
def test_the_best_cut_is_best_of_all_cuts(shape, least, values, node_of, parted):
    """Of the whole, of nodes that were cut between providers, and where equal records part."""
    records = random_records(**shape)
    node = node_of(records)
    if parted:
        node = (node + records.ids) % 2
    order = np.argsort(node, kind="stable")
    sizes = np.bincount(node)
    nodes = Nodes(order, starts_of(sizes)).select(sizes > 0)
    asked = np.full(nodes.count, least)
    loss, last = best_cuts.best_cuts(records, nodes, asked, values, parted)

    def allowed(side: list[int]) -> bool:
        return len(side) >= least and len(set(records.sensitive[side])) >= values

    for axis, codes in enumerate(records.codes):
        for at, number in enumerate(np.unique(node)):
            rows = np.flatnonzero(node == number)
            expected = reference.best_cut(
                records.codes.tolist(), records.axes.positions, axis, rows.tolist(), allowed
            )
            assert loss[axis, at] == pytest.approx(expected)
            if np.isfinite(expected):
                left = codes[rows] <= last[axis, at]
                assert allowed(rows[left].tolist())
                assert allowed(rows[~left].tolist())


@pytest.mark.parametrize("leaves", [12, 360])
@pytest.mark.parametrize("seed", range(3))
def test_labels_are_cut_where_they_and_those_below_them_lose_least(seed, leaves):
    """Leaves, pairs or triples of them, sixes and all; labels are looked up in paths."""
    size = 2 + seed % 2
    paths = [(leaf, 1000 + leaf // size, 2000 + leaf // 6, 3000) for leaf in range(leaves)]
    rng = np.random.default_rng(seed)
    codes = rng.integers(0, leaves, (1, 40)).astype(np.int16)
    base = random_records(seed, rows=40, quasi=1)
    axes = Axes((np.linspace(0, 1, leaves),), (np.array(paths).T,))
    records = replace(base, codes=codes, axes=axes)

    def lost(side: list[int]) -> float:
        level = next(i for i in range(4) if len({paths[leaf][i] for leaf in side}) == 1)
        below = max(level - 1, 0)
        label = [leaf for leaf in range(leaves) if paths[leaf][level] == paths[side[0]][level]]
        ends = paths[min(side)][below], paths[max(side)][below]
        touched = [leaf for leaf in range(leaves) if ends[0] <= paths[leaf][below] <= ends[1]]
        return len(side) * (len(label) + len(touched) - 2) / (leaves - 1)

    def between_blocks(last: int) -> bool:
        few = next(i for i in range(4) if paths[held[-1]][i] - paths[held[0]][i] < 128)
        return paths[last][few] != paths[min(c for c in held if c > last)][few]

    held = sorted(codes[0].tolist())
    cuts = {
        last: lost([c for c in held if c <= last]) + lost([c for c in held if c > last])
        for last in held
        if last < held[-1] and between_blocks(last)
    }
    loss, last = best_cuts.best_cuts(records, mondrian.root_node(records), np.array([1]), 1)
    assert loss[0, 0] == pytest.approx(min(cuts.values()))
    assert cuts[int(last[0, 0])] == pytest.approx(min(cuts.values()))


def test_many_codes_are_cut_in_bins():
    rng = np.random.default_rng(2)
    base = random_records(4, rows=500, quasi=1)
    places = np.sort(rng.random(5000))
    places = (places - places[0]) / (places[-1] - places[0])
    codes = rng.integers(0, 5000, (1, 500)).astype(np.int32)
    records = CodedRecords(
        codes, base.provider, 4, base.sensitive, base.values, base.ids, Axes((places,), (None,))
    )
    labels = mondrian.mondrian(records, guard_of(10, 1, 0), CutRules(split="loss"))
    assert np.bincount(labels).min() >= 10
    assert labels.max() > 20


def test_fitness_takes_the_cut_with_the_best_worse_side():
    # Along the first column the sides hold 3 and 1 values, along the second 2 and 2 each.
    codes = np.array([[0, 0, 0, 0, 1, 1, 1, 1], [0, 1, 0, 1, 0, 1, 0, 1]], dtype=np.int16)
    sensitive = np.array([0, 1, 2, 0, 3, 3, 3, 3], dtype=np.int32)
    even = np.array([0.0, 1.0])
    axes, owners = Axes((even, even / 2), (None, None)), np.zeros(8, np.int32)
    records = CodedRecords(codes, owners, 1, sensitive, 4, np.arange(8), axes)
    guard = guard_of(4, 1, 0)
    by_range = mondrian.mondrian(records, guard, CutRules())
    assert as_sets(by_range) == {frozenset(range(4)), frozenset(range(4, 8))}
    by_fitness = mondrian.mondrian(records, guard, CutRules(split="fitness"))
    assert as_sets(by_fitness) == {frozenset(range(0, 8, 2)), frozenset(range(1, 8, 2))}
