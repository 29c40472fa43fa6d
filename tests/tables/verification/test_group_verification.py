"""All groups at once are settled as every coalition and every set in between says."""

from __future__ import annotations

from collections import Counter
from fractions import Fraction
from itertools import product

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from evidence import coalition_reference as reference
from evidence.random_groups import even_group, frame, random_group, random_people
from quiltwork.tables.codes.group import Group, count_groups
from quiltwork.tables.codes.histogram import SecretCounts
from quiltwork.tables.constraints import (
    EntropyLDiversity,
    KAnonymity,
    LDiversity,
    RecursiveLDiversity,
    TCloseness,
)
from quiltwork.tables.constraints.coalition_bounds import BROKEN, OPEN, SAFE
from quiltwork.tables.constraints.corners import violations_of_group, worst_corners
from quiltwork.tables.constraints.t_closeness import ExcessDistance
from quiltwork.tables.table import Table
from quiltwork.tables.verification import find_breach
from quiltwork.tables.verification.group_verification import groups_withstand
from tests.sizes import sample

KINDS = ("k", "l", "entropy", "recursive", "equal", "ordered")


def rule_of(kind, rng, records):
    """A constraint and the same as a rule on records."""
    values = sorted({record.value for record in records})
    once = list({(record.person, record.value): record for record in records}.values())
    number, quarters = int(rng.integers(1, 4)), Fraction(int(rng.integers(4, 12)), 4)
    t = Fraction(int(rng.integers(0, 12)), 12)
    return {
        "k": (KAnonymity(number), reference.k_anonymous(number)),
        "l": (LDiversity(number), reference.distinct_diverse(number)),
        "entropy": (EntropyLDiversity(quarters), reference.entropy_diverse(quarters)),
        "recursive": (
            RecursiveLDiversity(quarters, number),
            reference.recursively_diverse(quarters, number),
        ),
        "equal": (TCloseness(t), reference.close(t, once, None)),
        "ordered": (TCloseness(t, "ordered"), reference.close(t, once, values)),
    }[kind]


def settled_as_defined(seed, kind, people):
    """Settle a random table; return (status, truth) of its groups."""
    rng = np.random.default_rng(seed)
    if people:
        records, labels = random_people(rng, int(rng.integers(4, 10)), int(rng.integers(1, 3)))
    else:
        make = even_group if seed % 2 else random_group
        records = make(rng, int(rng.integers(4, 10)))
        labels = [int(g) for g in rng.integers(0, 1 + seed % 3 // 2, len(records))]
    constraint, rule = rule_of(kind, rng, records)
    table = Table(
        frame(records, labels),
        "provider",
        ["group"],
        "value",
        subject="person" if people else None,
        ordinal={"value": sorted({record.value for record in records})},
    )
    counts = count_groups(table.encoded, table.groups.labels, table.groups.count)
    bound, m = constraint.bind(table.encoded), int(rng.integers(0, 4))
    status = bound.bound(counts, m)
    withstand = groups_withstand(counts, bound, m)
    found = []
    for g in range(counts.groups):
        group = [r for r, at in zip(records, table.groups.labels, strict=True) if at == g]
        truth = reference.breached(group, records, m, rule)
        outcome = find_breach(counts.cut(g), bound, m)
        assert (outcome.coalition is None) is (truth is None), (records, labels, m, kind)
        assert bool(withstand[g]) is (truth is None)
        if outcome.coalition is not None:
            assert not bound.holds(outcome.left)
        found.append((int(status[g]), truth is not None))
    return found


@pytest.mark.parametrize("people", [False, True])
@pytest.mark.parametrize("kind", KINDS)
def test_groups_are_settled_as_the_definition_says(kind, people):
    seen = Counter()
    for seed in range(sample(30, full=60)):
        seen.update(settled_as_defined(seed, kind, people))
    assert seen[SAFE, True] == seen[BROKEN, False] == 0, seen
    broken, safe = (
        sum(n for (_, one), n in seen.items() if one is truth) for truth in (True, False)
    )
    assert min(broken, safe) >= 5, "the tables are too one-sided"
    if kind == "k" and not people:
        assert seen[OPEN, True] + seen[OPEN, False] == 0, "nothing is left to search"


HISTOGRAMS = st.lists(
    st.tuples(st.integers(0, 7), st.integers(0, 4)), min_size=1, max_size=4
).filter(lambda cells: any(low + more for low, more in cells))
LEVELS = st.fractions(1, 3, max_denominator=4)


def histogram(point):
    point = np.array(point)
    there = np.flatnonzero(point)
    return SecretCounts(int(point.sum()), there, point[there])


def constraint_of(draw, values):
    kind = draw(st.sampled_from(KINDS[2:]))
    if kind == "entropy":
        return EntropyLDiversity(draw(LEVELS))
    if kind == "recursive":
        return RecursiveLDiversity(draw(st.fractions(Fraction(1, 3), 3)), draw(st.integers(1, 4)))
    whole = draw(st.lists(st.integers(0, 9), min_size=values, max_size=values).filter(any))
    part = TCloseness(draw(st.fractions(0, Fraction(9, 10))), kind, tuple(whole))
    if draw(st.booleans()):
        return part
    # A tie: t is the distance of some histogram.
    tie = draw(st.lists(st.integers(0, 7), min_size=values, max_size=values).filter(any))
    distance = part.emd(histogram(tie))
    return TCloseness(min(distance, Fraction(9, 10)), kind, tuple(whole))


@given(st.data())
@settings(max_examples=sample(125, full=250))
def test_worst_corners_are_those_of_every_histogram_in_between(data):
    boxes = data.draw(HISTOGRAMS)
    part = constraint_of(data.draw, len(boxes))
    low = np.array([[low for low, _ in boxes]])
    high = low + np.array([[more for _, more in boxes]])
    found = part.worst_between(low, high)
    inside = product(*(range(a, b + 1) for a, b in zip(low[0], high[0], strict=True)))
    truth = any(not part.holds(histogram(point)) for point in inside)
    assert bool(found.safe[0]) is not truth
    assert bool(found.violated[0]) is truth
    if truth:
        assert (found.point[0] >= low[0]).all()
        assert (found.point[0] <= high[0]).all()
        assert not part.holds(histogram(found.point[0]))


def test_numbers_beyond_exact_floats_are_decided_as_well():
    """With huge denominators F is rounded; ties go to exact fractions."""
    whole = (1, 1, 1)
    third = TCloseness(Fraction(1, 3), "equal", whole)
    for change, safe in ((0, True), (Fraction(1, 10**30), True), (-Fraction(1, 10**30), False)):
        part = TCloseness(third.t + change, "equal", whole)
        box = np.array([[4, 2, 0]])
        assert part.worst_between(box, box).safe[0] == safe
    recursive = RecursiveLDiversity(Fraction(10**30 + 1, 10**30), 2)
    even = np.array([[4, 2, 2]])
    assert recursive.worst_between(even, even).safe[0]
    tie = RecursiveLDiversity(Fraction(10**30, 10**30), 2)
    assert not tie.worst_between(even, even).safe[0]


def test_boxes_that_stay_in_doubt_are_neither_safe_nor_broken():
    rng = np.random.default_rng(4)
    whole = rng.integers(1, 20, 30)
    high = rng.integers(0, 20, (40, 30))
    low = rng.binomial(high, 0.5)
    everything = [
        TCloseness(t, "equal", tuple(whole.tolist())).worst_between(low, high)
        for t in (0.3, 0.35, 0.4, 0.45, 0.5)
    ]
    assert all((f.safe | f.violated).all() for f in everything)
    doubts = 0
    for t, full in zip((0.3, 0.35, 0.4, 0.45, 0.5), everything, strict=True):
        part = TCloseness(t, "equal", tuple(whole.tolist()))
        excess = ExcessDistance.of(part, int(high.sum(axis=1).max()))
        cut = worst_corners(excess, part, low, high, most_boxes=0)
        doubts += int((~cut.safe & ~cut.violated).sum())
        assert not (cut.safe & ~full.safe).any()
        assert not (cut.violated & full.safe).any()
    assert doubts > 0


def test_a_breach_is_told_where_another_group_cannot_be_decided():
    import pandas

    from quiltwork.errors import UnsupportedError
    from quiltwork.tables import verify_m_privacy
    from quiltwork.tables.constraints import Custom

    rows = [(p, 1, v) for p in "ABCDEFGH" for v in range(6)] * 3 + [("A", 2, 0)]
    table = Table(pandas.DataFrame(rows, columns=["p", "q", "s"]), "p", ["q"], "s")
    own = Custom(lambda counts: max(counts.values()) <= 100, name="no crowd")
    with pytest.raises(UnsupportedError, match="no crowd can fail when records are added"):
        verify_m_privacy(table, own, m=3)
    verdict = verify_m_privacy(table, own & KAnonymity(2), m=3)
    assert (verdict.private, verdict.group, verdict.broken) == (False, (2,), "2-anonymity")
    same_group = verify_m_privacy(table, own & KAnonymity(200), m=3)
    assert (same_group.private, same_group.group) == (False, (1,))


def test_where_nobody_is_left_every_constraint_fails():
    nothing, one = np.array([[0]]), np.array([[1]])
    for part in (
        TCloseness(0.5, "equal", (3,)),
        TCloseness(0.5, "ordered", (3,)),
        EntropyLDiversity(1),
        RecursiveLDiversity(Fraction(10**30 + 1, 10**30), 1),
    ):
        assert part.worst_between(one, one).safe[0]
        assert part.worst_between(nothing, one).violated[0]
        assert not part.holds(histogram([0]))


def test_t_closeness_without_a_table_is_refused():
    from quiltwork.errors import InvalidInputError

    with pytest.raises(InvalidInputError, match="compares with the whole table"):
        find_breach(Group.from_counts([[1, 2], [2, 1]]), TCloseness(0.5), 1)


def test_very_many_coalitions_are_refused_and_never_private():
    """Of 60 providers any 15 may collude: 53,194,089,192,720 coalitions."""
    import pandas

    from quiltwork.errors import UnsupportedError
    from quiltwork.tables import max_m, verify_m_privacy

    rng = np.random.default_rng(3)
    frame = pandas.DataFrame(
        {"p": rng.integers(0, 60, 3000), "q": 1, "s": rng.integers(0, 9, 3000)}
    )
    table = Table(frame, "p", ["q"], "s")
    with pytest.raises(
        UnsupportedError, match=r"53,194,089,192,720 coalitions, more than the limit"
    ):
        verify_m_privacy(table, EntropyLDiversity(8.9), m=15)
    safe = max_m(table, EntropyLDiversity(8))
    assert safe.breach is not None
    assert not safe.breach.settled
    assert verify_m_privacy(table, EntropyLDiversity(8), m=int(safe)).private
    verdict = verify_m_privacy(table, EntropyLDiversity(9), m=15)  # not even the whole group holds
    assert verdict.outsiders
    assert not verdict.private


def test_groups_far_from_failing_need_no_coalition():
    # A hundred providers have a record of each of 8 values: 30 of them leave 70 to 100 of each.
    rows = [(f"P{p}", "g", value) for p in range(100) for value in "abcdefgh"]
    table = Table(pd.DataFrame(rows, columns=["who", "box", "ill"]), "who", ["box"], "ill")
    counts = count_groups(table.encoded, table.groups.labels, table.groups.count)
    for near, far in (
        (EntropyLDiversity(7.8), EntropyLDiversity(7.9)),
        (RecursiveLDiversity(0.36, 5), RecursiveLDiversity(0.35, 5)),
        (TCloseness(0.0883), TCloseness(0.0882)),
    ):
        assert near.bind(table.encoded).bound(counts, 30) == SAFE
        assert far.bind(table.encoded).bound(counts, 30) == OPEN


@pytest.mark.parametrize("kind", KINDS[2:])
def test_people_with_several_values_are_safe_only_if_every_set_of_them_is(kind):
    """One group, its people by set of values: every set between what is left and all of them."""
    kinds = np.array([[1, 0, 0], [0, 1, 0], [0, 0, 1], [1, 1, 0], [1, 0, 1]])
    rng = np.random.default_rng(8)
    seen = Counter()
    for _ in range(sample(100, full=300)):
        weights = rng.integers(0, 3, (3, 5))
        group = Group(np.arange(3), np.arange(3), weights, kinds=kinds)
        number, quarters = int(rng.integers(1, 4)), Fraction(int(rng.integers(6, 13)), 4)
        part = {
            "entropy": EntropyLDiversity(quarters),
            "recursive": RecursiveLDiversity(quarters, number),
        }.get(kind) or TCloseness(Fraction(int(rng.integers(1, 8)), 12), kind, (5, 4, 3))
        kept = group.total - weights[0]
        found = violations_of_group(group, part, kept[None, :])
        inside = product(*(range(a, b + 1) for a, b in zip(kept, group.total, strict=True)))
        violated = any(not part.holds(group.histogram(np.array(point))) for point in inside)
        assert not (found.safe[0] and violated), (weights, part)
        if found.violated[0]:
            assert ((found.point[0] >= kept) & (found.point[0] <= group.total)).all()
            assert not part.holds(group.histogram(found.point[0]))
        seen[bool(found.safe[0]), bool(found.violated[0]), violated] += 1
        outcome = find_breach(group, part, 1, limit=10**5)
        assert outcome.coalition is not None or not violated
    assert min(seen[True, False, False], seen[False, True, True]) >= 5
    if kind == "recursive":
        assert seen[False, False, True] > 0, "only a person of several values shows it"
