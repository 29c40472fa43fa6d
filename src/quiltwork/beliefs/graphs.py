"""Graphs as plain data: names in order and edges between their numbers.

What comes from networkx, from a BIF file or from a JSON document meets here.
"""

from __future__ import annotations

from dataclasses import dataclass
from graphlib import CycleError, TopologicalSorter
from typing import Any

from quiltwork.beliefs.documents import field, labels_from_json
from quiltwork.beliefs.states import Label, read_label
from quiltwork.errors import InvalidInputError


@dataclass(frozen=True)
class Plain:
    """Nodes in order and edges (parent, child), or in any direction for an undirected graph."""

    names: tuple[Label, ...]
    edges: tuple[tuple[int, int], ...]
    directed: bool

    @property
    def parents(self) -> tuple[tuple[int, ...], ...]:
        """The parents of each node, in the order of the edges."""
        found: list[list[int]] = [[] for _ in self.names]
        for parent, child in self.edges:
            found[child].append(parent)
        return tuple(map(tuple, found))


def plain_graph(graph: Any) -> Plain:
    """Read a networkx graph."""
    if not (hasattr(graph, "nodes") and hasattr(graph, "is_directed")):
        raise InvalidInputError(
            f"graph is {type(graph).__name__}; give a networkx DiGraph (Bayesian network) or Graph "
            "(Markov network)."
        )
    if graph.is_multigraph():
        raise InvalidInputError(
            "graph may have parallel edges (a multigraph), which mean nothing here; give a DiGraph "
            "or a Graph."
        )
    names = tuple(read_label(node, f"Node {i}") for i, node in enumerate(graph.nodes, start=1))
    number = {node: i for i, node in enumerate(graph.nodes)}
    if graph.is_directed():
        pairs = [(parent, child) for child in graph.nodes for parent in graph.predecessors(child)]
    else:
        pairs = list(graph.edges)
    edges = tuple((number[a], number[b]) for a, b in pairs)
    return checked(Plain(names, edges, bool(graph.is_directed())))


def checked(plain: Plain) -> Plain:
    """Refuse a graph without nodes, with loops or with directed cycles."""
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
            f"The directed graph has a cycle, {shown}, and a Bayesian network has none; turn an "
            "edge round, or give an undirected Graph with tables of cliques."
        ) from None
    return plain


def network_document(document: dict[str, Any]) -> tuple[Plain, dict[Any, Any], dict[Any, Any]]:
    """Read the fields of a network's JSON: graph, tables and states."""
    names = labels_from_json(field(document, "nodes"))
    domains = field(document, "states")
    kind, edges, tables = (field(document, name) for name in ("kind", "edges", "tables"))
    if kind not in ("bayesian", "markov"):
        raise InvalidInputError(f"kind is {kind!r}; a network is 'bayesian' or 'markov'.")
    if not isinstance(domains, list) or len(domains) != len(names):
        raise InvalidInputError("states must list the states of each node.")
    if len(set(names)) != len(names):
        raise InvalidInputError("nodes holds the same node twice.")
    pairs = [_nodes(edge, len(names)) for edge in _listed(edges, "edges")]
    if any(len(pair) != 2 for pair in pairs):
        raise InvalidInputError("Every edge joins two nodes.")
    plain = Plain(names, tuple((pair[0], pair[1]) for pair in pairs), kind == "bayesian")
    factors: dict[Any, Any] = {}
    for one in _listed(tables, "tables"):
        if not isinstance(one, dict):
            raise InvalidInputError("Every entry of tables is an object with nodes and values.")
        nodes = _nodes(one.get("nodes"), len(names))
        if plain.directed:
            factors[names[nodes[-1]]] = one.get("values")
        else:
            factors[frozenset(names[node] for node in nodes)] = one.get("values")
    states = {name: labels_from_json(domain) for name, domain in zip(names, domains, strict=True)}
    return checked(plain), factors, states


def _listed(value: Any, name: str) -> list[Any]:
    if not isinstance(value, list):
        raise InvalidInputError(f"{name} must be a list; the document may have been edited.")
    return value


def _nodes(value: Any, count: int) -> tuple[int, ...]:
    numbers = range(count)
    if (
        not isinstance(value, list)
        or not value
        or not all(type(node) is int and node in numbers for node in value)
    ):
        raise InvalidInputError(f"{value!r} is not a list of node numbers 0..{count - 1}.")
    return tuple(value)
