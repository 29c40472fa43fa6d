"""A consumer's optimal remap of the geometric mechanism: Bayes' rule, then the least expected loss.

Answer r of the clipped mechanism becomes the answer that minimises the expected loss under the
posterior given r. The remap is deterministic; ties go to the smallest answer. For monotone losses
no other α-private mechanism is better for this consumer.

Losses without recursions use full posteriors, up to 10,000 counts, without truncation or
approximation. Answers are processed in blocks: for all answers of a block, the counts before it
have weights in fixed proportions, as have the counts after it, so each side enters as one mean loss
per candidate, which follows from that of the neighbouring block. All costs are then products of
small matrices with positive terms. Candidates come in panels, which bounds memory. Cost: about
26·n² multiplications at any α.

Theorem: docs/theory/geometric-mechanism.md (Whole posteriors)
"""

from __future__ import annotations

import math
import warnings
from collections.abc import Callable
from dataclasses import dataclass, field
from fractions import Fraction
from functools import cached_property
from typing import Any, TypeAlias

import numpy as np
from numpy.lib.stride_tricks import sliding_window_view
from numpy.typing import ArrayLike

from quiltwork.arguments import instance
from quiltwork.counts.consumers.consumer import Consumer, prior_log_probabilities
from quiltwork.counts.consumers.loss_functions import (
    Binary,
    ErrorLoss,
    FloatArray,
    IntArray,
    Loss,
    Pinball,
    Power,
)
from quiltwork.counts.consumers.universality import Universality
from quiltwork.counts.geometric_matrix import geometric_matrix
from quiltwork.counts.remaps.centres import mode, nearest_to_mean, quantile, tail_moments
from quiltwork.counts.remaps.posteriors import (
    LEAST_LOG,
    SMALLEST_ALPHA,
    Posteriors,
    decay_rate,
    posteriors,
)
from quiltwork.errors import InvalidInputError, QuiltworkWarning, UnsupportedError
from quiltwork.exact import Number, proper_fraction
from quiltwork.report.charts import MatrixChart
from quiltwork.results import ChartedResult, Interval

Columns: TypeAlias = Callable[[int, int], FloatArray]

_TIE = 1e-12


@dataclass(frozen=True, eq=False)
class BestAnswers:
    """For each answer the smallest optimal candidate, its cost, and the cost at face value."""

    answers: IntArray
    cost: FloatArray
    face_cost: FloatArray


def best_answers(
    post: Posteriors, columns: Columns, block: int = 24, panel: int = 2_000_000
) -> BestAnswers:
    """Return the smallest optimal candidates; columns(a, b) are the losses of all counts to a..b−1.

    Candidates within a relative 1e-12 of the optimum tie. Posteriors are cut into blocks of `block`
    counts, and at most `panel` losses are held at once.
    """
    size, every = post.n + 1, post.answers
    laws = _block_posteriors(post, block)
    least_cost = np.full(size, np.inf)
    best = BestAnswers(np.zeros(size, np.int64), np.full(size, np.inf), np.empty(size))
    width = max(1, panel // size)
    for first in range(0, size, width):
        end = min(first + width, size)
        costs = _costs(laws, columns(first, end))[:size]
        np.minimum(least_cost, costs.min(axis=1), out=least_cost)
        bound = least_cost * (1 + _TIE)
        at = np.argmax(costs <= bound[:, None], axis=1)
        better = best.cost > bound
        np.copyto(best.answers, first + at, where=better)
        np.copyto(best.cost, costs[every, at], where=better)
        best.face_cost[first:end] = costs[every[first:end], every[: end - first]]
    return best


@dataclass(frozen=True, eq=False)
class _BlockPosteriors:
    """Posteriors by block: mass of all counts before it, of its own counts, of all after it.

    Attributes:
        rows: given each answer of the block.
        upto: given its last answer, without the counts after it.
        since: given its first answer, without the counts before it.
    """

    rows: FloatArray
    upto: FloatArray
    since: FloatArray


def _block_posteriors(post: Posteriors, size: int) -> _BlockPosteriors:
    """Cut the posteriors into blocks; logarithms keep values below the smallest float."""
    firsts = np.arange(0, post.n + 1, size)
    within = np.arange(size)
    missing = len(firsts) * size - (post.n + 1)
    with np.errstate(divide="ignore"):
        own = np.log(post.prior) + post.scale
    prior = np.pad(own, (0, missing), constant_values=-np.inf).reshape(-1, 1, size)
    before = np.concatenate([[-np.inf], post.left.log_weight[firsts[1:] - 1]])
    after = np.concatenate([post.right.log_weight[firsts[1:] - 1], [-np.inf]])
    logs = np.empty((len(firsts), size, size + 2))
    logs[:, :, 0] = before[:, None] - post.rate * (within + 1)
    logs[:, :, 1:-1] = prior - post.rate * np.abs(within[:, None] - within)
    logs[:, :, -1] = after[:, None] - post.rate * within[::-1]
    return _BlockPosteriors(
        _normalized(logs), _normalized(logs[:, -1, :-1]), _normalized(logs[:, 0, 1:])
    )


def _normalized(logs: FloatArray) -> FloatArray:
    """Return probabilities along the last axis from log weights; zeros if there are none."""
    top = logs.max(axis=-1, keepdims=True)
    weights = np.exp(logs - np.where(np.isfinite(top), top, 0.0))
    total = weights.sum(axis=-1, keepdims=True)
    return np.asarray(weights / np.where(total > 0, total, 1.0))


def _costs(laws: _BlockPosteriors, losses: FloatArray) -> FloatArray:
    """Return the expected loss of every candidate, for every answer."""
    blocks, size, _ = laws.rows.shape
    means = np.zeros((blocks, size + 2, losses.shape[1]))
    for b, own in enumerate(means[:, 1:-1]):
        part = losses[b * size : (b + 1) * size]
        own[: len(part)] = part
    for b in range(blocks - 1):
        means[b + 1, 0] = laws.upto[b] @ means[b, :-1]
    for b in range(blocks - 1, 0, -1):
        means[b - 1, -1] = laws.since[b] @ means[b, 1:]
    return np.asarray((laws.rows @ means).reshape(blocks * size, losses.shape[1]))


LARGEST_ANY_LOSS = 10_000
_LARGEST_DRAWN = 400
_LARGEST_WRITTEN = 8
_NOTHING = 1e-250
UNKNOWN = -1
"""Entry of a remap's table where the reading is unknown."""
_CONTRADICTION = 1e-6  # 10,000 cells that fit the prior give one warning in a hundred tables
_IMPOSSIBLE = 1e-9


@dataclass(frozen=True, eq=False)
class Remap(ChartedResult):
    """A consumer's reading of the answers of one geometric mechanism.

    Attributes:
        table: the remapped answer of each answer 0..n; -1 where it is unknown.
        expected_loss: the consumer's expected loss after the remap, over its prior and the noise.
        face_value_loss: its expected loss if answers in 0..n are taken as they are.
        universality: whether the remap is optimal among all α-private mechanisms.
        alpha: the level of the mechanism.
        loss_name: the name of the loss.
        posteriors: of every answer.

    >>> read = optimal_remap(3, Fraction(1, 2), Consumer([0.5, 0, 0, 0.5]))
    >>> read(1), read.mapping
    (0, (0, 0, 3, 3))
    """

    schema = ("remap", 1)

    table: IntArray
    expected_loss: float
    face_value_loss: float
    universality: Universality
    alpha: Fraction
    loss_name: str
    posteriors: Posteriors = field(repr=False)

    @property
    def n(self) -> int:
        """The largest count."""
        return len(self.table) - 1

    @cached_property
    def mapping(self) -> tuple[int | None, ...]:
        """The remapped answer of each answer 0..n; None where it is unknown."""
        return tuple(None if reading == UNKNOWN else reading for reading in self.table.tolist())

    def __call__(self, released: ArrayLike) -> Any:
        """Remap one released count or a column of them; values outside 0..n are clipped first.

        Warns if a released count contradicts the prior; see `surprise`.
        """
        at = self._clipped(released)
        remapped = self.table[at]
        self._warn_of_contradictions(released)
        return int(remapped) if at.ndim == 0 else remapped

    def _warn_of_contradictions(self, released: ArrayLike) -> None:
        surprise = self.surprise(released)
        if (surprise < _CONTRADICTION).any():
            worst = np.argmin(surprise)
            worst_count = np.asarray(released).flat[worst]
            reading = self.table[self._clipped(released).flat[worst]]
            more = int((surprise < _CONTRADICTION).sum()) - 1
            warnings.warn(
                f"Released count {worst_count} contradicts the prior: under this prior and noise, "
                f"an answer this extreme has probability below 1e-6{_and_others(more)}. Its "
                f"reading, {reading}, depends on a prior that practically excludes it. Check the "
                "prior.",
                QuiltworkWarning,
                stacklevel=3,
            )

    def surprise(self, released: ArrayLike) -> FloatArray:
        """Return a two-sided p-value of released counts under the prior and the noise.

        It is twice the smaller tail of the distribution of answers, at most 1; small values
        contradict the prior.

        >>> steps = Consumer("uniform")
        >>> float(optimal_remap(1, Fraction(1, 2), steps).surprise(0))
        1.0
        """
        clipped = self._clipped(released)
        lower, upper = self._tails
        return np.asarray(np.minimum(1.0, 2 * np.minimum(lower[clipped], upper[clipped])))

    @cached_property
    def _tails(self) -> tuple[FloatArray, FloatArray]:
        """P(answer ≤ r) and P(answer ≥ r), each summed from its own end."""
        chances = self.posteriors.chances
        return np.cumsum(chances), np.cumsum(chances[::-1])[::-1]

    def interval(self, released: ArrayLike, confidence: Number = 0.95) -> Interval:
        """Return a credible interval (low, high), for one answer or a column.

        Each tail has at most half of the excluded posterior probability. It depends on the
        consumer's prior; `GeometricMechanism.interval` holds whatever the count. Warns as a reading
        does.
        """
        tail = (1 - proper_fraction(confidence, "confidence")) / 2
        clipped = self._clipped(released)
        self._warn_of_contradictions(released)
        low = quantile(self.posteriors, tail)[clipped]
        high = quantile(self.posteriors, 1 - tail)[clipped]
        return Interval(int(low), int(high)) if clipped.ndim == 0 else Interval(low, high)

    def _clipped(self, released: ArrayLike) -> IntArray:
        """Validate released counts of any size and clip them to 0..n."""
        try:
            values = np.asarray(released)
        except ValueError:  # nested lists of different lengths
            values = np.zeros(0)
        beyond_64_bits = values.dtype == object and all(type(v) is int for v in values.flat)
        if not (beyond_64_bits or np.issubdtype(values.dtype, np.integer)):
            raise InvalidInputError(
                f"Released counts must be integers, not {values.dtype}; give them as released."
            )
        clipped = np.asarray(np.clip(values, 0, self.n), dtype=np.int64)
        outside = np.asarray(values - clipped)
        if (too_far := np.asarray(np.abs(outside) > self._farthest)).any():
            released_count, distance = values[too_far].flat[0], outside[too_far].flat[0]
            side = f"above n = {self.n}" if distance > 0 else "below 0"
            raise InvalidInputError(
                f"Released count {released_count} is {abs(distance)} {side}; noise of this level "
                "reaches that far with probability below 1e-9. Check n, the number of people, and "
                "the level of the release."
            )
        if (doubtful := self.posteriors.doubtful[clipped]).any():
            raise UnsupportedError(
                f"The reading of released count {clipped[doubtful][0]} is unknown: the prior is "
                "below the smallest float there and has no logarithms. Give a distribution with "
                "logpmf, or an array, whose zeros are impossible counts."
            )
        return clipped

    @cached_property
    def _farthest(self) -> float:
        """The distance beyond 0..n that noise exceeds with probability 1e-9 at most."""
        decay = float(self.alpha)
        if decay == 0:
            return 0
        if decay == 1:
            return math.inf
        # P(noise ≥ d) = α^d / (1 + α)
        return max(0, math.floor(math.log(_IMPOSSIBLE * (1 + decay)) / -decay_rate(self.alpha)))

    def records(self) -> list[dict[str, Any]]:
        """Return a row per answer; a reading of None is unknown."""
        return [
            {"released": released, "reading": reading}
            for released, reading in enumerate(self.mapping)
        ]

    def explain(self) -> str:
        """Return the expected losses, and whether another private mechanism may be better."""
        better = "is better" if self.universality.proven else "is known to be better"
        return (
            f"The expected {self.loss_name} loss over answers 0..{self.n} is "
            f"{self.expected_loss:.6g} after the remap and {self.face_value_loss:.6g} at face "
            f"value. No mechanism of this level {better}."
        )

    def charts(self) -> tuple[MatrixChart, MatrixChart]:
        """Return heat maps of the probabilities of all answers, before and after the remap.

        Raises:
            UnsupportedError: above n = 400.
        """
        if self.n > _LARGEST_DRAWN:
            raise UnsupportedError(
                f"Heat maps are drawn up to n = {_LARGEST_DRAWN}; this is n = {self.n}."
            )
        before = geometric_matrix(self.n, self.alpha)
        after = np.zeros_like(before)
        is_known = self.table != UNKNOWN
        np.add.at(after.T, self.table[is_known], before.T[is_known])
        return (
            _heat_map(f"geometric mechanism, α = {float(self.alpha):.3g}", before),
            _heat_map(f"remapped for {self.loss_name} loss", after),
        )

    def chart(self) -> MatrixChart:
        """Return the heat map of the probabilities of all answers after the remap."""
        return self.charts()[1]

    def body(self) -> dict[str, Any]:
        """Return the remap as JSON values."""
        return {
            "n": self.n,
            "alpha": str(self.alpha),
            "loss": self.loss_name,
            "mapping": list(self.mapping),
            "expected_loss": self.expected_loss,
            "face_value_loss": self.face_value_loss,
            "universality": self.universality.condition,
        }


def _and_others(count: int) -> str:
    if count == 0:
        return ""
    return f" ({count} more contradict it)" if count > 1 else " (1 more contradicts it)"


def _heat_map(title: str, matrix: FloatArray) -> MatrixChart:
    """Return one matrix as a heat map; shaded by the square root, so that faint diagonals show."""
    names = tuple(map(str, range(len(matrix))))
    written = matrix.tolist() if len(matrix) <= _LARGEST_WRITTEN else []
    return MatrixChart(
        title,
        "Darker cells are more probable answers (shaded by the square root of the probability).",
        "count",
        "answer",
        names,
        names,
        tuple(map(tuple, np.sqrt(matrix).tolist())),
        tuple(tuple(f"{value:.2g}" for value in row) for row in written),
    )


def optimal_remap(n: int, alpha: Fraction, consumer: Consumer) -> Remap:
    """Return the consumer's optimal remap of the geometric mechanism for counts 0..n.

    O(n) for absolute, asymmetric, squared and binary losses, times a logarithm for their costs;
    O(n²) for all others.

    >>> reader = Consumer([1/4, 0, 1/4, 0, 1/4, 1/4], "power:3/2")
    >>> optimal_remap(5, Fraction(1, 2), reader).mapping
    (0, 2, 2, 3, 4, 5)

    Theorem: docs/theory/geometric-mechanism.md
    """
    loss = instance(consumer, Consumer, "consumer").loss
    if n > LARGEST_ANY_LOSS and _degree(loss) is None:
        raise UnsupportedError(
            f"The {loss.name} loss is evaluated on every pair of count and answer, up to n = "
            f"{LARGEST_ANY_LOSS}; this is n = {n}. Count in larger units, or use an absolute, "
            "asymmetric, squared or binary loss, which allow any n."
        )
    condition = consumer.universality(n)
    post, chosen = choose(loss, prior_log_probabilities(consumer.prior, n), alpha)
    chances = post.chances
    expected, face = (float(chances @ part) for part in (chosen.cost, chosen.face_cost))
    # α = 0 is computed as 2^-1000, which leaves a residue of noise.
    if alpha < SMALLEST_ALPHA:
        expected, face = _cleared(expected), _cleared(face)
    return Remap(
        table=np.where(post.doubtful, UNKNOWN, chosen.answers),
        expected_loss=expected,
        face_value_loss=face,
        universality=condition,
        alpha=alpha,
        loss_name=loss.name,
        posteriors=post,
    )


def _cleared(loss: float) -> float:
    """Drop the residue of noise at α = 0, which is represented by 2^-1000."""
    return loss if loss > _NOTHING else 0.0


def choose(loss: Loss, logs: FloatArray, alpha: Fraction) -> tuple[Posteriors, BestAnswers]:
    """Return all posteriors and the best answer to each, from the log prior."""
    degree = _degree(loss)
    post = posteriors(logs, alpha, degree or 0)
    if degree is None:
        return post, best_answers(post, _columns(loss, post.n))
    under, over = 1.0, 1.0
    if isinstance(loss, Pinball):
        answers, under, over = quantile(post, loss.level), float(loss.under), float(loss.over)
    else:
        answers = nearest_to_mean(post) if degree else mode(post)

    def cost(remapped: IntArray) -> FloatArray:
        remapped = np.where(
            post.log_evidence > LEAST_LOG, remapped, post.answers
        )  # the others do not change it
        below, above = tail_moments(post, remapped, degree)
        return over * below + under * above

    return post, BestAnswers(answers, cost(answers), cost(post.answers))


def _degree(loss: Loss) -> int | None:
    """Return the moments needed by a loss with recursions; None for losses of all pairs."""
    if isinstance(loss, Pinball):
        return 1
    if isinstance(loss, Binary):
        return 0
    return 2 if isinstance(loss, Power) and loss.exponent == 2 else None


def _columns(loss: Loss, n: int) -> Columns:
    """Return the function from a range of candidates to the losses of all counts."""
    counts = np.arange(n + 1)
    if isinstance(loss, Power):
        loss.refuse_beyond_floats(n)
        by_error = np.abs(np.arange(-n, n + 1.0)) ** float(loss.exponent)
    elif isinstance(loss, ErrorLoss):
        by_error = loss.by_error(n)
    else:
        return lambda first, end: loss.table(counts[:, None], counts[None, first:end])
    by_count = sliding_window_view(by_error, n + 1)[::-1]
    return lambda first, end: by_count[:, first:end]
