"""The program of the left side under every start at once, in closed form.

How far apart can the columns p, q of a matrix make a bounded function, when rows may be weighted
in any way? max over weights m and u of log [Σ m·p·u · Σ m·q]/[Σ m·p · Σ m·q·u]. Weights on two
states are the worst, so it is the largest L with tanh(L/4) = tanh(δ/4)·tanh(A[z,z']/4), where δ is
the log of p(z)·q(z')/(p(z')·q(z)).

Cost: O(k²) per pair of columns.

Theorem: docs/theory/sweep.md
"""

from __future__ import annotations

import numpy as np

from quiltwork.influence.sweep.program import Bounds, ComparedRows, FloatArray, IntArray
from quiltwork.influence.sweep.tolerances import SMALLEST_ENTRY

_DOWN, _UP, _LEAST = 1 - 2.0**-50, 1 + 2.0**-46, 2.0**-48


class AnyStartProgram:
    """The same calls as `Program`, for columns weighted in any way.

    Args:
        group: (n,) which of the k×k matrices of limits belongs to each pair of columns.
        size: k.
    """

    def __init__(self, group: IntArray, size: int) -> None:
        self.group, self.size = group, size

    def bound(self, rows: ComparedRows, limits: FloatArray) -> FloatArray:
        """Upper bounds; `limits` is (groups, k, k), +inf for none."""
        return self.solve(rows, limits).values

    def solve(self, rows: ComparedRows, limits: FloatArray) -> Bounds:
        """The bounds with their slopes: each hangs on one limit alone.

        Limits are not closed: a state that is possible at early nodes only bounds no others.
        """
        fading, spread = np.exp(-limits / 2), -np.expm1(-limits / 2)
        above, below = rows.given
        p, q = _from_above(above), _from_above(below)
        p_least, q_least = _from_below(above), _from_below(below)
        count = len(self.group)
        most, far, near = np.zeros(count), np.ones(count), np.ones(count)
        pair = np.zeros((2, count), dtype=np.int64)
        for z in range(self.size):  # k passes over (n, k) instead of one over (n, k, k)
            a = fading[self.group, z, :]
            with np.errstate(divide="ignore", over="ignore", invalid="ignore"):
                b = p_least * q_least[:, [z]] / (p[:, [z]] * q) * _DOWN
                b = np.where((p[:, [z]] > 0) & (q > 0), np.minimum(b, 1.0), 1.0)
                gain = spread[self.group, z, :] * (1 - b) / (a + b)
            other = gain.argmax(axis=1)
            rows_of = np.arange(count), other
            better = gain[rows_of] > most
            most = np.where(better, gain[rows_of], most)
            far, near = np.where(better, b[rows_of], far), np.where(better, a[rows_of], near)
            pair = np.where(better, [np.full(count, z), other], pair)
        values = 2 * np.log1p(most) * _UP + _LEAST
        slope, high, low = (np.zeros((count, self.size), dtype=t) for t in (float, int, int))
        with np.errstate(invalid="ignore"):
            change = near * (1 - far**2) / ((near + far) * (1 + near * far))
        slope[:, 0] = np.where(near + far > 0, change, 1.0)
        high[:, 0], low[:, 0] = pair
        return Bounds(values, slope, high, low)


def _from_above(entries: FloatArray) -> FloatArray:
    """Square roots, at least `SMALLEST_ENTRY` where an entry is not 0."""
    return np.sqrt(np.where(entries > 0, np.maximum(entries, SMALLEST_ENTRY), 0.0))


def _from_below(entries: FloatArray) -> FloatArray:
    """Square roots, 0 below `SMALLEST_ENTRY`."""
    return np.sqrt(np.where(entries >= SMALLEST_ENTRY, entries, 0.0))
