"""Mean losses of one side's counts, against sums over all of them."""

from __future__ import annotations

from fractions import Fraction
from unittest.mock import patch

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from quiltwork.counts.remaps.exponentials import power_sum
from quiltwork.counts.remaps.farfield import Layout, SideCosts

SIZE = 4


def side_costs(prior, rate, exponent):
    blocks = len(prior) // SIZE
    offsets = np.arange(SIZE)
    kernel = np.abs(offsets[:, None] - offsets) ** float(exponent)
    layout = Layout(power_sum(exponent, len(prior) + SIZE), SIZE, kernel)
    with np.errstate(divide="ignore"):
        logs = np.log(prior)
    before = np.array([log_mass(logs, rate, b) for b in range(blocks)])
    return SideCosts(layout, rate, logs.reshape(blocks, SIZE), before)


def log_mass(logs, rate, b):
    weights = logs[: b * SIZE] - rate * (b * SIZE - np.arange(b * SIZE))
    return float(np.logaddexp.reduce(weights, initial=-np.inf))


def directly(prior, rate, exponent, b, c):
    """The same from all counts before block b, with weights relative to the largest."""
    counts = np.arange(b * SIZE)
    with np.errstate(divide="ignore"):
        logs = np.log(prior[: b * SIZE]) + rate * counts
    weights = np.exp(logs - logs.max())
    candidates = c * SIZE + np.arange(SIZE)
    losses = np.abs(counts[:, None] - candidates) ** float(exponent)
    return weights @ losses / weights.sum()


@settings(max_examples=40, deadline=None)
@given(
    st.lists(st.sampled_from([0, 0, 1e-40, 1e-5, 1, 3]), min_size=48, max_size=48),
    st.sampled_from([0.0, 0.001, 0.3, 5.0, 700.0]),
    st.sampled_from([Fraction(3, 2), Fraction(27, 10), Fraction(9)]),
    st.data(),
)
def test_side_costs_are_sums_over_the_side_in_any_order_of_blocks(prior, rate, exponent, data):
    prior = np.array(prior, dtype=float)
    prior[0] = 1
    costs = side_costs(prior, rate, exponent)
    last = len(prior) // SIZE - 1
    pairs = data.draw(
        st.lists(st.tuples(st.integers(1, last), st.integers(0, last)), min_size=1, max_size=30)
    )
    order = data.draw(st.sampled_from([None, False, True]))
    if order is not None:
        pairs = sorted(pairs, reverse=order)
    for b, c in pairs:
        assert costs.at(b, c) == pytest.approx(
            directly(prior, rate, exponent, b, c), rel=1e-11, abs=1e-280
        )


def test_masses_far_below_the_least_float_still_count():
    """Blocks 30 apart at rate 5: e^−600 and less, next to each other's mean."""
    prior = np.zeros(160)
    prior[[0, 1, 150]] = [1, 0.5, 1e-300]
    costs = side_costs(prior, 5.0, Fraction(3, 2))
    for b, c in [(38, 0), (38, 20), (39, 37), (39, 39), (20, 5), (20, 39)]:
        assert costs.at(b, c) == pytest.approx(
            directly(prior, 5.0, Fraction(3, 2), b, c), rel=1e-11
        )


@pytest.mark.parametrize("direction", [1, -1])
def test_boundaries_that_move_one_way_with_short_returns_take_linear_work(direction):
    """Stretches of 150 blocks over 300 of them, each queried with two steps back and forth."""
    blocks = 450
    costs = side_costs(np.ones(blocks * SIZE), 0.01, Fraction(3, 2))
    with patch.object(costs, "_join", wraps=costs._join) as join:
        for first in range(2, 300, 1)[::direction]:
            for probe in (first, first + 2, first - 2, first):
                costs.at(first + 148, probe)
    assert join.call_count <= 12 * 300
