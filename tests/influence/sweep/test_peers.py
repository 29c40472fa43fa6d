"""Published bounds that the sweep is measured beside."""

from __future__ import annotations

import itertools
import math

import numpy as np
import pytest

from bench.peers_sweep import (
    inferential_factor,
    level_for_markov_chain_bound,
    markov_chain_bound,
    temporal_loss,
    temporal_privacy_leakage,
)
from evidence import sweep_program as program
from quiltwork.beliefs import MarkovChain
from quiltwork.influence.sweep import Levels, sweep_of

P = np.array([[0.9, 0.1], [0.4, 0.6]])


def test_temporal_leakage_of_the_papers_example():
    moderate = np.array([[0.8, 0.2], [0.0, 1.0]])
    past = [0.1]
    for _ in range(9):
        past.append(0.1 + temporal_loss(moderate, past[-1]))
    shown = [0.10, 0.18, 0.25, 0.30, 0.35, 0.39, 0.42, 0.45, 0.48, 0.50]
    assert np.round(past, 2).tolist() == shown
    both = temporal_privacy_leakage(moderate, moderate, [0.1] * 10)
    assert both == pytest.approx(np.array(past) + past[::-1] - 0.1)


def test_the_best_set_of_states_is_a_beginning_of_the_order():
    rng = np.random.default_rng(3)
    for _ in range(30):
        kernel = rng.dirichlet(np.ones(4), 4) * (rng.random((4, 4)) < 0.8) + 1e-3 * np.eye(4)
        kernel /= kernel.sum(axis=1, keepdims=True)
        alpha = rng.uniform(0.1, 3)
        grown = [
            1 + (math.exp(alpha) - 1) * np.array(s) for s in itertools.product((0, 1), repeat=4)
        ]
        ratios = [np.log((kernel @ u)[:, None] / (kernel @ u)) for u in grown]
        assert temporal_loss(kernel, alpha) == pytest.approx(np.max(ratios))


def test_the_sweep_is_never_above_temporal_leakage():
    rng = np.random.default_rng(5)
    for size in (2, 3):
        rows = rng.dirichlet(np.ones(size), size)
        law = np.linalg.matrix_power(rows, 200)[0]
        backward = (law[:, None] * rows / law).T
        peer = temporal_privacy_leakage(rows, backward, [0.5] * 4)
        levels = Levels.of_points(np.full(4, 0.5))
        _, _, ours = sweep_of(MarkovChain(rows), 4).profile(levels, range(1, 5))
        assert (ours <= peer + 1e-7).all()


def test_the_bound_by_the_largest_ratio_of_transitions():
    assert markov_chain_bound(P, 1.0) == pytest.approx(1 + 4 * math.log(9))
    assert markov_chain_bound(np.eye(2), 1.0) == math.inf
    assert level_for_markov_chain_bound(P, 1.0) == 0.0
    assert level_for_markov_chain_bound(P, 10.0) == pytest.approx(10 - 4 * math.log(9))


def test_weak_correlations_leak_no_more_than_the_matrix_of_influences_says():
    assert math.isinf(inferential_factor(P, 5))
    assert inferential_factor(np.full((2, 2), 0.5), 5) == pytest.approx(2)
    rng = np.random.default_rng(6)
    for size in (2, 3):
        rows = rng.dirichlet(np.full(size, 40), size)
        chain, level = MarkovChain(rows), 0.3
        law = program.chain_law(chain.stationary, [rows] * 4)
        told = max(program.chain_supremum(law, [level] * 5, [node]) for node in range(5))
        assert 0.3 < told / (level * inferential_factor(rows, 5)) <= 1
