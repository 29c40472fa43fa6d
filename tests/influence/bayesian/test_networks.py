"""Bayesian DP of networks: all adversaries, all values, the worst mechanism of a level."""

from __future__ import annotations

import itertools
import math

import networkx as nx
import numpy as np
import pytest

from evidence import random_networks
from evidence.bayesian_enumeration import conditionals, leakage_of, mechanisms
from evidence.checks.bayesian_networks import check
from evidence.random_networks import joint_of, random_network
from quiltwork.beliefs import MarkovChain, Network
from quiltwork.influence import bayesian_dp, dp_for_bayesian_dp
from quiltwork.influence.bayesian.networks import NodeInfluences
from quiltwork.influence.network import quilts_of
from tests.influence.network.test_exact_networks import chain_network


def test_a_sample_of_the_full_count():
    counts = check(3)
    assert counts["violations"] == 0
    assert counts["networks"] == 3


@pytest.mark.parametrize("seed", range(12))
def test_influences_are_the_worst_over_what_is_known(seed):
    """h and b by their definitions, over all L ⊆ N and all values."""
    rng = np.random.default_rng(seed)
    net = random_network(rng, int(rng.integers(2, 5)))
    joint = joint_of(net)
    for node in range(net.length):
        work = NodeInfluences(net, node)
        for quilt in quilts_of(net, node, "moral"):
            separator = tuple(sorted(quilt.separator))
            inner = sorted(quilt.nearby - {node})
            known = [
                L for size in range(len(inner) + 1) for L in itertools.combinations(inner, size)
            ]
            b = max(random_networks.influence(joint, node, separator, L) for L in known)
            h = max(spread(joint, node, separator, L) for L in known)
            assert b <= h * (1 + 1e-9) + 1e-12
            assert h <= 2 * b * (1 + 1e-9) + 1e-12
            found = work.influence(quilt, "tight", math.inf)
            assert h - 1e-12 <= (math.inf if found is None else found)
            assert found is None or found <= h + 1e-9 * (1 + h)
            found = work.influence(quilt, "paper", math.inf)
            assert 4 * b - 1e-12 <= (math.inf if found is None else found)
            assert found is None or found <= 4 * b + 1e-9 * (1 + b)


def spread(joint: np.ndarray, node: int, quilt: tuple, known: tuple) -> float:
    """The largest cross-ratio, by its definition."""
    if not quilt:
        return 0.0
    rest = tuple(v for v in range(joint.ndim) if v not in (node, *quilt, *known))
    kept = [v for v in range(joint.ndim) if v not in rest]
    table = joint.sum(axis=rest).transpose([kept.index(v) for v in (*known, node, *quilt)])
    worst = 0.0
    for values in itertools.product(*(range(joint.shape[v]) for v in known)):
        rows = [row for row in table[values].reshape(joint.shape[node], -1) if row.any()]
        for one, other in itertools.combinations(rows, 2):
            if ((one > 0) != (other > 0)).any():
                return math.inf
            logs = np.log(one[one > 0] / other[one > 0])
            worst = max(worst, float(logs.max() - logs.min()))
    return worst


def test_d_separation_would_not_do():
    """a → c ← b → three copies: taking c in, a is independent of the rest, until c is known."""
    graph = nx.DiGraph([("a", "c"), ("b", "c"), *(("b", copy) for copy in "def")])
    xor = [[[0.99, 0.01], [0.01, 0.99]], [[0.01, 0.99], [0.99, 0.01]]]
    copies = {name: [[0.99, 0.01], [0.01, 0.99]] for name in "def"}
    net = Network(graph, {"a": [0.5, 0.5], "b": [0.5, 0.5], "c": xor, **copies})
    a, c = net.node("a") - 1, net.node("c") - 1
    assert any(one.nearby == {a, c} and not one.separator for one in quilts_of(net, a))
    level, leak = 0.5, 0.0
    for _, laws in conditionals(joint_of(net), a, (c,)):
        shown = [
            sum(law[x] * math.exp(-level * (a_is + sum(x))) for x in np.ndindex(law.shape))
            for a_is, law in laws.items()
        ]
        leak = max(leak, abs(math.log(shown[0] / shown[1])))
    assert leak > 1.5 * 2 * level, "what the nearby set {a, c} alone would cost"
    assert leak <= bayesian_dp(net, level)


def test_a_chain_as_a_network_has_the_level_of_the_chain():
    chain = MarkovChain([[0.8, 0.2], [0.4, 0.6]])
    net = chain_network(chain, 9)
    for level in (0.05, 0.4, 2):
        for bound in ("tight", "paper"):
            here, there = (
                bayesian_dp(net, level, bound=bound),
                bayesian_dp(chain, level, length=9, bound=bound),
            )
            if bound == "paper":
                assert here == pytest.approx(there, rel=1e-9)
            else:
                assert level <= there <= here * (1 + 1e-9)


def test_lemma_3_is_the_blanket():
    """At a high level the blanket is best: ε = x + h, and 4·I(X_M ⇝ X_i) in the paper's form."""
    graph = nx.star_graph(3)
    net = Network(graph, {edge: [[1.1, 1], [1, 1.1]] for edge in graph.edges}, states=[0, 1])
    joint = joint_of(net)
    a = max(random_networks.influence(joint, v, tuple(graph[v])) for v in graph)
    assert bayesian_dp(net, 5, bound="paper") == pytest.approx(5 + 4 * a, rel=1e-9)
    assert bayesian_dp(net, 5) == pytest.approx(5 + 3 * 2 * math.log(1.1), rel=1e-9)
    assert dp_for_bayesian_dp(net, 5 + 4 * a, bound="paper") == pytest.approx(5, rel=1e-9)


def test_mechanisms_come_close_to_the_bound():
    """The negative control of the enumeration: 80 % of the bound is not enough."""
    net = Network(
        nx.star_graph(2), {(0, 1): np.eye(2) + 0.01, (0, 2): np.eye(2) + 0.01}, states=[0, 1]
    )
    joint = joint_of(net)
    leak = max(leakage_of(joint, one) for one in mechanisms(joint.shape, 0.3))
    assert leak > 0.95 * bayesian_dp(net, 0.3)
