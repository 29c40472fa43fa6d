"""What the algorithm gives away, against every assignment of values from which it is run again."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest

from evidence.checks.minimality import check, consistent, number_of_ways
from quiltwork.errors import NotPrivateError
from quiltwork.tables import (
    Custom,
    EntropyLDiversity,
    KAnonymity,
    LDiversity,
    RecursiveLDiversity,
    Table,
    TCloseness,
    anonymize,
)
from quiltwork.tables.partitioning.guards import records_needed
from quiltwork.tables.risk import assess, refused_cuts
from quiltwork.tables.risk.minimality import without_other_value


def table_of(ill, age=None, **more):
    """People by age, from 0 on unless it is said."""
    frame = pd.DataFrame({"age": range(len(ill)) if age is None else age, "ill": [*ill], **more})
    return Table(frame, "who" if more else None, ["age"], "ill")


IN_PAIRS = table_of("aabbabab", [20, 21, 30, 31, 40, 41, 50, 51])


def test_nothing_is_ruled_out_where_nothing_is_said_to_be_given_away():
    check(4)


def test_a_cut_that_was_refused_above_the_final_groups_counts():
    """By age first, 0 and 1 would have been apart, but they share a value; so it was cut by sex.

    No final group could be cut further by its size. Yet of nine assignments that fit the table
    only the true one makes it: everybody is pinned down.
    """
    frame = pd.DataFrame({"age": [0, 1, 3, 4, 2, 0], "sex": [0, 1, 0, 0, 1, 1], "ill": [*"aabbba"]})

    def make(given):
        table = Table(given, None, ["age", "sex"], "ill")
        return anonymize(table, KAnonymity(2) & LDiversity(2), 0, split="range")

    made = make(frame)
    assert number_of_ways(made) == 9
    assert [way.tolist() for way in consistent(made, make)] == [[*"aabbba"]]
    found = refused_cuts(made)
    assert (found.groups, found.of, found.rows, found.nothing) == (2, 2, 6, False)
    guesses = found.guesses
    assert guesses.least == guesses.most == guesses.sure_right == 6
    assert (guesses.by_group, guesses.reached) == (2 / 3, 1.0)
    assert without_other_value(made).all()  # no exchange makes the same groups either
    told = made.report().assessment.attacks[0]
    assert (told.decided, told.certain) == ("exactly", "6")
    assert "2 of 2 groups with 6 records. The value of 6 records becomes certain." in told.found


def test_a_group_that_was_left_whole_counts():
    table = table_of("aabbabab")  # 0..3 is not cut, 4..7 is
    made = anonymize(table, KAnonymity(2) & LDiversity(2), 0)
    found = refused_cuts(made)
    assert (found.groups, found.of, found.rows) == (1, 3, 4)


def test_sizes_alone_give_nothing_away():
    table = table_of("xy" * 20, who=[*"ab"] * 20)
    for asked in (KAnonymity(3), KAnonymity(4) & LDiversity(1)):
        for choices in ({}, {"split": "loss"}, {"suppression": 0.2}, {"method": "separate"}):
            assert refused_cuts(anonymize(table, asked, 1, **choices)).nothing


@pytest.mark.parametrize(
    ("m", "choices"),
    [
        (1, {}),
        (0, {}),  # compares with groups of single providers
        (0, {"method": "separate"}),
        (0, {"method": "baseline", "split": "fitness"}),
        (0, {"method": "baseline", "relaxed": True}),
        (0, {"method": "baseline", "quality": True}),
    ],
)
def test_nothing_is_promised_where_sensitive_values_have_another_way_in(m, choices):
    """Two values in turns, far apart: no cut is refused because of them."""
    table = table_of("xy" * 16, who=[*"aabb"] * 8)
    made = anonymize(table, KAnonymity(4) & LDiversity(2), m, **choices)
    found = refused_cuts(made)
    assert not found.nothing
    told = made.report().assessment.attacks[0]
    assert (told.decided, told.least, told.most) == ("bounded", 0, found.most)
    assert found.most <= 4  # other values make the same groups: 0 for most of these choices
    plain = anonymize(table, KAnonymity(4) & LDiversity(2), 0, method="baseline")
    assert refused_cuts(plain).nothing


def test_other_constraints_and_left_out_rows():
    rng = np.random.default_rng(1)
    ill = rng.choice(["x", "y"], 120, p=[0.85, 0.15])
    table = table_of(ill, rng.integers(0, 50, 120))
    for asked in (
        KAnonymity(4) & EntropyLDiversity(1.3),
        KAnonymity(4) & Custom(lambda counts: len(counts) == 2, eg_monotonic=True),
    ):
        made = anonymize(table, asked, 0, suppression=0.2)
        found = refused_cuts(made)
        assert found.rows <= len(made.rows)
        assert 0 < found.groups <= found.of == made.boxes.count
        assert not found.nothing


def test_numbers_of_values_are_numbers_of_records():
    assert records_needed(KAnonymity(3) & EntropyLDiversity(4.5)) == 5
    assert records_needed(RecursiveLDiversity(2, 4) & LDiversity(2)) == 4
    assert records_needed(TCloseness(0.5)) == 1
    assert records_needed(KAnonymity(3) & LDiversity(4), alone=False) == 3


def test_one_person_may_have_all_values_that_are_asked_for():
    frame = pd.DataFrame({"who": [*"aab"], "age": 30, "ill": [*"xyx"], "person": [1, 1, 2]})
    table = Table(frame, "who", ["age"], "ill", subject="person")
    made = anonymize(table, LDiversity(2), 0, method="separate", suppression=0.5)
    assert not refused_cuts(made).nothing


def test_people_with_several_records_are_not_alike():
    def made(order):
        rows = [(20, *order[0], 1), (20, *order[1], 2), (20, *order[2], 3)]
        rows += [(60, "C", "x", 1), (60, "C", "y", 4), (60, "C", "z", 5)]
        frame = pd.DataFrame(rows, columns=["age", "who", "ill", "person"])
        table = Table(frame, "who", ["age"], "ill", subject="person")
        return anonymize(table, LDiversity(2), 1)

    # C knows the first person from elsewhere, and would have taken x or y away beside its own z.
    found = refused_cuts(made(["Cz", "Ax", "By"]))
    for other in (["Ax", "Cz", "By"], ["By", "Ax", "Cz"]):
        with pytest.raises(NotPrivateError):
            made(other)
    assert found.most == 2  # the first person's records


def test_the_warning_has_the_numbers():
    for asked, words in (
        (KAnonymity(2) & LDiversity(2), "1 of 3 groups with 4 records"),
        (KAnonymity(2), "Nothing: every way"),
    ):
        report = anonymize(IN_PAIRS, asked, 0).report()
        assert words in report.assessment.attacks[0].found
        assert report.body()["refused"]["groups"] == ("1 of 3" in words)
    assert assess(IN_PAIRS).refused is None
    assert assess(IN_PAIRS).attacks[0].decided == "not decided"
