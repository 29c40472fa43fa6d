"""Lemma 4: never more than the exact search allows, its constant the best one."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from quiltwork.beliefs import MarkovChain
from quiltwork.errors import UnsupportedError
from quiltwork.influence import dp_for_bayesian_dp, reversible_level

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
    tight = reversible_level(chain, epsilon, length).level
    paper = reversible_level(chain, epsilon, length, "paper").level
    assert paper <= tight <= exact * (1 + 1e-12)


@pytest.mark.parametrize("bound", ["tight", "paper"])
@pytest.mark.parametrize("epsilon", [0.1, 1.0, 4.0])
def test_no_other_constant_is_better(bound, epsilon):
    """The paper's formula on a fine grid of c."""
    found = reversible_level(CHAIN, epsilon, 10**6, bound)
    g, rho, best = 0.5, 0.2, 0.0
    s = math.ceil(math.log((math.exp(epsilon / 6) + 1) / (rho * (math.exp(epsilon / 6) - 1))) / g)
    for c in np.linspace(1e-4, 1 / 4, 20000):
        u = math.exp(c * epsilon)
        d = math.ceil(math.log((u + 1) / (rho * (u - 1))) / g)
        if bound == "paper":
            first, second = (1 - 6 * c) * epsilon / (2 * d - 1), (1 / 3 - 2 * c) * epsilon / (d + s)
            best = max(best, min(first, second))
        else:
            best = max(best, (1 - 4 * c) * epsilon / (2 * d - 1))
    assert best <= found.level * (1 + 1e-9)
    assert found.level <= best * 1.001


def test_a_series_shorter_than_two_distances_gets_nothing():
    far = reversible_level(CHAIN, 1, 1000)
    assert reversible_level(CHAIN, 1, 2 * far.distance).level == far.level
    assert reversible_level(CHAIN, 1, 5).level == 0


def test_other_chains_are_refused():
    turning = MarkovChain([[0, 0.9, 0.1], [0.1, 0, 0.9], [0.9, 0.1, 0]])
    with pytest.raises(UnsupportedError, match="reversible"):
        reversible_level(turning, 1, 100)
    with pytest.raises(UnsupportedError, match="aperiodic"):
        reversible_level(MarkovChain([[0, 1], [1, 0]]), 1, 100)
