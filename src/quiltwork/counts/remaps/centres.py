"""The best answer to every posterior: its mode, the integer nearest to its mean, its quantiles.

These minimise binary, squared, and absolute or asymmetric loss. Ties go to the smallest answer; two
candidates count as tied within a relative 1e-12, quantiles within that of the smaller tail.
Cost: O(n) for the mean and for tails of at least 1e-4; O(n log n) sums without subtraction for
smaller ones, and for the mode.

Theorem: docs/theory/geometric-mechanism.md (Remaps in linear time)
"""

from __future__ import annotations

from collections.abc import Callable
from fractions import Fraction
from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray

from quiltwork.counts.consumers.losses import FloatArray, IntArray
from quiltwork.counts.remaps import costs
from quiltwork.counts.remaps.posteriors import Posteriors

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
    decay = float(np.exp(-post.rate))
    left_best, left_at = _leading(post.prior, decay, 1 + _TIE)
    right_best, right_at = (part[::-1] for part in _leading(post.prior[::-1], decay, 1 - _TIE))
    left, right = post.left.anchor, post.right.anchor
    with np.errstate(divide="ignore"):
        left_log = np.log(left_best)[left] - post.rate * (post.answers - left)
        right_log = np.log(right_best)[right] - post.rate * (right - post.answers)
    left_wins = (post.left.share > 0) & ((left_log >= right_log - _TIE) | (post.right.share == 0))
    return np.where(left_wins, left_at[left], post.n - right_at[right])


def _leading(prior: FloatArray, decay: float, favour: float) -> tuple[FloatArray, IntArray]:
    """Return max_{i≤j} prior[i]·decay^(j−i) and its i for every j; i before j wins by `favour`.

    Windows of 1, 2, 4, … counts, each from two of half its length.
    """
    value, at = prior.copy(), np.arange(len(prior))
    step, fade = 1, decay
    while step < len(prior) and fade > 0:
        kept, own = fade * value[:-step], value[step:]
        wins = (kept * favour >= own) if favour > 1 else (kept * favour > own) | (own == 0)
        value[step:], at[step:] = np.where(wins, kept, own), np.where(wins, at[:-step], at[step:])
        step, fade = 2 * step, fade * fade
    return value, at


def quantile(post: Posteriors, level: Fraction) -> IntArray:
    """Return for each answer the least possible count c with P(i ≤ c | r) ≥ level.

    Up to a relative 1e-12 of the smaller one of the two tails.
    """
    lower, upper = float(level), float(1 - level)
    index = np.zeros(len(post.answers), dtype=np.int64)
    small = min(lower, upper) < _SMALL
    sure = (post.log_evidence > costs.LEAST_LOG) & small
    for some, test in ((sure, _by_sums), (~sure, _by_mass)):
        if some.any():
            part = post if some.all() else post.at(post.answers[some])
            least = 0.0 if test is _by_sums else _SMALL
            tails = max(lower, least), max(upper, least)
            index[some] = _least(_guess(part, *tails), test(part, *tails), len(post.support) - 1)
    return np.asarray(post.support[index])


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
    """Tell the same where a tail is small, from sums of positive terms (`costs`)."""

    def reached(rank: IntArray) -> NDArray[np.bool_]:
        count = post.support[rank]
        if lower <= upper:
            below, _ = costs.sides(post, np.minimum(count + 1, post.n), 0)
            return np.asarray((below >= lower * (1 - _TIE)) | (count == post.n))
        _, above = costs.sides(post, count, 0)
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
