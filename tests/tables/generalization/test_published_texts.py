"""Published texts can be read back, whatever the values are."""

from __future__ import annotations

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from quiltwork.tables.generalization.published_texts import (
    Label,
    label_of,
    range_text,
    set_text,
    value_text,
)

words = st.text(min_size=0, max_size=12)


@given(st.lists(words, min_size=2, max_size=6, unique=True))
def test_sets_of_any_texts_come_back(values):
    assert label_of(set_text(values)) == Label("set", tuple(values))


@given(words)
def test_single_values_come_back(value):
    assert label_of(value_text(value)).values == (value, value)


@given(words, words, st.booleans())
@example("0.", "0", False)
@example("0", ".0", False)
def test_ranges_of_any_texts_come_back(low, high, missing):
    found = label_of(range_text(low, high, missing))
    assert found == Label("range", (low, high), missing)


@given(st.floats(allow_nan=False, allow_infinity=False), st.floats(0, 1e6))
def test_numbers_come_back_exactly(low, span):
    found = label_of(range_text(low, low + span))
    assert tuple(map(float, found.values)) == (low, low + span)


def test_missing_values_have_their_own_word():
    assert label_of(value_text(None)) == Label("set", (), missing=True)
    assert label_of(set_text(["a", "b", None])) == Label("set", ("a", "b"), missing=True)
    assert value_text("missing") == '"missing"'


@pytest.mark.parametrize("text", ['"x', "{}"])
def test_texts_that_are_no_labels_are_values_as_they_stand(text):
    assert label_of(text) == Label("range", (text, text))
