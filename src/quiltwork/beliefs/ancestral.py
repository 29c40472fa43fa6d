"""Simulating a network: parents before children, or node after node given those before."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from quiltwork.beliefs.elimination import Weights, eliminate
from quiltwork.beliefs.matrices import FloatArray, IntArray
from quiltwork.beliefs.sequences import label_array
from quiltwork.exact import integer

if TYPE_CHECKING:
    from quiltwork.beliefs.network import Network

_MOST_ENTRIES = 10**9


def sample(network: Network, count: int, seed: int | None) -> NDArray[Any]:
    """Return `count` rows of labels, one column per node in order."""
    rows = integer(count, "count", 1, _MOST_ENTRIES // network.length)
    chosen = None if seed is None else integer(seed, "seed", 0)
    uniform = np.random.default_rng(chosen).random((rows, network.length))
    draw = _directed if network.directed else _undirected
    codes = draw(network, uniform)
    union = label_array(network.states)
    place = {label: i for i, label in enumerate(network.states)}
    columns = [
        union[np.array([place[label] for label in domain])[codes[:, i]]]
        for i, domain in enumerate(network.domains)
    ]
    return np.stack(columns, axis=1)


def _directed(network: Network, uniform: FloatArray) -> IntArray:
    codes = np.zeros(uniform.shape, dtype=np.int64)
    done: set[int] = set()
    while len(done) < network.length:
        for node, (scope, values) in enumerate(network.factors):
            if node not in done and done.issuperset(scope[:-1]):
                rows = values[tuple(codes[:, parent] for parent in scope[:-1])]
                codes[:, node] = _inverse(
                    np.broadcast_to(rows, (len(codes), values.shape[-1])), uniform[:, node]
                )
                done.add(node)
    return codes


def _undirected(network: Network, uniform: FloatArray) -> IntArray:
    codes = np.zeros(uniform.shape, dtype=np.int64)
    laws: dict[tuple[int, ...], FloatArray] = {}
    for node in range(network.length):
        for row in range(len(codes)):
            before = tuple(codes[row, :node].tolist())
            if before not in laws:
                laws[before] = _law_given(network, before)
            codes[row, node] = _inverse(laws[before][np.newaxis], uniform[row, node : node + 1])[0]
    return codes


def _law_given(network: Network, before: tuple[int, ...]) -> FloatArray:
    """The distribution of the next node given all before it."""
    node = len(before)
    tables = [_restricted(one, before) for one in network.tables]
    values = eliminate(tables, (node,), network.sizes).values
    return np.asarray(values / values.sum())


def _restricted(one: Weights, before: tuple[int, ...]) -> Weights:
    index = tuple(before[node] if node < len(before) else slice(None) for node in one.scope)
    scope = tuple(node for node in one.scope if node >= len(before))
    possible = None if one.possible is None else np.asarray(one.possible[index])
    return Weights(scope, np.asarray(one.values[index]), possible, one.roundings)


def _inverse(laws: FloatArray, uniform: FloatArray) -> IntArray:
    """Draw from each row of `laws`; a state of probability 0 never comes up."""
    upto = np.cumsum(laws, axis=1)
    upto /= upto[:, -1:]
    return np.asarray((uniform[:, np.newaxis] >= upto).sum(axis=1), dtype=np.int64)
