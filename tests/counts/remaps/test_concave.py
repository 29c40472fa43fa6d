"""Powers below 1 in blocks, against Bayes' rule over whole posteriors."""

from __future__ import annotations

from collections import Counter
from fractions import Fraction
from unittest.mock import patch

import numpy as np
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from quiltwork.counts import Consumer, GeometricMechanism
from quiltwork.counts.remaps import blocks, concave, remap
from quiltwork.counts.remaps.filters import posteriors
from tests.counts.oracle import (
    SHAPES,
    check_power_centres,
    check_power_remap,
    power_cases,
    shaped_posteriors,
)
from tests.sizes import sample

EXPONENTS = st.sampled_from([Fraction(1, 1000), *map(Fraction, ("0.1", "0.5", "0.9", "0.999"))])


@settings(max_examples=40, deadline=None)
@given(power_cases(EXPONENTS), st.sampled_from([2, 3, 8]))
def test_many_small_blocks_are_bayes_rule_in_fractions(case, size):
    with patch.object(blocks, "_SIZE", size), patch.object(remap, "LARGEST_WHOLE", 0):
        check_power_remap(case)


@pytest.mark.parametrize("shape", SHAPES)
@settings(max_examples=6, deadline=None)
@given(
    st.integers(20, 700),
    st.sampled_from([Fraction(1, 10**12), *map(Fraction, ("0.1", "0.7", "0.97", "0.999", "1"))]),
    EXPONENTS,
    st.sampled_from([3, 10, 60]),
)
@example(105, Fraction(1, 10**12), Fraction(1, 1000), 10)  # costs of 1e-228 and less
def test_chosen_answers_cost_no_more_than_the_proven_excess(shape, n, alpha, exponent, size):
    post = shaped_posteriors(shape, n, alpha)
    with patch.object(blocks, "_SIZE", size):
        found = concave.concave_centres(post, exponent)
    check_power_centres(found, post, exponent)


@pytest.mark.parametrize(("alpha", "most"), [(0.5, 2), (0.999, 9), (1, 8)])
def test_few_blocks_of_candidates_are_tried_per_block_of_answers(alpha, most):
    """A uniform prior over 20,001 counts: 334 blocks, each of which could be tried for each."""
    post = posteriors(np.full(20_001, 1 / 20_001), Fraction(str(alpha)), 0)
    with patch.object(
        blocks.BlockCosts, "row_costs", autospec=True, side_effect=blocks.BlockCosts.row_costs
    ) as tried:
        concave.concave_centres(post, Fraction(1, 2))
    assert tried.call_count <= most * 334


@pytest.mark.parametrize("shape", SHAPES)
@pytest.mark.parametrize("alpha", ["0.5", "0.97", "0.999"])
@pytest.mark.parametrize("exponent", ["0.3", "0.5", "0.9"])
def test_answers_of_little_remaining_loss_try_few_blocks(shape, alpha, exponent):
    """At most 6 + 4·(6m)^(1/p)/B of them, m being the answer's least cost."""
    n, size, p = sample(900, full=3_000), 10, float(exponent)
    post = shaped_posteriors(shape, n, Fraction(alpha))
    tried = Counter()

    def counted(costs, row, b, c):
        tried[b] += 1
        return row_costs(costs, row, b, c)

    row_costs = blocks.BlockCosts.row_costs
    with patch.object(blocks, "_SIZE", size), patch.object(blocks.BlockCosts, "row_costs", counted):
        found = concave.concave_centres(post, Fraction(exponent))
    least = found.cost[::size]
    assert tried.total() >= len(least)
    for b, times in tried.items():
        assert times <= 6 + 4 * (6 * least[b]) ** (1 / p) / size * (1 + 1e-9)


def test_many_counts_under_much_noise():
    """Far from the ends a uniform prior is translation invariant, so is the remap."""
    n, alpha = 20_000, 0.99
    found = GeometricMechanism(n, alpha=alpha).remap(Consumer("uniform", "power:1/2"))
    inside = slice(5_000, -5_000)
    assert (found.table[inside] == np.arange(n + 1)[inside]).all()
    d = np.arange(1, n + 1)
    at_zero = [float((alpha ** np.arange(n) * abs(np.arange(n) - k) ** 0.5).sum()) for k in d[:99]]
    assert found.table[0] == 1 + np.argmin(at_zero) == n - found.table[-1]
    at_ends, between = (
        2 * alpha**d / (1 + alpha),
        2 * (n - d) * alpha**d * (1 - alpha) / (1 + alpha),
    )
    face = float(((at_ends + between) * d**0.5).sum() / (n + 1))
    assert found.face_value_loss == pytest.approx(face, rel=1e-9)
    assert 0 < found.truncation_cost <= 1e-11 * found.expected_loss
