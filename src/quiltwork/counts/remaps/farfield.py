"""What the counts on one side of a block of answers cost, for every candidate of another block.

Counts come in blocks of `size`. The counts before block b, weighted p[i]·α^(bB−i), form one law for
all answers of b; L(b, c) is its mean loss to each candidate of block c. Powers being sums of
exponentials, the law enters by its moments E[x^d·e^(−t·x)]: of all counts before a boundary (one
recursion over the blocks), and of the counts between two boundaries, which a queue of two stacks
gives by joining only. No step subtracts, so nothing cancels, and laws are kept as a logarithm of
their mass and means, so nothing underflows. Cost: O(K) per pair of blocks, amortised over pairs
that move one way.

Theorem: geometric-mechanism, *Powers that are no integers*.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import cached_property, lru_cache
from typing import NamedTuple

import numpy as np

from quiltwork.counts.consumers.losses import FloatArray
from quiltwork.counts.remaps.exponentials import PowerSum
from quiltwork.counts.remaps.laws import Entering, entering


class Stretch(NamedTuple):
    """Neighbouring counts, with weights p[i]·α^−(i−first): their length, mass and mean sources."""

    length: int
    log_mass: float
    moments: FloatArray


@dataclass(frozen=True, eq=False)
class Layout:
    """What all blocks of `size` counts share: the power's terms and the losses inside a block."""

    terms: PowerSum
    size: int
    kernel: FloatArray

    @cached_property
    def sources(self) -> FloatArray:
        """Sources at the distances 0..size."""
        return self.terms.sources(np.arange(self.size + 1))

    @cached_property
    def targets(self) -> FloatArray:
        """Targets at the distances 0..size, as columns."""
        return np.ascontiguousarray(self.terms.targets(np.arange(self.size + 1)).T)


class SideCosts:
    """L(b, c) for one prior in blocks; the mirror image of the prior gives the other side.

    Args:
        layout: what all blocks share.
        rate: −ln α.
        log_prior: logarithms of the prior, one row per block.
        log_before: log of Σ_{i < bB} p[i]·α^(bB−i) for each b.
    """

    def __init__(
        self, layout: Layout, rate: float, log_prior: FloatArray, log_before: FloatArray
    ) -> None:
        self._size, self._rate = layout.size, rate
        self._shifter = lru_cache(maxsize=64)(layout.terms.shifter)
        self._log_before = log_before
        own = entering(log_prior, log_before, rate)
        self._law, self._log_block = own.law, own.log_mass
        self._sources = layout.sources[:-1]
        self._ahead = np.ascontiguousarray(layout.targets[:, :-1])
        self._behind = np.ascontiguousarray(layout.targets[:, :0:-1])
        self._before = self._moments_before(layout.sources[:0:-1], own)
        self._after_boundary = self._before @ self._ahead
        self._inside = self._law @ layout.kernel
        self._nothing = Stretch(0, -math.inf, np.zeros(len(self._ahead)))
        self._pivot, self._front, self._back = 0, [self._nothing], [self._nothing]

    def _moments_before(self, sources: FloatArray, own: Entering) -> FloatArray:
        """Return the mean sources of all counts before each block, by recursion."""
        kept = own.old.tolist()
        moments = np.zeros((len(kept), sources.shape[1]))
        np.matmul((own.new[:, None] * own.law)[:-1], sources, out=moments[1:])
        move = self._shifter(self._size)
        for b in range(len(kept) - 1):
            if kept[b]:
                moments[b + 1] += kept[b] * move(moments[b])
        return moments

    def at(self, b: int, c: int) -> FloatArray:
        """Return L(b, c): the mean loss to each candidate of block c."""
        if c == b:
            return np.asarray(self._after_boundary[b])
        if c > b:
            gap = (c - b) * self._size
            return _times(self._shifter(gap)(self._before[b]), self._ahead)
        between = self._between(c + 1, b)
        logs = (
            float(self._log_before[c]),
            float(self._log_block[c]),
            between.log_mass + self._rate * self._size,
        )
        left, inside, right = _shares(*logs)
        cost = left * self._after_boundary[c] + inside * self._inside[c]
        if right:
            cost += right * _times(between.moments, self._behind)
        return np.asarray(cost)

    def _between(self, first: int, end: int) -> Stretch:
        """Join blocks first..end−1 from two stacks that meet at a pivot.

        A new pivot lies in the middle, so that it stays inside while an end moves half the way.
        """
        if not first <= self._pivot <= end:
            self._pivot = (first + end) // 2
            self._front, self._back = [self._nothing], [self._nothing]
        while self._pivot - len(self._front) >= first:
            block = self._block(self._pivot - len(self._front))
            self._front.append(self._join(block, self._front[-1]))
        while self._pivot + len(self._back) <= end:
            block = self._block(self._pivot + len(self._back) - 1)
            self._back.append(self._join(self._back[-1], block))
        return self._join(self._front[self._pivot - first], self._back[end - self._pivot])

    def _block(self, b: int) -> Stretch:
        return Stretch(self._size, float(self._log_block[b]), _times(self._law[b], self._sources))

    def _join(self, left: Stretch, right: Stretch) -> Stretch:
        length = left.length + right.length
        log_right = right.log_mass + self._rate * left.length
        if log_right == -math.inf:
            return Stretch(length, left.log_mass, left.moments)
        moved = self._shifter(left.length)(right.moments)
        if left.log_mass == -math.inf:
            return Stretch(length, log_right, moved)
        share_left, share_right = _shares(left.log_mass, log_right)
        total = max(left.log_mass, log_right) - math.log(max(share_left, share_right))
        return Stretch(length, total, share_left * left.moments + share_right * moved)


def _times(row: FloatArray, matrix: FloatArray) -> FloatArray:
    """Return row·matrix in this thread: products this small lose more by waking others."""
    return np.asarray(np.einsum("i,ij->j", row, matrix))


def _shares(*logs: float) -> list[float]:
    """Return the parts of a whole from the logarithms of their masses; zeros if all are 0."""
    top = max(logs)
    if top == -math.inf:
        return [0.0] * len(logs)
    masses = [math.exp(log - top) for log in logs]
    return [mass / sum(masses) for mass in masses]
