"""Random small networks of every awkward shape from a seed, with their joint by plain products."""

from __future__ import annotations

import itertools
from collections.abc import Iterator

import networkx as nx
import numpy as np
from numpy.random import Generator

from quiltwork.beliefs import Network
from quiltwork.errors import InvalidInputError

SHAPES = ("positive", "with zeros", "deterministic", "nearly deterministic")


def random_network(rng: Generator, nodes: int, most_states: int = 2) -> Network:
    """A Bayesian or Markov network; edges come with a random density, parts may be apart."""
    sizes = [int(rng.integers(2, most_states + 1)) for _ in range(nodes)]
    density = rng.choice([0.3, 0.6, 1.0])
    pairs = [(a, b) for a, b in itertools.combinations(range(nodes), 2) if rng.random() < density]
    if rng.random() < 0.6:
        return _bayesian(rng, sizes, pairs)
    while True:
        try:
            return _markov(rng, sizes, pairs)
        except InvalidInputError:
            continue


def _bayesian(rng: Generator, sizes: list[int], pairs: list[tuple[int, int]]) -> Network:
    graph = nx.DiGraph()
    graph.add_nodes_from(range(len(sizes)))
    graph.add_edges_from(pairs)
    tables = {}
    for node in graph:
        shape = [sizes[p] for p in graph.predecessors(node)] + [sizes[node]]
        rows = _weights(rng, shape)
        rows[rows.sum(axis=-1) == 0] = 1.0
        tables[node] = rows / rows.sum(axis=-1, keepdims=True)
    return Network(graph, tables)


def _markov(rng: Generator, sizes: list[int], pairs: list[tuple[int, int]]) -> Network:
    graph = nx.Graph()
    graph.add_nodes_from(range(len(sizes)))
    graph.add_edges_from(pairs)
    tables = {pair: _weights(rng, [sizes[v] for v in pair]) for pair in pairs}
    tables |= {(node,): rng.uniform(0.2, 1, sizes[node]) for node in graph}
    cliques = [c for c in nx.enumerate_all_cliques(graph) if len(c) == 3]
    tables |= {tuple(sorted(c)): _weights(rng, [sizes[v] for v in sorted(c)]) for c in cliques[:1]}
    return Network(graph, tables)


def _weights(rng: Generator, shape: list[int]) -> np.ndarray:
    kind = rng.choice(SHAPES, p=[0.55, 0.15, 0.1, 0.2])
    weights = rng.uniform(0.05, 1, shape)
    if kind == "with zeros":
        weights *= rng.random(shape) < 0.7
    elif kind == "deterministic":
        weights = (weights == weights.max(axis=-1, keepdims=True)).astype(float)
    elif kind == "nearly deterministic":
        weights = weights ** rng.integers(1, 9)
    return weights


def joint_of(network: Network) -> np.ndarray:
    """P(x) of every configuration, by multiplying table entries one configuration at a time."""
    joint = np.zeros([len(domain) for domain in network.domains])
    for x in itertools.product(*map(range, joint.shape)):
        joint[x] = np.prod(
            [values[tuple(x[v] for v in scope)] for scope, values in network.factors]
        )
    return joint / joint.sum()


def influence(joint: np.ndarray, node: int, quilt: tuple[int, ...], known: tuple = ()) -> float:
    """I(X_Q ⇝ X_i | X_L) by its definition, nodes from 0."""
    rest = tuple(v for v in range(joint.ndim) if v not in (node, *quilt, *known))
    kept = [v for v in range(joint.ndim) if v not in rest]
    table = joint.sum(axis=rest).transpose([kept.index(v) for v in (*known, node, *quilt)])
    worst = 0.0
    for values in itertools.product(*(range(joint.shape[v]) for v in known)):
        laws = [
            row / row.sum() for row in table[values].reshape(joint.shape[node], -1) if row.any()
        ]
        for one, other in itertools.permutations(laws, 2):
            if ((one > 0) & (other == 0)).any():
                return np.inf
            both = one > 0
            worst = max(worst, float(np.log(one[both] / other[both]).max()))
    return worst


def separators(network: Network, node: int) -> Iterator[tuple[tuple[int, ...], frozenset[int]]]:
    """Every (quilt, nearby set with the node) whose rest is independent of the node given it.

    By the definition of conditional independence on the joint itself, not by any graph.
    """
    joint = joint_of(network)
    others = [v for v in range(joint.ndim) if v != node]
    for size in range(len(others) + 1):
        for quilt in itertools.combinations(others, size):
            left = [v for v in others if v not in quilt]
            for count in range(len(left) + 1):
                for remote in itertools.combinations(left, count):
                    if influence(joint, node, remote, quilt) < 1e-9:
                        yield quilt, frozenset(left) - set(remote) | {node}
