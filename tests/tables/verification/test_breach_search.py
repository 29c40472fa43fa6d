from __future__ import annotations

import json
from fractions import Fraction
from itertools import combinations

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from evidence import coalition_reference as reference
from papers.examples.hospitals import table_a, table_b
from quiltwork.errors import InvalidInputError, NotPrivateError, UnsupportedError
from quiltwork.tables import anonymize, max_m, verify_m_privacy
from quiltwork.tables.codes.group import Group
from quiltwork.tables.constraints import (
    Custom,
    EntropyLDiversity,
    KAnonymity,
    LDiversity,
    RecursiveLDiversity,
    TCloseness,
)
from quiltwork.tables.table import Table
from quiltwork.tables.verification import METHODS, find_breach, group_is_private
from quiltwork.tables.verification.breach_search import violating_set
from quiltwork.tables.verification.coalitions import Checks
from quiltwork.tables.verification.paper_searches import search
from tests.sizes import sample

GROUPS = st.lists(
    st.lists(st.integers(0, 3), min_size=3, max_size=3), min_size=1, max_size=5
).filter(lambda counts: any(map(any, counts)))
CONSTRAINTS = st.builds(
    lambda k, number: KAnonymity(k) & LDiversity(number), st.integers(1, 7), st.integers(1, 3)
)
LOOSE = st.one_of(
    st.builds(EntropyLDiversity, st.fractions(1, 3, max_denominator=4)),
    st.builds(RecursiveLDiversity, st.fractions(Fraction(1, 2), 3), st.integers(1, 3)),
    st.builds(
        lambda t, how: TCloseness(t, how, reference=(3, 2, 4)),
        st.fractions(0, Fraction(9, 10), max_denominator=10),
        st.sampled_from(["equal", "ordered"]),
    ),
)


def table(rows, **roles):
    return Table(
        pd.DataFrame(rows, columns=["p", "q", "s", *roles.values()]), "p", ["q"], "s", **roles
    )


@pytest.mark.parametrize("method", ["exact", *METHODS])
def test_table_one_of_the_paper(method):
    """T_a is broken by P1, who is left with Sara; T_b holds for k = 2, not for k = 3."""
    strict, loose = KAnonymity(3) & LDiversity(2), KAnonymity(2) & LDiversity(2)
    for published in (table_a(), table_b()):
        assert verify_m_privacy(published, strict, m=0, method=method).private
    broken = verify_m_privacy(table_a(), strict, m=1, method=method)
    assert not broken.private
    assert broken.coalition == ("P1",)
    assert broken.group == ("20..30", "*****")
    assert dict(broken.left) == {"Epilepsy": 1}
    assert not verify_m_privacy(table_b(), strict, m=1, method=method).private
    assert verify_m_privacy(table_b(), loose, m=1, method=method).private
    assert not verify_m_privacy(table_b(), loose, m=2, method=method).private


@given(GROUPS, CONSTRAINTS, st.integers(0, 4))
@settings(max_examples=60)
def test_observation_2_1_more_colluders_are_never_safer(counts, constraint, m):
    group = Group.from_counts(counts)
    if group_is_private(group, constraint, m + 1):
        assert group_is_private(group, constraint, m)


@given(GROUPS, LOOSE, st.integers(0, 2))
@settings(max_examples=60)
def test_observation_2_1_holds_for_every_constraint(counts, constraint, m):
    group = Group.from_counts(np.minimum(counts, 2))
    if group_is_private(group, constraint, m + 1):
        assert group_is_private(group, constraint, m)


@given(GROUPS, CONSTRAINTS, st.integers(0, 4), st.integers(0, 4), st.integers(0, 2))
@settings(max_examples=100)
def test_theorem_2_1_added_records_never_break_m_privacy(counts, constraint, m, row, column):
    """For EG-monotonic constraints, and records of providers that are in the group already."""
    group = Group.from_counts(counts)
    grown = [list(line) for line in counts]
    present = [i for i, line in enumerate(counts) if any(line)]
    grown[present[row % len(present)]][column] += 1
    if group_is_private(group, constraint, m):
        assert group_is_private(Group.from_counts(grown), constraint, m)


def test_theorem_2_1_fails_without_eg_monotonicity():
    """One record more, and m-privacy with respect to entropy diversity is gone."""
    constraint = EntropyLDiversity(2)
    assert group_is_private(Group.from_counts([[1, 1], [1, 1]]), constraint, 0)
    assert not group_is_private(Group.from_counts([[1, 1], [1, 2]]), constraint, 0)


@given(GROUPS, CONSTRAINTS, st.integers(0, 4))
@settings(max_examples=40)
def test_observation_2_3_whole_coalitions_suffice(counts, constraint, m):
    """Against every set in between, by brute force on the same records."""
    counts = np.minimum(counts, 2)
    if not counts.any():
        return
    cells = [(p, v) for (p, v), n in np.ndenumerate(counts) for _ in range(n)]
    records = [reference.Record(p, v, i) for i, (p, v) in enumerate(cells)][:9]
    kept = np.zeros_like(counts)
    for record in records:
        kept[record.provider, record.value] += 1
    k, number = constraint.parts[0].k, constraint.parts[1].l
    both = (reference.k_anonymous(k), reference.distinct_diverse(number))
    truth = reference.breached(records, records, m, lambda r: all(rule(r) for rule in both))
    assert group_is_private(Group.from_counts(kept), constraint, m) is (truth is None)


@given(GROUPS, LOOSE, st.integers(0, 2))
@settings(max_examples=sample(60, full=120))
def test_corners_find_whatever_every_set_in_between_finds(counts, constraint, split):
    table_of = np.array(counts)
    group = Group.from_counts(counts)
    known = group.weights[: split + 1].sum(axis=0)
    kept = group.total - known
    everything = Custom(
        lambda c: constraint.holds(
            type(group.left(()))(
                sum(c.values()), np.array([*c], dtype=int), np.array([*c.values()])
            )
        )
    )
    assert table_of.any()
    found = violating_set(group, constraint, kept)
    brute = violating_set(group, everything, kept)
    assert (found is None) is (brute is None)
    if found is not None:
        assert (found >= kept).all()
        assert (found <= group.total).all()
        assert not constraint.holds(group.histogram(found))


def test_taking_away_some_of_the_own_records_can_breach_what_all_of_them_do_not():
    """The papers' gap: T and T∖T_I have entropy log 2, one record less of T has not."""
    group = table([("A", 1, "x"), ("A", 1, "y"), ("B", 1, "x"), ("B", 1, "y")])
    verdict = verify_m_privacy(group, EntropyLDiversity(2), m=1)
    assert not verdict.private
    assert sorted(verdict.left.values()) == [1, 2]
    for who in ("A", "B"):
        rest = [v for p, v in zip("AABB", "xyxy", strict=True) if p != who]
        assert sorted(rest) == ["x", "y"]


def test_a_person_in_two_hospitals_counts_once():
    rows = [("A", 1, "x", "ann"), ("B", 1, "x", "ann"), ("B", 1, "y", "bob")]
    assert verify_m_privacy(table(rows, subject="u"), KAnonymity(2), m=0).private
    assert not verify_m_privacy(table(rows, subject="u"), KAnonymity(3), m=0).private
    assert verify_m_privacy(table([row[:3] for row in rows]), KAnonymity(3), m=0).private


def test_whoever_holds_any_record_of_a_person_knows_them():
    """A knows Ann from its own record, so B's record of Ann hides nobody."""
    rows = [("A", 1, "x", "ann"), ("B", 1, "x", "ann"), ("B", 1, "y", "bob"), ("C", 1, "x", "cy")]
    verdict = verify_m_privacy(table(rows, subject="u"), KAnonymity(2), m=1)
    assert verdict.coalition == ("B",)
    assert dict(verdict.left) == {"x": 1}
    apart = table([row[:3] for row in rows])
    assert verify_m_privacy(apart, KAnonymity(2), m=1).private


def test_separate_tables_of_shared_people_are_withheld_with_the_reason():
    columns = {"p": [*"AABBCC"], "q": [1, 1, 2, 2, 2, 2], "s": [*"xyxyxy"], "u": [*"abacde"]}
    shared = Table(pd.DataFrame(columns), "p", ["q"], "s", subject="u")
    with pytest.raises(NotPrivateError, match="removes all of that person's records"):
        anonymize(shared, KAnonymity(2), 1, method="separate")
    assert len(anonymize(shared, KAnonymity(2), 1, method="baseline").frame) == 6


def test_knowing_someone_reaches_into_other_groups():
    """A has Ann in its own group, and so knows her in the group of B and C."""
    rows = [("A", 2, "x", "ann"), ("B", 1, "x", "ann"), ("C", 1, "y", "bob")]
    rows += [("A", 2, "y", "dan"), ("C", 2, "x", "eve")]
    for method in ("exact", *METHODS):
        verdict = verify_m_privacy(table(rows, subject="u"), KAnonymity(1), m=2, method=method)
        assert not verdict.private
        assert verdict.group == (1,)
        assert set(verdict.coalition) == {"A", "C"}


def test_the_check_counts_of_a_known_lattice():
    """Four equal providers, m = 2: all safe, or all broken."""
    equal = Group.from_counts([[5]] * 4)
    safe, broken = KAnonymity(5), KAnonymity(11)
    expected = {"direct": (6, 1), "bottom-up": (11, 6), "top-down": (4, 5), "binary": (4, 2)}
    for method, (when_safe, when_broken) in expected.items():
        assert find_breach(equal, safe, 2, method, 100).checks == when_safe, method
        found = find_breach(equal, broken, 2, method, 100)
        assert found.checks == when_broken, method
        assert found.coalition is not None


def test_binary_prunes_in_both_directions():
    """Some coalitions of three breach, none of one: pairs around the border settle the rest."""
    group = Group.from_counts([[8], [6], [4], [3], [2], [2]])
    checked = []

    class Watched(Checks):
        def breached_by(self, coalition):
            members = frozenset(coalition)
            checked.append(members)
            return super().breached_by(members)

    constraint = KAnonymity(12)
    watched = Watched(group, constraint, 1000)
    assert search(group, constraint, 1, "binary", watched) is None
    verdicts = {c: constraint.holds(group.left(c)) for c in checked}
    assert len(verdicts) == len(checked), "a coalition was checked twice"
    for i, one in enumerate(checked):
        for earlier in checked[:i]:
            assert not (verdicts[earlier] and one <= earlier), "downward pruning missed"
            assert not (not verdicts[earlier] and earlier <= one), "upward pruning missed"


def test_adaptive_follows_the_average_fitness():
    weak = Group.from_counts([[2, 1]] * 6)
    strong = Group.from_counts([[40, 40, 40, 40]] * 6)
    constraint = KAnonymity(50) & LDiversity(4)
    for group, method in ((weak, "binary"), (strong, "top-down")):
        asked, expected = (
            find_breach(group, constraint, 3, name, 10_000) for name in ("adaptive", method)
        )
        assert (asked.coalition, asked.checks) == (expected.coalition, expected.checks)


@settings(max_examples=sample(40, full=400))
@given(seed=st.integers(0, 10**6))
def test_the_fewest_who_leave_few_values_are_found(seed):
    rng = np.random.default_rng(seed)
    size, values = rng.integers(1, 8, 2)
    holds = rng.random((size, values)) < rng.choice([0.15, 0.3, 0.5])
    holds[np.arange(size), rng.integers(0, values, size)] = True
    group = Group.from_counts(holds.astype(int))
    for number in range(1, values + 2):
        fewest = next(
            len(who)
            for some in range(size + 1)
            for who in combinations(range(size), some)
            if some == size or np.delete(holds, who, axis=0).any(axis=0).sum() < number
        )
        for m in range(size):
            outcome = find_breach(group, LDiversity(number), m)
            assert outcome.settled
            assert (outcome.coalition is not None) == (fewest <= m)


def test_limits_fail_closed():
    rng = np.random.default_rng(1)
    group = Group.from_counts((rng.random((40, 24)) < 0.2).astype(int))
    outcome = find_breach(group, LDiversity(12), 20, limit=5)
    assert not outcome.settled
    assert not group_is_private(group, LDiversity(12), 20, limit=5)
    frame = pd.DataFrame(
        [(p, 0, v) for p, v in zip(*group.weights.nonzero(), strict=True)], columns=["p", "q", "s"]
    )
    verdict = verify_m_privacy(Table(frame, "p", ["q"], "s"), LDiversity(12), m=20, limit=5)
    assert (verdict.private, verdict.settled, verdict.coalition) == (False, False, ())
    assert "Undecided" in verdict.explain()


def test_what_cannot_be_decided_is_refused_with_the_reason():
    rows = [(p, 1, v) for p in "ABCDEFGH" for v in range(6)] * 3
    constraint = Custom(lambda counts: max(counts.values()) <= 100, name="no crowd")
    with pytest.raises(UnsupportedError, match="no crowd can fail when records are added"):
        verify_m_privacy(table(rows), constraint, m=3)
    declared = Custom(constraint.function, eg_monotonic=True, name="no crowd")
    assert verify_m_privacy(table(rows), declared, m=3).private


@pytest.mark.parametrize(
    ("change", "error", "message"),
    [
        ({"m": -1}, InvalidInputError, "m must be at least 0"),
        ({"method": "guess"}, InvalidInputError, "not 'guess'"),
        ({"constraint": 3}, InvalidInputError, "3 is not a privacy constraint"),
        ({"limit": 0}, InvalidInputError, "limit must be at least 1"),
        (
            {"constraint": EntropyLDiversity(2), "method": "binary"},
            UnsupportedError,
            "entropy 2-diversity is not",
        ),
    ],
)
def test_what_is_wrong_is_said(change, error, message):
    arguments = {"constraint": KAnonymity(1), "m": 1, **change}
    with pytest.raises(error, match=message):
        verify_m_privacy(table_a(), **arguments)


def test_outsiders_are_named_as_such():
    verdict = verify_m_privacy(table_a(), KAnonymity(4), m=1)
    assert verdict.outsiders
    assert len(verdict.coalition) == 1
    assert verdict.explain().startswith("Not private: Anyone breaches 4-anonymity")
    alone = table([("A", 1, "x")])
    assert verify_m_privacy(alone, KAnonymity(2), m=3).coalition == ()
    assert verify_m_privacy(alone, KAnonymity(1), m=3).private


def test_the_document_holds_what_was_found():
    verdict = verify_m_privacy(table_a(), KAnonymity(3), m=1)
    body = json.loads(verdict.to_json())
    assert body["coalition"] == ["P1"]
    assert body["left"] == [{"value": "Epilepsy", "records": 1}]
    assert not verdict


def test_one_provider_per_record_at_a_hundred_thousand_rows():
    rng = np.random.default_rng(0)
    rows = 100_000
    frame = pd.DataFrame(
        {"p": np.arange(rows), "q": rng.integers(0, 500, rows), "s": rng.integers(0, 14, rows)}
    )
    wide = Table(frame, "p", ["q"], "s")
    smallest = int(frame.groupby("q").size().min())
    for m in (1, 30):
        assert verify_m_privacy(wide, KAnonymity(smallest - m) & LDiversity(4), m=m).private
        assert not verify_m_privacy(wide, KAnonymity(smallest - m + 1), m=m).private


@given(st.integers(0, 10**6), st.integers(0, 4), st.integers(1, 4), st.integers(1, 6))
@settings(max_examples=40)
def test_whole_tables_are_settled_as_their_groups_are(seed, m, number, k):
    rng = np.random.default_rng(seed)
    rows = int(rng.integers(1, 120))
    frame = pd.DataFrame(
        {
            "p": rng.integers(0, 7, rows),
            "q": rng.integers(0, 6, rows),
            "s": rng.integers(0, 5, rows),
        }
    )
    constraint = KAnonymity(k) & LDiversity(number)
    verdict = verify_m_privacy(Table(frame, "p", ["q"], "s"), constraint, m)
    for value in frame["q"].unique():
        part = frame[frame["q"] == value]
        inside = sorted(part["p"].unique())
        rests = (
            part[~part["p"].isin(out)] for out in combinations(inside, min(m, len(inside) - 1))
        )
        broken = any(len(r) < k or r["s"].nunique() < number for r in rests)
        if broken:
            assert not verdict.private
            assert verdict.group == (value,), "the first broken group in the order of the rows"
            return
    assert verdict.private


def test_factors_beyond_machine_integers_are_compared_exactly():
    frame = pd.DataFrame({"who": [*"aabb"], "age": 1, "ill": [*"xyxy"]})
    table = Table(frame, "who", ["age"], "ill")
    for l_, safe in ((2, True), (9, False)):
        asked = RecursiveLDiversity(Fraction(10**30), l_)
        assert verify_m_privacy(table, asked, 1).private is safe


@pytest.mark.parametrize(
    ("limit", "more", "groups"),
    [
        (40, 2, ["3a3a3a4b1a0c0e0b2a1b4a0c", "4b1c0b2b3a3c0a", "3a3b1b"]),
        (100, 0, ["1e1b1c2a0a0b0a3b0b1b2c", "2b2c0b0d2a0a", "1a3c2c2b0b"]),
    ],
)
def test_a_group_with_too_many_sets_to_try_is_asked_again_about_fewer(limit, more, groups):
    """It was taken for safe if a later group was breached: max_m was too large."""
    rows = [
        (q, part[i], part[i + 1]) for q, part in enumerate(groups) for i in range(0, len(part), 2)
    ]
    table = Table(pd.DataFrame(rows, columns=["q", "who", "ill"]), "who", ["q"], "ill")
    asked = Custom(lambda counts: 2 * max(counts.values()) <= sum(counts.values()) + more)
    assert not verify_m_privacy(table, asked, 1).private
    assert max_m(table, asked, limit) <= 0


def test_what_is_proven_once_is_not_lost_when_checks_run_out():
    """A hard group alone: the answer is the largest that its searches proved."""
    chance = np.random.default_rng(0)
    rows = [(who, v) for who in range(200) for v in chance.choice(40, 3, replace=False)]
    table = Table(pd.DataFrame(rows, columns=["who", "ill"]).assign(q=1), "who", ["q"], "ill")
    assert max_m(table, KAnonymity(4)) == 198  # the last group is the weakest
    safe = max_m(table, LDiversity(20), 20_000)
    assert not safe.breach.settled
    assert safe >= 120  # 104 where the group was asked again, with fewer checks
    assert verify_m_privacy(table, LDiversity(20), int(safe)).private
