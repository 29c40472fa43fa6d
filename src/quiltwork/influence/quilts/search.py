"""The node that needs the most: max over nodes of the min over quilts, without visiting all.

Families that stand for many nodes are refined best-first; what happens within a family is in
`intervals`. Nothing here grows with the length.

Theorem: docs/theory/influence-curve.md
"""

from __future__ import annotations

import heapq
from collections.abc import Iterable
from dataclasses import replace
from functools import singledispatch
from itertools import count
from typing import Any

import numpy as np

from quiltwork.influence.quilts.families import ClusterFamily, IntervalFamily, KnownNodes
from quiltwork.influence.quilts.intervals import BestQuilt, Cost, Price, worst_interval
from quiltwork.influence.quilts.protocol import ListedFamily, QuiltFamily

_CLOSE = 1.01
_EQUAL = 1 + 2.0**-33


def worst_node(
    families: Iterable[QuiltFamily], cost: Cost, price: Price, nodes: range
) -> tuple[BestQuilt, QuiltFamily] | None:
    """Return the node in `nodes` with the highest price, and its family; None if there is none.

    Best-first: a family whose price is not the highest is never refined. One that comes close to
    an exact family is searched exactly before it is split, and not split if it is within a
    relative 2^-33: there may be thousands of nodes that need the same.
    """
    order = count()
    waiting: list[tuple[float, int, BestQuilt, QuiltFamily]] = []
    exact = 0.0

    def add(family: QuiltFamily) -> None:
        nonlocal exact
        found = worst_in_family(family, cost, price, nodes)
        if found is not None:
            heapq.heappush(waiting, (-found.price, -next(order), found, family))
            exact = exact if _splits(family) else max(exact, found.price)

    for family in families:
        add(family)
    while waiting:
        _, _, found, family = heapq.heappop(waiting)
        if (
            isinstance(family, IntervalFamily)
            and family.tolerance
            and found.price <= exact * _CLOSE
        ):
            add(replace(family, tolerance=0.0))
            continue
        if found.price <= exact * _EQUAL:
            return found, family
        for part in family.refined():
            add(part)
    return None


def _splits(family: QuiltFamily) -> bool:
    return isinstance(family, IntervalFamily) and family.refinement is not None


@singledispatch
def worst_in_family(family: Any, cost: Cost, price: Price, nodes: range) -> BestQuilt | None:
    """Return the node of one family with the highest price, at the family's influences."""
    found = [price_at(family, int(i), cost, price) for i in family.nodes if int(i) in nodes]
    return max(found, key=lambda one: one.price, default=None)


def price_at(family: ListedFamily, node: int, cost: Cost, price: Price) -> BestQuilt:
    """Return the best candidate of one node. O(candidates)."""
    owner, start, stop = family.spans(node)
    size = len(family.influence)
    costs = np.zeros(size, dtype=np.int64)
    np.add.at(costs, owner, cost(start, stop))
    prices = price(costs, family.influence)
    best = int(np.argmin(prices))
    own = owner == best
    nearby = int(np.maximum(stop[own] - start[own] + 1, 0).sum())
    return BestQuilt(
        float(prices[best]),
        node,
        family.quilt(node, best),
        nearby,
        int(costs[best]),
        float(family.influence[best]),
    )


@worst_in_family.register
def _(family: KnownNodes, cost: Cost, price: Price, nodes: range) -> BestQuilt | None:
    shared = common(family.nodes, nodes)
    return price_at(family, shared[0], cost, price) if shared else None


@worst_in_family.register
def _(family: ClusterFamily, cost: Cost, price: Price, nodes: range) -> BestQuilt | None:
    totals = np.add.reduceat(cost(family.first, family.last), family.offset[:-1])
    rows = family.cluster[nodes.start - 1 : nodes.stop - 1]
    if not len(rows):
        return None
    return price_at(family, nodes.start + int(np.argmax(totals[rows])), cost, price)


@worst_in_family.register
def _(family: IntervalFamily, cost: Cost, price: Price, nodes: range) -> BestQuilt | None:
    shared = common(family.nodes, nodes)
    return worst_interval(family, shared, cost, price) if shared else None


def common(nodes: range, wanted: range) -> range:
    """Return the nodes of an ascending range that lie in a contiguous one."""
    if not nodes or not wanted:
        return range(0)
    skipped = max(0, -(-(wanted.start - nodes.start) // nodes.step))
    return range(nodes.start + skipped * nodes.step, min(nodes.stop, wanted.stop), nodes.step)
