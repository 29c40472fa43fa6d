"""Lists of beliefs, and the JSON of every belief."""

from __future__ import annotations

import json

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from quiltwork import ChainBox, Clusters, InvalidInputError, MarkovChain
from quiltwork.beliefs import as_beliefs, belief_from_json, beliefs_from_json, beliefs_to_json
from tests.strategies import LABELS, boxes, chains

WALK = [[0.9, 0.1], [0.4, 0.6]]


def test_one_belief_or_a_list_becomes_a_tuple():
    chain, other = MarkovChain(WALK), MarkovChain(WALK, initial="any")
    assert as_beliefs(chain) == (chain,)
    assert as_beliefs([chain, other]) == as_beliefs((chain, other)) == (chain, other)
    box = ChainBox(np.zeros((2, 2)), np.ones((2, 2)))
    assert as_beliefs([chain, box, Clusters(["a", "b"])])[1] is box


@pytest.mark.parametrize(
    ("beliefs", "sentence"),
    [
        ([], "list of beliefs is empty"),
        (WALK, "Belief 1 is list"),
        ("chain", "beliefs is str"),
        (None, "beliefs is NoneType"),
        ([MarkovChain(WALK), 3], "Belief 2 is int"),
        ([MarkovChain(WALK), MarkovChain(np.eye(3), "any")], "Belief 2 has the states 0, 1, 2"),
        ([MarkovChain(WALK), MarkovChain(WALK, states=[1, 0])], "same states, in the same order"),
        ([Clusters([1, 2]), Clusters([1, 2, 3])], "Belief 2 has 3 rows, belief 1 has 2 rows"),
    ],
)
def test_what_is_no_set_of_beliefs_is_refused(beliefs, sentence):
    with pytest.raises(InvalidInputError, match=sentence):
        as_beliefs(beliefs)


def bits(belief):
    """Everything a belief holds, types of labels and bits of floats included."""
    arrays = [getattr(belief, name, None) for name in ("transition", "initial", "lower", "upper")]
    labels = belief.states if belief.states is not None else belief.labels
    return (
        type(belief),
        repr(labels),
        [a.tobytes() if isinstance(a, np.ndarray) else a for a in arrays],
        belief.grid,
        belief.sources,
    )


@given(
    st.one_of(
        chains(),
        boxes(),
        st.lists(LABELS.filter(lambda x: x is not None), min_size=1).map(Clusters),
    )
)
def test_every_belief_survives_its_json_bit_for_bit(belief):
    text = belief.to_json()
    again = belief_from_json(text)
    assert again == belief
    assert bits(again) == bits(belief)
    assert again.to_json() == text
    assert bits(type(belief).from_json(text.encode())) == bits(belief)


@given(st.lists(LABELS, min_size=2, max_size=2, unique=True))
def test_labels_keep_their_types(states):
    chain = MarkovChain(WALK, states=states)
    again = MarkovChain.from_json(chain.to_json())
    assert repr(again.states) == repr(chain.states)


def test_labels_that_look_alike_stay_apart():
    states = (1, "1", None, "None", 1.5, "1.5", (1,), (1.0, True), float("inf"), "läuft 🏃")
    chain = MarkovChain(np.eye(10), initial="any", states=states)
    assert repr(belief_from_json(chain.to_json()).states) == repr(states)


def test_sets_of_beliefs_survive_too():
    chain, box = MarkovChain(WALK), ChainBox(np.zeros((2, 2)), np.ones((2, 2)))
    assert beliefs_from_json(beliefs_to_json([chain, box])) == (chain, box)
    assert beliefs_from_json(beliefs_to_json(chain)) == (chain,)
    with pytest.raises(InvalidInputError, match="several beliefs"):
        belief_from_json(beliefs_to_json([chain, box]))


def edited(belief, **changes):
    return json.dumps({**json.loads(belief.to_json()), **changes})


@pytest.mark.parametrize(
    ("text", "sentence"),
    [
        ("{", "Not a JSON document"),
        ("[]", "not a belief"),
        (b"\xff", "Not a JSON document"),
        ('{"schema": "quiltwork/release", "version": 1}', "'release' is not a belief"),
        ('{"schema": "quiltwork/belief/markov-chain", "version": 9}', "version 9 is unknown"),
        ('{"schema": "quiltwork/belief/markov-chain", "version": 1}', "no field 'transition'"),
        (edited(MarkovChain(WALK), transition=[[1, 1], [0, 1]]), "Row 1 of transition sums to 2"),
        (edited(MarkovChain(WALK), states=[0, {"int": 1}]), "is not a label"),
        (edited(MarkovChain(WALK), states=[0, {"float": "x"}]), "not a float label"),
        (edited(MarkovChain(WALK), states={"a": 1}), "Labels must be a JSON list"),
        (edited(MarkovChain(WALK), sources="abc"), "sources must be a list"),
        (edited(MarkovChain(WALK), sources=[1]), "sources must be a list"),
        (edited(Clusters([1, 2]), rows=[0, 5]), "rows must be a list of cluster numbers 0..1"),
        (edited(Clusters([1, 2]), rows=[0, -1]), "rows must be a list of cluster numbers 0..1"),
        (edited(Clusters([1, 2]), rows=None), "rows must be a list of cluster numbers"),
    ],
)
def test_a_damaged_document_gets_a_sentence(text, sentence):
    with pytest.raises(InvalidInputError, match=sentence):
        belief_from_json(text)
