"""Remaps for other losses and many counts: posteriors cut to a window, with a proven cost.

Cutting every posterior at `reach` possible steps from its anchors drops at most 2·α^(reach+1)/(1+α)
of the probability, so the chosen answers cost at most that times the largest loss more than the
best ones. `reach` is chosen so that this is negligible.

Convex functions of the error take O(n) costs (`remaps.confined`), each O(window). Others that rise
on both sides take O(n log n) of them: the best answer never decreases with r, so the answer to the
middle r confines those to its sides. Matrices and callables, which have n+1 candidates per answer,
take O(n²·window) multiplications in blocks.

Theorem: geometric-mechanism, *Cut posteriors*.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import cached_property
from typing import TypeAlias

import numpy as np
from numpy.lib.stride_tricks import sliding_window_view

from quiltwork.counts.consumers.losses import FloatArray, IntArray, Loss
from quiltwork.counts.remaps.filters import Posteriors, Side

CostOf: TypeAlias = Callable[[IntArray, IntArray], FloatArray]

_CHUNK = 60_000  # entries in flight: about what the caches hold
_BLOCK = 256
_PANEL = 16_000_000  # losses at once
_TIE = 1e-12
_RELATIVE_CUT = 1e-13


@dataclass(frozen=True, eq=False)
class Window:
    """The counts kept of every posterior, as offsets from its two anchors, with their weights."""

    post: Posteriors
    reach: int

    def cost(self, answers: IntArray, candidates: IntArray, by_error: FloatArray) -> FloatArray:
        """Return E[φ(candidate − i) | r] over the window, pairwise; by_error = φ(−n..n)."""
        left, right = self.post.left, self.post.right
        total = np.zeros(len(answers))
        rows = max(1, _CHUNK // (self.reach + 1))
        for start in range(0, len(answers), rows):
            part = slice(start, start + rows)
            some, told = answers[part], candidates[part]
            total[part] = left.share[some] * self._side(left, some, told, by_error, -1)
            total[part] += right.share[some] * self._side(right, some, told, by_error, 1)
        return total

    def _side(
        self,
        side: Side,
        answers: IntArray,
        candidates: IntArray,
        by_error: FloatArray,
        direction: int,
    ) -> FloatArray:
        """Return one side's costs from stretches of the prior and of losses times decay.

        Both are slices of neighbours, so that nothing but them is read.
        """
        anchor = side.anchor[answers]
        shifts, which = np.unique(candidates - anchor, return_inverse=True)
        priors = sliding_window_view(self._padded[direction], self.reach + 1)[anchor]
        if direction > 0:
            by_error, shifts = by_error[::-1], -shifts
        outside = np.concatenate([by_error, np.full(self.reach, 0.0)])
        losses = sliding_window_view(outside, self.reach + 1)[shifts + self.post.n]
        kernels = (losses * self.decay)[:, ::direction]
        return np.asarray(
            np.einsum("ij,ij->i", priors, kernels[which]) / np.exp(side.log_mass[anchor])
        )

    @cached_property
    def decay(self) -> FloatArray:
        """α to the powers 0..reach."""
        return np.asarray(np.exp(-self.post.rate * np.arange(self.reach + 1)))

    @cached_property
    def _padded(self) -> dict[int, FloatArray]:
        """The prior with zeros beyond 0 and n, so that stretch [anchor] starts or ends there."""
        nothing = np.zeros(self.reach)
        return {
            -1: np.concatenate([nothing, self.post.prior]),
            1: np.concatenate([self.post.prior, nothing]),
        }


def reach_for(rate: float, n: int, spread: float) -> int:
    """Return the steps after which what is cut off costs less than 1e-13 of the least loss.

    `spread` is the largest loss divided by the least positive one.
    """
    if rate <= 0 or math.isinf(spread):
        return n
    return min(n, math.ceil((math.log(spread) + math.log(2 / _RELATIVE_CUT)) / rate))


def reach_after(post: Posteriors, reach: int, expected: float, largest_loss: float) -> int:
    """Return the reach at which the cut is below 1e-13 of the expected loss found at `reach`.

    Cutting less only adds to the loss found, so the cut is negligible beside the true one too.
    """
    if cut_cost(post, reach, largest_loss) <= _RELATIVE_CUT * expected:
        return reach
    if expected <= 0:
        return post.extent
    return min(post.extent, reach_for(post.rate, post.n, largest_loss / expected))


def cut_cost(post: Posteriors, reach: int, largest_loss: float) -> float:
    """Bound what cutting posteriors at `reach` can cost: 2·α^(reach+1)/(1+α) largest losses."""
    if reach >= post.extent:
        return 0.0
    return 2 * math.exp(-post.rate * (reach + 1)) / (1 + math.exp(-post.rate)) * largest_loss


def monotone_centres(post: Posteriors, low: int, high: int, cost: CostOf) -> IntArray:
    """Return for each answer the least best candidate in low..high, given that it never falls.

    Level by level: the answers halfway between those already settled, each with the candidates
    between its neighbours' choices. Cost: O(n log n) evaluations.
    """
    n = post.n
    chosen = np.full(n + 3, low, dtype=np.int64)
    chosen[n + 2] = high
    settled = np.array([-1, n + 1])
    while True:
        gaps = np.flatnonzero(np.diff(settled) > 1)
        if not gaps.size:
            return chosen[1 : n + 2]
        rows = (settled[gaps] + settled[gaps + 1]) // 2
        bottom, top = chosen[settled[gaps] + 1], chosen[settled[gaps + 1] + 1]
        chosen[rows + 1] = _least_best(rows, bottom, np.maximum(bottom, top), cost)
        settled = np.sort(np.concatenate([settled, rows]))


def _least_best(rows: IntArray, low: IntArray, high: IntArray, cost: CostOf) -> IntArray:
    """Return the least candidate in low..high of least cost, per row."""
    sizes = high - low + 1
    starts = np.concatenate([[0], np.cumsum(sizes)[:-1]])
    owner = np.repeat(np.arange(len(rows)), sizes)
    candidates = low[owner] + np.arange(int(sizes.sum())) - starts[owner]
    costs = cost(rows[owner], candidates)
    least = np.minimum.reduceat(costs, starts)
    good = costs <= least[owner] * (1 + _TIE)
    first = np.minimum.reduceat(np.where(good, candidates, np.iinfo(np.int64).max), starts)
    return np.asarray(first)


@dataclass(frozen=True, eq=False)
class Scan:
    """For each answer the least best candidate, its cost and the cost at face value."""

    answers: IntArray
    cost: FloatArray
    face_cost: FloatArray
    largest_loss: float


def scan_centres(window: Window, loss: Loss) -> Scan:
    """Try every answer 0..n for every r; the loss is asked once per pair.

    Candidates come in panels of about 16 million losses, answers in blocks of neighbours that share
    counts. Cost: O(n²·(window + block)).
    """
    n = window.post.n
    counts = np.arange(n + 1)
    best = np.full(n + 1, np.inf)
    scan = Scan(np.zeros(n + 1, np.int64), np.full(n + 1, np.inf), np.empty(n + 1), 0.0)
    largest, width = 0.0, max(1, _PANEL // (n + 1))
    for first in range(0, n + 1, width):
        told = counts[first : first + width]
        losses = loss.table(counts[:, None], told[None, :])
        largest = max(largest, float(losses.max()))
        for start in range(0, n + 1, _BLOCK):
            rows = counts[start : start + _BLOCK]
            weights, begin = _dense_weights(window, rows)
            costs = weights @ losses[begin : begin + weights.shape[1]]
            _keep_best(scan, best, rows, first, costs)
            here = (rows >= first) & (rows < first + len(told))
            scan.face_cost[rows[here]] = costs[here, rows[here] - first]
    return replace(scan, largest_loss=largest)


def _keep_best(scan: Scan, best: FloatArray, rows: IntArray, first: int, costs: FloatArray) -> None:
    """Take over, in place, the least best candidates of a panel that beat all before it."""
    lowest = np.minimum(best[rows], costs.min(axis=1))
    beaten = scan.cost[rows] > lowest * (1 + _TIE)
    at = np.argmax(costs <= (lowest * (1 + _TIE))[:, None], axis=1)
    scan.answers[rows] = np.where(beaten, first + at, scan.answers[rows])
    scan.cost[rows] = np.where(beaten, costs[np.arange(len(rows)), at], scan.cost[rows])
    best[rows] = lowest


def _dense_weights(window: Window, rows: IntArray) -> tuple[FloatArray, int]:
    """Return the posterior weights of a block of answers over one range of counts."""
    post = window.post
    before, after = post.left.anchor[rows], post.right.anchor[rows]
    begin = max(0, int(min(before.min(), after.min())) - window.reach)
    counts = np.arange(begin, min(post.n, int(max(before.max(), after.max())) + window.reach) + 1)
    weights = np.zeros((len(rows), len(counts)))
    for side, anchor, direction in ((post.left, before, -1), (post.right, after, 1)):
        steps = direction * (counts - anchor[:, None])
        kept = (steps >= 0) & (steps <= window.reach)
        share = side.share[rows] / np.exp(side.log_mass[anchor])
        decay = window.decay[np.where(kept, steps, 0)]
        weights += np.where(kept, share[:, None] * post.prior[counts] * decay, 0.0)
    return weights, begin
