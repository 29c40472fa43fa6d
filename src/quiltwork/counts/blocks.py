"""The best answer to every posterior under a power of the error above 1, in linear time.

Answers and candidates come in blocks. Given a block of answers, costs are a matrix product with
the counts of the block itself, plus two laws, of the counts before and after it, that all its
answers share (`counts.farfield`). As the best answer never falls, pairs of blocks form a
staircase, at most two per block of counts and one more per step: O(n·(B + K)) multiplications.

Theorem: geometric-mechanism, *Powers that are no integers*.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.lib.stride_tricks import sliding_window_view

from quiltwork.counts.exponentials import PowerSum
from quiltwork.counts.farfield import SideCosts
from quiltwork.counts.filters import Posteriors
from quiltwork.counts.losses import FloatArray, IntArray

_SIZE = 64
_TIE = 1e-12


@dataclass(frozen=True, eq=False)
class Centres:
    """For each answer the least best candidate, its cost and the cost at face value."""

    answers: IntArray
    cost: FloatArray
    face_cost: FloatArray


def power_centres(post: Posteriors, exponent: float, terms: PowerSum) -> Centres:
    """Return the least best candidates for |i−r|^exponent, exponent ≥ 1.

    Candidates within a relative 1e-12 of the best count as tied.
    """
    blocks = -(-(post.n + 1) // _SIZE)
    costs = _Costs(post, exponent, terms, blocks)
    answers = np.empty((blocks, _SIZE), dtype=np.int64)
    cost, face = np.empty((blocks, _SIZE)), np.empty((blocks, _SIZE))
    first, last = int(post.support[0]) // _SIZE, int(post.support[-1]) // _SIZE
    for b in range(blocks):
        rows = costs.posterior(b)
        answers[b], cost[b] = _settle(costs, rows, b, first, last)
        face[b] = np.diagonal(costs.table(rows, b, b))
        first = int(answers[b, -1]) // _SIZE
    kept = slice(0, post.n + 1)
    return Centres(answers.ravel()[kept], cost.ravel()[kept], face.ravel()[kept])


def _settle(
    costs: _Costs, rows: FloatArray, b: int, first: int, last: int
) -> tuple[IntArray, FloatArray]:
    """Try candidates block by block, until the last answer's cost has risen at a block's end."""
    every = np.arange(_SIZE)
    answers, best = np.zeros(_SIZE, dtype=np.int64), np.full(_SIZE, np.inf)
    for c in range(first, last + 1):
        table = costs.table(rows, b, c)
        at = np.argmax(table <= table.min(axis=1, keepdims=True) * (1 + _TIE), axis=1)
        found = table[every, at]
        better = found < best * (1 - _TIE)
        answers = np.where(better, c * _SIZE + at, answers)
        best = np.where(better, found, best)
        if table[-1, -1] > best[-1] * (1 + _TIE):
            break
    return answers, best


class _Costs:
    """The costs of blocks of answers and candidates."""

    def __init__(self, post: Posteriors, exponent: float, terms: PowerSum, blocks: int) -> None:
        self._exponent, self._rate, self._blocks = exponent, post.rate, blocks
        missing = blocks * _SIZE - (post.n + 1)
        with np.errstate(divide="ignore"):
            log_prior = np.log(np.pad(post.prior, (0, missing)))
        self._log_prior = log_prior.reshape(blocks, _SIZE)
        left = np.pad(post.left.log_mass, (0, missing))
        right = np.pad(post.right.log_mass, (0, missing))
        self._log_before = _at_boundaries(log_prior, left, post.rate)
        self._log_after = _at_boundaries(log_prior[::-1], right[::-1], post.rate)[::-1]
        kernel = self._kernel(0)
        mirrored = self._log_prior[::-1, ::-1]
        self._left = SideCosts(terms, post.rate, self._log_prior, self._log_before, kernel)
        self._right = SideCosts(terms, post.rate, mirrored, self._log_after[::-1], kernel)
        offsets = np.arange(_SIZE)
        self._fading = post.rate * offsets
        self._decay = post.rate * np.abs(offsets[:, None] - offsets)

    def posterior(self, b: int) -> FloatArray:
        """Return per answer the probabilities: all counts before the block, its own, all after."""
        logs = np.empty((_SIZE, _SIZE + 2))
        logs[:, 0] = self._log_before[b] - self._fading
        logs[:, 1:-1] = self._log_prior[b] - self._decay
        logs[:, -1] = self._log_after[b] - self._fading[::-1]
        weights = np.exp(logs - logs.max(axis=1, keepdims=True))
        return np.asarray(weights / weights.sum(axis=1, keepdims=True))

    def table(self, rows: FloatArray, b: int, c: int) -> FloatArray:
        """Return the costs of block c's candidates to block b's answers."""
        mirror = self._blocks - 1
        sides = np.stack([self._left.at(b, c), self._right.at(mirror - b, mirror - c)[::-1]])
        return np.asarray(rows[:, 1:-1] @ self._kernel(b - c) + rows[:, [0, -1]] @ sides)

    def _kernel(self, apart: int) -> FloatArray:
        """Return the losses of every count of a block to every candidate `apart` blocks before."""
        errors = np.arange(1 - _SIZE, _SIZE, dtype=np.float64) + apart * _SIZE
        return sliding_window_view(np.abs(errors) ** self._exponent, _SIZE)[:, ::-1]


def _at_boundaries(log_prior: FloatArray, log_mass: FloatArray, rate: float) -> FloatArray:
    """Return log Σ_{i < bB} p[i]·α^(bB−i) for each b, from the sums up to possible counts."""
    places = np.arange(len(log_prior))
    anchors = np.maximum.accumulate(np.where(np.isfinite(log_prior), places, -1))
    starts = places[::_SIZE]
    anchor = np.concatenate([[-1], anchors[starts[1:] - 1]])
    return np.where(anchor >= 0, log_mass[anchor] - rate * (starts - anchor), -np.inf)
