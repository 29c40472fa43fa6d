"""ChainBox as an object."""

from __future__ import annotations

import dataclasses
import pickle

import numpy as np
import pytest
from hypothesis import given

from quiltwork import ChainBox, InvalidInputError, MarkovChain
from tests.strategies import boxes, stochastic_matrices

LOWER, UPPER = [[0.85, 0.05], [0.3, 0.5]], [[0.95, 0.15], [0.5, 0.7]]


def test_a_box_contains_what_lies_between_its_bounds():
    box = ChainBox(LOWER, UPPER)
    assert box.contains(MarkovChain([[0.9, 0.1], [0.4, 0.6]]))
    assert box.contains(MarkovChain([[0.85, 0.15], [0.5, 0.5]], initial="any"))
    assert not box.contains(MarkovChain([[0.84, 0.16], [0.4, 0.6]]))
    assert not box.contains(MarkovChain([[0.9, 0.1], [0.29, 0.71]]))


@given(stochastic_matrices())
def test_a_matrix_lies_in_the_box_of_itself_and_in_the_box_of_everything(matrix):
    chain = MarkovChain(matrix, initial="any")
    assert ChainBox(matrix, matrix).contains(chain)
    assert ChainBox(np.zeros_like(matrix), np.ones_like(matrix)).contains(chain)


def test_an_excluded_transition_must_be_exactly_impossible():
    box = ChainBox([[0, 0], [0, 0]], [[1, 0], [1, 1]])
    assert box.contains(MarkovChain([[1, 0], [0.5, 0.5]]))
    assert not box.contains(MarkovChain([[1 - 1e-13, 1e-13], [0.5, 0.5]]))


def test_only_chains_on_the_same_states_can_be_asked_about():
    box = ChainBox(LOWER, UPPER, states=["rest", "walk"])
    with pytest.raises(InvalidInputError, match="'rest', 'walk'"):
        box.contains(MarkovChain([[0.9, 0.1], [0.4, 0.6]]))
    with pytest.raises(InvalidInputError, match="Give a MarkovChain"):
        box.contains(box)


def test_a_box_encodes_like_a_chain():
    box = ChainBox(LOWER, UPPER, states=["rest", "walk"])
    assert box.encode(["walk", "rest"]).tolist() == [1, 0]


@given(boxes())
def test_equal_boxes_are_equal_and_survive_pickling(box):
    twin = pickle.loads(pickle.dumps(box))  # noqa: S301
    assert twin == box
    assert hash(twin) == hash(box)
    assert not twin.lower.flags.writeable


def test_a_box_cannot_be_changed_and_differs_from_others():
    box = ChainBox(LOWER, UPPER)
    with pytest.raises(dataclasses.FrozenInstanceError):
        box.lower = np.zeros((2, 2))
    with pytest.raises(ValueError, match="read-only"):
        box.upper[0, 0] = 1
    assert box != ChainBox(LOWER, UPPER, states=["a", "b"])
    assert box != ChainBox(LOWER, [[0.95, 0.15], [0.5, 0.6]])
    assert repr(box) == "ChainBox(2 states: 0, 1; widest=0.2)"
