"""The sweep on networks that are trees: a bound on what each branch reveals about its parent node.

R[a, a'], the message of node y to its neighbour x, bounds log E[h|X_x=a]/E[h|X_x=a'] over all
releases about y and the nodes beyond it. It is the ratio program L of P(y|x=a) and P(y|x=a'), with
the level of y and the messages of its other neighbours as limits. Messages go from the leaves to
the roots and back, all of one depth at once. Impossible states are removed at the start.

Theorem: docs/theory/sweep.md
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace

import numpy as np

from quiltwork.beliefs import Network
from quiltwork.beliefs.elimination import Weights, multiply, sum_out
from quiltwork.beliefs.moral import Neighbours
from quiltwork.beliefs.secrets import SecretPairs
from quiltwork.errors import UnsupportedError
from quiltwork.influence.network.network_quilts import network_families
from quiltwork.influence.sweep import Leak, Levels, can_be_swept, sweep_of
from quiltwork.influence.sweep.program import FloatArray, IntArray, RatioProgram, RowPairs

_UNIT = 2.0**-52
_TINY = 2.0**-960
_VANISHED = 1 << 80
"""Roundings of an entry that may have underflowed: results that depend on it are unbounded."""


@can_be_swept.register
def _(belief: Network) -> bool:
    edges = sum(map(len, belief.neighbours)) // 2
    return edges == len(from_roots(belief.neighbours)[1])


def from_roots(neighbours: Neighbours) -> tuple[dict[int, int], dict[int, int]]:
    """Return every node with its depth, parents before children, and the parents.

    >>> from_roots(tuple(map(frozenset, [{2}, set(), {0, 3}, {2}])))
    ({0: 0, 2: 1, 3: 2, 1: 0}, {2: 0, 3: 2})
    """
    depth: dict[int, int] = {}
    parent: dict[int, int] = {}
    for root in range(len(neighbours)):
        waiting = [] if root in depth else [root]
        depth.setdefault(root, 0)
        # breadth-first, so that parents come before children
        for node in waiting:  # grows while it is read
            new = [other for other in sorted(neighbours[node]) if other not in depth]
            depth.update(dict.fromkeys(new, depth[node] + 1))
            parent.update(dict.fromkeys(new, node))
            waiting.extend(new)
    return depth, parent


@dataclass(frozen=True, eq=False)
class Message:
    """A message from one node to its neighbour, both from 0.

    Attributes:
        source: the node that sends.
        target: the node that receives.
        kernel: P(source | target) between possible states, a row per state of the target.
        margin: the rounding error of the kernel.
        place: the index of the target's first pair of states among all messages.
        reply: the index of the source's first pair, in the message in the other direction.
    """

    source: int
    target: int
    kernel: FloatArray
    margin: float
    place: int
    reply: int


class Batch:
    """Messages that are computed together, from nodes with equally many states.

    The pairs of states of node v begin at begin[v] in the sums of its neighbours' messages.
    """

    def __init__(self, messages: Sequence[Message], begin: IntArray) -> None:
        self.size = size = messages[0].kernel.shape[1]
        square = np.arange(size * size).reshape(size, size)
        steps = np.array([message.source - message.target for message in messages])
        self.paid = (
            np.select([steps == 1, steps == -1], [1, 2]),
            [message.source for message in messages],
        )
        self.differ = 1 - np.eye(size)
        self.limits = np.array([begin[message.source] + square for message in messages])
        self.replies = np.array([message.reply + square for message in messages])
        pairs = [np.nonzero(~np.eye(len(message.kernel), dtype=np.bool_)) for message in messages]
        both = list(zip(messages, pairs, strict=True))
        self.group = np.repeat(np.arange(len(messages)), [len(x) for x, _ in pairs])
        self.rows = RowPairs(
            np.concatenate([message.kernel[x] for message, (x, _) in both]),
            np.concatenate([message.kernel[y] for message, (_, y) in both]),
        )
        inside = np.concatenate([x * len(message.kernel) + y for message, (x, y) in both])
        self.places = np.array([message.place for message in messages])[self.group] + inside
        self.into = np.array([begin[message.target] for message in messages])[self.group] + inside
        self.margin = np.array([message.margin for message in messages])[self.group]

    def answers(self, paid: FloatArray, into: FloatArray, said: FloatArray) -> FloatArray:
        """The messages, from the sums that sources receive and from the replies of the targets.

        `paid` holds the own, forward and backward level of every node. A pair or window that
        contains the target too is paid by it; levels identify these for consecutive rows only.
        """
        sums = 1 + (paid.shape[1] + 4) * _UNIT
        limits = into[self.limits] * sums - said[self.replies]
        limits += paid[self.paid][:, np.newaxis, np.newaxis] * self.differ
        bounds = RatioProgram(self.group, self.size).bound(self.rows, limits)
        return np.where(np.isfinite(bounds), bounds + self.margin, np.inf)


class TreeSweep:
    """The sweep of a network whose moral graph is a tree, or several. O(n·k⁴) for every set of
    levels.

    For few nodes quilts are computed too: they may gain where tables have zeros.
    """

    def __init__(self, network: Network, few_nodes: int = 12) -> None:
        self.network, self._few_nodes = network, few_nodes
        edges, self._sizes = _edges(network)
        ends = np.cumsum(self._sizes**2)
        self._begin = np.append(0, ends[:-1])
        groups: dict[tuple[int, int, int], list[Message]] = defaultdict(list)
        self._message_size = 0
        for one in edges:
            above, below = one.of_child.shape
            up, down = self._message_size, self._message_size + above**2
            self._message_size = down + below**2
            message = Message(one.child, one.parent, one.of_child, one.margin, up, down)
            groups[0, -one.depth, below].append(message)
            message = Message(one.parent, one.child, one.of_parent, one.margin, down, up)
            groups[1, one.depth, above].append(message)
        self._batches = [Batch(groups[key], self._begin) for key in sorted(groups)]

    def without_cache(self) -> TreeSweep:
        """The same object: it caches nothing."""
        return self

    def worst(self, levels: Levels, nodes: range) -> Leak:
        """The node among `nodes` with the largest leakage."""
        leak, own, influence = (
            row[nodes.start - 1 : nodes.stop - 1] for row in self._leaks(levels)
        )
        worst_index = int(np.argmax(leak))
        return Leak(
            float(leak[worst_index]),
            nodes[worst_index],
            float(own[worst_index]),
            0.0,
            float(influence[worst_index]),
        )

    def profile(self, levels: Levels, nodes: range) -> tuple[IntArray, IntArray, FloatArray]:
        """A bound on the leakage of each node, as runs of one node."""
        all_nodes = np.array(nodes)
        return all_nodes, all_nodes, self._leaks(levels)[0][nodes.start - 1 : nodes.stop - 1]

    def all_deterministic(self, nodes: range) -> bool:
        """Whether no node has a secret."""
        return bool((self._sizes[nodes.start - 1 : nodes.stop - 1] == 1).all())

    def _leaks(self, levels: Levels) -> tuple[FloatArray, FloatArray, FloatArray]:
        """The leakage of every node, its own level, and its influence."""
        nodes = np.arange(1, self.network.length + 1)
        rows = (levels.own, levels.forward, levels.backward)
        paid = np.array([levels.at(row, nodes) for row in rows])
        into, said = np.zeros(int((self._sizes**2).sum())), np.zeros(self._message_size)
        for batch in self._batches:
            messages = np.clip(batch.answers(paid, into, said), 0.0, levels.total)
            said[batch.places] = messages
            np.add.at(into, batch.into, messages)
        own = paid[0]
        influence = np.maximum.reduceat(into, self._begin)
        if self.network.length <= self._few_nodes:
            influence = np.minimum(influence, np.maximum(self._by_quilts(levels) - own, 0.0))
        leak = np.minimum((own + influence) * (1 + len(own) * _UNIT), levels.total)
        return np.where(self._sizes == 1, 0.0, leak), own, influence

    def _by_quilts(self, levels: Levels) -> FloatArray:
        """The least over every node's quilts of the nearby cost and the quilt's influence."""
        totals = np.full(self.network.length, np.inf)
        for family in network_families(self.network, "exact"):
            if not family.is_known:
                costs = family.influence.copy()
                np.add.at(costs, family.owner, levels.block(family.start, family.stop))
                totals[family.nodes[0] - 1] = costs.min() * (1 + 2.0**-40)
        return totals


@sweep_of.register(Network)
def _(
    belief: Network, length: int, episode: int = 1, pairs: SecretPairs | None = None
) -> TreeSweep:
    if episode > 1:
        raise UnsupportedError(
            f"An episode of {episode} time points needs a chain, and the rows of a network are in "
            "no order. Leave episode out."
        )
    return TreeSweep(belief)


@dataclass(frozen=True, eq=False)
class Edge:
    """A node and its parent, both from 0, with P(child | parent) and P(parent | child)."""

    child: int
    parent: int
    depth: int
    of_child: FloatArray
    of_parent: FloatArray
    margin: float


def _edges(network: Network) -> tuple[list[Edge], IntArray]:
    """Return the edges between nodes with something to hide, and how many states each node has.

    From the leaves up the weight of all below a node given its parent, from the roots down laws.
    """
    depth, parent = from_roots(network.neighbours)
    tables: dict[frozenset[int], list[Weights]] = defaultdict(list)
    for one in network.tables:
        tables[frozenset(one.scope)].append(one)
    weights = {node: tables[frozenset([node])] for node in depth}
    given: dict[int, Weights] = {}
    for node in reversed(depth):
        if node in parent:
            scope = parent[node], node
            joint = _product([*tables[frozenset(scope)], *weights[node]], scope, network)
            given[node] = _given_first(joint)
            weights[parent[node]].append(sum_out(joint, node))
    laws: dict[int, Weights] = {}
    back: dict[int, Weights] = {}
    for node in depth:
        if node in parent:
            joint = _product([laws[parent[node]], given[node]], (node, parent[node]), network)
            back[node] = _given_first(joint)
            laws[node] = sum_out(joint, parent[node])
        else:
            laws[node] = _product(weights[node], (node,), network)
    possible = [laws[node].support() for node in range(network.length)]
    edges = [
        Edge(
            child,
            above,
            depth[child],
            given[child].values[np.ix_(possible[above], possible[child])],
            back[child].values[np.ix_(possible[child], possible[above])],
            4 * max(given[child].roundings, back[child].roundings) * _UNIT,
        )
        for child, above in parent.items()
        if possible[child].sum() > 1 and possible[above].sum() > 1
    ]
    return edges, np.array([states.sum() for states in possible])


def _product(tables: Iterable[Weights], scope: tuple[int, ...], network: Network) -> Weights:
    """The product of tables; entries that may have underflowed get a huge rounding error."""
    joint = Weights(scope, np.ones([network.sizes[node] for node in scope]))
    for table in tables:
        joint = multiply([joint, table], scope)
        if joint.values[joint.support()].min(initial=1.0) < _TINY:
            joint = replace(joint, roundings=_VANISHED)
    return joint


def _given_first(joint: Weights) -> Weights:
    """P(second | first) from a table of both; 0 where the first cannot be."""
    law = joint.values.sum(axis=1, keepdims=True)
    values = np.divide(joint.values, law, out=np.zeros_like(joint.values), where=law > 0)
    return replace(joint, values=values, roundings=joint.roundings + joint.values.shape[1] + 1)
