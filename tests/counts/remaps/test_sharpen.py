from __future__ import annotations

from itertools import pairwise, product

import numpy as np
import pytest

import quiltwork as qw
from quiltwork.counts import ChainCounts
from quiltwork.counts.remaps.sharpen import sharpen
from quiltwork.errors import InvalidInputError, UnsupportedError

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
    release = qw.release(data, qw.queries.count("walk"), CHAIN, epsilon=1.0, method="exact")
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
    uneven = qw.release([data, data[:7]], qw.queries.count("walk"), CHAIN, epsilon=1.0)
    with pytest.raises(InvalidInputError, match=r"lengths="):
        sharpen(uneven, CHAIN)
    for lengths in ([60], [60, 8], [60, 7, 1], [60, 7.0]):
        with pytest.raises(InvalidInputError):
            sharpen(uneven, CHAIN, lengths=lengths)


@pytest.mark.parametrize("lengths", [(4, 4, 4), (5, 2), (1, 6, 2)])
def test_pooled_subjects_are_read_with_the_distribution_of_their_sum(lengths):
    """The prior by enumerating the paths of all subjects, then Bayes' rule by hand."""
    prior = np.zeros(sum(lengths) + 1)
    for visits in product(*(enumerated(length) for length in lengths)):
        prior[sum(count for count, _ in visits)] += np.prod([p for _, p in visits])
    series = [CHAIN.sample(length, seed) for seed, length in enumerate(lengths)]
    release = qw.release(series, qw.queries.count("walk"), CHAIN, epsilon=1.0)
    found = sharpen(release, CHAIN, "squared", lengths=lengths)
    counts = np.arange(len(prior))
    answer = min(max(release.noisy[0], 0), len(prior) - 1)
    weights = prior * np.exp(-np.abs(counts - answer) / float(release.noise_scale))
    costs = [(weights * (counts - c) ** 2).sum() for c in counts]
    assert found.release.value == int(np.argmin(costs))
    assert found.expected_loss[0] < found.face_value_loss[0]
    if len(set(lengths)) == 1:
        assert sharpen(release, CHAIN, "squared").release.value == found.release.value


def enumerated(length):
    """(visits to walk, probability) of every path of one subject."""
    for path in product((0, 1), repeat=length):
        steps = [CHAIN.transition[a, b] for a, b in pairwise(path)]
        yield sum(path), CHAIN.start[path[0]] * np.prod(steps)


def test_what_is_no_release_is_refused():
    with pytest.raises(InvalidInputError, match="release must be of type Release, not 5"):
        sharpen(5, qw.MarkovChain([[0.9, 0.1], [0.4, 0.6]]))
