"""Hierarchies in ARX's format: read, ordered, and never narrower than what they cover."""

from __future__ import annotations

import numpy as np
import pandas
import pytest
from hypothesis import given
from hypothesis import strategies as st

from quiltwork.errors import InvalidInputError
from quiltwork.tables import KAnonymity, anonymize
from quiltwork.tables.codes.hierarchies import Hierarchy
from quiltwork.tables.table import Table

ZIPS = [
    ("12367", "123**", "1****", "*"),
    ("98745", "987**", "9****", "*"),
    ("12399", "123**", "1****", "*"),
    ("12501", "125**", "1****", "*"),
]


@pytest.mark.parametrize("separator", [";", ",", "\t"])
def test_a_file_is_read_whatever_separates_its_columns(tmp_path, separator):
    path = tmp_path / "zip.csv"
    path.write_text("\n".join(separator.join(row) for row in ZIPS), encoding="utf-8")
    tree = Hierarchy.read(path)
    assert tree.leaves == ("12367", "12399", "12501", "98745")
    assert tree.depth == 4


def test_labels_cover_exactly_the_leaves_below_them():
    tree = Hierarchy.read(ZIPS)
    for low in range(4):
        for high in range(low, 4):
            level, first, last = (int(a[0]) for a in tree.cover(np.array([low]), np.array([high])))
            label = tree.paths[low][level]
            below = [i for i, path in enumerate(tree.paths) if label in path]
            assert below == list(range(first, last + 1))
            assert first <= low
            assert high <= last
            # No lower label covers both.
            assert level == 0 or tree.paths[low][level - 1] != tree.paths[high][level - 1]


def test_a_missing_root_is_added():
    tree = Hierarchy.read([("a", "x"), ("b", "y")])
    assert tree.paths == (("a", "x", "*"), ("b", "y", "*"))


def test_a_label_may_stand_for_the_same_values_at_several_levels():
    """Short branches are filled up so."""
    tree = Hierarchy.read([("Bonn", "Bonn", "*"), ("Nice", "France", "*"), ("Lyon", "France", "*")])
    assert tree.leaves == ("Bonn", "Nice", "Lyon")


def test_numbers_match_by_their_text():
    tree = [("45", "40s"), ("31", "30s"), ("32", "30s")]
    frame = pandas.DataFrame({"age": [31.0, 45.0], "ill": ["x", "y"]})
    column = Table(frame, None, ["age"], "ill", hierarchies={"age": tree}).encoded.quasi[0]
    assert column.values == (45.0, 31.0)


@pytest.mark.parametrize(
    ("rows", "words"),
    [
        ([], "empty"),
        ([("a", "x", "*"), ("b", "*")], "levels"),
        ([("a", "*"), ("a", "*")], "two lines for 'a'"),
        ([("a", "x", "*"), ("b", "x", "y")], "not a tree"),
        ([("a", "x", "a"), ("b", "x", "a")], "'a' for different values at two levels"),
        ([("a", "x", "y"), ("b", "y", "x")], "for different values at two levels"),
        ([("a", "*"), ("b", "x")], r"'\*' for different values at two levels"),
        ([("a", "x", ""), ("b", "x", "")], "empty label"),
        (7, "A hierarchy must be a list"),
        (["12367;123**;*"], "row of a hierarchy must be a list"),
        ([("a", "*"), None], "row of a hierarchy must be a list"),
        ("/dev/zero", "a device"),
        ("absent.csv", "Cannot read"),
    ],
)
def test_what_is_no_tree_is_refused(rows, words):
    with pytest.raises(InvalidInputError, match=words):
        Hierarchy.read(rows, "zip")


def test_another_encoding_is_refused(tmp_path):
    (tmp_path / "tree.csv").write_bytes("Orléans;France\n".encode("latin-1"))
    with pytest.raises(InvalidInputError, match="not text in UTF-8"):
        Hierarchy.read(tmp_path / "tree.csv")


def test_a_value_without_a_line_is_refused():
    frame = pandas.DataFrame({"town": ["a", "b", "CANARY"], "ill": [*"xyz"]})
    trees = {"town": [("a", "*"), ("b", "*")]}
    with pytest.raises(InvalidInputError, match="value in row 3 that is not in its") as refused:
        _ = Table(frame, None, ["town"], "ill", hierarchies=trees).encoded
    assert "CANARY" not in str(refused.value)


@pytest.mark.parametrize("cells", [[None] * 4, ["a", None, None, None]])
def test_a_column_may_have_hardly_a_value(cells):
    """Nothing but missing values under a hierarchy was an IndexError."""
    frame = pandas.DataFrame({"town": cells, "age": [1, 2, 3, 4], "ill": [*"xyxy"]})
    trees = {"town": [("a", "*"), ("b", "*")]}
    table = Table(frame, None, ["town", "age"], "ill", hierarchies=trees, missing="value")
    made = anonymize(table, KAnonymity(2), 0)
    expected = {"missing"} if cells[0] is None else {"missing", "{a, missing}"}
    assert set(made.frame["town"]) == expected
    assert made.report().assessment.models.k == 2


def test_it_is_written_as_arx_writes_it_and_read_back(tmp_path):
    awkward = [('a;"b', "x, y, z", "*"), ("c\nd", "x, y, z", "*"), ("e", "ü;", "*")]
    for name, tree in (("zips", Hierarchy.read(ZIPS)), ("awkward", Hierarchy.read(awkward))):
        path = tree.write(tmp_path / f"{name}.csv")
        assert Hierarchy.read(path).paths == tree.paths
    assert (tmp_path / "zips.csv").read_text("utf-8").splitlines()[0] == "12367;123**;1****;*"
    commas = tmp_path / "commas.csv"
    commas.write_text("one, two, three;[0, 5[;*\nfour;[5, 9[;*\n", encoding="utf-8")
    assert Hierarchy.read(commas).leaves == ("one, two, three", "four")


@given(
    st.lists(st.integers(-60, 60), min_size=1, max_size=12),
    st.sampled_from([(1,), (5,), (5, 10, 20), (3, 12)]),
    st.integers(-3, 9),
)
def test_intervals_hold_what_their_labels_say(values, widths, origin):
    tree = Hierarchy.intervals(values, widths, origin)
    for leaf, *labels, root in tree.paths:
        assert root == "*"
        for label, width in zip(labels, widths, strict=True):
            ends = [int(end) for end in label.split("-" if label[0] != "-" else " to ")]
            assert ends[0] <= int(leaf) <= ends[-1]
            assert ends[-1] - ends[0] + 1 == width
            assert (ends[0] - origin) % width == 0
    assert sorted(map(int, tree.leaves)) == sorted(set(values))


def test_codes_of_one_chapter_have_one_label_whatever_their_length():
    paths = ["I10", "I50.0", "J45"]
    tree = Hierarchy.prefixes(paths, [3, 1])
    top = {path[0]: path[-2] for path in tree.paths}
    assert top["I10"] == top["I50.0"] != top["J45"]
    equal = Hierarchy.prefixes(["12367", "12399"], [3])
    assert {path[1] for path in equal.paths} == {"123**"}


def test_decimals_prefixes_and_dates():
    heights = Hierarchy.intervals([1.55, "1.8", None, 1.6], [0.25])
    assert {path[1] for path in heights.paths} == {"1.5 to under 1.75", "1.75 to under 2"}
    codes = Hierarchy.prefixes(["02410", "0245", "9", None])
    assert codes.paths[0] == ("02410", "0241*", "024*", "02*", "0*", "*")
    assert codes.paths[-1] == ("9", "9", "9", "9", "9*", "*")
    days = pandas.to_datetime(["2024-11-30", "1999-02-01", None])
    tree = Hierarchy.dates(days, ["month", "quarter", "year", "decade"])
    assert tree.paths[0][1:] == ("1999-02", "1999-Q1", "1999", "1990s", "*")
    frame = pandas.DataFrame({"day": days[:2], "ill": ["x", "y"]})
    table = Table(frame, None, ["day"], "ill", hierarchies={"day": Hierarchy.dates(days, ["year"])})
    assert anonymize(table, KAnonymity(1), m=0, split="range").frame["day"].nunique() == 2


@pytest.mark.parametrize(
    ("make", "sentence"),
    [
        (lambda: Hierarchy.intervals([1, 2], [5, 7]), "a multiple of the one before"),
        (lambda: Hierarchy.intervals([1, 2], []), "Give one width"),
        (lambda: Hierarchy.intervals(["flu"], [5]), "not a number"),
        (lambda: Hierarchy.intervals([None], [5]), "at least one value"),
        (lambda: Hierarchy.prefixes(["abc"], [1, 2]), "must decrease"),
        (lambda: Hierarchy.dates(["03/09/2024"], ["year"]), "not a date"),
        (lambda: Hierarchy.dates(["2024-03-09"], ["year", "month"]), "fine to coarse"),
    ],
)
def test_rules_that_make_no_tree_are_refused(make, sentence):
    with pytest.raises(InvalidInputError, match=sentence):
        make()
