"""The scale that each node needs by its best quilt.

Families of many nodes are split along their rising and falling ends by halving, so the cost is
that of the runs and not of the nodes.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterable, Iterator

import numpy as np

from quiltwork.influence.profile import Profile, runs_of
from quiltwork.influence.quilts.families import ClusterFamily, IntervalFamily
from quiltwork.influence.quilts.intervals import Cost, Price, one_sided
from quiltwork.influence.quilts.protocol import QuiltFamily
from quiltwork.influence.quilts.worst_node_search import intersection, price_at, worst_in_family

_MOST_PIECES = 4096
_MOST_NODES = 1 << 20

TableSegment = tuple[range, float]


def node_scales(families: Iterable[QuiltFamily], cost: Cost, price: Price, nodes: range) -> Profile:
    """Return the scale of each node, with the families of one belief.

    Exact for up to 2^20 nodes that fall into at most 4,096 pieces; beyond that a run may contain
    nodes that need less than its scale, never more.
    """
    pieces = list(_pieces(families, cost, price, nodes))
    if len(nodes) <= _MOST_NODES:
        cuts = np.arange(nodes.start, nodes.stop + 1)
    else:
        pieces = [(range(part[0], part[-1] + 1), scale) for part, scale in pieces]
        cuts = np.unique([end for part, _ in pieces for end in (part.start, part.stop)])
    highest = np.zeros(len(cuts) - 1)
    for part, scale in pieces:
        first, stop = np.searchsorted(cuts, [part[0], part[-1] + 1])
        inside = slice(first, stop, part.step)
        highest[inside] = np.maximum(highest[inside], scale)
    return runs_of(cuts[:-1], cuts[1:] - 1, highest)


def _pieces(
    families: Iterable[QuiltFamily], cost: Cost, price: Price, nodes: range
) -> Iterator[TableSegment]:
    """Refine families breadth-first, up to `_MOST_PIECES`."""
    waiting = deque(families)
    done = 0
    while waiting:
        family = waiting.popleft()
        parts = list(family.refined()) if len(waiting) + done < _MOST_PIECES else []
        waiting.extend(parts)
        if not parts:
            done += 1
            yield from _family_pieces(family, cost, price, nodes)


def _family_pieces(
    family: QuiltFamily, cost: Cost, price: Price, nodes: range
) -> Iterator[TableSegment]:
    """Pieces of nodes of one family with the scale of each."""
    shared = intersection(family.nodes, nodes)
    if isinstance(family, ClusterFamily):
        yield from ((range(i, i + 1), price_at(family, i, cost, price).price) for i in shared)
        return
    worst = worst_in_family(family, cost, price, nodes)
    if worst is None:
        return
    highest = worst.price
    if not isinstance(family, IntervalFamily) or family.tolerance:
        yield shared, highest
        return
    peak = shared.index(worst.node) + 1

    def needs(node: int) -> float:
        return min(highest, *one_sided(family, node, cost, price))

    yield from _monotone_pieces(shared[:peak], needs)
    yield from _monotone_pieces(shared[peak:], needs)


def _monotone_pieces(nodes: range, needs: Callable[[int], float]) -> Iterator[TableSegment]:
    """Halve nodes along which the scale is monotone, until both ends of a piece agree."""
    waiting = [nodes] if nodes else []
    budget = _MOST_PIECES
    while waiting:
        part = waiting.pop()
        low, high = needs(part[0]), needs(part[-1])
        budget -= 1
        if low == high or budget < len(waiting):
            yield part, max(low, high)
        else:
            middle = len(part) // 2
            waiting += [part[middle:], part[:middle]]
