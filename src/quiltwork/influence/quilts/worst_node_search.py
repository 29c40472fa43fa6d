"""The worst node: the maximum over nodes of the minimum over quilts, without visiting all nodes.

Families that represent many nodes are refined best-first; the search within a family is in
`intervals`. The cost does not grow with the length.

Theorem: docs/theory/influence-curve.md
"""

from __future__ import annotations

import heapq
from collections.abc import Iterable
from dataclasses import replace
from itertools import count

import numpy as np

from quiltwork.influence.quilts.families import ClusterFamily, IntervalFamily, ListedFamily
from quiltwork.influence.quilts.intervals import BestQuilt, Cost, Price, worst_interval
from quiltwork.influence.quilts.protocol import QuiltFamily

_CLOSE = 1.01
_EQUAL = 1 + 2.0**-33


def worst_node(
    families: Iterable[QuiltFamily], cost: Cost, price: Price, nodes: range
) -> tuple[BestQuilt, QuiltFamily] | None:
    """Return the node in `nodes` with the highest price, and its family; None if there is none.

    Best-first: a family whose price is not the highest is never refined. One that comes close to an
    exact family is searched exactly before it is split, and not split if it is within a relative
    2^-33: thousands of nodes may have the same price.
    """
    order = count()
    waiting: list[tuple[float, int, BestQuilt, QuiltFamily]] = []
    exact = 0.0

    def add(family: QuiltFamily) -> None:
        nonlocal exact
        best = worst_in_family(family, cost, price, nodes)
        if best is not None:
            heapq.heappush(waiting, (-best.price, -next(order), best, family))
            splits = isinstance(family, IntervalFamily) and family.refinement is not None
            # only prices of families that need no refinement are attained
            exact = exact if splits else max(exact, best.price)

    for family in families:
        add(family)
    while waiting:
        _, _, best, family = heapq.heappop(waiting)
        if isinstance(family, IntervalFamily) and family.tolerance and best.price <= exact * _CLOSE:
            add(replace(family, tolerance=0.0))
            continue
        if best.price <= exact * _EQUAL:
            return best, family
        for part in family.refined():
            add(part)
    return None


def worst_in_family(
    family: QuiltFamily, cost: Cost, price: Price, nodes: range
) -> BestQuilt | None:
    """Return the node of one family with the highest price, at the family's influences."""
    shared = intersection(family.nodes, nodes)
    if not shared:
        return None
    if isinstance(family, IntervalFamily):
        return worst_interval(family, shared, cost, price)
    worst = shared[0]  # all nodes of a listed family are alike
    if isinstance(family, ClusterFamily):
        costs = np.add.reduceat(cost(family.first, family.last), family.offset[:-1])
        worst += int(np.argmax(costs[family.cluster[shared.start - 1 : shared.stop - 1]]))
    return price_at(family, worst, cost, price)


def price_at(family: QuiltFamily, node: int, cost: Cost, price: Price) -> BestQuilt:
    """Return the best of the listed candidates of one node. O(candidates)."""
    listed = family.of(node) if isinstance(family, ClusterFamily) else family
    assert isinstance(listed, ListedFamily)  # noqa: S101  (intervals are searched)
    costs = np.zeros(len(listed.influence), dtype=np.int64)
    np.add.at(costs, listed.owner, cost(listed.start, listed.stop))
    prices = price(costs, listed.influence)
    best = int(np.argmin(prices))
    sizes = np.maximum(listed.stop - listed.start + 1, 0)
    return BestQuilt(
        float(prices[best]),
        node,
        listed.quilts[best],
        int(sizes[listed.owner == best].sum()),
        int(costs[best]),
        float(listed.influence[best]),
    )


def intersection(nodes: range, wanted: range) -> range:
    """Return the nodes of an ascending range that lie in a contiguous one."""
    if not nodes or not wanted:
        return range(0)
    skipped = max(0, -(-(wanted.start - nodes.start) // nodes.step))
    return range(nodes.start + skipped * nodes.step, min(nodes.stop, wanted.stop), nodes.step)
