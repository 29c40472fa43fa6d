"""Means, modes and quantiles against their definitions in fractions; costs: test_costs."""

from __future__ import annotations

from fractions import Fraction
from math import ceil

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from quiltwork.counts import Consumer, GeometricMechanism
from quiltwork.counts.consumers.loss_functions import asymmetric
from quiltwork.counts.remaps import centres
from quiltwork.counts.remaps.centres import quantile
from quiltwork.counts.remaps.posteriors import posteriors
from tests.counts.oracle import ALPHAS, bayes, geometric, logs_of, priors, weights_of

SMALL = [Fraction(1, 10**d) for d in (1, 3, 5, 9, 13, 16, 40)]
LEVELS = [Fraction(1, 4), Fraction(1, 2), *SMALL, *(1 - tail for tail in SMALL)]


@settings(max_examples=60)
@given(st.integers(1, 12).flatmap(priors), ALPHAS)
def test_means_round_halves_down_and_modes_are_the_smallest(prior, alpha):
    post = posteriors(logs_of(prior), alpha, 1)
    means, modes = centres.nearest_to_mean(post).tolist(), centres.mode(post).tolist()
    for r in range(len(prior)):
        weights = weights_of(prior, alpha, r)
        assert means[r] == ceil(sum(i * w for i, w in enumerate(weights)) - Fraction(1, 2))
        assert modes[r] == weights.index(max(weights))


@pytest.mark.parametrize(
    ("weights", "modes"), [([27, 9, 3, 1], [0, 0, 0, 0]), ([0, 3, 9, 27], [1, 1, 2, 3])]
)
def test_tied_modes_go_to_the_smallest(weights, modes):
    """At alpha = 1/3 all counts below, or above, the last possible one weigh the same there."""
    post = posteriors(logs_of(np.array(weights) / sum(weights)), Fraction(1, 3), 0)
    assert centres.mode(post).tolist() == modes


@settings(max_examples=80, deadline=None)
@given(st.integers(1, 9).flatmap(priors), ALPHAS, st.sampled_from(LEVELS))
def test_quantiles_are_the_least_counts_that_reach_the_level(prior, alpha, level):
    """Up to a small part of the smaller tail."""
    post = posteriors(logs_of(prior), alpha, 1)
    slack = min(level, 1 - level) / 10**9
    for r, c in enumerate(quantile(post, level)):
        weights = weights_of(prior, alpha, r)
        assert sum(weights[: c + 1]) >= level - slack
        assert c == 0 or sum(weights[:c]) < level + slack


@pytest.mark.parametrize("swap", [False, True])
@settings(max_examples=40, deadline=None)
@given(st.integers(1, 12).flatmap(priors), ALPHAS, st.sampled_from([4, 8, 12, 14, 30]))
def test_very_lopsided_losses_are_bayes_rule(swap, prior, alpha, digits):
    rates = (1, Fraction(10) ** digits) if swap else (Fraction(10) ** digits, 1)
    n, loss = len(prior) - 1, asymmetric(*rates)
    found = GeometricMechanism(n, alpha=alpha).remap(Consumer(prior, loss))
    _, best, _ = bayes(geometric(n, alpha), prior, loss)
    assert found.expected_loss == pytest.approx(float(best), rel=1e-9, abs=1e-250)


def test_intervals_leave_out_no_more_than_asked_however_little():
    rare = Fraction(19, 2 * 10**13)
    mechanism = GeometricMechanism(10, alpha=1 - Fraction(1, 10**9))
    for prior in ([1 - rare, *[0] * 9, rare], [rare, *[0] * 9, 1 - rare]):
        found = mechanism.remap(Consumer(prior, "absolute"))
        assert found.interval(5, 1 - Fraction(1, 10**13)) == (0, 10)
        assert found.interval(5, 1 - Fraction(1, 10**400)) == (0, 10)
        assert found.interval(5, 1 - Fraction(1, 10**11)) in ((0, 0), (10, 10))


@pytest.mark.parametrize("alpha", [0.5, 0.99])
def test_small_tails_of_many_counts(alpha):
    """A geometric prior: the tail after c is beta^(c+1)-like, in closed form far from r = 0."""
    n, rate = 3000, 0.01
    prior = np.exp(-rate * np.arange(n + 1))
    post = posteriors(logs_of(prior / prior.sum()), Fraction(str(alpha)), 1)
    found = quantile(post, 1 - Fraction(1, 10**12))
    logs = np.log(prior) + np.log(alpha) * np.abs(np.arange(n + 1) - np.arange(n + 1)[:, None])
    for r in (0, 10, 700, 2000, n):
        weights = np.exp(logs[r] - logs[r].max())
        above = np.cumsum(weights[::-1])[::-1] / weights.sum()
        c = int(found[r])
        assert c == n or above[c + 1] <= 1e-12 * (1 + 1e-9)
        assert above[c] > 1e-12 * (1 - 1e-9)
