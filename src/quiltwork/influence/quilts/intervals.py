"""The best quilt of a node and the worst node of a family of interval quilts.

Influence falls and cost grows with distance, so quilts are searched by splitting rectangles of
distances: in a rectangle none costs less than at its nearest corner, nor has less influence than at
its farthest. Few distances are ever looked at.

Within a family the price of node i is min(C, rising(i), falling(i)): two-sided quilts cost the same
everywhere, those that keep everything before i cost more as i grows, those that keep everything
after i cost less. So the worst node is where the last two cross, found by bisection.

Theorem: docs/theory/influence-curve.md
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass, replace
from typing import Any, Protocol, TypeAlias

import numpy as np
from numpy.typing import NDArray

from quiltwork.influence.quilts.families import TO_END, IntervalFamily, pairwise_most
from quiltwork.influence.quilts.protocol import FloatArray, IntArray

Cost: TypeAlias = Callable[[IntArray, IntArray], IntArray]
"""From first and last nodes of runs to the cost of each run; more for a longer run.

It may cut runs to a window, and must not depend on the position of a run inside it.
"""

_MOST_CHAMPIONS = 12
_MOST_CELLS = 1 << 15
_PARTS_OF_LINE = 16
_PARTS_OF_SIDE = 4


class Price(Protocol):
    """What a candidate amounts to: increasing in the cost of what is nearby and the influence."""

    def __call__(self, cost: Any, influence: FloatArray) -> FloatArray:
        """One number per candidate."""


@dataclass(frozen=True)
class BestQuilt:
    """A node, its best quilt, and the price of both."""

    price: float
    node: int
    quilt: tuple[int, ...]
    nearby: int
    cost: int
    influence: float


@dataclass(frozen=True)
class Sides:
    """How many nodes a quilt leaves nearby on each side, and its price and influence."""

    price: float
    left: int
    right: int
    influence: float


def worst_interval(family: IntervalFamily, nodes: range, cost: Cost, price: Price) -> BestQuilt:
    """Return the node with the highest price among some of the family's, with its best quilt.

    O(log nodes) one-sided searches at most; none if two-sided quilts are best in the middle. Of a
    family that is going to be refined it is any node, with a price that holds for all of them.
    """
    middle = nodes[len(nodes) // 2]
    best = best_interval(family, middle, cost, price)
    if len(nodes) == 1 or TO_END not in (best.left, best.right):
        return described(family, middle, best, cost)
    if family.tolerance:
        rising, _ = one_sided(family, nodes[-1], cost, price)
        _, sinking = one_sided(family, nodes[0], cost, price)
        return replace(described(family, middle, best, cost), price=min(rising, sinking))
    low, high = 0, len(nodes) - 1
    while low < high:
        half = (low + high) // 2
        rising, sinking = one_sided(family, nodes[half], cost, price)
        low, high = (low, half) if rising >= sinking else (half + 1, high)
    ends = [nodes[index] for index in (low - 1, low) if index >= 0]
    node = max(ends, key=lambda i: min(one_sided(family, i, cost, price)))
    return described(family, node, best_interval(family, node, cost, price), cost)


def described(family: IntervalFamily, node: int, best: Sides, cost: Cost) -> BestQuilt:
    """Say what the best quilt of a node leaves nearby and what that costs."""
    start, stop = family.span(node, np.array([best.left]), np.array([best.right]))
    return BestQuilt(
        best.price,
        node,
        family.separator(node, best.left, best.right),
        int(stop[0] - start[0] + 1),
        int(cost(start, stop)[0]),
        best.influence,
    )


def one_sided(family: IntervalFamily, node: int, cost: Cost, price: Price) -> tuple[float, float]:
    """Return the best price with everything before the node nearby, and everything after it."""
    limit = _nothing_remote(family, node, cost, price)
    rising, sinking = (
        _best_one_sided(family, node, cost, price, limit.price, after=after) or limit
        for after in (True, False)
    )
    return rising.price, sinking.price


def best_interval(family: IntervalFamily, node: int, cost: Cost, price: Price) -> Sides:
    """Return the best quilt of one node: empty, one-sided or two-sided."""
    best = _nothing_remote(family, node, cost, price)
    for after in (True, False):
        best = _best_one_sided(family, node, cost, price, best.price, after=after) or best
    return _best_two_sided(family, node, cost, price, best.price) or best


def _nothing_remote(family: IntervalFamily, node: int, cost: Cost, price: Price) -> Sides:
    ends = np.array([TO_END])
    everything = price(cost(*family.span(node, ends, ends)), np.zeros(1))
    return Sides(float(everything[0]), TO_END, TO_END, 0.0)


def _best_one_sided(
    family: IntervalFamily, node: int, cost: Cost, price: Price, limit: float, *, after: bool
) -> Sides | None:
    """The best distance on one side, with everything on the other nearby, if below `limit`."""
    rows = family.right_rows if after else family.left_rows

    def costs(near: IntArray) -> IntArray:
        ends = np.full_like(near, TO_END)
        return cost(*family.span(node, *((ends, near) if after else (near, ends))))

    cells = np.array([[1, len(rows)]] if len(rows) else np.empty((0, 2)), dtype=np.int64)
    best = None
    while len(cells):
        near, far = (end.ravel() for end in _split(cells[:, 0], cells[:, 1], _PARTS_OF_LINE))
        open_cells = (near <= far) & (price(costs(near - 1), np.zeros(len(near))) < limit)
        near, far = near[open_cells], far[open_cells]
        if not len(far):
            break
        influence = rows.most(far)
        reached = price(costs(far - 1), influence)
        index = int(np.argmin(reached))
        if reached[index] < limit:
            limit, beside = float(reached[index]), int(far[index]) - 1
            sides = (TO_END, beside) if after else (beside, TO_END)
            best = Sides(limit, *sides, float(influence[index]))
        open_cells = (price(costs(near - 1), influence) < limit) & (near < far)
        cells = np.stack([near, far], axis=1)[open_cells]
    return best


def _best_two_sided(
    family: IntervalFamily, node: int, cost: Cost, price: Price, limit: float
) -> Sides | None:
    """Split rectangles of distances; a few pairs of states rule most rectangles out.

    If more than 32,768 rectangles stay open, in chains that mix over 10⁵ nodes and more, the
    best quilt so far is taken: sound, and within about 10⁻⁴ of the best of all.
    """
    reaches = len(family.left_rows), len(family.right_rows)
    cells = np.array([[1, reaches[0], 1, reaches[1]]], dtype=np.int64)[: all(reaches)]
    champions: list[int] = []
    best = None
    while len(cells):
        cells, least_cost = _two_sides_needed(family, node, cost, _split_rectangles(cells))
        worthwhile = limit * (1 - family.tolerance)
        kept = price(least_cost, np.zeros(len(cells))) < worthwhile
        cells, least_cost = cells[kept], least_cost[kept]
        sums = _Sums.at_far_corners(family, cells)
        kept = price(least_cost, sums.most(champions)) < worthwhile
        cells, least_cost, sums = cells[kept], least_cost[kept], sums.where(kept)
        if not 0 < len(cells) <= _MOST_CELLS:
            break
        a0, a1, b0, b1 = cells.T
        influence = sums.most()
        reached = price(cost(*family.span(node, a1 - 1, b1 - 1)), influence)
        index = int(np.argmin(reached))
        if reached[index] < limit:
            limit = float(reached[index])
            best = Sides(limit, int(a1[index]) - 1, int(b1[index]) - 1, float(influence[index]))
        champions = sums.champions(champions, (index, int(np.argmax(influence))))
        worthwhile = limit * (1 - family.tolerance)
        cells = cells[(price(least_cost, influence) < worthwhile) & ((a0 < a1) | (b0 < b1))]
    return best


@dataclass(frozen=True)
class _Sums:
    """Left row plus right row for each of some pairs of distances, added up when asked for."""

    left: FloatArray
    right: FloatArray
    of_left: IntArray
    of_right: IntArray

    @classmethod
    def at_far_corners(cls, family: IntervalFamily, cells: IntArray) -> _Sums:
        lefts, of_left = np.unique(cells[:, 1], return_inverse=True)
        rights, of_right = np.unique(cells[:, 3], return_inverse=True)
        return cls(family.left_rows.take(lefts), family.right_rows.take(rights), of_left, of_right)

    def where(self, kept: NDArray[np.bool_]) -> _Sums:
        return _Sums(self.left, self.right, self.of_left[kept], self.of_right[kept])

    def most(self, columns: list[int] | None = None) -> FloatArray:
        """The largest entry of each sum, or a lower bound from some columns."""
        left, right = self.left, self.right
        if columns is not None:
            left, right = left[:, columns], right[:, columns]
        return pairwise_most(left, right, self.of_left, self.of_right)

    def champions(self, known: list[int], cells: Iterable[int]) -> list[int]:
        """Add the columns that are largest in these sums, as long as there are few."""
        found = dict.fromkeys(known)
        for cell in cells:
            total = self.left[self.of_left[cell]] + self.right[self.of_right[cell]]
            found[int(np.argmax(total))] = None
        return list(found)[:_MOST_CHAMPIONS]


def _two_sides_needed(
    family: IntervalFamily, node: int, cost: Cost, cells: IntArray
) -> tuple[IntArray, IntArray]:
    """Drop rectangles where a dropped side costs no more; return the others and their least cost.

    That is so beyond the ends of the series and of a query's window.
    """
    left, right = cells[:, 0] - 1, cells[:, 2] - 1
    end = np.full_like(left, TO_END)
    least = cost(*family.span(node, left, right))
    kept = least < cost(*family.span(node, end, right))
    kept &= least < cost(*family.span(node, left, end))
    return cells[kept], least[kept]


def _split(low: IntArray, high: IntArray, parts: int) -> tuple[IntArray, IntArray]:
    """Split each interval low..high at equal ratios, so that near distances are tried early.

    Some parts may be empty; an interval of two or more always falls into smaller ones.
    """
    ratio = ((high + 1) / low)[:, np.newaxis]
    edges = np.floor(low[:, np.newaxis] * ratio ** (np.arange(parts + 1) / parts)).astype(np.int64)
    edges[:, 0], edges[:, -1] = low, high + 1
    edges[:, -2] = np.clip(edges[:, -2], np.minimum(low + 1, high), high)
    edges = np.minimum(np.maximum.accumulate(edges, axis=1), edges[:, -1:])
    return edges[:, :-1], edges[:, 1:] - 1


def _split_rectangles(cells: IntArray) -> IntArray:
    """Split each rectangle [a0, a1]×[b0, b1] into up to four by four."""
    a0, a1 = _split(cells[:, 0], cells[:, 1], _PARTS_OF_SIDE)
    b0, b1 = _split(cells[:, 2], cells[:, 3], _PARTS_OF_SIDE)
    sides = (a0[:, :, None], a1[:, :, None], b0[:, None, :], b1[:, None, :])
    split = np.stack(np.broadcast_arrays(*sides), axis=-1).reshape(-1, 4)
    return split[(split[:, 0] <= split[:, 1]) & (split[:, 2] <= split[:, 3])]
