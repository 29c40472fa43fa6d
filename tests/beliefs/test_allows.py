"""Whether data can occur at all: supports against the probability of every path."""

from __future__ import annotations

import itertools

import networkx as nx
import numpy as np

import quiltwork as qw


def test_a_chain_allows_what_has_positive_probability():
    rows = np.array([[0.5, 0.5, 0], [0, 0.3, 0.7], [1, 0, 0]])
    start = np.array([0.4, 0.6, 0])
    for initial in (start, "any"):
        chain = qw.MarkovChain(rows, initial)
        first = np.ones(3) if isinstance(initial, str) else start
        for path in itertools.product(range(3), repeat=4):
            steps = [rows[a, b] for a, b in itertools.pairwise(path)]
            assert chain.allows(np.array(path)) == (first[path[0]] * np.prod(steps) > 0)


def test_a_box_allows_every_step_that_is_not_ruled_out():
    box = qw.ChainBox([[0.5, 0.0], [0.2, 0.2]], [[1.0, 0.0], [0.8, 0.8]])
    assert box.allows(np.array([1, 1, 0, 0]))
    assert not box.allows(np.array([0, 1]))


def test_a_network_allows_what_its_tables_do():
    graph = nx.DiGraph([("rain", "wet")])
    tables = {"rain": [0.3, 0.7], "wet": [[0.0, 1.0], [0.6, 0.4]]}
    network = qw.Network(graph, tables, {"rain": ["yes", "no"], "wet": ["no", "yes"]})
    codes = {name: network.states.index(name) for name in ("yes", "no")}
    allowed = {
        pair: network.allows(np.array([codes[pair[0]], codes[pair[1]]]))
        for pair in itertools.product(("yes", "no"), repeat=2)
    }
    assert allowed.pop(("yes", "no")) is False
    assert all(allowed.values())
