"""Two releases about the same people, against every way to give them values that fits both."""

from __future__ import annotations

import pandas as pd
import pytest

from evidence.checks.intersections import check
from quiltwork.errors import InvalidInputError
from quiltwork.tables.risk import assess
from quiltwork.tables.risk.intersection import intersection
from quiltwork.tables.risk.overlaps import ColumnLabels, overlaps
from quiltwork.tables.table import Table


def test_counts_are_those_of_every_assignment_that_fits_both_tables():
    check(40)


def test_nobody_is_left_for_a_value_but_one():
    """Values alone pin two of four people; then the two others have what is left."""
    ill = ["flu", "cold", "cold", "gout"]
    first = pd.DataFrame({"age": [20, 20, 30, 30], "ill": ill, "who": range(4)})
    second = pd.DataFrame({"age": [*"fmfm"], "ill": ill, "who": range(4)})
    found = intersection(*(Table(f, None, ["age"], "ill", subject="who") for f in (first, second)))
    assert (found.by_values, found.least, found.most, found.exact) == (2, 2, 4, False)
    assert "For 2 of them, only one value occurs in both their groups" in found.explain()


def test_people_whose_value_changed_are_left_out():
    first = pd.DataFrame({"age": ["a", "a", "b"], "ill": [*"xyz"], "who": [1, 2, 3]})
    second = first.assign(ill=[*"xwz"])
    found = intersection(*(Table(f, None, ["age"], "ill", subject="who") for f in (first, second)))
    assert (found.people, found.changed) == (3, 1)
    assert found.least == found.most == 1  # the other one of group a has x in both


def test_values_are_compared_as_they_are_written():
    first = pd.DataFrame({"age": ["a", "a"], "ill": ["1", "02"], "who": [1, 2]})
    second = pd.DataFrame({"age": ["a", "b"], "ill": [1, 5], "who": [1, 3]})
    tables = [Table(f, None, ["age"], "ill", subject="who") for f in (first, second)]
    assert intersection(*tables).changed == 0


def test_people_alone_in_both_their_groups_are_counted():
    ill = ["flu", "cold", "flu", "cold"]
    first = pd.DataFrame({"age": ["a", "a", "b", "b"], "ill": ill, "who": [1, 2, 3, 4]})
    second = pd.DataFrame({"age": ["a", "b", "b", "b"], "ill": ill, "who": [1, 2, 3, 4]})
    tables = [Table(f, None, ["age"], "ill", subject="who") for f in (first, second)]
    assert intersection(*tables).alone == 2  # persons 1 and 2; 3 and 4 share both groups


def test_more_than_64_values_are_compared_too():
    values = [f"v{i}" for i in range(150)]
    first = pd.DataFrame({"age": ["a"] * 150 + ["b"] * 2, "ill": [*values, "v0", "x"]})
    second = pd.DataFrame({"age": ["a"] * 2 + ["b"] * 150, "ill": ["v149", "x", *values]})
    tables = [Table(f, None, ["age"], "ill") for f in (first, second)]
    found = intersection(*tables)
    assert found.by_values == 2  # v149 in a, v0 in b


def test_a_bound_is_reached_and_its_worth_is_seen():
    """Every group pair pins its y or z; a coarser later table with the same values pins nobody."""
    first = pd.DataFrame({"age": ["0..4", "0..4", "5..9", "5..9"], "ill": ["x", "y", "y", "z"]})
    second = pd.DataFrame({"age": ["0..4", "0..4", "5..9", "5..9"], "ill": ["x", "w", "w", "z"]})
    third = pd.DataFrame({"age": ["0..9"] * 4, "ill": ["x", "y", "y", "z"]})
    tables = [Table(f, None, ["age"], "ill") for f in (first, second, third)]
    found = intersection(tables[0], tables[1])
    assert (found.least, found.by_values, found.most, found.exact) == (2, 2, 4, False)
    assert "at most 4 can have one possible value left" in found.explain()
    for pair in ((0, 2), (2, 0)):
        assert intersection(*(tables[i] for i in pair)).most == 0


def test_labels_of_hierarchies_and_orders_are_read():
    tree = ColumnLabels.of("zip", None, [("12", "1*", "*"), ("13", "1*", "*"), ("21", "2*", "*")])
    assert overlaps(tree, ["12", "1*", "*"], ["13", "1*", "2*"]).tolist() == [
        [False, True, False],
        [True, True, False],
        [True, True, True],
    ]
    masks = ColumnLabels.of("zip", None, None)
    assert overlaps(masks, ["98***", "*****", "12345"], ["987**", "99999", "1234*"]).tolist() == [
        [True, False, False],
        [True, True, True],
        [False, False, True],
    ]
    sizes = ColumnLabels.of("size", ["small", "medium", "large"], None)
    assert overlaps(sizes, ["small..medium", "large"], ["medium..large"]).tolist() == [
        [True],
        [True],
    ]
    dates = ColumnLabels.of("born", None, None)
    assert overlaps(dates, ["1970-01-01..1970-06-30"], ["1970-06-30", "1971-01-01"]).tolist() == [
        [True, False]
    ]
    times = ColumnLabels.of("seen", None, None)
    given = ["05:00:00..07:00:00", "1 day, 0:00:00..2 days, 1:30:00"]
    assert overlaps(times, given, ["07:00:00", "0:30:00", "1 day, 23:59:59.5"]).tolist() == [
        [True, False, False],
        [False, False, True],
    ]
    gaps = ColumnLabels.of("pay", None, None)
    assert overlaps(gaps, ["{1..3, missing}", "4..5"], ["missing", "2"]).tolist() == [
        [True, True],
        [False, False],
    ]


def test_texts_that_are_no_labels_are_values_as_they_stand():
    strange = ['"x', "{}", "{a", "y"]
    assert overlaps(ColumnLabels.of("note", None, None), strange, strange).tolist() == [
        [one == other for other in strange] for one in strange
    ]


def test_tables_that_cannot_be_compared_are_refused():
    first = Table(pd.DataFrame({"age": ["1"], "ill": ["x"]}), None, ["age"], "ill")
    other = Table(pd.DataFrame({"zip": ["1"], "ill": ["x"]}), None, ["zip"], "ill")
    with pytest.raises(InvalidInputError, match="quasi-identifiers"):
        intersection(first, other)
    secret = Table(pd.DataFrame({"age": ["1"], "pay": ["x"]}), None, ["age"], "pay")
    with pytest.raises(InvalidInputError, match="sensitive"):
        intersection(first, secret)
    with pytest.raises(InvalidInputError, match="'zip' is declared"):
        intersection(first, first, hierarchies={"zip": [("1", "*")]})
    with pytest.raises(InvalidInputError, match="Pass a Table"):
        intersection(first.frame, first)
    with pytest.raises(InvalidInputError, match="Pass a Table"):
        assess(first.frame)
    with pytest.raises(InvalidInputError, match="Declare the order"):
        overlaps(ColumnLabels.of("size", None, None), ["small..large"], ["large"])
