"""The top of the tree without Spark: cuts, routes and packing against plain loops."""

from __future__ import annotations

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

from quiltwork.tables.codes.encoding import CodedTable
from quiltwork.tables.codes.group import Group, one_group
from quiltwork.tables.constraints import KAnonymity, LDiversity
from quiltwork.tables.partitioning.coded_records import Axes, CodedRecords
from quiltwork.tables.partitioning.guards import Guard
from quiltwork.tables.spark.domains import Domains
from quiltwork.tables.spark.tree import Measure, Router, grow
from quiltwork.tables.spark.workers import PartVerdict, combine_verdicts, packed, unpacked
from quiltwork.tables.verification import Verdict, group_is_private

COUNTS = st.lists(st.integers(0, 9), min_size=2, max_size=12).filter(
    lambda counts: sum(c > 0 for c in counts) >= 2
)


AXES = Axes((np.linspace(0, 1, 40), np.linspace(0, 1, 5), np.zeros(1)), (None,) * 3)


def balanced_last(counts) -> int:
    return Axes((np.linspace(0, 1, len(counts)),), (None,)).balanced_cut(0, np.array(counts))


@given(COUNTS)
@settings(max_examples=200)
def test_the_cut_is_the_most_balanced_one_with_more_on_the_left_in_a_tie(counts):
    last = balanced_last(counts)
    total = sum(counts)
    sides = {c: sum(counts[: c + 1]) for c in range(len(counts))}
    proper = {c: left for c, left in sides.items() if 0 < left < total}
    best = min(abs(2 * left - total) for left in proper.values())
    assert abs(2 * sides[last] - total) == best
    assert sides[last] == max(left for left in proper.values() if abs(2 * left - total) == best)


def take_rows(count: int, seed: int) -> CodedRecords:
    rng = np.random.default_rng(seed)
    codes = (rng.integers(0, 40, count), rng.integers(0, 5, count), np.zeros(count, dtype=int))
    owners, secrets = rng.integers(0, 3, count), rng.integers(0, 4, count)
    return CodedRecords(np.stack(codes), owners, 3, secrets, 4, np.arange(count), AXES)


def measurer(rows: CodedRecords):
    """Counts of nodes from rows in memory, one by one."""

    def measure(router: Router, nodes: list[int]) -> dict[int, Measure]:
        where = router.route(rows)
        found = {}
        for node in nodes:
            here = np.flatnonzero(where == node)
            holdings = np.zeros((3, 4), dtype=np.int64)
            for row in here:
                holdings[rows.provider[row], rows.sensitive[row]] += 1
            values = tuple(
                np.bincount(codes[here], minlength=size)
                for codes, size in zip(rows.codes, (40, 5, 1), strict=True)
            )
            found[node] = Measure(values, one_group(holdings, holdings.shape[1]))
        return found

    return measure


@given(st.integers(0, 10**6), st.integers(20, 300), st.integers(10, 80))
@settings(max_examples=25)
def test_every_leaf_is_private_small_or_cannot_be_cut(seed, count, most):
    rows = take_rows(count, seed)
    asked, m = KAnonymity(4) & LDiversity(2), 1
    router, measure = Router(1), measurer(rows)
    roots = measure(router, [0])
    if not group_is_private(roots[0].holdings.cut(0), asked, m):
        return
    leaves = grow(router, roots, measure, AXES, Guard(asked, m), most)
    where = router.route(rows)
    assert set(np.unique(where)) == set(leaves)
    for leaf, found in leaves.items():
        assert found.size == (where == leaf).sum()
        private = group_is_private(found.holdings.cut(0), asked, m)
        assert private
        if found.size > most:
            assert not any(_cut_works(rows, where == leaf, axis, asked, m) for axis in range(3))


def _cut_works(rows: CodedRecords, here: np.ndarray, axis: int, asked, m: int) -> bool:
    codes = rows.codes[axis]
    counts = np.bincount(codes[here])
    if (counts > 0).sum() < 2:
        return False
    last = balanced_last(counts)
    for side in (here & (codes <= last), here & (codes > last)):
        holdings = np.zeros((3, 4), dtype=int)
        np.add.at(holdings, (rows.provider[side], rows.sensitive[side]), 1)
        if not group_is_private(Group.from_counts(holdings.tolist()), asked, m):
            return False
    return True


def test_records_survive_packing():
    rows = take_rows(57, 3)
    halves = [rows.take(np.arange(20)), rows.take(np.arange(20, 57))]
    none, ids = np.zeros(0, dtype=np.int64), np.arange(3)
    known = CodedTable((), none, ("a", "b", "c"), none, (*"wxyz",), "categorical", None, 0)
    domains = Domains(known, (), AXES, (), ids, {}, 57)
    read = unpacked(domains, [packed(half) for half in halves])
    for field in ("codes", "provider", "sensitive", "ids"):
        assert (getattr(rows, field) == getattr(read, field)).all()
    assert (read.providers, read.values) == (3, 4)


def test_a_proven_breach_of_any_part_is_told_first():
    def part(group: tuple, private: bool = False, settled: bool = True) -> PartVerdict:
        verdict = Verdict(private, (), group, 2, 1, "exact", "2-anonymity", settled=settled)
        return PartVerdict(verdict, 5, 1, 5, 2, 25)

    fine, doubtful = part((), private=True), part(("a", None), settled=False)
    later, first = part(("b", "c")), part(("b", None))
    assert combine_verdicts([fine, doubtful, later, first]).group == ("b", None)
    assert not combine_verdicts([fine, doubtful]).settled
    assert combine_verdicts([fine, fine]).private
    assert combine_verdicts([fine, later]).checks == 4


def test_one_tree_per_provider():
    rows = take_rows(50, 1)
    router = Router(3)
    left, right = router.cut(1, axis=1, last=2)
    expected = [
        p if p != 1 else (left if code <= 2 else right)
        for p, code in zip(rows.provider, rows.codes[1], strict=True)
    ]
    assert router.route(rows).tolist() == expected
    router.uncut(1)
    assert router.route(rows).tolist() == rows.provider.tolist()
