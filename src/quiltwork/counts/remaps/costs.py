"""What a posterior costs under a told answer, from sums of positive terms only.

Where a prior is nearly certain, an answer's cost is tiny beside the moments about the answer that
was released; subtracting such moments would leave nothing of it. Here the counts are cut at the
released answer r and at the told one k. What lies beyond either is a one-sided sum. What lies
between them is put together from stretches whose lengths are powers of two.

Cost: O(degree²·n) for each power of two up to the longest way from r to k.

Theorem: docs/theory/geometric-mechanism.md (Costs without subtraction)
"""

from __future__ import annotations

from math import comb

import numpy as np

from quiltwork.counts.consumers.losses import FloatArray, IntArray
from quiltwork.counts.remaps.posteriors import Posteriors, PosteriorSide

LEAST_LOG = -700.0  # answers of smaller evidence add nothing to an expected loss


def sides(post: Posteriors, told: IntArray, degree: int) -> tuple[FloatArray, FloatArray]:
    """Return Σ |i−k|^degree·P(i | r) over the counts below k = told[r], and over those above it.

    Needs moments up to `degree`; for degree 0 these are probabilities. Relative errors are about
    those of sums of n positive terms.
    """
    earlier = told <= post.answers
    left, right = post.left, post.right
    before = left.share * _mean(left, left.anchor, told - left.anchor, degree)
    after = right.share * _mean(right, right.anchor, right.anchor - told, degree)
    near = _between(post, told, degree)
    below = np.where(earlier, _below(post, told, degree), before + near)
    return below, np.where(earlier, after + near, _above(post, told, degree))


def _below(post: Posteriors, told: IntArray, degree: int) -> FloatArray:
    """Return the sum over the counts below k where k ≤ r."""
    last = np.maximum(told - 1, 0)
    rank = np.where(told > 0, post.rank[last], 0)
    anchor = post.support[np.maximum(rank - 1, 0)]
    mean = _mean(post.left, anchor, told - anchor, degree)
    return np.where(rank > 0, post.left_mass(last) * mean, 0.0)


def _above(post: Posteriors, told: IntArray, degree: int) -> FloatArray:
    """Return the sum over the counts above k where k ≥ r."""
    rank = post.rank[told]
    anchor = post.support[np.minimum(rank, len(post.support) - 1)]
    mean = _mean(post.right, anchor, anchor - told, degree)
    return np.where(rank < len(post.support), post.right_mass(told) * mean, 0.0)


def _mean(side: PosteriorSide, anchor: IntArray, shift: IntArray, degree: int) -> FloatArray:
    """Return E[(distance from the anchor + shift)^degree] over one side's counts."""
    return _moved([moment[anchor] for moment in side.moments[: degree + 1]], shift)


def _between(post: Posteriors, told: IntArray, degree: int) -> FloatArray:
    """Return Σ |i−k|^degree·P(i | r) over k < i ≤ r, or over r < i < k."""
    n = post.n
    counted = post.log_evidence > LEAST_LOG
    lower = np.flatnonzero(counted & (told < post.answers))
    upper = np.flatnonzero(counted & (told > post.answers + 1))
    total = np.zeros(len(told))
    total[lower] = stretches(post.prior, post.rate, told[lower], post.answers[lower], degree)
    total[upper] = np.exp(-post.rate) * stretches(
        post.prior[::-1], post.rate, n - told[upper], n - 1 - post.answers[upper], degree
    )
    return total * np.exp(-np.maximum(post.log_evidence, LEAST_LOG))


def stretches(
    prior: FloatArray, rate: float, low: IntArray, high: IntArray, degree: int
) -> FloatArray:
    """Return Σ_{low < i ≤ high} (i−low)^degree·prior[i]·e^(−rate·(high−i)) for pairs low ≤ high.

    Sums over 1, 2, 4, … counts after every place come from those over half as many; each pair
    takes those of its length's binary digits.

    >>> stretches(np.ones(4), np.log(2), np.array([0]), np.array([3]), 1).round(12).tolist()
    [4.25]
    """
    length, size = high - low, 1
    total = np.zeros(len(low))
    sums = [np.append(prior[1:], 0.0)] * (degree + 1)
    while size <= length.max(initial=0):
        fading = np.exp(-rate * size)
        at = np.flatnonzero(length & size)
        done = length[at] % size
        total[at] = fading * total[at] + _moved([s[low[at] + done] for s in sums], done)
        later = [np.append(s[size:], np.zeros(min(size, len(s)))) for s in sums]
        sums = [fading * s + _moved(later[: d + 1], size) for d, s in enumerate(sums)]
        size *= 2
    return total


def _moved(sums: list[FloatArray], shift: IntArray | int) -> FloatArray:
    """Return sums of (distance + shift)^d from those of distance^0, …, distance^d."""
    step, total = np.asarray(shift, dtype=np.float64), sums[0]
    for d in range(1, len(sums)):
        total = total * step + comb(len(sums) - 1, d) * sums[d]
    return total
