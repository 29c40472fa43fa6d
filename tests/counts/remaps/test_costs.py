"""Costs that stay exact where the prior is nearly certain, against the definitions in fractions."""

from __future__ import annotations

import math
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from quiltwork.counts import Consumer, GeometricMechanism
from quiltwork.counts.consumers.loss_functions import CallableLoss, ErrorLoss, asymmetric, power
from quiltwork.counts.remaps import centres
from quiltwork.counts.remaps.posteriors import posteriors
from tests.counts.oracle import ALPHAS, NAMED, bayes, geometric, logs_of, priors
from tests.sizes import sample

LOSSES = [
    *NAMED,
    power(8),
    ErrorLoss(lambda e: min(abs(e), 3), "capped"),
    ErrorLoss(lambda e: e * e if e > 0 else -3 * e, "convex, lopsided"),
    CallableLoss(lambda i, r: abs(i - r) * (i + 1), "worse for large counts"),
    CallableLoss(lambda i, r: (7 * i + 3 * r) % 5, "no order at all"),
]
LEVELS = st.sampled_from([Fraction(a) for a in ("1/50", "1/2", "9/10", "999/1000")]) | ALPHAS


@st.composite
def nearly_certain(draw):
    """A prior with almost everything on one count, and nothing or next to nothing on others."""
    n = draw(st.integers(1, 20))
    tiny = st.just(Fraction(0)) | st.integers(3, 90).map(lambda d: Fraction(1, 10**d))
    weights = draw(st.lists(tiny, min_size=n + 1, max_size=n + 1))
    weights[draw(st.integers(0, n))] = Fraction(1)
    return [weight / sum(weights) for weight in weights]


@pytest.mark.parametrize("loss", LOSSES, ids=lambda loss: loss.name)
@settings(max_examples=10, deadline=None)
@given(nearly_certain(), LEVELS)
def test_expected_losses_are_right_in_all_digits_however_small(loss, prior, alpha):
    n = len(prior) - 1
    found = GeometricMechanism(n, alpha=alpha).remap(Consumer(prior, loss))
    _, after, face = bayes(geometric(n, alpha), prior, loss)
    assert found.expected_loss == pytest.approx(float(after), rel=1e-12, abs=1e-250)
    assert found.face_value_loss == pytest.approx(float(face), rel=1e-12, abs=1e-250)


@settings(max_examples=60, deadline=None)
@given(st.integers(1, 40).flatmap(priors), ALPHAS, st.integers(0, 4), st.data())
def test_both_sides_of_any_told_answer_are_those_of_the_definition(prior, alpha, degree, data):
    n = len(prior) - 1
    post = posteriors(logs_of(prior), alpha, degree)
    told = np.array([data.draw(st.integers(0, n)) for _ in range(n + 1)])
    below, above = centres.tail_moments(post, told, degree)
    for r, k in enumerate(told.tolist()):
        weights = [p * alpha ** abs(i - r) for i, p in enumerate(prior)]
        total = sum(weights)
        exact = [
            float(sum((w * abs(i - k) ** degree for i, w in side), Fraction(0)) / total)
            for side in (list(enumerate(weights))[:k], list(enumerate(weights))[k + 1 :])
        ]
        assert [below[r], above[r]] == pytest.approx(exact, rel=1e-13)


@pytest.mark.parametrize("alpha", ["0.3", "0.99", "0.9999"])
@pytest.mark.parametrize("degree", [0, 1, 3])
def test_long_stretches_are_sums_term_by_term(alpha, degree):
    rng = np.random.default_rng(degree)
    prior = rng.random(3001) * 10.0 ** rng.integers(-40, 0, 3001)
    low = rng.integers(0, 3000, 200)
    high = np.minimum(3000, low + 1 + (rng.random(200) * (3000 - low)).astype(int))
    found = centres.interval_moments(prior, 0 * prior, -math.log(float(alpha)), low, high, degree)
    exact = [
        np.sum(
            prior[a + 1 : b + 1]
            * float(alpha) ** np.arange(b - a - 1, -1, -1.0)
            * np.arange(1.0, b - a + 1) ** degree
        )
        for a, b in zip(low, high, strict=True)
    ]
    assert found == pytest.approx(exact, rel=1e-12)


@pytest.mark.parametrize("loss", ["absolute", "squared", "binary", "asymmetric:4:1", "power:3"])
@pytest.mark.parametrize("alpha", [0.5, 0.999])
def test_thousands_of_counts_keep_their_digits_too(loss, alpha):
    """Against whole sums over all counts and answers, term by term."""
    n = sample(1200, full=2500)
    rng = np.random.default_rng(5)
    prior = 10.0 ** -rng.integers(15, 30, n + 1) * (rng.random(n + 1) < 0.3)
    prior[500] = 1.0
    prior /= prior.sum()
    mechanism = GeometricMechanism(n, alpha=alpha)
    found = mechanism.remap(Consumer(prior, loss))
    counts = np.arange(n + 1)
    losses = Consumer(prior, loss).loss.table(counts[:, None], found.table[None, :])
    whole_sum = float(np.sum(prior[:, None] * mechanism.matrix() * losses))
    assert whole_sum < 1e-4
    assert found.expected_loss == pytest.approx(whole_sum, rel=1e-12)


@pytest.mark.parametrize("rate", [Fraction(1, 10**280), Fraction(10**280)])
def test_losses_of_any_size_are_reported(rate):
    """Only what is left of the noise at alpha = 0 counts as nothing."""
    consumer = Consumer([Fraction(1, 4)] * 4, asymmetric(rate, rate))
    found = GeometricMechanism(3, alpha=Fraction(1, 2)).remap(consumer)
    plain = GeometricMechanism(3, alpha=Fraction(1, 2)).remap(Consumer([Fraction(1, 4)] * 4))
    assert found.expected_loss == pytest.approx(float(rate) * plain.expected_loss, rel=1e-12)
    assert GeometricMechanism(3, alpha=0).remap(Consumer("uniform")).expected_loss == 0
