"""What quilts cost against adversaries who already know some rows.

For Bayesian DP a quilt Q of node i must separate i and its nearby nodes from the rest in the moral
graph. An adversary may know some nearby nodes L, so the influence of a quilt is the worst over L:
projective, h = max log [P(x_Q|x_i,x_L)P(x_Q'|x_i',x_L)/(P(x_Q|x_i',x_L)P(x_Q'|x_i,x_L))], or as in
the paper 4b with b = max_L I(X_Q ⇝ X_i | X_L) ≥ h/2. Along a chain L = ∅ is the worst.

Theorem: docs/theory/bayesian-dp.md
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace
from functools import singledispatch
from typing import Any, Literal, TypeAlias

from quiltwork.beliefs import ChainBox, Clusters, CyclicChain, HiddenChain, MarkovChain
from quiltwork.errors import UnsupportedError
from quiltwork.influence.bayesian.projective import projective_families
from quiltwork.influence.quilts.adaptive import Outlook
from quiltwork.influence.quilts.families import IntervalFamily
from quiltwork.influence.quilts.protocol import QuiltFamily, quilt_families

Bound: TypeAlias = Literal["tight", "paper"]

PAPER_FACTOR = 4.0


@dataclass(frozen=True, eq=False)
class AdversaryOutlook(Outlook):
    """One belief seen by adversaries who may know any rows."""

    bound: Bound

    def families(self, reach: int) -> Iterator[QuiltFamily]:
        """The families of the belief, at influences that hold whatever the adversary knows."""
        return adversary_families(self.belief, self.length, reach, self.bound)


@singledispatch
def adversary_families(belief: Any, length: int, reach: int, bound: Bound) -> Iterator[QuiltFamily]:
    """Yield families as `quilt_families` does, at h ("tight") or 4b ("paper") per quilt.

    Raises:
        UnsupportedError: for beliefs about which nothing is proven here.
    """
    raise UnsupportedError(
        f"Bayesian DP under {type(belief).__name__} has no proof here; give a MarkovChain, "
        "CyclicChain, HiddenChain, ChainBox, Clusters, Network or a list of them."
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
        return projective_families(belief, length, reach)
    return map(_four_times, quilt_families(belief, length, reach, "exact"))


@adversary_families.register(ChainBox)
@adversary_families.register(CyclicChain)
def _(
    belief: ChainBox | CyclicChain, length: int, reach: int, bound: Bound
) -> Iterator[QuiltFamily]:
    """Contraction bounds the projective influence itself."""
    families = quilt_families(belief, length, reach, "contraction")
    return families if bound == "tight" else map(_four_times, families)


def _four_times(family: QuiltFamily) -> QuiltFamily:
    """Known nodes have no influence; rows of a chain are multiplied."""
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
