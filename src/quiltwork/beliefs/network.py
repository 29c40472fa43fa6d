"""`Network`: a Bayesian or Markov network as a belief about one joint observation of its nodes.

Construction validates and is linear in the tables. In the public interface nodes are numbered 1,
2, … in the graph's own order, like time points.
"""

from __future__ import annotations

import math
import os
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Any

from quiltwork.beliefs import graphs as read
from quiltwork.beliefs import moral
from quiltwork.beliefs.belief import Belief
from quiltwork.beliefs.documents import labels_to_json
from quiltwork.beliefs.elimination import Weights, eliminate, sum_to, table
from quiltwork.beliefs.matrices import FloatArray, IntArray, frozen
from quiltwork.beliefs.states import Label, list_labels, show_labels
from quiltwork.errors import InvalidInputError, UnsupportedError
from quiltwork.exact import counted

if TYPE_CHECKING:
    import networkx as nx

_SMALL = 1 << 12
"""Entries up to which the joint table is computed once and reused for every query."""


@dataclass(frozen=True, init=False, eq=False, repr=False)
class Network(Belief):
    """Nodes that depend on each other along the edges of a graph.

    Args:
        graph: a networkx `DiGraph` without cycles (a Bayesian network) or a `Graph` (a Markov
            network). Parts that are not connected are independent.
        factors: for a `DiGraph` one table per node, P(node | parents): axes for the parents in
            the order of `graph.predecessors(node)`, then the node; rows sum to 1 within 1e-9. For
            a `Graph` tables of cliques, keyed by a node or a sorted tuple of nodes, axes in that
            order; numbers ≥ 0, whose product is the joint distribution up to a factor.
        states: per node its labels, or one list for all nodes; 0..k−1 if not given.

    Raises:
        InvalidInputError: naming the node, row or label that is wrong, or the cycle.

    >>> import networkx as nx
    >>> rain = nx.DiGraph([("rain", "sprinkler"), ("rain", "wet"), ("sprinkler", "wet")])
    >>> net = Network(
    ...     rain,
    ...     {
    ...         "rain": [0.8, 0.2],
    ...         "sprinkler": [[0.6, 0.4], [0.99, 0.01]],
    ...         "wet": [[[1, 0], [0.1, 0.9]], [[0.2, 0.8], [0.01, 0.99]]],
    ...     },
    ...     states=["no", "yes"],
    ... )
    >>> net
    Network(3 nodes: 'rain', 'sprinkler', 'wet'; Bayesian, width=2)
    >>> net.marginal("wet").round(4)
    array([0.5516, 0.4484])
    """

    names: tuple[Label, ...]
    domains: tuple[tuple[Label, ...], ...]
    directed: bool
    edges: tuple[tuple[int, int], ...]
    factors: tuple[tuple[tuple[int, ...], FloatArray], ...]
    schema = "belief/network"

    def __init__(
        self,
        graph: nx.DiGraph | nx.Graph | read.PlainGraph,
        factors: Mapping[Any, Any],
        states: Mapping[Any, Iterable[Any]] | Iterable[Any] | None = None,
    ) -> None:
        plain = read.plain_graph(graph)
        if not isinstance(factors, Mapping):
            raise InvalidInputError(
                f"factors must be a dict from nodes or cliques to tables, not "
                f"{type(factors).__name__}."
            )
        build = _conditionals if plain.directed else _cliques
        domains, tables = build(plain, factors, states)
        self.__setstate__((plain.names, domains, plain.directed, plain.edges, tables))
        self._check_possible()

    @classmethod
    def from_bif(cls, path: str | os.PathLike[str]) -> Network:
        """Read a Bayesian network from a file in the Bayesian Interchange Format.

        Nodes are in the order of the file's `variable` blocks.

        Raises:
            InvalidInputError: naming the line with the error.
        """
        from quiltwork.beliefs.bif import read_bif

        return cls(*read_bif(path))

    @property
    def graph(self) -> nx.DiGraph | nx.Graph:
        """The graph, as a new networkx object."""
        import networkx as nx

        result = nx.DiGraph() if self.directed else nx.Graph()
        result.add_nodes_from(self.names)
        result.add_edges_from((self.names[a], self.names[b]) for a, b in self.edges)
        return result

    @cached_property
    def sizes(self) -> tuple[int, ...]:
        """The number of states of each node."""
        return tuple(map(len, self.domains))

    @cached_property
    def parents(self) -> tuple[tuple[int, ...], ...]:
        """The parents of each node (0-based); none in a Markov network."""
        if not self.directed:
            return tuple(() for _ in self.names)
        return tuple(scope[:-1] for scope, _ in self.factors)

    @cached_property
    def neighbours(self) -> moral.Neighbours:
        """The Markov blanket of each node (0-based): its neighbours in the moral graph."""
        scopes = [scope for scope, _ in self.factors]
        return moral.joined([*scopes, *self.edges], self.length)

    @cached_property
    def tables(self) -> tuple[Weights, ...]:
        """The factors as tables with their supports."""
        return tuple(table(scope, values) for scope, values in self.factors)

    @cached_property
    def positive(self) -> bool:
        """Whether no table holds a 0, so that every configuration is possible."""
        return all(factor.possible is None for factor in self.tables)

    @property
    def treewidth(self) -> int:
        """The width of a greedy elimination order: at least the treewidth of the moral graph."""
        return self._width[0]

    @property
    def largest_table(self) -> int:
        """The entries of that order's largest table; exact computations stop at 2^22."""
        return self._width[1]

    @cached_property
    def _width(self) -> tuple[int, int]:
        return moral.elimination_width(self.neighbours, self.sizes)

    def node(self, name: Any) -> int:
        """Return the number (1-based) of a node.

        Raises:
            InvalidInputError: for a name that is not a node.
        """
        try:
            return self._numbers[name] + 1
        except (KeyError, TypeError):
            raise InvalidInputError(
                f"{name!r} is not a node of the network; its nodes are {show_labels(self.names)}."
            ) from None

    @cached_property
    def _numbers(self) -> dict[Label, int]:
        return {name: i for i, name in enumerate(self.names)}

    def blanket(self, name: Any) -> tuple[Label, ...]:
        """Return the Markov blanket of a node: parents, children and the children's parents."""
        near = self.neighbours[self.node(name) - 1]
        return tuple(self.names[i] for i in sorted(near))

    def relevant(self, nodes: Sequence[int]) -> list[Weights]:
        """Return the tables that determine the joint distribution of some nodes (0-based)."""
        # The tables of nodes that are no ancestors sum to 1; only in a Bayesian network.
        if not self.directed:
            return list(self.tables)
        needed = moral.ancestors(self.parents, nodes)
        return [factor for factor in self.tables if factor.scope[-1] in needed]

    def joint(self, nodes: Sequence[int]) -> Weights:
        """Return the joint distribution of some nodes (0-based), up to a factor, by elimination.

        Raises:
            UnsupportedError: if a table of more than 2^22 entries would be needed.
        """
        if self._whole is not None:
            return sum_to(self._whole, nodes)
        return eliminate(self.relevant(nodes), nodes, self.sizes)

    @cached_property
    def _whole(self) -> Weights | None:
        """The joint distribution of all nodes, if that is a small table."""
        if math.prod(self.sizes) > _SMALL:
            return None
        return eliminate(self.tables, range(self.length), self.sizes)

    def marginal(self, name: Any) -> FloatArray:
        """Return the distribution of one node, in the order of its states.

        Raises:
            UnsupportedError: if a table of more than 2^22 entries would be needed, or every
                probability is too small beside its table's largest entry for floating point.
        """
        values = self.joint([self.node(name) - 1]).values
        total = values.sum()
        if not total > 0:
            raise UnsupportedError(
                f"The distribution of {name!r} underflows: every configuration is too unlikely "
                "beside the largest entries of the tables. Give tables with a smaller range."
            )
        return frozen(values / total)

    def row(self, values: Mapping[Any, Any]) -> tuple[Any, ...]:
        """Return an observation, a dict from nodes to values, as a row in the order of the nodes.

        Raises:
            InvalidInputError: for nodes that are missing or unknown.
        """
        if not isinstance(values, Mapping):
            raise InvalidInputError("An observation must be a dict with a value for every node.")
        for name in values:
            self.node(name)
        for name in self.names:
            if name not in values:
                raise InvalidInputError(f"The observation has no value for node {name!r}.")
        return tuple(values[name] for name in self.names)

    def check_codes(self, codes: IntArray) -> None:
        """Raise InvalidInputError if a node has a state that only other nodes have."""
        for i, code in enumerate(codes.tolist()):
            if self.states[code] not in self.domains[i]:
                raise InvalidInputError(
                    f"Position {i + 1} (node {self.names[i]!r}) holds a state of other nodes only; "
                    f"its own states are {show_labels(self.domains[i])}."
                )

    def allows(self, codes: IntArray) -> bool:
        """Return whether an observation has positive probability. O(number of tables)."""
        own = [self.domains[i].index(self.states[code]) for i, code in enumerate(codes.tolist())]
        return all(
            bool(factor.support()[tuple(own[node] for node in factor.scope)])
            for factor in self.tables
        )

    def _written(self) -> dict[str, Any]:
        return {
            "nodes": labels_to_json(self.names),
            "states": [labels_to_json(domain) for domain in self.domains],
            "kind": "bayesian" if self.directed else "markov",
            "edges": [list(edge) for edge in self.edges],
            "tables": [
                {"nodes": list(scope), "values": values.tolist()} for scope, values in self.factors
            ],
        }

    @classmethod
    def _arguments(cls, document: dict[str, Any]) -> dict[str, Any]:
        return read.network_document(document)

    def _check_possible(self) -> None:
        """Raise InvalidInputError if a Markov network excludes everything, where cheap to check."""
        # Conditional rows sum to 1, so a Bayesian network always allows something.
        if self.directed or self.positive or self.largest_table > 1 << 16:
            return
        # The support and not the sum, which may underflow.
        if not eliminate(self.tables, (), self.sizes).support().any():
            raise InvalidInputError(
                "The tables together exclude every configuration of the nodes; allow at least one."
            )

    @cached_property
    def _key(self) -> tuple[Any, ...]:
        tables = tuple((scope, values.tobytes()) for scope, values in self.factors)
        return self.names, self.domains, self.directed, frozenset(self.edges), tables

    @property
    def length(self) -> int:  # type: ignore[override]
        """The number of nodes."""
        return len(self.names)

    @cached_property
    def states(self) -> tuple[Label, ...]:  # type: ignore[override]
        """The states of all nodes together."""
        return tuple(dict.fromkeys(label for domain in self.domains for label in domain))

    def summary(self) -> str:
        """Return nodes and width in words."""
        kind = "Bayesian" if self.directed else "Markov"
        nodes = f"{counted(self.length, 'node')} ({list_labels(self.names)})"
        return f"a {kind} network of {nodes}, treewidth {self.treewidth}"

    def __repr__(self) -> str:
        """Return nodes and width, without the tables."""
        kind = "Bayesian" if self.directed else "Markov"
        noun = "node" if self.length == 1 else "nodes"
        shown = show_labels(self.names)
        return f"Network({self.length} {noun}: {shown}; {kind}, width={self.treewidth})"

    def __setstate__(self, state: tuple[Any, ...]) -> None:
        """Set the fields, arrays read-only."""
        super().__setstate__(state)
        for _, values in self.factors:
            frozen(values)


def _conditionals(
    plain: read.PlainGraph, factors: Mapping[Any, Any], states: Any
) -> tuple[read.Domains, tuple[read.Factor, ...]]:
    """Return states and one table per node, in the order of the nodes."""
    names = plain.names
    read.require_known_nodes(factors, names)
    for name in names:
        if name not in factors:
            raise InvalidInputError(
                f"factors has no table for node {name!r}; give P(node|parents)."
            )
    shapes = {
        name: read.parse_table(factors[name], f"The table of node {name!r}").shape[-1]
        for name in (names if states is None else ())
    }
    domains = read.parse_domains(names, states, shapes)
    parents = plain.parents
    scopes = [(*parents[i], i) for i in range(len(names))]
    tables = tuple(
        (scope, read.parse_conditional(factors[name], scope, names, domains))
        for name, scope in zip(names, scopes, strict=True)
    )
    return domains, tables


def _cliques(
    plain: read.PlainGraph, factors: Mapping[Any, Any], states: Any
) -> tuple[read.Domains, tuple[read.Factor, ...]]:
    """Return states and the tables of cliques, in the order given."""
    names = plain.names
    number = {name: i for i, name in enumerate(names)}
    near = moral.joined(plain.edges, len(names))
    scopes = {key: read.parse_clique(key, number, near) for key in factors}
    arrays = {
        key: read.parse_table(values, f"The table of {key!r}") for key, values in factors.items()
    }
    shapes = {
        names[node]: size
        for key, scope in scopes.items()
        for node, size in zip(scope, arrays[key].shape, strict=False)
    }
    domains = read.parse_domains(names, states, shapes)
    for key, scope in scopes.items():
        read.check_shape(arrays[key], scope, names, domains, f"The table of {key!r}")
        if not arrays[key].any():
            raise InvalidInputError(f"The table of {key!r} is 0 everywhere; allow something.")
    return domains, tuple((scopes[key], frozen(arrays[key])) for key in factors)
