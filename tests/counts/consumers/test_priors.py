from __future__ import annotations

from fractions import Fraction
from itertools import pairwise, product

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import stats

import quiltwork as qw
from quiltwork.counts import ChainCounts, Consumer, learn_from_release
from quiltwork.counts.consumers.consumer import prior_fractions, prior_probabilities
from quiltwork.errors import InvalidInputError, UnsupportedError
from tests.counts.oracle import ALPHAS, geometric, priors


def test_uniform_and_arrays():
    assert prior_probabilities("uniform", 3).tolist() == [0.25] * 4
    for prior in ([0.5, 0.5], (0.5, 0.5), np.array([0.5, 0.5]), pd.Series([0.5, 0.5])):
        assert prior_probabilities(prior, 1).tolist() == [0.5, 0.5]


def test_floats_are_read_as_decimals():
    assert prior_fractions([0.1, 0.9], 1) == [Fraction(1, 10), Fraction(9, 10)]
    assert prior_fractions("uniform", 2) == [Fraction(1, 3)] * 3
    assert sum(prior_fractions(stats.poisson(2), 5)) == 1


def test_tails_of_scipy_distributions_keep_their_digits():
    """A normal law 8 and 30 standard deviations below 0, against ratios of its tail."""
    for mean in (-8, -30):
        found = prior_probabilities(stats.norm(mean, 1), 4)
        logs = stats.norm.logsf(np.arange(6) - 0.5 - mean)
        expected = np.exp(logs[:-1] - logs[0]) * -np.expm1(np.diff(logs))
        assert found == pytest.approx(expected / expected.sum(), rel=1e-9)
        assert prior_probabilities(stats.norm(4 - mean, 1), 4)[::-1] == pytest.approx(found)


def test_scipy_distributions_are_conditioned_on_the_range():
    found = prior_probabilities(stats.poisson(3), 6)
    weights = np.array([3.0**k / np.prod(np.arange(1, k + 1)) for k in range(7)])
    assert np.allclose(found, weights / weights.sum())
    normal = prior_probabilities(stats.norm(4, 1), 8)
    assert normal.sum() == pytest.approx(1)
    assert normal.argmax() == 4
    if hasattr(stats, "Normal"):
        assert np.allclose(prior_probabilities(stats.Normal(mu=4, sigma=1), 8), normal)
    with pytest.raises(InvalidInputError, match="no probability"):
        prior_probabilities(stats.poisson(3, loc=100), 5)


@pytest.mark.parametrize(
    ("prior", "words"),
    [
        ([0.5, 0.4], "adds up to 0.9"),
        ([1.5, -0.5], "at least 0"),
        ([float("nan"), 1], "finite"),
        ([1.0], "counts 0..1 need 2"),
        ([[0.5, 0.5]], "one dimension"),
        ("normal", "Unknown prior"),
        (object(), "A prior must be"),
        (None, "A prior must be"),
        (qw.MarkovChain([[0.5, 0.5], [0.5, 0.5]]), "ChainCounts"),
    ],
)
def test_bad_priors_are_refused_with_the_reason(prior, words):
    with pytest.raises(InvalidInputError, match=words):
        prior_probabilities(prior, 1)


def test_a_consumer_refuses_a_bad_prior_at_once():
    with pytest.raises(InvalidInputError, match="adds up"):
        Consumer([0.2, 0.2])
    with pytest.raises(InvalidInputError, match="Unknown prior"):
        Consumer("flat")
    with pytest.raises(InvalidInputError, match="covers counts"):
        Consumer("uniform", [[0, 1], [1, 0]]).probabilities(5)


@pytest.mark.parametrize("start", [[0.3, 0.7], "stationary"])
@pytest.mark.parametrize("length", [1, 2, 5])
def test_chain_counts_by_enumeration_of_all_paths(start, length):
    matrix = [[0.9, 0.1], [0.4, 0.6]]
    chain = qw.MarkovChain(matrix, initial=start, states=["rest", "walk"])
    exact = np.zeros(length + 1)
    for path in product((0, 1), repeat=length):
        probability = chain.start[path[0]]
        for a, b in pairwise(path):
            probability *= matrix[a][b]
        exact[sum(path)] += probability
    assert np.allclose(ChainCounts(chain, "walk").probabilities(length), exact, atol=1e-14)


def test_chain_counts_refuse_what_they_cannot_do():
    chain = qw.MarkovChain([[0.9, 0.1], [0.4, 0.6]])
    with pytest.raises(InvalidInputError, match="no state 7"):
        ChainCounts(chain, 7).probabilities(3)
    with pytest.raises(UnsupportedError, match="about"):
        ChainCounts(chain, 0).probabilities(10**6)
    with pytest.raises(UnsupportedError, match="any"):
        ChainCounts(qw.MarkovChain([[0.9, 0.1], [0.4, 0.6]], initial="any"), 0).probabilities(3)


def test_a_consumer_may_believe_a_chain():
    chain = qw.MarkovChain([[0.9, 0.1], [0.4, 0.6]])
    assert Consumer(ChainCounts(chain, 1)).probabilities(20).sum() == pytest.approx(1)


@settings(max_examples=40)
@given(st.integers(1, 8).flatmap(priors), ALPHAS, st.integers(-3, 12))
def test_one_release_gives_its_posterior(base, alpha, released):
    n = len(base) - 1
    found = learn_from_release(released, n, alpha, base)
    matrix = geometric(n, alpha)
    answer = min(max(released, 0), n)
    exact = [base[i] * matrix[i][answer] for i in range(n + 1)]
    assert np.allclose(found, [float(e / sum(exact)) for e in exact], atol=1e-12)


def test_releases_add_up():
    once = learn_from_release(4, 10, 0.5)
    twice = learn_from_release([4, 6], 10, [0.5, 0.5])
    assert np.allclose(twice, learn_from_release(6, 10, 0.5, base=once))


@pytest.mark.parametrize(
    ("call", "words"),
    [
        (lambda: learn_from_release(1, 3, 0), "strictly"),
        (lambda: learn_from_release([1, 2], 3, [0.5]), "one for each"),
        (lambda: learn_from_release(1.5, 3, 0.5), "released"),
    ],
)
def test_what_cannot_be_learned_from_is_refused(call, words):
    with pytest.raises(InvalidInputError, match=words):
        call()
