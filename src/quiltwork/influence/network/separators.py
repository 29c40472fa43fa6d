"""Quilts of a node of a network: separators with their nearby and remote sets.

For every set of nodes that separates node i from the rest, the part around i that it cuts out has a
boundary that separates with less influence. So the candidates are the boundaries of the connected
sets around i, of which there may be very many: all small ones are taken, then those with the
smallest boundaries, then whole balls.

In a Bayesian network a nearby node without children outside the nearby set is irrelevant to the
others, so it no longer joins its parents (d-separation): that makes some quilts smaller.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from quiltwork.beliefs import Network
from quiltwork.beliefs.moral import Neighbours, boundary, joined, part_of

MOST_SETS = 128
_BEAM = 8


@dataclass(frozen=True)
class Quilt:
    """A quilt of a node (0-based).

    Attributes:
        node: the node i.
        nearby: the nodes that are charged, i among them.
        core: those of them that matter for the influence: the part around i that `separator` cuts
            out of the graph without `barren`.
        separator: the quilt itself.
        barren: nearby nodes that are irrelevant to the others and removed from the graph.
    """

    node: int
    nearby: frozenset[int]
    core: frozenset[int]
    separator: frozenset[int]
    barren: frozenset[int] = frozenset()

    def remote(self, length: int) -> frozenset[int]:
        """The nodes that the quilt separates from node i."""
        return frozenset(range(length)) - self.nearby - self.separator


def quilts_of(network: Network, node: int, separation: str = "d") -> list[Quilt]:
    """Return quilts of a node (0-based), fewest nearby nodes first; the last is the empty one.

    `separation` is "d" (sufficient if the adversary knows no node) or "moral" (for any known
    nodes).
    """
    quilts: dict[tuple[frozenset[int], frozenset[int]], Quilt] = {}
    for nearby in nearby_sets(network.neighbours, network.sizes, node):
        moral = Quilt(node, nearby, nearby, boundary(network.neighbours, nearby))
        options = [moral]
        if separation == "d" and network.directed:
            options.append(_without_barren(network, moral))
        for option in options:
            quilts.setdefault((option.nearby, option.separator), option)
    return sorted(quilts.values(), key=lambda option: (len(option.nearby), sorted(option.nearby)))


def nearby_sets(
    neighbours: Neighbours, sizes: Sequence[int], node: int
) -> Iterator[frozenset[int]]:
    """Yield connected sets around a node: all of each size while they are few, then
    selected ones.
    """
    whole = part_of(neighbours, node, ())
    level = {frozenset([node])}
    total = 0
    while level and total < MOST_SETS:
        yield from level
        total += len(level)
        larger = {inside | {v} for inside in level for v in boundary(neighbours, inside)}
        # too many sets: keep those with the smallest tables on their boundary
        if len(larger) + total > MOST_SETS:
            larger = set(sorted(larger, key=lambda s: _weight(neighbours, sizes, s))[:_BEAM])
        level = larger
    ball = frozenset([node])
    while ball != whole:
        ball = ball | boundary(neighbours, ball)
        yield ball
    yield whole


def _weight(
    neighbours: Neighbours, sizes: Sequence[int], inside: frozenset[int]
) -> tuple[int, list[int]]:
    """The table size of a set's boundary, with a tie-break."""
    return math.prod(sizes[v] for v in boundary(neighbours, inside)), sorted(inside)


def connected_parts(
    neighbours: Neighbours, node: int, within: frozenset[int], most: int
) -> list[frozenset[int]] | None:
    """Return all connected sets around a node inside `within`; None if there are more
    than `most`.
    """
    parts: list[frozenset[int]] = []
    level = {frozenset([node])}
    while level:
        parts.extend(level)
        if len(parts) > most:
            return None
        level = {
            inside | {v} for inside in level for v in boundary(neighbours, inside) if v in within
        }
    return parts


def _without_barren(network: Network, quilt: Quilt) -> Quilt:
    """Remove nearby nodes whose children are all removed, and cut again."""
    children = _children(network)
    barren: set[int] = set()
    changed = True
    while changed:
        next_barren = {
            v
            for v in quilt.nearby - barren - {quilt.node}
            if all(child in barren for child in children[v])
        }
        barren |= next_barren
        changed = bool(next_barren)
    removed = frozenset(barren)
    scopes = [scope for scope, _ in network.factors if scope[-1] not in removed]
    neighbours = joined(scopes, network.length)
    outside = frozenset(range(network.length)) - quilt.nearby
    core = part_of(neighbours, quilt.node, outside)
    return Quilt(quilt.node, core | removed, core, boundary(neighbours, core), removed)


def _children(network: Network) -> list[list[int]]:
    """The children of each node."""
    children: list[list[int]] = [[] for _ in network.names]
    for scope, _ in network.factors:
        for parent in scope[:-1]:
            children[parent].append(scope[-1])
    return children
