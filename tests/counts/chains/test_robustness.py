"""Slightly wrong beliefs: no chain within the distance leaks more than the bound."""

from __future__ import annotations

import numpy as np
import pytest

import quiltwork as qw
from evidence import leakage as enumerated
from evidence.checks.audit_enumeration import random_chain
from quiltwork import queries
from quiltwork.counts import robustness
from quiltwork.counts.chains.robustness import perturbation_bound, shifted_chains

CHAIN = qw.MarkovChain([[0.9, 0.1], [0.4, 0.6]], initial=[0.8, 0.2])


def moved(draw, row, distance):
    """A distribution with the same support, every entry within the distance."""
    support = np.flatnonzero(row > 0)
    change = np.zeros(len(row))
    if len(support) > 1:
        noise = draw.uniform(-1, 1, len(support))
        noise -= noise.mean()
        change[support] = noise / np.abs(noise).max() * distance
    return row + change


@pytest.mark.parametrize("seed", range(15))
def test_no_chain_that_close_leaks_more(seed):
    draw = np.random.default_rng(seed)
    chain, length = random_chain(draw), int(draw.integers(1, 6))
    entries = np.concatenate([chain.transition.ravel(), chain.start])
    distance = 0.5 * float(entries[entries > 0].min()) * draw.uniform(0.05, 1)
    query = queries.count(0)
    found = robustness(chain, length, query, 1.0, distance, start_distance=distance)
    for _ in range(10):
        rows = np.array([moved(draw, row, distance) for row in chain.transition])
        other = qw.MarkovChain(rows, moved(draw, chain.start, distance))
        paths = enumerated.all_paths(other, length)
        values = enumerated.answers(query, other.states, paths[0])
        truth = enumerated.additive_leakage(paths, values, [1.0], range(1, length + 1))
        assert truth <= found.bound + 1e-9


def test_the_perturbation_bound_shrinks_with_the_distance_and_grows_with_the_length():
    near = perturbation_bound(CHAIN, 10, 0.001)
    assert near == pytest.approx(4 * 9 * 0.01005, rel=1e-3)
    assert perturbation_bound(CHAIN, 100, 0.001) > near
    assert perturbation_bound(CHAIN, 10, 0.2) == np.inf


def test_levels_move_further_at_larger_distances():
    distances = [1e-5, 1e-3, 1e-2, 5e-2]
    found = [robustness(CHAIN, 30, queries.count(1), 3.336, one) for one in distances]
    assert found[0].by == "perturbation"
    assert found[-1].by == "sweep"
    for one in found:
        assert one.believed <= one.observed <= one.bound
    assert found[-1].observed > 1.3
    assert found[-1].bound < 6


def test_shifted_chains_stay_within_the_distance():
    for other in shifted_chains(CHAIN, 0.07):
        assert np.abs(other.transition - CHAIN.transition).max() <= 0.07 + 1e-12
    assert len(list(shifted_chains(CHAIN, 0.07))) == 9
    with pytest.raises(qw.InvalidInputError, match="between 0 and 1"):
        next(shifted_chains(CHAIN, 0))


def test_bad_arguments_are_refused():
    with pytest.raises(qw.InvalidInputError, match="greater than 0"):
        robustness(CHAIN, 5, queries.count(1), 0, 0.01)
    with pytest.raises(qw.InvalidInputError, match="must lie in"):
        robustness(CHAIN, 5, queries.count(1), 1, 2)
