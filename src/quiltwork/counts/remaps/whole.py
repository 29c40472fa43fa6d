"""Best answers from whole posteriors, for losses that rise on both sides and a few thousand counts.

Nothing is cut off and nothing approximated. The mean loss of all counts before a block of answers,
to every candidate, follows from that of the block before; so do the costs of a block's first and
last answer to every candidate. As the best answer never falls, those confine the answers between
them. Cost: O(n²) multiplications in matrix products, about 4·n² of them, at any α.

Theorem: geometric-mechanism, *Whole posteriors*.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.lib.stride_tricks import as_strided, sliding_window_view

from quiltwork.counts.consumers.losses import FloatArray, IntArray
from quiltwork.counts.remaps.filters import Posteriors
from quiltwork.counts.remaps.laws import Entering, block_laws

LARGEST_WHOLE = 4_000
_SIZE = 48
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
    excess: float = 0.0


def whole_centres(post: Posteriors, by_error: FloatArray) -> Centres:
    """Return the least best candidates for a loss φ(−n..n) that falls up to error 0, then rises.

    Candidates within a relative 1e-12 of the best count as tied.
    """
    laws = block_laws(post, _SIZE)
    kernels = _kernels(by_error, laws.blocks)
    left, right = laws.entering_left(), laws.entering_right()
    rows = laws.rows(0, laws.blocks)
    ends = rows[:, [0, -1]]
    inside = np.concatenate([left.law[:, None], right.law[:, None], ends[:, :, 1:-1]], axis=1)
    costs = inside @ kernels
    before = _accumulated(costs[:, 0], left)
    after = _accumulated(costs[::-1, 1], right.mirrored())[::-1]
    costs = costs[:, 2:]
    costs += ends[:, :, :1] * before[:, None] + ends[:, :, -1:] * after[:, None]
    tied = costs <= costs.min(axis=2, keepdims=True) * (1 + _TIE)
    low = tied[:, 0].argmax(axis=1).tolist()
    high = (post.n - tied[:, 1, ::-1].argmax(axis=1)).tolist()
    answers, cost = np.empty((laws.blocks, _SIZE), np.int64), np.empty((laws.blocks, _SIZE))
    every = np.arange(_SIZE)
    for b, (first, last) in enumerate(zip(low, high, strict=True)):
        some = slice(first, last + 1)
        table = rows[b, :, 1:-1] @ kernels[b, :, some]
        table += np.multiply.outer(rows[b, :, 0], before[b, some])
        table += np.multiply.outer(rows[b, :, -1], after[b, some])
        at = np.argmax(table <= table.min(axis=1, keepdims=True) * (1 + _TIE), axis=1)
        answers[b], cost[b] = first + at, table[every, at]
    kept = slice(0, post.n + 1)
    face = _face_value(rows, by_error, before, after)
    return Centres(answers.ravel()[kept], cost.ravel()[kept], face[kept])


def _kernels(by_error: FloatArray, blocks: int) -> FloatArray:
    """Return the loss of every candidate 0..n to every count of every block.

    One table of all distances serves all blocks, each from its own column on.
    """
    n, back = len(by_error) // 2, (blocks - 1) * _SIZE
    errors = np.concatenate([np.zeros(back + _SIZE - 1 - n), by_error])
    table = np.ascontiguousarray(sliding_window_view(errors, back + n + 1)[::-1])
    high, wide = table.strides
    return as_strided(
        table[:, back:], (blocks, _SIZE, n + 1), (-_SIZE * wide, high, wide), writeable=False
    )


def _accumulated(own: FloatArray, entering: Entering) -> FloatArray:
    """Return the mean losses of all counts before each block from those of the blocks' own."""
    sums = np.zeros_like(own)
    old, new = entering.old[:-1].tolist(), entering.new[:-1].tolist()
    for b, (kept, added) in enumerate(zip(old, new, strict=True)):
        np.multiply(own[b], added, out=sums[b + 1])
        sums[b + 1] += kept * sums[b]
    return sums


def _face_value(
    rows: FloatArray, by_error: FloatArray, before: FloatArray, after: FloatArray
) -> FloatArray:
    n, answers = len(by_error) // 2, rows.shape[0] * _SIZE
    offsets = np.arange(_SIZE)
    inside = min(n, _SIZE - 1)
    errors = np.clip(offsets - offsets[:, None], -inside, inside)
    own = np.einsum("brc,cr->br", rows[:, :, 1:-1], by_error[errors + n])
    block, at = np.divmod(np.arange(answers), _SIZE)
    told = np.minimum(np.arange(answers), n)
    flat = rows.reshape(answers, -1)
    beyond = flat[:, 0] * before[block, told] + flat[:, -1] * after[block, told]
    return np.asarray(own[block, at] + beyond)
