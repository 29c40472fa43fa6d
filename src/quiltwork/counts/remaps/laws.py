"""Posteriors in blocks of answers: a row per answer, the counts beyond its block as two laws.

For the answers of a block, the counts before it have weights in fixed proportions, and so have the
counts after it. A row therefore holds the block's own counts and two shares. Everything is kept as
logarithms until rows are made, so that masses below the least float still count. Cost: O(n·B).

Theorem: geometric-mechanism, *Powers that are no integers*.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np

from quiltwork.counts.consumers.losses import FloatArray
from quiltwork.counts.remaps.filters import Posteriors

_SAFE_LOG = 60.0  # what lies this far below a block's largest weight loses no digit above 1e-280


@dataclass(frozen=True, eq=False)
class BlockLaws:
    """What the answers of each block of `size` share.

    Attributes:
        rate: −ln α.
        log_prior: logarithms of the prior, one row per block, −inf beyond n.
        log_before: log of Σ_{i < bB} p[i]·α^(bB−i) for each block b.
        log_after: its mirror image: the counts after each block, from its last answer.
    """

    size: int
    rate: float
    log_prior: FloatArray
    log_before: FloatArray
    log_after: FloatArray

    @property
    def blocks(self) -> int:
        """How many blocks there are."""
        return len(self.log_prior)

    def entering_left(self) -> Entering:
        """Return how blocks enter the counts before the next block."""
        return entering(self.log_prior, self.log_before, self.rate)

    def entering_right(self) -> Entering:
        """Return how blocks enter the counts after the block before, in the blocks' own order."""
        mirrored = self.log_prior[::-1, ::-1], self.log_after[::-1]
        return entering(*mirrored, self.rate).mirrored()

    @cached_property
    def _fading(self) -> FloatArray:
        return np.asarray(self.rate * np.arange(self.size, dtype=np.float64))

    @cached_property
    def _decay(self) -> FloatArray:
        offsets = np.arange(self.size)
        return np.asarray(self.rate * np.abs(offsets[:, None] - offsets))

    @cached_property
    def _factors(self) -> tuple[FloatArray, FloatArray]:
        return np.exp(-self._fading), np.exp(-self._decay)

    def rows(self, first: int, end: int) -> FloatArray:
        """Return the rows of blocks first..end−1: before, the block's own counts, after."""
        part = slice(first, end)
        weights = np.empty((end - first, self.size, self.size + 2))
        if self.rate * self.size < _SAFE_LOG:
            self._multiply(part, weights)
            weights /= weights.sum(axis=2, keepdims=True)
            return weights
        weights[:, :, 0] = self.log_before[part, None] - self._fading
        weights[:, :, 1:-1] = self.log_prior[part, None, :] - self._decay
        weights[:, :, -1] = self.log_after[part, None] - self._fading[::-1]
        return _normalized(weights)

    def _multiply(self, part: slice, weights: FloatArray) -> None:
        """Fill in weights relative to the block's largest, which is near to every row's own."""
        before, own, after = self.log_before[part], self.log_prior[part], self.log_after[part]
        top = np.maximum(np.maximum(before, after), own.max(axis=1))
        fading, decay = self._factors
        np.multiply.outer(np.exp(before - top), fading, out=weights[:, :, 0])
        np.multiply(np.exp(own - top[:, None])[:, None, :], decay, out=weights[:, :, 1:-1])
        np.multiply.outer(np.exp(after - top), fading[::-1], out=weights[:, :, -1])

    def first_rows(self) -> FloatArray:
        """Return the row of the first answer of every block."""
        weights = np.empty((self.blocks, self.size + 2))
        weights[:, 0] = self.log_before
        weights[:, 1:-1] = self.log_prior - self._fading
        weights[:, -1] = self.log_after - self._fading[-1]
        return _normalized(weights)


def _normalized(logs: FloatArray) -> FloatArray:
    """Turn logarithms of weights into probabilities along the last axis, in place."""
    logs -= logs.max(axis=-1, keepdims=True)
    np.exp(logs, out=logs)
    logs /= logs.sum(axis=-1, keepdims=True)
    return logs


def block_laws(post: Posteriors, size: int) -> BlockLaws:
    """Cut the posteriors into blocks of `size` answers."""
    blocks = -(-(post.n + 1) // size)
    missing = blocks * size - (post.n + 1)
    with np.errstate(divide="ignore"):
        log_prior = np.log(np.pad(post.prior, (0, missing)))
    left = np.pad(post.left.log_mass, (0, missing))
    right = np.pad(post.right.log_mass, (0, missing))
    return BlockLaws(
        size,
        post.rate,
        log_prior.reshape(blocks, size),
        _at_boundaries(log_prior, left, post.rate, size),
        _at_boundaries(log_prior[::-1], right[::-1], post.rate, size)[::-1],
    )


def _at_boundaries(
    log_prior: FloatArray, log_mass: FloatArray, rate: float, size: int
) -> FloatArray:
    """Return log Σ_{i < bB} p[i]·α^(bB−i) for each b, from the sums up to possible counts."""
    places = np.arange(len(log_prior))
    anchors = np.maximum.accumulate(np.where(np.isfinite(log_prior), places, -1))
    starts = places[::size]
    anchor = np.concatenate([[-1], anchors[starts[1:] - 1]])
    return np.where(anchor >= 0, log_mass[anchor] - rate * (starts - anchor), -np.inf)


@dataclass(frozen=True, eq=False)
class Entering:
    """How the counts of each block enter the law of all counts before the next.

    That law is `old` times the one before the block plus `new` times the block's own.

    Attributes:
        law: the probabilities of the block's counts, in proportion to p[i]·α^−i.
        log_mass: log of Σ p[i]·α^−(i−first) over the block.
        old, new: the two shares.
    """

    law: FloatArray
    log_mass: FloatArray
    old: FloatArray
    new: FloatArray

    def mirrored(self) -> Entering:
        """Return the same with blocks and counts in the opposite order."""
        return Entering(self.law[::-1, ::-1], self.log_mass[::-1], self.old[::-1], self.new[::-1])


def entering(log_prior: FloatArray, log_before: FloatArray, rate: float) -> Entering:
    """Work out how blocks enter from the left."""
    growing = log_prior + rate * np.arange(log_prior.shape[1])
    top = growing.max(axis=1, keepdims=True)
    masses = np.exp(growing - np.where(np.isfinite(top), top, 0.0))
    total = masses.sum(axis=1, keepdims=True)
    with np.errstate(divide="ignore"):
        log_mass = top[:, 0] + np.log(total[:, 0])
    both = np.logaddexp(log_before, log_mass)
    whole = np.where(np.isfinite(both), both, 0.0)
    law = masses / np.where(total > 0, total, 1.0)
    return Entering(law, log_mass, np.exp(log_before - whole), np.exp(log_mass - whole))
