"""Networks through calibrate, release, the curve, the accountant and the ledger."""

from __future__ import annotations

import itertools
import math

import networkx as nx
import numpy as np
import pytest

import quiltwork as qw
from evidence import random_networks
from evidence.random_networks import joint_of, random_network
from quiltwork.beliefs import MarkovChain, Network
from quiltwork.errors import BudgetExceeded, InvalidInputError, UnsupportedError
from quiltwork.influence.network.network_quilts import consecutive_runs
from tests.influence.network.test_exact_networks import chain_network


def d_separators(net: Network, node: int):
    """Every (quilt, nearby) by networkx's own test of separation."""
    graph = nx.convert_node_labels_to_integers(net.graph)
    others = [v for v in graph if v != node]
    for size in range(len(others) + 1):
        for quilt in itertools.combinations(others, size):
            if net.directed:
                remote = {
                    v
                    for v in others
                    if v not in quilt and nx.is_d_separator(graph, {node}, {v}, set(quilt))
                }
            else:
                left = graph.subgraph(set(graph) - set(quilt))
                remote = set(left) - nx.node_connected_component(left, node)
            yield quilt, set(graph) - remote - set(quilt)


@pytest.mark.parametrize("seed", range(15))
def test_the_exact_scale_is_the_best_over_all_separators(seed):
    rng = np.random.default_rng(seed)
    net = random_network(rng, int(rng.integers(2, 6)))
    joint = joint_of(net)
    possible = [joint.sum(axis=tuple(set(range(net.length)) - {v})) > 0 for v in range(net.length)]
    open_nodes = {v for v in range(net.length) if possible[v].sum() > 1}
    for epsilon in (0.5, 2.0):
        best = 0.0
        for node in open_nodes:
            scales = [
                len(nearby & open_nodes) / (epsilon - e)
                for quilt, nearby in d_separators(net, node)
                if (e := random_networks.influence(joint, node, quilt)) < epsilon
            ]
            best = max(best, min(scales))
        found = qw.calibrate(net, None, epsilon, "exact")
        assert found.scale == pytest.approx(best, rel=1e-9)
        assert qw.calibrate(net, None, epsilon).scale <= found.scale * (1 + 1e-9)
        assert qw.calibrate(net, None, epsilon, "approx").scale >= found.scale * (1 - 1e-12)
        assert qw.calibrate(net, None, epsilon, "group").scale == net.length / epsilon


def leakage(joint: np.ndarray, scale: float) -> float:
    """What a count of state 0 with Laplace noise betrays about any node, by enumeration."""
    counts = np.array([sum(v == 0 for v in x) for x in np.ndindex(joint.shape)])
    weights = joint.ravel()
    worst = 0.0
    for answer in range(joint.ndim + 1):
        shown = np.exp(-np.abs(counts - answer) / scale)
        for node in range(joint.ndim):
            value = np.indices(joint.shape)[node].ravel()
            masses = [
                (weights[value == v].sum(), (weights * shown)[value == v].sum())
                for v in range(joint.shape[node])
            ]
            chances = [b / a for a, b in masses if a > 0]
            worst = max(worst, math.log(max(chances) / min(chances)))
    return worst


@pytest.mark.parametrize("seed", range(15))
@pytest.mark.parametrize("method", [None, "exact", "approx"])
def test_no_count_betrays_more_than_epsilon(seed, method):
    rng = np.random.default_rng(1000 + seed)
    net = random_network(rng, int(rng.integers(1, 7)))
    for epsilon in (0.3, 1.5):
        scale = qw.calibrate(net, None, epsilon, method).scale
        if scale:
            assert leakage(joint_of(net), scale) <= epsilon * (1 + 1e-9)


def test_a_chain_as_a_network_needs_the_noise_of_the_chain():
    chain = MarkovChain([[0.9, 0.1], [0.4, 0.6]], initial=[0.8, 0.2])
    net = chain_network(chain, 12)
    for epsilon in (1, 3, 6):
        there = qw.calibrate(chain, 12, epsilon, "exact")
        here = qw.calibrate(net, None, epsilon, "exact")
        assert here.scale == pytest.approx(there.scale, rel=1e-9)
        assert (here.nearby, here.length) == (there.nearby, 12)
    assert qw.influence_curve(net, None, "exact").epsilon(0.4) == pytest.approx(
        qw.influence_curve(chain, 12, "exact").epsilon(0.4), rel=1e-9
    )


def test_independent_nodes_need_what_one_needs():
    graph = nx.empty_graph(6, create_using=nx.DiGraph)
    net = Network(graph, {v: [0.3, 0.7] for v in graph})
    assert qw.calibrate(net, None, 0.5).scale == 2
    assert qw.influence_curve(net, None).epsilon(0.5) == 0.5
    assert qw.bayesian_dp(net, 0.3) == 0.3


def test_known_nodes_are_not_charged():
    graph = nx.path_graph(4, create_using=nx.DiGraph)
    net = Network(graph, {0: [1, 0], 1: [[0, 1], [1, 0]], 2: [[1, 0], [0.5, 0.5]], 3: np.eye(2)})
    found = qw.calibrate(net, None, 1, "exact")
    assert (found.scale, found.change) == (2, 2)
    assert qw.calibrate(net, None, 1).scale == pytest.approx(2, rel=1e-9)
    sure = Network(nx.DiGraph([(0, 1)]), {0: [1, 0], 1: [[0, 1], [1, 0]]})
    assert qw.calibrate(sure, None, 1).scale == 0


def test_one_observation_is_released_and_checked():
    net = chain_network(MarkovChain([[0.9, 0.1], [0.4, 0.6]]), 10)
    released = qw.release([0, 1] * 5, qw.queries.count(1), net, epsilon=2)
    assert released.scale >= qw.calibrate(net, None, 2).scale
    assert qw.release([0] * 10, qw.queries.histogram(), net, epsilon=1).value.shape == (2,)
    with pytest.raises(InvalidInputError, match="about 10 rows, the data have 9"):
        qw.release([0] * 9, qw.queries.count(1), net, epsilon=1)
    with pytest.raises(InvalidInputError, match="Position 10 holds none"):
        qw.release([0] * 9 + [7], qw.queries.count(1), net, epsilon=1)


def test_every_node_has_its_own_states():
    net = Network(
        nx.DiGraph([("fever", "strain")]),
        {"fever": [0.5, 0.5], "strain": [[0.2, 0.8], [0.5, 0.5]]},
        {"fever": ["no", "yes"], "strain": ["A", "B"]},
    )
    assert net.states == ("no", "yes", "A", "B")
    qw.release(net.row({"strain": "B", "fever": "no"}), qw.queries.count("B"), net, epsilon=1)
    with pytest.raises(InvalidInputError, match=r"Position 2 \(node 'strain'\) holds a state"):
        qw.release(["no", "yes"], qw.queries.count("B"), net, epsilon=1)


def test_an_accountant_and_a_ledger_keep_its_budget(tmp_path):
    net = chain_network(MarkovChain([[0.7, 0.3], [0.4, 0.6]]), 8)
    account = qw.Accountant(net, None, budget=3)
    account.spend(dp_epsilon=0.2)
    account.spend(dp_epsilon=0.1, start=2, stop=5)
    curve = qw.influence_curve(net, None)
    assert curve.epsilon(0.2) < account.epsilon() <= curve.epsilon(0.3) * (1 + 1e-12)
    with pytest.raises(BudgetExceeded):
        account.spend(dp_epsilon=5)
    ledger = qw.Ledger.open(f"sqlite:///{tmp_path}/budget.db")
    ledger.create("ward", net, None, 2)
    qw.release([0] * 8, qw.queries.count(1), net, epsilon=1, ledger=ledger, dataset="ward")
    assert ledger.accountant("ward").epsilon() == pytest.approx(1, rel=1e-6)
    assert qw.Ledger.open(f"sqlite:///{tmp_path}/budget.db").history("ward")
    ledger.verify()


def test_a_network_too_wide_for_exact_work_is_bounded():
    graph = nx.complete_graph(24)
    weak = {edge: [[1.02, 1], [1, 1.02]] for edge in graph.edges}
    net = Network(graph, weak, states=[0, 1])
    with pytest.raises(UnsupportedError, match=r"16,777,216 entries \(elimination of width 23\)"):
        qw.calibrate(net, None, 1, "exact")
    found = qw.calibrate(net, None, 2)
    assert found.method == "approx"
    assert found.nearby == 1
    assert found.influence == pytest.approx(23 * 2 * math.log(1.02), rel=1e-9)
    assert qw.bayesian_dp(net, 0.5) == pytest.approx(0.5 + 46 * math.log(1.02), rel=1e-9)


@pytest.mark.parametrize("method", ["spectral", "contraction"])
def test_methods_for_chains_are_refused(method):
    net = chain_network(MarkovChain([[0.9, 0.1], [0.4, 0.6]]), 4)
    with pytest.raises(UnsupportedError, match="needs a Markov chain"):
        qw.calibrate(net, None, 1, method)


def test_runs_of_nodes():
    assert list(consecutive_runs([1, 2, 3, 5, 8, 9])) == [(1, 3), (5, 5), (8, 9)]
    assert list(consecutive_runs([])) == []
