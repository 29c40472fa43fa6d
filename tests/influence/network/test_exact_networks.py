"""Influence in networks against its definition on the joint distribution."""

from __future__ import annotations

import math
import warnings

import networkx as nx
import numpy as np
import pytest

from evidence import random_networks
from evidence.random_networks import joint_of, random_network
from quiltwork.beliefs import MarkovChain, Network
from quiltwork.errors import InvalidInputError, UnsupportedError
from quiltwork.influence import conditional_influence, max_influence
from quiltwork.influence.network.exact_networks import blanket_bound


def chain_network(chain: MarkovChain, length: int) -> Network:
    graph = nx.path_graph(length, create_using=nx.DiGraph)
    tables = {0: chain.start, **dict.fromkeys(range(1, length), chain.transition)}
    return Network(graph, tables)


def agrees(found: float, true: float) -> bool:
    return found == true or true - 1e-13 <= found <= true + 1e-9 * (1 + true)


@pytest.mark.parametrize("seed", range(40))
def test_influence_is_what_the_joint_says(seed):
    rng = np.random.default_rng(seed)
    net = random_network(rng, int(rng.integers(2, 6)), 3)
    joint = joint_of(net)
    for node in range(net.length):
        role = rng.integers(0, 3, net.length)
        quilt = tuple(v for v in range(net.length) if v != node and role[v] == 0)
        known = tuple(v for v in range(net.length) if v != node and role[v] == 1)
        true = random_networks.influence(joint, node, quilt)
        assert agrees(max_influence(net, node + 1, [v + 1 for v in quilt]), true)
        true = random_networks.influence(joint, node, quilt, known)
        found = conditional_influence(net, node + 1, [v + 1 for v in quilt], [v + 1 for v in known])
        assert agrees(found, true)
        bound = blanket_bound(net, node)
        assert bound >= true - 1e-13


def test_a_chain_as_a_network_has_the_influence_of_the_chain():
    chain = MarkovChain([[0.9, 0.1], [0.4, 0.6]], initial=[1, 0])
    net = chain_network(chain, 20)
    for node, quilt in [(8, (1, 13)), (8, (13,)), (5, (3, 6)), (20, (19,)), (1, (2,))]:
        there = max_influence(chain, node, quilt, length=20)
        assert max_influence(net, node, quilt) == pytest.approx(there, abs=1e-12)


def test_knowing_the_common_effect_makes_its_causes_tell_on_each_other():
    """X_3 = X_1 xor X_2 of two coins: nothing, until X_3 is known, and then everything."""
    graph = nx.DiGraph([(1, 3), (2, 3)])
    xor = [[[1, 0], [0, 1]], [[0, 1], [1, 0]]]
    coins = Network(graph, {1: [0.5, 0.5], 3: xor, 2: [0.5, 0.5]})
    one, three, two = (coins.node(name) for name in (1, 3, 2))
    assert conditional_influence(coins, one, [two]) == pytest.approx(0, abs=1e-12)
    assert conditional_influence(coins, one, [two], [three]) == math.inf


def test_influence_agrees_with_pyagrum_on_alarm(shared_file):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        import pyagrum

    path = str(shared_file("data/alarm.bif"))
    net, peer = Network.from_bif(path), pyagrum.loadBN(path)
    for name, quilt in [("CO", ("HR", "STROKEVOLUME")), ("SHUNT", ("SAO2", "INTUBATION"))]:
        inference = pyagrum.LazyPropagation(peer)
        inference.addJointTarget({name, *quilt})
        inference.makeInference()
        joint = inference.jointPosterior({name, *quilt})
        labels = {v: peer.variable(v).labels() for v in (name, *quilt)}
        table = np.array(
            [
                [
                    [
                        joint[{name: i, quilt[0]: j, quilt[1]: k}]
                        for k in range(len(labels[quilt[1]]))
                    ]
                    for j in range(len(labels[quilt[0]]))
                ]
                for i in range(len(labels[name]))
            ]
        )
        rows = table.reshape(len(table), -1)
        rows = rows / rows.sum(axis=1, keepdims=True)
        true = max(float(np.log(a / b).max()) for a in rows for b in rows)
        found = max_influence(net, net.node(name), [net.node(v) for v in quilt])
        assert found == pytest.approx(true, rel=1e-5)


def test_nonsense_gets_a_sentence():
    net = chain_network(MarkovChain([[0.9, 0.1], [0.4, 0.6]]), 4)
    with pytest.raises(InvalidInputError, match="named twice"):
        conditional_influence(net, 1, [2], [2])
    with pytest.raises(InvalidInputError, match="only 4 nodes"):
        conditional_influence(net, 1, [5])
    with pytest.raises(InvalidInputError, match="the belief is about 4 rows"):
        max_influence(net, 1, [2], length=7)


def test_too_wide_a_quilt_is_refused_with_its_width():
    graph = nx.star_graph(25)
    net = Network(graph, {edge: [[2, 1], [1, 2]] for edge in graph.edges}, states=[0, 1])
    assert net.treewidth == 1
    with pytest.raises(UnsupportedError, match=r"entries over 26 nodes \(width 25\)"):
        max_influence(net, 1, range(2, 27))
