"""Counting rows of a CSV file, against a plain loop over dictionaries."""

from __future__ import annotations

import csv
import gzip
import io

import pytest
from hypothesis import given
from hypothesis import strategies as st

from quiltwork.cli.tabulate import (
    Condition,
    cells_of,
    observed_categories,
    read_categories,
    read_condition,
    tally,
)
from quiltwork.errors import InvalidInputError

TEXT = st.text(alphabet="ab ,\"\n'é1", max_size=4)
ROWS = st.lists(st.tuples(TEXT, TEXT, st.integers(-3, 3).map(str)), max_size=20)


def write(path, rows, header=("sex", "town", "age")):
    with path.open("w", newline="", encoding="utf-8") as file:
        csv.writer(file).writerows([header, *rows])
    return str(path)


def by_hand(rows, conditions):
    """The obvious loop: what `tally` must agree with."""
    found: dict[tuple[str, ...], int] = {}
    for sex, town, age in rows:
        record = {"sex": sex, "town": town, "age": age}
        keep = True
        for c in conditions:
            cell = record[c.column]
            keep &= {
                "=": cell == c.value,
                "!=": cell != c.value,
                ">=": c.sign == ">=" and float(cell) >= float(c.value),
                "<": c.sign == "<" and float(cell) < float(c.value),
            }[c.sign]
        if keep:
            found[sex, town] = found.get((sex, town), 0) + 1
    return found


@given(
    rows=ROWS,
    conditions=st.lists(
        st.one_of(
            st.builds(Condition, st.just("sex"), st.sampled_from(["=", "!="]), TEXT),
            st.builds(
                Condition,
                st.just("age"),
                st.sampled_from([">=", "<"]),
                st.integers(-3, 3).map(str),
            ),
        ),
        max_size=2,
    ),
)
def test_tally_equals_the_obvious_loop(tmp_path_factory, rows, conditions):
    path = write(tmp_path_factory.mktemp("csv") / "rows.csv", rows)
    expected = by_hand(rows, conditions)
    assert dict(tally(path, ["sex", "town"], conditions).cells) == expected
    assert tally(path, [], conditions).cells[()] == sum(expected.values())
    by_town: dict[tuple[str, ...], int] = {}
    for (_, town), number in expected.items():
        by_town[(town,)] = by_town.get((town,), 0) + number
    assert dict(tally(path, ["town"], conditions).cells) == by_town


def test_compressed_files_byte_order_marks_and_blank_lines_are_read(tmp_path, monkeypatch):
    text = "﻿sex,town\nf,Ghent\n\nm,Bruges\n"
    packed = tmp_path / "rows.csv.gz"
    packed.write_bytes(gzip.compress(text.encode()))
    assert tally(str(packed), ["sex"], []) == ({("f",): 1, ("m",): 1}, 2)
    monkeypatch.setattr("sys.stdin", io.StringIO("sex\nf\nf\n"))
    assert tally("-", ["sex"], []) == ({("f",): 2}, 2)


@pytest.mark.parametrize(
    ("content", "column", "words"),
    [
        (b"sex,town\nf\n", "town", "Row 1 .* 1 columns"),
        (b"sex,town\nf,a\nf,a,b\n", "town", "Row 2 .* 3 columns"),
        (b"sex,town\nf,Ghent\n", "sec", "is not there"),
        (b"sex,sex\nf,m\n", "sex", "more than once"),
        (b'sex\n"f"x\n', "sex", "not CSV"),
        (b"", "sex", "does not begin"),
    ],
)
def test_files_that_cannot_be_counted_say_why(tmp_path, content, column, words):
    path = tmp_path / "rows.csv"
    path.write_bytes(content)
    with pytest.raises(InvalidInputError, match=words):
        tally(str(path), [column], [])


def test_text_that_is_no_number_satisfies_no_comparison(tmp_path):
    path = write(tmp_path / "rows.csv", [("f", "x", "65"), ("f", "x", "?"), ("f", "x", "nan")])
    assert tally(path, [], [read_condition("age>=0")]) == ({(): 1}, 3)
    assert tally(path, [], [read_condition("age<1000")]).cells[()] == 1


@pytest.mark.parametrize(
    ("condition", "cells", "matching"),
    [
        (">=9007199254740993", ["9007199254740992", "9007199254740993", "9007199254740992.5"], 1),
        ("<9007199254740993", ["9007199254740992", "9007199254740993", "9007199254740992.5"], 2),
        (">0.3", ["0.30000000000000001", "0.3", ".30", "3e-1"], 1),
        ("<=0", ["-0", "0.0", "-1e-400", "1e-400"], 3),
        (">=1e400", ["1e400", "1e399", "inf", "nan"], 1),
    ],
)
def test_numbers_are_compared_with_all_their_digits(tmp_path, condition, cells, matching):
    path = write(tmp_path / "rows.csv", [("f", "x", cell) for cell in cells])
    assert tally(path, [], [read_condition(f"age{condition}")]).cells[()] == matching


@pytest.mark.parametrize("text", ["age", "=5", "age>=old", "", "age ~ 5"])
def test_conditions_that_are_none_are_refused(text):
    with pytest.raises(InvalidInputError):
        read_condition(text)


def test_conditions_are_data_not_code():
    condition = read_condition("name=__import__('os').system('true')")
    assert condition.value == "__import__('os').system('true')"


def test_categories_are_read_from_text_and_files(tmp_path):
    listed = tmp_path / "towns.txt"
    listed.write_text("Ghent\nBruges, old\n\n", encoding="utf-8")
    found = read_categories(["town=@" + str(listed), 'sex=f,"m,x"'], ["sex", "town"])
    assert found == [("f", "m,x"), ("Ghent", "Bruges, old")]
    assert cells_of(found)[1] == ("f", "Bruges, old")
    assert read_categories(["a=b,c"], ["sex"]) == [("a=b", "c")]


@pytest.mark.parametrize(
    ("texts", "columns", "words"),
    [
        ([], ["sex"], "occur is private"),
        (["f,m"], ["sex", "town"], "which column"),
        (["f,f"], ["sex"], "given twice"),
        (["sex=f", "sex=m"], ["sex"], "given twice"),
        ([""], ["sex"], "empty"),
        (["@/no/such/file"], ["sex"], "Cannot read"),
        (["a=" + ",".join(map(str, range(2000))), "b=" + ",".join(map(str, range(2000)))],
         ["a", "b"], "4,000,000 cells"),
    ],
)  # fmt: skip
def test_categories_that_do_not_fit_are_refused(texts, columns, words):
    with pytest.raises(InvalidInputError, match=words):
        read_categories(texts, columns)


def test_observed_categories_are_sorted():
    assert observed_categories([("b", "x"), ("a", "x")], 2) == [("a", "b"), ("x",)]
    assert observed_categories([], 2) == [(), ()]
