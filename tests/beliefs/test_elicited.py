"""Beliefs from what people say."""

from __future__ import annotations

from fractions import Fraction

import numpy as np
import pytest

from quiltwork.beliefs import ChainBox, Grid, MarkovChain
from quiltwork.beliefs.elicited import around, chain_from_stays, reasons
from quiltwork.errors import InvalidInputError

STATES = ("rest", "walk", "run")


def test_stays_have_the_means_that_were_said():
    chain = chain_from_stays(STATES, [30, 10, 5], {"run": {"walk": 3, "rest": 1}})
    assert chain.transition.sum(axis=1) == pytest.approx(1)
    path = chain.encode(chain.sample(200_000, seed=4))
    ends = np.flatnonzero(np.diff(path))
    lengths, whose = np.diff(ends), path[ends[1:]]
    for state, mean in enumerate((30, 10, 5)):
        assert lengths[whose == state].mean() == pytest.approx(mean, rel=0.05)
    after = path[ends[path[ends] == 2] + 1]
    assert (after == 1).mean() == pytest.approx(0.75, abs=0.02)


@pytest.mark.parametrize("off", [0.01, 0.1, Fraction(1, 2)])
def test_a_box_holds_what_is_so_near_and_not_twice_as_rare(off):
    chain = chain_from_stays(STATES, [30, 10, 5])
    box = around(chain, off)
    assert isinstance(box, ChainBox)
    assert box.contains(chain)
    assert (box.upper <= chain.transition + float(off) + 1e-12).all()
    said = np.maximum(chain.transition - float(off), chain.transition / 2)
    assert (box.lower >= said - 1e-12).all()
    assert (1 / (1 - np.diag(box.upper)) <= 2 / (1 - np.diag(chain.transition)) + 1e-6).all()
    near = chain.transition + 0.9 * min(float(off), 1 / 120) * np.array(
        [[-1, 0.5, 0.5], [0, -1, 1], [1, 0, -1]]
    )
    assert box.contains(MarkovChain(near, states=STATES))


def test_no_distance_is_the_chain_itself():
    chain = chain_from_stays(["a", "b"], [2, Fraction(5, 2)])
    assert around(chain, 0) is chain
    assert chain.transition.tolist() == [[0.5, 0.5], [0.4, 0.6]]


def test_reasons_name_every_state_and_time():
    told = "\n".join(reasons(chain_from_stays(STATES, [30, 10, 5], grid=Grid(step=60)), 0.1))
    assert (
        "rest lasts 30 time points (30min) on average: it continues with probability 0.966667"
        in told
    )
    assert "walk (50 %) or run (50 %)" in told
    assert "differ by up to 0.1" in told


@pytest.mark.parametrize(
    ("states", "stays", "after", "words"),
    [
        (["a"], [3], None, "nothing to protect"),
        (["a", "b"], [3], None, "2 states and 1 durations"),
        (["a", "b"], [3, 0.5], None, "from 1 to 1,000,000"),
        (["a", "b"], [3, 10**7], None, "from 1 to 1,000,000"),
        (["a", "b"], [3, 3], {"a": {"a": 1}}, "not another of the states"),
        (["a", "b"], [3, 3], {"a": {"b": -1}}, "at least 0"),
        (["a", "b"], [3, 3], {"c": {"b": 1}}, "not one of the states"),
        (["a", "a"], [3, 3], None, "a"),
    ],
)
def test_answers_that_make_no_sense_are_refused(states, stays, after, words):
    with pytest.raises(InvalidInputError, match=words):
        chain_from_stays(states, stays, after)


@pytest.mark.parametrize("off", [-0.1, 0.6, "much"])
def test_distances_that_make_no_sense_are_refused(off):
    with pytest.raises(InvalidInputError, match=r"distance|error of"):
        around(chain_from_stays(["a", "b"], [2, 2]), off)
