"""The best answer to every posterior under a power of the error above 1, in linear time.

Answers and candidates come in blocks. Given a block of answers, costs are a matrix product with
the counts of the block itself, plus two laws, of the counts before and after it, that all its
answers share (`counts.farfield`). As the best answer never falls, pairs of blocks form a
staircase, at most two per block of counts and one more per step: O(n·(B + K)) multiplications.

Theorem: geometric-mechanism, *Powers that are no integers*.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from fractions import Fraction
from functools import cache

import numpy as np
from numpy.lib.stride_tricks import sliding_window_view

from quiltwork.counts.exponentials import PowerSum, power_sum
from quiltwork.counts.farfield import Layout, SideCosts
from quiltwork.counts.filters import Posteriors
from quiltwork.counts.losses import FloatArray, IntArray

_SIZE = 60  # 60·62·60 multiplications: the largest product that BLAS leaves to one thread
_KERNELS = 64
_LARGEST_DIGITS = 250
_TIE = 1e-12


@dataclass(frozen=True, eq=False)
class Centres:
    """For each answer the least best candidate, its cost and the cost at face value.

    Attributes:
        excess: proven bound on how much more than the best answers these cost, as a part of it.
    """

    answers: IntArray
    cost: FloatArray
    face_cost: FloatArray
    excess: float


def covers(exponent: Fraction, n: int) -> bool:
    """Whether `power_centres` finds this loss's best answers: convex, and moments within floats."""
    return exponent >= 1 and math.ceil(exponent) * math.log10(n + 2 * _SIZE) < _LARGEST_DIGITS


def power_centres(post: Posteriors, exponent: Fraction) -> Centres:
    """Return the least best candidates for |i−r|^exponent, exponent ≥ 1.

    Candidates within a relative 1e-12 of the best count as tied.
    """
    blocks = -(-(post.n + 1) // _SIZE)
    terms = power_sum(exponent, (blocks + 1) * _SIZE)
    costs = _Costs(post, float(exponent), terms, blocks)
    answers = np.empty((blocks, _SIZE), dtype=np.int64)
    cost, face = np.empty((blocks, _SIZE)), np.empty((blocks, _SIZE))
    first, last = int(post.support[0]) // _SIZE, int(post.support[-1]) // _SIZE
    for b in range(blocks):
        rows, losses = costs.posterior(b), costs.losses(b)
        answers[b], cost[b] = _settle(rows, losses, first, last)
        face[b] = np.einsum("ij,ji->i", rows, losses(b))
        first = int(answers[b, -1]) // _SIZE
    kept = slice(0, post.n + 1)
    excess = (1 + _TIE) / (1 - _TIE) * (1 + terms.error) / (1 - terms.error) ** 2 - 1
    return Centres(answers.ravel()[kept], cost.ravel()[kept], face.ravel()[kept], excess)


def _settle(
    rows: FloatArray, losses: Callable[[int], FloatArray], first: int, last: int
) -> tuple[IntArray, FloatArray]:
    """Try the candidate blocks from that of the first answer's best to that of the last's.

    Costs are convex: where the first answer's falls from a block to the next, so do those of
    all; where the last answer's rises, so do those of all.
    """
    while first < last and _change(rows[0], losses, first) < -_TIE:
        first += 1
    every = np.arange(_SIZE)
    answers, cost = np.zeros(_SIZE, dtype=np.int64), np.zeros(_SIZE)
    best = np.full(_SIZE, np.inf)
    for c in range(first, last + 1):
        table = rows @ losses(c)
        least = table.min(axis=1)
        at = np.argmax(table <= (least * (1 + _TIE))[:, None], axis=1)
        better = least < best * (1 - _TIE)
        answers = np.where(better, c * _SIZE + at, answers)
        cost = np.where(better, table[every, at], cost)
        best = np.where(better, least, best)
        if c == last or _change(rows[-1], losses, c) > _TIE:
            break
    return answers, cost


def _change(row: FloatArray, losses: Callable[[int], FloatArray], c: int) -> float:
    """Return by what part an answer's cost grows from block c's last candidate to the next."""
    end, start = float(row @ losses(c)[:, -1]), float(row @ losses(c + 1)[:, 0])
    return (start - end) / end if end > 0 else math.inf if start > 0 else 0.0


class _Costs:
    """Costs of blocks of candidates to blocks of answers, as products of two matrices.

    Rows hold an answer's probabilities: of all counts before its block, of the block's counts, of
    all counts after it. Columns hold the mean losses of one candidate to each of these.
    """

    def __init__(self, post: Posteriors, exponent: float, terms: PowerSum, blocks: int) -> None:
        self._exponent, self._blocks = exponent, blocks
        missing = blocks * _SIZE - (post.n + 1)
        with np.errstate(divide="ignore"):
            log_prior = np.log(np.pad(post.prior, (0, missing)))
        self._log_prior = log_prior.reshape(blocks, _SIZE)
        left = np.pad(post.left.log_mass, (0, missing))
        right = np.pad(post.right.log_mass, (0, missing))
        self._log_before = _at_boundaries(log_prior, left, post.rate)
        self._log_after = _at_boundaries(log_prior[::-1], right[::-1], post.rate)[::-1]
        self._kernels: dict[int, FloatArray] = {}
        layout = Layout(terms, _SIZE, self._kernel(0))
        mirrored = self._log_prior[::-1, ::-1]
        self._left = SideCosts(layout, post.rate, self._log_prior, self._log_before)
        self._right = SideCosts(layout, post.rate, mirrored, self._log_after[::-1])
        offsets = np.arange(_SIZE)
        self._fading = post.rate * offsets
        self._decay = post.rate * np.abs(offsets[:, None] - offsets)

    def posterior(self, b: int) -> FloatArray:
        """Return the rows of block b's answers."""
        logs = np.empty((_SIZE, _SIZE + 2))
        logs[:, 0] = self._log_before[b] - self._fading
        logs[:, 1:-1] = self._log_prior[b] - self._decay
        logs[:, -1] = self._log_after[b] - self._fading[::-1]
        logs -= logs.max(axis=1, keepdims=True)
        weights = np.exp(logs, out=logs)
        weights /= weights.sum(axis=1, keepdims=True)
        return weights

    def losses(self, b: int) -> Callable[[int], FloatArray]:
        """Return what gives the columns of any block's candidates, for answers of block b."""
        mirror = self._blocks - 1

        @cache
        def columns(c: int) -> FloatArray:
            table = np.empty((_SIZE + 2, _SIZE))
            table[0] = self._left.at(b, c)
            table[1:-1] = self._kernel(b - c)
            table[-1] = self._right.at(mirror - b, mirror - c)[::-1]
            return table

        return columns

    def _kernel(self, apart: int) -> FloatArray:
        """Return the losses of every count of a block to every candidate `apart` blocks before."""
        if apart not in self._kernels:
            errors = np.arange(1 - _SIZE, _SIZE, dtype=np.float64) + apart * _SIZE
            losses = sliding_window_view(np.abs(errors) ** self._exponent, _SIZE)
            if len(self._kernels) >= _KERNELS:
                self._kernels.clear()
            self._kernels[apart] = np.ascontiguousarray(losses[:, ::-1])
        return self._kernels[apart]


def _at_boundaries(log_prior: FloatArray, log_mass: FloatArray, rate: float) -> FloatArray:
    """Return log Σ_{i < bB} p[i]·α^(bB−i) for each b, from the sums up to possible counts."""
    places = np.arange(len(log_prior))
    anchors = np.maximum.accumulate(np.where(np.isfinite(log_prior), places, -1))
    starts = places[::_SIZE]
    anchor = np.concatenate([[-1], anchors[starts[1:] - 1]])
    return np.where(anchor >= 0, log_mass[anchor] - rate * (starts - anchor), -np.inf)
