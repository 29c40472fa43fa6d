"""The best answer to every posterior, and the expected cost of any answer under it.

The mode, the integer nearest to the mean, and quantiles minimise the binary, the squared, and the
absolute or asymmetric loss. Ties go to the smallest answer; two candidates tie within a relative
1e-12, quantiles within that of the smaller tail.

Where a prior is nearly certain, an answer's cost is tiny compared to the moments about the released
answer, and subtracting such moments would lose all digits. So costs are sums of positive terms: the
counts are cut at the released answer r and at the remapped answer k. What lies beyond either is a
one-sided sum. What lies between them is assembled from intervals whose lengths are powers of two.

Cost: O(n) for the mean and for tails of at least 1e-4; O(n log n) sums without subtraction for
smaller ones, and for the mode; for costs O(degree²·n) for each power of two up to the largest
distance between r and k.

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


def tail_moments(
    post: Posteriors, remapped: IntArray, degree: int
) -> tuple[FloatArray, FloatArray]:
    """Return Σ |i−k|^degree·P(i | r) over the counts below and above k = remapped[r].

    Needs moments up to `degree`; for degree 0 these are probabilities. Relative errors are about
    those of sums of n positive terms.
    """
    earlier = remapped <= post.answers
    left, right = post.left, post.right
    before = left.share * _mean(left, left.anchor, remapped - left.anchor, degree)
    after = right.share * _mean(right, right.anchor, right.anchor - remapped, degree)
    near = _between(post, remapped, degree)
    below = np.where(earlier, _below(post, remapped, degree), before + near)
    return below, np.where(earlier, after + near, _above(post, remapped, degree))


def _below(post: Posteriors, remapped: IntArray, degree: int) -> FloatArray:
    """Return the sum over the counts below k, where k ≤ r."""
    last = np.maximum(remapped - 1, 0)
    rank = np.where(remapped > 0, post.rank[last], 0)
    anchor = post.support[np.maximum(rank - 1, 0)]
    mean = _mean(post.left, anchor, remapped - anchor, degree)
    return np.where(rank > 0, post.left_mass(last) * mean, 0.0)


def _above(post: Posteriors, remapped: IntArray, degree: int) -> FloatArray:
    """Return the sum over the counts above k, where k ≥ r."""
    rank = post.rank[remapped]
    anchor = post.support[np.minimum(rank, len(post.support) - 1)]
    mean = _mean(post.right, anchor, anchor - remapped, degree)
    return np.where(rank < len(post.support), post.right_mass(remapped) * mean, 0.0)


def _mean(side: PosteriorSide, anchor: IntArray, shift: IntArray, degree: int) -> FloatArray:
    """Return E[(distance from the anchor + shift)^degree] over one side's counts."""
    return _shift_moments([moment[anchor] for moment in side.moments[: degree + 1]], shift)


def _between(post: Posteriors, remapped: IntArray, degree: int) -> FloatArray:
    """Return Σ |i−k|^degree·P(i | r) over k < i ≤ r, or over r < i < k."""
    n, prior, scale, answers = post.n, post.prior, post.scale, post.answers
    lower, upper = np.flatnonzero(remapped < answers), np.flatnonzero(remapped > answers + 1)
    total, log = np.zeros(len(remapped)), scale[answers] - post.log_evidence
    total[lower] = interval_moments(
        prior, scale, post.rate, remapped[lower], answers[lower], degree
    )
    last = n - 1 - answers[upper]
    total[upper] = interval_moments(
        prior[::-1], scale[::-1], post.rate, n - remapped[upper], last, degree
    )
    log[upper] += scale[answers[upper] + 1] - scale[answers[upper]] - post.rate
    return np.asarray(total * np.exp(log))


def interval_moments(
    prior: FloatArray, scale: FloatArray, rate: float, low: IntArray, high: IntArray, degree: int
) -> FloatArray:
    """Return Σ_{low < i ≤ high} (i−low)^degree·prior[i]·e^(−rate·(high−i)) for pairs low ≤ high.

    Sums over 1, 2, 4, … counts after every place come from those over half as many; each pair adds
    the intervals of its length's binary digits. prior[i] is scaled by e^scale[i], sums by
    e^scale[high].

    >>> pair = np.array([0]), np.array([3])
    >>> interval_moments(np.ones(4), np.zeros(4), np.log(2), *pair, 1).round(12).tolist()
    [4.25]
    """
    length, size = high - low, 1
    total = np.zeros(len(low))
    sums = [np.append(prior[1:], 0.0)] * (degree + 1)
    while size <= length.max(initial=0):
        decay = decay_over(scale, rate, size)
        pairs_of_size = np.flatnonzero(length & size)
        covered = length[pairs_of_size] % size
        start = low[pairs_of_size] + covered
        total[pairs_of_size] = decay[start] * total[pairs_of_size] + _shift_moments(
            [s[start] for s in sums], covered
        )
        later = [np.append(s[size:], np.zeros(min(size, len(s)))) for s in sums]
        decay = np.append(decay[size:], np.zeros(min(size, len(prior))))
        sums = [decay * s + _shift_moments(later[: d + 1], size) for d, s in enumerate(sums)]
        size *= 2
    return total


def decay_over(scale: FloatArray, rate: float, size: int) -> FloatArray:
    """Return the factor by which a weight at i decays up to i + size; 0 beyond the last count."""
    factors = np.exp(scale[:-size] - scale[size:] - rate * size)
    return np.append(factors, np.zeros(len(scale) - len(factors)))


def _shift_moments(sums: list[FloatArray], shift: IntArray | int) -> FloatArray:
    """Return moments about a shifted point, from those of distance^0, …, distance^d."""
    step, total = np.asarray(shift, dtype=np.float64), sums[0]
    for d in range(1, len(sums)):
        total = total * step + comb(len(sums) - 1, d) * sums[d]
    return total


_TIE = 1e-12
_SMALL = 1e-4  # for larger tails the rounding of 1 − P is within a tie

Reached: TypeAlias = Callable[[IntArray], NDArray[np.bool_]]


def nearest_to_mean(post: Posteriors) -> IntArray:
    """Return for each answer the integer nearest to the posterior mean; halves round down."""
    left, right = post.left, post.right
    base = np.where(left.share > 0, left.anchor, right.anchor)
    before = (left.anchor - base) - left.moments[1][left.anchor]
    after = (right.anchor - base) + right.moments[1][right.anchor]
    offset = left.share * before + right.share * after
    nearest = base + np.ceil(offset - 0.5 - _TIE * np.maximum(1, np.abs(offset))).astype(np.int64)
    return np.asarray(np.clip(nearest, 0, post.n))


def mode(post: Posteriors) -> IntArray:
    """Return for each answer the count with the largest posterior probability."""
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
    """Return max_{i≤j} prior[i]·α^(j−i) and its i for every j; i before j wins ties by `favour`.

    Windows of 1, 2, 4, … counts are each combined from two of half the length.
    """
    value, at = prior.copy(), np.arange(len(prior))
    step = 1
    while step < len(prior) and (decay := decay_over(scale, rate, step)[:-step]).any():
        earlier, own = decay * value[:-step], value[step:]
        wins = (earlier * favour >= own) if favour > 1 else (earlier * favour > own) | (own == 0)
        value[step:], at[step:] = (
            np.where(wins, earlier, own),
            np.where(wins, at[:-step], at[step:]),
        )
        step *= 2
    return value, at


def quantile(post: Posteriors, level: Fraction) -> IntArray:
    """Return for each answer the least possible count c with P(i ≤ c | r) ≥ level.

    Ties are within a relative 1e-12 of the smaller of the two tails.
    """
    lower, upper = float(level), float(1 - level)
    # 1 − P loses the digits of a small tail, so that one is summed directly.
    test = _by_sums if min(lower, upper) < _SMALL else _by_mass
    guess, reached = _guess(post, lower, upper), test(post, lower, upper)
    return np.asarray(post.support[_least(guess, reached, len(post.support) - 1)])


def _least(guess: IntArray, reached: Reached, last: int) -> IntArray:
    """Return the least rank that reaches the level: doubling steps from a guess, then bisection.

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
        middle_reached = reached(middle)
        low, high = (
            np.where(middle_reached, low, np.minimum(middle + 1, high)),
            np.where(middle_reached, middle, high),
        )
    return np.asarray(low)


def _by_mass(post: Posteriors, lower: float, upper: float) -> Reached:
    """Return a test of ranks by one-sided sums, accurate for tails that are not small."""

    def reached(rank: IntArray) -> NDArray[np.bool_]:
        count = post.support[rank]
        mass = post.mass_up_to(count)
        if lower <= upper:
            return np.asarray(mass >= lower * (1 - _TIE))
        above = np.where(count >= post.answers, post.right_mass(count), 1 - mass)
        return np.asarray(above <= upper * (1 + _TIE))

    return reached


def _by_sums(post: Posteriors, lower: float, upper: float) -> Reached:
    """Return the same test for small tails, from sums of positive terms (`tail_moments`)."""

    def reached(rank: IntArray) -> NDArray[np.bool_]:
        count = post.support[rank]
        if lower <= upper:
            below, _ = tail_moments(post, np.minimum(count + 1, post.n), 0)
            return np.asarray((below >= lower * (1 - _TIE)) | (count == post.n))
        _, above = tail_moments(post, count, 0)
        return np.asarray(above <= upper * (1 + _TIE))

    return reached


def _guess(post: Posteriors, lower: float, upper: float) -> IntArray:
    """Return approximate ranks, right up to rounding, by a search in sorted logarithms."""
    support, left, right = post.support, post.left, post.right
    with np.errstate(divide="ignore", invalid="ignore"):
        below, above = np.log(lower) - np.log(left.share), np.log(upper) - np.log(right.share)
    rising = np.maximum.accumulate(left.log_mass[support] + post.rate * support)
    wanted = below + left.log_mass[left.anchor] + post.rate * left.anchor
    first = np.searchsorted(rising, np.where(np.isnan(wanted), np.inf, wanted), side="left")
    falling = np.minimum.accumulate(right.log_mass[support] - post.rate * support)
    wanted = above + right.log_mass[right.anchor] - post.rate * right.anchor
    second = np.searchsorted(-falling, -np.where(np.isnan(wanted), np.inf, wanted), side="left")
    rank = np.where(left.share >= lower, first, second - 1)
    return np.asarray(np.clip(rank, 0, len(support) - 1))
