"""What is said about a fit, against enumeration and refits."""

from __future__ import annotations

import itertools
import math

import numpy as np
import pytest

import quiltwork as qw
from quiltwork import ChainBox, CyclicChain, HiddenChain, MarkovChain
from quiltwork.beliefs import contexts
from quiltwork.influence import driving_states, fit_warnings
from quiltwork.influence.diagnostics import fit_price

P = np.array([[0.9, 0.1], [0.4, 0.6]])


def told_apart(chain: MarkovChain, level: float, x: int, y: int, reach: int = 5) -> float:
    """The most that bounded answers about `reach` nodes on either side say for x against y.

    By enumeration: each node's answer favours some of its states by e^level over the others, which
    is what releases that move by `level` can do node by node.
    """
    size, best = chain.size, 0.0
    subsets = [
        np.exp(level * np.isin(np.arange(size), chosen))
        for count in range(1, size)
        for chosen in itertools.combinations(range(size), count)
    ]
    for matrix in (np.asarray(chain.transition), np.asarray(chain.reversed().transition)):
        ahead = max(
            _ratio(matrix, answers, x, y) for answers in itertools.product(subsets, repeat=reach)
        )
        best += ahead
    return best


def _ratio(matrix, answers, x, y):
    value = np.ones(len(matrix))
    for answer in answers:
        value = matrix @ (answer * value)
    return math.log(value[x] / value[y])


@pytest.mark.parametrize("seed", [1, 2, 3])
def test_the_named_states_are_those_that_neighbours_tell_apart_best(seed):
    rng = np.random.default_rng(seed)
    matrix = 0.4 * rng.dirichlet([1.0] * 3, size=3) + 0.2  # forgotten within four steps
    chain = MarkovChain(matrix, states=["a", "b", "c"])
    found = fit_price(chain, 1000)
    level = 2 / found.scale  # a substituted point moves two cells of a histogram
    told = {
        pair: told_apart(chain, level, *pair, reach=4)
        for pair in itertools.permutations(range(3), 2)
    }
    best = max(told, key=told.get)
    assert driving_states(found) == tuple(chain.states[code] for code in best)
    assert level + told[best] == pytest.approx(1, rel=0.01)


def test_boxes_and_days_name_no_states():
    day = CyclicChain([P, [[0.5, 0.5], [0.2, 0.8]]])
    box = ChainBox([[0.8, 0.0], [0.3, 0.5]], [[0.95, 1.0], [0.5, 0.7]])
    assert driving_states(fit_price(day, 100)) is None
    assert driving_states(fit_price(box, 100)) is None


def test_states_of_a_belief_with_memory_are_those_shown():
    data = MarkovChain(P, states=["rest", "walk"]).sample(2000, seed=1)
    found = fit_price(MarkovChain.fit(data, order=2), 500)
    assert set(driving_states(found)) == {"rest", "walk"}


def stays(length: int, seed: int, size: int = 2) -> list[int]:
    """States that last between six and nine time points."""
    rng, found, state = np.random.default_rng(seed), [], 0
    while len(found) < length:
        found += [state] * int(rng.integers(6, 10))
        state = (state + int(rng.integers(1, size))) % size
    return found[:length]


def test_lengths_of_stays_contradict_a_plain_chain_and_its_box():
    data = stays(3000, 1)
    for belief in (MarkovChain.fit(data), ChainBox.fit(data)):
        (sentence,) = [one for one in fit_warnings(belief, data) if "contradict" in one]
        assert "contradict order 1" in sentence
        assert "--durations" in sentence
    assert not fit_warnings(MarkovChain.fit(data, durations=True), data)
    assert not fit_warnings(qw.plausible(data), data)


def test_two_states_back_contradict_a_plain_chain():
    rows = np.array([[0.95, 0.05], [0.05, 0.95], [0.95, 0.05], [0.05, 0.95]])[[0, 2, 1, 3]]
    inner = contexts.inner_matrix(rows, contexts.last_states(2, 2))
    data = HiddenChain(inner, [0, 1, 0, 1]).sample(4000, seed=3)
    pairs = np.bincount(2 * data[:-2] + data[2:], minlength=4).reshape(2, 2)
    assert abs(pairs[0, 0] / pairs[0].sum() - pairs[1, 0] / pairs[1].sum()) > 0.2  # two steps back
    assert any("contradict order 1" in one for one in fit_warnings(MarkovChain.fit(data), data))


def test_memory_that_is_too_large_is_named():
    data = stays(6000, 2, size=30)
    with pytest.warns(qw.QuiltworkWarning, match="how long a state has lasted"):
        found = qw.plausible(data)
    assert len(found) == 1
    assert any("30 states are too many" in one for one in fit_warnings(found, data))


@pytest.mark.parametrize(("size", "points", "warned"), [(2, 4000, False), (12, 400, True)])
def test_smoothing_decides_only_where_steps_are_rare(size, points, warned):
    rng = np.random.default_rng(5)
    matrix = P if size == 2 else 0.3 * rng.dirichlet([0.3] * size, size=size) + 0.7 * np.eye(size)
    data = MarkovChain(matrix).sample(points, seed=1)
    scales = [fit_price(MarkovChain.fit(data, s), points).scale for s in (0.05, 0.5, 5)]
    assert (max(scales) > 2 * min(scales)) == warned
    sentences = [one for one in fit_warnings(MarkovChain.fit(data), data) if "Smoothing" in one]
    assert len(sentences) == warned
    for sentence in sentences:
        assert f"{scales[2]:,.6g}" in sentence


def test_a_box_that_hides_everything_says_what_would_help():
    rng = np.random.default_rng(6)
    data = rng.integers(0, 9, 200).tolist()
    box = ChainBox.fit(data)
    assert qw.calibrate(box, 200, 1, query=qw.queries.histogram()).scale == pytest.approx(
        400, rel=0.01
    )
    (sentence,) = [one for one in fit_warnings(box, data) if "The box" in one]
    left = [data[:-1].count(state) for state in range(9)]
    assert f"state {left.index(min(left))} is left only {min(left)} times" in sentence
    often = left.index(max(left))
    merged = ChainBox.fit([int(state == often) for state in data])
    scale = qw.calibrate(merged, 200, 1, query=qw.queries.histogram()).scale
    assert f"needs noise of scale {scale:,.0f} with {often} kept and the others merged" in sentence
    many = MarkovChain(P).sample(5000, seed=1)
    assert not fit_warnings(ChainBox.fit(many), many)


def test_few_steps_per_state_are_named_and_thousands_of_states_refused():
    data = np.random.default_rng(7).gamma(2, 1, 1500).round(1)
    few = data[:30]
    assert any("--edges" in one for one in fit_warnings(MarkovChain.fit(few), few))
    raw = np.random.default_rng(8).gamma(2, 1, 1500)
    for fit in (MarkovChain.fit, ChainBox.fit, qw.plausible):
        with pytest.raises(qw.InvalidInputError, match="1,500 different states"):
            fit(raw)
