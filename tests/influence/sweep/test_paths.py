"""Ratios and programs, one piece and many, both directions: the same bounds every way."""

from __future__ import annotations

import numpy as np
import pytest

from evidence.random_sweeps import matrix, start
from quiltwork.beliefs import ChainBox, HiddenChain, MarkovChain
from quiltwork.errors import InvalidInputError
from quiltwork.influence.sweep import (
    Levels,
    leakage,
    sweep_of,
)
from quiltwork.influence.sweep.step import ExactSide

THREE = np.array([[0.0, 0.5, 0.5], [0.5, 0.0, 0.5], [0.5, 0.5, 0.0]])


def node_by_node(belief, levels, episode=1):
    nodes = range(1, levels.length + 1)
    first, last, leak = sweep_of(belief, levels.length, episode).profile(levels, nodes)
    return np.repeat(leak, last - first + 1)


def windows(rng, length):
    """Runs of levels; on some, a part is charged per pair of neighbours."""
    first = np.unique(np.append(1, rng.integers(1, length + 1, 3)))
    point, pair = rng.choice([0, 0.01, 0.1, 0.5, 2], (2, len(first)))
    sides = point + pair
    return Levels(first, sides + pair, sides, sides, length, 1e6)


def small_pieces(patch):
    """Every series is followed in small pieces."""
    patch.setattr(leakage, "SHORT", 4)
    patch.setattr(leakage, "SMALL_PIECE", 8)
    patch.setattr(leakage, "_VERY_FEW", 0)
    patch.setattr(leakage, "_FEW_RUNS", 0)


def random_chain(rng, shape):
    rows = matrix(rng, int(rng.integers(2, 5)), shape)
    begin = ("any", "stationary", start(rng, len(rows)))[rng.integers(3)]
    try:
        return MarkovChain(rows, begin)
    except InvalidInputError:  # several stationary laws
        return MarkovChain(rows, start(rng, len(rows)))


def test_two_states_by_ratios_leak_what_programs_say(monkeypatch):
    """The kernel goes along stretches by ratios, or solves a program for every step."""
    rng = np.random.default_rng(0)
    for _ in range(8):
        stay, length = rng.uniform(0.02, 0.98, 2), int(rng.integers(5, 90))
        chain = MarkovChain([[stay[0], 1 - stay[0]], [1 - stay[1], stay[1]]])
        levels = windows(rng, length)
        found = [node_by_node(chain, levels)]
        with monkeypatch.context() as patch:
            patch.setattr(ExactSide, "_by_ratios", lambda *_: False)
            found.append(node_by_node(chain, levels))
        assert found[0] == pytest.approx(found[1], rel=1e-9, abs=1e-12)


@pytest.mark.parametrize(
    "belief",
    [
        MarkovChain(THREE, [1 - 2e-4, 1e-4, 1e-4]),
        MarkovChain([[0.9, 0.1], [0.4, 0.6]], "any"),
        MarkovChain([[0, 0.3, 0.7], [0, 0.6, 0.4], [0, 0.1, 0.9]], "any"),
        ChainBox([[0.85, 0.05], [0.3, 0.5]], [[0.95, 0.15], [0.5, 0.7]]),
    ],
)
def test_a_series_in_pieces_leaks_what_it_leaks_in_one(belief, monkeypatch):
    """Stretches begin at different nodes, and none takes a step from before its own beginning."""
    first = np.array([1, 20, 45])
    runs = np.array([0.3, 1.0, 0.01])
    levels = Levels(first, runs, runs, runs, 60, 1e6)
    whole = node_by_node(belief, levels)
    small_pieces(monkeypatch)
    pieces = node_by_node(belief, levels)
    assert (pieces >= whole * (1 - 1e-9)).all()
    assert pieces == pytest.approx(whole, rel=1e-6)


def test_both_sides_of_a_box_are_swept():
    """Only the last point is used, and the first leaks through it."""
    box = ChainBox([[0.85, 0.05], [0.3, 0.5]], [[0.95, 0.15], [0.5, 0.7]])
    there = node_by_node(box, Levels.of_points(np.array([0.0, 0.0, 1.0])))
    back = node_by_node(box, Levels.of_points(np.array([1.0, 0.0, 0.0])))
    member = MarkovChain([[0.9, 0.1], [0.4, 0.6]], [0.5, 0.5])
    inside = node_by_node(member, Levels.of_points(np.array([0.0, 0.0, 1.0])))
    assert there == pytest.approx(back[::-1])
    assert (there >= inside * (1 - 1e-9)).all()
    assert inside[0] > 0.1


def test_what_every_start_ends_in_is_known():
    absorbing = MarkovChain([[1.0, 0.0, 0.0], [1.0, 0.0, 0.0], [0.0, 1.0, 0.0]], "any")
    leak = node_by_node(absorbing, Levels.constant(0.1, 50))
    assert leak[:2] == pytest.approx(0.2)
    assert (leak[2:] == 0).all()


def test_pieces_beyond_the_work_one_can_afford_keep_bounds_that_hold():
    class InPieces(leakage.SweptSeries):
        whole = False

    class Hurried(InPieces):
        _affordable = 2

    chain, length = MarkovChain([[0.9, 0.1, 0], [0.1, 0.7, 0.2], [0, 0.3, 0.7]]), 4000
    rng = np.random.default_rng(5)
    first = np.unique(np.append(1, rng.integers(1, length + 1, 12)))
    spent = rng.choice([0.01, 0.05, 0.3], len(first))
    levels = Levels(first, spent, spent, spent, length, 1e6)
    nodes = range(1, length + 1)
    exact, rough = (kind(sweep_of(chain, length), levels, nodes) for kind in (InPieces, Hurried))
    truth, bounds = (
        np.repeat(leak, last - start + 1)
        for start, last, leak in (exact.profile(), rough.profile())
    )
    assert len(exact.stretches()) > 2
    assert (bounds >= truth * (1 - 1e-8)).all()
    assert bounds.max() == pytest.approx(truth.max(), rel=1e-3)
    assert truth.max() * (1 - 1e-8) <= rough.worst().leak <= bounds.max() * (1 + 1e-8)


def test_what_has_no_bound_on_one_side_has_none_in_all():
    """Not a number would be no more than any other."""
    rows = [[0.8, 0.1, 0.1], [0.1, 0.5, 0.4], [0.2, 0.4, 0.4]]
    sweep = sweep_of(HiddenChain(rows, [0, 1, 1]), 600)
    known, unknown = sweep.left.boundary_value(np.array([300])), np.full((1, 3, 3), np.inf)
    before, after = sweep.side_leakage(np.array([300]), np.array([0.1]), known, unknown)
    assert before + after == np.inf


def test_a_hidden_class_that_is_never_left_tells_everything():
    rows = np.kron(np.eye(2), [[0.9, 0.1], [0.1, 0.9]])
    rows[2:, 2:] = [[0.5, 0.5], [0.4, 0.6]]
    sweep = sweep_of(HiddenChain(rows, [0, 1, 0, 1], [0.25] * 4), 2000)
    assert sweep.worst(Levels.constant(0.01, 2000), range(1, 2001)).leak == pytest.approx(20)
