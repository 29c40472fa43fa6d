"""The best answer to every posterior under a power of the error above 1, in linear time.

Powers below 1 have the same costs and another search (`remaps.concave`).

Answers and candidates come in blocks. Given a block of answers, costs are a matrix product with
the counts of the block itself, plus two laws, of the counts before and after it, that all its
answers share (`remaps.farfield`). As the best answer never falls, pairs of blocks form a
staircase, at most two per block of counts and one more per step: O(n·(B + K)) multiplications.

Theorem: geometric-mechanism, *Powers that are no integers*.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Iterator
from fractions import Fraction
from functools import cache
from typing import TypeAlias

import numpy as np
from numpy.lib.stride_tricks import sliding_window_view

from quiltwork.counts.consumers.losses import FloatArray, IntArray
from quiltwork.counts.remaps.exponentials import power_sum
from quiltwork.counts.remaps.farfield import Layout, SideCosts
from quiltwork.counts.remaps.filters import Posteriors
from quiltwork.counts.remaps.laws import block_laws
from quiltwork.counts.remaps.whole import Centres

Losses: TypeAlias = Callable[[int], FloatArray]
Tried: TypeAlias = Callable[[int, int, FloatArray, Losses], Iterable[int]]

_SIZE = 60  # 60·62·60 multiplications: the largest product that BLAS leaves to one thread
_KERNELS = 64
_LARGEST_DIGITS = 250
_TIE = 1e-12


def covers(exponent: Fraction, n: int) -> bool:
    """Whether costs in blocks are within floats."""
    return math.ceil(exponent) * math.log10(n + 2 * _SIZE) < _LARGEST_DIGITS


def power_centres(post: Posteriors, exponent: Fraction) -> Centres:
    """Return the least best candidates for |i−r|^exponent, exponent ≥ 1.

    Candidates within a relative 1e-12 of the best count as tied.
    """
    costs = BlockCosts(post, exponent)
    first, last = int(post.support[0]) // costs.size, int(post.support[-1]) // costs.size

    def tried(b: int, before: int, rows: FloatArray, losses: Losses) -> Iterator[int]:
        return _staircase(rows, losses, max(first, before // costs.size), last)

    return assemble(costs, post.n, tried)


def assemble(costs: BlockCosts, n: int, tried: Tried) -> Centres:
    """Choose for every answer the least best candidate of the blocks that are tried for its block.

    `tried` is told the block, the last choice before it, its rows and its losses.
    """
    shape = costs.blocks, costs.size
    answers, cost, face = np.empty(shape, dtype=np.int64), np.empty(shape), np.empty(shape)
    for b in range(costs.blocks):
        rows, losses = costs.posterior(b), costs.losses(b)
        before = int(answers[b - 1, -1]) if b else 0
        answers[b], cost[b] = _best_of(rows, losses, tried(b, before, rows, losses))
        face[b] = np.einsum("ij,ji->i", rows, losses(b))
    kept = slice(0, n + 1)
    excess = (1 + _TIE) / (1 - _TIE) * (1 + costs.error) / (1 - costs.error) ** 2 - 1
    return Centres(answers.ravel()[kept], cost.ravel()[kept], face.ravel()[kept], excess)


def _best_of(rows: FloatArray, losses: Losses, tried: Iterable[int]) -> tuple[IntArray, FloatArray]:
    every = np.arange(len(rows))
    answers, cost = np.zeros(len(rows), dtype=np.int64), np.zeros(len(rows))
    best = np.full(len(rows), np.inf)
    for c in tried:
        table = rows @ losses(c)
        least = table.min(axis=1)
        at = np.argmax(table <= (least * (1 + _TIE))[:, None], axis=1)
        better = least < best * (1 - _TIE)
        answers = np.where(better, c * len(rows) + at, answers)
        cost = np.where(better, table[every, at], cost)
        best = np.where(better, least, best)
    return answers, cost


def _staircase(rows: FloatArray, losses: Losses, first: int, last: int) -> Iterator[int]:
    """Yield the candidate blocks from that of the first answer's best to that of the last's.

    Costs are convex: where the first answer's falls from a block to the next, so do those of
    all; where the last answer's rises, so do those of all.
    """
    while first < last and _change(rows[0], losses, first) < -_TIE:
        first += 1
    for c in range(first, last + 1):
        yield c
        if c < last and _change(rows[-1], losses, c) > _TIE:
            return


def _change(row: FloatArray, losses: Losses, c: int) -> float:
    """Return by what part an answer's cost grows from block c's last candidate to the next."""
    end, start = float(row @ losses(c)[:, -1]), float(row @ losses(c + 1)[:, 0])
    return (start - end) / end if end > 0 else math.inf if start > 0 else 0.0


class BlockCosts:
    """Costs of blocks of candidates to blocks of answers, as products of two matrices.

    Rows hold an answer's probabilities: of all counts before its block, of the block's counts, of
    all counts after it. Columns hold the mean losses of one candidate to each of these.
    """

    def __init__(self, post: Posteriors, exponent: Fraction) -> None:
        self.size = _SIZE
        self.laws = block_laws(post, self.size)
        self.blocks = self.laws.blocks
        terms = power_sum(exponent, (self.blocks + 1) * self.size)
        self.error = terms.error
        self._exponent = float(exponent)
        self._kernels: dict[int, FloatArray] = {}
        layout = Layout(terms, self.size, self._kernel(0))
        log_prior, log_after = self.laws.log_prior, self.laws.log_after
        self._left = SideCosts(layout, post.rate, log_prior, self.laws.log_before)
        self._right = SideCosts(layout, post.rate, log_prior[::-1, ::-1], log_after[::-1])

    def posterior(self, b: int) -> FloatArray:
        """Return the rows of block b's answers."""
        return np.asarray(self.laws.rows(b, b + 1)[0])

    def losses(self, b: int) -> Losses:
        """Return what gives the columns of any block's candidates, for answers of block b."""

        @cache
        def columns(c: int) -> FloatArray:
            table = np.empty((self.size + 2, self.size))
            table[1:-1] = self._kernel(b - c)
            table[0], table[-1] = self._beyond(b, c)
            return table

        return columns

    def row_costs(self, row: FloatArray, b: int, c: int) -> FloatArray:
        """Return the costs of block c's candidates to one answer of block b, from its row."""
        before, after = self._beyond(b, c)
        return np.asarray(row[0] * before + row[1:-1] @ self._kernel(b - c) + row[-1] * after)

    def _beyond(self, b: int, c: int) -> tuple[FloatArray, FloatArray]:
        mirror = self.blocks - 1
        return self._left.at(b, c), self._right.at(mirror - b, mirror - c)[::-1]

    def _kernel(self, apart: int) -> FloatArray:
        """Return the losses of every count of a block to every candidate `apart` blocks before."""
        if apart not in self._kernels:
            errors = np.arange(1 - self.size, self.size, dtype=np.float64) + apart * self.size
            losses = sliding_window_view(np.abs(errors) ** self._exponent, self.size)
            if len(self._kernels) >= _KERNELS:
                self._kernels.clear()
            self._kernels[apart] = np.ascontiguousarray(losses[:, ::-1])
        return self._kernels[apart]
