from __future__ import annotations

import pytest
from scipy import stats

from quiltwork.counts import Consumer, GeometricMechanism
from quiltwork.counts.consumers.gains import consumer_gain


def test_a_gain_is_measured_against_nothing_and_against_face_value():
    user = Consumer(stats.binom(50, 0.1), "absolute")
    mechanism = GeometricMechanism(50, epsilon=0.5)
    gain = consumer_gain(mechanism, user)
    assert gain.remap.expected_loss < gain.prior_loss
    assert gain.remap.expected_loss < gain.remap.face_value_loss
    assert 0 < gain.saved < 1
    again = GeometricMechanism(50, epsilon=gain.equivalent_epsilon).remap(user)
    assert again.face_value_loss == pytest.approx(gain.remap.expected_loss, rel=1e-5)
    text = gain.explain()
    assert "% less than at face value" in text
    assert "more privacy budget" in text
    assert "no mechanism" in text


@pytest.mark.parametrize(
    ("loss", "words"),
    [
        ("asymmetric:3:1", "single-crossing"),
        (lambda i, r: (i + r) % 2, "another mechanism may be better for this consumer"),
    ],
)
def test_the_verdict_names_what_the_loss_lacks(loss, words):
    gain = consumer_gain(GeometricMechanism(6, epsilon=1), Consumer("uniform", loss))
    assert words in gain.explain()


def test_without_order_the_consumers_own_program_is_solved_and_its_gap_told():
    """Parity at α = 1/2: two answers at ratio α to 1, and no remap of G is as good."""
    parity = Consumer("uniform", lambda i, r: (i + r) % 2)
    gain = consumer_gain(GeometricMechanism(6, alpha=0.5), parity)
    assert float(gain.made_for_it.expected_loss) == pytest.approx(1 / 3)
    assert gain.made_for_it.gap <= 1e-9
    assert gain.remap.expected_loss > 1.2 / 3
    assert "(optimal_mechanism) has loss 0.333333, at most" in gain.explain().splitlines()[-1]
    assert consumer_gain(GeometricMechanism(6, alpha=0.5), Consumer()).made_for_it is None
    assert consumer_gain(GeometricMechanism(17, alpha=0.5), parity).made_for_it is None


def test_at_alpha_zero_there_is_no_privacy_and_no_loss():
    gain = consumer_gain(GeometricMechanism(5, alpha=0), Consumer("uniform"))
    assert gain.explain().splitlines()[0] == "absolute loss, counts 0..5, alpha = 0: no privacy"
    assert gain.remap.expected_loss == gain.remap.face_value_loss == 0
    assert gain.equivalent_epsilon is None


def test_without_a_loss_there_is_nothing_to_save():
    gain = consumer_gain(GeometricMechanism(3, epsilon=1), Consumer([1, 0, 0, 0], "binary"))
    assert gain.remap.expected_loss == 0
    assert gain.equivalent_epsilon is None


def test_where_the_remap_changes_nothing_face_value_takes_no_more():
    gain = consumer_gain(GeometricMechanism(5, epsilon=3), Consumer("uniform", "binary"))
    assert gain.remap.mapping == (0, 1, 2, 3, 4, 5)
    assert gain.equivalent_epsilon == pytest.approx(3, rel=1e-9)
