from __future__ import annotations

from datetime import date

import numpy as np
import pandas as pd
import pytest

from quiltwork.errors import InvalidInputError, UnsupportedError
from quiltwork.publishing.constraints import EntropyLDiversity, KAnonymity, LDiversity
from quiltwork.publishing.encoding import Column, encode_column
from quiltwork.publishing.examples import PATIENTS, table_a, table_b
from quiltwork.publishing.provider_side import own_view
from quiltwork.publishing.reading import covers
from quiltwork.publishing.table import Table

ROLES = {"provider": None, "quasi_identifiers": ["age", "zip"], "sensitive": "disease"}


def published(table):
    return Table(table.frame.drop_columns("hospital"), **ROLES)


def rows_of(*hospitals):
    rows = [patient for patient in PATIENTS if patient[0] in hospitals]
    frame = pd.DataFrame(rows, columns=["hospital", "name", "age", "zip", "disease"])
    return Table(frame.drop(columns=["hospital", "name"]), **ROLES)


def test_p1_finds_sara():
    view = own_view(published(table_a()), rows_of("P1"), KAnonymity(3))
    assert view.smallest.group == ("20..30", "*****")
    assert view.smallest.left == {"Epilepsy": 1}
    assert [group.group for group in view.disclosed] == [("20..30", "*****")]
    assert [group.group for group in view.broken] == [("20..30", "*****")]
    assert (view.own_rows, view.unmatched, view.ambiguous) == (3, 0, 0)


def test_it_sees_no_more_than_a_removal_of_its_rows():
    """In T_a groups are disjoint, so the view is what the verification with all data leaves."""
    whole = table_a().frame.to_pandas()
    for hospitals in (("P1",), ("P2",), ("P1", "P2"), ("P2", "P3", "P4")):
        view = own_view(published(table_a()), rows_of(*hospitals))
        rest = whole[~whole["hospital"].isin(hospitals)]
        touched = whole[whole["hospital"].isin(hospitals)].groupby("age").size().index
        sizes = rest[rest["age"].isin(touched)].groupby("age").size()
        assert view.smallest.left_size == sizes.min()
        assert view.groups == len(sizes)


def test_overlapping_boxes_never_overstate_what_is_left():
    """Ages overlap in T_b: a row of P1 may be in two groups and counts in both."""
    view = own_view(published(table_b()), rows_of("P1"), KAnonymity(2))
    assert view.ambiguous > 0
    assert view.smallest.left_size <= 2


def test_others_without_rows_are_bounded():
    table = published(table_a())
    alone = own_view(table, rows_of("P2"), KAnonymity(2))
    assert [group.group[0] for group in alone.broken] == ["36..40"]
    joined = own_view(table, rows_of("P2"), KAnonymity(2) & LDiversity(1), others=1, at_most=2)
    assert [group.group[0] for group in joined.broken] == ["31..35", "36..40"]
    diverse = own_view(table, rows_of("P2"), LDiversity(2), others=1, at_most=1)
    assert "31..35" in [group.group[0] for group in diverse.broken]
    with pytest.raises(InvalidInputError, match="at_most"):
        own_view(table, rows_of("P2"), KAnonymity(2), others=2)
    with pytest.raises(UnsupportedError, match="pool your rows"):
        own_view(table, rows_of("P2"), EntropyLDiversity(2), others=1, at_most=1)


def test_rows_that_were_not_published():
    mine = Table(
        pd.DataFrame({"age": [99, 24], "zip": [1, 98745], "disease": ["Flu", "Plague"]}), **ROLES
    )
    view = own_view(published(table_a()), mine)
    assert (view.unmatched, view.groups, view.smallest) == (2, 0, None)
    assert view.explain() == "None of these rows shares a published group with records of others."
    with pytest.raises(InvalidInputError, match="same quasi-identifiers"):
        own_view(published(table_a()), Table(mine.frame, None, ["age"], "disease"))


def test_the_words():
    text = own_view(published(table_b()), rows_of("P1", "P2"), KAnonymity(3)).explain()
    assert "fewest others left" in text
    assert "fit several groups" in text


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("20..30", [True, True, False, False]),
        (25, [False, True, False, False]),
        ("25", [False, True, False, False]),
        ("{20..30, missing}", [True, True, False, True]),
        ("missing", [False, False, False, True]),
        (None, [False, False, False, True]),
        ("*", [True, True, True, False]),
        ("low", [False, False, False, False]),
    ],
)
def test_what_texts_cover_of_numbers(text, expected):
    ages = Column("age", "numeric", (20, 25, 31, None), np.zeros(0, dtype=np.int32))
    assert covers(text, ages).tolist() == expected


def test_what_texts_cover_of_other_columns():
    frame = pd.DataFrame({"d": ["a", "c"], "born": [date(2020, 1, 1), date(2021, 6, 1)]})
    order = ["a", "b", "c"]
    degrees = encode_column(frame, "d", order=order)
    assert covers("a..b", degrees, order).tolist() == [True, False]
    assert covers("b..c", degrees, order).tolist() == [False, True]
    born = encode_column(frame, "born")
    assert covers("2020-12-31..2021-12-31", born).tolist() == [False, True]
    names = encode_column(frame, "d")
    assert covers("{a, b}", names).tolist() == [True, False]
    assert covers("c", names).tolist() == [False, True]


def test_hierarchies_of_the_own_table_are_read():
    paths = [("12367", "123**", "*"), ("98745", "987**", "*")]
    frame = pd.DataFrame({"zip": ["12367", "98745"], "ill": ["x", "x"]})
    mine = Table(frame, None, ["zip"], "ill", hierarchies={"zip": paths})
    shown = pd.DataFrame({"zip": ["123**"] * 3, "ill": ["x", "y", "y"]})
    view = own_view(Table(shown, None, ["zip"], "ill"), mine)
    assert view.smallest.left == {"y": 2}
    assert view.unmatched == 1
