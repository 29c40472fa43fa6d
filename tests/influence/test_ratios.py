"""Log-ratios: exact supports, errors within the margin, never too small."""

from __future__ import annotations

import math
from concurrent.futures import ThreadPoolExecutor
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from quiltwork.influence.quilts.powers import Powers
from quiltwork.influence.ratios import equal_rows, log_ratios, product_margin, row_ratios
from tests.strategies import stochastic_matrices


def exact_power(matrix, exponent: int) -> list[list[Fraction]]:
    """The power of the floats' own values, in fractions."""
    rows = [[Fraction(v) for v in row] for row in matrix.tolist()]
    size, result = len(rows), rows
    for _ in range(exponent - 1):
        result = [
            [sum(result[x][y] * rows[y][z] for y in range(size)) for z in range(size)]
            for x in range(size)
        ]
    return result


def true_ratio(power, x: int, y: int, columns) -> float:
    """max_z log power(x, z)/power(y, z): 0/0 is skipped, x/0 is infinite."""
    worst = -math.inf
    for z in columns:
        if power[x][z] > 0:
            worst = max(worst, math.inf if power[y][z] == 0 else _log(power[x][z] / power[y][z]))
    return worst


def _log(fraction: Fraction) -> float:
    return math.log(float(fraction))


@given(stochastic_matrices(2, 4), st.integers(1, 12))
@settings(max_examples=60)
def test_forward_ratios_are_never_below_the_exact_ones_and_close(matrix, exponent):
    power = exact_power(matrix, exponent)
    found = Powers(matrix).forward(np.array([exponent]))[0]
    for x in range(len(matrix)):
        for y in range(len(matrix)):
            true = true_ratio(power, x, y, range(len(matrix)))
            assert found[x, y] >= true - 1e-15
            assert found[x, y] == pytest.approx(true, abs=1e-12)


@given(stochastic_matrices(2, 4), st.integers(1, 12), st.data())
@settings(max_examples=60)
def test_backward_ratios_look_at_the_possible_states_only(matrix, exponent, data):
    size = len(matrix)
    support = data.draw(st.sets(st.integers(0, size - 1), min_size=1))
    mask = np.isin(np.arange(size), list(support))
    columns = [list(column) for column in zip(*exact_power(matrix, exponent), strict=True)]
    found = Powers(matrix).backward(np.array([exponent]), mask)[0]
    for x in range(size):
        for y in range(size):
            true = true_ratio(columns, x, y, sorted(support))
            if true > -math.inf:  # states that cannot be reached are nobody's business
                assert found[x, y] >= true - 1e-15
                assert found[x, y] == pytest.approx(true, abs=1e-12)


def test_equal_rows_have_exactly_no_influence():
    matrix = np.array([[0.3, 0.7, 0], [0.3, 0.7, 0], [0.1, 0.2, 0.7]])
    found = Powers(matrix).forward(np.array([1, 5, 1000]))
    assert (found[:, 0, 1] == 0).all()
    assert (found[:, 0, 2] > 0).all()
    assert np.argwhere(equal_rows(matrix)).tolist() == [[0, 0], [0, 1], [1, 0], [1, 1], [2, 2]]


def test_underflow_loses_no_support():
    """P²⁰(0, 4) is positive but far below the smallest float; it must not look impossible."""
    climb = 1e-90
    matrix = np.diag(np.full(4, climb), 1) + np.diag(np.full(4, 0.5), -1)
    matrix += np.diag(1 - matrix.sum(axis=1))
    powers = Powers(matrix)
    assert powers._power(4)[0][0, 4] == 0
    found = powers.forward(np.array([4]))[0]
    assert found[1, 0] == math.inf
    assert np.isfinite(found[0, 1])
    assert found[0, 1] < 3


def test_powers_do_not_depend_on_what_was_asked_before():
    matrix = np.random.default_rng(3).dirichlet(np.ones(5), 5)
    one, other = Powers(matrix), Powers(matrix)
    one.forward(np.arange(1, 40))
    everywhere = np.ones(5, dtype=bool)
    for distance in (7, 33, 1000):
        at = np.array([distance])
        assert (one.forward(at) == other.forward(at)).all()
        assert (one.backward(at, everywhere) == other.backward(at, everywhere)).all()


def test_a_weight_too_small_to_trust_counts_as_zero_below_the_line():
    weights = np.array([1e-300, 0.5, 0.0])
    found = log_ratios(weights, weights, np.array([True, True, False]))
    assert found[0, 1] == math.inf
    assert found[1, 0] < 0


def test_many_matrices_at_once_give_what_each_gives_alone():
    rng = np.random.default_rng(5)
    values = rng.random((7, 40, 40))
    together = row_ratios(values, None)
    for i in range(7):
        assert (together[i] == row_ratios(values[i : i + 1], None)[0]).all()


def test_the_margin_is_at_least_that_of_the_theory():
    """4·b·(k + 2)·2^-53."""
    assert product_margin(10, 3) >= 4 * 10 * 5 * 2.0**-53


def test_threads_share_powers_safely():
    matrix = np.random.default_rng(4).dirichlet(np.ones(6), 6)
    shared, distances = Powers(matrix), [np.array([d, 2 * d, 1000 + d]) for d in range(1, 60)]
    with ThreadPoolExecutor(8) as pool:
        together = list(pool.map(shared.forward, distances))
    alone = Powers(matrix)
    for found, at in zip(together, distances, strict=True):
        assert (found == alone.forward(at)).all()


def test_a_positive_matrix_whose_power_underflows_keeps_its_support():
    """Each product below rounds to 0; the state is possible all the same, and nothing is known."""
    tiny = 5e-324
    matrix = np.array([[0.3, 0.3, 0.4, tiny]] * 3 + [[0.2, 0.2, 0.3, 0.3]])
    matrix[0, :3] = 0.4, 0.3, 0.3
    powers = Powers(matrix)
    assert powers._power(2)[0][0, 3] == 0
    found = powers.forward(np.array([2]))[0]
    assert found[3, 0] == math.inf
