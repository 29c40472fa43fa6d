"""Grids: what a belief keeps of how its states came about, and what it refuses."""

from __future__ import annotations

import json

import numpy as np
import pytest

from quiltwork import ChainBox, InvalidInputError, MarkovChain
from quiltwork.beliefs import Grid, as_beliefs, belief_from_json
from quiltwork.beliefs.grids import common_grid, duration, grid_difference, parse_duration

WALK = [[0.9, 0.1], [0.4, 0.6]]
HOUR = Grid("1h", (0.5,), ("low", "high"), "mean")


def test_a_belief_writes_its_grid_and_reads_it_back():
    beliefs = [
        MarkovChain(WALK, states=["low", "high"], grid=HOUR),
        ChainBox(np.zeros((2, 2)), np.ones((2, 2)), ["low", "high"], grid=HOUR),
        ChainBox.from_counts([[8, 0], [0, 4]], [[12, 3], [3, 6]], grid=Grid(step=60)),
    ]
    for belief in beliefs:
        again = belief_from_json(belief.to_json())
        assert again.grid == belief.grid
        assert again == belief
    assert json.loads(beliefs[0].to_json())["grid"] == {
        "step": 3600,
        "edges": [0.5],
        "labels": ["low", "high"],
        "rule": "mean",
    }
    assert "every 1h, edges 0.5" in repr(beliefs[0])
    assert beliefs[0].reversed().grid == HOUR


def test_files_without_a_grid_are_read_as_before():
    chain = MarkovChain(WALK)
    document = json.loads(chain.to_json())
    assert document.pop("grid") is None
    assert document.pop("sources") == []
    for text in (chain.to_json(), json.dumps(document)):
        assert belief_from_json(text) == chain
        assert belief_from_json(text).grid is None
    assert repr(chain) == "MarkovChain(2 states: 0, 1; initial='stationary')"


def test_chains_on_other_grids_are_other_beliefs():
    chains = [MarkovChain(WALK, grid=grid) for grid in (None, Grid(60), Grid(61))]
    assert len(set(chains)) == 3
    with pytest.raises(InvalidInputError, match="Belief 3 was made for steps of 61s, another"):
        as_beliefs(chains)
    assert as_beliefs(chains[:2]) == tuple(chains[:2])
    box = ChainBox(np.zeros((2, 2)), np.ones((2, 2)), grid=Grid(60))
    assert box.contains(chains[0])
    assert box.contains(chains[1])
    with pytest.raises(InvalidInputError, match="for steps of 1min, the chain for steps of 61s"):
        box.contains(chains[2])


@pytest.mark.parametrize(
    ("other", "words"),
    [
        (Grid("15min"), ("steps of 1h", "steps of 15min")),
        (Grid(edges=(0.6,)), ("the edges 0.5", "the edges 0.6")),
        (Grid(labels=("high", "low")), ("the states 'low', 'high'", "the states 'high', 'low'")),
        (Grid(rule="max"), ("the mean of each step", "the max of each step")),
        (Grid(), None),
        (Grid("60min", labels=("low", "high")), None),
        (None, None),
    ],
)
def test_what_is_known_on_both_sides_must_agree(other, words):
    assert grid_difference(HOUR, other) == words
    assert grid_difference(other, HOUR) == (None if words is None else words[::-1])
    if words is None:
        assert common_grid([HOUR, other]) == HOUR
    else:
        with pytest.raises(InvalidInputError, match="one grid"):
            common_grid([HOUR, None, other])


@pytest.mark.parametrize(
    ("parts", "words"),
    [
        ({"step": 0}, "step must be at least 1"),
        ({"step": 1.5}, "step must be an integer"),
        ({"step": "soon"}, "Cannot read the duration"),
        ({"edges": ()}, "increasing"),
        ({"edges": (2, 1)}, "increasing"),
        ({"edges": (float("nan"),)}, "finite"),
        ({"edges": (10**400,)}, "larger than any float"),
        ({"edges": 3}, "edges must be a list"),
        ({"edges": (1,), "labels": ("a",)}, "make 2 states"),
        ({"labels": ("a", "a")}, "same label"),
        ({"labels": "ab"}, "states must be a list"),
        ({"rule": "median"}, "rule must be"),
    ],
)
def test_what_is_no_grid_is_refused(parts, words):
    with pytest.raises(InvalidInputError, match=words):
        Grid(**parts)
    document = json.loads(MarkovChain(WALK).to_json()) | {"grid": parts}
    with pytest.raises(InvalidInputError):
        belief_from_json(json.dumps(document, default=str))


@pytest.mark.parametrize("grid", [[], "1h", {"every": "1h"}, {"labels": "ab"}])
def test_a_damaged_grid_gets_a_sentence(grid):
    document = json.loads(MarkovChain(WALK).to_json()) | {"grid": grid}
    with pytest.raises(InvalidInputError):
        belief_from_json(json.dumps(document))
    if not isinstance(grid, Grid):
        with pytest.raises(InvalidInputError, match="grid must be a Grid"):
            MarkovChain(WALK, grid=grid)


@pytest.mark.parametrize("seconds", [1, 59, 60, 90, 600, 3600, 5400, 86400, 7 * 86400])
def test_durations_are_read_as_they_are_written(seconds):
    assert parse_duration(duration(seconds)) == seconds
