"""Networks as beliefs: what is read, refused, computed and written."""

from __future__ import annotations

import pickle
import warnings

import networkx as nx
import numpy as np
import pytest

from evidence.random_networks import joint_of, random_network
from quiltwork.beliefs import Network, as_beliefs, belief_from_json
from quiltwork.errors import InvalidInputError, UnsupportedError
from quiltwork.influence import max_influence

SPRINKLER = nx.DiGraph([("rain", "sprinkler"), ("rain", "wet"), ("sprinkler", "wet")])
TABLES = {
    "rain": [0.8, 0.2],
    "sprinkler": [[0.6, 0.4], [0.99, 0.01]],
    "wet": [[[1, 0], [0.1, 0.9]], [[0.2, 0.8], [0.01, 0.99]]],
}
NET = Network(SPRINKLER, TABLES, states=["no", "yes"])


def changed(**tables):
    return {**TABLES, **tables}


@pytest.mark.parametrize("seed", range(25))
def test_elimination_gives_the_distribution_of_any_nodes(seed):
    rng = np.random.default_rng(seed)
    net = random_network(rng, int(rng.integers(1, 6)), 3)
    joint = joint_of(net)
    nodes = rng.permutation(net.length)[: int(rng.integers(1, net.length + 1))].tolist()
    others = tuple(v for v in range(net.length) if v not in nodes)
    kept = [v for v in range(net.length) if v in nodes]
    expected = joint.sum(axis=others).transpose([kept.index(v) for v in nodes])
    found = net.joint(nodes)
    assert found.values / found.values.sum() == pytest.approx(expected, abs=1e-13)
    assert np.array_equal(found.support(), expected > 0)


def test_a_support_survives_underflow():
    """0.001^200 is 0 in floating point, and still possible."""
    graph = nx.Graph([(0, 1)])
    table = np.array([[1e-300, 1.0], [1.0, 0.0]])
    net = Network(nx.Graph([(0, 1), (1, 2), (0, 2)]), {(0, 1): table, (1, 2): table, (0, 2): table})
    assert net.joint([0, 1, 2]).support()[0, 0, 0]
    assert net.joint([0, 1, 2]).values[0, 0, 0] == 0
    assert not net.joint([0, 1, 2]).support()[1, 1, 1]
    assert Network(graph, {(0, 1): table}).joint([0]).support().all()


@pytest.mark.parametrize("scale", [1e-307, 1e-200, 1.0, 1e200, 1e307])
def test_a_factor_of_a_clique_changes_nothing(scale):
    """Tables of cliques are known up to a factor, whatever its size."""
    shape = np.array([[1.0, 0.1], [0.1, 0.7]])
    plain, scaled = (
        Network(nx.path_graph(6), {(i, i + 1): by * shape for i in range(5)}) for by in (1.0, scale)
    )
    assert scaled.marginal(0) == pytest.approx(plain.marginal(0), rel=1e-12)
    expected = max_influence(plain, 2, (1, 3))
    assert max_influence(scaled, 2, (1, 3)) == pytest.approx(expected, rel=1e-12)
    assert 0 < expected < 10


def test_many_large_tables_on_one_node_do_not_burst():
    graph = nx.Graph([(0, i) for i in range(1, 9)])
    table = np.array([[1.0, 2.0], [2.0, 1.0]])
    net = Network(graph, {(0, i): 1e100 * table for i in range(1, 9)})
    assert net.marginal(0) == pytest.approx([0.5, 0.5])


def test_a_distribution_that_vanishes_is_refused():
    tables = {(0, 1): [[1.0, 1e-300], [0.0, 0.0]], 0: [1.0, 1.0], 1: [1e-300, 1e-300]}
    assert Network(nx.Graph([(0, 1)]), tables).marginal(1)[0] == pytest.approx(1.0)
    tables = {(0, 1): [[1.0, 1e-300, 0.0]], 1: [0.0, 1e-300, 1.0]}
    with pytest.raises(UnsupportedError, match="smaller range"):
        Network(nx.Graph([(0, 1)]), tables).marginal(0)


def test_marginals_agree_with_pyagrum_on_alarm(shared_file):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        import pyagrum

    path = str(shared_file("data/alarm.bif"))
    net, peer = Network.from_bif(path), pyagrum.loadBN(path)
    inference = pyagrum.LazyPropagation(peer)
    inference.makeInference()
    assert set(net.names) == set(peer.names())
    for name in net.names:
        posterior = inference.posterior(name)
        labels = peer.variable(name).labels()
        expected = {label: posterior[i] for i, label in enumerate(labels)}
        found = dict(zip(net.domains[net.node(name) - 1], net.marginal(name), strict=True))
        assert found == pytest.approx(expected, abs=2e-7), name


def test_joints_agree_with_pgmpy_on_asia(shared_file):
    path = shared_file("data/asia.bif")
    net = Network.from_bif(path)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        from pgmpy.inference import VariableElimination
        from pgmpy.readwrite import BIFReader

        model = BIFReader(str(path)).get_model()
        found = VariableElimination(model).query(["dysp", "asia", "either"], show_progress=False)
    ours = net.joint([net.node(name) - 1 for name in found.variables]).values
    theirs = found.values / found.values.sum()
    states = [found.state_names[name] for name in found.variables]
    order = [
        [s.index(x) for x in net.domains[net.node(n) - 1]]
        for n, s in zip(found.variables, states, strict=True)
    ]
    assert ours / ours.sum() == pytest.approx(theirs[np.ix_(*order)], abs=1e-12)


def test_alarm_is_read_whole(shared_file):
    net = Network.from_bif(shared_file("data/alarm.bif"))
    assert (net.length, len(net.edges), net.treewidth, net.largest_table) == (37, 46, 4, 144)
    assert (
        sum(values.size // values.shape[-1] * (values.shape[-1] - 1) for _, values in net.factors)
        == 509
    )
    assert set(net.blanket("HYPOVOLEMIA")) == {"LVEDVOLUME", "STROKEVOLUME", "LVFAILURE"}


def test_a_markov_network_can_say_what_a_bayesian_one_says():
    moral = nx.Graph(SPRINKLER.edges)
    clique = ("rain", "sprinkler", "wet")
    joint = np.einsum("r,rs,rsw->rsw", *(np.asarray(TABLES[name]) for name in clique))
    net = Network(moral, {clique: 3 * joint}, states=["no", "yes"])
    assert net.marginal("wet") == pytest.approx(NET.marginal("wet"))
    assert net.neighbours == NET.neighbours
    assert net != NET


def test_the_order_of_parents_is_that_of_the_graph():
    graph = nx.DiGraph()
    graph.add_nodes_from(["a", "b", "c"])
    graph.add_edges_from([("b", "c"), ("a", "c")])
    table = np.arange(1, 13).reshape(3, 2, 2) / np.arange(1, 13).reshape(3, 2, 2).sum(-1)[..., None]
    net = Network(graph, {"a": [0.5, 0.5], "b": [0.2, 0.3, 0.5], "c": table})
    assert [net.names[p] for p in net.parents[2]] == list(graph.predecessors("c")) == ["b", "a"]
    assert net.joint([2]).values.shape == (2,)


def test_parts_that_are_not_connected_are_independent():
    graph = nx.Graph()
    graph.add_nodes_from(["a", "b"])
    net = Network(graph, {"a": [1, 3], "b": [1, 1]})
    assert net.joint([0, 1]).values / net.joint([0, 1]).values.sum() == pytest.approx(
        np.array([[0.125, 0.125], [0.375, 0.375]])
    )


@pytest.mark.parametrize("seed", range(8))
def test_json_and_pickle_keep_every_bit(seed):
    rng = np.random.default_rng(seed)
    net = random_network(rng, int(rng.integers(1, 6)), 3)
    for copy in (belief_from_json(net.to_json()), pickle.loads(pickle.dumps(net))):  # noqa: S301
        assert copy == net
        assert hash(copy) == hash(net)
        assert copy.to_json() == net.to_json()
        assert all(not values.flags.writeable for _, values in copy.factors)


def test_names_and_states_keep_their_types_and_alphabets():
    graph = nx.DiGraph([("Ärztin", ("Zeile", 1)), (("Zeile", 1), 7)])
    net = Network(
        graph,
        {
            "Ärztin": [0.5, 0.5],
            ("Zeile", 1): [[0.5, 0.5], [0.1, 0.9]],
            7: [[0.2, 0.3, 0.5], [0, 0, 1]],
        },
        {"Ärztin": ["да", "нет"], ("Zeile", 1): [1.5, None], 7: [True, "日", ("x", 1)]},
    )
    assert belief_from_json(net.to_json()) == net
    assert net.graph.nodes == graph.nodes
    assert set(net.graph.edges) == set(graph.edges)
    assert net.row({7: "日", "Ärztin": "да", ("Zeile", 1): None}) == ("да", None, "日")


@pytest.mark.parametrize(
    ("graph", "tables", "states", "message"),
    [
        ("no graph", {}, None, "graph is str; give a networkx"),
        (nx.MultiDiGraph([(0, 1)]), {}, None, "parallel edges"),
        (nx.DiGraph(), {}, None, "no nodes"),
        (nx.DiGraph([(0, 0)]), {}, None, "Node 0 has an edge to itself"),
        (nx.DiGraph([(0, 1), (1, 2), (2, 0)]), {}, None, "has a cycle, .* → .* → .* → "),
        (nx.DiGraph([(float("nan"), 1)]), {}, None, "NaN"),
        (SPRINKLER, [0.5], None, "factors must be a dict"),
        (SPRINKLER, {"rain": [1, 0]}, None, "no table for node 'sprinkler'"),
        (SPRINKLER, changed(snow=[1.0]), None, "'snow', which is not a node"),
        (SPRINKLER, changed(rain=[0.7, 0.2]), None, "'rain' sums to 0.9, not 1"),
        (
            SPRINKLER,
            changed(sprinkler=[[0.6, 0.4], [0.9, 0.2]]),
            ["no", "yes"],
            "'sprinkler' sums to 1.1 given rain = 'yes', not 1",
        ),
        (SPRINKLER, changed(rain=[0.5, 0.5, 0.0]), ["a", "b"], r"shape \(3,\).*shape \(2,\)"),
        (SPRINKLER, changed(sprinkler=[0.6, 0.4]), None, "has the shape"),
        (SPRINKLER, changed(rain=[float("nan"), 1]), None, r"has nan at position \[1\]"),
        (SPRINKLER, changed(rain=[-0.5, 1.5]), None, r"has -0.5 at position \[1\]"),
        (SPRINKLER, changed(rain="half"), None, "must hold plain numbers"),
        (SPRINKLER, changed(sprinkler=[[0.6], [0.5, 0.5]]), None, "give every row the same length"),
        (SPRINKLER, TABLES, {"rain": ["no", "yes"]}, "no entry for node 'sprinkler'"),
        (SPRINKLER, TABLES, {"snow": ["no", "yes"]}, "states names 'snow'"),
        (SPRINKLER, TABLES, ["no", "no"], "same label"),
        (nx.Graph([(0, 1)]), {(1, 0): np.ones((2, 2))}, None, r"write \(0, 1\)"),
        (nx.Graph([(0, 1)]), {(0, 2): np.ones((2, 2))}, None, "names 2, which is not a node"),
        (nx.path_graph(3), {(0, 2): np.ones((2, 2))}, None, "no edge"),
        (nx.Graph([(0, 1)]), {(0, 1): np.zeros((2, 2))}, None, "0 everywhere"),
        (nx.Graph([(0, 1)]), {0: [1, 1]}, None, "No table mentions node 1"),
        (nx.Graph([(0, 1)]), {"ab": [1, 1]}, None, "is not a clique"),
        (
            nx.Graph([(0, 1)]),
            {(0, 1): np.eye(2), 0: [1, 0], 1: [0, 1]},
            None,
            "exclude every configuration",
        ),
    ],
)
def test_what_makes_no_sense_gets_a_sentence(graph, tables, states, message):
    with pytest.raises(InvalidInputError, match=message):
        Network(graph, tables, states)


def test_unknown_nodes_and_missing_values_get_a_sentence():
    with pytest.raises(InvalidInputError, match="'snow' is not a node of the network"):
        NET.marginal("snow")
    with pytest.raises(InvalidInputError, match="no value for node 'wet'"):
        NET.row({"rain": "no", "sprinkler": "no"})
    with pytest.raises(InvalidInputError, match="Network"):
        as_beliefs(nx.DiGraph())


@pytest.mark.parametrize(
    ("edit", "message"),
    [
        (('"bayesian"', '"bayes"'), "kind is 'bayes'"),
        (("[0, 1]", "[0, 9]"), "node numbers 0..2"),
        (("[0, 1]", "[1, 1]"), "edge to itself"),
        (('"nodes": ["rain"', '"nodes": ["wet"'), "same node twice"),
    ],
)
def test_an_edited_document_is_refused(edit, message):
    with pytest.raises(InvalidInputError, match=message):
        Network.from_json(NET.to_json().replace(*edit, 1))


def test_a_wide_network_is_refused_with_its_width():
    graph = nx.complete_graph(24)
    net = Network(graph, {edge: [[2, 1], [1, 2]] for edge in graph.edges}, states=[0, 1])
    assert net.treewidth == 23
    assert net.largest_table == 2**24
    with pytest.raises(UnsupportedError, match=r"16,777,216 entries over 24 nodes \(width 23\)"):
        net.marginal(0)
