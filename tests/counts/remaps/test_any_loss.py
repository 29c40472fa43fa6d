"""Whole posteriors in blocks, against Bayes' rule in fractions and over whole matrices."""

from __future__ import annotations

from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.lib.stride_tricks import sliding_window_view as sliding

from quiltwork.counts import Consumer, GeometricMechanism
from quiltwork.counts.consumers.loss_functions import CallableLoss, ErrorLoss, power
from quiltwork.counts.remaps import remap
from quiltwork.counts.remaps.posteriors import posteriors
from tests.counts.oracle import ALPHAS, SHAPES, bayes, geometric, logs_of, priors, whole_posteriors

LOSSES = {
    "power 1/2": power(Fraction(1, 2)),
    "power 3/2": power(Fraction(3, 2)),
    "power 12": power(12),
    "capped": ErrorLoss(lambda e: min(abs(e), 3)),
    "free below": ErrorLoss(lambda e: max(e, 0)),
    "free near by": ErrorLoss(lambda e: max(abs(e) - 2, 0) ** 2),
    "steep above, capped below": ErrorLoss(lambda e: 5 * e if e > 0 else min(-e, 4)),
    "nothing": ErrorLoss(lambda e: 0),
    "no order": ErrorLoss(lambda e: e % 3),
    "no order at all": CallableLoss(lambda i, r: (7 * i + 3 * r) % 5),
}


@st.composite
def small_cases(draw):
    n = draw(st.integers(1, 22))
    return draw(priors(n)), draw(ALPHAS)


@pytest.mark.parametrize("loss", LOSSES.values(), ids=LOSSES)
@settings(max_examples=12, deadline=None)
@given(small_cases(), st.sampled_from([1, 2, 3, 8]), st.sampled_from([1, 40, 10_000]))
def test_blocks_and_panels_of_any_size_are_bayes_rule_in_fractions(loss, case, block, panel):
    prior, alpha = case
    n = len(prior) - 1
    found = GeometricMechanism(n, alpha=alpha).remap(Consumer(prior, loss))
    mapping, after, face = bayes(geometric(n, alpha), prior, loss)
    assert found.mapping == mapping
    assert found.expected_loss == pytest.approx(float(after), rel=1e-12)
    assert found.face_value_loss == pytest.approx(float(face), rel=1e-12)
    whole, parts = (
        remap.best_answers(found.posteriors, remap._columns(loss, n), *sizes)
        for sizes in ((), (block, panel))
    )
    assert tuple(parts.answers) == mapping
    assert parts.cost == pytest.approx(whole.cost, rel=1e-12)
    assert parts.face_cost == pytest.approx(whole.face_cost, rel=1e-12)


@pytest.mark.parametrize("shape", SHAPES)
@settings(max_examples=6, deadline=None)
@given(
    st.integers(20, 700),
    st.sampled_from([Fraction(1, 10**12), *map(Fraction, ("0.1", "0.7", "0.97", "0.999", "1"))]),
    st.sampled_from([0.1, 0.5, 0.99, 1.5, 7.7]),
    st.sampled_from([np.inf, 4.5]),
)
def test_answers_and_costs_are_those_of_whole_posteriors(shape, n, alpha, exponent, cap):
    """Masses may be far below the least float; a cap makes losses that are not convex."""
    x = np.arange(n + 1)
    prior = SHAPES[shape](np.random.default_rng(n), x)
    post = posteriors(logs_of(prior / prior.sum()), alpha, 0)
    by_error = np.minimum(np.abs(np.arange(-n, n + 1.0)) ** exponent, cap)
    found = remap.best_answers(post, lambda a, b: by_error[n + x[a:b] - x[:, None]])
    costs = whole_posteriors(post, by_error)
    least = costs.min(axis=1)
    rounding = 1e-11  # of the logarithms that both computations take
    assert (costs[x, found.answers] <= least * (1 + rounding) + 1e-280).all()
    assert found.cost == pytest.approx(costs[x, found.answers], rel=rounding, abs=1e-280)
    assert found.face_cost == pytest.approx(np.diagonal(costs), rel=rounding, abs=1e-280)
    alone = (costs <= least[:, None] * (1 + 1e-9)).sum(axis=1) == 1
    assert (found.answers[alone] == np.argmin(costs, axis=1)[alone]).all()


def test_a_loss_is_asked_once_for_every_pair():
    pairs = []
    loss = CallableLoss(lambda i, r: pairs.append((i, r)) or abs(i - r) * (i + 1))
    post = posteriors(logs_of(np.full(31, 1 / 31)), Fraction(1, 2), 0)
    remap.best_answers(post, remap._columns(loss, 30), panel=70)
    assert sorted(pairs) == [(i, r) for i in range(31) for r in range(31)]


@pytest.mark.parametrize("panel", [1, 40, 10_000])
def test_ties_between_panels_go_to_the_smallest(panel):
    """At alpha = 1 a symmetric prior makes k and 29 - k tied; rounding tells them apart."""
    rng = np.random.default_rng(4)
    by_error = np.abs(np.arange(-29, 30.0)) ** 0.5
    for _ in range(20):
        half = rng.integers(1, 9, 15)
        prior = np.concatenate([half, half[::-1]]) / (2 * half.sum())
        post = posteriors(logs_of(prior), Fraction(1), 0)
        columns = sliding(by_error, 30)[::-1]
        found = remap.best_answers(post, lambda a, b: columns[:, a:b], panel=panel)  # noqa: B023
        assert found.answers.max() < 15
