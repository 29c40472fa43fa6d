"""The best quilt of a node, and the worst node of a family of interval quilts.

Influence falls and cost grows with distance, so quilts are searched by splitting rectangles of
distances: in a rectangle the nearest corner has the least cost and the farthest corner the least
influence. Few distances are ever computed.

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
"""The cost of each run, from its first and last nodes; it grows with the run.

Runs may be cut to a window, and the cost must not depend on the position of a run inside it.
"""

_MOST_CHAMPIONS = 12
_MOST_CELLS = 1 << 15
_PARTS_OF_LINE = 16
_PARTS_OF_SIDE = 4


class Price(Protocol):
    """The price of a candidate, increasing in the cost of the nearby set and in the influence."""

    def __call__(self, cost: Any, influence: FloatArray) -> FloatArray:
        """One number per candidate."""


@dataclass(frozen=True)
class BestQuilt:
    """A node, its best quilt, and its price."""

    price: float
    node: int
    quilt: tuple[int, ...]
    nearby: int
    cost: int
    influence: float


@dataclass(frozen=True)
class NearbySides:
    """The number of nearby nodes on each side of a quilt, with its price and influence."""

    price: float
    left: int
    right: int
    influence: float


def worst_interval(family: IntervalFamily, nodes: range, cost: Cost, price: Price) -> BestQuilt:
    """Return the node with the highest price among `nodes`, with its best quilt.

    At most O(log nodes) one-sided searches; none if two-sided quilts are best in the middle. For a
    family that is going to be refined it is any node, with a price that holds for all of them.
    """
    middle = nodes[len(nodes) // 2]
    best = best_interval(family, middle, cost, price)
    if len(nodes) == 1 or TO_END not in (best.left, best.right):
        return as_best_quilt(family, middle, best, cost)
    if family.tolerance:
        rising, _ = one_sided(family, nodes[-1], cost, price)
        _, falling = one_sided(family, nodes[0], cost, price)
        return replace(as_best_quilt(family, middle, best, cost), price=min(rising, falling))
    low, high = 0, len(nodes) - 1
    while low < high:
        half = (low + high) // 2
        rising, falling = one_sided(family, nodes[half], cost, price)
        low, high = (low, half) if rising >= falling else (half + 1, high)
    candidates = [nodes[index] for index in (low - 1, low) if index >= 0]
    node = max(candidates, key=lambda i: min(one_sided(family, i, cost, price)))
    return as_best_quilt(family, node, best_interval(family, node, cost, price), cost)


def as_best_quilt(family: IntervalFamily, node: int, best: NearbySides, cost: Cost) -> BestQuilt:
    """The best quilt of a node with its nearby set and cost."""
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
    """Return the best price with everything before the node nearby, and with everything
    after it.
    """
    empty = _empty_quilt(family, node, cost, price)
    rising, falling = (
        _best_one_sided(family, node, cost, price, empty.price, after=after) or empty
        for after in (True, False)
    )
    return rising.price, falling.price


def best_interval(family: IntervalFamily, node: int, cost: Cost, price: Price) -> NearbySides:
    """Return the best quilt of one node: empty, one-sided or two-sided."""
    best = _empty_quilt(family, node, cost, price)
    for after in (True, False):
        best = _best_one_sided(family, node, cost, price, best.price, after=after) or best
    return _best_two_sided(family, node, cost, price, best.price) or best


def _empty_quilt(family: IntervalFamily, node: int, cost: Cost, price: Price) -> NearbySides:
    """The empty quilt: all nodes are nearby."""
    ends = np.array([TO_END])
    total_price = price(cost(*family.span(node, ends, ends)), np.zeros(1))
    return NearbySides(float(total_price[0]), TO_END, TO_END, 0.0)


def _best_one_sided(
    family: IntervalFamily, node: int, cost: Cost, price: Price, limit: float, *, after: bool
) -> NearbySides | None:
    """The best distance on one side, with everything on the other side nearby, if below `limit`."""
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
            best = NearbySides(limit, *sides, float(influence[index]))
        open_cells = (price(costs(near - 1), influence) < limit) & (near < far)
        cells = np.stack([near, far], axis=1)[open_cells]
    return best


def _best_two_sided(
    family: IntervalFamily, node: int, cost: Cost, price: Price, limit: float
) -> NearbySides | None:
    """Branch and bound over rectangles of distances; a few pairs of states rule out most
    rectangles.

    If more than 32,768 rectangles stay open, in chains that mix over 10⁵ nodes and more, the best
    quilt so far is returned: sound, and within about 10⁻⁴ of the best of all.
    """
    reaches = len(family.left_rows), len(family.right_rows)
    cells = np.array([[1, reaches[0], 1, reaches[1]]], dtype=np.int64)[: all(reaches)]
    champions: list[int] = []
    best = None
    while len(cells):
        cells, least_cost = _two_sides_needed(family, node, cost, _split_rectangles(cells))
        worthwhile = limit * (1 - family.tolerance)
        open_cells = price(least_cost, np.zeros(len(cells))) < worthwhile
        cells, least_cost = cells[open_cells], least_cost[open_cells]
        sums = _Sums.at_far_corners(family, cells)
        open_cells = price(least_cost, sums.most(champions)) < worthwhile
        cells, least_cost, sums = cells[open_cells], least_cost[open_cells], sums.where(open_cells)
        # the best quilt so far is sound; going on would not pay
        if not 0 < len(cells) <= _MOST_CELLS:
            break
        a0, a1, b0, b1 = cells.T
        influence = sums.most()
        reached = price(cost(*family.span(node, a1 - 1, b1 - 1)), influence)
        index = int(np.argmin(reached))
        if reached[index] < limit:
            limit = float(reached[index])
            best = NearbySides(
                limit, int(a1[index]) - 1, int(b1[index]) - 1, float(influence[index])
            )
        champions = sums.champions(champions, (index, int(np.argmax(influence))))
        worthwhile = limit * (1 - family.tolerance)
        cells = cells[(price(least_cost, influence) < worthwhile) & ((a0 < a1) | (b0 < b1))]
    return best


@dataclass(frozen=True)
class _Sums:
    """Left row plus right row for some pairs of distances, added on demand."""

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

    def champions(self, previous: list[int], cells: Iterable[int]) -> list[int]:
        """Add the columns that are largest in these sums, up to `_MOST_CHAMPIONS`."""
        columns = dict.fromkeys(previous)
        for cell in cells:
            total = self.left[self.of_left[cell]] + self.right[self.of_right[cell]]
            columns[int(np.argmax(total))] = None
        return list(columns)[:_MOST_CHAMPIONS]


def _two_sides_needed(
    family: IntervalFamily, node: int, cost: Cost, cells: IntArray
) -> tuple[IntArray, IntArray]:
    """Drop rectangles where a dropped side costs no more; return the others and their least cost.

    That happens beyond the ends of the series and of a query's window.
    """
    left, right = cells[:, 0] - 1, cells[:, 2] - 1
    end = np.full_like(left, TO_END)
    least = cost(*family.span(node, left, right))
    needed = least < cost(*family.span(node, end, right))
    needed &= least < cost(*family.span(node, left, end))
    return cells[needed], least[needed]


def _split(low: IntArray, high: IntArray, parts: int) -> tuple[IntArray, IntArray]:
    """Split each interval low..high at equal ratios, so that near distances are tried early.

    Some parts may be empty; an interval of two or more nodes always splits.
    """
    ratio = ((high + 1) / low)[:, np.newaxis]
    # geometric steps: influence falls exponentially with distance
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
