"""One release about each time point, against every answer of random mechanisms, enumerated."""

from __future__ import annotations

import itertools
import math

import numpy as np
import pytest

from evidence.random_chains import random_matrix
from quiltwork import CyclicChain, MarkovChain
from quiltwork.beliefs import HiddenChain
from quiltwork.influence.tradeoffs.one_per_point import leakage_per_step
from quiltwork.influence.tradeoffs.privacy_losses import BoundedRelease, GaussianRelease
from tests.sizes import sample

SHAPES = ("positive", "sparse", "deterministic", "periodic", "absorbing", "reducible", "transient")


def channel(rng, size, level):
    """A mechanism of this pure level: answers likelier under some states by up to e^level."""
    weights = np.exp(level * rng.integers(0, 2, (size, 3)))
    rows = weights / weights.sum(axis=1, keepdims=True)
    worst = np.log(rows[:, None] / rows[None]).max()
    return rows if worst <= level else channel(rng, size, level * 0.7)


def told(chain, law, kernels, node, x, channels):
    """The law of all answers given X_node = x; each channel may follow from the last answer."""
    length = len(channels)
    mass, total = {}, 0.0
    for path in itertools.product(range(len(law)), repeat=length):
        if path[node] != x:
            continue
        chance = law[path[0]] * math.prod(
            kernels[t % len(kernels)][a, b] for t, (a, b) in enumerate(itertools.pairwise(path))
        )
        if not chance:
            continue
        total += chance
        for answers in itertools.product(range(3), repeat=length):
            told_ = chance
            for t, state in enumerate(path):
                rows = channels[t][answers[t - 1] % 2 if t else 0]
                told_ *= rows[state, answers[t]]
            mass[answers] = mass.get(answers, 0.0) + told_
    return {} if not total else {one: value / total for one, value in mass.items()}


@pytest.mark.parametrize("seed", range(sample(10, full=400)))
def test_no_mechanism_tells_more_about_a_time_point(seed):
    rng = np.random.default_rng(seed)
    size, length = int(rng.integers(2, 4)), int(rng.integers(2, 5))
    period = int(rng.integers(1, 3))
    kernels = [random_matrix(rng, size, str(rng.choice(SHAPES))) for _ in range(period)]
    start = rng.dirichlet(np.ones(size)) * (rng.random(size) < 0.8)
    start = start / start.sum() if start.sum() else np.eye(size)[0]
    chain = (
        MarkovChain(kernels[0], initial=start)
        if period == 1
        else CyclicChain(kernels, states=list(range(size)), initial=start)
    )
    level, delta = float(rng.choice([0.3, 1.0, 2.0])), float(rng.choice([1e-3, 1e-2, 0.05]))
    runs, limit = leakage_per_step(chain, BoundedRelease(level), length, delta)
    states = np.arange(size)
    compared = 0
    for _ in range(4):
        channels = [[channel(rng, size, level) for _ in range(2)] for _ in range(length)]
        for node in range(length):
            claim = next(one.epsilon for one in runs if one.first <= node + 1 <= one.last)
            assert claim <= limit * (1 + 1e-6)
            laws = [told(chain, start, kernels, node, x, channels) for x in states]
            for one, other in itertools.permutations([law for law in laws if law], 2):
                keys = {*one, *other}
                excess = sum(
                    max(one.get(k, 0) - math.exp(claim) * other.get(k, 0), 0) for k in keys
                )
                assert excess <= delta * (1 + 1e-9), (seed, node, excess, delta)
                compared += 1
    assert compared or not runs[0].epsilon


def test_what_is_shown_of_a_hidden_chain_tells_less_than_the_chain():
    rows = [[0.8, 0.1, 0.1], [0.2, 0.7, 0.1], [0.1, 0.1, 0.8]]
    inner, shown = MarkovChain(rows), HiddenChain(rows, ["low", "low", "high"])
    release = GaussianRelease(0.3)
    seen = max(one.epsilon for one in leakage_per_step(shown, release, 20, 1e-4)[0])
    all_of_it = max(one.epsilon for one in leakage_per_step(inner, release, 20, 1e-4)[0])
    assert release.epsilon(1, 1e-4) < seen <= all_of_it
