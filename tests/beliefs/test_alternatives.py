"""Which beliefs public data leave plausible."""

from __future__ import annotations

import numpy as np
import pytest

import quiltwork as qw
from quiltwork import CyclicChain, HiddenChain, MarkovChain
from quiltwork.beliefs import candidates, contexts

P = np.array([[0.9, 0.1], [0.4, 0.6]])


def test_data_of_a_chain_leave_the_chain():
    found = candidates(MarkovChain(P).sample(5000, seed=1), period=24)
    assert found[0].name == "order 1"
    assert found[0].plausible
    assert isinstance(qw.plausible(MarkovChain(P).sample(5000, seed=1))[0], MarkovChain)


def test_data_with_a_clock_rule_out_chains_without_one():
    day = CyclicChain([[[0.97, 0.03], [0.9, 0.1]]] * 12 + [[[0.2, 0.8], [0.1, 0.9]]] * 12)
    data = day.sample(24 * 200, seed=2)
    (best,) = qw.plausible(data, period=24)
    assert isinstance(best, CyclicChain)
    assert all(not isinstance(one, CyclicChain) for one in qw.plausible(data))


def test_data_that_remember_two_states_rule_out_order_one():
    rows = np.array([[0.9, 0.1], [0.2, 0.8], [0.7, 0.3], [0.1, 0.9]])
    inner = contexts.inner_matrix(rows, contexts.last_states(2, 2))
    data = HiddenChain(inner, [0, 1, 0, 1]).sample(20_000, seed=3)
    found = candidates(data)
    assert found[0].name in ("order 2", "durations")  # for two states one knows what the other does
    assert not next(one for one in found if one.name == "order 1").plausible
    second = next(one for one in found if one.name == "order 2")
    assert second.plausible
    assert second.belief == MarkovChain.fit(data, order=2)


def test_the_score_is_the_likelihood_of_each_half_by_the_other():
    path = np.random.default_rng(4).integers(0, 2, 160)
    half = contexts.blocks_of(path, 0)
    total = 0.0
    for fit, seen in ((0, 1), (1, 0)):
        counts = np.full((2, 2), 0.5)
        for t in np.flatnonzero(half == fit):
            counts[path[t], path[t + 1]] += 1
        rows = counts / counts.sum(axis=1, keepdims=True)
        total += sum(np.log(rows[path[t], path[t + 1]]) for t in np.flatnonzero(half == seen))
    one = contexts.last_states(2, 1)
    # order one is smoothed towards itself, which a weight of half a count per cell hardly moves
    assert contexts.held_out([path], one, 2, 0.5) == pytest.approx(total, rel=1e-3)


def test_a_guarantee_under_the_list_is_the_worst_of_its_members():
    data = MarkovChain(P).sample(400, seed=5)
    found = qw.plausible(data)
    scales = [qw.calibrate(one, 300, 1.0).scale for one in found]
    assert qw.calibrate(found, 300, 1.0).scale == max(scales)
