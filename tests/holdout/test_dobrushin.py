"""Dobrushin's matrix against its definition: every configuration, every single change."""

from __future__ import annotations

import itertools

import networkx as nx
import numpy as np
import pytest
from hypothesis import given, settings

from evidence.bayesian_enumeration import chain_joint
from evidence.random_networks import joint_of, random_network
from quiltwork.beliefs import ChainBox, Clusters, MarkovChain, Network
from quiltwork.errors import UnsupportedError
from quiltwork.holdout.dobrushin import interdependence
from tests.strategies import chains


def by_definition(joint: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """The matrix over the conditionals that are defined, and where some are not."""
    size = joint.ndim
    matrix, undefined = np.zeros((size, size)), np.zeros((size, size), dtype=bool)
    for i, j in itertools.permutations(range(size), 2):
        laws = np.moveaxis(joint, (i, j), (-1, -2)).reshape(-1, joint.shape[j], joint.shape[i])
        for part in laws:
            totals = part.sum(axis=1)
            undefined[i, j] |= bool((totals == 0).any())
            rows = part[totals > 0] / totals[totals > 0, None]
            for a, b in itertools.combinations(rows, 2):
                matrix[i, j] = max(matrix[i, j], np.abs(a - b).sum() / 2)
    return matrix, undefined


@pytest.mark.parametrize("seed", range(30))
def test_networks(seed):
    rng = np.random.default_rng(seed)
    net = random_network(rng, int(rng.integers(1, 6)), 3 if seed % 2 else 2)
    found = interdependence(net)
    matrix, _ = by_definition(joint_of(net))
    assert (found.matrix() >= matrix - 1e-12).all()
    if net.positive:
        assert found.matrix() == pytest.approx(matrix, abs=1e-9)
    assert found.norm >= np.linalg.norm(matrix, 2) - 1e-12
    assert found.row_norm >= matrix.sum(axis=1).max() - 1e-12
    assert found.column_norm >= matrix.sum(axis=0).max() - 1e-12


@given(chains(2, 3).filter(lambda chain: not isinstance(chain.initial, str)))
@settings(max_examples=30)
def test_chains(chain):
    joint = chain_joint(chain.start, chain.transition, 4)
    found = interdependence(chain, 4).matrix()
    matrix, undefined = by_definition(joint)
    assert (found >= matrix - 1e-12).all()
    if not undefined.any():
        assert found == pytest.approx(matrix, abs=1e-9)


def test_any_start_and_boxes_cover_what_they_stand_for():
    matrix = np.array([[0.7, 0.3], [0.4, 0.6]])
    loose = interdependence(MarkovChain(matrix, initial="any"), 4).matrix()
    box = interdependence(ChainBox(matrix - 0.05, matrix + 0.05), 4).matrix()
    for start in ([0.5, 0.5], [0.05, 0.95], [0.4, 0.6]):
        true, _ = by_definition(chain_joint(np.array(start), matrix, 4))
        assert (loose >= true - 1e-12).all()
        assert (box >= true - 1e-12).all()


def test_copies_are_not_taken_for_independent():
    """Every conditional that is defined is certain, and the ones that are not count as 1."""
    net = Network(nx.DiGraph([(0, 1)]), {0: [0.5, 0.5], 1: np.eye(2)})
    assert interdependence(net).norm == pytest.approx(1)
    still = MarkovChain(np.eye(2), initial=[0.5, 0.5])
    assert interdependence(still, 5).norm >= 1


def test_independent_nodes_do_not_move_each_other():
    assert interdependence(Clusters(range(7))).norm == 0
    assert interdependence(MarkovChain([[0.3, 0.7], [0.3, 0.7]]), 50).norm < 1e-11
    graph = nx.empty_graph(5)
    assert interdependence(Network(graph, {v: [1, 2] for v in graph})).norm == 0


def test_a_large_blanket_is_bounded_factor_by_factor():
    graph = nx.star_graph(20)
    net = Network(graph, {edge: [[1.1, 1], [1, 1.1]] for edge in graph.edges}, states=[0, 1])
    matrix = interdependence(net).matrix()
    inner = np.tanh(np.log(1.1) / 2)
    assert matrix[0, 1:] == pytest.approx(inner, abs=1e-9)
    assert matrix[1:, 0] == pytest.approx(inner, abs=1e-9)


def test_the_length_of_a_chain_costs_little():
    found = interdependence(MarkovChain([[0.6, 0.4], [0.4, 0.6]]), 10**5)
    assert 2 * 0.19230769 <= found.norm <= 0.2 + 0.19230769 + 1e-9


def test_clusters_are_refused():
    with pytest.raises(UnsupportedError, match="count each cluster as one observation"):
        interdependence(Clusters(["a", "a"]))
