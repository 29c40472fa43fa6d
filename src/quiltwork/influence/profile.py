"""The scale that each node needs, as runs of nodes that need the same.

Families of many nodes are followed along their rising and falling ends by halving, so the cost is
that of the runs and not of the nodes.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from functools import reduce

import numpy as np

from quiltwork.exact import float_up
from quiltwork.influence.quilts.families import ClusterFamily, IntervalFamily
from quiltwork.influence.quilts.intervals import Cost, Price, one_sided
from quiltwork.influence.quilts.protocol import FloatArray, IntArray, QuiltFamily
from quiltwork.influence.quilts.search import Outlook, common, price_at, worst_in_family

_MOST_PIECES = 4096
_MOST_NODES = 1 << 20

Piece = tuple[range, float]


@dataclass(frozen=True)
class Run:
    """Nodes first..last; the worst of them needs this scale."""

    first: int
    last: int
    scale: float


@dataclass(frozen=True)
class Profile:
    """Runs of nodes in order."""

    runs: tuple[Run, ...]

    def __iter__(self) -> Iterator[Run]:
        """The runs in order."""
        return iter(self.runs)

    def __len__(self) -> int:
        """The number of runs."""
        return len(self.runs)

    def at(self, node: int) -> float:
        """Return the scale of one node.

        Raises:
            KeyError: if the node is not among the protected ones.
        """
        index = int(np.searchsorted([run.first for run in self.runs], node, side="right")) - 1
        if index < 0 or node > self.runs[index].last:
            raise KeyError(node)
        return self.runs[index].scale

    def times(self, unit: Fraction) -> Profile:
        """Return the same in another unit, rounded up."""
        if unit == 1:
            return self
        return Profile(
            tuple(
                replace(run, scale=float_up(Fraction(run.scale) * unit))
                if np.isfinite(run.scale)
                else run
                for run in self.runs
            )
        )

    def arrays(self) -> tuple[IntArray, FloatArray]:
        """Return all nodes and their scales, one entry per node; O(nodes) memory."""
        sizes = [run.last - run.first + 1 for run in self.runs]
        nodes = np.concatenate([np.arange(run.first, run.last + 1) for run in self.runs])
        return nodes, np.repeat([run.scale for run in self.runs], sizes)


def runs_of(first: IntArray, last: IntArray, scale: FloatArray) -> Profile:
    """Put runs of nodes together, neighbours of the same scale as one."""
    begins = np.flatnonzero(np.append(True, scale[1:] != scale[:-1]))
    ends = np.append(begins[1:], len(scale)) - 1
    columns = first[begins].tolist(), last[ends].tolist(), scale[begins].tolist()
    return Profile(tuple(Run(*row) for row in zip(*columns, strict=True)))


def combined(
    profiles: Sequence[Profile], choose: Callable[[FloatArray, FloatArray], FloatArray]
) -> Profile:
    """Put profiles of the same nodes together, run by run, by np.maximum or np.minimum."""
    cuts = np.unique([run.first for one in profiles for run in one])
    last = np.append(cuts[1:] - 1, profiles[0].runs[-1].last)
    rows = []
    for one in profiles:
        places = np.searchsorted([run.first for run in one], cuts, side="right") - 1
        rows.append(np.array([run.scale for run in one])[places])
    return runs_of(cuts, last, np.asarray(reduce(choose, rows)))


def quilt_profile(outlook: Outlook, cost: Cost, price: Price, nodes: range) -> Profile:
    """Return what each node needs under one belief.

    Exact for up to 2^20 nodes that fall into at most 4,096 pieces; beyond that a run may hold
    nodes that need less than its scale, never more.
    """
    pieces = list(_pieces(outlook, cost, price, nodes))
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


def _pieces(outlook: Outlook, cost: Cost, price: Price, nodes: range) -> Iterator[Piece]:
    """Refine families breadth-first, as long as their number allows."""
    _, reach = outlook.worst(cost, price, nodes)
    waiting = deque(outlook.families(reach))
    done = 0
    while waiting:
        family = waiting.popleft()
        parts = list(family.refined()) if len(waiting) + done < _MOST_PIECES else []
        waiting.extend(parts)
        if not parts:
            done += 1
            yield from _family_pieces(family, cost, price, nodes)


def _family_pieces(family: QuiltFamily, cost: Cost, price: Price, nodes: range) -> Iterator[Piece]:
    shared = common(family.nodes, nodes)
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
    turn = shared.index(worst.node) + 1

    def needs(node: int) -> float:
        return min(highest, *one_sided(family, node, cost, price))

    yield from _monotone_pieces(shared[:turn], needs)
    yield from _monotone_pieces(shared[turn:], needs)


def _monotone_pieces(nodes: range, needs: Callable[[int], float]) -> Iterator[Piece]:
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
