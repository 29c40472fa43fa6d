"""The one program behind the sweep: how far apart can two rows make a bounded function?

L(p, q; A) = max { log (p·u)/(q·u) : u > 0, u(z) ≤ e^{A[z,z']}·u(z') for all z, z' }. An optimal u
is a spanning tree of tight constraints. An edge above node z carries p's share less q's share of
the nodes below it; the tree is optimal when that is ≥ 0 where z is at its upper limit and ≤ 0 at
its lower one, and such a tree bounds L from above even where it is not feasible. Trees are kept
between calls, since they rarely change from one time point to the next.

Cost: O(k²) per pair of rows while trees stay, O(k³) per change of a tree; vectorized over all.

Theorem: docs/theory/sweep.md
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray

from quiltwork.influence.sweep.compiled import kernels
from quiltwork.influence.sweep.tolerances import (
    FEASIBLE,
    LARGEST_LIMIT,
    MARGIN,
    SIGN,
    SLACK,
    SMALLEST_ENTRY,
)

FloatArray: TypeAlias = NDArray[np.float64]
IntArray: TypeAlias = NDArray[np.int64]
BoolArray: TypeAlias = NDArray[np.bool_]


@dataclass(eq=False)
class Trees:
    """One spanning tree per program, kept between calls.

    `parent[m, z]` is z itself at the root; `upper` tells whether z is at its upper or its lower
    limit above its parent; `below[m, z, y]` whether y hangs below z (or is z).
    """

    parent: IntArray
    upper: BoolArray
    below: FloatArray


@dataclass(frozen=True, eq=False)
class Bounds:
    """Upper bounds of programs, and how each would move with its limits.

    `slope[m, z]` belongs to the limit A[`high[m, z]`, `low[m, z]`]; all other slopes are 0.
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


class ComparedRows:
    """Pairs of rows p, q, each (n, k) and not negative; rounded towards privacy.

    L rises with p and falls with q. `given` is what they were before.
    """

    def __init__(self, above: FloatArray, below: FloatArray) -> None:
        self.given = above, below
        self.above = np.where(above > 0, np.maximum(above, SMALLEST_ENTRY), 0.0)
        self.below = np.where(below >= SMALLEST_ENTRY, below, 0.0)
        self.seen = (self.above > 0) | (self.below > 0)
        with np.errstate(divide="ignore", invalid="ignore"):
            ratio = np.where(self.above > 0, self.above / self.below, 0.0)
            self.unlimited = np.log(ratio.max(axis=1)) * (1 + 2.0**-50) + 2.0**-50
            self.masses = np.log(self.above.sum(axis=1) / self.below.sum(axis=1)) + 2.0**-48

    def repeated(self, times: int) -> ComparedRows:
        """The same rows several times over."""
        return ComparedRows(np.tile(self.above, (times, 1)), np.tile(self.below, (times, 1)))

    def largest(self, limits: FloatArray, group: IntArray) -> FloatArray:
        """The largest limit between two states that the rows reach."""
        most = np.zeros(len(group))
        for z in range(limits.shape[-1]):
            over = np.where(self.seen, limits[group, z, :], -np.inf).max(axis=1)
            most = np.where(self.seen[:, z], np.maximum(most, over), most)
        return most

    def without_trees(self, most: FloatArray) -> FloatArray:
        """A bound by the largest limit and by single entries alone; none for empty rows."""
        with np.errstate(invalid="ignore"):
            bound = np.minimum(most + self.masses, self.unlimited)
        return np.where(np.isnan(bound), np.inf, bound)


class Program:
    """L for pairs of rows under limits; rows and limits may change from call to call.

    Args:
        group: (n,) which of the k×k matrices of limits belongs to each pair of rows.
        size: k.
    """

    def __init__(self, group: IntArray, size: int) -> None:
        self.group = np.ascontiguousarray(group)  # the loops are compiled for one kind of array
        self.size = size
        self._trees: Trees | None = None
        self._kept: tuple[IntArray, BoolArray, IntArray] | None = None

    def bound(self, rows: ComparedRows, limits: FloatArray) -> FloatArray:
        """Upper bounds on L, within `MARGIN`; `limits` is (groups, k, k), +inf for none."""
        return self.solve(rows, limits).values

    def solve(self, rows: ComparedRows, limits: FloatArray) -> Bounds:
        """The bounds with their slopes."""
        self.rows = rows
        limits = closed(limits)
        capped = np.minimum(limits, LARGEST_LIMIT)
        capped += SLACK * (1 + np.abs(capped))
        if self.size == 2:
            found = self._two_states(capped)
        else:
            fast = kernels(self.size)
            found = self._by_trees(capped) if fast is None else self._compiled(fast.solve, capped)
        if (limits > LARGEST_LIMIT).any():
            most = rows.largest(limits, self.group)
            values = np.where(most > LARGEST_LIMIT, rows.without_trees(most), found.values)
            found = Bounds(values, found.slope, found.high, found.low)
        return found

    def _two_states(self, limits: FloatArray) -> Bounds:
        """Both trees there are."""
        a = limits[self.group]
        ends = np.stack([a[:, 1, 0], -a[:, 0, 1]])
        weight = np.exp(ends)
        p, q = self.rows.above, self.rows.below
        with np.errstate(divide="ignore", invalid="ignore"):
            top, bottom = p[:, 0] + p[:, 1] * weight, q[:, 0] + q[:, 1] * weight
            values = np.log(top / bottom)
            best = np.argmax(values, axis=0)
            these = (best, np.arange(len(best)))
            share = (p[:, 1] / top[these] - q[:, 1] / bottom[these]) * weight[these]
        raised = best == 0
        slope = np.zeros((len(best), 2))
        slope[:, 1] = np.maximum(np.where(raised, share, -share), 0.0)
        high = np.tile([0, 1], (len(best), 1))
        low = np.tile([0, 0], (len(best), 1))
        high[~raised, 1], low[~raised, 1] = 0, 1
        return Bounds(values[these] + 2.0**-48, slope, high, low)

    def _compiled(self, solve: Callable[..., None], limits: FloatArray) -> Bounds:
        """The same trees, one after the other."""
        shape = len(self.group), self.size
        if self._kept is None:
            self._kept = (
                np.zeros(shape, dtype=np.int64),
                np.zeros(shape, dtype=np.bool_),
                np.full(shape, -2, dtype=np.int64),
            )
        values, slope = np.empty(shape[0]), np.empty(shape)
        high, low = np.empty(shape, dtype=np.int64), np.empty(shape, dtype=np.int64)
        rows = self.rows
        inputs = rows.above, rows.below, limits, self.group
        solve(*inputs, *self._kept, values, slope, high, low)
        if not np.isfinite(values).all():
            values = np.minimum(values, rows.without_trees(rows.largest(limits, self.group)))
        return Bounds(values, slope, high, low)

    def _by_trees(self, limits: FloatArray) -> Bounds:
        trees = self._feasible(limits)
        shares = self._improve(trees, limits)
        return self._certified(trees, limits, shares)

    def _feasible(self, limits: FloatArray) -> Trees:
        """The trees of the last call where they still respect the limits, else the best star."""
        trees = self._trees
        if trees is None:
            everything = np.arange(len(self.group))
            self._trees = trees = _empty_trees(len(everything), self.size)
            self._plant_stars(trees, limits, everything)
            return trees
        v = _potentials(trees, limits, self.group)
        broken = np.zeros(len(v), dtype=np.bool_)
        for z in range(self.size):  # k passes over (n, k) instead of one over (n, k, k)
            room = limits[self.group, z, :] - (v[:, z : z + 1] - v)
            broken |= (room < -FEASIBLE).any(axis=1)
        again = np.flatnonzero(broken)
        if len(again):
            self._plant_stars(trees, limits, again)
        return trees

    def _plant_stars(self, trees: Trees, limits: FloatArray, which: IntArray) -> None:
        """All nodes at their upper, or all at their lower limit above one: always feasible."""
        p, q, group = self.rows.above[which], self.rows.below[which], self.group[which]
        seen = self.rows.seen[which]
        best = np.full(len(which), -np.inf)
        root, upper = np.zeros(len(which), dtype=np.int64), np.zeros(len(which), dtype=np.bool_)
        for z in range(self.size):
            for at_upper in (True, False):
                v = limits[group, :, z].copy() if at_upper else -limits[group, z, :]
                v[:, z] = 0.0
                weight = _exp(v, seen)
                with np.errstate(divide="ignore", invalid="ignore"):
                    value = (p * weight).sum(axis=1) / (q * weight).sum(axis=1)
                value[np.isnan(value)] = 0.0
                better = value > best
                best[better], root[better], upper[better] = value[better], z, at_upper
        trees.parent[which] = root[:, np.newaxis]
        trees.upper[which] = upper[:, np.newaxis]
        below = np.broadcast_to(np.eye(self.size), (len(which), self.size, self.size)).copy()
        below[np.arange(len(which)), root, :] = 1.0
        trees.below[which] = below

    def _improve(self, trees: Trees, limits: FloatArray) -> tuple[FloatArray, FloatArray]:
        """Turn wrong edges until there are none; shares of p and q at the end."""
        rows = self.rows
        p, q = _shares(rows.above, rows.below, trees, limits, self.group)
        wrong = _wrongness(trees, p, q)
        active = np.flatnonzero(wrong.max(axis=1) > 0)
        for _ in range(8 * self.size + 16):
            if not len(active):
                break
            _pivot(trees, limits, self.group, active, wrong[active].argmax(axis=1))
            part = Trees(trees.parent[active], trees.upper[active], trees.below[active])
            p[active], q[active] = _shares(
                rows.above[active], rows.below[active], part, limits, self.group[active]
            )
            wrong[active] = _wrongness(part, p[active], q[active])
            active = active[wrong[active].max(axis=1) > 0]
        return p, q

    def _certified(
        self, trees: Trees, limits: FloatArray, shares: tuple[FloatArray, FloatArray]
    ) -> Bounds:
        """Check every tree from its leaves up, as `docs/theory/sweep.md` proves."""
        v = _potentials(trees, limits, self.group)
        weight = _exp(v, self.rows.seen)
        with np.errstate(divide="ignore", invalid="ignore"):
            top, bottom = self.rows.above * weight, self.rows.below * weight
            values = np.log(top.sum(axis=1) / bottom.sum(axis=1))
        rows, rich = np.arange(len(v)), shares[1].argmax(axis=1)
        room = limits[self.group, :, rich] - v + v[rows, rich, np.newaxis]
        spared = MARGIN / (4 * self.size) * shares[1].max(axis=1, keepdims=True)
        holds = _upper_bound_holds(trees, *shares, spared * np.exp(-np.minimum(room, 700.0)))
        values = np.where(holds & ~np.isnan(values), values + MARGIN, np.inf)
        most = self.rows.largest(limits, self.group)
        values = np.minimum(values, self.rows.without_trees(most))
        rows = np.arange(self.size)[np.newaxis]
        p, q = (np.matmul(trees.below, share[..., np.newaxis])[..., 0] for share in shares)
        slope = np.maximum(np.where(trees.upper, p - q, q - p), 0.0)
        slope[trees.parent == rows] = 0.0
        own = np.broadcast_to(rows, trees.parent.shape)
        high = np.where(trees.upper, own, trees.parent)
        low = np.where(trees.upper, trees.parent, own)
        return Bounds(values, slope, high, low)


def closed(limits: FloatArray) -> FloatArray:
    """The tightest limits that follow (Floyd–Warshall). O(k³) per matrix."""
    size = limits.shape[-1]
    found = limits.copy()
    found[:, np.arange(size), np.arange(size)] = 0.0
    if size > 2:
        with np.errstate(
            invalid="ignore"
        ):  # by way of a state that cannot be there nothing follows
            for z in range(size):
                np.fmin(found, found[:, :, z, np.newaxis] + found[:, np.newaxis, z, :], out=found)
    return found


def _empty_trees(count: int, size: int) -> Trees:
    return Trees(
        np.zeros((count, size), dtype=np.int64),
        np.zeros((count, size), dtype=np.bool_),
        np.zeros((count, size, size)),
    )


def _potentials(trees: Trees, limits: FloatArray, group: IntArray) -> FloatArray:
    """log u: the sum of the limits on the way from the root."""
    own = np.arange(trees.parent.shape[1])[np.newaxis]
    which = group[:, np.newaxis]
    up, down = limits[which, own, trees.parent], limits[which, trees.parent, own]
    step = np.where(trees.upper, up, -down)
    step[trees.parent == own] = 0.0
    return np.asarray(np.matmul(step[:, np.newaxis, :], trees.below)[:, 0, :])


def _exp(v: FloatArray, seen: BoolArray) -> FloatArray:
    """e^v, the largest seen being 1; 0 for states that the rows do not reach."""
    shown = np.where(seen, v, -np.inf)
    most = shown.max(axis=1, keepdims=True)
    return np.asarray(np.exp(shown - np.where(np.isfinite(most), most, 0.0)))


def _weights(seen: BoolArray, trees: Trees, limits: FloatArray, group: IntArray) -> FloatArray:
    return _exp(_potentials(trees, limits, group), seen)


def _shares(
    above: FloatArray, below: FloatArray, trees: Trees, limits: FloatArray, group: IntArray
) -> tuple[FloatArray, FloatArray]:
    weight = _weights((above > 0) | (below > 0), trees, limits, group)
    p, q = above * weight, below * weight
    with np.errstate(divide="ignore", invalid="ignore"):
        p, q = p / p.sum(axis=1, keepdims=True), q / q.sum(axis=1, keepdims=True)
    return np.nan_to_num(p), np.nan_to_num(q)


def _wrongness(trees: Trees, p: FloatArray, q: FloatArray) -> FloatArray:
    """By how much each edge has the wrong sign, 0 where it is right."""
    own = np.arange(trees.parent.shape[1])[np.newaxis]
    shares = np.matmul(trees.below, np.stack([p, q], axis=-1))
    p_below, q_below = shares[..., 0], shares[..., 1]
    wrong = np.where(trees.upper, q_below - p_below, p_below - q_below)
    wrong[(wrong <= SIGN * (p_below + q_below)) | (trees.parent == own)] = 0.0
    return np.asarray(wrong)


def _pivot(
    trees: Trees, limits: FloatArray, group: IntArray, active: IntArray, node: IntArray
) -> None:
    """Let what hangs below `node` move in its better direction until another limit is met."""
    rows = np.arange(len(active))
    parent, upper, below = trees.parent[active], trees.upper[active], trees.below[active]
    part = Trees(parent, upper, below)
    v = _potentials(part, limits, group[active])
    a = limits[group[active]]
    inside = below[rows, node] > 0
    down = upper[rows, node]
    rise = v[:, :, np.newaxis] - v[:, np.newaxis, :]  # [z, y] = v(z) − v(y)
    # z inside moves: down until a limit of some y outside over z, up until its own limit over y
    room = np.where(down[:, np.newaxis, np.newaxis], np.swapaxes(a, 1, 2) + rise, a - rise)
    room[~(inside[:, :, np.newaxis] & ~inside[:, np.newaxis, :])] = np.inf
    flat = room.reshape(len(active), -1).argmin(axis=1)
    joint, outside = np.divmod(flat, parent.shape[1])
    trees.parent[active], trees.upper[active], trees.below[active] = _hung_up(
        part, inside, joint, outside, ~down
    )


def _hung_up(
    trees: Trees, inside: BoolArray, joint: IntArray, outside: IntArray, at_upper: BoolArray
) -> tuple[IntArray, BoolArray, FloatArray]:
    """Hang the nodes `inside` below `outside`, by their node `joint`, which becomes their top."""
    parent, upper, below = trees.parent, trees.upper, trees.below
    rows = np.arange(len(parent))
    path = inside & (np.take_along_axis(below, joint[:, np.newaxis, np.newaxis], 2)[..., 0] > 0)
    new_parent, new_upper = parent.copy(), upper.copy()
    moved = np.where(
        ~inside[:, :, np.newaxis] & inside[:, np.newaxis, :],
        np.take_along_axis(below, outside[:, np.newaxis, np.newaxis], 2),
        below,
    )
    # along the path every node becomes the parent of what was its parent
    turns, child = np.nonzero(path)
    old = parent[turns, child]
    kept = inside[turns, old] & (old != child)
    turns, child, old = turns[kept], child[kept], old[kept]
    new_parent[turns, old] = child
    new_upper[turns, old] = ~upper[turns, child]
    moved[turns, old] = np.where(inside[turns], inside[turns] - below[turns, child], 0.0)
    moved[rows, joint] = inside
    new_parent[rows, joint], new_upper[rows, joint] = outside, at_upper
    return new_parent, new_upper, moved


def _upper_bound_holds(trees: Trees, p: FloatArray, q: FloatArray, spared: FloatArray) -> BoolArray:
    """Whether no other u has a ratio above e^MARGIN times the tree's.

    From the leaves up: what a node has too much of p may pass to its parent where it is at its
    upper limit, and what it lacks where it is at its lower one. So little as is `spared` may stay:
    it is nothing beside what the node richest in q has.
    """
    count, size = trees.parent.shape
    rounding = 8 * (size + 4) * 2.0**-53
    left = p * (1 + rounding) - q * ((1 + MARGIN / 2) * (1 - rounding))
    depth = trees.below.sum(axis=1).astype(np.int64) - 1
    holds = np.ones(count, dtype=np.bool_)
    for level in range(int(depth.max(initial=0)), -1, -1):
        rows, node = np.nonzero(depth == level)
        own, top = left[rows, node], trees.parent[rows, node]
        upper = trees.upper[rows, node] & (level > 0)
        holds[rows[~upper & (own > spared[rows, node])]] = False
        if level > 0:
            passed = np.where(upper, np.maximum(own, 0.0), np.minimum(own, 0.0))
            np.add.at(left, (rows, top), passed)
    return holds
