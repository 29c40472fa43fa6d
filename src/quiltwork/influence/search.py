"""The node that needs the most: max over nodes of the min over quilts, without visiting all.

Within an `IntervalFamily` the price of node i is min(C, rising(i), falling(i)): two-sided quilts
cost the same everywhere, those that keep everything before i cost more as i grows, those that keep
everything after i cost less. So the worst node is where the last two cross, found by bisection.
Families that stand for many nodes are refined best-first. Nothing here grows with the length.

Theorem: docs/theory/influence-curve.md
"""

from __future__ import annotations

import heapq
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from functools import singledispatch
from itertools import count
from typing import Any, Protocol, TypeAlias

import numpy as np

from quiltwork.influence.families import TO_END, ClusterFamily, IntervalFamily, KnownNodes
from quiltwork.influence.protocol import FloatArray, IntArray, QuiltFamily

Cost: TypeAlias = Callable[[IntArray, IntArray], IntArray]
"""From first and last nodes of runs to the cost of each run; more for a longer run.

It may cut runs to a window, and must not depend on the position of a run inside it.
"""


class Price(Protocol):
    """What a candidate amounts to: increasing in the cost of what is nearby and the influence."""

    def __call__(self, cost: Any, influence: FloatArray) -> FloatArray:
        """One number per candidate."""


@dataclass(frozen=True)
class Found:
    """A node, its best quilt, and the price of both."""

    price: float
    node: int
    quilt: tuple[int, ...]
    nearby: int
    cost: int
    influence: float


def worst_node(
    families: Iterable[QuiltFamily], cost: Cost, price: Price, nodes: range
) -> tuple[Found, QuiltFamily] | None:
    """Return the node in `nodes` with the highest price, and its family; None if there is none.

    Best-first: a family whose price is not the highest is never refined.
    """
    order = count()
    waiting: list[tuple[float, int, Found, QuiltFamily]] = []

    def add(more: Iterable[QuiltFamily]) -> int:
        added = 0
        for family in more:
            found = worst_in_family(family, cost, price, nodes)
            if found is not None:
                heapq.heappush(waiting, (-found.price, -next(order), found, family))
                added += 1
        return added

    add(families)
    while waiting:
        _, _, found, family = heapq.heappop(waiting)
        if not add(family.refined()):
            return found, family
    return None


@singledispatch
def worst_in_family(family: Any, cost: Cost, price: Price, nodes: range) -> Found | None:
    """Return the node of one family with the highest price, at the family's influences."""
    found = [price_at(family, int(i), cost, price) for i in family.nodes if int(i) in nodes]
    return max(found, key=lambda one: one.price, default=None)


def price_at(family: QuiltFamily, node: int, cost: Cost, price: Price) -> Found:
    """Return the best candidate of one node. O(candidates)."""
    owner, start, stop = family.spans(node)
    size = len(family.influence)
    costs = np.zeros(size, dtype=np.int64)
    np.add.at(costs, owner, cost(start, stop))
    prices = price(costs, family.influence)
    best = int(np.argmin(prices))
    own = owner == best
    nearby = int(np.maximum(stop[own] - start[own] + 1, 0).sum())
    return Found(
        float(prices[best]),
        node,
        family.quilt(node, best),
        nearby,
        int(costs[best]),
        float(family.influence[best]),
    )


@worst_in_family.register
def _(family: KnownNodes, cost: Cost, price: Price, nodes: range) -> Found | None:
    shared = common(family.nodes, nodes)
    return price_at(family, shared[0], cost, price) if shared else None


@worst_in_family.register
def _(family: ClusterFamily, cost: Cost, price: Price, nodes: range) -> Found | None:
    totals = np.add.reduceat(cost(family.first, family.last), family.offset[:-1])
    rows = family.cluster[nodes.start - 1 : nodes.stop - 1]
    if not len(rows):
        return None
    return price_at(family, nodes.start + int(np.argmax(totals[rows])), cost, price)


@worst_in_family.register
def _(family: IntervalFamily, cost: Cost, price: Price, nodes: range) -> Found | None:
    shared = common(family.nodes, nodes)
    if not shared:
        return None
    low, high = 0, len(shared) - 1
    while low < high:
        middle = (low + high) // 2
        rising, sinking = one_sided(family, shared[middle], cost, price)
        low, high = (low, middle) if rising >= sinking else (middle + 1, high)
    ends = [shared[index] for index in (low - 1, low) if index >= 0]
    node = max(ends, key=lambda i: min(one_sided(family, i, cost, price)))
    return best_interval(family, node, cost, price)


def one_sided(family: IntervalFamily, node: int, cost: Cost, price: Price) -> tuple[float, float]:
    """Return the best price with everything before the node nearby, and everything after it."""
    after = np.arange(len(family.right_rows))
    before = np.arange(len(family.left_rows))
    keeps_before = _priced(family, node, np.full_like(after, TO_END), after, cost, price)
    keeps_after = _priced(family, node, before, np.full_like(before, TO_END), cost, price)
    return float(keeps_before.min(initial=np.inf)), float(keeps_after.min(initial=np.inf))


def _priced(
    family: IntervalFamily, node: int, left: IntArray, right: IntArray, cost: Cost, price: Price
) -> FloatArray:
    influence = np.zeros(len(left))
    if len(left) and left[0] != TO_END:
        influence = family.left_most
    if len(right) and right[0] != TO_END:
        influence = family.right_most
    return price(cost(*family.span(node, left, right)), influence)


def best_interval(family: IntervalFamily, node: int, cost: Cost, price: Price) -> Found:
    """Return the best quilt of one node: empty, one-sided or two-sided.

    Two-sided quilts are searched by splitting rectangles of distances. In a rectangle no quilt
    costs less than at its nearest corner nor has less influence than at its farthest.
    """
    end, none = np.array([TO_END]), np.array([TO_END])
    before, after = np.arange(len(family.left_rows)), np.arange(len(family.right_rows))
    best, best_left, best_right = np.inf, TO_END, TO_END
    for left, right in (
        (end, none),
        (before, np.full_like(before, TO_END)),
        (np.full_like(after, TO_END), after),
    ):
        prices = _priced(family, node, left, right, cost, price)
        if len(prices) and prices.min() < best:
            index = int(np.argmin(prices))
            best, best_left, best_right = float(prices[index]), int(left[index]), int(right[index])
    inner = _best_two_sided(family, node, cost, price, best)
    if inner is not None:
        best, best_left, best_right = inner
    start, stop = family.span(node, np.array([best_left]), np.array([best_right]))
    return Found(
        best,
        node,
        family.separator(node, best_left, best_right),
        int(stop[0] - start[0] + 1),
        int(cost(start, stop)[0]),
        _influence(family, best_left, best_right),
    )


def _influence(family: IntervalFamily, left: int, right: int) -> float:
    if left != TO_END and right != TO_END:
        return float(family.two_sided(np.array([left + 1]), np.array([right + 1]))[0])
    if left != TO_END:
        return float(family.left_most[left])
    return float(family.right_most[right]) if right != TO_END else 0.0


def _best_two_sided(
    family: IntervalFamily, node: int, cost: Cost, price: Price, best: float
) -> tuple[float, int, int] | None:
    cells = _all_distances(family)
    found = None
    while len(cells):
        a0, a1, b0, b1 = cells.T
        influence = family.two_sided(a1, b1)
        reached = price(cost(*family.span(node, a1 - 1, b1 - 1)), influence)
        index = int(np.argmin(reached))
        if reached[index] < best:
            best = float(reached[index])
            found = best, int(a1[index]) - 1, int(b1[index]) - 1
        at_least = price(cost(*family.span(node, a0 - 1, b0 - 1)), influence)
        open_cells = (at_least < best) & ((a0 < a1) | (b0 < b1))
        cells = _quartered(cells[open_cells])
    return found


def _all_distances(family: IntervalFamily) -> IntArray:
    most_left, most_right = len(family.left_rows), len(family.right_rows)
    if not most_left or not most_right:
        return np.empty((0, 4), dtype=np.int64)
    return np.array([[1, most_left, 1, most_right]], dtype=np.int64)


def _quartered(cells: IntArray) -> IntArray:
    """Halve each rectangle [a0, a1]×[b0, b1] in both directions where it can be halved."""
    a0, a1, b0, b1 = cells.T
    am, bm = (a0 + a1) // 2, (b0 + b1) // 2
    parts = [
        np.stack(sides, axis=1)
        for sides in (
            (a0, am, b0, bm),
            (am + 1, a1, b0, bm),
            (a0, am, bm + 1, b1),
            (am + 1, a1, bm + 1, b1),
        )
    ]
    split = np.concatenate(parts)
    return split[(split[:, 0] <= split[:, 1]) & (split[:, 2] <= split[:, 3])]


def common(nodes: range, wanted: range) -> range:
    """Return the nodes of an ascending range that lie in a contiguous one."""
    if not nodes or not wanted:
        return range(0)
    skipped = max(0, -(-(wanted.start - nodes.start) // nodes.step))
    return range(nodes.start + skipped * nodes.step, min(nodes.stop, wanted.stop), nodes.step)
