"""Exchanges between groups keep every record, keep every group private, and pay."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from evidence.mondrian_reference import withstands
from evidence.random_tables import guard_of, random_records
from quiltwork.tables.partitioning import repair
from quiltwork.tables.partitioning.mondrian import CutRules, mondrian
from quiltwork.tables.partitioning.nodes import Nodes, bounds, starts_of


def loss_and_pairs(records, labels) -> tuple[float, int]:
    sizes = np.bincount(labels)
    nodes = Nodes(np.argsort(labels, kind="stable"), starts_of(sizes))
    extent = records.axes.widths(*bounds(records, nodes)).sum(axis=0)
    return float((extent * sizes).sum()), int((sizes**2).sum())


@settings(max_examples=20)
@given(seed=st.integers(0, 10**6), m=st.integers(0, 2), l=st.integers(1, 2))
def test_groups_stay_private_and_exchanges_pay(seed, m, l):  # noqa: E741
    records = random_records(seed, rows=200, codes=12, providers=3)
    guard = guard_of(4, l, m)
    before = mondrian(records, guard, CutRules(split="loss"))
    after = repair.repair(records, before, guard)
    for group in range(after.max() + 1):
        rows = after == group
        pairs = zip(records.provider[rows], records.sensitive[rows], strict=True)
        assert withstands(pairs, 4, l, m)
    (loss, pairs_before), (new_loss, pairs_after) = (
        loss_and_pairs(records, labels) for labels in (before, after)
    )
    assert pairs_after <= pairs_before
    assert new_loss <= loss + repair.EXCHANGE * (pairs_before - pairs_after) + 1e-3
    assert new_loss <= repair.MOST_LOST * loss + 1e-3


@settings(max_examples=30)
@given(seed=st.integers(0, 10**6), number=st.integers(0, 9))
def test_the_nearest_rows_are_those_of_all_rows(seed, number):
    """Groups whose boxes are too far are not looked at; every row is here."""
    records = random_records(seed, rows=120, codes=9, quasi=3)
    rng = np.random.default_rng(seed)
    points = records.codes.astype(np.float32) / 8
    nodes = repair._nodes(np.unique(rng.integers(0, 12, 120), return_inverse=True)[1])
    low, high = (
        side.reduceat(points[:, nodes.rows], nodes.starts, axis=1)
        for side in (np.minimum, np.maximum)
    )
    spare = rng.integers(0, 4, nodes.count)
    spares = repair._Spares(points, nodes, low, high, spare)
    spares.take(np.flatnonzero(rng.random(len(spares.rows)) < 0.1)[:2])
    box = np.sort(rng.random((2, 3)).astype(np.float32), axis=0)
    found = spares.nearest(*box, number, 5)
    worth = 2 * repair.EXCHANGE * nodes.sizes[spares.owner] / 5
    far = (np.maximum(box[0] - spares.points.T, 0) + np.maximum(spares.points.T - box[1], 0)).sum(1)
    cost = np.where(spares.free & (spares.spare[spares.owner] > 0), far - worth, np.inf)
    left, expected = spares.spare.copy(), []
    for at in np.argsort(cost, kind="stable")[: 4 * number].tolist():
        if np.isfinite(cost[at]) and left[spares.owner[at]] > 0:
            left[spares.owner[at]] -= 1
            expected.append(cost[at])
    assert cost[found] == pytest.approx(expected[:number], abs=1e-5)


def test_duplicates_are_not_traded_for_wide_boxes():
    records = random_records(5, rows=2000, codes=20, quasi=3, providers=1)
    guard = guard_of(10, 1, 0)
    before = mondrian(records, guard, CutRules(split="loss"))
    after = repair.repair(records, before, guard)
    loss, pairs = loss_and_pairs(records, before)
    new_loss, new_pairs = loss_and_pairs(records, after)
    assert new_loss <= repair.MOST_LOST * loss + 1e-3
    assert new_pairs <= pairs


def test_every_row_has_a_group_whatever_the_blocks():
    records = random_records(1, rows=500, codes=9)
    labels = mondrian(records, guard_of(3, 1, 0), CutRules(split="loss"))
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(repair, "BLOCK", 100)
        after = repair.repair(records, labels, guard_of(3, 1, 0))
    assert len(after) == 500
    assert np.bincount(after).min() >= 3


def test_more_groups_come_of_the_same_rows():
    records = random_records(2, rows=2000, codes=30, quasi=4, providers=1)
    guard = guard_of(10, 2, 0)
    before = mondrian(records, guard, CutRules(split="loss"))
    after = repair.repair(records, before, guard)
    assert after.max() > before.max()
    assert loss_and_pairs(records, after)[1] < loss_and_pairs(records, before)[1]
