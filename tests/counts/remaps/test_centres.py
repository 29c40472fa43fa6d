"""The searches themselves; what they find is compared with Bayes' rule in test_remap."""

from __future__ import annotations

from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from quiltwork.counts.consumers.losses import Pinball
from quiltwork.counts.remaps import centres
from quiltwork.counts.remaps.filters import posteriors
from tests.counts.oracle import ALPHAS, priors, weights_of


@settings(max_examples=30)
@given(st.integers(1, 8).flatmap(priors), ALPHAS, st.data())
def test_costs_of_any_answer_are_those_of_the_definition(prior, alpha, data):
    n = len(prior) - 1
    post = posteriors(np.array(prior, dtype=float), alpha, 2)
    answer = np.array([data.draw(st.integers(0, n)) for _ in range(n + 1)])
    squares = centres.squared_cost(post, answer)
    pinball = centres.pinball_cost(post, answer, Pinball(Fraction(3), Fraction(1, 2)))
    misses = centres.mode_cost(post, answer)
    for r in range(n + 1):
        weights, k = weights_of(prior, alpha, r), int(answer[r])
        exact = sum(w * (i - k) ** 2 for i, w in enumerate(weights))
        assert squares[r] == pytest.approx(float(exact), rel=1e-10, abs=1e-10)
        exact = sum(
            w * (3 * max(i - k, 0) + Fraction(max(k - i, 0), 2)) for i, w in enumerate(weights)
        )
        assert pinball[r] == pytest.approx(float(exact), rel=1e-10, abs=1e-10)
        assert misses[r] == pytest.approx(float(1 - weights[k]), abs=1e-12)
