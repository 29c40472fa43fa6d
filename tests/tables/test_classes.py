"""What sensitive values count as: nothing where they are missing, a chapter where that is asked."""

from __future__ import annotations

import numpy as np
import pandas
import pytest

from evidence.random_tables import random_frame
from quiltwork.errors import InvalidInputError, NotPrivateError
from quiltwork.tables import (
    EntropyLDiversity,
    KAnonymity,
    LDiversity,
    RecursiveLDiversity,
    Table,
    TCloseness,
    anonymize,
    own_view,
    verify_m_privacy,
    verify_published,
)
from quiltwork.tables.metrics.models import privacy_models

ICD = [("E11", "E11*", "E*", "*"), ("E11.9", "E11*", "E*", "*"), ("I10", "I10*", "I*", "*")]


def table(values, **more):
    frame = pandas.DataFrame({"age": ["20..30"] * len(values), "ill": values})
    return Table(frame, None, ["age"], "ill", **{"missing": "value", **more})


@pytest.mark.parametrize("word", [None, "NA", " n/a ", "?", ""])
def test_a_missing_diagnosis_is_a_record_and_no_value(word):
    one = table(["flu", "flu", word])
    assert verify_m_privacy(one, KAnonymity(3), 0).private
    assert not verify_m_privacy(one, LDiversity(2), 0).private
    assert verify_m_privacy(table(["flu", "flu", word], count_missing=True), LDiversity(2), 0)
    assert privacy_models(one).distinct_l == 1
    assert privacy_models(one).k == 3


def test_no_illness_is_a_value_unless_it_may_be_a_missing_one():
    assert verify_m_privacy(table(["flu", "none"]), LDiversity(2), 0).private
    assert not verify_m_privacy(table(["flu", "none", None]), LDiversity(2), 0).private


@pytest.mark.parametrize(
    "asked", [LDiversity(2), EntropyLDiversity(1.8), RecursiveLDiversity(3, 2)]
)
def test_other_constraints_look_at_what_is_known(asked):
    """As if the records without a value were not there."""
    for known in (["flu", "cold"], ["flu", "flu", "cold"], ["flu"] * 5 + ["cold"]):
        plain = verify_m_privacy(table(known), asked, 0).private
        assert verify_m_privacy(table([*known, None, None]), asked, 0).private is plain


def test_t_compares_what_is_known():
    ages = ["a"] * 4 + ["b"] * 4
    ill = ["flu", "flu", "cold", None, "flu", "cold", "cold", None]
    frame = pandas.DataFrame({"age": ages, "ill": ill})
    some = Table(frame, None, ["age"], "ill", missing="value")
    known = Table(frame.dropna(), None, ["age"], "ill")
    for t in (0.1, 0.15, 0.17, 0.2):
        assert (
            verify_m_privacy(some, TCloseness(t), 0).private
            is verify_m_privacy(known, TCloseness(t), 0).private
        )


def test_groups_without_any_value_are_not_diverse():
    frame = pandas.DataFrame({"age": [*"aabb"], "ill": ["flu", "cold", None, None]})
    some = Table(frame, None, ["age"], "ill", missing="value")
    assert not verify_m_privacy(some, LDiversity(1), 0).private
    assert privacy_models(some).distinct_l == 0
    assert len(anonymize(some, KAnonymity(2) & LDiversity(2), 0).groups) == 1


def test_l_over_chapters():
    same = ["E11", "E11.9"]
    assert verify_m_privacy(table(same), LDiversity(2), 0).private
    chapters = {"hierarchies": {"ill": ICD}, "levels": {"ill": 1}}
    found = verify_m_privacy(table([*same, "I10"], **chapters), LDiversity(3), 0)
    assert not found.private
    assert found.left == {"E11*": 2, "I10*": 1}
    assert verify_m_privacy(table([*same, "I10"], **chapters), LDiversity(2), 0).private
    published = anonymize(table([*same, "I10"], **chapters), LDiversity(2), 0)
    assert sorted(published.frame["ill"]) == ["E11", "E11.9", "I10"]


def test_a_hierarchy_of_a_sensitive_column_is_refused_where_it_would_be_ignored():
    with pytest.raises(InvalidInputError, match="Declare the level"):
        table(["E11"], hierarchies={"ill": ICD})
    with pytest.raises(InvalidInputError, match="not a sensitive column with a hierarchy"):
        table(["E11"], levels={"ill": 1})
    with pytest.raises(InvalidInputError, match="levels 1 to 3"):
        verify_m_privacy(
            table(["E11"], hierarchies={"ill": ICD}, levels={"ill": 4}), KAnonymity(1), 0
        )
    with pytest.raises(InvalidInputError, match="without levels"):
        verify_m_privacy(
            table(["E11", "E11.9"], hierarchies={"ill": ICD}, levels={"ill": 1}), TCloseness(0.2), 0
        )
    with pytest.raises(InvalidInputError, match="in row 2 that is not in its hierarchy"):
        verify_m_privacy(
            table(["E11", "J45"], hierarchies={"ill": ICD}, levels={"ill": 1}), KAnonymity(1), 0
        )


def test_providers_check_chapters_and_missing_values_too():
    rng = np.random.default_rng(5)
    rows = 120
    frame = pandas.DataFrame(
        {
            "who": rng.choice([*"abc"], rows),
            "age": rng.integers(20, 60, rows),
            "ill": rng.choice(["E11", "E11.9", "I10", None], rows),
        }
    )
    roles = {"hierarchies": {"ill": ICD}, "levels": {"ill": 1}, "missing": "value"}
    source = Table(frame, "who", ["age"], "ill", **roles)
    asked = KAnonymity(4) & LDiversity(2)
    made = anonymize(source, asked, 1)
    shown = Table(made.frame, None, ["age"], "ill", **roles)
    assert verify_published(shown, source, asked, 1).private
    for who, rows_of in made.row_groups().items():
        mine = Table(frame[frame["who"] == who], None, ["age"], "ill", **roles)
        told = Table(rows_of, None, ["age"], "ill", **roles)
        assert own_view(shown, mine, asked, row_groups=told).verdict == "holds"
    plain = Table(frame, "who", ["age"], "ill", missing="value")
    with pytest.raises(InvalidInputError, match="same levels"):
        verify_published(shown, plain, asked, 1)


def test_columns_are_carried_along_in_an_order_that_content_decides():
    frame = random_frame(3).drop(columns=["weight", "town", "grade"])
    frame["cost"] = np.arange(len(frame)) % 7 + 0.5
    asked = KAnonymity(4) & LDiversity(2)

    def published(rows):
        carrying = Table(rows, "owner", ["age"], "ill", carried=["cost", "paid"])
        return anonymize(carrying, asked, 1)

    one, two = published(frame), published(frame.sample(frac=1, random_state=1))
    assert list(one.frame) == ["age", "ill", "cost", "paid"]
    assert one.frame.to_csv(index=False) == two.frame.to_csv(index=False)
    assert sorted(one.frame["cost"]) == sorted(frame["cost"])
    rows = [one.row_groups()[who].num_rows for who in sorted(frame["owner"].unique())]
    assert rows == frame["owner"].value_counts().sort_index().tolist()
    with pytest.raises(InvalidInputError, match="already has a role"):
        Table(frame, "owner", ["age"], "ill", carried="age")


def test_places_are_those_of_the_provider_s_rows():
    north = pandas.DataFrame({"age": [1, 2], "ill": ["flu", "cold"]})
    east = pandas.DataFrame({"age": [1, None], "ill": ["flu", "cold"]})
    both = Table.concat({"north": north, "east": east}, ["age"], "ill")
    with pytest.raises(InvalidInputError, match="the first in row 2 of 'east'"):
        anonymize(both, KAnonymity(1), 0)


def test_values_that_differ_by_case_are_looked_for_as_they_are_written():
    """Else a row of F fits boxes of f, too, and boxes that are disjoint overlap."""
    sex = ["F", "M"] * 10 + ["f", "m"] * 10
    frame = pandas.DataFrame({"who": ["a"] * 20 + ["b"] * 20, "sex": sex, "ill": [*"xyzw"] * 10})
    source = Table(frame, "who", ["sex"], "ill")
    made = anonymize(source, KAnonymity(2), 0, boxes="disjoint")
    assert len(made.groups) == 4
    shown = Table(made.frame, None, ["sex"], "ill")
    mine = Table(frame[:20], None, ["sex"], "ill")
    assert own_view(shown, mine, KAnonymity(2)).ambiguous == 0
    upper = frame[:20].assign(sex=frame["sex"][:20].str.upper())
    only = anonymize(Table(upper, None, ["sex"], "ill"), KAnonymity(2), 0)
    lower = Table(frame[20:], None, ["sex"], "ill")
    found = own_view(Table(only.frame, None, ["sex"], "ill"), lower, KAnonymity(2))
    assert found.unmatched == 0


def test_missing_values_do_not_help_a_table_to_be_published():
    with pytest.raises(NotPrivateError):
        anonymize(table(["flu", "flu", None]), LDiversity(2), 0)
