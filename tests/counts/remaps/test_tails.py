"""Readings where the prior is below the least float, against all counts in logarithms."""

from __future__ import annotations

from fractions import Fraction

import numpy as np
import pytest
from scipy import stats

import quiltwork as qw
from quiltwork.counts import ChainCounts, Consumer, GeometricMechanism, learn_from_release
from quiltwork.counts.consumers.consumer import (
    EarlierRelease,
    prior_log_probabilities,
    prior_probabilities,
)
from quiltwork.errors import UnsupportedError

pytestmark = pytest.mark.filterwarnings("ignore:.*contradicts the prior")


def posterior(logs, epsilon, released):
    """Bayes' rule, shifted by the largest logarithm."""
    weights = logs - epsilon * np.abs(np.arange(len(logs)) - released)
    weights = np.exp(weights - weights.max())
    return weights / weights.sum()


PRIORS = {
    "poisson": (stats.poisson(1000), stats.poisson(1000).logpmf),
    "binomial": (stats.binom(4000, 0.1), stats.binom(4000, 0.1).logpmf),
}


@pytest.mark.parametrize("name", PRIORS)
@pytest.mark.parametrize("epsilon", [0.05, 0.5, 2])
@pytest.mark.parametrize("loss", ["asymmetric:3:1", "squared", "binary", "power:3"])
def test_far_releases_have_the_posterior_of_the_whole_prior(name, epsilon, loss):
    n, (prior, log) = 4000, PRIORS[name]
    logs, counts = log(np.arange(n + 1)), np.arange(n + 1)
    consumer = Consumer(prior, loss)
    found = GeometricMechanism(n, epsilon=epsilon).remap(consumer)
    for r in (0, 30, 240, 900, 1263, 2100, 3000, n):
        chances = posterior(logs, epsilon, r)
        near = np.clip(found(r) + np.arange(-2, 3), 0, n)
        costs = chances @ consumer.loss.table(counts[:, None], near[None])
        assert costs[2] <= costs.min() * (1 + 1e-9)
        assert (
            abs(found(r) - chances @ counts)
            < 6 * np.sqrt(chances @ (counts - chances @ counts) ** 2) + 2
        )
        for confidence in (Fraction(19, 20), 1 - Fraction(1, 10**9)):
            low, high = found.interval(r, confidence)
            tail = float(1 - confidence) / 2
            below, above = np.cumsum(chances), np.cumsum(chances[::-1])[::-1]
            assert below[low] >= tail * (1 - 1e-6)
            assert low == 0 or below[low - 1] < tail * (1 + 1e-6)
            assert high == n or above[high + 1] <= tail * (1 + 1e-6)
            assert above[high] > tail * (1 - 1e-6)


def test_the_readings_of_a_large_file():
    found = GeometricMechanism(48_842, epsilon=0.5).remap(
        Consumer(stats.poisson(10_000), "asymmetric:3:1")
    )
    assert found([14_423, 1770, 22_731]).tolist() == [14_422, 6118, 16_574]
    assert found.interval(14_423) == (14_397, 14_425)
    assert found.interval(1770) == (5913, 6218)


def test_a_density_gives_the_logarithms_of_its_tails():
    prior = stats.norm(1500, 9)
    logs = prior_log_probabilities(prior, 4000)
    edges = (np.arange(1600, 4002) - 0.5 - 1500) / 9
    upper = stats.norm.logsf(edges)
    exact = upper[:-1] + np.log1p(-np.exp(np.diff(upper)))
    assert logs[1600:] == pytest.approx(exact, rel=1e-9)
    assert logs[1400::-1] == pytest.approx(logs[1600:3001], rel=1e-9)
    assert GeometricMechanism(4000, epsilon=1).remap(Consumer(prior))(0) == pytest.approx(
        1500 - 81, abs=1
    )


def test_a_range_far_from_the_mean_is_conditioned_on():
    found = prior_probabilities(stats.poisson(10**6), 100)
    assert found[100] == pytest.approx(1 - 100 / 10**6, rel=1e-6)


def test_zeros_of_an_array_are_impossible():
    prior = stats.poisson(3000).pmf(np.arange(8001))
    found = GeometricMechanism(8000, epsilon=2).remap(Consumer(prior / prior.sum()))
    assert found(8000) == np.flatnonzero(prior)[-1]


def test_what_earlier_releases_taught_is_kept_in_logarithms():
    prior = EarlierRelease(100, Fraction(1, 10))
    assert np.allclose(prior_probabilities(prior, 3000), learn_from_release(100, 3000, 0.1))
    found = GeometricMechanism(3000, alpha=Fraction(1, 20)).remap(Consumer(prior))
    assert found(2900) == 2900


@pytest.mark.parametrize(
    "prior",
    [
        stats.dlaplace(1, loc=1500),
        stats.laplace(1500, 1),
        ChainCounts(qw.MarkovChain([[0.5, 0.5], [0.5, 0.5]]), 1),
    ],
    ids=["mass", "density", "chain"],
)
def test_a_tail_without_logarithms_is_refused_where_it_matters(prior):
    found = GeometricMechanism(3000, epsilon=2).remap(Consumer(prior))
    assert found(1510) == pytest.approx(1510, abs=10)
    for call in (found, found.interval):
        with pytest.raises(UnsupportedError, match="The reading of released count 2999 is unknown"):
            call([1500, 2999])


def test_readings_that_are_refused_are_not_shown_either():
    prior = stats.laplace(1500, 1)
    remap = GeometricMechanism(3000, epsilon=2).remap(Consumer(prior))
    shown = dict(enumerate(remap.mapping))
    assert {shown[0], shown[2999]} == {None}
    assert isinstance(shown[1510], int)
    refused = 0
    for row in remap.records():
        if row["reading"] is None:
            refused += 1
            with pytest.raises(UnsupportedError):
                remap(row["released"])
        else:
            assert remap(row["released"]) == row["reading"]
    assert 100 < refused < 3001
    assert remap.body()["mapping"] == list(remap.mapping)


def test_counts_that_are_impossible_raise_no_doubt():
    for prior in (
        stats.poisson(600, loc=3),
        stats.randint(5, 20),
        stats.rv_discrete(values=([3, 70], [0.1, 0.9])),
    ):
        assert not np.isnan(prior_log_probabilities(prior, 2000)).any()
