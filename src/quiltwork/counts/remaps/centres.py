"""The best answer to every posterior: the integer nearest to its mean, and its mode.

These minimise squared and binary loss; quantiles, for absolute and asymmetric losses, have a home
of their own. Ties go to the smallest answer; two candidates count as tied within a relative 1e-12.
Cost: O(n) each.

Theorem: geometric-mechanism, *Remaps in linear time*.
"""

from __future__ import annotations

from itertools import accumulate

import numpy as np

from quiltwork.counts.consumers.losses import FloatArray, IntArray
from quiltwork.counts.remaps.filters import Posteriors

_TIE = 1e-12


def nearest_to_mean(post: Posteriors) -> IntArray:
    """Return for each answer the integer nearest to the posterior mean, halves down."""
    left, right = post.left, post.right
    base = np.where(left.share > 0, left.anchor, right.anchor)
    before = (left.anchor - base) - left.moments[1][left.anchor]
    after = (right.anchor - base) + right.moments[1][right.anchor]
    offset = left.share * before + right.share * after
    nearest = base + np.ceil(offset - 0.5 - _TIE * np.maximum(1, np.abs(offset))).astype(np.int64)
    return np.asarray(np.clip(nearest, 0, post.n))


def mode(post: Posteriors) -> IntArray:
    """Return for each answer the count of largest posterior probability."""
    decay = np.exp(-post.rate)

    def keep_earlier(best: tuple[float, int], new: tuple[float, int]) -> tuple[float, int]:
        kept = decay * best[0]
        return new if new[0] > kept * (1 + _TIE) else (kept, best[1])

    def prefer_later(best: tuple[float, int], new: tuple[float, int]) -> tuple[float, int]:
        kept = decay * best[0]
        return new if new[0] >= kept * (1 - _TIE) and new[0] > 0 else (kept, best[1])

    probabilities = list(zip(post.prior.tolist(), range(post.n + 1), strict=True))
    left_best, left_at = _unzip(accumulate(probabilities, keep_earlier), post.n + 1)
    right_best, right_at = _unzip(accumulate(reversed(probabilities), prefer_later), post.n + 1)
    right_best, right_at = right_best[::-1], right_at[::-1]
    left, right = post.left.anchor, post.right.anchor
    with np.errstate(divide="ignore"):
        left_log = np.log(left_best)[left] - post.rate * (post.answers - left)
        right_log = np.log(right_best)[right] - post.rate * (right - post.answers)
    left_wins = (post.left.share > 0) & ((left_log >= right_log - _TIE) | (post.right.share == 0))
    return np.where(left_wins, left_at[left], right_at[right])


def _unzip(pairs: accumulate[tuple[float, int]], size: int) -> tuple[FloatArray, IntArray]:
    table = np.fromiter(pairs, dtype=[("value", np.float64), ("at", np.int64)], count=size)
    return table["value"], table["at"]
