from __future__ import annotations

from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import stats

from quiltwork import files
from quiltwork.counts import Consumer, GeometricMechanism
from quiltwork.counts.consumers.loss_functions import CallableLoss, ErrorLoss, power
from quiltwork.errors import InvalidInputError, QuiltworkWarning, UnsupportedError
from tests.counts.oracle import ALPHAS, NAMED, bayes, geometric, priors, whole_numbers

OTHERS = [
    ErrorLoss(lambda e: min(abs(e), 2), "capped"),
    ErrorLoss(lambda e: 3 if e > 0 else e * e, "lopsided"),
    ErrorLoss(lambda e: max(0, abs(e) - 2), "two for free"),
    ErrorLoss(lambda e: e * e if e > 0 else -3 * e, "convex, lopsided"),
    ErrorLoss(lambda e: e % 3, "no order"),
    CallableLoss(lambda i, r: abs(i - r) * (i + 1), "worse for large counts"),
    CallableLoss(lambda i, r: (7 * i + 3 * r) % 5, "no order at all"),
]


@st.composite
def cases(draw):
    n = draw(st.integers(1, 9))
    return draw(priors(n)), draw(ALPHAS)


@pytest.mark.parametrize("loss", NAMED + OTHERS, ids=lambda loss: loss.name)
@settings(max_examples=15)
@given(cases())
def test_the_remap_is_bayes_rule_with_ties_to_the_smallest(loss, case):
    prior, alpha = case
    n = len(prior) - 1
    remap = GeometricMechanism(n, alpha=alpha).remap(Consumer(prior, loss))
    mapping, after, face = bayes(geometric(n, alpha), prior, loss)
    assert remap.mapping == mapping
    assert remap.expected_loss == pytest.approx(float(after), rel=1e-11, abs=1e-13)
    assert remap.face_value_loss == pytest.approx(float(face), rel=1e-11, abs=1e-13)


@pytest.mark.parametrize("exponent", [3, 4, 6, 8])
@pytest.mark.parametrize(
    ("n", "alpha", "prior"),
    [
        (1000, 0.999, stats.laplace(500, 1)),
        (5000, 0.999, stats.nbinom(1, 0.7)),
        (5000, 0.99, stats.t(10, 2500, 2)),
    ],
    ids=["laplace", "at the end", "heavy tails"],
)
def test_powers_of_wide_errors_under_narrow_posteriors_keep_their_digits(n, alpha, prior, exponent):
    """Far answers have posteriors that are narrow beside their distance to the power."""
    consumer = Consumer(prior, power(exponent))
    found = GeometricMechanism(n, alpha=alpha).remap(consumer)
    counts, weights = np.arange(n + 1), consumer.probabilities(n)
    blind = weights @ np.abs(counts - np.argmax(weights)) ** float(exponent)
    assert found.expected_loss <= blind * (1 + 1e-12)
    for r in (0, 7, n // 3, n // 2, n // 2 + 9, n - 5, n):
        logs = np.log(np.maximum(weights, 1e-300)) + np.log(alpha) * np.abs(counts - r)
        chances = np.where(weights > 0, np.exp(logs - logs.max()), 0.0)
        near = found.mapping[r] + np.arange(-3, 4)
        losses = [chances @ np.abs(counts - k) ** float(exponent) for k in near]
        assert losses[3] <= min(losses) * (1 + 1e-9)


@pytest.mark.parametrize("alpha", [Fraction(1, 10**12), Fraction(1, 3), Fraction(19, 20)])
@pytest.mark.parametrize("support", [[3, 70], [0, 40, 41, 80], [50], [0, 80]])
@pytest.mark.parametrize("loss", NAMED, ids=lambda loss: loss.name)
def test_answers_far_from_every_possible_count_still_have_a_posterior(loss, support, alpha):
    """Their weights underflow: α^80 is 10^-960 here. The oracle works in fractions."""
    n = 80
    prior = [Fraction(0)] * (n + 1)
    for place, i in enumerate(support):
        prior[i] = Fraction(place + 1, sum(range(1, len(support) + 1)))
    remap = GeometricMechanism(n, alpha=alpha).remap(Consumer(prior, loss))
    losses, _ = whole_numbers([[loss.exact(i, k) for k in range(n + 1)] for i in support])
    for r in (0, 1, 20, 37, 60, 79, 80):
        weights, _ = whole_numbers([[prior[i] * alpha ** abs(i - r) for i in support]])
        costs = (weights @ losses)[0].tolist()
        assert 10**9 * costs[remap.mapping[r]] <= min(costs) * (10**9 + 1)


@pytest.mark.parametrize("loss", ["absolute", "squared", "binary", "power:3", "power:3/2"])
def test_alpha_zero_and_one(loss):
    prior = [Fraction(1, 2), Fraction(0), Fraction(1, 3), Fraction(1, 6)]
    open_ = GeometricMechanism(3, alpha=0).remap(Consumer(prior, loss))
    assert open_.expected_loss == pytest.approx(0, abs=1e-12)
    assert [open_.mapping[i] for i in (0, 2, 3)] == [0, 2, 3]
    closed = GeometricMechanism(3, alpha=1).remap(Consumer(prior, loss))
    best = min(
        sum(float(p) * float(Consumer(prior, loss).loss.exact(i, r)) for i, p in enumerate(prior))
        for r in range(4)
    )
    assert len(set(closed.mapping)) == 1
    assert closed.expected_loss == pytest.approx(best)


def test_remapping_applies_to_values_and_columns():
    remap = GeometricMechanism(5, alpha=0.5).remap(
        Consumer([1 / 4, 0, 1 / 4, 0, 1 / 4, 1 / 4], power(1.5))
    )
    assert remap(1) == 2
    assert remap(-7) == 0
    assert remap(12) == 5
    assert remap(np.array([[1, 2], [9, -1]])).tolist() == [[2, 2], [5, 0]]
    with pytest.raises(InvalidInputError, match="integers"):
        remap(1.5)
    document = files.load(remap.to_json(), "remap", (1,))
    assert document["mapping"] == [0, 2, 2, 3, 4, 5]


@settings(max_examples=30)
@pytest.mark.filterwarnings("ignore:.*contradicts the prior")
@given(cases(), st.sampled_from([0.5, 0.9, 0.99]))
def test_intervals_hold_the_posterior_probability_they_name(case, confidence):
    prior, alpha = case
    n = len(prior) - 1
    remap = GeometricMechanism(n, alpha=alpha).remap(Consumer(prior))
    low, high = remap.interval(np.arange(n + 1), confidence)
    for r in range(n + 1):
        weights = [prior[i] * alpha ** abs(i - r) for i in range(n + 1)]
        inside = sum(weights[low[r] : high[r] + 1])
        assert inside >= Fraction(str(confidence)) * sum(weights) * (1 - Fraction(1, 10**9))
        assert remap.interval(r, confidence) == (low[r], high[r])


@pytest.mark.parametrize("confidence", [0, 1, -0.5, "0.9"])
def test_a_confidence_lies_between_zero_and_one(confidence):
    remap = GeometricMechanism(3, alpha=0.5).remap(Consumer("uniform"))
    with pytest.raises(InvalidInputError, match="confidence"):
        remap.interval(1, confidence)


class Own:
    name = "own"

    def table(self, counts, answers):
        raise AssertionError

    exact = table


@pytest.mark.parametrize(
    "loss",
    [
        "power:3",
        "power:3/2",
        ErrorLoss(lambda error: min(abs(error), 10), "capped"),
        lambda i, r: abs(i - r),
        Own(),
    ],
)
def test_losses_of_all_pairs_stop_at_ten_thousand_and_say_what_to_do(loss):
    told = r"up to n = 10000; this is n = 10001\. Count in larger units, or use an absolute, asymm"
    with pytest.raises(UnsupportedError, match=told):
        GeometricMechanism(10_001, alpha=0.5).remap(Consumer("uniform", loss))


@pytest.mark.parametrize("loss", ["absolute", "squared", "binary", "asymmetric:3:1"])
def test_a_hundred_thousand_counts_take_no_matrix(loss):
    """Far from the ends a uniform prior is translation invariant, so is the remap."""
    n = 100_000
    remap = GeometricMechanism(n, alpha=0.9).remap(Consumer("uniform", loss))
    shift = remap.table[1000:-1000] - np.arange(n + 1)[1000:-1000]
    assert len(set(shift.tolist())) == 1
    assert remap.expected_loss <= remap.face_value_loss


def test_a_million_released_counts_are_remapped_at_once():
    remap = GeometricMechanism(1000, alpha=0.9).remap(Consumer("uniform"))
    released = np.arange(1_000_000) % 1200 - 100
    remapped = remap(released)
    table = remap.table
    assert (remapped == np.take(table, released, mode="clip")).all()


@settings(max_examples=12)
@given(st.integers(30, 200), st.fractions(Fraction(1, 5), Fraction(4, 5), max_denominator=20))
def test_long_priors_agree_with_the_matrix(n, alpha):
    """Posteriors in blocks against the whole matrix in floats."""
    rng = np.random.default_rng(n)
    prior = rng.dirichlet(np.full(n + 1, 0.3))
    matrix = GeometricMechanism(n, alpha=alpha).matrix()
    counts = np.arange(n + 1)
    for loss in (power(1.5), power(0.5), power(3)):
        remap = GeometricMechanism(n, alpha=alpha).remap(Consumer(prior, loss))
        costs = (prior[:, None] * matrix).T @ loss.table(counts[:, None], counts[None, :])
        chosen = costs[counts, remap.table]
        assert np.all(chosen <= costs.min(axis=1) * (1 + 1e-9) + 1e-15)
        assert remap.expected_loss == pytest.approx(costs.min(axis=1).sum(), rel=1e-10)


def test_released_counts_that_noise_cannot_reach_are_refused():
    """P(noise ≥ d) = α^d/(1 + α), here in fractions."""
    remap = GeometricMechanism(5, alpha=0.5).remap(Consumer("uniform"))
    least = next(d for d in range(99) if Fraction(1, 2) ** d / Fraction(3, 2) < Fraction(1, 10**9))
    assert least == 30
    assert remap([6 - least, 4 + least]).tolist() == [remap(0), remap(5)]
    for beyond in (-least, 5 + least, 10**30, [3, -(10**30)]):
        for call in (remap, remap.interval):
            with pytest.raises(InvalidInputError, match=r"probability below 1e-9\. Check n"):
                call(beyond)
    assert GeometricMechanism(5, alpha=1).remap(Consumer("uniform"))(10**30) == 2
    for bad in (2.5, "3", None):
        with pytest.raises(InvalidInputError, match="integers"):
            remap.interval(bad)


def test_a_release_that_contradicts_the_prior_is_read_with_a_warning():
    prior = [1] * 100 + [0] * 901
    remap = GeometricMechanism(1000, epsilon=0.5).remap(Consumer(np.array(prior) / 100))
    with pytest.warns(QuiltworkWarning, match="count 384 contradicts the prior.*reading, 98"):
        assert remap(384) == 98
    with pytest.warns(QuiltworkWarning, match=r"384 contradicts .* \(2 more contradict it\)"):
        remap([50, 200, 384, 200])
    with pytest.warns(QuiltworkWarning, match="count 384 contradicts the prior"):
        remap.interval(384)
    assert remap([0, 50, 99, 110]).tolist() == remap.table[[0, 50, 99, 110]].tolist()


@settings(max_examples=20)
@given(st.integers(1, 30), st.fractions(Fraction(1, 9), Fraction(8, 9), max_denominator=9))
def test_surprise_is_twice_the_smaller_tail_of_the_answers(n, alpha):
    prior = np.random.default_rng(n).dirichlet(np.full(n + 1, 0.4))
    mechanism = GeometricMechanism(n, alpha=alpha)
    law = prior @ mechanism.matrix()
    tails = [min(law[: r + 1].sum(), law[r:].sum()) for r in range(n + 1)]
    surprise = mechanism.remap(Consumer(prior)).surprise(np.arange(n + 1))
    assert surprise == pytest.approx(np.minimum(1, 2 * np.array(tails)), rel=1e-9)


def test_an_n_that_would_take_minutes_is_refused_with_its_cost():
    with pytest.raises(UnsupportedError, match="2000 s and 400 GB"):
        GeometricMechanism(10**9, epsilon=0.5).remap(Consumer("uniform"))
