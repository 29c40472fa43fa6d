"""MarkovChain as an object: its start, supports, marginals, simulation, value and immutability."""

from __future__ import annotations

import copy
import dataclasses
import pickle
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import stats

from quiltwork import InvalidInputError, MarkovChain, UnsupportedError
from quiltwork.beliefs.structure import boolean_power
from tests.strategies import LABELS, chains, exact_rows, positive_chains

WALK = [[0.9, 0.1], [0.4, 0.6]]
TWO_ISLANDS = [[1.0, 0, 0], [0.2, 0.5, 0.3], [0, 0, 1.0]]


def test_a_chain_keeps_what_it_was_given():
    chain = MarkovChain(WALK, initial=[0.8, 0.2], states=["rest", "walk"])
    assert chain.transition.tolist() == WALK
    assert chain.initial.tolist() == [0.8, 0.2]
    assert chain.states == ("rest", "walk")
    assert chain.size == 2
    assert MarkovChain(WALK).initial == "stationary"
    assert MarkovChain(WALK, initial="any").initial == "any"


def test_an_unknown_kind_of_start_is_refused():
    with pytest.raises(InvalidInputError, match="'stationary' or 'any', not 'uniform'"):
        MarkovChain(WALK, initial="uniform")


def test_a_stationary_start_needs_a_unique_stationary_distribution():
    with pytest.raises(InvalidInputError, match=r"2 recurrent classes.*give initial="):
        MarkovChain(TWO_ISLANDS)
    chain = MarkovChain(TWO_ISLANDS, initial="any")
    with pytest.raises(InvalidInputError, match="not unique"):
        _ = chain.stationary


def test_absorbing_and_periodic_chains_answer_every_question():
    sink = MarkovChain([[0.5, 0.5], [0, 1]], states=["alive", "dead"])
    assert sink.stationary.tolist() == [0, 1]
    assert sink.absorbing_states == ("dead",)
    assert (sink.is_irreducible, sink.is_aperiodic, sink.period) == (False, True, 1)
    assert (sink.eigengap, sink.is_reversible) == (0.0, False)
    assert sink.support(1).tolist() == [False, True]
    ring = MarkovChain([[0, 1, 0], [0, 0, 1], [1, 0, 0]])
    assert ring.stationary == pytest.approx([1 / 3] * 3)
    assert (ring.is_irreducible, ring.period, ring.is_aperiodic) == (True, 3, False)
    assert ring.absorbing_states == ()
    islands = MarkovChain(TWO_ISLANDS, initial="any")
    assert islands.absorbing_states == (0, 2)
    assert islands.period == 1
    assert islands.eigengap == 0.0


def exact_marginal(chain, t):
    current = [Fraction(x).limit_denominator(10**6) for x in chain.initial.tolist()]
    rows = exact_rows(chain.transition)
    for _ in range(t - 1):
        current = [
            sum(p * row[y] for p, row in zip(current, rows, strict=True)) for y in range(len(rows))
        ]
    return current


@given(chains(initials=("given",)), st.integers(1, 30))
def test_marginals_and_supports_match_exact_propagation(chain, t):
    exact = exact_marginal(chain, t)
    assert chain.marginal(t) == pytest.approx([float(p) for p in exact], rel=1e-12, abs=0)
    assert chain.support(t).tolist() == [p > 0 for p in exact]


@given(positive_chains(initials=("given",)), st.sampled_from([10**4, 10**8, 10**15]))
def test_far_marginals_reach_the_stationary_distribution(chain, t):
    assert chain.marginal(t) == pytest.approx(chain.stationary.tolist(), rel=1e-9)


def test_far_marginals_of_a_periodic_chain_alternate():
    ring = MarkovChain([[0, 1, 0], [0, 0, 1], [1, 0, 0]], initial=[1, 0, 0])
    far = 3 * 10**15
    assert ring.marginal(far + 2).tolist() == [0, 1, 0]
    assert ring.support(far + 3).tolist() == [False, False, True]


def test_slowly_leaving_chain_at_a_far_time():
    slow = MarkovChain([[1 - 1e-9, 1e-9], [0, 1]], initial=[1, 0])
    assert slow.marginal(10**9)[0] == pytest.approx(np.exp(-1), rel=1e-6)


def test_supports_see_what_floats_lose():
    """After 40 steps of 1e-10 the probability 1e-400 underflows, the support does not."""
    k = 41
    climb = np.eye(k) * (1 - 1e-10) + np.eye(k, k=1) * 1e-10
    climb[-1, -1] = 1
    chain = MarkovChain(climb, initial=np.eye(k)[0])
    assert chain.marginal(k)[-1] == 0.0
    assert chain.support(k).all()
    assert boolean_power(chain.possible, k - 1)[0, -1]
    assert not boolean_power(chain.possible, k - 2)[0, -1]


@given(chains(initials=("any",)), st.integers(1, 10))
def test_any_start_supports_what_some_start_supports(chain, t):
    reached = boolean_power(chain.possible, t - 1)
    assert np.array_equal(chain.support(t), reached.any(axis=0))


@given(chains(initials=("stationary",)), st.integers(1, 10))
def test_a_stationary_start_never_moves(chain, t):
    assert np.array_equal(chain.marginal(t), chain.stationary)
    assert np.array_equal(chain.support(t), chain.stationary > 0)
    assert np.array_equal(chain.start, chain.stationary)


def test_any_start_has_no_single_marginal_or_sample():
    chain = MarkovChain(WALK, initial="any")
    for question in (lambda: chain.marginal(3), lambda: chain.sample(3, 0), lambda: chain.start):
        with pytest.raises(UnsupportedError, match="'any'"):
            question()


@pytest.mark.parametrize("t", [0, -1, 1.0, True, "1"])
def test_time_points_are_integers_from_one(t):
    chain = MarkovChain(WALK)
    for question in (chain.marginal, chain.support, lambda t: chain.sample(t, 0)):
        with pytest.raises(InvalidInputError, match="must be a"):
            question(t)


def test_samples_are_labels_and_repeat_with_their_seed():
    chain = MarkovChain(WALK, initial=[1, 0], states=["rest", "walk"])
    path = chain.sample(50, seed=3)
    assert path[0] == "rest"
    assert set(path.tolist()) == {"rest", "walk"}
    assert path.tolist() == chain.sample(50, seed=3).tolist()
    assert path.tolist() != chain.sample(50, seed=4).tolist()
    assert chain.encode(path).max() == 1


@pytest.mark.parametrize("seed", ["x", -1, 1.5, True])
def test_a_seed_is_a_natural_number(seed):
    with pytest.raises(InvalidInputError, match="seed must be"):
        MarkovChain(WALK).sample(3, seed)


@given(st.lists(LABELS, min_size=2, max_size=2, unique=True))
def test_samples_keep_the_labels_whatever_their_type(states):
    chain = MarkovChain([[0, 1], [1, 0]], initial=[1, 0], states=states)
    drawn = chain.sample(4, 0).tolist()
    assert drawn == [states[0], states[1], states[0], states[1]]
    assert [type(x) for x in drawn] == [type(x) for x in [*states, *states]]
    assert chain.encode(drawn).tolist() == [0, 1, 0, 1]


def test_samples_never_take_an_impossible_step():
    matrix = np.array([[0, 0.3, 0.7, 0], [1, 0, 0, 0], [0.1, 0, 0.2, 0.7], [0, 0, 1, 0]])
    path = MarkovChain(matrix, initial=[0, 1, 0, 0]).sample(20000, seed=1)
    assert path[0] == 1
    assert (matrix[path[:-1], path[1:]] > 0).all()


def transition_p_value(path, matrix):
    """χ² of the transitions against a matrix with positive entries."""
    counts = np.zeros(matrix.shape)
    np.add.at(counts, (path[:-1], path[1:]), 1)
    expected = counts.sum(axis=1, keepdims=True) * matrix
    statistic = ((counts - expected) ** 2 / expected).sum()
    return stats.chi2.sf(statistic, matrix.size - len(matrix))


def test_sampled_transitions_follow_the_matrix_and_not_one_that_is_five_percent_off():
    matrix = np.array([[0.7, 0.2, 0.1], [0.3, 0.3, 0.4], [0.25, 0.25, 0.5]])
    path = MarkovChain(matrix).sample(200_000, seed=7)
    assert transition_p_value(path, matrix) > 1e-3
    off = np.array([[0.665, 0.235, 0.1], [0.3, 0.3, 0.4], [0.25, 0.25, 0.5]])
    assert transition_p_value(path, off) < 1e-9


@given(chains())
def test_equal_chains_are_equal_and_survive_pickling(chain):
    for twin in (pickle.loads(pickle.dumps(chain)), copy.copy(chain), copy.deepcopy(chain)):  # noqa: S301
        assert twin == chain
        assert hash(twin) == hash(chain)
        assert not twin.transition.flags.writeable


def test_different_beliefs_are_different():
    chain = MarkovChain(WALK)
    others = [
        MarkovChain(WALK, initial="any"),
        MarkovChain(WALK, initial=[0.8, 0.2]),
        MarkovChain(WALK, states=["a", "b"]),
        MarkovChain([[0.9, 0.1], [0.5, 0.5]]),
        "chain",
    ]
    assert all(chain != other for other in others)
    assert MarkovChain(WALK, states=[0, 1]) == chain


def test_a_chain_cannot_be_changed():
    chain = MarkovChain(WALK, initial=[1, 0])
    with pytest.raises(dataclasses.FrozenInstanceError):
        chain.initial = "any"
    for array in (chain.transition, chain.initial, chain.stationary, chain.marginal(3)):
        with pytest.raises(ValueError, match="read-only"):
            array[0] = 0


def test_representations_are_short():
    assert repr(MarkovChain(np.eye(9), initial="any")) == (
        "MarkovChain(9 states: 0, 1, 2, 3, … (9 in all); initial='any')"
    )
    assert repr(MarkovChain([[1]], initial=[1])) == "MarkovChain(1 state: 0; initial=given)"
