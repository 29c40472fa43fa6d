"""Exact max-influence of every quilt of a Markov chain.

L_a and R_b of `docs/theory/max-influence.md` come from powers of P; a node enters only through the
possible states and the marginal of X_i. Similar nodes form blocks with an upper bound on their
influence; `refined` splits a block, so that only the worst nodes are computed one by one.

Theorem: docs/theory/max-influence.md
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from functools import cached_property, partial
from typing import TypeAlias

import numpy as np

from quiltwork.beliefs import MarkovChain
from quiltwork.beliefs.stationary import relative_error
from quiltwork.influence.quilts.families import IntervalFamily, ListedFamily, PairRows, silent_rows
from quiltwork.influence.quilts.powers import Powers, powers_of
from quiltwork.influence.quilts.protocol import FloatArray, IntArray, QuiltFamily
from quiltwork.influence.ratios import BoolArray, log_ratios, product_margin
from quiltwork.influence.timeline import (
    CONVERGED,
    UNSETTLED_NODES,
    Marginals,
    Supports,
    marginals,
    projective_distance,
    supports,
)

FamilyOfNodes: TypeAlias = Callable[[range], QuiltFamily]

_BLOCK_TOLERANCE = 0.01
"""Relative precision of the search within a block, which is split before it decides."""


@dataclass(frozen=True, eq=False)
class ExactChainQuilts:
    """The interval families of one chain, with the data they share."""

    chain: MarkovChain
    length: int
    reach: int
    _right: dict[bytes, PairRows] = field(default_factory=dict, repr=False)

    @cached_property
    def powers(self) -> Powers:
        """Log-ratios of powers of the matrix."""
        return powers_of(self.chain)

    @cached_property
    def possible(self) -> Supports:
        """The possible states of each node."""
        return supports(self.chain, self.length)

    @cached_property
    def marginals(self) -> Marginals:
        """The distribution of each node, for a given start."""
        return marginals(self.chain, self.possible, self.length)

    @cached_property
    def origin(self) -> int:
        """The first node with several possible states."""
        return self.possible.known_prefix + 1

    @property
    def any_start(self) -> bool:
        """Whether the initial distribution is arbitrary."""
        return isinstance(self.chain.initial, str)

    def families(self) -> Iterator[QuiltFamily]:
        """Yield the families, with the influence of every quilt up to `reach` nodes away."""
        if isinstance(self.chain.initial, str) and self.chain.initial == "stationary":
            yield self.stationary()
        else:
            yield from self.started()

    def stationary(self) -> QuiltFamily:
        """The family of all nodes, which have the same marginal."""
        nodes = range(1, self.length + 1)
        states = np.asarray(self.chain.support(1))
        if states.sum() == 1:
            return ListedFamily.known(nodes)
        if self.reach == 0 or not self.chain.is_aperiodic:
            return self.trivial(nodes)
        silent = 1 if _rows_agree(self.chain.transition[states]) else self.reach + 1
        backward = partial(self.powers.backward, support=states)
        tilt = self.tilt_of_stationary(states)
        return self.family(nodes, states, backward, tilt, self.reach, silent)

    def tilt_of_stationary(self, states: BoolArray) -> FloatArray:
        """log π(x')/π(x)."""
        law = self.chain.stationary
        tilt = log_ratios(law, law, states) + 2 * relative_error(self.chain.size)
        return np.asarray(tilt)

    def started(self) -> Iterator[QuiltFamily]:
        """Yield single nodes while supports change, then blocks, then one tail per phase.

        In a chain that never mixes the late nodes have the empty quilt only: every other quilt has
        infinite influence, unless it reaches back to the first nodes, where it gains little.
        """
        settled = self.possible.settled
        if settled is None:
            last_single = len(self.possible.sets)
        else:
            last_single = settled + (0 if self.possible.mixes else UNSETTLED_NODES)
        last_single = min(self.length, last_single)
        yield from map(self.single, range(1, last_single + 1))
        if settled is None:
            if last_single < self.length:
                yield self.trivial(range(last_single + 1, self.length + 1))
            return
        for phase in range(self.possible.period):
            first = last_single + 1 + phase
            nodes = range(first, self.length + 1, self.possible.period)
            if nodes:
                yield from self.settled_nodes(nodes)

    def settled_nodes(self, nodes: range) -> Iterator[QuiltFamily]:
        """Yield the families of the nodes of one phase of the periodic part."""
        # a phase with one possible state has no secret
        if self.possible.at(nodes[0]).sum() == 1:
            yield ListedFamily.known(nodes)
        elif not self.possible.mixes or self.reach == 0:
            yield self.trivial(nodes)
        elif self.any_start:
            yield self.block(nodes)
        else:
            with_law = len(self.marginals.values)
            early = range(nodes.start, min(nodes.stop, with_law + 1), nodes.step)
            if early:
                yield self.block(early)
            if nodes[len(early) :]:
                yield self.tail(nodes[len(early) :])

    def trivial(self, nodes: range) -> QuiltFamily:
        """The family of the empty quilt alone: no other has a finite, known influence."""
        rows = silent_rows()
        return IntervalFamily(nodes, self.length, rows, rows, self.origin, complete=True)

    def single(self, node: int) -> QuiltFamily:
        """The family of one node, with the exact influence of every quilt."""
        states = self.possible.at(node)
        if states.sum() == 1:
            return ListedFamily.known(range(node, node + 1))
        reach = min(self.reach, node - 1)
        silent = self.nearest_known(node, reach)
        tilt = np.zeros((self.chain.size, self.chain.size))
        if self.before_says_nothing(node):
            silent = 1
        elif reach:
            tilt = self.tilt_of_single(node)
        backward = partial(self.backward_of_single, node)
        return self.family(range(node, node + 1), states, backward, tilt, reach, silent)

    def backward_of_single(self, node: int, distances: IntArray) -> FloatArray:
        """G_a over the possible states of X_{i−a}."""
        result = np.empty((len(distances), self.chain.size, self.chain.size))
        quilts = node - distances
        settled = self.possible.settled
        late = quilts >= (self.length + 1 if settled is None else settled)
        if settled is not None and late.any():
            result[late] = self.settled_backward(node, distances[late])
        for j in np.flatnonzero(~late):
            support = self.possible.at(int(quilts[j]))
            result[j] = self.powers.backward(distances[j : j + 1], support)[0]
        return result

    def settled_backward(self, node: int, distances: IntArray) -> FloatArray:
        """G_a of a node whose quilt nodes count as part of the periodic part."""
        settled, period = self.possible.settled, self.possible.period
        assert settled is not None  # noqa: S101  (only called then)
        phases = (node - distances - settled) % period
        result = np.empty((len(distances), self.chain.size, self.chain.size))
        for phase in np.unique(phases).tolist():
            in_phase = phases == phase
            support = self.possible.at(settled + phase)
            result[in_phase] = self.powers.backward(distances[in_phase], support)
        return result

    def nearest_known(self, node: int, reach: int) -> int:
        """The distance to the nearest earlier node with one possible state, or reach + 1."""
        settled, period = self.possible.settled, self.possible.period
        repeated = range(1, 0 if settled is None else min(reach, node - settled, period) + 1)
        early = range(1 if settled is None else max(1, node - settled + 1), reach + 1)
        deterministic = (a for a in (*repeated, *early) if self.possible.at(node - a).sum() == 1)
        return next(deterministic, reach + 1)

    def tilt_of_single(self, node: int) -> FloatArray:
        """log m_i(x')/m_i(x), or the worst of it over all starts."""
        if self.any_start:
            return self.worst_start_tilt(node)
        law = self.law(node)
        tilt = log_ratios(law, law, self.possible.at(node))
        return np.asarray(tilt + product_margin(node, self.chain.size))

    def law(self, node: int) -> FloatArray:
        """Numbers proportional to the distribution of X_i."""
        if node <= len(self.marginals.values):
            return np.asarray(self.marginals.values[node - 1])
        return self.chain.marginal(node)

    def worst_start_tilt(self, node: int) -> FloatArray:
        """max_y log P^(i−1)(y, x')/P^(i−1)(y, x); it falls with i."""
        all_states = np.ones(self.chain.size, dtype=np.bool_)
        return np.asarray(self.powers.backward(np.array([node - 1]), all_states)[0].T)

    def before_says_nothing(self, node: int) -> bool:
        """Whether X_i is independent of X_{i−1}."""
        return node > 1 and _rows_agree(self.chain.transition[self.possible.at(node - 1)])

    def block(self, nodes: range) -> QuiltFamily:
        """The family of several nodes of one phase, with influences that hold for each of them."""
        if len(nodes) == 1:
            return self.single(nodes[0])
        first = nodes[0]
        tilt = self.worst_start_tilt(first) if self.any_start else self.tilt_of_block(nodes)
        return self.settled_family(nodes, tilt, self.block)

    def tilt_of_block(self, nodes: range) -> FloatArray:
        """An upper bound on log m_i(x')/m_i(x) over the nodes."""
        laws = self.marginals.values[nodes.start - 1 : nodes.stop - 1 : nodes.step]
        states = self.possible.at(nodes[0])
        tilt = log_ratios(laws.max(axis=0), laws.min(axis=0), states)
        return np.asarray(tilt + product_margin(nodes[-1], self.chain.size))

    def tail(self, nodes: range) -> QuiltFamily:
        """The family of nodes whose marginals are close to the limit, with the remaining distance
        added.

        Where that is still large, as in chains that mix over millions of nodes, the tail is split
        like a block.
        """
        if len(nodes) == 1:
            return self.single(nodes[0])
        limit, states = self.marginals.limit, self.possible.at(nodes[0])
        if limit is None:
            return self.trivial(nodes)
        slack = projective_distance(self.law(nodes[0]), limit, states)
        if not np.isfinite(slack):
            return self.trivial(nodes)
        margin = product_margin(nodes[0], self.chain.size) + 4 * relative_error(self.chain.size)
        tilt = log_ratios(limit, limit, states) + (slack + margin)
        return self.settled_family(nodes, tilt, None if slack <= CONVERGED else self.tail)

    def settled_family(
        self, nodes: range, tilt: FloatArray, part: FamilyOfNodes | None
    ) -> QuiltFamily:
        """The family of nodes of one phase, with quilt nodes in the periodic part or treated as if
        in it.
        """
        settled, first = self.possible.settled, nodes[0]
        assert settled is not None  # noqa: S101  (only called then)
        reach = self.reach if self.early_sets_are_smaller else min(self.reach, first - settled)
        silent = 1 if self.before_says_nothing(first) else reach + 1
        backward = partial(self.settled_backward, first)
        states = self.possible.at(first)
        return self.family(nodes, states, backward, tilt, reach, silent, part)

    @cached_property
    def early_sets_are_smaller(self) -> bool:
        """Whether quilt nodes before the periodic part may be treated as part of it."""
        settled = self.possible.settled
        if settled is None or self.possible.period > 1:
            return False
        return bool((self.possible.sets[:settled] <= self.possible.sets[settled - 1]).all())

    def family(
        self,
        nodes: range,
        states: BoolArray,
        backward: Callable[[IntArray], FloatArray],
        tilt: FloatArray,
        reach: int,
        silent: int,
        part: FamilyOfNodes | None = None,
    ) -> QuiltFamily:
        """Combine left and right sides; `part` builds sharper families of fewer nodes."""
        right = self.right_rows(states)
        left = PairRows(reach, backward, tilt, right.pairs, silent)
        complete = self.reach == self.length - 1
        if part is None:
            return IntervalFamily(nodes, self.length, left, right, self.origin, complete)
        halves = partial(_split_nodes, nodes, part)
        # a block that is short for its position is nearly exact: search it more precisely
        tolerance = _BLOCK_TOLERANCE * min(1.0, len(nodes) * nodes.step / nodes[0])
        return IntervalFamily(
            nodes, self.length, left, right, self.origin, complete, halves, tolerance
        )

    def right_rows(self, states: BoolArray) -> PairRows:
        """R_b between possible states, shared by all nodes with the same possible states."""
        cached = self._right.get(states.tobytes())
        if cached is None:
            size = self.chain.size
            pairs = np.flatnonzero(np.outer(states, states) & ~np.eye(size, dtype=np.bool_))
            flat = np.zeros((size, size))
            cached = PairRows(self.reach, self.powers.forward, flat, pairs, self.reach + 1)
            self._right[states.tobytes()] = cached
        return cached


def _split_nodes(nodes: range, part: FamilyOfNodes) -> Iterator[QuiltFamily]:
    """Split nodes from i on at node 2i, or in the middle if that is earlier."""
    middle = min(len(nodes) // 2, max(1, nodes[0] // nodes.step))
    yield part(nodes[:middle])
    yield part(nodes[middle:])


def _rows_agree(rows: FloatArray) -> bool:
    """Whether all rows are equal."""
    return bool((rows == rows[0]).all())
