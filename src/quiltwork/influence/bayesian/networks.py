"""Quilts of a network against adversaries who know some nodes.

For a quilt with nearby set N an adversary may know any L ⊆ N. Knowing L cuts a smaller part C out
around node i, and only the table around C depends on X_i: its axes in N are known, those outside
may vary. So the worst over L is a maximum over the connected parts C of N around i, and each table
serves every quilt.

Theorem: docs/theory/networks.md
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterator
from dataclasses import dataclass, field

import numpy as np

from quiltwork.beliefs import Network
from quiltwork.beliefs.elimination import Weights, sum_to
from quiltwork.beliefs.moral import boundary
from quiltwork.caching import cached_by_owner
from quiltwork.errors import UnsupportedError
from quiltwork.influence.bayesian.adversary_quilts import PAPER_FACTOR, Bound, adversary_families
from quiltwork.influence.network.exact_networks import (
    around,
    between_possible,
    blanket_bound,
    by_known,
    influence_given,
    rounded_up,
)
from quiltwork.influence.network.network_quilts import set_family
from quiltwork.influence.network.separators import Quilt, connected_parts, quilts_of
from quiltwork.influence.quilts.families import ListedFamily
from quiltwork.influence.quilts.protocol import QuiltFamily
from quiltwork.influence.ratios import row_ratios

_MOST_PARTS = 256
_MOST_KNOWN = 6
_JOINT_ENTRIES = 1 << 14
_FEW_NODES = 12


@adversary_families.register
def _(belief: Network, length: int, reach: int, bound: Bound) -> Iterator[QuiltFamily]:
    return iter(_families(belief, bound))


@cached_by_owner
def _families(network: Network, bound: Bound) -> list[QuiltFamily]:
    """The families of all nodes, cached as long as the network exists."""
    return [_family(network, node, bound) for node in range(network.length)]


def _family(network: Network, node: int, bound: Bound) -> QuiltFamily:
    """The family of one node, with influences that hold for any known nodes."""
    if network.sizes[node] == 1 or _is_known(network, node):
        return ListedFamily.known(range(node + 1, node + 2))
    tables = NodeInfluences(network, node)
    influences: list[tuple[Quilt, float]] = []
    least = math.inf
    for quilt in quilts_of(network, node, "moral"):
        influence = tables.influence(quilt, bound, least)
        if influence is not None and influence < least:
            influences.append((quilt, influence))
            least = influence
    return set_family(node, influences, frozenset())


def _is_known(network: Network, node: int) -> bool:
    """Whether a node has one possible state, where that is cheap to see."""
    if network.positive or network.length > _FEW_NODES:
        return False
    return int(network.joint([node]).support().sum()) == 1


@dataclass(frozen=True, eq=False)
class NodeInfluences:
    """The influences of quilts of one node, with a cache of its tables."""

    network: Network
    node: int
    _tables: dict[frozenset[int], Weights] = field(default_factory=dict, repr=False)

    def influence(self, quilt: Quilt, bound: Bound, least: float) -> float | None:
        """The influence of a quilt for any adversary; None if unknown or not below `least`."""
        if not quilt.separator:
            return 0.0
        if bound == "tight":
            return self.projective(quilt, least)
        influence = self.paper(quilt, least / PAPER_FACTOR)
        return None if influence is None else PAPER_FACTOR * influence

    def projective(self, quilt: Quilt, least: float) -> float | None:
        """h, the largest influence over all known nodes; None once it reaches `least`."""
        parts = connected_parts(self.network.neighbours, self.node, quilt.nearby, _MOST_PARTS)
        if parts is None:
            return None
        worst = 0.0
        for part in parts:
            try:
                worst = max(worst, self.spread(part, quilt.nearby))
            except UnsupportedError:
                if len(quilt.nearby) > 1:
                    return None
                worst = blanket_bound(self.network, self.node)
            # a quilt with fewer nearby nodes is already as good
            if worst >= least:
                return None
        return worst

    def spread(self, part: frozenset[int], nearby: frozenset[int]) -> float:
        """The projective influence of the open boundary of a part, its nearby boundary known."""
        around_part = boundary(self.network.neighbours, part)
        known, free = sorted(around_part & nearby), sorted(around_part - nearby)
        if not free:
            return 0.0
        table = self.table(part).over([self.node, *free, *known])
        return most_spread(table, len(free))

    def table(self, part: frozenset[int]) -> Weights:
        """The table over the node and the boundary of a part, impossible values marked."""
        table = self._tables.get(part)
        if table is None:
            edge = boundary(self.network.neighbours, part)
            table = around(self.network, Quilt(self.node, part, part, edge))
            if not self.network.positive and self.network.length <= _FEW_NODES:
                full = self.network.joint(table.scope)
                table = Weights(table.scope, table.values, full.support(), table.roundings)
            self._tables[part] = table
        return table

    def paper(self, quilt: Quilt, least: float) -> float | None:
        """b = max_L I(X_Q ⇝ X_i | X_L), over all L if these are few, or a bound on it."""
        nearby = sorted(quilt.nearby - {self.node})
        nodes = [self.node, *sorted(quilt.separator), *nearby]
        if (
            len(nearby) > _MOST_KNOWN
            or math.prod(self.network.sizes[v] for v in nodes) > _JOINT_ENTRIES
        ):
            return self.projective(quilt, least)
        try:
            joint = self.network.joint(nodes)
        except UnsupportedError:
            return self.projective(quilt, least)
        worst = 0.0
        for size in range(len(nearby) + 1):
            for known in itertools.combinations(nearby, size):
                part = sum_to(joint, [*nodes[: 1 + len(quilt.separator)], *known])
                worst = max(worst, influence_given(part, len(quilt.separator)))
                if worst >= least:
                    return None
        return worst


def most_spread(table: Weights, free: int) -> float:
    """The largest cross-ratio between two states of the node and two values of the free axes."""
    values, support = by_known(table, free)
    ratios = row_ratios(values, support)
    total = between_possible(ratios + ratios.transpose(0, 2, 1), np.asarray(support.any(axis=2)))
    return rounded_up(float(total.max(initial=0.0)), 16 * table.roundings * 2.0**-52)
