"""The price of quilts against adversaries who already know some rows.

For Bayesian DP a quilt Q of node i must separate i and its nearby nodes from the rest in the moral
graph. An adversary may know some nearby nodes L, so the influence of a quilt is the worst over L:
projective, h = max log [P(x_Q|x_i,x_L)P(x_Q'|x_i',x_L)/(P(x_Q|x_i',x_L)P(x_Q'|x_i,x_L))], or as in
the paper 4b with b = max_L I(X_Q ⇝ X_i | X_L) ≥ h/2. Along a chain L = ∅ is the worst, and with
H_b[x, x'] = R_b[x, x'] + R_b[x', x] on the right and G_a[x, x'] + G_a[x', x] on the left marginals
cancel: a node enters through its possible states alone, and all nodes past the first few share one
family. O(k³ log d) for each distance d.

Theorem: docs/theory/bayesian-dp.md
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace
from functools import cached_property, singledispatch
from typing import Any, Literal, TypeAlias

import numpy as np

from quiltwork.beliefs import ChainBox, Clusters, CyclicChain, DatedChain, HiddenChain, MarkovChain
from quiltwork.caching import cached_by_owner
from quiltwork.errors import UnsupportedError
from quiltwork.influence.quilts.exact_chains import ExactChainQuilts
from quiltwork.influence.quilts.families import IntervalFamily, ListedFamily
from quiltwork.influence.quilts.powers import Powers
from quiltwork.influence.quilts.protocol import FloatArray, IntArray, QuiltFamily, quilt_families
from quiltwork.influence.quilts.quilt_bound import QuiltBound
from quiltwork.influence.ratios import BoolArray


class SymmetricPowers(Powers):
    """Log-ratios of powers, summed over both orders of a pair of states."""

    def forward(self, distances: IntArray) -> FloatArray:
        """R_d + R_dᵀ."""
        return _both(super().forward(distances))

    def backward(self, distances: IntArray, support: BoolArray) -> FloatArray:
        """G_d + G_dᵀ over the states in `support`."""
        return _both(super().backward(distances, support))


def _both(ratios: FloatArray) -> FloatArray:
    total = ratios + ratios.transpose(0, 2, 1)
    # one addition of rounded numbers; 0 stays exactly 0
    return np.where(total > 0, np.nextafter(total, np.inf), 0.0)


@cached_by_owner
def symmetric_powers(chain: MarkovChain) -> SymmetricPowers:
    """Return the symmetric log-ratios of a chain's matrix, cached as long as the chain exists."""
    return SymmetricPowers(chain.transition)


class ProjectiveChainQuilts(ExactChainQuilts):
    """The interval families of a chain without the marginals of its nodes, which cancel."""

    @cached_property
    def powers(self) -> Powers:
        """Symmetric log-ratios of powers of the matrix."""
        return symmetric_powers(self.chain)

    @cached_property
    def _flat(self) -> FloatArray:
        return np.zeros((self.chain.size, self.chain.size))

    def tilt_of_stationary(self, states: BoolArray) -> FloatArray:
        """0: the marginal cancels."""
        return self._flat

    def settled_nodes(self, nodes: range) -> Iterator[QuiltFamily]:
        """The family of the nodes of one phase of the periodic part."""
        if self.possible.at(nodes[0]).sum() == 1:
            yield ListedFamily.known(nodes)
        elif not self.possible.mixes or self.reach == 0:
            yield self.trivial(nodes)
        else:
            yield self._phase(nodes)

    def _phase(self, nodes: range) -> QuiltFamily:
        """A family of nodes that differ only in their distance to the first ones."""
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
        """0: the marginal cancels."""
        return self._flat


Bound: TypeAlias = Literal["tight", "paper"]

PAPER_FACTOR = 4.0


@dataclass(frozen=True, eq=False)
class AdversaryBound(QuiltBound):
    """The bound of one belief against adversaries who may know any rows."""

    bound: Bound

    def families(self, reach: int) -> Iterator[QuiltFamily]:
        """The quilt families of the belief, with influences that hold for any known rows."""
        return adversary_families(self.belief, self.length, reach, self.bound)


@singledispatch
def adversary_families(belief: Any, length: int, reach: int, bound: Bound) -> Iterator[QuiltFamily]:
    """Yield families as `quilt_families` does, with influence h ("tight") or 4b ("paper") per
    quilt.

    Raises:
        UnsupportedError: for beliefs without a proof.
    """
    raise UnsupportedError(
        f"Bayesian DP is not proved for a {type(belief).__name__}; use another belief, such as a "
        "MarkovChain."
    )


@adversary_families.register
def _(belief: Clusters, length: int, reach: int, bound: Bound) -> Iterator[QuiltFamily]:
    return quilt_families(belief, length, reach, "exact")


@adversary_families.register
def _(belief: HiddenChain, length: int, reach: int, bound: Bound) -> Iterator[QuiltFamily]:
    """All rows at once; the sweep is what is sharp here, and the papers have no lemma."""
    return quilt_families(belief, length, reach, "group")


@adversary_families.register
def _(belief: MarkovChain, length: int, reach: int, bound: Bound) -> Iterator[QuiltFamily]:
    if bound == "tight":
        return ProjectiveChainQuilts(belief, length, min(reach, length - 1)).families()
    return map(_four_times, quilt_families(belief, length, reach, "exact"))


@adversary_families.register(ChainBox)
@adversary_families.register(CyclicChain)
@adversary_families.register(DatedChain)
def _(
    belief: ChainBox | CyclicChain | DatedChain, length: int, reach: int, bound: Bound
) -> Iterator[QuiltFamily]:
    """Contraction bounds the projective influence itself."""
    families = quilt_families(belief, length, reach, "contraction")
    return families if bound == "tight" else map(_four_times, families)


def _four_times(family: QuiltFamily) -> QuiltFamily:
    """The family with four times the influence; rows of known nodes have none."""
    if not isinstance(family, IntervalFamily):
        return family
    finer = family.refinement

    def refined() -> Iterable[QuiltFamily]:
        return map(_four_times, family.refined())

    return replace(
        family,
        left_rows=family.left_rows.times(PAPER_FACTOR),
        right_rows=family.right_rows.times(PAPER_FACTOR),
        refinement=None if finer is None else refined,
    )
