"""Reading sequences: every container gives the same codes, every refusal names the position."""

from __future__ import annotations

from array import array
from collections import deque

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from quiltwork import InvalidInputError, MarkovChain
from quiltwork.beliefs.sequences import (
    encode,
    encode_known,
    factorize,
    first_positions,
    label_array,
    split_sequences,
)
from quiltwork.series import read_series
from tests.strategies import LABELS

WORDS = ["b", "a", "b", "c"]


@pytest.mark.parametrize(
    "container",
    [
        list,
        tuple,
        deque,
        np.array,
        lambda x: np.array(x, dtype=object),
        pd.Series,
        pd.Index,
        lambda x: pd.Series(x, index=[9, 8, 7, 6]),
        lambda x: pd.Series(x, dtype="category"),
        lambda x: pd.Series(x, dtype="string"),
        pl.Series,
        lambda x: pl.Series(x, dtype=pl.Categorical),
        pa.array,
        lambda x: pa.chunked_array([x[:2], x[2:]]),
    ],
)
def test_text_in_any_container(container):
    assert encode(container(WORDS), ("a", "b", "c")).tolist() == [1, 0, 1, 2]


@pytest.mark.parametrize(
    "container",
    [
        list,
        lambda x: array("q", x),
        lambda x: np.array(x, dtype=np.int8),
        lambda x: np.array(x, dtype=np.uint64),
        lambda x: np.array(x, dtype=float),
        pd.Series,
        lambda x: pd.Series(x, dtype="Int64"),
        lambda x: pd.Series(x, dtype="float32"),
        pl.Series,
        lambda x: pl.Series(x, dtype=pl.UInt8),
        pa.array,
    ],
)
def test_numbers_in_any_container(container):
    assert encode(container([7, 120, 7, 3]), (3, 7, 120)).tolist() == [1, 2, 1, 0]


def test_ranges_and_booleans():
    assert encode(range(3), (2, 1, 0)).tolist() == [2, 1, 0]
    assert encode(np.array([True, False]), (0, 1)).tolist() == [1, 0]
    assert encode([True, 0, 1.0], (False, True)).tolist() == [1, 0, 1]


def test_the_codes_are_a_fresh_array():
    source = np.array([0, 1, 1])
    codes = encode(source, (0, 1))
    source[0] = 1
    assert codes.tolist() == [0, 1, 1]


@pytest.mark.parametrize(
    ("sequence", "sentence"),
    [
        (["a", "x", "b"], "Position 2 holds none of the belief's states, which are 'a', 'b'"),
        (np.array(["a", "b", "y"]), "Position 3 holds none"),
        (["a", None], "Position 2 holds a missing value"),
        (["a", float("nan"), "x"], "Position 2 holds a missing value"),
        (pd.Series(["a", pd.NA]), "Position 2 holds a missing value"),
        (pl.Series(["a", "b", None]), "Position 3 holds a missing value"),
        (np.ma.MaskedArray(["a", "b"], [True, False]), "Position 1 holds a missing value"),
        (np.array([1.0, np.nan]), "Position 1 holds none"),
        ([], "empty"),
        (np.array([]), "empty"),
        (pd.Series([], dtype=object), "empty"),
        ("aab", r"list\('aab'\)"),
        (b"aab", "list"),
        (3, "not of type int"),
        (None, "not of type NoneType"),
        ({"a", "b"}, "list, array or series"),
        ((x for x in "ab"), "list, array or series"),
        (["a", ["b"]], "Position 2 holds a value that cannot be a label"),
        (np.array([["a", "b"]]), "one dimension"),
        (pd.DataFrame({"x": ["a"], "y": ["b"]}), "is a table; give the column"),
        (pl.DataFrame({"x": ["a"]}), "is a table; give the column"),
        (np.array(["2020-01-01"], dtype="datetime64[D]"), "datetime64"),
        (np.array([1j]), "complex"),
    ],
)
def test_what_cannot_be_encoded_is_named_by_its_position(sequence, sentence):
    with pytest.raises(InvalidInputError, match=sentence):
        encode(sequence, ("a", "b"))


def test_other_labels_than_the_known_ones_get_the_next_code():
    assert encode_known(["a", "x", ("b",), "b", 3], ("b", "a")).tolist() == [1, 2, 2, 0, 2]
    assert encode_known(["a", None], ("a", None)).tolist() == [0, 1]
    with pytest.raises(InvalidInputError, match="Position 3 holds a missing value"):
        encode_known(["a", "x", float("nan")], ("a",))


def test_missing_values_may_be_a_state():
    assert encode(["a", None, "a"], ("a", None)).tolist() == [0, 1, 0]
    assert encode(pl.Series([1, None]), (1, None)).tolist() == [0, 1]


@given(st.lists(LABELS, min_size=1, max_size=30))
def test_factorizing_loses_nothing(values):
    codes, distinct = factorize(values)
    assert [distinct[c] for c in codes] == values
    assert len(set(distinct)) == len(distinct)


@given(st.lists(st.integers(-(2**63), 2**63 - 1), min_size=1), st.sampled_from([1, 2**20, 2**62]))
def test_integer_arrays_factorize_as_lists_do(values, modulus):
    array = np.array(values) % modulus
    codes, distinct = factorize(array)
    assert [distinct[c] for c in codes] == array.tolist()
    assert distinct == sorted(set(array.tolist()))


@given(st.lists(st.integers(0, 5), min_size=1, max_size=50))
def test_first_positions(values):
    codes, distinct = factorize(values)
    assert first_positions(codes, len(distinct)).tolist() == [values.index(d) for d in distinct]


def test_first_positions_beyond_the_first_chunk():
    codes = np.zeros(3_000_000, dtype=np.int64)
    codes[2_500_000:] = 1
    assert first_positions(codes, 2).tolist() == [0, 2_500_000]


@pytest.mark.parametrize(
    ("data", "count"),
    [
        (["a", "b"], 1),
        ([0, 1], 1),
        ([("home", 1), ("work", 2)], 1),
        ((0, 1), 1),
        (np.array([0, 1]), 1),
        (pd.Series([0, 1]), 1),
        ([[0, 1]], 1),
        ([[0, 1], [1]], 2),
        (([0, 1], np.array([1])), 2),
        ([pd.Series([0]), pl.Series([1]), range(2)], 3),
        ({"ann": [0, 1], "bob": (1, 0)}, 2),
        ([], 1),
    ],
)
def test_one_or_many(data, count):
    assert len(split_sequences(data)) == count


@pytest.mark.parametrize(
    ("data", "sentence"),
    [([[0, 1], 1], "Item 2 is a single label"), ({}, "no sequence"), ([(0, 1), [0]], "Item 1")],
)
def test_unclear_collections_are_refused(data, sentence):
    with pytest.raises(InvalidInputError, match=sentence):
        split_sequences(data)


@pytest.mark.parametrize(
    ("states", "kind"),
    [((0, 1), "i"), (("a", "bcd"), "U"), ((0.5, 2.0), "f"), ((True, False), "b"), ((0, "a"), "O"),
     (((1, 2), (3, 4)), "O"), ((None, 1), "O"), ((2**80, 1), "O"), (("a\x00", "b"), "O")],
)  # fmt: skip
def test_label_arrays_have_the_labels_own_type(states, kind):
    found = label_array(states)
    assert found.dtype.kind == kind
    assert tuple(found.tolist()) == states


def test_what_read_series_returns_is_asked_for_its_data(tmp_path):
    (tmp_path / "a.csv").write_text("state\nrest\nwalk\nrest\n")
    series = read_series(str(tmp_path / "a.csv"), "state")
    with pytest.raises(InvalidInputError, match=r"not of type Series; give its \.data\."):
        MarkovChain.fit(series)
    assert MarkovChain.fit(series.data).states == ("rest", "walk")
