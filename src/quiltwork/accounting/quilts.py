"""Which quilts are tried: a few at every node, all of them at the node that decides.

The worst node of a stretch is bounded from above by trying a few quilts everywhere. At the node
where that bound is largest the best quilt is searched among all; if it is better it joins the few,
and so on until the largest bound is confirmed. Then it is the maximum over nodes of the minimum
over quilts, and most nodes never saw most quilts.
"""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction

import numpy as np

from quiltwork.accounting.view import FloatArray, IntArray, View
from quiltwork.influence.families import TO_END, IntervalFamily
from quiltwork.influence.search import common

_CHUNK = 1 << 20


@dataclass(frozen=True)
class Quilt:
    """A quilt relative to its node: nearby nodes on each side (or TO_END) and the influence."""

    left: int
    right: int
    influence: float


class Tried:
    """The quilts tried at every node of a family; a cache that only grows."""

    def __init__(self, family: IntervalFamily) -> None:
        before, after = _doubling(len(family.left_rows)), _doubling(len(family.right_rows))
        self._quilts = [Quilt(TO_END, TO_END, 0.0)]
        self._quilts += [Quilt(a, TO_END, float(family.left_most[a])) for a in before]
        self._quilts += [Quilt(TO_END, b, float(family.right_most[b])) for b in after]
        if before and after:
            a, b = _levelled(before, after)
            influence = family.two_sided(np.array(a) + 1, np.array(b) + 1)
            self._quilts += map(Quilt, a, b, influence.tolist())
        self._pack()

    def _pack(self) -> None:
        kept = [quilt for quilt in self._quilts if np.isfinite(quilt.influence)]
        self.left = np.array([quilt.left for quilt in kept], dtype=np.int64)
        self.right = np.array([quilt.right for quilt in kept], dtype=np.int64)
        self.influence = np.array([quilt.influence for quilt in kept], dtype=np.float64)

    def __len__(self) -> int:
        return len(self._quilts)

    def some(self, which: IntArray) -> tuple[IntArray, IntArray, FloatArray]:
        """Left and right sides and influences of some of the quilts."""
        return self.left[which], self.right[which], self.influence[which]

    def learn(self, quilt: Quilt) -> None:
        """Try this quilt everywhere from now on."""
        if quilt not in self._quilts:
            self._quilts.append(quilt)
            self._pack()


@dataclass(frozen=True, eq=False)
class QuiltTable:
    """Some nodes of a family, and the quilts tried there."""

    family: IntervalFamily
    nodes: range
    tried: Tried

    @classmethod
    def of(cls, family: IntervalFamily) -> QuiltTable:
        """All nodes of a family."""
        return cls(family, family.nodes, Tried(family))

    def within(self, first: int, last: int) -> QuiltTable:
        """The nodes in first..last, sharing the quilts tried."""
        return QuiltTable(self.family, common(self.nodes, range(first, last + 1)), self.tried)

    @property
    def reach(self) -> int:
        """How far a quilt can be from its node."""
        return max(len(self.family.left_rows), len(self.family.right_rows))

    def refined(self) -> list[QuiltTable] | None:
        """Tables with lower influences for the same nodes, or None if there are none.

        A family of nodes with one possible state has nothing to protect and is left out.
        """
        sharper = list(self.family.refined()) if self.nodes else []
        tables = [QuiltTable.of(f) for f in sharper if isinstance(f, IntervalFamily)]
        kept = [table.within(self.nodes[0], self.nodes[-1]) for table in tables]
        return [table for table in kept if table.nodes] if sharper else None

    def _usable(self, view: View, far: bool) -> IntArray:
        """The quilts tried whose nearby sets lie within the view, or all with `far`."""
        left, right = self.tried.left, self.tried.right
        seen = (view.sees_first | (left != TO_END)) & (view.sees_last | (right != TO_END))
        return np.flatnonzero(far | seen)

    def bounds(self, view: View, nodes: IntArray, far: bool) -> tuple[FloatArray, IntArray]:
        """The best bound of each node among the quilts tried, and which quilt gives it.

        Without `far`, quilts that reach to an end outside the view are left out, so that the
        answer depends on nothing outside the view; −1 where no quilt is left.
        """
        kept = self._usable(view, far)
        values, choice = np.full(len(nodes), np.inf), np.full(len(nodes), -1)
        if not len(kept):
            return values, choice
        step = max(1, _CHUNK // len(kept))
        for start in range(0, len(nodes), step):
            some = slice(start, start + step)
            found = view.bounds(nodes[some, np.newaxis], *self.tried.some(kept))
            best = found.argmin(axis=1)
            values[some], choice[some] = found[np.arange(len(best)), best], kept[best]
        return values, choice

    def largest(self, view: View, nodes: IntArray, far: bool) -> Fraction:
        """The largest, over nodes, of the best bound among the quilts tried, exactly.

        Quilts that tie in floats are compared as fractions.
        """
        kept = self._usable(view, far)
        if not len(kept) or not len(nodes):
            return Fraction(0)
        least: dict[int, Fraction] = {}
        found = view.bounds(nodes[:, np.newaxis], *self.tried.some(kept))
        rows, columns = np.nonzero(found <= view.raised(found.min(axis=1), far, 2)[:, np.newaxis])
        bounds = view.fractions(nodes[rows], *self.tried.some(kept[columns]))
        for row, bound in zip(rows.tolist(), bounds, strict=True):
            least[row] = min(least.get(row, bound), bound)
        return max(least.values())


def best_quilt(view: View, node: int) -> tuple[float, Quilt]:
    """The smallest bound of one node among all quilts of its family.

    Two-sided quilts are searched by halving rectangles of distances: within a rectangle no quilt
    is charged less than at its nearest corner, nor has less influence than at its farthest.
    """
    family, at = view.family, np.array([node])
    before, after = np.arange(len(family.left_rows)), np.arange(len(family.right_rows))
    best, quilt = np.inf, Quilt(TO_END, TO_END, 0.0)
    for left, right, influence in (
        (np.array([TO_END]), np.array([TO_END]), np.zeros(1)),
        (before, np.full_like(before, TO_END), family.left_most),
        (np.full_like(after, TO_END), after, family.right_most),
    ):
        values = view.bounds(at, left, right, influence)
        if len(values) and values.min() < best:
            j = int(values.argmin())
            best, quilt = float(values[j]), Quilt(int(left[j]), int(right[j]), float(influence[j]))
    rectangles = _whole(len(before), len(after))
    while len(rectangles):
        near_left, far_left, near_right, far_right = rectangles.T
        influence = family.two_sided(far_left + 1, far_right + 1)
        reached = view.bounds(at, far_left, far_right, influence)
        j = int(reached.argmin())
        if reached[j] < best:
            best = float(reached[j])
            quilt = Quilt(int(far_left[j]), int(far_right[j]), float(influence[j]))
        least = view.bounds(at, near_left, near_right, influence)
        divisible = (near_left < far_left) | (near_right < far_right)
        rectangles = _quartered(rectangles[(least < best) & divisible])
    return best, quilt


def _whole(before: int, after: int) -> IntArray:
    if not before or not after:
        return np.empty((0, 4), dtype=np.int64)
    return np.array([[0, before - 1, 0, after - 1]], dtype=np.int64)


def _quartered(rectangles: IntArray) -> IntArray:
    a0, a1, b0, b1 = rectangles.T
    am, bm = (a0 + a1) // 2, (b0 + b1) // 2
    lefts, rights = ((a0, am), (am + 1, a1)), ((b0, bm), (bm + 1, b1))
    parts = [np.stack((*left, *right), axis=1) for left in lefts for right in rights]
    split = np.concatenate(parts)
    return split[(split[:, 0] <= split[:, 1]) & (split[:, 2] <= split[:, 3])]


def _doubling(count: int) -> list[int]:
    """0, 1, 3, 7, … below count, and the last."""
    found = [2**j - 1 for j in range(count.bit_length()) if 2**j - 1 < count - 1]
    return [*found, count - 1] if count else []


def _levelled(one: list[int], other: list[int]) -> tuple[list[int], list[int]]:
    """Repeat the last entry of the shorter list."""
    size = max(len(one), len(other))
    return tuple(part + part[-1:] * (size - len(part)) for part in (one, other))  # type: ignore[return-value]
