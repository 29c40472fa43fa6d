"""A consumer's optimal remap of the geometric mechanism: Bayes' rule, then the least loss.

Answer r of the range-restricted mechanism becomes the answer that minimises the expected loss
under the posterior given r. It is deterministic; ties go to the smallest answer. For monotone
losses no other α-private mechanism serves this consumer better.

Theorem: geometric-mechanism
"""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from fractions import Fraction
from functools import cached_property, singledispatch
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from quiltwork import files
from quiltwork.arguments import instance
from quiltwork.counts.consumers.consumer import Consumer
from quiltwork.counts.consumers.losses import (
    Binary,
    ErrorLoss,
    FloatArray,
    IntArray,
    Loss,
    MatrixLoss,
    Pinball,
    Power,
)
from quiltwork.counts.consumers.monotonicity import Universality, is_convex, is_unimodal
from quiltwork.counts.geometric import GeometricMechanism
from quiltwork.counts.remaps import blocks, centres, confined, partial, windows
from quiltwork.counts.remaps.concave import concave_centres
from quiltwork.counts.remaps.filters import SMALLEST_ALPHA, Posteriors, decay_rate, posteriors
from quiltwork.counts.remaps.quantiles import quantile
from quiltwork.counts.remaps.whole import LARGEST_WHOLE, Centres, whole_centres
from quiltwork.errors import InvalidInputError, UnsupportedError
from quiltwork.exact import Number, to_fraction

LARGEST_CALLABLE = 10_000
_CALL_SECONDS = 1e-6  # measured, of a short function
_LARGEST_WORK = 2e11
_LARGEST_WIDE = 10_000
_WHOLE_WORK = 8  # multiplications per pair that whole posteriors are worth
_NOTHING = 1e-250
_USUAL_SPREAD = 1e9  # of a free loss; what its real spread makes of the cut is reported


@dataclass(frozen=True, eq=False)
class Chosen:
    """What a loss's algorithm found: answers, their conditional costs, the cost of face value."""

    answers: IntArray
    cost: FloatArray
    face_cost: FloatArray
    truncation: float = 0.0
    excess: float = 0.0  # what approximate costs may have added, as a part of the loss


@dataclass(frozen=True, eq=False)
class Remap:
    """How one consumer reads the answers of one geometric mechanism.

    Attributes:
        table: the remapped answer of each answer 0..n.
        expected_loss: what the consumer loses after the remap, over its prior and the noise.
        face_value_loss: what it would lose by taking answers in 0..n as they are.
        truncation_cost: proven bound on what cutting posteriors, or writing powers as sums of
            exponentials, added; 0 where neither was done.
        universality: whether no α-private mechanism at all does better.
    """

    table: IntArray
    expected_loss: float
    face_value_loss: float
    truncation_cost: float
    universality: Universality
    alpha: Fraction
    loss_name: str
    posteriors: Posteriors = field(repr=False)

    @property
    def n(self) -> int:
        """The largest count."""
        return len(self.table) - 1

    @cached_property
    def mapping(self) -> tuple[int, ...]:
        """The remapped answer of each answer 0..n, as a tuple."""
        return tuple(self.table.tolist())

    def __call__(self, released: ArrayLike) -> Any:
        """Remap one released count or a column of them; values outside 0..n are clipped first."""
        at = self._clipped(released)
        remapped = self.table[at]
        return int(remapped) if at.ndim == 0 else remapped

    def interval(self, released: ArrayLike, confidence: Number = 0.95) -> Any:
        """Return (lo, hi) with at least this posterior probability, for one answer or a column.

        Both tails have at most half of what is left out. The consumer's prior counts here; an
        interval that holds whatever the count is comes from `GeometricMechanism.interval`.
        """
        level = to_fraction(confidence, "confidence")
        if not 0 < level < 1:
            raise InvalidInputError(f"confidence must lie between 0 and 1, not {confidence!r}.")
        tail = (1 - level) / 2
        at = self._clipped(released)
        low = quantile(self.posteriors, tail)[at]
        high = quantile(self.posteriors, 1 - tail)[at]
        return (int(low), int(high)) if at.ndim == 0 else (low, high)

    def _clipped(self, released: ArrayLike) -> IntArray:
        """Read released counts of any size and move them into 0..n."""
        try:
            values = np.asarray(released)
        except ValueError:  # rows of different lengths
            values = np.zeros(0)
        beyond_64_bits = values.dtype == object and all(type(v) is int for v in values.flat)
        if not (beyond_64_bits or np.issubdtype(values.dtype, np.integer)):
            raise InvalidInputError(
                f"Released counts are integers, not {values.dtype}; give them as released."
            )
        return np.asarray(np.clip(values, 0, self.n), dtype=np.int64)

    def to_json(self) -> str:
        """Return the remap as a document of schema `quiltwork/remap`."""
        body = {
            "n": self.n,
            "alpha": str(self.alpha),
            "loss": self.loss_name,
            "mapping": self.table.tolist(),
            "expected_loss": self.expected_loss,
            "face_value_loss": self.face_value_loss,
            "truncation_cost": self.truncation_cost,
            "universality": self.universality.condition,
        }
        return files.dump("remap", 1, body)


def optimal_remap(mechanism: GeometricMechanism, consumer: Consumer) -> Remap:
    """Return the consumer's optimal remap.

    O(n) for absolute, asymmetric, squared and binary losses and powers from 1 on, O(n log n) for
    powers below 1, O(n·window) for other convex functions of the error, O(n·window·log n) for those
    that only rise on both sides, O(n²·window) for matrices and callables. Up to n = 4,000 functions
    of the error and powers other than 1 and 2 take O(n²) multiplications, which is faster there.

    Raises:
        UnsupportedError: for callables above n = 10,000 and functions of the error with windows
            that would take many minutes, with an estimate of their cost.

    >>> g = GeometricMechanism(5, alpha=0.5)
    >>> optimal_remap(g, Consumer([1/4, 0, 1/4, 0, 1/4, 1/4], "power:3/2")).mapping
    (0, 2, 2, 3, 4, 5)

    Theorem: geometric-mechanism
    """
    prior = instance(consumer, Consumer, "consumer").probabilities(mechanism.n)
    post, chosen = choose(consumer.loss, prior, mechanism.alpha)
    chances = post.chances
    expected, face = (float(chances @ part) for part in (chosen.cost, chosen.face_cost))
    if mechanism.alpha < SMALLEST_ALPHA:
        expected, face = _cleared(expected), _cleared(face)
    return Remap(
        table=chosen.answers,
        expected_loss=expected,
        face_value_loss=face,
        truncation_cost=chosen.truncation + chosen.excess * expected,
        universality=consumer.universality(mechanism.n),
        alpha=mechanism.alpha,
        loss_name=consumer.loss.name,
        posteriors=post,
    )


def _cleared(loss: float) -> float:
    """Drop what is left of noise at α = 0, which is kept as 2^-1000."""
    return loss if loss > _NOTHING else 0.0


@singledispatch
def choose(loss: Any, prior: FloatArray, alpha: Fraction) -> tuple[Posteriors, Chosen]:
    """Find the best answer to every answer's posterior; one algorithm per kind of loss."""
    _refuse_large(loss, len(prior) - 1)
    return _scanned(loss, prior, alpha)


@choose.register
def _choose_matrix(
    loss: MatrixLoss, prior: FloatArray, alpha: Fraction
) -> tuple[Posteriors, Chosen]:
    return _scanned(loss, prior, alpha)


@choose.register
def _choose_pinball(loss: Pinball, prior: FloatArray, alpha: Fraction) -> tuple[Posteriors, Chosen]:
    post = posteriors(prior, alpha, 1)
    answers = quantile(post, loss.level)
    under, over = float(loss.under), float(loss.over)

    def exactly(rows: IntArray, told: IntArray) -> FloatArray:
        below, above = partial.sides(post.at(rows), told, 1)
        return over * below + under * above

    cost = partial.keep_digits(
        post,
        centres.pinball_cost(post, answers, loss),
        (under + over) * partial.spread(post, answers, 1),
        lambda rows: exactly(rows, answers[rows]),
    )
    return post, Chosen(answers, cost, exactly(post.answers, post.answers))


@choose.register
def _choose_binary(loss: Binary, prior: FloatArray, alpha: Fraction) -> tuple[Posteriors, Chosen]:
    post = posteriors(prior, alpha, 0)
    answers = centres.mode(post)

    def exactly(rows: IntArray, told: IntArray) -> FloatArray:
        below, above = partial.sides(post.at(rows), told, 0)
        return below + above

    cost = partial.keep_digits(
        post,
        centres.mode_cost(post, answers),
        centres.mode_spread(post),
        lambda rows: exactly(rows, answers[rows]),
    )
    return post, Chosen(answers, cost, exactly(post.answers, post.answers))


@choose.register
def _choose_power(loss: Power, prior: FloatArray, alpha: Fraction) -> tuple[Posteriors, Chosen]:
    if loss.exponent != 2:
        return _choose_any_power(loss, prior, alpha)
    post = posteriors(prior, alpha, 2)
    answers = centres.nearest_to_mean(post)

    def exactly(rows: IntArray) -> FloatArray:
        below, above = partial.sides(post.at(rows), answers[rows], 2)
        return below + above

    size = partial.spread(post, answers, 2)
    cost = partial.keep_digits(post, centres.squared_cost(post, answers), size, exactly)
    return post, Chosen(answers, cost, centres.squared_cost(post, post.answers))


def _choose_any_power(loss: Power, prior: FloatArray, alpha: Fraction) -> tuple[Posteriors, Chosen]:
    n = len(prior) - 1
    loss.refuse_beyond_floats(n)
    if n <= LARGEST_WHOLE or not blocks.covers(loss.exponent, n):
        by_error = np.abs(np.arange(-n, n + 1, dtype=np.float64)) ** float(loss.exponent)
        return _unimodal(by_error, prior, alpha)
    post = posteriors(prior, alpha, 0)
    find = blocks.power_centres if loss.exponent > 1 else concave_centres
    return post, _found(find(post, loss.exponent))


def _found(centres: Centres) -> Chosen:
    return Chosen(centres.answers, centres.cost, centres.face_cost, excess=centres.excess)


@choose.register
def _choose_errorloss(
    loss: ErrorLoss, prior: FloatArray, alpha: Fraction
) -> tuple[Posteriors, Chosen]:
    by_error = loss.by_error(len(prior) - 1)
    if not is_unimodal(by_error):
        _refuse_large(loss, len(prior) - 1)
        return _scanned(loss, prior, alpha)
    return _unimodal(by_error, prior, alpha)


def _unimodal(
    by_error: FloatArray, prior: FloatArray, alpha: Fraction
) -> tuple[Posteriors, Chosen]:
    """Choose by whole posteriors while they are few, by cut ones where windows are narrow."""
    n, largest = len(prior) - 1, float(by_error.max())
    least = float(by_error[by_error > 0].min(initial=largest))
    reach = windows.reach_for(decay_rate(alpha), n, largest / least if least else 1.0)
    costs = 4.0 * (n + 1) * (4 if is_convex(by_error) else max(1, n.bit_length()))
    work = costs * (reach + 1)
    if n <= LARGEST_WHOLE or (n <= _LARGEST_WIDE and work > _WHOLE_WORK * n**2):
        post = posteriors(prior, alpha, 0)
        return post, _found(whole_centres(post, by_error))
    if work > _LARGEST_WORK:
        raise UnsupportedError(
            f"This loss at n = {n} and alpha = {float(alpha):.6g} needs windows of {reach} counts, "
            f"about {work / 3e8:.0f} s; powers of the error take any alpha. Use one, a smaller n, "
            "or a smaller alpha."
        )
    return _windowed(by_error, prior, alpha, reach, costs)


def _windowed(
    by_error: FloatArray, prior: FloatArray, alpha: Fraction, reach: int, costs: float
) -> tuple[Posteriors, Chosen]:
    """Choose by posteriors cut at `reach`, or further out if that hides the expected loss."""
    largest = float(by_error.max())
    post = posteriors(prior, alpha, 1)
    window = windows.Window(post, reach)

    def cost(answers: IntArray, candidates: IntArray) -> FloatArray:
        return window.cost(answers, candidates, by_error)

    low, high = _candidates(post, by_error)
    if is_convex(by_error):
        guess = (quantile(post, Fraction(1, 2)) + centres.nearest_to_mean(post)) // 2
        answers = confined.convex_centres(guess, low, high, confined.falling(cost))
    else:
        answers = windows.monotone_centres(post, low, high, cost)
    every, found = post.answers, cost(post.answers, answers)
    enough = windows.reach_after(post, reach, float(post.chances @ found), largest)
    if enough > reach and costs * (enough + 1) <= _LARGEST_WORK:
        return _windowed(by_error, prior, alpha, enough, costs)
    cut = windows.cut_cost(post, reach, largest)
    return post, Chosen(answers, found, cost(every, every), cut)


def _candidates(post: Posteriors, by_error: FloatArray) -> tuple[int, int]:
    """Return the range of answers that holds every least minimiser of a unimodal loss.

    An answer below all possible counts is never better than the least of them, and as good only
    where undershooting by one costs nothing.
    """
    flat = by_error[post.n - 1] == by_error[post.n]
    return 0 if flat else int(post.support[0]), int(post.support[-1])


def _scanned(loss: Loss, prior: FloatArray, alpha: Fraction) -> tuple[Posteriors, Chosen]:
    post = posteriors(prior, alpha, 0)
    reach = windows.reach_for(post.rate, post.n, _USUAL_SPREAD)
    scan = windows.scan_centres(windows.Window(post, reach), loss)
    enough = windows.reach_after(post, reach, float(post.chances @ scan.cost), scan.largest_loss)
    if enough > reach:
        reach = enough
        scan = windows.scan_centres(windows.Window(post, reach), loss)
    cut = windows.cut_cost(post, reach, scan.largest_loss)
    return post, Chosen(scan.answers, scan.cost, scan.face_cost, cut)


def _refuse_large(loss: Loss, n: int) -> None:
    if n > LARGEST_CALLABLE:
        calls = (n + 1.0) ** 2
        minutes = math.ceil(calls * _CALL_SECONDS / 60)
        raise UnsupportedError(
            f"The {loss.name} loss at n = {n} takes {calls:.1e} calls, about {minutes} "
            f"minutes; callables stop at n = {LARGEST_CALLABLE}. "
            "If it depends on the error only and grows with it, use losses.ErrorLoss."
        )
