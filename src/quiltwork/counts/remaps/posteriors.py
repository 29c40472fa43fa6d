"""Posteriors under geometric noise in linear time, without the (n+1)×(n+1) matrix.

Given answer r, the posterior weight of count i is prior[i]·α^|i−r|. Split at r, it is made of two
one-sided sums that obey a recursion: F[j] = prior[j] + α·F[j−1] from the left, and its mirror
image from the right. Priors come in logarithms, and sums at count j are kept relative to the
largest weight at answer j (`_scale`): answers whose weights are below the least float, far from
all possible counts or in the tail of a prior, have a posterior like others.

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

SMALLEST_ALPHA = 2.0**-1000  # stands for α = 0: the nearest possible counts take everything
LEAST_LOG = -700.0  # answers of smaller evidence add nothing to an expected loss
_NEGLIGIBLE = 1e-280  # relative to the scale; costs less than n·1e-150 losses
_PLAIN = 300.0  # logarithms below the largest prior probability down to which the scale is even


def decay_filter(values: FloatArray, decay: FloatArray | float) -> FloatArray:
    """Return y with y[j] = values[j] + decay[j]·y[j−1]; decays are at most 1.

    In blocks of about √n: all blocks at once by themselves, then what each hands to the next. Terms
    are added, never subtracted, so that small sums keep their digits. O(n).

    >>> decay_filter(np.array([1.0, 0.0, 2.0]), 0.5).tolist()
    [1.0, 0.5, 2.25]
    """
    width = math.isqrt(len(values))
    blocks = -(-len(values) // width)
    pairs = np.zeros((2, blocks * width))
    pairs[:, : len(values)] = values, np.broadcast_to(decay, len(values))
    within, fades = pairs.reshape(2, blocks, width).transpose(0, 2, 1).copy()
    for j in range(1, width):
        within[j] += fades[j] * within[j - 1]
        fades[j] *= fades[j - 1]
    handed = [0.0]
    for end, fade in zip(within[-1, :-1].tolist(), fades[-1, :-1].tolist(), strict=True):
        handed.append(fade * handed[-1] + end)
    within += fades * handed
    return np.asarray(within.T.reshape(-1)[: len(values)])


def one_sided_moments(
    prior: FloatArray, decay: FloatArray | float, degree: int
) -> list[FloatArray]:
    """Return, for d = 0..degree, M_d[j] = Σ_{i≤j} (j−i)^d · prior[i] · decay[i+1]·…·decay[j].

    From (j−i)^d = Σ_t C(d,t)·(j−1−i)^t: M_d is a decay filter of decay·Σ_{t<d} C(d,t)·M_t, one
    step later.
    """
    moments = [decay_filter(prior, decay)]
    for d in range(1, degree + 1):
        mixed = np.sum([comb(d, t) * moments[t] for t in range(d)], axis=0)
        shifted = decay * np.concatenate([[0.0], mixed[:-1]])
        moments.append(decay_filter(shifted, decay))
    return moments


@dataclass(frozen=True, eq=False)
class PosteriorSide:
    """One side of every posterior: the counts up to an anchor (or from it on, mirrored).

    Attributes:
        anchor: for each answer, the nearest possible count on this side (0 where there is none).
        share: for each answer, this side's part of the posterior.
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
    """The posteriors of all answers 0..n; see `posteriors`.

    Attributes:
        prior: probabilities of 0..n, each divided by e^scale.
        scale: see `_scale`.
        rate: −ln α, so that a step further costs a factor e^−rate.
        support: the counts of positive prior, ascending.
        rank: for each count, how many possible counts are at or below it.
        left, right: counts ≤ r, and counts > r.
        log_evidence: log of Σ_i prior[i]·α^|i−r| for each answer r.
        doubtful: which answers could come from counts whose prior is not known.
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
        """P(i ≤ count[r] | r) for every answer r, without cancellation on either side."""
        return np.where(count <= self.answers, self.left_mass(count), 1 - self.right_mass(count))

    def left_mass(self, count: IntArray) -> FloatArray:
        """P(i ≤ count[r] | r), where count[r] ≤ r."""
        anchor = self.support[np.maximum(self.rank[count] - 1, 0)]
        exponent = (
            self.left.log_mass[anchor]
            - self.left.log_mass[self.left.anchor]
            - self.rate * (self.left.anchor - anchor)
        )
        present = (self.rank[count] > 0) & (self.left.share > 0)
        return np.where(present, self.left.share * np.exp(np.minimum(exponent, 0)), 0.0)

    def right_mass(self, count: IntArray) -> FloatArray:
        """P(i > count[r] | r), where count[r] ≥ r."""
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
    """Return −ln α, with all digits also where α is nearly 1."""
    decay = max(float(alpha), SMALLEST_ALPHA)
    return -math.log1p(float(alpha - 1)) if decay > 0.5 else -math.log(decay)


def _scale(logs: FloatArray, rate: float) -> FloatArray:
    """Return for each r the log of the largest prior[i]·α^|i−r|, plus 300, at most the largest.

    It moves by at most `rate` from one count to the next, and so does what a count weighs: one
    that is negligible beside its own scale is so for every answer.
    """
    steps = rate * np.arange(len(logs))
    after = np.maximum.accumulate(logs + steps) - steps
    before = np.maximum.accumulate((logs - steps)[::-1])[::-1] + steps
    return np.asarray(np.minimum(np.maximum(before, after) + _PLAIN, logs.max()))


def posteriors(logs: FloatArray, alpha: Fraction, degree: int) -> Posteriors:
    """Prepare the posteriors of every answer with moments up to `degree`. O(n·degree).

    `logs` are those of the prior; NaN is a count of which only log < LEAST_LOG is known.
    """
    rate, unknown = decay_rate(alpha), np.isnan(logs)
    logs = np.where(unknown, -np.inf, logs)
    scale = _scale(logs, rate)
    prior = np.exp(logs - scale)
    kept = np.where(prior > _NEGLIGIBLE, prior, 0.0)
    support = np.flatnonzero(kept)
    answers = np.arange(len(prior))
    below = np.searchsorted(support, answers, side="right")
    left_anchor = support[np.maximum(below - 1, 0)]
    right_anchor = support[np.minimum(below, len(support) - 1)]

    rise = np.diff(scale)
    left_moments = one_sided_moments(kept, np.exp(-rate - np.append(0, rise)), degree)
    mirrored = one_sided_moments(kept[::-1], np.exp(np.append(rise, 0) - rate)[::-1], degree)
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
    return Posteriors(kept, scale, rate, support, below, left, right, evidence, doubtful, answers)


def _log_at(mass: FloatArray, support: IntArray) -> FloatArray:
    logs = np.zeros_like(mass)
    logs[support] = np.log(mass[support])
    return logs


def _relative(moments: list[FloatArray]) -> tuple[FloatArray, ...]:
    """Divide by the zeroth moment; meaningful at the support, which is where it is read."""
    mass = np.where(moments[0] > 0, moments[0], 1.0)
    return tuple(moment / mass for moment in moments)
