"""Max-information: the exact value against all events, the bounds against the exact value."""

from __future__ import annotations

import itertools
import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from evidence.checks.holdout import exact_max_information
from quiltwork.beliefs import Clusters, MarkovChain
from quiltwork.holdout.guarantee import (
    bayesian_epsilon,
    max_information,
    squared_leakages,
)
from quiltwork.holdout.max_information import max_information_bound, max_information_of_paper
from quiltwork.influence.bayesian.conversion import leakage_given_past


def by_all_events(joint, beta):
    """Equation (1) by trying every set of outcomes."""
    product = np.outer(joint.sum(axis=1), joint.sum(axis=0)).ravel()
    flat = joint.ravel()
    best = -math.inf
    for chosen in itertools.product([False, True], repeat=len(flat)):
        event = np.array(chosen)
        if flat[event].sum() > beta + 1e-15:
            best = max(best, math.log2((flat[event].sum() - beta) / product[event].sum()))
    return best


@given(st.lists(st.integers(0, 20), min_size=9, max_size=9).filter(sum), st.floats(0.01, 0.6))
@settings(max_examples=25)
def test_the_exact_value_is_the_best_of_all_events(weights, beta):
    joint = np.array(weights, dtype=float).reshape(3, 3) / sum(weights)
    assert exact_max_information(joint, beta) == pytest.approx(by_all_events(joint, beta))


def noisy_count(n, epsilon):
    """P(y | x) for all x in {0,1}^n: the count with two-sided geometric noise, cut far out."""
    alpha = math.exp(-epsilon)
    outputs = np.arange(-60, n + 61)
    rows = np.array(list(itertools.product([0, 1], repeat=n)))
    noise = alpha ** np.abs(outputs[None, :] - rows.sum(axis=1)[:, None])
    return rows, noise / noise.sum(axis=1, keepdims=True)


def probability_of(rows, belief):
    if isinstance(belief, MarkovChain):
        weight = belief.stationary[rows[:, 0]]
        for t in range(1, rows.shape[1]):
            weight = weight * belief.transition[rows[:, t - 1], rows[:, t]]
        return weight
    if belief is None:
        return np.full(len(rows), 0.5 ** rows.shape[1])
    same = np.ones(len(rows), dtype=bool)
    for members in belief.members:
        block = rows[:, members - 1]
        same &= (block == block[:, :1]).all(axis=1)
    return np.where(same, 0.5 ** len(belief.members), 0.0)


@pytest.mark.parametrize("epsilon", [0.1, 0.4, 1.0])
@pytest.mark.parametrize(
    "belief",
    [
        None,
        Clusters([0, 0, 1, 1, 2, 2, 3, 3]),
        Clusters([0, 0, 0, 0, 0, 1, 2, 3]),
        MarkovChain([[0.8, 0.2], [0.3, 0.7]]),
    ],
    ids=["independent", "pairs", "unequal", "chain"],
)
@pytest.mark.parametrize("beta", [0.3, 0.05, 0.001])
def test_the_bound_is_above_the_exact_value_and_below_the_papers(belief, epsilon, beta):
    rows, noise = noisy_count(8, epsilon)
    joint = probability_of(rows, belief)[:, None] * noise
    bound = max_information(squared_leakages(belief, epsilon, 8), beta)
    assert exact_max_information(joint / joint.sum(), beta) <= bound
    assert bound <= max_information_of_paper(bayesian_epsilon(belief, epsilon, 8), 8, beta)
    assert max_information_bound(epsilon, 8, beta, belief) == bound
    paper = max_information_bound(epsilon, 8, beta, belief, "paper")
    assert paper >= max_information_of_paper(bayesian_epsilon(belief, epsilon, 8), 8, beta)


def test_ignoring_clusters_would_claim_too_little():
    """Negative control: eight copies of one coin, priced as independent rows."""
    rows, noise = noisy_count(8, 0.4)
    joint = probability_of(rows, Clusters([0] * 8))[:, None] * noise
    exact = exact_max_information(joint, 0.3)
    assert exact > max_information(squared_leakages(None, 0.05, 8), 0.3)
    assert exact <= max_information(squared_leakages(Clusters([0] * 8), 0.4, 8), 0.3)


@given(st.floats(0.01, 3), st.floats(0.01, 0.99))
def test_a_step_adds_an_eighth_of_its_square_at_most_and_almost_that(width, share):
    """The lemma behind V/8: log-ratios within `width` tilt a law by a KL of at most width²/8."""
    low, high = 1.0, math.exp(width)
    mean = share * low + (1 - share) * high
    tilted = [share * low / mean, (1 - share) * high / mean]
    divergence = tilted[0] * math.log(low / mean) + tilted[1] * math.log(high / mean)
    assert divergence <= width**2 / 8 + 1e-15


def test_the_constant_one_eighth_cannot_be_five_percent_smaller():
    width, share = 0.01, 0.5
    mean = share + (1 - share) * math.exp(width)
    tilted = (1 - share) * math.exp(width) / mean
    divergence = (1 - tilted) * math.log(1 / mean) + tilted * (width - math.log(mean))
    assert divergence > 0.95 * width**2 / 8


def test_squares_add_up_by_cluster():
    belief = Clusters([0, 0, 0, 1, 2])
    assert squared_leakages(belief, 0.1, 5) == pytest.approx((9 + 1 + 1) * 0.01)
    assert squared_leakages(belief, 0.1, 50) == pytest.approx(10 * (9 + 1 + 1) * 0.01)
    assert bayesian_epsilon(belief, 0.1, 5) == pytest.approx(0.3)


@pytest.mark.parametrize("stay", [0.6, 0.8])
def test_rows_before_a_row_leave_only_what_comes_after_it(stay):
    """Who knows the rows before: the worst ratio over all prefixes and outputs, by enumeration."""
    length, level = 9, 0.3
    chain = MarkovChain([[stay, 1 - stay], [1 - stay, stay]])
    rows, told = noisy_count(length, level)
    joint = probability_of(rows, chain)[:, None] * told
    worst = 0.0
    for at in range(length):
        keys = rows[:, : at + 1] @ (1 << np.arange(at + 1))
        sums = np.array([joint[keys == key].sum(axis=0) for key in range(1 << (at + 1))])
        weight = np.array(
            [probability_of(rows, chain)[keys == key].sum() for key in range(len(sums))]
        )
        given_prefix = (sums / weight[:, None]).reshape(2, -1, told.shape[1])  # by the row's value
        worst = max(worst, float(np.abs(np.log(given_prefix[0] / given_prefix[1])).max()))
    bound = leakage_given_past(chain, level, length)
    assert 0.95 * bound <= worst <= bound * (1 + 1e-9)
