"""Documents are read strictly: what JSON leaves open or msgspec lets through is refused."""

from __future__ import annotations

from contextlib import suppress
from fractions import Fraction

import pytest
from hypothesis import given
from hypothesis import strategies as st

from quiltwork.errors import InvalidInputError
from quiltwork.service.collaborative_tables import NewTable
from quiltwork.service.members import NewMember
from quiltwork.service.problems import Problem
from quiltwork.service.questions import NewQuestion
from quiltwork.service.structs import as_struct, exact_number, parse_document

GOOD = b'{"query": {"kind": "histogram"}, "epsilon": 0.5}'
BAD = {
    "no JSON": b"{",
    "two documents": GOOD + GOOD,
    "nothing": b"",
    "not UTF-8": b'{"epsilon": "\xff"}',
    "a key twice": b'{"query": {}, "epsilon": 1, "epsilon": 2}',
    "a key twice inside": b'{"query": {"kind": "a", "kind": "b"}, "epsilon": 1}',
    "deep lists": b"[" * 100_000,
    "endless digits": b'{"query": {}, "epsilon": ' + b"1" * 5000 + b"}",
    "a byte order mark": b"\xef\xbb\xbf" + GOOD,
    "a text without end": b'"' + b'\\"' * 500_000,  # took an hour, and stopped everybody else
}
OTHER = {
    "too large": b'{"query": {}, "epsilon": 1e999}',
    "subnormal": b'{"query": {}, "epsilon": 5e-324}',
    "NaN": b'{"query": {}, "epsilon": NaN}',
    "infinite": b'{"query": {}, "epsilon": -Infinity}',
    "deep": b'{"query": ' + b'{"a":' * 40 + b"1" + b"}" * 40 + b', "epsilon": 1}',
    "half a surrogate": b'{"query": {"kind": "\\ud800"}, "epsilon": 1}',
    "a zero": b'{"query": {"kind": "a\\u0000"}, "epsilon": 1}',
    "unknown field": b'{"query": {}, "epsilon": 1, "code": "x"}',
    "missing field": b'{"query": {}}',
    "wrong type": b'{"query": [], "epsilon": 1}',
    "a list": b"[]",
    "a truth": b'{"query": {}, "epsilon": true}',
}


def test_a_good_document_is_read():
    assert parse_document(GOOD, NewQuestion, 32).epsilon == 0.5
    escaped = b'{"query": {"kind": "[[[[\\"\\u00e9"}, "epsilon": 0.0}'
    assert parse_document(escaped, NewQuestion, 3).query == {"kind": '[[[["é'}


@pytest.mark.parametrize("text", BAD.values(), ids=BAD)
def test_what_is_no_plain_json_is_refused(text):
    with pytest.raises(Problem) as caught:
        parse_document(text, NewQuestion, 32)
    assert (caught.value.status, caught.value.kind) == (400, "bad-request")


@pytest.mark.parametrize("text", OTHER.values(), ids=OTHER)
def test_another_document_is_refused(text):
    with pytest.raises(Problem) as caught:
        parse_document(text, NewQuestion, 32)
    assert (caught.value.status, caught.value.kind) == (422, "invalid-input")


@given(st.binary(max_size=200))
def test_any_bytes_are_read_or_refused(text):
    with suppress(Problem):
        parse_document(text, NewQuestion, 8)


@pytest.mark.parametrize("name", ["eve\n", "", "a b", "-a", "a" * 101, "é", "a/b", "a\0"])
def test_a_name_is_fit_for_a_path(name):
    with pytest.raises(Problem):
        as_struct({"name": name, "role": "analyst"}, NewMember)
    assert as_struct({"name": "e.v-e_1", "role": "analyst"}, NewMember).name == "e.v-e_1"


def test_numbers_are_exact():
    assert exact_number(0.1, "epsilon") == exact_number("1/10", "epsilon") == Fraction(1, 10)
    for wrong in ("x", "1/0", "1e99999", 0, -1, "nan"):
        with pytest.raises(InvalidInputError):
            exact_number(wrong, "epsilon")


@pytest.mark.parametrize(
    ("rules", "place", "values"),
    [
        ({"types": {"age": "numbr"}}, "types[...]", "date, number, text, time"),
        ({"missing": "drop"}, "missing", "error, value"),
        ({"split": "mean"}, "split", "fitness, loss, range"),
    ],
)
def test_a_refused_choice_lists_the_possible_values(rules, place, values):
    rules = {"quasi_identifiers": ["age"], "sensitive": "ill", "k": 2, **rules}
    with pytest.raises(Problem) as caught:
        as_struct({"name": "clinic", "rules": rules}, NewTable)
    assert caught.value.detail.endswith(f"at `$.rules.{place}`. Possible values: {values}.")
