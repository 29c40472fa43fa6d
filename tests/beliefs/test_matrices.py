"""Reading probability matrices: sentences for what is wrong, bits kept for what is right."""

from __future__ import annotations

import math
from decimal import Decimal
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from quiltwork import InvalidInputError
from quiltwork.beliefs.matrices import parse_distribution, parse_stochastic


@pytest.mark.parametrize(
    ("matrix", "sentence"),
    [
        ([[0.9, 0.2], [0.4, 0.6]], "Row 1 of transition sums to 1.1, not 1"),
        ([[0.9, 0.1], [0.4, 0.5]], "Row 2 of transition sums to 0.9, not 1"),
        ([[0.9, 0.1]], "1 rows and 2 columns"),
        ([[0.5, 0.5], [1.0]], "Row 2 of transition has 1 entries, row 1 has 2"),
        ([[1, 0], [float("nan"), 1]], "Row 2 of transition has nan in position 1"),
        ([[1, 0], [1.5, -0.5]], "Row 2 of transition has 1.5 in position 1"),
        ([[1, 0], [float("inf"), 0]], "Row 2 of transition has inf"),
        ([[-0.1, 1.1], [0, 1]], "Row 1 of transition has -0.1 in position 1"),
        ([], "transition must be a list of rows"),
        (np.zeros((0, 0)), "transition is empty"),
        ([0.5, 0.5], "two dimensions"),
        (5, "two dimensions"),
        ([["0.5", "0.5"], ["0.5", "0.5"]], "plain numbers"),
        ([[None, 1], [0, 1]], "nan in position 1"),
        ([[1j, 1], [0, 1]], "plain numbers"),
        ("transition", "plain numbers"),
        (None, "two dimensions"),
    ],
)
def test_a_bad_matrix_gets_a_sentence_that_names_the_row(matrix, sentence):
    with pytest.raises(InvalidInputError, match=sentence.replace("(", r"\(")):
        parse_stochastic(matrix, "transition")


@pytest.mark.parametrize(
    ("vector", "sentence"),
    [
        ([0.5, 0.5, 0], "3 entries for 2 states"),
        ([0.5, 0.6], "sums to 1.1"),
        ([float("nan"), 1], "nan in position 1"),
        ([[0.5, 0.5]], "one list of numbers"),
        (["a", "b"], "plain numbers"),
    ],
)
def test_a_bad_distribution_gets_a_sentence(vector, sentence):
    with pytest.raises(InvalidInputError, match=sentence):
        parse_distribution(vector, 2, "initial")


def test_exact_numbers_are_read():
    third = Fraction(1, 3)
    matrix = parse_stochastic(
        [[third, 1 - third], [Decimal("0.25"), Decimal("0.75")]], "transition"
    )
    assert matrix.tolist() == [[1 / 3, 2 / 3], [0.25, 0.75]]


def test_what_was_read_is_a_read_only_copy():
    source = np.array([[0.5, 0.5], [0.0, 1.0]])
    matrix = parse_stochastic(source, "transition")
    source[0] = 7
    assert matrix[0, 0] == 0.5
    with pytest.raises(ValueError, match="read-only"):
        matrix[0, 0] = 1


def test_rows_within_1e_9_are_divided_by_their_sum_and_others_refused():
    close = parse_stochastic([[0.5, 0.5 + 5e-10], [0, 1]], "transition")
    assert abs(math.fsum(close[0]) - 1) < 2**-52
    with pytest.raises(InvalidInputError, match="sums to"):
        parse_stochastic([[0.5, 0.5 + 5e-9], [0, 1]], "transition")


@given(st.lists(st.floats(1e-12, 1), min_size=1, max_size=30), st.floats(-9e-10, 9e-10))
def test_reading_twice_changes_no_bit(weights, error):
    row = np.array(weights) / math.fsum(weights) * (1 + error)
    once = parse_distribution(row, len(row), "initial")
    assert abs(math.fsum(once) - 1) <= 2**-50
    assert parse_distribution(once, len(row), "initial").tobytes() == once.tobytes()


def test_negative_zero_becomes_zero():
    assert math.copysign(1, parse_distribution([-0.0, 1.0], 2, "initial")[0]) == 1
