"""Only chosen pairs of values are kept apart: less noise, and no more told of them than is said."""

from __future__ import annotations

import pickle
from itertools import pairwise, product

import numpy as np
import pytest

import quiltwork as qw
from evidence.checks.secret_pairs import check
from quiltwork.errors import InvalidInputError, UnsupportedError

ROOMS = qw.MarkovChain(
    [[0.6, 0.3, 0.1], [0.3, 0.6, 0.1], [0.2, 0.2, 0.6]], states=["kitchen", "bath", "away"]
)
HOME = [("kitchen", "away"), ("bath", "away")]


def test_no_mechanism_tells_a_chosen_pair_apart_by_more_than_is_said():
    tally = check(12)
    assert tally["pairs compared"] > 60
    assert tally["less than for all pairs"] > 2
    assert tally["other pairs told more"] > 5  # so pairs matter, and a lower claim would be caught
    assert tally["within 5 %"] > 20


def test_the_exact_leakage_of_a_count_about_a_pair_is_below_epsilon_by_all_paths():
    length, pair = 6, ("kitchen", "bath")
    found = qw.calibrate(ROOMS, length, 1, query=qw.queries.count("away"), pairs=[pair])
    alpha, start = np.exp(-1 / found.scale), np.asarray(ROOMS.stationary)
    law = np.zeros((length, 3, length + 1))  # node, its state, the count
    for path in product(range(3), repeat=length):
        steps = [ROOMS.transition[a, b] for a, b in pairwise(path)]
        for node, state in enumerate(path):
            law[node, state, path.count(2)] += start[path[0]] * np.prod(steps)
    answers = np.subtract.outer(np.arange(-9, length + 10), np.arange(length + 1))
    told = (law / law.sum(axis=2, keepdims=True)) @ (alpha ** np.abs(answers)).T
    kitchen, bath, away = np.log(told).transpose(1, 0, 2)
    assert np.abs(kitchen - bath).max() <= 1
    assert np.abs(kitchen - away).max() > np.abs(kitchen - bath).max() * 1.05


@pytest.mark.parametrize("window", [(1, 60), (20, 35), (57, 60), (31, 31)])
@pytest.mark.parametrize("length", [60, 700])
def test_calibrated_noise_keeps_epsilon_in_a_sweep_of_every_node(window, length):
    """Nodes outside the window, too: what they pass on is about all pairs of values before them."""
    rows = np.random.default_rng(window[0] + length).dirichlet(np.full(3, 0.4), 3)
    for chain in (ROOMS, qw.MarkovChain(rows), qw.MarkovChain(rows, [1, 0, 0])):
        a, b, c = chain.states
        for pairs in ([(a, b)], [(b, c)], [(a, b), (a, c)]):
            query = qw.queries.count(a).on(*window)
            found = qw.calibrate(chain, length, 1, query=query, pairs=pairs)
            account = qw.Accountant(chain, length, pairs=pairs)
            account.spend(1 / found.exact_scale, *window)
            assert account.profile().values().max() <= 1 + 1e-9
            assert account.epsilon() <= 1 + 1e-9
            whole = qw.calibrate(chain, length, 1, query=query)
            assert found.scale <= whole.scale * (1 + 1e-9)


def test_all_pairs_written_out_are_all_pairs():
    every = [("kitchen", "bath"), *HOME]
    for belief in (ROOMS, ROOMS.reversed(), qw.ChainBox([[0.5] * 2] * 2, [[0.7] * 2] * 2)):
        named = every if belief.size == 3 else [belief.states]
        plain, spelled = qw.calibrate(belief, 50, 1), qw.calibrate(belief, 50, 1, pairs=named)
        assert spelled.scale == pytest.approx(plain.scale, rel=1e-9)


def test_what_two_pairs_connect_is_kept_at_twice_the_level():
    chain = qw.MarkovChain([[0.8, 0.2, 0], [0.1, 0.8, 0.1], [0, 0.2, 0.8]])
    neighbours = qw.Accountant(chain, 5, pairs=[(0, 1), (1, 2)])
    ends = qw.Accountant(chain, 5, pairs=[(0, 2)])
    for account in (neighbours, ends):
        account.spend(0.3)
    assert neighbours.epsilon() < ends.epsilon() <= 2 * neighbours.epsilon()


def test_a_time_point_that_no_chosen_pair_can_be_at_costs_nothing():
    chain = qw.MarkovChain([[0, 1, 0], [0, 0.5, 0.5], [0, 0.5, 0.5]], initial=[1, 0, 0])
    assert qw.calibrate(chain, 20, 1, pairs=[(0, 1)]).scale == 0
    assert qw.calibrate(chain, 20, 1, pairs=[(1, 2)]).scale > 0


def test_quilts_keep_all_pairs_apart():
    for method in ("exact", "approx", "group"):
        plain = qw.calibrate(ROOMS, 50, 1, method)
        assert qw.calibrate(ROOMS, 50, 1, method, pairs=HOME).scale == plain.scale


def test_a_series_does_not_grow_beyond_the_budget_where_a_new_point_hears_of_other_pairs():
    """State 3 becomes 1 and state 0 becomes 2: of the first point only 1 and 2 are kept apart."""
    rows = [
        [0, 0.02, 0.96, 0.02],
        [0.3, 0.2, 0.2, 0.3],
        [0.3, 0.2, 0.2, 0.3],
        [0.02, 0.96, 0.02, 0],
    ]
    chain = qw.MarkovChain(rows, initial=[0.5, 0, 0, 0.5])
    account = qw.Accountant(chain, 1, 0.5, pairs=[(1, 2)])
    account.spend(dp_epsilon=2)
    assert account.epsilon() == 0  # neither 1 nor 2 is possible at the first point
    with pytest.raises(qw.BudgetExceeded, match="In a series of 2 time points"):
        account.extend(2)


def test_an_account_keeps_its_pairs_in_its_file_and_its_copies():
    account = qw.Accountant(ROOMS, 30, pairs=[("away", "bath")])
    account.spend(dp_epsilon=0.4)
    copied = pickle.loads(pickle.dumps(account))  # noqa: S301
    assert copied.pairs == account.pairs == (("bath", "away"),)
    assert copied.epsilon() == account.epsilon() < account.leak_under(ROOMS)[0] * (1 + 1e-12)
    assert "pairs" not in qw.Accountant(ROOMS, 30).to_body()


def test_an_explanation_names_what_is_kept_apart():
    text = qw.calibrate(ROOMS, 50, 1, pairs=[("bath", "kitchen")]).explain()
    assert "Secret pairs of values: kitchen and bath. Other values may become known." in text


@pytest.mark.parametrize(
    ("pairs", "sentence"),
    [
        ([], "pairs is empty"),
        ([("bath",)], "two states"),
        (["bath"], "two states"),
        ([("bath", "bath")], "twice"),
        ([("bath", "cellar")], "not a state of the belief; its states are kitchen, bath, away"),
        (5, "pairs"),
    ],
)
def test_what_are_no_pairs_of_states_is_refused(pairs, sentence):
    with pytest.raises(InvalidInputError, match=sentence):
        qw.calibrate(ROOMS, 50, 1, pairs=pairs)
    with pytest.raises(InvalidInputError, match=sentence):
        qw.Accountant(ROOMS, 50, pairs=pairs)


def test_what_pairs_say_nothing_about_is_refused():
    for belief, about in (
        (qw.Clusters(list("aab")), "rows"),
        (qw.GaussianSeries(ar=[0.5]), "numbers"),
    ):
        with pytest.raises(UnsupportedError, match=f"this belief is about {about}"):
            qw.calibrate(belief, None if about == "rows" else 9, 1, pairs=[("a", "b")])
    with pytest.raises(UnsupportedError, match="leave out pairs or episode"):
        qw.calibrate(ROOMS, 50, 1, episode=2, pairs=HOME)
    with pytest.raises(UnsupportedError, match="with pairs= leave method out"):
        qw.calibrate(ROOMS, 50, 1, "optimal-scale", pairs=HOME)
    with pytest.raises(UnsupportedError, match="pairs needs geometric noise"):
        qw.calibrate(ROOMS, 50, 1, noise="gaussian", delta=1e-6, pairs=HOME)
