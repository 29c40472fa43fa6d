"""Hierarchies in ARX's format: read, ordered, and never narrower than what they cover."""

from __future__ import annotations

import numpy as np
import pandas
import pytest

from quiltwork.errors import InvalidInputError
from quiltwork.tables import KAnonymity, anonymize
from quiltwork.tables.generalization.hierarchies import Hierarchy
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
        ([("a", "x", "*"), ("b", "x", "y")], "no tree"),
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
    with pytest.raises(InvalidInputError, match="value in row 3 that its") as refused:
        _ = Table(frame, None, ["town"], "ill", hierarchies=trees).encoded
    assert "CANARY" not in str(refused.value)


@pytest.mark.parametrize("cells", [[None] * 4, ["a", None, None, None]])
@pytest.mark.parametrize("quality", [False, True])
def test_a_column_may_have_hardly_a_value(cells, quality):
    """Nothing but missing values under a hierarchy was an IndexError."""
    frame = pandas.DataFrame({"town": cells, "age": [1, 2, 3, 4], "ill": [*"xyxy"]})
    trees = {"town": [("a", "*"), ("b", "*")]}
    table = Table(frame, None, ["town", "age"], "ill", hierarchies=trees, missing="value")
    made = anonymize(table, KAnonymity(2), 0, quality=quality)
    expected = {"missing"} if cells[0] is None else {"missing", "{a, missing}"}
    assert set(made.frame["town"]) == expected
    assert made.report().assessment.models.k == 2
