from __future__ import annotations

from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from quiltwork.counts.remaps.posteriors import decay_filter, one_sided_moments, posteriors
from tests.counts.oracle import ALPHAS, logs_of, priors


@settings(max_examples=40)
@given(st.integers(1, 12).flatmap(priors), ALPHAS, st.integers(0, 5))
def test_moments_follow_their_definition(prior, alpha, degree):
    exact = [
        [
            sum(((j - i) ** d * prior[i] * alpha ** (j - i) for i in range(j + 1)), Fraction(0))
            for j in range(len(prior))
        ]
        for d in range(degree + 1)
    ]
    found = one_sided_moments(np.array(prior, dtype=float), float(alpha), degree)
    assert np.allclose(found, np.array(exact, dtype=float), rtol=1e-12, atol=1e-300)


@settings(max_examples=40)
@given(st.integers(1, 12).flatmap(priors), ALPHAS, st.data())
def test_cumulative_posteriors_follow_bayes_rule(prior, alpha, data):
    n = len(prior) - 1
    post = posteriors(logs_of(prior), alpha, 0)
    at = np.array([data.draw(st.integers(0, n)) for _ in range(n + 1)])
    found = post.mass_up_to(at)
    for r in range(n + 1):
        weights = [prior[i] * alpha ** abs(i - r) for i in range(n + 1)]
        assert found[r] == pytest.approx(float(sum(weights[: at[r] + 1]) / sum(weights)), abs=1e-12)
        assert np.exp(post.log_evidence[r]) == pytest.approx(float(sum(weights)), rel=1e-12)


def test_a_level_near_one_keeps_its_digits():
    post = posteriors(logs_of(np.full(3, 1 / 3)), 1 - Fraction(1, 10**15), 0)
    assert post.rate == pytest.approx(1e-15, rel=1e-9)


@pytest.mark.parametrize("decay", [2.0**-1000, 0.3, 0.999_999, 1.0])
@pytest.mark.parametrize("size", [1, 2, 3, 8, 1000, 1001])
def test_the_filter_in_blocks_is_the_recursion(size, decay):
    random = np.random.default_rng(size)
    values = random.random(size) * (random.random(size) < 0.05)
    expected, total = [], 0.0
    for value in values.tolist():
        total = decay * total + value
        expected.append(total)
    assert np.allclose(decay_filter(values, decay), expected, rtol=1e-12, atol=0)
