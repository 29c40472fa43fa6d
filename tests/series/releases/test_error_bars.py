"""Intervals have the coverage they claim, from the noise's probabilities summed one by one."""

import math
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import quiltwork as qw
from quiltwork import InvalidInputError, UnsupportedError, queries
from quiltwork.noise.exponential import expected_shortfall
from quiltwork.queries.numbers import Mean
from quiltwork.series.releases.error_bars import shortfall


def coverage(scale, reach):
    """P(|Z| ≤ reach), summing probabilities proportional to e^(−|z|/scale)."""
    weights = [math.exp(-z / scale) for z in range(int(60 * scale) + 60)]
    return (weights[0] + 2 * sum(weights[1 : reach + 1])) / (weights[0] + 2 * sum(weights[1:]))


@pytest.mark.parametrize("confidence", [0.5, 0.9, 0.95, 0.999])
@pytest.mark.parametrize("scale", [Fraction(1, 3), Fraction(5, 2), 13, 40])
def test_intervals_cover_at_the_confidence_asked_for_and_one_step_less_does_not(
    confidence, scale, make_release
):
    release = make_release(scale=scale)
    for simultaneous, cells in ((False, 1), (True, 3)):
        low, high = release.interval(confidence, simultaneous)
        assert (low + high == 2 * release.value).all()
        reach = int(high[0] - release.value[0])
        assert coverage(float(scale), reach) ** cells >= confidence - 1e-12
        assert reach == 0 or coverage(float(scale), reach - 1) ** cells < confidence


def test_intervals_have_the_shape_and_type_of_the_value(make_release):
    count = make_release(queries.count("a"), noisy=(7,))
    assert [type(end) for end in count.interval()] == [int, int]
    matrix = make_release(queries.transitions(), noisy=(1, 2, 3, 4), states=("a", "b"))
    assert matrix.interval().low.shape == matrix.value.shape == (2, 2)
    shares = make_release(queries.frequencies())
    assert np.allclose(shares.interval().high - shares.value, 7 / 10)


def test_the_grid_widens_the_interval_of_a_mean_and_floats_round_outwards(make_release):
    query = Mean(lo=0, hi=Fraction(1, 3), bits=5)
    release = make_release(query, noisy=(40,), points=7)
    low, high = release.interval(0.9)
    reach = release.law.quantile(0.9)
    half_step = query.step / 2
    assert Fraction(low) <= query.step * (40 - reach) / 7 - half_step
    assert Fraction(high) >= query.step * (40 + reach) / 7 + half_step
    assert high - low == pytest.approx(float(2 * (query.step * reach / 7 + half_step)))


def choice_law(counts, scale):
    weights = np.exp((np.array(counts) - max(counts)) / scale)
    return weights / weights.sum()


@given(
    counts=st.lists(st.integers(0, 60), min_size=1, max_size=6),
    scale=st.fractions(Fraction(1, 5), 30, max_denominator=50),
    confidence=st.sampled_from([0.3, 0.8, 0.95, 0.999]),
)
def test_the_commonest_state_falls_short_by_no_more_than_is_said(counts, scale, confidence):
    law = choice_law(counts, float(scale))
    behind = max(counts) - np.array(counts)
    assert law @ behind <= expected_shortfall(scale, len(counts)) + 1e-9
    within = law[behind <= shortfall(scale, len(counts), confidence)].sum()
    assert within >= confidence - 1e-9


def test_the_shortfall_is_not_much_larger_than_needed():
    """All other states one step further behind: then c is just exceeded too often."""
    scale, states, confidence = Fraction(10), 5, 0.95
    allowed = shortfall(scale, states, confidence)
    law = choice_law([100] + [100 - allowed] * (states - 1), 10.0)
    assert law[0] < confidence
    assert shortfall(scale, 1, 0.99) == shortfall(Fraction(0), 9, 0.99) == 0


def test_a_label_has_a_shortfall_and_a_number_an_interval(make_release):
    label = make_release(queries.most_common(), noisy=(1,), states=("a", "b"))
    assert label.shortfall(0.95) == shortfall(label.noise_scale, 2, 0.95)
    with pytest.raises(UnsupportedError, match="shortfall"):
        label.interval()
    with pytest.raises(UnsupportedError, match="interval"):
        make_release().shortfall()


@pytest.mark.parametrize("confidence", [0, 1, 1.5, -1, True, "0.9", float("nan"), 95])
def test_a_confidence_outside_0_1_is_refused(confidence, make_release):
    with pytest.raises(InvalidInputError, match="confidence"):
        make_release().interval(confidence)
    label = make_release(queries.most_common(), noisy=(1,), states=("a", "b"))
    with pytest.raises(InvalidInputError, match="confidence"):
        label.shortfall(confidence)


def test_expected_error_is_the_mean_of_the_noise(make_release):
    z = np.arange(-2000, 2001)
    weights = np.exp(-np.abs(z) / 2.5)
    truth = (np.abs(z) * weights).sum() / weights.sum()
    assert make_release().expected_error == pytest.approx(truth)
    assert make_release(queries.frequencies()).expected_error == pytest.approx(truth / 10)


@pytest.mark.parametrize("offset", [0, 1e15, -(10**25), 1e299])
def test_intervals_of_custom_answers_cover_them_however_large_they_are(offset):
    """Each fails once in 10⁹ runs."""
    coin = qw.MarkovChain([[0.5, 0.5], [0.5, 0.5]])
    query = queries.custom(lambda x: offset + int(x.sum()), lipschitz=1)
    answer = qw.release([[0, 1] * 10, [1] * 20], query, coin, epsilon=1)
    truth = sum(Fraction(offset + ones) for ones in (10, 20))
    low, high = answer.interval(1 - 1e-9)
    assert Fraction(low) <= truth <= Fraction(high)
    assert high - low <= 100 + 8 * abs(truth) * 2**-52
