"""Posteriors under geometric noise in linear time, without the (n+1)×(n+1) matrix.

Given answer r, the posterior weight of count i is prior[i]·α^|i−r|. Split at r, it consists of two
one-sided sums that obey a recursion: F[j] = prior[j] + α·F[j−1] from the left, and its mirror image
from the right. Priors are logarithms, and sums at count j are kept relative to the largest weight
at answer j (`_scale`), so answers with weights below the smallest float, far from all possible
counts or in the tail of a prior, have accurate posteriors too.

Cost: O(n) per moment.

Theorem: docs/theory/geometric-mechanism.md (Remaps in linear time)
"""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from fractions import Fraction
from math import comb

import numpy as np
from numpy.typing import NDArray

from quiltwork.counts.consumers.loss_functions import FloatArray, IntArray

SMALLEST_ALPHA = 2.0**-1000  # stands for α = 0: only the nearest possible counts have weight
LEAST_LOG = -700.0  # answers of smaller evidence do not change an expected loss
_NEGLIGIBLE = 1e-280  # relative to the scale; an error of less than n·1e-150 losses
_PLAIN = 300.0  # logarithms below the largest prior probability down to which the scale is even


def decay_filter(values: FloatArray, decay: FloatArray | float) -> FloatArray:
    """Return y with y[j] = values[j] + decay[j]·y[j−1]; decays are at most 1.

    Computed in blocks of about √n: all blocks in parallel, then the carry from each to the next.
    Terms are added, never subtracted, so small sums keep their digits. O(n).

    >>> decay_filter(np.array([1.0, 0.0, 2.0]), 0.5).tolist()
    [1.0, 0.5, 2.25]
    """
    width = math.isqrt(len(values))
    blocks = -(-len(values) // width)
    pairs = np.zeros((2, blocks * width))
    pairs[:, : len(values)] = values, np.broadcast_to(decay, len(values))
    within, factors = pairs.reshape(2, blocks, width).transpose(0, 2, 1).copy()
    for j in range(1, width):
        within[j] += factors[j] * within[j - 1]
        factors[j] *= factors[j - 1]
    carries = [0.0]
    for last, factor in zip(within[-1, :-1].tolist(), factors[-1, :-1].tolist(), strict=True):
        carries.append(factor * carries[-1] + last)
    within += factors * carries
    return np.asarray(within.T.reshape(-1)[: len(values)])


def one_sided_moments(
    prior: FloatArray, decay: FloatArray | float, degree: int
) -> list[FloatArray]:
    """Return, for d = 0..degree, M_d[j] = Σ_{i≤j} (j−i)^d · prior[i] · decay[i+1]·…·decay[j].

    From (j−i)^d = Σ_t C(d,t)·(j−1−i)^t: M_d is a decay filter of decay·Σ_{t<d} C(d,t)·M_t, shifted
    by one.
    """
    moments = [decay_filter(prior, decay)]
    for d in range(1, degree + 1):
        mixed = np.sum([comb(d, t) * moments[t] for t in range(d)], axis=0)
        shifted = decay * np.concatenate([[0.0], mixed[:-1]])
        moments.append(decay_filter(shifted, decay))
    return moments


@dataclass(frozen=True, eq=False)
class PosteriorSide:
    """One side of every posterior: the counts up to an anchor, or mirrored from it on.

    Attributes:
        anchor: for each answer, the nearest possible count on this side (0 where there is none).
        share: for each answer, the posterior probability of this side.
        log_weight: for each answer, the log of this side's sum of prior[i]·α^|i−r|.
        log_mass: for each possible count taken as anchor, the log of its one-sided sum.
        moments: for each possible count, E[distance^d] of the side's counts from it, d ≥ 0.
    """

    anchor: IntArray
    share: FloatArray
    log_weight: FloatArray
    log_mass: FloatArray
    moments: tuple[FloatArray, ...]


@dataclass(frozen=True, eq=False)
class Posteriors:
    """The posteriors of all answers 0..n; made by `posteriors`.

    Attributes:
        prior: probabilities of 0..n, each divided by e^scale.
        scale: see `_scale`.
        rate: −ln α; each step of distance costs a factor e^−rate.
        support: the counts of positive prior, ascending.
        rank: for each count, the number of possible counts at or below it.
        left: the counts ≤ r.
        right: the counts > r.
        log_evidence: log of Σ_i prior[i]·α^|i−r| for each answer r.
        doubtful: answers that could come from counts whose prior is unknown.
        answers: 0..n.
    """

    prior: FloatArray
    scale: FloatArray
    rate: float
    support: IntArray
    rank: IntArray
    left: PosteriorSide
    right: PosteriorSide
    log_evidence: FloatArray
    doubtful: NDArray[np.bool_]
    answers: IntArray = field(repr=False)

    @property
    def n(self) -> int:
        """The largest count."""
        return len(self.prior) - 1

    @property
    def chances(self) -> FloatArray:
        """The probability of every answer, v[r]·Σ_i prior[i]·α^|i−r|."""
        ends = (self.answers == 0) | (self.answers == self.n)
        weight = np.where(ends, 1.0, -math.expm1(-self.rate)) / (1 + math.exp(-self.rate))
        return np.asarray(weight * np.exp(self.log_evidence))

    def mass_up_to(self, count: IntArray) -> FloatArray:
        """Return P(i ≤ count[r] | r) for every answer r, without cancellation on either side."""
        return np.where(count <= self.answers, self.left_mass(count), 1 - self.right_mass(count))

    def left_mass(self, count: IntArray) -> FloatArray:
        """Return P(i ≤ count[r] | r), where count[r] ≤ r."""
        anchor = self.support[np.maximum(self.rank[count] - 1, 0)]
        exponent = (
            self.left.log_mass[anchor]
            - self.left.log_mass[self.left.anchor]
            - self.rate * (self.left.anchor - anchor)
        )
        present = (self.rank[count] > 0) & (self.left.share > 0)
        return np.where(present, self.left.share * np.exp(np.minimum(exponent, 0)), 0.0)

    def right_mass(self, count: IntArray) -> FloatArray:
        """Return P(i > count[r] | r), where count[r] ≥ r."""
        index = self.rank[count]
        anchor = self.support[np.minimum(index, len(self.support) - 1)]
        exponent = (
            self.right.log_mass[anchor]
            - self.right.log_mass[self.right.anchor]
            - self.rate * (anchor - self.right.anchor)
        )
        present = (index < len(self.support)) & (self.right.share > 0)
        return np.where(present, self.right.share * np.exp(np.minimum(exponent, 0)), 0.0)


def decay_rate(alpha: Fraction) -> float:
    """Return −ln α, with all digits also for α near 1."""
    decay = max(float(alpha), SMALLEST_ALPHA)
    return -math.log1p(float(alpha - 1)) if decay > 0.5 else -math.log(decay)


def _scale(logs: FloatArray, rate: float) -> FloatArray:
    """Return for each r the log of the largest prior[i]·α^|i−r|, plus 300, at most the largest.

    It changes by at most `rate` per count, as weights do, so a count that is negligible beside its
    own scale is negligible for every answer.
    """
    steps = rate * np.arange(len(logs))
    after = np.maximum.accumulate(logs + steps) - steps
    before = np.maximum.accumulate((logs - steps)[::-1])[::-1] + steps
    return np.asarray(np.minimum(np.maximum(before, after) + _PLAIN, logs.max()))


def posteriors(logs: FloatArray, alpha: Fraction, degree: int) -> Posteriors:
    """Prepare the posteriors of every answer with moments up to `degree`. O(n·degree).

    `logs` is the log prior; NaN is a count of which only log < LEAST_LOG is known.
    """
    rate, unknown = decay_rate(alpha), np.isnan(logs)
    logs = np.where(unknown, -np.inf, logs)
    scale = _scale(logs, rate)
    prior = np.exp(logs - scale)
    # Dropped, at an error of less than n·1e-150 losses: they would underflow later.
    weights = np.where(prior > _NEGLIGIBLE, prior, 0.0)
    support = np.flatnonzero(weights)
    answers = np.arange(len(prior))
    below = np.searchsorted(support, answers, side="right")
    left_anchor = support[np.maximum(below - 1, 0)]
    right_anchor = support[np.minimum(below, len(support) - 1)]

    rise = np.diff(scale)
    left_moments = one_sided_moments(weights, np.exp(-rate - np.append(0, rise)), degree)
    mirrored = one_sided_moments(weights[::-1], np.exp(np.append(rise, 0) - rate)[::-1], degree)
    right_moments = [moment[::-1] for moment in mirrored]
    log_left, log_right = (scale + _log_at(m[0], support) for m in (left_moments, right_moments))

    left_weight = np.where(
        below > 0, log_left[left_anchor] - rate * (answers - left_anchor), -np.inf
    )
    right_weight = np.where(
        below < len(support), log_right[right_anchor] - rate * (right_anchor - answers), -np.inf
    )
    evidence = np.logaddexp(left_weight, right_weight)
    doubtful = (evidence < LEAST_LOG) & unknown.any()
    left_share, right_share = np.exp(left_weight - evidence), np.exp(right_weight - evidence)
    left = PosteriorSide(left_anchor, left_share, left_weight, log_left, _relative(left_moments))
    right = PosteriorSide(
        right_anchor, right_share, right_weight, log_right, _relative(right_moments)
    )
    return Posteriors(
        weights, scale, rate, support, below, left, right, evidence, doubtful, answers
    )


def _log_at(mass: FloatArray, support: IntArray) -> FloatArray:
    logs = np.zeros_like(mass)
    logs[support] = np.log(mass[support])
    return logs


def _relative(moments: list[FloatArray]) -> tuple[FloatArray, ...]:
    """Divide by the zeroth moment; only meaningful at the support, where it is read."""
    mass = np.where(moments[0] > 0, moments[0], 1.0)
    return tuple(moment / mass for moment in moments)
