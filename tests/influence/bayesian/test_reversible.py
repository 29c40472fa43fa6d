"""Lemma 4: never more than the exact search allows, its constant the best one."""

from __future__ import annotations

import math
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from quiltwork.beliefs import MarkovChain
from quiltwork.influence import dp_for_bayesian_dp
from quiltwork.influence.bayesian.reversible import reversible_level

CHAIN = MarkovChain([[0.9, 0.1], [0.4, 0.6]])


@st.composite
def reversible_chains(draw):
    """A random walk on a weighted graph."""
    size = draw(st.integers(2, 4))
    weights = draw(
        st.lists(st.integers(1, 9), min_size=size * size, max_size=size * size).map(
            lambda w: np.array(w, dtype=float).reshape(size, size)
        )
    )
    weights = weights + weights.T
    return MarkovChain(weights / weights.sum(axis=1, keepdims=True))


@given(reversible_chains(), st.floats(0.05, 5), st.integers(1, 500))
@settings(max_examples=40)
def test_it_never_allows_more_than_the_exact_search(chain, epsilon, length):
    exact = dp_for_bayesian_dp(chain, epsilon, length=length)
    assert reversible_level(chain, Fraction(epsilon), length) <= exact * (1 + 1e-12)


@pytest.mark.parametrize("epsilon", [0.1, 1.0, 4.0])
def test_no_other_constant_is_better(epsilon):
    """The paper's formula on a fine grid of c."""
    found = reversible_level(CHAIN, Fraction(epsilon), 10**6)
    g, rho, best = 0.5, 0.2, 0.0
    s = math.ceil(math.log((math.exp(epsilon / 6) + 1) / (rho * (math.exp(epsilon / 6) - 1))) / g)
    for c in np.linspace(1e-4, 1 / 4, 20000):
        u = math.exp(c * epsilon)
        d = math.ceil(math.log((u + 1) / (rho * (u - 1))) / g)
        first, second = (1 - 6 * c) * epsilon / (2 * d - 1), (1 / 3 - 2 * c) * epsilon / (d + s)
        best = max(best, min(first, second))
    assert best <= found * (1 + 1e-9)
    assert found <= best * 1.001


def test_short_series_and_other_chains_get_nothing():
    assert reversible_level(CHAIN, Fraction(1), 5) == 0
    turning = MarkovChain([[0, 0.9, 0.1], [0.1, 0, 0.9], [0.9, 0.1, 0]])
    for chain in (turning, MarkovChain([[0, 1], [1, 0]])):
        assert reversible_level(chain, Fraction(1), 100) == 0
