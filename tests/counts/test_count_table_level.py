from __future__ import annotations

import math
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from quiltwork.counts.count_table_level import sum_quantile, table_level
from tests.counts.oracle import ALPHAS


def worst_leak(cells, alphas, adjacency):
    """The largest log-likelihood ratio over neighbouring tables: one step in one or two cells."""
    costs = sorted((-math.log(alpha) for alpha in alphas), reverse=True)
    return sum(costs[: 2 if adjacency == "replace" else 1])


@settings(max_examples=40)
@given(
    st.integers(1, 5),
    st.fractions(Fraction(1, 10), 3, max_denominator=20),
    st.sampled_from(["replace", "add-remove"]),
)
def test_the_whole_table_keeps_its_level(cells, epsilon, adjacency):
    level = table_level(tuple(range(cells)), epsilon, None, adjacency)
    leak = worst_leak(cells, level.alphas, adjacency)
    assert leak <= float(epsilon) * (1 + 1e-12)
    assert leak >= float(epsilon) * (1 - 1e-9)
    assert worst_leak(cells, level.alphas, "replace") <= float(level.dp_epsilon) * (1 + 1e-12)


@settings(max_examples=40)
@given(st.integers(1, 5), ALPHAS, st.sampled_from(["replace", "add-remove"]))
def test_levels_of_single_cells_add_up(cells, alpha, adjacency):
    level = table_level(tuple(range(cells)), None, alpha, adjacency)
    assert level.alphas == (alpha,) * cells
    assert float(level.epsilon) == pytest.approx(worst_leak(cells, level.alphas, adjacency))
    assert level.epsilon <= level.dp_epsilon


@settings(max_examples=40)
@given(st.lists(ALPHAS, min_size=1, max_size=4), st.sampled_from([0.5, 0.9, 0.99]))
def test_the_interval_of_a_sum_is_never_too_short(alphas, confidence):
    """Against the convolution of the noise laws."""
    law = np.ones(1)
    for alpha in map(float, alphas):
        reach = math.ceil(-40 / math.log(alpha)) + 1
        steps = np.abs(np.arange(-reach, reach + 1))
        law = np.convolve(law, (1 - alpha) / (1 + alpha) * alpha**steps)
    centre = len(law) // 2
    bound = sum_quantile(alphas, confidence)
    inside = law[max(0, centre - bound) : centre + bound + 1].sum()
    assert inside >= confidence - 1e-9
