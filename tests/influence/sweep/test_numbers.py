"""Numbers of the sweep that were derived by hand or by other programs."""

from __future__ import annotations

import math

import numpy as np
import pytest

import quiltwork as qw
from quiltwork.influence.sweep import Levels, fixed_point, sweep_of

RESTLESS = [[0.9, 0.1], [0.4, 0.6]]
CHAIN = qw.MarkovChain(RESTLESS)


@pytest.mark.parametrize("length", [100, 10**6, 10**12])
def test_the_example_needs_the_same_noise_at_any_length(length):
    assert qw.calibrate(CHAIN, length, 1).scale == pytest.approx(3.336408922, rel=1e-8)


@pytest.mark.parametrize(
    ("episode", "scale"),
    [(1, 3.336409), (2, 4.271622), (6, 8.146754), (18, 20.059912), (60, 62.019366), (200, 200)],
)
def test_an_episode_needs_hardly_more_than_its_own_points(episode, scale):
    found = qw.calibrate(CHAIN, 200, 1, episode=episode)
    assert found.scale == pytest.approx(scale, rel=1e-6)
    assert found.nearby == episode


@pytest.mark.parametrize(("releases", "total"), [(10, 2.675014026), (50, 7.420370075)])
def test_releases_at_the_noise_of_quilts(releases, total):
    curve = qw.influence_curve(CHAIN, 100)
    assert curve.epsilon(releases / 12.839964231247) == pytest.approx(total, rel=1e-8)


def test_any_start_and_changing_matrices_cost_little_more():
    assert qw.calibrate(qw.ChainBox(RESTLESS, RESTLESS), 1000, 1).scale == pytest.approx(
        3.639099440, rel=1e-8
    )
    free = qw.calibrate(qw.MarkovChain(RESTLESS, initial="any"), 1000, 1).scale
    assert 3.3364 < free < 3.6391


@pytest.mark.parametrize(("epsilon", "level"), [(1, 0.274793), (0.2, 0.054454)])
def test_adversaries_who_know_rows(epsilon, level):
    assert qw.dp_for_bayesian_dp(CHAIN, epsilon, length=1000) == pytest.approx(level, abs=1e-6)


def test_a_stationary_bound_is_no_bound_for_another_start():
    """From (.2, .8) the past tells more about the eighth node than it ever does later."""
    levels, nodes = Levels.constant(1 / 3.33641, 100), range(1, 101)
    other = sweep_of(qw.MarkovChain(RESTLESS, initial=[0.2, 0.8]), 100).worst(levels, nodes)
    settled = sweep_of(CHAIN, 100).worst(levels, nodes)
    assert settled.leak == pytest.approx(1, abs=1e-6)
    assert (other.node, other.leak) == (8, pytest.approx(1.008052522, rel=1e-8))


def test_a_node_that_everybody_knows_needs_no_noise_of_its_own():
    found = qw.calibrate(qw.MarkovChain(RESTLESS, initial=[1, 0]), 100, 1).per_node()
    assert found.at(1) == 0
    assert 0 < found.at(2) < found.at(50) == pytest.approx(3.336408922, rel=1e-8)


def test_two_releases_can_cost_more_than_the_sum_of_what_each_costs():
    curve = qw.influence_curve(CHAIN, 100)
    level = 1 / 12.839964231247
    assert curve.epsilon(10 * level) > 10 * curve.epsilon(level)
    with pytest.raises(qw.UnsupportedError, match="do not add up"):
        qw.compose.sequential([qw.calibrate(CHAIN, 100, 1)] * 2)


def test_levels_of_many_windows_leak_what_each_node_leaks():
    """Swept in pieces with a warm-up: the same as from end to end."""
    rng = np.random.default_rng(3)
    levels = np.zeros(2000)
    for _ in range(40):
        start = rng.integers(0, 1900)
        levels[start : start + rng.integers(1, 300)] += rng.uniform(0.01, 0.2)
    sweep = sweep_of(CHAIN, 2000)
    runs = Levels.of_points(levels)
    first, last, leaks = sweep.profile(runs, range(1, 2001))
    pieces = np.repeat(leaks, last - first + 1)
    right = _plain(np.array(RESTLESS), levels)
    left = _plain(np.array(RESTLESS), levels[::-1])[::-1]
    plain = levels + np.maximum(left[:, 0] + right[:, 0], left[:, 1] + right[:, 1])
    assert pieces == pytest.approx(plain, abs=1e-7)
    assert (pieces >= plain - 1e-12).all()
    assert sweep.worst(runs, range(1, 2001)).leak == pytest.approx(plain.max(), abs=1e-7)


def _plain(matrix, levels):
    """R[0,1] and R[1,0] of a reversible two-state chain, node by node from the end."""
    bounds = np.zeros((len(levels), 2))
    for t in range(len(levels) - 2, -1, -1):
        up, down = levels[t + 1] + bounds[t + 1]
        for pair, (x, y) in enumerate([(0, 1), (1, 0)]):
            weights = np.array([[np.exp(up), 1], [1, np.exp(down)]])
            ratios = (weights @ matrix[x]) / (weights @ matrix[y])
            bounds[t, pair] = np.log(ratios.max())
    return bounds


@pytest.mark.parametrize("length", [100, 10**6])
def test_early_nodes_of_a_given_start_decide_where_they_leak_most(length):
    chain = qw.MarkovChain(RESTLESS, initial=[0.2, 0.8])
    found = qw.calibrate(chain, length, 1)
    assert (found.node, found.scale) == (8, pytest.approx(3.361587344, rel=1e-8))


def told_by_two_states(matrix, start, level, length):
    """What a count of this level tells about each point: the recursion, pair by pair."""

    def further(p, q, apart):
        """L for rows p and q of two states: the better of both ends."""
        ends = (apart[1] + level, -(apart[0] + level))
        return max(
            math.log((p[0] + p[1] * math.exp(v)) / (q[0] + q[1] * math.exp(v))) for v in ends
        )

    right, side = [(0.0, 0.0)], (0.0, 0.0)
    for _ in range(length - 1):
        side = further(matrix[0], matrix[1], side), further(matrix[1], matrix[0], side)
        right.append(side)
    law, left, side = np.array(start), [(0.0, 0.0)], (0.0, 0.0)
    for _ in range(length - 1):
        back = (law[:, np.newaxis] * matrix).T
        back /= back.sum(axis=1, keepdims=True)
        side = further(back[0], back[1], side), further(back[1], back[0], side)
        left.append(side)
        law = law @ matrix
    return level + (np.array(left) + np.array(right[::-1])).max(axis=1)


def test_a_slow_chain_with_a_given_start_is_not_protected_all_at_once():
    """Its law is followed for some time only; later nodes have the bounds of any start."""
    matrix, length = np.array([[0.9995, 0.0005], [0.0003, 0.9997]]), 60_000
    found = qw.calibrate(qw.MarkovChain(matrix, initial=[0.9, 0.1]), length, 1).scale
    told = told_by_two_states(matrix, [0.9, 0.1], 1 / found, length)
    assert 0.7 < told.max() <= 1 + 1e-9
    assert found == pytest.approx(qw.calibrate(qw.MarkovChain(matrix), length, 1).scale, rel=0.01)


def test_an_endless_bound_is_found_where_several_trees_are_as_good_as_each_other():
    ends = [[0.1, 0.13, 0.59, 0.07], [0.22, 0.58, 0.06, 0.14], [0.17, 0.1, 0.31, 0.38]]
    inner = np.zeros((12, 12))
    for state, row in enumerate(ends):
        for age, end in enumerate(row):
            inner[4 * state + age, 4 * state + min(age + 1, 3)] = 1 - end
            inner[4 * state + age, [4 * other for other in range(3) if other != state]] = end / 2
    belief = qw.HiddenChain(inner, np.repeat(range(3), 4))
    endless = sweep_of(belief, 1000).constant_levels(0.05, 0.05, 0.05)
    swept = sweep_of(belief, 100).worst(Levels.constant(0.05, 100), range(1, 101))
    assert swept.leak <= endless.leak <= 1.01 * swept.leak


def test_an_endless_bound_is_found_where_trees_take_turns():
    """Newton's method alone goes round in a circle there, which left the noise of all at once."""
    rng = np.random.default_rng(1)
    inner = 0.8 * np.eye(16) + 0.2 * rng.dirichlet(np.ones(16), 16)
    belief, level = qw.HiddenChain(inner, [f"state {i % 3}" for i in range(16)]), 0.02
    endless = sweep_of(belief, 10**6).constant_levels(level, level, level)
    swept = sweep_of(belief, 200).worst(Levels.constant(level, 200), range(1, 201))
    assert swept.leak <= endless.leak <= (1 + 1e-5) * swept.leak


def test_a_window_of_durations_needs_no_more_noise_than_the_whole_series():
    """And the node that needs it is within: not one that nothing is spent on."""
    ages, inner = 12, np.zeros((36, 36))
    for state, end in enumerate((0.3, 0.15, 0.2)):
        for age in range(ages):
            inner[ages * state + age, ages * state + min(age + 1, ages - 1)] = 1 - end
            inner[ages * state + age, [ages * other for other in {0, 1, 2} - {state}]] = end / 2
    belief = qw.HiddenChain(inner, np.repeat(range(3), ages))
    whole = qw.calibrate(belief, 9000, 0.5)
    for window in ((1, 900), (7000, 7900)):
        part = qw.calibrate(belief, 9000, 0.5, query=qw.queries.count(1).on(*window))
        assert part.scale <= whole.scale * (1 + 1e-6)
        assert window[0] <= part.node <= window[1]


def test_a_level_without_bound_leaves_none_behind(monkeypatch):
    """Newton's method began the next level from bounds that were infinite, and kept them so."""
    monkeypatch.setattr(fixed_point, "_FAR", 2.0)
    belief = qw.HiddenChain(0.8 * np.eye(4) + 0.05, ["a", "b", "a", "b"])
    sweep, fresh = (sweep_of(belief, 10**6) for _ in range(2))
    assert np.isinf(sweep.constant_levels(30, 30, 30).leak)
    low = 0.01, 0.01, 0.01
    assert sweep.constant_levels(*low).leak == pytest.approx(
        fresh.constant_levels(*low).leak, rel=1e-9
    )
