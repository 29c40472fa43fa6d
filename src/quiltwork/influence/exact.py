"""Exact max-influence of every quilt of a Markov chain, node by node where nodes differ.

L_a and R_b of `docs/theory/max-influence.md` come from powers of P; a node enters through the
possible states and the marginal of X_i alone. Nodes that differ little form blocks whose influence
is an upper bound and that `refined` splits, so that only the worst nodes are looked at one by one.

Theorem: docs/theory/max-influence.md
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from functools import cached_property, partial

import numpy as np

from quiltwork.beliefs import MarkovChain
from quiltwork.beliefs.stationary import relative_error
from quiltwork.influence.families import IntervalFamily, KnownNodes
from quiltwork.influence.pairs import without_dominated
from quiltwork.influence.protocol import FloatArray, QuiltFamily
from quiltwork.influence.ratios import (
    BoolArray,
    Powers,
    backward_far,
    falling,
    log_ratios,
    product_margin,
)
from quiltwork.influence.timeline import UNSETTLED_NODES, Marginals, Supports, marginals, supports

_LARGEST_REACH = 1 << 17
_POWER_ENTRIES = 1 << 24


def exact_families(chain: MarkovChain, length: int, reach: int) -> Iterator[QuiltFamily]:
    """Yield families with the exact max-influence of quilts up to `reach` nodes away.

    O(k³·reach) time and O(k²·reach) memory, whatever the length. `reach` is cut so that the
    powers fit into memory (131,072 nodes for few states, 6,400 for 51).

    Theorem: docs/theory/max-influence.md
    """
    longest = max(64, min(_LARGEST_REACH, _POWER_ENTRIES // chain.size**2))
    cut = min(reach, length - 1, longest)
    work = _Work(chain, length, cut, cut == min(length - 1, longest))
    if isinstance(chain.initial, str) and chain.initial == "stationary":
        yield work.stationary()
    else:
        yield from work.started()


@dataclass(frozen=True, eq=False)
class _Work:
    """Everything the families of one chain share."""

    chain: MarkovChain
    length: int
    reach: int
    complete: bool

    @cached_property
    def powers(self) -> Powers:
        return Powers(self.chain.transition, self.reach)

    @cached_property
    def possible(self) -> Supports:
        return supports(self.chain, self.length)

    @cached_property
    def marginals(self) -> Marginals:
        return marginals(self.chain, self.possible, self.length)

    @cached_property
    def origin(self) -> int:
        return self.possible.known_prefix + 1

    @property
    def any_start(self) -> bool:
        return isinstance(self.chain.initial, str)

    @cached_property
    def settled_backward(self) -> list[FloatArray]:
        """`Powers.backward` for each support of the periodic part."""
        assert self.possible.settled is not None  # noqa: S101  (only called then)
        return [self.powers.backward(s) for s in self.possible.sets[self.possible.settled - 1 :]]

    def stationary(self) -> QuiltFamily:
        nodes = range(1, self.length + 1)
        states = self.chain.support(1)
        if states.sum() == 1:
            return KnownNodes(nodes)
        if self.reach == 0 or not self.chain.is_aperiodic:
            return self.trivial(nodes)
        law = self.chain.stationary
        tilt = log_ratios(law, law, states) + 2 * relative_error(self.chain.size)
        if _rows_agree(self.chain.transition[states]):
            left = np.zeros((self.reach, self.chain.size, self.chain.size))
        else:
            left = self.powers.backward(states) + tilt
        return self.family(nodes, states, left)

    def started(self) -> Iterator[QuiltFamily]:
        """Single nodes while supports change, then blocks, then one tail per phase.

        In a chain that never mixes the late nodes have the empty quilt only: every other has
        infinite influence, unless it reaches back to the first nodes, where it gains little.
        """
        settled = self.possible.settled
        if settled is None:
            last_single = len(self.possible.sets)
        else:
            last_single = settled + (0 if self.possible.mixes else UNSETTLED_NODES)
        last_single = min(self.length, last_single)
        yield from self.singles(range(1, last_single + 1))
        if settled is None:
            if last_single < self.length:
                yield self.trivial(range(last_single + 1, self.length + 1))
            return
        for phase in range(self.possible.period):
            first = last_single + 1 + phase
            nodes = range(first, self.length + 1, self.possible.period)
            if nodes:
                yield from self.settled_nodes(nodes)

    def singles(self, nodes: Iterable[int]) -> Iterator[QuiltFamily]:
        for node in nodes:
            yield self.single(node)

    def settled_nodes(self, nodes: range) -> Iterator[QuiltFamily]:
        if self.possible.at(nodes[0]).sum() == 1:
            yield KnownNodes(nodes)
        elif not self.possible.mixes or self.reach == 0:
            yield self.trivial(nodes)
        elif self.any_start:
            yield self.block(nodes)
        else:
            early = common_prefix(nodes, len(self.marginals.values))
            if early:
                yield self.block(early)
            late = nodes[len(early) :]
            if late and self.marginals.limit is not None:
                yield self.tail(late, self.marginals.limit)
            elif late:
                yield self.trivial(late)

    def trivial(self, nodes: range) -> QuiltFamily:
        """Only the empty quilt: no other has a finite influence, or none is known."""
        nothing = np.empty((0, 1))
        return IntervalFamily(nodes, self.length, nothing, nothing, self.origin, complete=True)

    def single(self, node: int) -> QuiltFamily:
        """One node, every quilt exact."""
        states = self.possible.at(node)
        if states.sum() == 1:
            return KnownNodes(range(node, node + 1))
        reach = min(self.reach, node - 1)
        if reach == 0 or self.before_says_nothing(node):
            left = np.zeros((reach, self.chain.size, self.chain.size))
        else:
            left = self.left_of_single(node, reach) + self.tilt_of_single(node)
            left[self.nearest_known(node, reach) :] = 0.0
        return self.family(range(node, node + 1), states, left)

    def nearest_known(self, node: int, reach: int) -> int:
        """The number of nodes between this one and the nearest earlier one with one state."""
        settled, period = self.possible.settled, self.possible.period
        repeated = range(1, 0 if settled is None else min(reach, node - settled, period) + 1)
        early = range(1 if settled is None else max(1, node - settled + 1), reach + 1)
        known = (a for a in (*repeated, *early) if self.possible.at(node - a).sum() == 1)
        return next(known, reach + 1) - 1

    def left_of_single(self, node: int, reach: int) -> FloatArray:
        settled = self.possible.settled
        shared = 0 if settled is None else max(0, min(reach, node - settled))
        rows = [self.settled_left(node, shared)] if shared else []
        rows += [
            self.powers.backward_at(a, self.possible.at(node - a))[np.newaxis]
            for a in range(shared + 1, reach + 1)
        ]
        return np.concatenate(rows)

    def settled_left(self, node: int, reach: int) -> FloatArray:
        """G_a of a node whose quilt nodes lie in the periodic part."""
        settled, period = self.possible.settled, self.possible.period
        assert settled is not None  # noqa: S101  (only called then)
        if period == 1:
            return self.settled_backward[0][:reach]
        phases = [(node - a - settled) % period for a in range(1, reach + 1)]
        return np.array([self.settled_backward[p][a] for a, p in enumerate(phases)])

    def tilt_of_single(self, node: int) -> FloatArray:
        if self.any_start:
            return self.worst_start_tilt(node)
        law = self.marginals.values[node - 1]
        tilt = log_ratios(law, law, self.possible.at(node))
        return np.asarray(tilt + product_margin(node, self.chain.size))

    def worst_start_tilt(self, node: int) -> FloatArray:
        """max_y log P^(i−1)(y, x')/P^(i−1)(y, x); it falls with i."""
        steps = node - 1
        everyone = np.ones(self.chain.size, dtype=np.bool_)
        if steps <= self.reach:
            return self.powers.backward_at(steps, everyone).T
        return backward_far(self.chain.transition, steps, everyone).T

    def before_says_nothing(self, node: int) -> bool:
        return node > 1 and _rows_agree(self.chain.transition[self.possible.at(node - 1)])

    def block(self, nodes: range) -> QuiltFamily:
        """Several nodes of one phase, at influences that hold for each of them."""
        if len(nodes) == 1:
            return self.single(nodes[0])
        settled = self.possible.settled
        assert settled is not None  # noqa: S101  (blocks are of the periodic part)
        first = nodes[0]
        reach = self.reach if self.early_sets_are_smaller else min(self.reach, first - settled)
        left = self.settled_left(first, reach)
        if self.before_says_nothing(first):
            left = np.zeros_like(left)
        elif self.any_start:
            left = left + self.worst_start_tilt(first)
        else:
            left = left + self.tilt_of_block(nodes)
        return self.family(nodes, self.possible.at(first), left, split=True)

    @cached_property
    def early_sets_are_smaller(self) -> bool:
        """Whether quilt nodes before the periodic part can be treated as if they were in it."""
        settled = self.possible.settled
        if settled is None or self.possible.period > 1:
            return False
        return bool((self.possible.sets[:settled] <= self.possible.sets[settled - 1]).all())

    def tilt_of_block(self, nodes: range) -> FloatArray:
        laws = self.marginals.values[nodes.start - 1 : nodes.stop - 1 : nodes.step]
        states = self.possible.at(nodes[0])
        tilt = log_ratios(laws.max(axis=0), laws.min(axis=0), states)
        return np.asarray(tilt + product_margin(nodes[-1], self.chain.size))

    def tail(self, nodes: range, limit: FloatArray) -> QuiltFamily:
        """All nodes after the marginals have converged, at the price of the rest of the way."""
        settled = self.possible.settled
        assert settled is not None  # noqa: S101  (marginals converge after that)
        reach = self.reach if self.early_sets_are_smaller else min(self.reach, nodes[0] - settled)
        left = self.settled_left(nodes[0], reach)
        if self.before_says_nothing(nodes[0]):
            left = np.zeros_like(left)
        else:
            states = self.possible.at(nodes[0])
            left = left + (log_ratios(limit, limit, states) + self.marginals.slack)
        return self.family(nodes, self.possible.at(nodes[0]), left)

    def family(
        self,
        nodes: range,
        states: BoolArray,
        left: FloatArray,
        split: bool = False,
    ) -> QuiltFamily:
        x, y = np.nonzero(np.outer(states, states) & ~np.eye(self.chain.size, dtype=np.bool_))
        right = self.powers.forward[:, x, y] if self.reach else np.empty((0, len(x)))
        rows = without_dominated(falling(np.maximum(left[:, x, y], 0.0)), right)
        family = partial(
            IntervalFamily,
            nodes,
            self.length,
            *rows,
            self.origin,
            self.complete,
        )
        return family(partial(self.halves, nodes)) if split else family()

    def halves(self, nodes: range) -> Iterator[QuiltFamily]:
        """Split early: a block that starts at node i ends by node 2i or in its middle."""
        doubled = max(1, nodes[0] // nodes.step)
        middle = min(len(nodes) // 2, doubled)
        yield self.block(nodes[:middle])
        yield self.block(nodes[middle:])


def common_prefix(nodes: range, last: int) -> range:
    """Return the nodes up to `last`."""
    return range(nodes.start, min(nodes.stop, last + 1), nodes.step)


def _rows_agree(rows: FloatArray) -> bool:
    return bool((rows == rows[0]).all())
