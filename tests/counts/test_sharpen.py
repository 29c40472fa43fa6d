from __future__ import annotations

import numpy as np
import pytest

import quiltwork as qw
from quiltwork.counts import ChainCounts
from quiltwork.counts.sharpen import sharpen
from quiltwork.errors import UnsupportedError

CHAIN = qw.MarkovChain([[0.9, 0.1], [0.4, 0.6]], initial=[0.8, 0.2], states=["rest", "walk"])


@pytest.fixture(scope="module")
def data():
    return CHAIN.sample(60, 4)


def test_a_count_is_read_as_bayes_rule_says(data):
    """The noise law and the chain's count distribution, combined by hand."""
    release = qw.release(data, qw.queries.count("walk"), CHAIN, epsilon=1.0)
    found = sharpen(release, CHAIN, "absolute")
    prior = ChainCounts(CHAIN, "walk").probabilities(60)
    answer = min(max(release.noisy[0], 0), 60)
    weights = prior * np.exp(-np.abs(np.arange(61) - answer) / float(release.noise_scale))
    median = int(np.searchsorted(np.cumsum(weights), weights.sum() / 2))
    assert found.release.value == median
    assert found.release.noisy == release.noisy
    assert found.release.interval() == release.interval()
    assert found.release.processing == ("remapped for absolute loss",)
    assert found.expected_loss[0] < found.face_value_loss[0]


def test_the_expected_loss_is_what_is_lost_on_average(data):
    """Over all counts and all noise, by the definition: median reading, absolute error."""
    release = qw.release(data, qw.queries.count("walk"), CHAIN, epsilon=1.0)
    found = sharpen(release, CHAIN)
    counts = np.arange(61)
    noise = np.exp(-np.abs(np.arange(-4000, 4001)) / float(release.noise_scale))
    law = dict(zip(range(-4000, 4001), noise / noise.sum(), strict=True))
    joint = np.zeros((61, 61))
    for i, probability in enumerate(ChainCounts(CHAIN, "walk").probabilities(60)):
        for z, p in law.items():
            joint[i, min(max(i + z, 0), 60)] += probability * p
    reading = (np.cumsum(joint, axis=0) < joint.sum(axis=0) / 2).sum(axis=0)
    lost = (joint * np.abs(reading[None, :] - counts[:, None])).sum()
    face = (joint * np.abs(counts[None, :] - counts[:, None])).sum()
    assert found.expected_loss[0] == pytest.approx(lost, rel=1e-6)
    assert found.face_value_loss[0] == pytest.approx(face, rel=1e-6)
    assert lost < 0.7 * face


def test_windows_and_histograms(data):
    release = qw.release(data, qw.queries.histogram().on(11, 40), CHAIN, epsilon=1.0)
    found = sharpen(release, CHAIN, "squared")
    assert found.release.value.shape == (2,)
    assert len(found.expected_loss) == 2
    shares = qw.release(data, qw.queries.frequencies(), CHAIN, epsilon=1.0)
    assert sharpen(shares, CHAIN).release.value.max() <= 1


def test_what_cannot_be_sharpened_is_refused(data):
    mean = qw.release(data, qw.queries.most_common(), CHAIN, epsilon=1.0)
    with pytest.raises(UnsupportedError, match="most_common"):
        sharpen(mean, CHAIN)
    pooled = qw.release([data, data], qw.queries.count("walk"), CHAIN, epsilon=1.0)
    with pytest.raises(UnsupportedError, match="2 subjects"):
        sharpen(pooled, CHAIN)
