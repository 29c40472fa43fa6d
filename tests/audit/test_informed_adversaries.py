"""Adversaries who know other time points: the bridge of the chain against every S and x_S."""

from __future__ import annotations

import itertools

import numpy as np
import pytest

import quiltwork as qw
from evidence import leakage as enumerated
from evidence.checks.audit_enumeration import random_chain
from evidence.informed_adversaries import strongest_adversary
from quiltwork import audit, queries

CHAIN = qw.MarkovChain([[0.9, 0.1], [0.4, 0.6]], initial=[0.8, 0.2])


def enumerated_level(chain, length, query, scale, node, known) -> float:
    """Definition (3) of Bayesian DP leakage for one adversary A(i, S)."""
    rows, weight = enumerated.all_paths(chain, length)
    worst = 0.0
    columns = [point - 1 for point in known]
    for seen in np.unique(rows[:, columns], axis=0) if columns else [np.array([])]:
        kept = (rows[:, columns] == seen).all(axis=1) if columns else np.ones(len(rows), bool)
        values = enumerated.answers(query, chain.states, rows[kept])
        paths = rows[kept], weight[kept]
        scales = [scale] * values.shape[1]
        worst = max(worst, enumerated.additive_leakage(paths, values, scales, [node]))
    return worst


@pytest.mark.parametrize("seed", range(25))
def test_the_strongest_adversary_is_the_worst_of_all(seed):
    draw = np.random.default_rng(seed)
    chain, length = random_chain(draw), int(draw.integers(1, 6))
    if chain.size == 4:
        length = min(length, 4)
    query = [queries.count(0), queries.count(1).on(1, max(1, length - 1)), queries.histogram()][
        seed % 3
    ]
    worst = 0.0
    for node in range(1, length + 1):
        others = [point for point in range(1, length + 1) if point != node]
        for size in range(length):
            for known in itertools.combinations(others, size):
                worst = max(worst, enumerated_level(chain, length, query, 1.3, node, known))
    found = strongest_adversary(chain, length, [(query, 1.3)])
    assert found.epsilon == pytest.approx(worst, abs=1e-9)


def test_a_known_set_is_bounded_by_its_nearest_members():
    for known in ([], [1], [1, 5], [2, 4, 6]):
        found = strongest_adversary(CHAIN, 6, [(queries.count(1), 2)], (3, 3), known)
        truth = enumerated_level(CHAIN, 6, queries.count(1), 2, 3, known)
        assert found.epsilon >= truth - 1e-12
        if set(known) >= {2, 4}:
            assert found.left == 2
            assert found.right == 4


def test_knowing_nothing_is_the_pufferfish_adversary():
    release = [(queries.count(1), 2.0)]
    found = strongest_adversary(CHAIN, 12, release, known=[])
    assert found.epsilon == pytest.approx(audit.leakage(CHAIN, 12, release), abs=1e-9)


def test_an_adversary_who_knows_more_can_learn_more():
    release = [(queries.count(1), 3.336)]
    found = strongest_adversary(CHAIN, 30, release)
    assert found.epsilon > audit.leakage(CHAIN, 30, release) + 0.01
    assert (found.left, found.right) != (None, None)


def test_bad_arguments_are_refused():
    with pytest.raises(qw.InvalidInputError, match="at most 6, not 9"):
        strongest_adversary(CHAIN, 6, [(queries.count(1), 2)], known=[9])
    with pytest.raises(qw.UnsupportedError, match="pairs of known neighbours"):
        strongest_adversary(CHAIN, 900, [(queries.count(1).on(2, 9), 2)])
    with pytest.raises(qw.UnsupportedError, match="more noise"):
        strongest_adversary(CHAIN, 30, [(queries.count(1), 0.01)])
