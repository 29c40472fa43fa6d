"""Fitting chains by counting."""

from __future__ import annotations

from collections import Counter
from fractions import Fraction
from itertools import pairwise

import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st

from quiltwork import InvalidInputError, MarkovChain
from quiltwork.beliefs.transition_counts import count_transitions

paths = st.lists(st.sampled_from("abc"), min_size=1, max_size=20)


@given(st.lists(paths, min_size=1, max_size=4), st.sampled_from([0.5, 1, 3]))
def test_the_matrix_is_the_smoothed_frequency_of_transitions(sequences, smoothing):
    chain = MarkovChain.fit(sequences, smoothing, states=["a", "b", "c"])
    counts = Counter(pair for path in sequences for pair in pairwise(path))
    for x in "abc":
        total = sum(counts[x, y] for y in "abc") + 3 * Fraction(smoothing)
        exact = [(counts[x, y] + Fraction(smoothing)) / total for y in "abc"]
        row = chain.transition["abc".index(x)]
        assert row == pytest.approx([float(p) for p in exact], rel=1e-14)


def test_counts_do_not_cross_from_one_sequence_to_the_next():
    counted = count_transitions([[0, 0], [1, 1]], None, None)
    assert counted.transitions.tolist() == [[1, 0], [0, 1]]
    assert counted.starts.tolist() == [1, 1]


def test_without_states_the_labels_found_are_sorted():
    assert MarkovChain.fit(["walk", "rest", "walk"]).states == ("rest", "walk")
    assert MarkovChain.fit([[3], [1, 2]]).states == (1, 2, 3)


def test_a_state_that_is_never_left_has_a_defined_row():
    chain = MarkovChain.fit(["a", "b"], smoothing=0.5)
    assert chain.transition.tolist() == [[0.25, 0.75], [0.5, 0.5]]
    with pytest.raises(
        InvalidInputError, match=r"State 2 of 2, in their order, is never left.*smoothing > 0"
    ):
        MarkovChain.fit(["a", "b"], smoothing=0)


def test_without_smoothing_the_fit_is_plain_maximum_likelihood():
    chain = MarkovChain.fit([0, 0, 0, 1, 0], smoothing=0)
    assert chain.transition.tolist() == [[2 / 3, 1 / 3], [1.0, 0.0]]


def test_the_start_can_be_chosen():
    data = [[0, 1], [0, 0], [1, 0]]
    assert MarkovChain.fit(data).initial == "stationary"
    assert MarkovChain.fit(data, initial="any").initial == "any"
    assert MarkovChain.fit(data, initial=[1, 0]).initial.tolist() == [1, 0]
    empirical = MarkovChain.fit(data, smoothing=0.5, initial="empirical")
    assert empirical.initial.tolist() == [2.5 / 4, 1.5 / 4]


@pytest.mark.parametrize(
    ("arguments", "sentence"),
    [
        (([0, 1], -1), "smoothing must be from 0"),
        (([0, 1], "1"), "smoothing must be a number"),
        (([0, 1], float("nan")), "smoothing must be finite"),
        (([0, 1], 1e300), "smoothing must be from 0"),
        (([0, 1, 2], 0.5, [0, 1]), "Position 3 holds none of the states 0, 1"),
        (([[0], [0, 1, 2]], 0.5, [0, 1]), "Sequence 2: Position 3 holds none"),
        (([[0, 1], [0.0, float("nan")]],), "Sequence 2: Position 2 holds a missing value"),
        (([[0, 1], []],), "Sequence 2: The sequence is empty"),
        ((["a", None],), "Position 2 holds None"),
        (([],), "empty"),
        (([0, 1], 0.5, []), "states is empty"),
        (([0, 1], 0.5, "01"), "states must be a list"),
        (("path.csv",), "list, array or series"),
        (([0, 1], 0.5, None, "uniform"), "not 'uniform'"),
    ],
)
def test_bad_input_gets_a_sentence(arguments, sentence):
    with pytest.raises(InvalidInputError, match=sentence):
        MarkovChain.fit(*arguments)


def test_none_is_a_state_when_it_is_listed():
    chain = MarkovChain.fit(["a", None, "a"], states=["a", None])
    assert chain.transition.tolist() == [[0.25, 0.75], [0.75, 0.25]]


def test_frames_of_subjects():
    frame = pd.DataFrame({"id": [1, 1, 2, 2], "state": ["a", "b", "b", "b"]})
    groups = {key: rows["state"] for key, rows in frame.groupby("id")}
    counted = count_transitions(list(groups.values()), None, None)
    assert counted.transitions.tolist() == [[0, 1], [0, 1]]
    assert MarkovChain.fit(groups, smoothing=1).transition.tolist() == [[1 / 3, 2 / 3]] * 2


def test_fitting_recovers_the_chain_that_made_the_data():
    truth = MarkovChain([[0.7, 0.2, 0.1], [0.3, 0.3, 0.4], [0.25, 0.25, 0.5]])
    found = MarkovChain.fit(truth.sample(200_000, seed=5))
    assert np.abs(found.transition - truth.transition).max() < 0.01
