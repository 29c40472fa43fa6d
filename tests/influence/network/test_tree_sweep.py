"""The sweep on trees against all mechanisms, closed forms and the sweep of chains."""

from __future__ import annotations

import math

import networkx as nx
import numpy as np
import pytest

import quiltwork as qw
from evidence.checks import sweep_trees
from quiltwork.beliefs import Clusters, MarkovChain, Network
from quiltwork.errors import UnsupportedError
from quiltwork.influence.network.tree_sweep import TreeSweep
from quiltwork.influence.sweep import Levels
from tests.influence.network.test_exact_networks import chain_network

GIVEN = [[0.9, 0.1], [0.3, 0.7]]


def star(leaves: int) -> Network:
    graph = nx.DiGraph([(0, leaf) for leaf in range(1, leaves + 1)])
    return Network(graph, {0: [0.8, 0.2]} | dict.fromkeys(range(1, leaves + 1), GIVEN))


def leaks(network: Network, levels) -> np.ndarray:
    return TreeSweep(network).profile(
        Levels.of_points(np.array(levels)), range(1, network.length + 1)
    )[2]


def told(p: float, q: float, level: float) -> float:
    """log E[h|a]/E[h|b] where a state of probability p or q weighs e^level."""
    return math.log((p * math.exp(level) + 1 - p) / (q * math.exp(level) + 1 - q))


def test_no_mechanism_tells_more_than_the_sweep_says():
    assert sweep_trees.check(3)["violations"] == 0


def test_a_claim_five_percent_too_low_is_seen():
    with pytest.raises(AssertionError, match="below the truth"):
        sweep_trees.check(1, claim=lambda case: 0.95 * sweep_trees.claimed(case))


def test_two_states_above_the_truth_are_seen():
    case = sweep_trees.draw(np.random.default_rng(2), "two states")
    with pytest.raises(AssertionError, match="above"):
        sweep_trees.compare(case, True, lambda one: 1.05 * sweep_trees.claimed(one))


@pytest.mark.parametrize("leaves", [1, 5, 40])
def test_a_star_is_its_closed_form(leaves):
    """Leaves tell about the hub what each can; the hub passes on what the other leaves tell."""
    level = 0.3
    found = leaks(star(leaves), [level] * (leaves + 1))
    hub = max(told(0.7, 0.1, level), told(0.9, 0.3, level)) * leaves
    assert found[0] == pytest.approx(level + hub, abs=1e-9)
    law = 0.8 * np.array(GIVEN[0]), 0.2 * np.array(GIVEN[1])
    back = law[1] / (law[0] + law[1])  # P(hub = 1 | leaf)
    ones = level + told(0.7, 0.1, level) * (leaves - 1)
    zeros = level + told(0.9, 0.3, level) * (leaves - 1)
    leaf = max(told(back[1], back[0], ones), told(1 - back[0], 1 - back[1], zeros))
    assert found[1] == pytest.approx(level + leaf, abs=1e-9)


@pytest.mark.parametrize("length", [6, 20])
@pytest.mark.parametrize(
    "rows", [[[0.9, 0.1], [0.4, 0.6]], [[0.8, 0.15, 0.05], [0.2, 0.7, 0.1], [0.3, 0.3, 0.4]]]
)
def test_a_chain_as_a_network_is_swept_as_the_chain(rows, length):
    start = [0.8, 0.2] if len(rows) == 2 else [0.2, 0.5, 0.3]
    chain = MarkovChain(rows, initial=start)
    net = chain_network(chain, length)
    for query in (None, qw.queries.histogram(), qw.queries.transitions(), qw.queries.count(1)):
        windowed = query.on(2, 5) if query is not None and query.kind == "count" else query
        there = qw.calibrate(chain, length, 0.7, query=windowed)
        here = qw.calibrate(net, None, 0.7, query=windowed)
        assert here.method == "sweep"
        assert here.scale == pytest.approx(there.scale, rel=1e-9)
    curves = qw.influence_curve(net, None), qw.influence_curve(chain, length)
    assert curves[0].epsilon(0.4) == pytest.approx(curves[1].epsilon(0.4), rel=1e-9)
    accounts = qw.Accountant(net, None, budget=9), qw.Accountant(chain, length, budget=9)
    for account in accounts:
        account.spend(dp_epsilon=0.2)
        account.spend(dp_epsilon=0.3, start=2, stop=4)
    here, there = (account.profile().values() for account in accounts)
    assert here == pytest.approx(there, rel=1e-9)
    assert accounts[0].epsilon() == pytest.approx(accounts[1].epsilon(), rel=1e-9)


def test_an_account_calibration_and_plan_say_the_same():
    net = star(6)
    found = qw.calibrate(net, None, 1)
    assert found.scale < 0.8 * qw.calibrate(net, None, 1, "exact").scale
    account = qw.Accountant(net, None, budget=5)
    account.spend(dp_epsilon=1 / found.scale)
    assert account.epsilon() == pytest.approx(1, rel=1e-8)
    assert "Sweep" in str(account.explain())
    assert "its neighbours add" in str(account.explain())
    assert found.per_node().runs[0].scale == pytest.approx(found.scale)  # the hub
    planned = qw.plan(net, budget=1, queries=[qw.queries.count(1)])
    assert planned.items[0].scale == pytest.approx(found.scale, rel=1e-6)
    assert "Neighbours add" in found.explain()
    assert "from before" not in found.explain()


def test_parts_that_are_apart_say_nothing_of_each_other():
    graph = nx.DiGraph()
    graph.add_nodes_from(range(4))
    graph.add_edges_from([(0, 2), (1, 3)])
    net = Network(graph, {0: [0.5, 0.5], 1: [0.1, 0.9], 2: GIVEN, 3: np.eye(2)})
    child = max(told(0.75, 0.125, 0.5), told(0.875, 0.25, 0.5))  # P(X_0 = 0 | X_2) is 3/4 or 1/8
    assert leaks(net, [0.5, 0.2, 0.0, 0.3]) == pytest.approx([0.5, 0.5, child, 0.5], abs=1e-9)


def test_what_is_known_is_no_secret_and_passes_nothing_on():
    graph = nx.path_graph(3, create_using=nx.DiGraph)
    net = Network(graph, {0: [0.4, 0.6], 1: [[0, 1], [0, 1]], 2: GIVEN})
    assert leaks(net, [0.5, 9.0, 0.2]) == pytest.approx([0.5, 0, 0.2], abs=1e-9)


def test_a_weight_that_vanishes_makes_no_bound_smaller():
    """The prior of the hub does not matter to what the leaves tell about it."""

    def markov(weight: float) -> Network:
        graph = nx.star_graph(3)
        return Network(graph, {edge: [[1, 1], [weight, 3 * weight]] for edge in graph.edges})

    plain, tiny = leaks(markov(1.0), [0.3] * 4), leaks(markov(1e-150), [0.3] * 4)
    assert tiny[0] >= plain[0] * (1 - 1e-9)
    assert leaks(markov(1e-50), [0.3] * 4)[0] == pytest.approx(plain[0], abs=1e-9)
    assert tiny.max() <= 1.2 * (1 + 1e-9)


def test_other_networks_keep_their_quilts():
    both = nx.DiGraph([(0, 2), (1, 2)])
    tables = {0: [0.5, 0.5], 1: [0.5, 0.5], 2: [GIVEN, GIVEN[::-1]]}
    ring = nx.cycle_graph(4)
    for net in (
        Network(both, tables),
        Network(ring, {tuple(sorted(edge)): [[2, 1], [1, 2]] for edge in ring.edges}),
    ):
        assert qw.calibrate(net, None, 1).method == "exact"
        with pytest.raises(UnsupportedError, match=r"a tree \(no cycle, no node with two"):
            qw.calibrate(net, None, 1, "sweep")
    with pytest.raises(UnsupportedError, match="this Clusters is neither"):
        qw.calibrate(Clusters(["a", "a"]), None, 1, "sweep")


def test_rows_of_a_tree_are_in_no_order():
    with pytest.raises(UnsupportedError, match="needs a chain"):
        qw.calibrate(star(3), None, 1, episode=2)
    with pytest.raises(UnsupportedError, match="rows in no order"):
        qw.Accountant(star(3), None, budget=1, episode=2)
