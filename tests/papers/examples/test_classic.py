"""The classic experiment in small: a plain holdout is fooled, a reusable one is not."""

from __future__ import annotations

import numpy as np
import pytest

from papers.examples.classic import World, run_classic


def test_a_plain_holdout_praises_noise_and_the_reusable_one_does_not():
    world = World(1600, 1600)
    plain, ours = run_classic(world, (0, 100), seed=3)
    assert plain.holdout[-1] > 0.56
    assert abs(plain.fresh[-1] - 0.5) < 0.05
    # the threshold is 0.05; noise beyond 25 scales has a chance below 1e-10
    assert abs(ours.holdout[-1] - 0.5) < world.threshold + 7 * 25 * world.noise
    assert 0 < ours.rounds < 400


def test_worlds_have_the_ties_they_promise():
    world = World(20_000, 40, signal=5, bias=0.3, shared=0.5, copies=2)
    data = world.draw(np.random.default_rng(0))
    assert data.shape == (20_000, 41)
    assert (data[0::2] == data[1::2]).all()
    ties = 2 * (data[:, :-1] == data[:, -1:]).mean(axis=0) - 1
    assert ties[:5] == pytest.approx(0.3, abs=0.05)
    assert ties[5:] == pytest.approx(0, abs=0.05)
    siblings = 2 * (data[:, 10] == data[:, 11]).mean() - 1
    strangers = 2 * (data[:, 10] == data[:, 21]).mean() - 1
    assert siblings == pytest.approx(0.25, abs=0.05)
    assert strangers == pytest.approx(0, abs=0.05)
    assert world.beliefs.largest == 2
