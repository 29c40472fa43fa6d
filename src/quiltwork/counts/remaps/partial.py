"""What a posterior costs, from sums of positive terms only, so that small costs keep their digits.

Where a prior is nearly certain, an answer's cost is tiny beside the moments about the answer that
was released; subtracting such moments would leave nothing of it. Here the counts are cut at the
released answer r and at the told one k. What lies beyond either is a one-sided sum. What lies
between them, k < i ≤ r say, is cut once more, at a multiple of the power of two that is nearest to
the stretch's length: a sum that grows from there to the right, and one that grows to the left.

Cost: O(degree²·n) for each power of two that occurs as a length; made where it matters only.

Theorem: geometric-mechanism, *Costs without subtraction*.
"""

from __future__ import annotations

from collections.abc import Callable
from math import comb

import numpy as np

from quiltwork.counts.consumers.losses import FloatArray, IntArray
from quiltwork.counts.remaps.centres import power_above, power_below, shifted
from quiltwork.counts.remaps.filters import Posteriors, Side, decay_filter

LEAST_LOG = -700.0  # answers of smaller evidence add nothing to an expected loss
_LEAST_FACTOR = 1e-200
_ULPS = 4 * 2.0**-52
_TRUSTED = 1e-13


def sides(post: Posteriors, told: IntArray, degree: int) -> tuple[FloatArray, FloatArray]:
    """Return Σ |i−k|^degree·P(i | r) over the counts below k = told[r], and over those above it.

    Needs moments up to `degree`; for degree 0 these are probabilities. Relative errors are about
    those of sums of n positive terms.
    """
    earlier = told <= post.answers
    before = _one_side(post.left, told - post.left.anchor, degree)
    after = _one_side(post.right, post.right.anchor - told, degree)
    below = power_below(post, told, degree)
    if degree == 0:
        below = np.where(told > 0, post.left_mass(np.maximum(told - 1, 0)), 0.0)
    above = power_above(post, told, degree)
    near = _between(post, told, degree)
    return np.where(earlier, below, before + near), np.where(earlier, after + near, above)


def _one_side(side: Side, shift: IntArray, degree: int) -> FloatArray:
    return np.asarray(side.share * shifted(side, shift, degree))


def _between(post: Posteriors, told: IntArray, degree: int) -> FloatArray:
    """Return Σ |i−k|^degree·P(i | r) over k < i ≤ r, or over r < i < k."""
    n, decay = post.n, np.exp(-post.rate)
    counted = post.log_evidence > LEAST_LOG
    lower = np.flatnonzero(counted & (told < post.answers))
    upper = np.flatnonzero(counted & (told > post.answers + 1))
    total = np.zeros(len(told))
    total[lower] = stretches(post.prior, decay, told[lower], post.answers[lower], degree)
    total[upper] = decay * stretches(
        post.prior[::-1], decay, n - told[upper], n - 1 - post.answers[upper], degree
    )
    return total * np.exp(-np.maximum(post.log_evidence, LEAST_LOG))


def stretches(
    prior: FloatArray, decay: float, low: IntArray, high: IntArray, degree: int
) -> FloatArray:
    """Return Σ_{low < i ≤ high} (i−low)^degree·prior[i]·decay^(high−i) for each pair low < high.

    >>> stretches(np.ones(4), 0.5, np.array([0]), np.array([3]), 1)
    array([4.25])
    """
    total = np.zeros(len(low))
    levels = np.frexp((high - low).astype(np.float64))[1] - 1
    for level in np.unique(levels).tolist():
        at = np.flatnonzero(levels == level)
        total[at] = _at_pivots(prior, decay, low[at], high[at], degree, 1 << level)
    return total


def _at_pivots(
    prior: FloatArray, decay: float, low: IntArray, high: IntArray, degree: int, size: int
) -> FloatArray:
    """Return the sums of stretches of at least `size` and less than twice `size` counts.

    Each holds a multiple of `size`, its pivot; those with one pivot share two running sums.
    """
    pivots, which = np.unique(high // size, return_inverse=True)
    begins = pivots * size
    padded = np.concatenate([np.zeros(2 * size), prior, np.zeros(size)])
    steps = np.arange(size, dtype=np.float64)
    ahead = padded[2 * size + begins[:, None] + np.arange(size)]
    to_pivot = (begins[which] - low).astype(np.float64)
    total = np.zeros(len(low))
    for d in range(degree + 1):
        grown = _fading_sums(ahead * steps**d, decay)[which, high - begins[which]]
        total += comb(degree, d) * to_pivot ** (degree - d) * grown
    behind = padded[2 * size - 1 + begins[:, None] - np.arange(2 * size)]
    behind = _plain_moments(behind * decay ** np.arange(2.0 * size), degree)
    reached = begins[which] - 1 - low - (degree == 0)
    left = np.where(reached >= 0, behind[which, np.maximum(reached, 0)], 0.0)
    return np.asarray(total + decay ** (high - begins[which] + 1.0) * left)


def _fading_sums(values: FloatArray, decay: float) -> FloatArray:
    """Return Σ_{i≤j} values[…, i]·decay^(j−i); one sum suffices where no power of decay is tiny."""
    fading = decay ** np.arange(values.shape[1], dtype=np.float64)
    if fading[-1] < _LEAST_FACTOR:
        return decay_filter(values, decay)
    return np.asarray(np.cumsum(values / fading, axis=1) * fading)


def _plain_moments(values: FloatArray, degree: int) -> FloatArray:
    """Return Σ_{i≤j} (j−i)^degree·values[…, i], by sums of sums."""
    moments = [np.cumsum(values, axis=1)]
    for d in range(1, degree + 1):
        mixed = moments[0] + sum(comb(d, t) * moments[t] for t in range(1, d))
        moments.append(np.zeros_like(mixed))
        np.cumsum(mixed[:, :-1], axis=1, out=moments[d][:, 1:])
    return moments[degree]


def spread(post: Posteriors, told: IntArray, degree: int) -> FloatArray:
    """Return the size of the terms that costs made of moments about r are the difference of."""
    left = _one_side(post.left, np.abs(told - post.left.anchor), degree)
    return left + _one_side(post.right, np.abs(post.right.anchor - told), degree)


def keep_digits(
    post: Posteriors, cost: FloatArray, size: FloatArray, again: Callable[[IntArray], FloatArray]
) -> FloatArray:
    """Return costs of which none loses digits that show in the expected loss.

    Those given are off by a few units in the last place of `size`. Where that is more than 1e-13
    both of the cost and of an even share of the expected loss, `again` computes them.
    """
    chance, doubt, kept = post.chances, _ULPS * size, cost
    while True:
        share = float(chance @ kept) / len(kept)
        lost = (doubt > _TRUSTED * kept) & (chance * doubt > _TRUSTED * share)
        rows = np.flatnonzero(lost)
        if not rows.size:
            return kept
        kept = kept.copy()
        kept[rows], doubt[rows] = again(rows), 0.0
