"""Families of candidate quilts: intervals of a chain by distance, clusters, and arbitrary sets."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass, field, replace

import numpy as np

from quiltwork.influence.quilts.protocol import FloatArray, IntArray, QuiltFamily

_CHUNK = 1 << 22


@dataclass(frozen=True, eq=False)
class PairRows:
    """Matrices [x, x'] by distance plus a fixed one, computed on demand and restricted to some
    entries.

    Negative entries become 0. Entries fall with distance.

    Args:
        reach: the largest distance.
        matrices: from distances to one matrix each.
        tilt: added to each.
        pairs: the entries that count.
        silent_from: rows at this distance and beyond are 0.
    """

    reach: int
    matrices: Callable[[IntArray], FloatArray]
    tilt: FloatArray
    pairs: IntArray
    silent_from: int
    _most: dict[int, float] = field(default_factory=dict, repr=False)

    def __len__(self) -> int:
        """The largest distance."""
        return self.reach

    def take(self, distances: IntArray) -> FloatArray:
        """The rows at these distances."""
        result = np.zeros((len(distances), len(self.pairs)))
        nonzero = np.flatnonzero(distances < self.silent_from)
        step = max(1, _CHUNK // self.tilt.size)
        for first in range(0, len(nonzero), step):
            chunk = nonzero[first : first + step]
            entries = self.matrices(distances[chunk]).reshape(len(chunk), -1)[:, self.pairs]
            result[chunk] = np.maximum(entries + self.tilt.ravel()[self.pairs], 0.0)
        return result

    def most(self, distances: IntArray) -> FloatArray:
        """The largest entry of each of these rows, each computed once."""
        new = np.array([d for d in distances.tolist() if d not in self._most], dtype=np.int64)
        step = max(1, _CHUNK // max(1, len(self.pairs)))
        for first in range(0, len(new), step):
            chunk = new[first : first + step]
            largest = self.take(chunk).max(axis=1, initial=0.0)
            self._most.update(zip(chunk.tolist(), largest.tolist(), strict=True))
        return np.array([self._most[d] for d in distances.tolist()], dtype=np.float64)

    def times(self, factor: float) -> PairRows:
        """All influences times a power of two, which is exact in floating point."""
        return replace(
            self, matrices=lambda d: factor * self.matrices(d), tilt=factor * self.tilt, _most={}
        )


def bounded_rows(reach: int, at: Callable[[IntArray], FloatArray]) -> PairRows:
    """One bound per distance for all states; `at` computes it for an array of distances."""
    return replace(silent_rows(reach), matrices=at, silent_from=reach + 1)


def silent_rows(reach: int = 0) -> PairRows:
    """No influence at any distance; without a reach no quilt node on that side."""
    return PairRows(reach, np.zeros_like, np.zeros(1), np.array([0]), silent_from=1)


TO_END = -1
"""A number of nodes before or after node i: all of them, so that side of the quilt is dropped."""

_CHUNK = 1 << 20


@dataclass(frozen=True, eq=False)
class IntervalFamily(QuiltFamily):
    """Quilts {i−a, i+b} of a chain, one- and two-sided, and the empty one.

    Left and right of X_i are independent given X_i, so e({i−a, i+b}|i) is the largest entry of left
    row a plus right row b (one entry per pair of states, or a single bound), and a dropped side
    contributes 0. Where a quilt node would lie outside the series the side is dropped, which lowers
    both the influence and the nearby set.

    Args:
        nodes: the nodes that share the rows.
        length: of the series.
        left_rows: by distance a = 1, 2, …
        right_rows: by distance b = 1, 2, …
        origin: the first node with several possible states; the nodes before it are constants,
            so that a dropped left side ends there.
        complete: whether a larger reach would add nothing.
        refinement: builds the families of `refined`; None if the influences are exact.
        tolerance: the relative precision of a search: 0 unless the family is refined anyway.
    """

    nodes: range
    length: int
    left_rows: PairRows
    right_rows: PairRows
    origin: int = 1
    complete: bool = False
    refinement: Callable[[], Iterable[QuiltFamily]] | None = field(default=None, repr=False)
    tolerance: float = 0.0

    def refined(self) -> Iterable[QuiltFamily]:
        """Families for parts of the nodes; none if the influences are exact."""
        return () if self.refinement is None else self.refinement()

    def span(self, node: int, left: IntArray, right: IntArray) -> tuple[IntArray, IntArray]:
        """First and last nearby node for this many nodes before and after, `TO_END` for all."""
        start = np.where(left == TO_END, self.origin, np.maximum(self.origin, node - left))
        stop = np.where(right == TO_END, self.length, np.minimum(self.length, node + right))
        return start, stop

    def separator(self, node: int, left: int, right: int) -> tuple[int, ...]:
        """The quilt nodes around this many nearby nodes."""
        before = self.origin - 1 if left == TO_END else max(self.origin - 1, node - left - 1)
        after = 0 if right == TO_END else node + right + 1
        kept = (before,) if before >= 1 else ()
        return (*kept, after) if 0 < after <= self.length else kept


def pairwise_most(
    left: FloatArray, right: FloatArray, of_left: IntArray, of_right: IntArray
) -> FloatArray:
    """Return the largest entry of left[of_left[j]] + right[of_right[j]] for each j, rounded up."""
    result = np.zeros(len(of_left))
    step = max(1, _CHUNK // max(1, left.shape[1]))
    for first in range(0, len(of_left), step):
        chunk = slice(first, first + step)
        sums = left[of_left[chunk]] + right[of_right[chunk]]
        result[chunk] = sums.max(axis=1, initial=0.0)
    # one addition: the next float covers its rounding; 0 stays exactly 0
    return np.where(result > 0, np.nextafter(result, np.inf), result)


@dataclass(frozen=True, eq=False)
class ListedFamily(QuiltFamily):
    """Nodes with the same few candidates, with arbitrary nearby sets, as in networks.

    Candidate `owner[r]` has the run start[r]..stop[r]; runs of one candidate do not touch. Its
    influence is rounded up, +inf if unknown.
    """

    nodes: range
    owner: IntArray
    start: IntArray
    stop: IntArray
    quilts: tuple[tuple[int, ...], ...] = ((),)
    influence: FloatArray = field(default_factory=lambda: np.zeros(1))

    @classmethod
    def known(cls, nodes: range) -> ListedFamily:
        """The family of nodes with one possible state: they have no secret, so nothing is
        nearby.
        """
        return cls(nodes, np.array([0]), np.array([nodes[0]]), np.array([nodes[0] - 1]))

    @property
    def is_known(self) -> bool:
        """Whether the family is of nodes with one possible state."""
        return bool((self.stop < self.start).all())


@dataclass(frozen=True, eq=False)
class ClusterFamily(QuiltFamily):
    """Rows in clusters: the nearby set is the row's own cluster, at influence 0.

    Cluster c holds the runs first[offset[c]:offset[c+1]] to last[…]; `cluster` is the cluster of
    each row. O(n) memory.
    """

    nodes: range
    cluster: IntArray
    offset: IntArray
    first: IntArray
    last: IntArray

    def of(self, node: int) -> ListedFamily:
        """The single candidate of a row."""
        own = self.cluster[node - 1]
        runs = slice(self.offset[own], self.offset[own + 1])
        start, stop = self.first[runs], self.last[runs]
        return ListedFamily(range(node, node + 1), np.zeros_like(start), start, stop)
