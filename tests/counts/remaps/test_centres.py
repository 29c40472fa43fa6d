"""Means and modes against their definitions in fractions; costs are compared in test_costs."""

from __future__ import annotations

from fractions import Fraction
from math import ceil

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from quiltwork.counts.remaps import centres
from quiltwork.counts.remaps.filters import posteriors
from tests.counts.oracle import ALPHAS, priors, weights_of


@settings(max_examples=60)
@given(st.integers(1, 12).flatmap(priors), ALPHAS)
def test_means_round_halves_down_and_modes_are_the_smallest(prior, alpha):
    post = posteriors(np.array(prior, dtype=float), alpha, 1)
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
    post = posteriors(np.array(weights) / sum(weights), Fraction(1, 3), 0)
    assert centres.mode(post).tolist() == modes
