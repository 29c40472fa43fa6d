"""Best answers from whole posteriors, for any loss and up to 10,000 counts.

Nothing is cut off and nothing approximated. Answers come in blocks. For those of one block the
counts before it have weights in fixed proportions, and so have the counts after it: each side
enters as one mean loss per candidate, which follows from that of the block beside it. So all costs
are products of small matrices, whose terms are all positive. Candidates come in panels, which
bounds memory. Cost: about 26·n² multiplications at any α.

Theorem: docs/theory/geometric-mechanism.md (Whole posteriors)
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import TypeAlias

import numpy as np

from quiltwork.counts.consumers.losses import FloatArray, IntArray
from quiltwork.counts.remaps.posteriors import Posteriors

Columns: TypeAlias = Callable[[int, int], FloatArray]

_SIZE = 24
_PANEL = 2_000_000  # losses at once
_TIE = 1e-12


@dataclass(frozen=True, eq=False)
class Chosen:
    """For each answer the least best candidate, its cost and the cost at face value."""

    answers: IntArray
    cost: FloatArray
    face_cost: FloatArray


def best_answers(post: Posteriors, columns: Columns) -> Chosen:
    """Return the least best candidates; columns(a, b) are the losses of all counts to a..b−1.

    Candidates within a relative 1e-12 of the best count as tied.
    """
    size, every = post.n + 1, post.answers
    laws = _laws(post)
    least = np.full(size, np.inf)
    found = Chosen(np.zeros(size, np.int64), np.full(size, np.inf), np.empty(size))
    width = max(1, _PANEL // size)
    for first in range(0, size, width):
        end = min(first + width, size)
        costs = _costs(laws, columns(first, end))[:size]
        np.minimum(least, costs.min(axis=1), out=least)
        bound = least * (1 + _TIE)
        at = np.argmax(costs <= bound[:, None], axis=1)
        better = found.cost > bound
        np.copyto(found.answers, first + at, where=better)
        np.copyto(found.cost, costs[every, at], where=better)
        found.face_cost[first:end] = costs[every[first:end], every[: end - first]]
    return found


@dataclass(frozen=True, eq=False)
class _Laws:
    """Probabilities by block: of all counts before it, of its own counts, of all after it.

    Attributes:
        rows: given each answer of the block.
        upto: given its last answer, without the counts after it.
        since: given its first answer, without the counts before it.
    """

    rows: FloatArray
    upto: FloatArray
    since: FloatArray


def _laws(post: Posteriors) -> _Laws:
    """Cut the posteriors into blocks; logarithms keep what is below the least float."""
    firsts = np.arange(0, post.n + 1, _SIZE)
    within = np.arange(_SIZE)
    missing = len(firsts) * _SIZE - (post.n + 1)
    with np.errstate(divide="ignore"):
        prior = np.log(np.pad(post.prior, (0, missing))).reshape(-1, 1, _SIZE)
    before = np.concatenate([[-np.inf], post.left.log_weight[firsts[1:] - 1]])
    after = np.concatenate([post.right.log_weight[firsts[1:] - 1], [-np.inf]])
    logs = np.empty((len(firsts), _SIZE, _SIZE + 2))
    logs[:, :, 0] = before[:, None] - post.rate * (within + 1)
    logs[:, :, 1:-1] = prior - post.rate * np.abs(within[:, None] - within)
    logs[:, :, -1] = after[:, None] - post.rate * within[::-1]
    return _Laws(_normalized(logs), _normalized(logs[:, -1, :-1]), _normalized(logs[:, 0, 1:]))


def _normalized(logs: FloatArray) -> FloatArray:
    """Turn logarithms of weights into probabilities along the last axis; none into zeros."""
    top = logs.max(axis=-1, keepdims=True)
    weights = np.exp(logs - np.where(np.isfinite(top), top, 0.0))
    total = weights.sum(axis=-1, keepdims=True)
    return np.asarray(weights / np.where(total > 0, total, 1.0))


def _costs(laws: _Laws, losses: FloatArray) -> FloatArray:
    """Return the mean loss of every candidate to every answer, from that to every count."""
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
