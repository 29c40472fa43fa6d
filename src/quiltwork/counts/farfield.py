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
from typing import NamedTuple

import numpy as np

from quiltwork.counts.exponentials import PowerSum
from quiltwork.counts.losses import FloatArray


class Stretch(NamedTuple):
    """Neighbouring counts, with weights p[i]·α^−(i−first): their length, mass and mean sources."""

    length: int
    log_mass: float
    moments: FloatArray


class SideCosts:
    """L(b, c) for one prior in blocks; the mirror image of the prior gives the other side.

    Args:
        log_prior: logarithms of the prior, one row per block.
        log_before: log of Σ_{i < bB} p[i]·α^(bB−i) for each b.
    """

    def __init__(
        self, terms: PowerSum, rate: float, log_prior: FloatArray, log_before: FloatArray,
        kernel: FloatArray,
    ) -> None:
        self._terms, self._rate, self._size = terms, rate, log_prior.shape[1]
        self._log_before = log_before
        offsets = np.arange(self._size)
        growing = log_prior + rate * offsets
        self._log_block = np.logaddexp.reduce(growing, axis=1)
        finite = np.where(np.isfinite(self._log_block), self._log_block, 0.0)
        self._law = np.exp(growing - finite[:, None])
        self._law /= np.maximum(self._law.sum(axis=1, keepdims=True), 1e-300)
        self._sources = terms.sources(offsets)
        self._ahead = terms.targets(offsets).T
        self._behind = terms.targets(self._size - offsets).T
        self._before = self._moments_before()
        self._after_boundary = self._before @ self._ahead
        self._inside = self._law @ kernel
        self._nothing = Stretch(0, -math.inf, np.zeros(len(self._ahead)))
        self._pivot, self._front, self._back = 0, [self._nothing], [self._nothing]

    def _moments_before(self) -> FloatArray:
        blocks = len(self._law)
        both = np.logaddexp(self._log_before, self._log_block)
        total = np.where(np.isfinite(both), both, 0.0)
        kept = np.exp(self._log_before - total).tolist()
        entering = np.exp(self._log_block - total)[:, None] * self._law
        sources = self._terms.sources(self._size - np.arange(self._size))
        decay = np.exp(-self._terms.rates * self._size)[:, None]
        pascal = self._terms._pascal(self._size)
        moments = np.zeros((blocks, len(decay), len(pascal)))
        for b in range(blocks - 1):
            new = (entering[b] @ sources).reshape(moments.shape[1:])
            moments[b + 1] = kept[b] * (decay * (moments[b] @ pascal)) + new
        return moments.reshape(blocks, -1)

    def at(self, b: int, c: int) -> FloatArray:
        """Return L(b, c): the mean loss to each candidate of block c."""
        if c == b:
            return np.asarray(self._after_boundary[b])
        if c > b:
            gap = (c - b) * self._size
            return np.asarray(self._terms.shift(self._before[b], gap) @ self._ahead)
        between = self._between(c + 1, b)
        logs = (
            float(self._log_before[c]),
            float(self._log_block[c]),
            between.log_mass + self._rate * self._size,
        )
        left, inside, right = _shares(*logs)
        cost = left * self._after_boundary[c] + inside * self._inside[c]
        return cost + right * (between.moments @ self._behind) if right else cost

    def _between(self, first: int, end: int) -> Stretch:
        """Join blocks first..end−1 from two stacks that meet at a pivot."""
        if not first <= self._pivot <= end:
            self._pivot = end if first > self._pivot else first
            self._front, self._back = [self._nothing], [self._nothing]
        while self._pivot - len(self._front) >= first:
            block = self._block(self._pivot - len(self._front))
            self._front.append(self._join(block, self._front[-1]))
        while self._pivot + len(self._back) <= end:
            block = self._block(self._pivot + len(self._back) - 1)
            self._back.append(self._join(self._back[-1], block))
        return self._join(self._front[self._pivot - first], self._back[end - self._pivot])

    def _block(self, b: int) -> Stretch:
        return Stretch(self._size, float(self._log_block[b]), self._law[b] @ self._sources)

    def _join(self, left: Stretch, right: Stretch) -> Stretch:
        length = left.length + right.length
        log_right = right.log_mass + self._rate * left.length
        if log_right == -math.inf or left.log_mass == -math.inf:
            moved = self._terms.shift(right.moments, left.length)
            kept = (left.log_mass, left.moments) if log_right == -math.inf else (log_right, moved)
            return Stretch(length, *kept)
        share_left, share_right = _shares(left.log_mass, log_right)
        total = max(left.log_mass, log_right) - math.log(max(share_left, share_right))
        moved = self._terms.shift(right.moments, left.length)
        return Stretch(length, total, share_left * left.moments + share_right * moved)


def _shares(*logs: float) -> list[float]:
    """Return the parts of a whole from the logarithms of their masses; zeros if all are 0."""
    top = max(logs)
    if top == -math.inf:
        return [0.0] * len(logs)
    masses = [math.exp(log - top) for log in logs]
    return [mass / sum(masses) for mass in masses]
