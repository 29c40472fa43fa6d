"""BIF files: every spelling that is allowed, and the line of what is not."""

from __future__ import annotations

import re

import numpy as np
import pytest

from quiltwork.beliefs import Network
from quiltwork.errors import InvalidInputError

GOOD = """// a comment
network "два слова" { property author someone; }
variable a { type discrete [ 2 ] { yes, no }; }
variable "b c" { /* over
two lines */ type discrete [ 3 ] { "low x", mid, >=3 };
  property position = (1, 2); }
variable d { type discrete [ 2 ] { yes, no }; }
probability ( a ) { table 0.2, 0.8; }
probability ( "b c" | a ) { (no) 0.3, 0.3, 0.4; default 0.1, 0.2, 0.7; }
probability ( d | "b c", a ) {
  table 0.1, 0.2, 0.3, 0.4, 0.5, 0.6,
        0.9, 0.8, 0.7, 0.6, 0.5, 0.4;
}
"""


def read(tmp_path, text: str) -> Network:
    path = tmp_path / "net.bif"
    path.write_text(text, encoding="utf-8")
    return Network.from_bif(path)


def test_every_spelling_is_read(tmp_path):
    net = read(tmp_path, GOOD)
    assert net.names == ("a", "b c", "d")
    assert net.domains[1] == ("low x", "mid", ">=3")
    assert np.array_equal(net.factors[1][1], [[0.1, 0.2, 0.7], [0.3, 0.3, 0.4]])
    assert [net.names[p] for p in net.parents[2]] == ["b c", "a"]
    assert net.factors[2][1][2, 1] == pytest.approx([0.6, 0.4])
    assert net.factors[2][1][0, 1] == pytest.approx([0.2, 0.8])


def test_a_table_that_lists_the_variable_first_is_turned(tmp_path):
    """Of P(d | b, a) the flat table runs over d slowest and a fastest."""
    net = read(tmp_path, GOOD)
    flat = np.array([0.1, 0.2, 0.3, 0.4, 0.5, 0.6]).reshape(3, 2)
    assert net.factors[2][1][..., 0] == pytest.approx(flat)


def test_rounded_rows_are_divided_by_their_sum(tmp_path):
    net = read(tmp_path, GOOD.replace("0.3, 0.3, 0.4;", "0.3333333, 0.3333333, 0.3333333;"))
    assert net.factors[1][1][1].sum() == pytest.approx(1, abs=1e-15)


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        ("0.2, 0.8;", "0.2, 0.9;", "line 8: the probabilities sum to 1.1, not 1"),
        ("0.2, 0.8;", "0.2;", "line 8: expected 2 numbers, found 1"),
        ("0.2, 0.8;", "0.2, x;", "line 8: '0.2 x' is not a list of numbers"),
        ("0.2, 0.8;", "-0.2, 1.2;", "line 8: a probability is a number from 0 to 1"),
        ("(no) 0.3", "(maybe) 0.3", "line 9: 'maybe' is not a state of 'a', which has yes, no"),
        ("(no) 0.3", "(no, no) 0.3", "line 9: a row names 2 states for 1 parents"),
        (" default 0.1, 0.2, 0.7;", "", "line 9: the table of 'b c' has no row for (yes)"),
        ("[ 2 ] { yes, no }", "[ 3 ] { yes, no }", "line 3: 'a' announces 3 states and lists 2"),
        ("{ yes, no }", "{ no, no }", "line 3: 'a' has two states of the same name"),
        ("discrete", "continuous", "line 3: variable 'a' is not discrete"),
        ("| a )", "| z )", "line 9: 'z' is not a variable declared above"),
        ("variable d", "variable a", "line 7: variable 'a' is declared twice"),
        ("probability ( a ) { table 0.2, 0.8; }", "", "variable 'a' has no probability block"),
        ("variable a", "nonsense a", "line 3: expected network, variable or probability, found"),
        ("  table 0.1", "  tabel 0.1", "line 11: expected a row such as"),
        ('"low x"', '"low x', "line 5: '\"' cannot be read"),
        ("0.5, 0.4;\n}", "0.5, 0.4;", "line 13: the file ends inside a block"),
        ("( a ) {", "( a {", "line 8: expected probability ( name | parents ) {"),
    ],
)
def test_what_cannot_be_read_is_named_with_its_line(tmp_path, old, new, message):
    with pytest.raises(InvalidInputError, match=re.escape(message)):
        read(tmp_path, GOOD.replace(old, new, 1))


@pytest.mark.parametrize("cut", range(5, len(GOOD) - 2, 23))
def test_a_file_that_is_cut_never_crashes(tmp_path, cut):
    with pytest.raises(InvalidInputError, match=r"net\.bif, line \d+: "):
        read(tmp_path, GOOD[:cut])


def test_files_that_are_none(tmp_path):
    with pytest.raises(InvalidInputError, match="Cannot read"):
        Network.from_bif(tmp_path / "absent.bif")
    (tmp_path / "bytes.bif").write_bytes(b"\xff\xfe\x00")
    with pytest.raises(InvalidInputError, match="UTF-8"):
        Network.from_bif(tmp_path / "bytes.bif")
    with pytest.raises(InvalidInputError, match="no variable blocks"):
        read(tmp_path, "network x { }")


def test_a_cycle_in_a_file_is_named(tmp_path):
    text = """variable a { type discrete [ 1 ] { x }; }
variable b { type discrete [ 1 ] { x }; }
probability ( a | b ) { (x) 1; }
probability ( b | a ) { (x) 1; }"""
    with pytest.raises(InvalidInputError, match=r"cycle, '(a|b)' → '(a|b)' → '\1'"):
        read(tmp_path, text)


@pytest.mark.parametrize(
    ("rows", "message"),
    [
        ("(yes) 1, 0; (yes) 0, 1; default 0.5, 0.5;", "two rows for (yes)"),
        ("(yes) 1, 0; default 0.5, 0.5; default 0, 1;", "two default rows"),
        ("(yes) 1, 0; table 1, 0, 0, 1;", "after rows of its own"),
        ("table 1, 0, 0, 1; (yes) 1, 0;", "two rows for (yes)"),
    ],
)
def test_a_row_that_is_given_twice_is_refused(tmp_path, rows, message):
    text = "".join(f"variable {v} {{ type discrete [ 2 ] {{ yes, no }}; }}\n" for v in "ab")
    text += f"probability ( a ) {{ table 0.2, 0.8; }}\nprobability ( b | a ) {{ {rows} }}\n"
    with pytest.raises(InvalidInputError, match=re.escape(message)):
        read(tmp_path, text)


@pytest.mark.parametrize("path", [None, 5])
def test_a_path_that_is_none_is_refused(path):
    with pytest.raises(InvalidInputError, match="must be the name of a file"):
        Network.from_bif(path)
