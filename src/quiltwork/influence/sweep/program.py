"""The ratio program behind the sweep: how far apart two rows can make a bounded function.

L(p, q; A) = max { log (p·u)/(q·u) : u > 0, u(z) ≤ e^{A[z,z']}·u(z') for all z, z' }. An optimal u
is a spanning tree of tight constraints. An edge above node z carries p's share less q's share of
the nodes below it; the tree is optimal if that is ≥ 0 where z is at its upper limit and ≤ 0 at its
lower one, and such a tree bounds L from above even where it is not feasible. Trees are cached
between calls, since they rarely change from one time point to the next. For the left side under
every start at once the program has a closed form (`AnyStartProgram`).

Cost: O(k²) per pair of rows if its tree stays, O(k²) per change of a tree; `influence.kernel`.

Theorem: docs/theory/sweep.md
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray

from quiltwork.influence.kernel import SpanningTrees, solve

FloatArray: TypeAlias = NDArray[np.float64]
IntArray: TypeAlias = NDArray[np.int64]
BoolArray: TypeAlias = NDArray[np.bool_]

LARGEST_LIMIT = 300.0
"""Limits above e^300 count as none: the answer is then the largest ratio of single entries."""
SMALLEST_ENTRY = 1e-140
"""Smaller entries of rows are not accurate: they count as this above, and as 0 below."""
MARGIN = 2.0**-40
"""What a bound may exceed its program by, in logarithms."""
SLACK = 2.0**-44
"""By how much limits are widened, so that rounding makes no feasible vector infeasible."""


@dataclass(frozen=True, eq=False)
class Bounds:
    """Upper bounds of programs, and their derivatives by the limits.

    `slope[m, z]` is the derivative by A[`high[m, z]`, `low[m, z]`]; all others are 0.
    """

    values: FloatArray
    slope: FloatArray
    high: IntArray
    low: IntArray

    def least(self, other: Bounds) -> Bounds:
        """The lower of two bounds for every program."""
        lower = other.values < self.values
        pick = lower[:, np.newaxis]
        return Bounds(
            np.where(lower, other.values, self.values),
            np.where(pick, other.slope, self.slope),
            np.where(pick, other.high, self.high),
            np.where(pick, other.low, self.low),
        )


class RowPairs:
    """Pairs of rows p, q, each (n, k) and not negative, rounded towards privacy.

    L rises with p and falls with q. `unrounded` holds the rows before rounding.
    """

    def __init__(self, above: FloatArray, below: FloatArray) -> None:
        self.unrounded = above, below
        self.above = np.where(above > 0, np.maximum(above, SMALLEST_ENTRY), 0.0)
        self.below = np.where(below >= SMALLEST_ENTRY, below, 0.0)
        self.support = (self.above > 0) | (self.below > 0)
        with np.errstate(divide="ignore", invalid="ignore"):
            # x/0 is ∞: a bound that only other states can lower
            ratio = np.where(self.above > 0, self.above / self.below, 0.0)
            self.unlimited = np.log(ratio.max(axis=1)) * (1 + 2.0**-50) + 2.0**-50
            self.masses = np.log(self.above.sum(axis=1) / self.below.sum(axis=1)) + 2.0**-48

    def repeated(self, times: int) -> RowPairs:
        """The same rows several times over."""
        return RowPairs(np.tile(self.above, (times, 1)), np.tile(self.below, (times, 1)))

    def largest(self, limits: FloatArray, group: IntArray) -> FloatArray:
        """The largest limit between two states in the rows' support."""
        most = np.zeros(len(group))
        for z in range(limits.shape[-1]):
            over = np.where(self.support, limits[group, z, :], -np.inf).max(axis=1)
            most = np.where(self.support[:, z], np.maximum(most, over), most)
        return most

    def without_trees(self, most: FloatArray) -> FloatArray:
        """A bound by the largest limit and by single entries alone; +inf for empty rows."""
        with np.errstate(invalid="ignore"):
            bound = np.minimum(most + self.masses, self.unlimited)
        return np.where(np.isnan(bound), np.inf, bound)


class RatioProgram:
    """L for pairs of rows under limits; rows and limits may change from call to call.

    Args:
        group: (n,) the index of the k×k matrix of limits for each pair of rows.
        size: k.
    """

    def __init__(self, group: IntArray, size: int) -> None:
        self.group = group
        self.size = size
        self._trees = SpanningTrees.none(len(group), size)

    def bound(self, rows: RowPairs, limits: FloatArray) -> FloatArray:
        """Upper bounds on L, within `MARGIN`; `limits` is (groups, k, k), +inf for none."""
        return self.solve(rows, limits).values

    def solve(self, rows: RowPairs, limits: FloatArray) -> Bounds:
        """The bounds with their slopes."""
        self.rows = rows
        limits = metric_closure(limits)
        capped = np.minimum(limits, LARGEST_LIMIT)
        # wider limits only raise the maximum
        capped += SLACK * (1 + np.abs(capped))
        bounds = self._two_states(capped) if self.size == 2 else self._by_trees(capped)
        if (limits > LARGEST_LIMIT).any():
            most = rows.largest(limits, self.group)
            # an exponential of such a limit would overflow
            values = np.where(most > LARGEST_LIMIT, rows.without_trees(most), bounds.values)
            bounds = Bounds(values, bounds.slope, bounds.high, bounds.low)
        return bounds

    def _two_states(self, limits: FloatArray) -> Bounds:
        """The better of the two trees of two states."""
        a = limits[self.group]
        ends = np.stack([a[:, 1, 0], -a[:, 0, 1]])
        weight = np.exp(ends)
        p, q = self.rows.above, self.rows.below
        with np.errstate(divide="ignore", invalid="ignore"):
            top, bottom = p[:, 0] + p[:, 1] * weight, q[:, 0] + q[:, 1] * weight
            values = np.log(top / bottom)
            best = np.argmax(values, axis=0)
            chosen = (best, np.arange(len(best)))
            share = (p[:, 1] / top[chosen] - q[:, 1] / bottom[chosen]) * weight[chosen]
        raised = best == 0
        slope = np.zeros((len(best), 2))
        slope[:, 1] = np.maximum(np.where(raised, share, -share), 0.0)
        high = np.tile([0, 1], (len(best), 1))
        low = np.tile([0, 0], (len(best), 1))
        high[~raised, 1], low[~raised, 1] = 0, 1
        return Bounds(values[chosen] + 2.0**-48, slope, high, low)

    def _by_trees(self, limits: FloatArray) -> Bounds:
        """Bounds by the kernel, starting from the trees of the last call."""
        rows = self.rows
        inputs = rows.above, rows.below, limits, self.group
        values, slope, high, low, self._trees = solve(*inputs, self._trees)
        if not np.isfinite(values).all():
            values = np.minimum(values, rows.without_trees(rows.largest(limits, self.group)))
        return Bounds(values, slope, high, low)


def metric_closure(limits: FloatArray) -> FloatArray:
    """The tightest limits that follow from the given ones (Floyd–Warshall). O(k³) per matrix."""
    size = limits.shape[-1]
    closure = limits.copy()
    closure[:, np.arange(size), np.arange(size)] = 0.0
    if size > 2:
        with np.errstate(invalid="ignore"):  # ∞ − ∞ on a path through an impossible state
            for z in range(size):
                np.fmin(
                    closure,
                    closure[:, :, z, np.newaxis] + closure[:, np.newaxis, z, :],
                    out=closure,
                )
    return closure


_DOWN, _UP, _LEAST = 1 - 2.0**-50, 1 + 2.0**-46, 2.0**-48


class AnyStartProgram:
    """The program of the left side under every start at once, in closed form.

    How far apart can the columns p, q of a matrix make a bounded function if rows may be weighted
    in any way? The maximum over weights m and u of log [Σ m·p·u · Σ m·q]/[Σ m·p · Σ m·q·u] is
    attained by weights on two states: the largest L with tanh(L/4) = tanh(δ/4)·tanh(A[z,z']/4),
    where δ is the log of p(z)·q(z')/(p(z')·q(z)). The interface is that of `RatioProgram`. Cost:
    O(k²) per pair of columns.

    Args:
        group: (n,) the index of the k×k matrix of limits for each pair of columns.
        size: k.
    """

    def __init__(self, group: IntArray, size: int) -> None:
        self.group, self.size = group, size

    def bound(self, rows: RowPairs, limits: FloatArray) -> FloatArray:
        """Upper bounds on L; `limits` is (groups, k, k), +inf for none."""
        return self.solve(rows, limits).values

    def solve(self, rows: RowPairs, limits: FloatArray) -> Bounds:
        """The bounds with their slopes: each depends on one limit alone.

        Limits are not closed: a state that is possible at early nodes only bounds no others.
        """
        fading, spread = np.exp(-limits / 2), -np.expm1(-limits / 2)
        above, below = rows.unrounded
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
            derivative = near * (1 - far**2) / ((near + far) * (1 + near * far))
        slope[:, 0] = np.where(near + far > 0, derivative, 1.0)
        high[:, 0], low[:, 0] = pair
        return Bounds(values, slope, high, low)


def _from_above(entries: FloatArray) -> FloatArray:
    """Square roots, with positive entries raised to at least `SMALLEST_ENTRY`."""
    return np.sqrt(np.where(entries > 0, np.maximum(entries, SMALLEST_ENTRY), 0.0))


def _from_below(entries: FloatArray) -> FloatArray:
    """Square roots, with entries below `SMALLEST_ENTRY` counted as 0."""
    return np.sqrt(np.where(entries >= SMALLEST_ENTRY, entries, 0.0))
