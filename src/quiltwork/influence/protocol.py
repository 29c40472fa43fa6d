"""The one question every belief answers: for node i, which quilts, and at what influence?

A quilt Q of node i separates a *nearby* set N ∋ i from the rest. What the rest can betray about
X_i is at most the max-influence e(Q|i), so a collection of releases leaks at most
min_Q [cost of N + e(Q|i)] about X_i (`docs/theory/influence-curve.md`). Calibration, the influence
curve, accounting and Bayesian DP use `quilt_families` and nothing else of a belief.

Nodes are 1-based. Nodes that share their candidates, up to translation, come as one family, so
that nothing grows with the length of the series.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import singledispatch
from typing import Any, Literal, Protocol, TypeAlias

import numpy as np
from numpy.typing import NDArray

from quiltwork.errors import UnsupportedError

IntArray: TypeAlias = NDArray[np.int64]
FloatArray: TypeAlias = NDArray[np.float64]
InfluenceMethod: TypeAlias = Literal["exact", "approx", "spectral", "contraction", "group", "entry"]

TO_END = -1
"""In `IntervalFamily`: the nearby set runs to that end of the series."""


class QuiltFamily(Protocol):
    """Candidate quilts shared by some nodes: `influence[j]` bounds e(Q_j|i) from above."""

    @property
    def influence(self) -> FloatArray:
        """One influence per candidate, rounded up; +inf where nothing is known."""

    @property
    def nodes(self) -> range | IntArray:
        """The nodes that share these candidates."""

    def spans(self, node: int) -> tuple[IntArray, IntArray, IntArray]:
        """Nearby sets as maximal runs of nodes: (candidate index, first node, last node)."""

    def quilt(self, node: int, candidate: int) -> tuple[int, ...]:
        """The separator itself; () is the empty quilt."""


@dataclass(frozen=True, eq=False)
class IntervalFamily:
    """Quilts of a chain: candidate j keeps `left[j]` nodes before and `right[j]` after node i.

    The quilt nodes themselves are i−left−1 and i+right+1; `TO_END` drops that side of the quilt.
    """

    first: int
    last: int
    length: int
    left: IntArray
    right: IntArray
    influence: FloatArray

    @property
    def nodes(self) -> range:
        """The nodes first..last."""
        return range(self.first, self.last + 1)

    def spans(self, node: int) -> tuple[IntArray, IntArray, IntArray]:
        """One run of nodes per candidate."""
        start = np.where(self.left == TO_END, 1, node - self.left)
        stop = np.where(self.right == TO_END, self.length, node + self.right)
        return np.arange(len(self.influence)), start, stop

    def quilt(self, node: int, candidate: int) -> tuple[int, ...]:
        """The one or two separating nodes."""
        left, right = int(self.left[candidate]), int(self.right[candidate])
        before = () if left == TO_END else (node - left - 1,)
        after = () if right == TO_END else (node + right + 1,)
        return before + after


@dataclass(frozen=True, eq=False)
class SetFamily:
    """Quilts with arbitrary nearby sets, as in clusters and networks."""

    nodes: IntArray
    owner: IntArray
    start: IntArray
    stop: IntArray
    quilts: tuple[tuple[int, ...], ...]
    influence: FloatArray

    def spans(self, node: int) -> tuple[IntArray, IntArray, IntArray]:
        """The runs of each candidate's nearby set, which here do not depend on the node."""
        return self.owner, self.start, self.stop

    def quilt(self, node: int, candidate: int) -> tuple[int, ...]:
        """The separating nodes."""
        return self.quilts[candidate]


@singledispatch
def quilt_families(
    belief: Any, length: int | None, reach: int, method: InfluenceMethod
) -> Iterator[QuiltFamily]:
    """Yield families that together cover every node, with all quilts of ≤ `reach` nearby nodes.

    The trivial quilt (everything is nearby, influence 0) is always among the candidates of a
    node, and a node with one possible state has the candidate "nothing is nearby, influence 0"
    (an empty run: last node < first node). Larger `reach` only adds candidates.
    """
    raise UnsupportedError(
        f"{type(belief).__name__} is not a belief: give a MarkovChain, ChainBox, Clusters, "
        "Network or a list of them."
    )
