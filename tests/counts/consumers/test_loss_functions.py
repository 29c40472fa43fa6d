from __future__ import annotations

from fractions import Fraction

import numpy as np
import pytest

from quiltwork.counts import Consumer, GeometricMechanism, optimal_mechanism
from quiltwork.counts.consumers.loss_functions import (
    Binary,
    CallableLoss,
    ErrorLoss,
    MatrixLoss,
    Pinball,
    Power,
    asymmetric,
    parse_loss,
    power,
)
from quiltwork.errors import InvalidInputError
from tests.counts.oracle import NAMED

ALL = [
    *NAMED,
    ErrorLoss(lambda e: abs(e) + (e > 0)),
    CallableLoss(lambda i, r: i + 2 * r),
    parse_loss([[0, 1, 5, 9], [1, 0, 1, 4], [4, 1, 0, 1], [9, 5, 1, 0]]),
]


@pytest.mark.parametrize("loss", ALL, ids=lambda loss: loss.name)
def test_tables_and_exact_values_agree(loss):
    counts = np.arange(4)
    table = loss.table(counts[:, None], counts[None, :])
    exact = [[float(loss.exact(i, r)) for r in range(4)] for i in range(4)]
    assert np.allclose(table, exact, rtol=1e-15)


@pytest.mark.parametrize(
    ("text", "loss"),
    [
        ("absolute", Pinball()),
        ("power:1", Pinball()),
        ("squared", Power(Fraction(2))),
        ("power:3/2", Power(Fraction(3, 2))),
        ("binary", Binary()),
        ("asymmetric:3:1/2", Pinball(Fraction(3), Fraction(1, 2))),
    ],
)
def test_names_are_read(text, loss):
    assert parse_loss(text) == loss


def test_a_function_and_a_matrix_become_losses():
    assert isinstance(parse_loss(lambda i, r: 0), CallableLoss)
    assert isinstance(parse_loss(np.zeros((3, 3))), MatrixLoss)
    exact = parse_loss([[Fraction(0), Fraction(1, 3)], [Fraction(1), Fraction(0)]])
    assert exact.exact(0, 1) == Fraction(1, 3)
    assert parse_loss([[0, 0.1], [1, 0]]).exact(0, 1) == Fraction(1, 10)


@pytest.mark.parametrize(
    "text", ["l2", "power", "power:x", "power:1/0", "asymmetric:1", "binary:2"]
)
def test_unknown_names_are_refused(text):
    with pytest.raises(InvalidInputError, match="Unknown loss"):
        parse_loss(text)


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("power:0", "exponent .* greater than 0"),
        ("asymmetric:1:0", "over must"),
        ("power:-1", "-1"),
    ],
)
def test_known_names_say_which_number_is_out_of_range(text, words):
    with pytest.raises(InvalidInputError, match=words):
        parse_loss(text)


def test_what_is_neither_name_nor_matrix_nor_function_is_named():
    with pytest.raises(InvalidInputError, match="not 3"):
        parse_loss(3)


@pytest.mark.parametrize("matrix", [[[0, 1]], [0, 1], [[0]], [[0, 1], [1]], object(), None])
def test_what_is_no_square_matrix_is_refused(matrix):
    with pytest.raises(InvalidInputError, match="loss"):
        parse_loss(matrix)


@pytest.mark.parametrize("bad", [-1.0, float("nan"), float("inf")])
def test_losses_are_finite_and_not_negative(bad):
    with pytest.raises(InvalidInputError, match="at least 0"):
        parse_loss([[0, bad], [1, 0]])
    with pytest.raises(InvalidInputError, match="at least 0"):
        ErrorLoss(lambda e: bad).by_error(2)
    with pytest.raises(InvalidInputError, match="at least 0"):
        CallableLoss(lambda i, r: bad).table(np.arange(2), np.arange(2))


@pytest.mark.parametrize("exponent", [0, -1, True, "2"])
def test_powers_are_positive_numbers(exponent):
    with pytest.raises(InvalidInputError, match="exponent"):
        power(exponent)
    with pytest.raises(InvalidInputError, match="under"):
        asymmetric(exponent, 1)


@pytest.mark.parametrize(
    "function",
    [
        lambda i, r: "text",
        lambda i, r: 1 / 0,
        lambda i: 1,
        lambda i, r: None,
        lambda i, r: [1.0],
        lambda i, r: float("nan"),
        lambda i, r: 10**400,
        lambda i, r: -1,
    ],
)
def test_a_function_that_fails_or_returns_no_loss_gets_a_sentence(function):
    mechanism = GeometricMechanism(3, alpha=0.5)
    with pytest.raises(InvalidInputError, match="count 0, answer 0"):
        mechanism.remap(Consumer("uniform", function))
    with pytest.raises(InvalidInputError, match="count 0, answer 0"):
        optimal_mechanism(Consumer("uniform", function), 3, 0.5)


def test_booleans_and_array_scalars_are_losses():
    for right in (
        lambda i, r: i != r,
        lambda i, r: np.bool_(i != r),
        lambda i, r: np.array(i != r),
    ):
        loss = parse_loss(right)
        assert loss.table(np.array([1, 2]), np.array([1, 1])).tolist() == [0, 1]
        assert (loss.exact(1, 1), loss.exact(2, 1)) == (0, 1)


def test_a_power_beyond_floats_is_refused_where_it_overflows():
    steep = power(10**9)
    assert steep.exact(1, 0) == 1
    for use in (
        lambda: steep.exact(2, 0),
        lambda: steep.table(np.array([2]), np.array([0])),
        lambda: GeometricMechanism(3, alpha=0.5).remap(Consumer("uniform", steep)),
    ):
        with pytest.raises(InvalidInputError, match="smaller exponent"):
            use()
