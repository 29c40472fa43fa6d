"""Quilts of networks: what is remote is independent of the node given the quilt."""

from __future__ import annotations

import itertools

import networkx as nx
import numpy as np
import pytest

from evidence import random_networks
from evidence.random_networks import joint_of, random_network
from quiltwork.beliefs import Network
from quiltwork.beliefs.moral import elimination_width, part_of
from quiltwork.influence.network import quilts_of
from quiltwork.influence.network.separators import connected_parts, nearby_sets


def path(length: int) -> Network:
    graph = nx.path_graph(length)
    return Network(graph, {edge: [[2, 1], [1, 2]] for edge in graph.edges}, states=[0, 1])


def test_quilts_of_a_chain_are_those_of_figure_1():
    """Between i−a and i+b: nearby i−a+1..i+b−1, remote the rest."""
    quilts = quilts_of(path(9), 4, "moral")
    for one in quilts:
        a, b = 4 - min(one.nearby), max(one.nearby) - 4
        assert one.nearby == frozenset(range(4 - a, 5 + b))
        assert one.separator == {v for v in (3 - a, 5 + b) if 0 <= v < 9}
        assert one.remote(9) == set(range(9)) - one.nearby - one.separator
    assert len(quilts) == 25
    assert not quilts[-1].separator


@pytest.mark.parametrize("separation", ["d", "moral"])
@pytest.mark.parametrize("seed", range(20))
def test_what_is_remote_is_independent_given_the_quilt(seed, separation):
    rng = np.random.default_rng(seed)
    net = random_network(rng, int(rng.integers(2, 6)))
    joint = joint_of(net)
    for node in range(net.length):
        for one in quilts_of(net, node, separation):
            assert node in one.core <= one.nearby
            assert not one.nearby & one.separator
            remote, quilt = sorted(one.remote(net.length)), sorted(one.separator)
            assert random_networks.influence(joint, node, tuple(remote), tuple(quilt)) < 1e-9


@pytest.mark.parametrize("seed", range(10))
def test_moral_separation_holds_whatever_nearby_nodes_are_known(seed):
    rng = np.random.default_rng(100 + seed)
    net = random_network(rng, 4)
    joint = joint_of(net)
    for node in range(net.length):
        for one in quilts_of(net, node, "moral"):
            remote = tuple(sorted(one.remote(net.length)))
            inner = sorted(one.nearby - {node})
            for size in range(len(inner) + 1):
                for known in itertools.combinations(inner, size):
                    given = (*sorted(one.separator), *known)
                    assert random_networks.influence(joint, node, remote, given) < 1e-9


def test_every_connected_set_of_a_small_graph_is_a_candidate():
    graph = nx.gnp_random_graph(7, 0.4, seed=3)
    near = tuple(frozenset(graph[v]) for v in graph)
    for node in graph:
        found = set(nearby_sets(near, [2] * 7, node))
        others = [v for v in graph if v != node]
        every = {
            frozenset({node, *chosen})
            for size in range(7)
            for chosen in itertools.combinations(others, size)
            if nx.is_connected(graph.subgraph({node, *chosen}))
        }
        assert found == every
        assert set(connected_parts(near, node, frozenset(graph), 10**6)) == every
        assert connected_parts(near, node, frozenset(graph), len(every) - 1) is None


def test_a_cause_needs_no_quilt_against_another_cause():
    """a → c ← b: taking c in, b is remote at no influence (d-separation)."""
    graph = nx.DiGraph([("a", "c"), ("b", "c")])
    net = Network(graph, {"a": [0.5, 0.5], "b": [0.5, 0.5], "c": np.full((2, 2, 2), 0.5)})
    a, b, c = (net.node(name) - 1 for name in "abc")
    assert any(
        one.nearby == {a, c} and not one.separator and one.remote(3) == {b}
        for one in quilts_of(net, a)
    )
    assert all(b in one.nearby | one.separator for one in quilts_of(net, a, "moral"))


@pytest.mark.parametrize(
    ("graph", "width"),
    [
        (nx.path_graph(9), 1),
        (nx.cycle_graph(9), 2),
        (nx.complete_graph(6), 5),
        (nx.grid_2d_graph(3, 9), 3),
        (nx.empty_graph(4), 0),
    ],
)
def test_the_width_of_known_graphs(graph, width):
    graph = nx.convert_node_labels_to_integers(graph)
    near = tuple(frozenset(graph[v]) for v in graph)
    assert elimination_width(near, [2] * len(near)) == (width, 2 ** (width + 1))
    assert part_of(near, 0, ()) == nx.node_connected_component(graph, 0)
