"""The least minimiser of every row of convex costs, when minimisers never fall from row to row.

A few thousand rows are settled first, then 64 times as many, and so on: a row's minimiser lies
between those of its settled neighbours, and bisection finds it there. At a level with m rows the
ranges add up to at most 64·(n + m), so their logarithms to at most m·log₂(128 + 64·n/m); over the
levels, which grow 64-fold, that is O(n). So is the number of costs compared, instead of the
O(n log n) of a search per row.

Theorem: geometric-mechanism, *Remaps in linear time*.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray

from quiltwork.counts.consumers.losses import FloatArray, IntArray

Falls: TypeAlias = Callable[[IntArray, IntArray], NDArray[np.bool_]]
Costs: TypeAlias = Callable[[IntArray, IntArray], FloatArray]

_FIRST = 4096
_STRIDE = 64
_TIE = 1e-12


def falling(cost: Costs) -> Falls:
    """Return the question whether cost(rows, at + 1) is below cost(rows, at), not just tied."""

    def falls(rows: IntArray, at: IntArray) -> NDArray[np.bool_]:
        return np.asarray(cost(rows, at + 1) < cost(rows, at) * (1 - _TIE))

    return falls


def convex_centres(guess: IntArray, low: int, high: int, falls: Falls) -> IntArray:
    """Return for each row the least candidate in low..high from which its cost does not fall.

    `guess` holds one candidate per row, tried first: good ones save most of the work.
    """
    size = len(guess)
    chosen = np.full(size, low, dtype=np.int64)
    first = np.clip(guess, low, high)
    stride, settled = _coarsest(size), 0
    while True:
        rows = np.arange(0, size, stride)
        if settled:
            rows = rows[rows % settled != 0]
            below = rows - rows % settled
            above = below + settled
            last = above < size
            bottom = chosen[below]
            top = np.where(last, chosen[np.where(last, above, 0)], high)
        else:
            bottom, top = np.full(len(rows), low), np.full(len(rows), high)
        chosen[rows] = _bisect(rows, bottom, np.maximum(bottom, top), first[rows], falls)
        if stride == 1:
            return chosen
        settled, stride = stride, stride // _STRIDE


def _coarsest(size: int) -> int:
    stride = 1
    while stride * _FIRST < size:
        stride *= _STRIDE
    return stride


def _bisect(
    rows: IntArray, bottom: IntArray, top: IntArray, guess: IntArray, falls: Falls
) -> IntArray:
    """Narrow bottom..top around each row's least minimiser, with growing steps from the guess.

    Steps never go beyond the middle, so that no row takes more tries than bisection, up to a
    constant factor; rows that are settled drop out.
    """
    low, high = bottom.copy(), top.copy()
    for probe in (guess - 1, guess):
        _narrow(rows, low, high, np.flatnonzero((low <= probe) & (probe < high)), probe, falls)
    upwards, step = low > guess, 1
    while (open_ := np.flatnonzero(low < high)).size:
        middle = (low + high) // 2
        probe = np.where(upwards, np.minimum(low + step, middle), np.maximum(high - step, middle))
        _narrow(rows, low, high, open_, probe, falls)
        step *= 4
    return low


def _narrow(
    rows: IntArray, low: IntArray, high: IntArray, at: IntArray, probe: IntArray, falls: Falls
) -> None:
    """Move one end of the ranges `at` to the probe, in place."""
    if not at.size:
        return
    tried = probe[at]
    rising = falls(rows[at], tried)
    low[at] = np.where(rising, tried + 1, low[at])
    high[at] = np.where(rising, high[at], tried)
