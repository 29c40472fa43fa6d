"""Projective influence along a chain: what a quilt betrays to whoever knows part of it.

H_b[x, x'] = R_b[x, x'] + R_b[x', x] on the right and G_a[x, x'] + G_a[x', x] on the left: marginals
cancel, so a node enters through its possible states alone, and all nodes past the first few share
one family. O(k³ log d) for each distance d that is looked at.

Theorem: docs/theory/bayesian-dp.md
"""

from __future__ import annotations

from collections.abc import Iterator
from functools import cached_property
from weakref import WeakKeyDictionary

import numpy as np

from quiltwork.beliefs import MarkovChain
from quiltwork.influence.quilts.exact_chains import ExactWork
from quiltwork.influence.quilts.families import ListedFamily
from quiltwork.influence.quilts.powers import Powers
from quiltwork.influence.quilts.protocol import FloatArray, IntArray, QuiltFamily
from quiltwork.influence.ratios import BoolArray


def projective_families(chain: MarkovChain, length: int, reach: int) -> Iterator[QuiltFamily]:
    """Yield families with the projective influence of quilts up to `reach` nodes away.

    Theorem: docs/theory/bayesian-dp.md
    """
    work = ProjectiveWork(chain, length, min(reach, length - 1))
    if isinstance(chain.initial, str) and chain.initial == "stationary":
        yield work.stationary()
    else:
        yield from work.started()


class BothWays(Powers):
    """Log-ratios of powers in both orders of a pair of states, added."""

    def forward(self, distances: IntArray) -> FloatArray:
        """R_d + R_dᵀ."""
        return _both(super().forward(distances))

    def backward(self, distances: IntArray, support: BoolArray) -> FloatArray:
        """G_d + G_dᵀ over the states in `support`."""
        return _both(super().backward(distances, support))


def _both(ratios: FloatArray) -> FloatArray:
    total = ratios + ratios.transpose(0, 2, 1)
    return np.where(total > 0, np.nextafter(total, np.inf), 0.0)


_KNOWN: WeakKeyDictionary[MarkovChain, BothWays] = WeakKeyDictionary()


def both_ways(chain: MarkovChain) -> BothWays:
    """Return the symmetric log-ratios of a chain's matrix, kept as long as the chain."""
    found = _KNOWN.get(chain)
    if found is None:
        found = _KNOWN[chain] = BothWays(chain.transition)
    return found


class ProjectiveWork(ExactWork):
    """The families of a chain without the marginals of its nodes, which cancel."""

    @cached_property
    def powers(self) -> Powers:
        """Symmetric log-ratios of powers of the matrix."""
        return both_ways(self.chain)

    @cached_property
    def _flat(self) -> FloatArray:
        return np.zeros((self.chain.size, self.chain.size))

    def tilt_of_stationary(self, states: BoolArray) -> FloatArray:
        """Nothing: the marginal cancels."""
        return self._flat

    def settled_nodes(self, nodes: range) -> Iterator[QuiltFamily]:
        """The nodes of one phase of the periodic part: one family."""
        if self.possible.at(nodes[0]).sum() == 1:
            yield ListedFamily.known(nodes)
        elif not self.possible.mixes or self.reach == 0:
            yield self.trivial(nodes)
        else:
            yield self._phase(nodes)

    def _phase(self, nodes: range) -> QuiltFamily:
        """Nodes that differ only in how far away the first ones are, whose states may be others."""
        if self.early_sets_agree:
            return self.settled_family(nodes, self._flat, None)
        if len(nodes) == 1:
            return self.single(nodes[0])
        return self.settled_family(nodes, self._flat, self._phase)

    @cached_property
    def early_sets_agree(self) -> bool:
        """Whether all nodes have the same possible states."""
        return bool((self.possible.sets == self.possible.sets[0]).all())

    def tilt_of_single(self, node: int) -> FloatArray:
        """Nothing: the marginal cancels."""
        return self._flat
