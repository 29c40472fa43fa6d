"""The best answer to a posterior, and what it costs, in linear time for the usual losses.

Absolute and asymmetric losses are minimised by a quantile, squared loss by the integer nearest to
the mean, binary loss by the mode. Ties go to the smallest answer; two candidates count as tied
within a relative 1e-12. Cost: O(n) each.

Theorem: geometric-mechanism, *Remaps in linear time*.
"""

from __future__ import annotations

from itertools import accumulate
from math import comb

import numpy as np

from quiltwork.counts.consumers.losses import FloatArray, IntArray, Pinball
from quiltwork.counts.remaps.filters import Posteriors, Side

_TIE = 1e-12


def pinball_cost(post: Posteriors, answer: IntArray, loss: Pinball) -> FloatArray:
    """Return E[loss(i, answer[r]) | r] for every r."""
    under, over = float(loss.under), float(loss.over)
    drift = mean_offset(post, answer)
    below = power_below(post, answer, 1)
    above = power_above(post, answer, 1)
    left = under * np.maximum(drift + below, 0) + over * below
    right = under * above + over * np.maximum(above - drift, 0)
    return np.where(answer <= post.answers, left, right)


def mean_offset(post: Posteriors, answer: IntArray) -> FloatArray:
    """Return E[i | r] − answer[r] for every r; needs first moments."""
    left, right = post.left, post.right
    before = (left.anchor - answer) - left.moments[1][left.anchor]
    after = (right.anchor - answer) + right.moments[1][right.anchor]
    return left.share * before + right.share * after


def nearest_to_mean(post: Posteriors) -> IntArray:
    """Return for each answer the integer nearest to the posterior mean, halves down."""
    base = np.where(post.left.share > 0, post.left.anchor, post.right.anchor)
    offset = mean_offset(post, base)
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


def mode_cost(post: Posteriors, answer: IntArray) -> FloatArray:
    """Return P(i ≠ answer[r] | r) for every r."""
    with np.errstate(divide="ignore"):
        log_weight = np.log(post.prior)[answer] - post.rate * np.abs(answer - post.answers)
    return np.asarray(np.maximum(0.0, -np.expm1(np.minimum(log_weight - post.log_evidence, 0))))


def mode_spread(post: Posteriors) -> FloatArray:
    """Return the size of the logarithms that `mode_cost` subtracts."""
    return np.asarray(2 * np.abs(post.log_evidence) + np.log(post.n + 2.0) + 1)


def squared_cost(post: Posteriors, answer: IntArray) -> FloatArray:
    """Return E[(i − answer[r])² | r] for every r; needs two moments."""
    left, right = post.left, post.right
    before = left.share * shifted(left, answer - left.anchor, 2)
    after = right.share * shifted(right, right.anchor - answer, 2)
    return np.asarray(np.maximum(before + after, 0.0))


def power_below(post: Posteriors, answer: IntArray, exponent: int) -> FloatArray:
    """Return Σ_{i ≤ answer} (answer−i)^exponent · P(i | r), right where answer[r] ≤ r."""
    rank = post.rank[answer]
    anchor = post.support[np.maximum(rank - 1, 0)]
    spread = _shifted_at(post.left, anchor, answer - anchor, exponent)
    return np.where(rank > 0, post.left_mass(answer) * spread, 0.0)


def power_above(post: Posteriors, answer: IntArray, exponent: int) -> FloatArray:
    """Return Σ_{i > answer} (i−answer)^exponent · P(i | r), right where answer[r] ≥ r."""
    rank = post.rank[answer]
    anchor = post.support[np.minimum(rank, len(post.support) - 1)]
    spread = _shifted_at(post.right, anchor, anchor - answer, exponent)
    return np.where(rank < len(post.support), post.right_mass(answer) * spread, 0.0)


def shifted(side: Side, shift: IntArray, exponent: int) -> FloatArray:
    """Return E[(distance from the anchor + shift)^exponent] over one side's counts."""
    return _shifted_at(side, side.anchor, shift, exponent)


def _shifted_at(side: Side, anchor: IntArray, shift: IntArray, exponent: int) -> FloatArray:
    """Return E[(distance + shift)^exponent] over one side's counts, from its moments."""
    step = np.asarray(shift, dtype=np.float64)
    total = np.ones(len(step))
    for d in range(1, exponent + 1):
        total = total * step + comb(exponent, d) * side.moments[d][anchor]
    return np.asarray(total)
