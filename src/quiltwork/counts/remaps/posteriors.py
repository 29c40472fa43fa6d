"""Posteriors under geometric noise in linear time, without the (n+1)×(n+1) matrix.

Given answer r, the posterior weight of count i is prior[i]·α^|i−r|. Split at r, it is made of two
one-sided sums that obey a recursion: F[j] = prior[j] + α·F[j−1] from the left, and its mirror
image from the right. Everything is kept relative to the nearest counts of positive prior, so that
answers far from all of them, whose weights are below the least float, still have a posterior.

Cost: O(n) per moment.


Theorem: docs/theory/geometric-mechanism.md (Remaps in linear time)
"""

from __future__ import annotations

import math
from dataclasses import dataclass, field, replace
from fractions import Fraction
from itertools import accumulate, pairwise
from math import comb

import numpy as np

from quiltwork.counts.consumers.losses import FloatArray, IntArray

SMALLEST_ALPHA = 2.0**-1000  # stands for α = 0: the nearest possible counts take everything
_NEGLIGIBLE = 1e-280  # relative to the largest prior probability; costs less than n·1e-280 losses


def decay_filter(values: FloatArray, decay: float) -> FloatArray:
    """Return y with y[j] = values[j] + decay·y[j−1].

    In blocks of about √n: all blocks at once by themselves, then what each hands to the next. Terms
    are added, never subtracted, so that small sums keep their digits. O(n).

    >>> decay_filter(np.array([1.0, 0.0, 2.0]), 0.5).tolist()
    [1.0, 0.5, 2.25]
    """
    width = math.isqrt(len(values))
    blocks = -(-len(values) // width)
    padded = np.concatenate([values, np.zeros(blocks * width - len(values))])
    within = padded.reshape(blocks, width).T.copy()
    for before, here in pairwise(within):
        here += decay * before
    fade = decay**width
    ends = accumulate(within[-1, :-1].tolist(), lambda total, end: fade * total + end)
    handed = np.array([0.0, *ends])
    within += np.multiply.outer(decay ** np.arange(1.0, width + 1), handed)
    return within.T.reshape(-1)[: len(values)]


def one_sided_moments(prior: FloatArray, decay: float, degree: int) -> list[FloatArray]:
    """Return, for d = 0..degree, M_d[j] = Σ_{i≤j} (j−i)^d · prior[i] · decay^(j−i).

    From (j−i)^d = Σ_t C(d,t)·(j−1−i)^t: M_d is a decay filter of decay·Σ_{t<d} C(d,t)·M_t, one
    step later.
    """
    moments = [decay_filter(prior, decay)]
    for d in range(1, degree + 1):
        mixed = np.sum([comb(d, t) * moments[t] for t in range(d)], axis=0)
        shifted = np.concatenate([[0.0], decay * mixed[:-1]])
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

    def at(self, answers: IntArray) -> PosteriorSide:
        """Return the sides of some of the answers only."""
        return replace(
            self,
            anchor=self.anchor[answers],
            share=self.share[answers],
            log_weight=self.log_weight[answers],
        )


@dataclass(frozen=True, eq=False)
class Posteriors:
    """The posteriors of all answers 0..n; see `posteriors`.

    Attributes:
        prior: probabilities of 0..n.
        rate: −ln α, so that a step further costs a factor e^−rate.
        support: the counts of positive prior, ascending.
        rank: for each count, how many possible counts are at or below it.
        left, right: counts ≤ r, and counts > r.
        log_evidence: log of Σ_i prior[i]·α^|i−r| for each answer r.
    """

    prior: FloatArray
    rate: float
    support: IntArray
    rank: IntArray
    left: PosteriorSide
    right: PosteriorSide
    log_evidence: FloatArray
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

    def at(self, answers: IntArray) -> Posteriors:
        """Return the posteriors of some of the answers only."""
        return replace(
            self,
            left=self.left.at(answers),
            right=self.right.at(answers),
            log_evidence=self.log_evidence[answers],
            answers=answers,
        )

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


def posteriors(prior: FloatArray, alpha: Fraction, degree: int) -> Posteriors:
    """Prepare the posteriors of every answer with moments up to `degree`. O(n·degree)."""
    rate = decay_rate(alpha)
    decay = max(float(alpha), SMALLEST_ALPHA)
    kept = np.where(prior > _NEGLIGIBLE * prior.max(), prior, 0.0)
    support = np.flatnonzero(kept)
    answers = np.arange(len(prior))
    below = np.searchsorted(support, answers, side="right")
    left_anchor = support[np.maximum(below - 1, 0)]
    right_anchor = support[np.minimum(below, len(support) - 1)]

    left_moments = one_sided_moments(kept, decay, degree)
    right_moments = [m[::-1] for m in one_sided_moments(kept[::-1], decay, degree)]
    log_left, log_right = _log_at(left_moments[0], support), _log_at(right_moments[0], support)

    left_weight = np.where(
        below > 0, log_left[left_anchor] - rate * (answers - left_anchor), -np.inf
    )
    right_weight = np.where(
        below < len(support), log_right[right_anchor] - rate * (right_anchor - answers), -np.inf
    )
    evidence = np.logaddexp(left_weight, right_weight)
    left_share, right_share = np.exp(left_weight - evidence), np.exp(right_weight - evidence)
    left = PosteriorSide(left_anchor, left_share, left_weight, log_left, _relative(left_moments))
    right = PosteriorSide(
        right_anchor, right_share, right_weight, log_right, _relative(right_moments)
    )
    return Posteriors(kept, rate, support, below, left, right, evidence, answers)


def _log_at(mass: FloatArray, support: IntArray) -> FloatArray:
    logs = np.zeros_like(mass)
    logs[support] = np.log(mass[support])
    return logs


def _relative(moments: list[FloatArray]) -> tuple[FloatArray, ...]:
    """Divide by the zeroth moment; meaningful at the support, which is where it is read."""
    mass = np.where(moments[0] > 0, moments[0], 1.0)
    return tuple(moment / mass for moment in moments)
