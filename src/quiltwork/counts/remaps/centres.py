"""The best answer to every posterior, and what any answer costs under it.

The mode, the integer nearest to the mean and quantiles minimise binary, squared, and absolute or
asymmetric loss. Ties go to the smallest answer; two candidates count as tied within a relative
1e-12, quantiles within that of the smaller tail.

Where a prior is nearly certain, an answer's cost is tiny beside the moments about the answer that
was released; subtracting such moments would leave nothing of it. So costs are sums of positive
terms: the counts are cut at the released answer r and at the told one k. What lies beyond either is
a one-sided sum. What lies between them is put together from stretches whose lengths are powers of
two.

Cost: O(n) for the mean and for tails of at least 1e-4; O(n log n) sums without subtraction for
smaller ones, and for the mode; for costs O(degree²·n) for each power of two up to the longest way
from r to k.

Theorem: docs/theory/geometric-mechanism.md (Remaps in linear time, Costs without subtraction)
"""

from __future__ import annotations

from collections.abc import Callable
from fractions import Fraction
from math import comb
from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray

from quiltwork.counts.consumers.loss_functions import FloatArray, IntArray
from quiltwork.counts.remaps.posteriors import Posteriors, PosteriorSide


def tail_moments(post: Posteriors, told: IntArray, degree: int) -> tuple[FloatArray, FloatArray]:
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
    n, prior, scale, answers = post.n, post.prior, post.scale, post.answers
    lower, upper = np.flatnonzero(told < answers), np.flatnonzero(told > answers + 1)
    total, log = np.zeros(len(told)), scale[answers] - post.log_evidence
    total[lower] = interval_moments(prior, scale, post.rate, told[lower], answers[lower], degree)
    last = n - 1 - answers[upper]
    total[upper] = interval_moments(
        prior[::-1], scale[::-1], post.rate, n - told[upper], last, degree
    )
    log[upper] += scale[answers[upper] + 1] - scale[answers[upper]] - post.rate
    return np.asarray(total * np.exp(log))


def interval_moments(
    prior: FloatArray, scale: FloatArray, rate: float, low: IntArray, high: IntArray, degree: int
) -> FloatArray:
    """Return Σ_{low < i ≤ high} (i−low)^degree·prior[i]·e^(−rate·(high−i)) for pairs low ≤ high.

    Sums over 1, 2, 4, … counts after every place come from those over half as many; each pair
    takes those of its length's binary digits. prior[i] is times e^scale[i], sums e^scale[high].

    >>> pair = np.array([0]), np.array([3])
    >>> interval_moments(np.ones(4), np.zeros(4), np.log(2), *pair, 1).round(12).tolist()
    [4.25]
    """
    length, size = high - low, 1
    total = np.zeros(len(low))
    sums = [np.append(prior[1:], 0.0)] * (degree + 1)
    while size <= length.max(initial=0):
        fading = decay_over(scale, rate, size)
        at = np.flatnonzero(length & size)
        done = length[at] % size
        start = low[at] + done
        total[at] = fading[start] * total[at] + _moved([s[start] for s in sums], done)
        later = [np.append(s[size:], np.zeros(min(size, len(s)))) for s in sums]
        fading = np.append(fading[size:], np.zeros(min(size, len(prior))))
        sums = [fading * s + _moved(later[: d + 1], size) for d, s in enumerate(sums)]
        size *= 2
    return total


def decay_over(scale: FloatArray, rate: float, size: int) -> FloatArray:
    """Return what is left at i + size of 1 at i, in their scales; nothing beyond the last count."""
    left = np.exp(scale[:-size] - scale[size:] - rate * size)
    return np.append(left, np.zeros(len(scale) - len(left)))


def _moved(sums: list[FloatArray], shift: IntArray | int) -> FloatArray:
    """Return sums of (distance + shift)^d from those of distance^0, …, distance^d."""
    step, total = np.asarray(shift, dtype=np.float64), sums[0]
    for d in range(1, len(sums)):
        total = total * step + comb(len(sums) - 1, d) * sums[d]
    return total


_TIE = 1e-12
_SMALL = 1e-4  # above it, what 1 − P loses is within a tie

Reached: TypeAlias = Callable[[IntArray], NDArray[np.bool_]]


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
    prior, scale = post.prior, post.scale
    left_best, left_at = _leading(prior, scale, post.rate, 1 + _TIE)
    mirrored = _leading(prior[::-1], scale[::-1], post.rate, 1 - _TIE)
    right_best, right_at = (part[::-1] for part in mirrored)
    left, right = post.left.anchor, post.right.anchor
    with np.errstate(divide="ignore"):
        left_log = (np.log(left_best) + scale)[left] - post.rate * (post.answers - left)
        right_log = (np.log(right_best) + scale)[right] - post.rate * (right - post.answers)
    left_wins = (post.left.share > 0) & ((left_log >= right_log - _TIE) | (post.right.share == 0))
    return np.where(left_wins, left_at[left], post.n - right_at[right])


def _leading(
    prior: FloatArray, scale: FloatArray, rate: float, favour: float
) -> tuple[FloatArray, IntArray]:
    """Return max_{i≤j} prior[i]·α^(j−i) and its i for every j; i before j wins by `favour`.

    Windows of 1, 2, 4, … counts, each from two of half its length.
    """
    value, at = prior.copy(), np.arange(len(prior))
    step = 1
    while step < len(prior) and (fade := decay_over(scale, rate, step)[:-step]).any():
        kept, own = fade * value[:-step], value[step:]
        wins = (kept * favour >= own) if favour > 1 else (kept * favour > own) | (own == 0)
        value[step:], at[step:] = np.where(wins, kept, own), np.where(wins, at[:-step], at[step:])
        step *= 2
    return value, at


def quantile(post: Posteriors, level: Fraction) -> IntArray:
    """Return for each answer the least possible count c with P(i ≤ c | r) ≥ level.

    Up to a relative 1e-12 of the smaller one of the two tails.
    """
    lower, upper = float(level), float(1 - level)
    test = _by_sums if min(lower, upper) < _SMALL else _by_mass
    guess, reached = _guess(post, lower, upper), test(post, lower, upper)
    return np.asarray(post.support[_least(guess, reached, len(post.support) - 1)])


def _least(guess: IntArray, reached: Reached, last: int) -> IntArray:
    """Return the least rank that is reached, by longer and longer steps from a guess, then halves.

    The last rank counts as reached.
    """
    low, high, step = guess, guess, 1
    while (up := (high < last) & ~reached(high)).any():
        low, high = np.where(up, high + 1, low), np.where(up, np.minimum(high + step, last), high)
        step *= 2
    step = 1
    while (down := (low > 0) & reached(np.maximum(low - 1, 0))).any():
        high, low = np.where(down, low - 1, high), np.where(down, np.maximum(low - step, 0), low)
        step *= 2
    while (low < high).any():
        middle = (low + high) // 2
        hit = reached(middle)
        low, high = np.where(hit, low, np.minimum(middle + 1, high)), np.where(hit, middle, high)
    return np.asarray(low)


def _by_mass(post: Posteriors, lower: float, upper: float) -> Reached:
    """Tell which ranks reach the level by one-sided sums, exact for tails that are not small."""

    def reached(rank: IntArray) -> NDArray[np.bool_]:
        count = post.support[rank]
        mass = post.mass_up_to(count)
        if lower <= upper:
            return np.asarray(mass >= lower * (1 - _TIE))
        above = np.where(count >= post.answers, post.right_mass(count), 1 - mass)
        return np.asarray(above <= upper * (1 + _TIE))

    return reached


def _by_sums(post: Posteriors, lower: float, upper: float) -> Reached:
    """Tell the same where a tail is small, from sums of positive terms (`tail_moments`)."""

    def reached(rank: IntArray) -> NDArray[np.bool_]:
        count = post.support[rank]
        if lower <= upper:
            below, _ = tail_moments(post, np.minimum(count + 1, post.n), 0)
            return np.asarray((below >= lower * (1 - _TIE)) | (count == post.n))
        _, above = tail_moments(post, count, 0)
        return np.asarray(above <= upper * (1 + _TIE))

    return reached


def _guess(post: Posteriors, lower: float, upper: float) -> IntArray:
    """Return ranks by a search in sorted logarithms, right up to rounding."""
    support, left, right = post.support, post.left, post.right
    with np.errstate(divide="ignore", invalid="ignore"):
        below, above = np.log(lower) - np.log(left.share), np.log(upper) - np.log(right.share)
    rising = np.maximum.accumulate(left.log_mass[support] + post.rate * support)
    wanted = below + left.log_mass[left.anchor] + post.rate * left.anchor
    first = np.searchsorted(rising, np.where(np.isnan(wanted), np.inf, wanted), side="left")
    falling = np.minimum.accumulate(right.log_mass[support] - post.rate * support)
    wanted = above + right.log_mass[right.anchor] - post.rate * right.anchor
    second = np.searchsorted(-falling, -np.where(np.isnan(wanted), np.inf, wanted), side="left")
    found = np.where(left.share >= lower, first, second - 1)
    return np.asarray(np.clip(found, 0, len(support) - 1))
