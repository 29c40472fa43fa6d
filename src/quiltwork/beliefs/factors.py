"""Reading the tables of a network: every refusal names the node and the row that is wrong.

A directed graph needs one table per node, axes for its parents in the order of
`graph.predecessors(node)`, then the node itself; an undirected one has tables of cliques, axes in
sorted order of the clique's nodes.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import numpy as np

from quiltwork.beliefs.matrices import KEPT_AS_IS, SUM_TOLERANCE, FloatArray, frozen
from quiltwork.beliefs.states import Label, list_states, show_labels, sorted_labels
from quiltwork.errors import InvalidInputError

Domains = tuple[tuple[Label, ...], ...]
Factor = tuple[tuple[int, ...], FloatArray]


def read_domains(names: Sequence[Label], states: Any, shapes: Mapping[Label, int]) -> Domains:
    """Return the states of each node: given per node, given once for all, or counted."""
    if states is None:
        for name in names:
            if name not in shapes:
                raise InvalidInputError(
                    f"No table mentions node {name!r}, so its states are unknown; give a table or "
                    "states."
                )
        return tuple(tuple(range(shapes[name])) for name in names)
    if not isinstance(states, Mapping):
        shared = list_states(states)
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
        return list_states(labels)
    except InvalidInputError as error:
        raise InvalidInputError(f"States of node {name!r}: {error}") from None


def read_numbers(values: Any, where: str) -> FloatArray:
    """Return a float64 copy of a table of numbers ≥ 0."""
    try:
        raw = np.asarray(values)
        if raw.dtype.kind not in "iufO" or raw.ndim == 0:
            raise TypeError
        array = np.array(raw, dtype=np.float64) + 0.0
    except (TypeError, ValueError):
        raise InvalidInputError(
            f"{where} must be an array of numbers; give nested lists of equal lengths or an array."
        ) from None
    bad = ~((array >= 0) & np.isfinite(array))
    if bad.any():
        index = tuple(int(i) for i in np.argwhere(bad)[0])
        raise InvalidInputError(
            f"{where} has {float(array[index])!r} at position {_position(index)}; its entries are "
            "finite numbers from 0 on."
        )
    return array


def _position(index: tuple[int, ...]) -> str:
    return "[" + ", ".join(str(i + 1) for i in index) + "] (counted from 1)"


def check_shape(
    array: FloatArray, scope: Sequence[int], names: Sequence[Label], domains: Domains, where: str
) -> None:
    """Refuse a table whose axes do not match its nodes' states."""
    expected = tuple(len(domains[node]) for node in scope)
    if array.shape != expected:
        axes = ", ".join(f"{names[node]!r} ({len(domains[node])} states)" for node in scope)
        raise InvalidInputError(
            f"{where} has the shape {array.shape}, and its axes are {axes}; give an array of the "
            f"shape {expected}."
        )


def read_conditional(
    values: Any, scope: tuple[int, ...], names: Sequence[Label], domains: Domains
) -> FloatArray:
    """Return a read-only table P(node | parents); `scope` holds the parents, then the node."""
    name = names[scope[-1]]
    where = f"The table of node {name!r}"
    array = read_numbers(values, where)
    check_shape(array, scope, names, domains, where)
    for index in itertools.product(*(range(size) for size in array.shape[:-1])):
        total = math.fsum(array[index].tolist())
        if abs(total - 1) > SUM_TOLERANCE:
            given = ", ".join(
                f"{names[node]} = {domains[node][value]!r}"
                for node, value in zip(scope[:-1], index, strict=True)
            )
            raise InvalidInputError(
                f"{where} sums to {total:.10g}{' given ' + given if given else ''}, not 1; "
                "correct the row or divide it by its sum."
            )
        if abs(total - 1) > KEPT_AS_IS:
            array[index] /= total
    return frozen(array)


def read_clique(key: Any, number: Mapping[Label, int], neighbours: Any) -> tuple[int, ...]:
    """Return the nodes of a clique's key, in sorted order of their names."""
    if _is_node(key, number):
        return (number[key],)
    if not isinstance(key, (tuple, frozenset)) or not key:
        raise InvalidInputError(
            f"{key!r} names no clique; the keys of factors are nodes or tuples of nodes."
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


def refuse_unknown(keys: Iterable[Any], names: Sequence[Label]) -> None:
    """Refuse tables of nodes that the graph does not have."""
    for key in keys:
        if key not in names:
            raise InvalidInputError(
                f"factors has a table for {key!r}, which is not a node of the graph; its nodes are "
                f"{show_labels(tuple(names))}."
            )
