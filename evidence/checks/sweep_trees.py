"""The package's sweep of trees against a linear program over all mechanisms, on small networks."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import networkx as nx
import numpy as np
from numpy.random import Generator

from evidence import sweep_program as program
from evidence.checks.sweep import levels_spent
from evidence.random_sweeps import random_charges, random_levels, start
from evidence.sweep_program import Charges
from quiltwork.beliefs import Network
from quiltwork.influence import sweep
from quiltwork.influence.network.tree_sweep import TreeSweep

NAME = "the sweep on trees"
CLAIM = (
    "no mechanism of these levels tells more about a node of a tree than the package says; if all "
    "nodes have two states, some mechanism tells just that"
)
CASES = 700  # of every kind
SLACK = 1e-6  # of solvers, relative

Array = np.ndarray


@dataclass(frozen=True)
class Case:
    network: Network
    law: Array
    charges: Charges


def forest(rng: Generator, length: int) -> list[tuple[int, int]]:
    """Edges (parent, child) of a random tree in random order; now and then some are missing."""
    graph = nx.from_prufer_sequence(rng.integers(0, length, length - 2).tolist())
    edges = list(nx.bfs_edges(graph, int(rng.integers(length))))
    return [edge for edge in edges if rng.random() < 0.9] if rng.random() < 0.3 else edges


def weights(rng: Generator, shape: tuple[int, ...]) -> Array:
    """Strong and weak dependence, with zeros in some; no row is empty."""
    rows = rng.integers(1, 9, shape) ** float(rng.choice([0.3, 1, 2]))
    if rng.random() < 0.4:
        rows *= rng.random(shape) < 0.6
    rows[rows.sum(axis=-1) == 0, 0] = 1
    return rows


def bayesian(rng: Generator, sizes: list[int], edges: list[tuple[int, int]]) -> Network:
    graph = nx.DiGraph()
    graph.add_nodes_from(range(len(sizes)))
    graph.add_edges_from(edges)
    tables = {node: start(rng, size) for node, size in enumerate(sizes)}
    for parent, child in edges:
        rows = weights(rng, (sizes[parent], sizes[child]))
        tables[child] = rows / rows.sum(axis=1, keepdims=True)
    return Network(graph, tables)


def markov(rng: Generator, sizes: list[int], edges: list[tuple[int, int]]) -> Network:
    graph = nx.Graph()
    graph.add_nodes_from(range(len(sizes)))
    graph.add_edges_from(edges)
    tables = {(node,): rng.integers(1, 9, size) for node, size in enumerate(sizes)}
    for edge in map(sorted, edges):
        rows = weights(rng, tuple(sizes[node] for node in edge))
        rows[:, rows.sum(axis=0) == 0] = 1  # so that some configuration is always possible
        tables[tuple(edge)] = rows
    return Network(graph, tables)


def draw(rng: Generator, kind: str) -> Case:
    together = kind == "charged together"
    length = int(rng.integers(2, 6 if together else 7))
    most = 2 if kind == "two states" or length == 6 else 3
    sizes = rng.integers(2, most + 1, length).tolist()
    edges = forest(rng, length)
    made = markov if kind == "Markov" or rng.random() < 0.3 else bayesian
    network = made(rng, sizes, edges)
    law = np.ones(sizes)
    for scope, values in network.factors:
        order = np.argsort(scope)
        shape = [sizes[node] if node in scope else 1 for node in range(length)]
        law = law * values.transpose(order).reshape(shape)
    charges = random_charges(rng, length) if together else Charges(random_levels(rng, length))
    return Case(network, law / law.sum(), charges)


KINDS = ("Bayesian", "Markov", "two states", "charged together")


def truth(case: Case) -> Array:
    """What some mechanism of these charges betrays of each node."""
    nodes = range(case.law.ndim)
    if case.charges.pairs or case.charges.windows:
        return np.array([program.charged_supremum(case.law, case.charges, [v]) for v in nodes])
    return np.array([program.supremum(case.law, case.charges.points, [v]) for v in nodes])


def claimed(case: Case) -> Array:
    """What the package says leaks about each node."""
    length = case.law.ndim
    levels = levels_spent(case.charges, length)
    return sweep.sweep_of(case.network, length).profile(levels, range(1, length + 1))[2]


def without_quilts(case: Case) -> Array:
    length = case.law.ndim
    levels = levels_spent(case.charges, length)
    return TreeSweep(case.network, few_nodes=0).profile(levels, range(1, length + 1))[2]


def compare(case: Case, exact: bool, claim: Callable[[Case], Array] = claimed) -> tuple[Array, ...]:
    """The claim, the sweep's alone and the truth; raises where they contradict each other."""
    said, alone, true = claim(case), without_quilts(case), truth(case)
    slack = SLACK * (1 + true)
    spent = case.charges.cost(range(case.law.ndim))
    assert (said >= true - slack).all(), ("below the truth", case, said, true)
    assert (alone >= said * (1 - 1e-9)).all(), ("above the sweep", case, said, alone)
    assert (said <= spent * (1 + SLACK) + 1e-9).all(), ("above all that is spent", case, said)
    if exact:
        assert (alone <= true + slack).all(), ("above what two states betray", case, alone, true)
    return said, alone, true


def check(
    cases: int,
    progress: Callable[[int, int], None] = lambda done, total: None,
    claim: Callable[[Case], Array] = claimed,
) -> dict[str, object]:
    """`cases` of every kind; raises AssertionError at the first counterexample."""
    counts: dict[str, object] = {}
    compared = gained = 0
    for number, kind in enumerate(KINDS):
        ratios: list[float] = []
        for seed in range(cases):
            case = draw(np.random.default_rng([number, seed]), kind)
            said, alone, true = compare(case, kind == "two states", claim)
            ratios += (alone[true > SLACK] / true[true > SLACK]).tolist()
            gained += int((said < alone * (1 - 1e-6)).sum())
            compared += len(true)
            progress(number * cases + seed + 1, cases * len(KINDS))
        middle, most = np.quantile(ratios, [0.5, 0.99])
        counts[f"sweep / supremum, {kind}"] = (
            f"median {middle:.4f}, 99 % within {most:.3f}, largest {max(ratios):.3f}"
        )
    return {
        "trees": cases * len(KINDS),
        "nodes compared": compared,
        **counts,
        "nodes where a quilt is lower": gained,
        "violations": 0,
    }


def run(progress: Callable[[int, int], None]) -> dict[str, object]:
    return check(CASES, progress)
