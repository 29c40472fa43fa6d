"""Quantiles of all posteriors at once, ties and small tails relative to the smaller tail.

Cost: O(n) for tails of at least 1e-4; O(n log n) sums without subtraction for smaller ones.

Theorem: geometric-mechanism, *Remaps in linear time*.
"""

from __future__ import annotations

from fractions import Fraction

import numpy as np
from numpy.typing import NDArray

from quiltwork.counts.consumers.losses import FloatArray, IntArray
from quiltwork.counts.remaps import costs
from quiltwork.counts.remaps.filters import Posteriors

_TIE = 1e-12
_SMALL = 1e-4  # above it, what 1 − P loses is within a tie


def quantile(post: Posteriors, level: Fraction) -> IntArray:
    """Return for each answer the least possible count c with P(i ≤ c | r) ≥ level.

    Up to a relative 1e-12 of the smaller one of the two tails.
    """
    lower, upper = float(level), float(1 - level)
    if min(lower, upper) >= _SMALL:
        return np.asarray(post.support[_settled(post, lower, upper)])
    index = np.zeros(len(post.answers), dtype=np.int64)
    sure = post.log_evidence > costs.LEAST_LOG
    index[sure] = _bisected(post.at(post.answers[sure]), lower, upper)
    if not sure.all():
        rest = post.at(post.answers[~sure])
        index[~sure] = _settled(rest, max(lower, _SMALL), max(upper, _SMALL))
    return np.asarray(post.support[index])


def _settled(post: Posteriors, lower: float, upper: float) -> IntArray:
    """Find ranks by a search in sorted logarithms, up to rounding; exact differences settle it."""
    on_left = post.left.share >= lower
    with np.errstate(divide="ignore", invalid="ignore"):
        left = _search_left(post, np.log(lower) - np.log(post.left.share))
        right = _search_right(post, np.log(upper) - np.log(post.right.share))
    index = np.where(on_left, left, right)
    last = len(post.support) - 1

    def reached(count: IntArray) -> NDArray[np.bool_]:
        mass = post.mass_up_to(count)
        if lower <= upper:
            return np.asarray(mass >= lower * (1 - _TIE))
        above = np.where(count >= post.answers, post.right_mass(count), 1 - mass)
        return np.asarray(above <= upper * (1 + _TIE))

    while (low := (index > 0) & reached(post.support[index - 1])).any():
        index = index - low
    while (high := (index < last) & ~reached(post.support[index])).any():
        index = index + high
    return np.asarray(index)


def _bisected(post: Posteriors, lower: float, upper: float) -> IntArray:
    """Find ranks by bisection, tails being sums of positive terms (`costs`)."""
    low = np.zeros(len(post.answers), dtype=np.int64)
    high = np.full(len(post.answers), len(post.support) - 1)
    while (low < high).any():
        middle = (low + high) // 2
        count = post.support[middle]
        if lower <= upper:
            below, _ = costs.sides(post, np.minimum(count + 1, post.n), 0)
            reached = (below >= lower * (1 - _TIE)) | (count == post.n)
        else:
            _, above = costs.sides(post, count, 0)
            reached = above <= upper * (1 + _TIE)
        low, high = np.where(reached, low, middle + 1), np.where(reached, middle, high)
    return low


def _search_left(post: Posteriors, log_fraction: FloatArray) -> IntArray:
    """Return the rank of the least count whose left sum reaches this fraction of the anchor's."""
    keys = np.maximum.accumulate(post.left.log_mass[post.support] + post.rate * post.support)
    anchor = post.left.anchor
    wanted = log_fraction + post.left.log_mass[anchor] + post.rate * anchor
    found = np.searchsorted(keys, np.where(np.isnan(wanted), np.inf, wanted), side="left")
    return np.asarray(np.minimum(found, len(post.support) - 1))


def _search_right(post: Posteriors, log_fraction: FloatArray) -> IntArray:
    """Return the rank of the last count whose right sum exceeds this fraction of the anchor's."""
    keys = post.right.log_mass[post.support] - post.rate * post.support
    falling = np.minimum.accumulate(keys)
    anchor = post.right.anchor
    wanted = log_fraction + post.right.log_mass[anchor] - post.rate * anchor
    found = np.searchsorted(-falling, -np.where(np.isnan(wanted), np.inf, wanted), side="left")
    return np.asarray(np.maximum(found - 1, 0))
