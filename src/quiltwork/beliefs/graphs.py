"""Graphs and tables of networks as plain data, validated with messages that name node and row.

Input comes from networkx, BIF files and JSON documents. A directed graph needs one table per node,
with axes for its parents in the order of `graph.predecessors(node)`, then the node itself; an
undirected one has tables of cliques, with axes in sorted order of the clique's nodes.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from graphlib import CycleError, TopologicalSorter
from typing import Any

import numpy as np

from quiltwork.arguments import listed
from quiltwork.beliefs import matrices
from quiltwork.beliefs.documents import field, labels_from_json
from quiltwork.beliefs.matrices import KEPT_AS_IS, SUM_TOLERANCE, FloatArray, frozen
from quiltwork.beliefs.states import Label, distinct_labels, parse_label, show_labels, sorted_labels
from quiltwork.errors import InvalidInputError
from quiltwork.exact import shortened

Domains = tuple[tuple[Label, ...], ...]
Factor = tuple[tuple[int, ...], FloatArray]


@dataclass(frozen=True)
class PlainGraph:
    """A graph as data: nodes in order, and edges (parent, child), or unordered if undirected."""

    names: tuple[Label, ...]
    edges: tuple[tuple[int, int], ...]
    directed: bool

    @property
    def parents(self) -> tuple[tuple[int, ...], ...]:
        """The parents of each node, in the order of the edges."""
        parents: list[list[int]] = [[] for _ in self.names]
        for parent, child in self.edges:
            parents[child].append(parent)
        return tuple(map(tuple, parents))


def plain_graph(graph: Any) -> PlainGraph:
    """Return a networkx graph as data; a `PlainGraph` is returned unchanged."""
    if isinstance(graph, PlainGraph):
        return graph
    if not (hasattr(graph, "nodes") and hasattr(graph, "is_directed")):
        raise InvalidInputError(
            f"graph is {type(graph).__name__}; give a networkx DiGraph (Bayesian network) or Graph "
            "(Markov network)."
        )
    if graph.is_multigraph():
        raise InvalidInputError(
            "graph may have parallel edges (a multigraph), which have no meaning for a network; "
            "give a DiGraph or a Graph."
        )
    names = tuple(parse_label(node, f"Node {i}") for i, node in enumerate(graph.nodes, start=1))
    number = {node: i for i, node in enumerate(graph.nodes)}
    if graph.is_directed():
        pairs = [(parent, child) for child in graph.nodes for parent in graph.predecessors(child)]
    else:
        pairs = list(graph.edges)
    edges = tuple((number[a], number[b]) for a, b in pairs)
    return validated_graph(PlainGraph(names, edges, bool(graph.is_directed())))


def validated_graph(plain: PlainGraph) -> PlainGraph:
    """Return a graph after checking that it has nodes, no loops and no directed cycles."""
    if not plain.names:
        raise InvalidInputError("The graph has no nodes; a belief is about at least one.")
    for a, b in plain.edges:
        if a == b:
            raise InvalidInputError(f"Node {plain.names[a]!r} has an edge to itself; remove it.")
    try:
        TopologicalSorter(dict(enumerate(plain.parents)) if plain.directed else {}).prepare()
    except CycleError as error:
        shown = " → ".join(repr(plain.names[node]) for node in error.args[1])
        raise InvalidInputError(
            f"The directed graph has a cycle, {shown}, and a Bayesian network must have none. "
            "Reverse an edge, or give an undirected Graph with tables of cliques."
        ) from None
    return plain


def network_document(document: dict[str, Any]) -> dict[str, Any]:
    """Return the constructor's arguments from a network's JSON: graph, tables and states."""
    names = labels_from_json(field(document, "nodes"))
    domains = field(document, "states")
    kind, edges, tables = (field(document, name) for name in ("kind", "edges", "tables"))
    if kind not in ("bayesian", "markov"):
        raise InvalidInputError(f"kind is {kind!r}; a network is 'bayesian' or 'markov'.")
    if not isinstance(domains, list) or len(domains) != len(names):
        raise InvalidInputError("states must list the states of each node.")
    if len(set(names)) != len(names):
        raise InvalidInputError("nodes holds the same node twice.")
    pairs = [_nodes(edge, len(names)) for edge in listed(edges, "edges")]
    if any(len(pair) != 2 for pair in pairs):
        raise InvalidInputError("Every edge joins two nodes.")
    plain = PlainGraph(names, tuple((pair[0], pair[1]) for pair in pairs), kind == "bayesian")
    factors: dict[Any, Any] = {}
    for table in listed(tables, "tables"):
        if not isinstance(table, dict):
            raise InvalidInputError("Every entry of tables is an object with nodes and values.")
        nodes = _nodes(table.get("nodes"), len(names))
        if plain.directed:
            factors[names[nodes[-1]]] = table.get("values")
        else:
            factors[frozenset(names[node] for node in nodes)] = table.get("values")
    states = {name: labels_from_json(domain) for name, domain in zip(names, domains, strict=True)}
    return {"graph": validated_graph(plain), "factors": factors, "states": states}


def _nodes(value: Any, count: int) -> tuple[int, ...]:
    numbers = range(count)
    if (
        not isinstance(value, list)
        or not value
        or not all(type(node) is int and node in numbers for node in value)
    ):
        raise InvalidInputError(f"{shortened(value)} is not a list of node numbers 0..{count - 1}.")
    return tuple(value)


def parse_domains(names: Sequence[Label], states: Any, shapes: Mapping[Label, int]) -> Domains:
    """Return the states of each node: given per node or once for all, else 0..k−1 by the tables."""
    if states is None:
        for name in names:
            if name not in shapes:
                raise InvalidInputError(
                    f"No table mentions node {name!r}, so its states are unknown; give a table or "
                    "states."
                )
        return tuple(tuple(range(shapes[name])) for name in names)
    if not isinstance(states, Mapping):
        shared = distinct_labels(states)
        return tuple(shared for _ in names)
    for name in states:
        if name not in names:
            raise InvalidInputError(
                f"states names {name!r}, which is not a node of the graph; its nodes are "
                f"{show_labels(tuple(names))}."
            )
    missing = [name for name in names if name not in states]
    if missing:
        raise InvalidInputError(f"states has no entry for node {missing[0]!r}; list its states.")
    return tuple(_node_states(name, states[name]) for name in names)


def _node_states(name: Label, labels: Any) -> tuple[Label, ...]:
    try:
        return distinct_labels(labels)
    except InvalidInputError as error:
        raise InvalidInputError(f"States of node {name!r}: {error}") from None


def parse_table(values: Any, where: str) -> FloatArray:
    """Return a float64 copy of a table of numbers ≥ 0."""
    array = matrices.parse_numbers(values, where, None)
    bad = ~((array >= 0) & np.isfinite(array))
    if bad.any():
        index = tuple(int(i) for i in np.argwhere(bad)[0])
        raise InvalidInputError(
            f"{where} has {float(array[index])!r} at position {[i + 1 for i in index]} (counted "
            "from 1); its entries are finite numbers from 0 on."
        )
    return array


def check_shape(
    array: FloatArray, scope: Sequence[int], names: Sequence[Label], domains: Domains, where: str
) -> None:
    """Raise InvalidInputError for a table whose axes do not match its nodes' states."""
    expected = tuple(len(domains[node]) for node in scope)
    if array.shape != expected:
        axes = ", ".join(f"{names[node]!r} ({len(domains[node])} states)" for node in scope)
        raise InvalidInputError(
            f"{where} has the shape {array.shape}, and its axes are {axes}; give an array of the "
            f"shape {expected}."
        )


def parse_conditional(
    values: Any, scope: tuple[int, ...], names: Sequence[Label], domains: Domains
) -> FloatArray:
    """Return a read-only table P(node | parents); `scope` holds the parents, then the node."""
    name = names[scope[-1]]
    where = f"The table of node {name!r}"
    array = parse_table(values, where)
    check_shape(array, scope, names, domains, where)
    for index in itertools.product(*(range(size) for size in array.shape[:-1])):
        total = math.fsum(array[index].tolist())
        if abs(total - 1) > SUM_TOLERANCE:
            condition = ", ".join(
                f"{names[node]} = {domains[node][value]!r}"
                for node, value in zip(scope[:-1], index, strict=True)
            )
            raise InvalidInputError(
                f"{where} sums to {total:.10g}{' given ' + condition if condition else ''}, not 1; "
                "correct the row or divide it by its sum."
            )
        if abs(total - 1) > KEPT_AS_IS:
            array[index] /= total
    return frozen(array)


def parse_clique(key: Any, number: Mapping[Label, int], neighbours: Any) -> tuple[int, ...]:
    """Return the nodes of a clique's key, in sorted order of their names."""
    if _is_node(key, number):
        return (number[key],)
    if not isinstance(key, (tuple, frozenset)) or not key:
        raise InvalidInputError(
            f"{key!r} is not a clique; the keys of factors are nodes or tuples of nodes."
        )
    for name in key:
        if not _is_node(name, number):
            raise InvalidInputError(f"The clique {key!r} names {name!r}, which is not a node.")
    ordered = sorted_labels(key)
    if isinstance(key, tuple) and tuple(key) != ordered:
        raise InvalidInputError(
            f"The clique {key!r} is not sorted, so the order of its table's axes is in doubt; "
            f"write {ordered!r} and order the axes so."
        )
    nodes = tuple(number[name] for name in ordered)
    for a, b in itertools.combinations(nodes, 2):
        if b not in neighbours[a]:
            raise InvalidInputError(
                f"The clique {key!r} joins nodes that have no edge; add the edges to the graph."
            )
    return nodes


def _is_node(name: Any, number: Mapping[Label, int]) -> bool:
    try:
        return name in number
    except TypeError:
        return False


def require_known_nodes(keys: Iterable[Any], names: Sequence[Label]) -> None:
    """Raise InvalidInputError for tables of nodes that are not in the graph."""
    for key in keys:
        if key not in names:
            raise InvalidInputError(
                f"factors has a table for {key!r}, which is not a node of the graph; its nodes are "
                f"{show_labels(tuple(names))}."
            )
