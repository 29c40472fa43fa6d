"""Powers in blocks, against Bayes' rule over whole posteriors."""

from __future__ import annotations

from fractions import Fraction
from unittest.mock import patch

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from quiltwork.counts import Consumer, GeometricMechanism
from quiltwork.counts.remaps import blocks, remap
from tests.counts.oracle import (
    SHAPES,
    check_power_centres,
    check_power_remap,
    power_cases,
    shaped_posteriors,
)

EXPONENTS = st.sampled_from(
    [Fraction(11, 10), Fraction(3, 2), Fraction(199, 100), Fraction(5, 2), Fraction(77, 10), 9, 12]
).map(Fraction)


@settings(max_examples=40, deadline=None)
@given(power_cases(EXPONENTS), st.sampled_from([2, 3, 8]))
def test_many_small_blocks_are_bayes_rule_in_fractions(case, size):
    with patch.object(blocks, "_SIZE", size), patch.object(remap, "LARGEST_WHOLE", 0):
        check_power_remap(case)


@pytest.mark.parametrize("shape", SHAPES)
@settings(max_examples=8, deadline=None)
@given(
    st.integers(20, 700),
    st.sampled_from([Fraction(1, 10**12), *map(Fraction, ("0.1", "0.7", "0.97", "0.999", "1"))]),
    EXPONENTS,
)
def test_chosen_answers_cost_no_more_than_the_proven_excess(shape, n, alpha, exponent):
    post = shaped_posteriors(shape, n, alpha)
    found = blocks.power_centres(post, exponent)
    check_power_centres(found, post, exponent)
    assert (np.diff(found.answers) >= 0).all()


def test_a_hundred_thousand_counts_under_much_noise():
    """Far from the ends a uniform prior is translation invariant, so is the remap."""
    n = 100_000
    remap = GeometricMechanism(n, alpha=0.999).remap(Consumer("uniform", "power:3/2"))
    inside = slice(30_000, -30_000)
    assert (remap.table[inside] == np.arange(n + 1)[inside]).all()
    assert remap.table[0] > 0
    assert remap.truncation_cost <= 1e-11 * remap.expected_loss
    assert remap.face_value_loss == pytest.approx(face_value_loss(n, 0.999, 1.5), rel=1e-9)


def face_value_loss(n, alpha, exponent):
    """From the noise alone: at distance d there are 2(n + 1 − d) pairs, those at the ends apart."""
    d = np.arange(1, n + 1)
    at_ends = 2 * alpha**d / (1 + alpha)
    inside = 2 * (n - d) * alpha**d * (1 - alpha) / (1 + alpha)
    return float(((at_ends + inside) * d.astype(float) ** exponent).sum() / (n + 1))


def test_powers_beyond_floats_are_left_to_windows():
    assert not blocks.covers(Fraction(60), 10**6)
    assert blocks.covers(Fraction(60), 100)
    assert blocks.covers(Fraction(1, 2), 10**6)
