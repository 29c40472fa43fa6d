"""Quilts of a node of a network: separators with their nearby and remote sets.

Whatever set of nodes separates node i from the rest, the part around i that it cuts out has a
boundary that does so with less influence. So the quilts worth a look are the boundaries of the
connected sets around i, of which there may be very many: all small ones are taken, then those with
the smallest boundaries, then whole balls.

In a Bayesian network a nearby node without children outside the nearby set says nothing about the
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
        core: those of them that matter for the influence: the part around i that `separator`
            cuts out of the graph without `barren`.
        separator: the quilt itself.
        barren: nearby nodes that say nothing about the others and are left out of the graph.
    """

    node: int
    nearby: frozenset[int]
    core: frozenset[int]
    separator: frozenset[int]
    barren: frozenset[int] = frozenset()

    def remote(self, length: int) -> frozenset[int]:
        """The nodes that the quilt keeps from node i."""
        return frozenset(range(length)) - self.nearby - self.separator


def quilts_of(network: Network, node: int, separation: str = "d") -> list[Quilt]:
    """Return quilts of a node (0-based), fewest nearby nodes first; the last is the empty one.

    `separation` is "d" (enough where nobody knows anything) or "moral" (whatever is known).
    """
    found: dict[tuple[frozenset[int], frozenset[int]], Quilt] = {}
    for nearby in nearby_sets(network.neighbours, network.sizes, node):
        moral = Quilt(node, nearby, nearby, boundary(network.neighbours, nearby))
        options = [moral]
        if separation == "d" and network.directed:
            options.append(_without_barren(network, moral))
        for one in options:
            found.setdefault((one.nearby, one.separator), one)
    return sorted(found.values(), key=lambda one: (len(one.nearby), sorted(one.nearby)))


def nearby_sets(
    neighbours: Neighbours, sizes: Sequence[int], node: int
) -> Iterator[frozenset[int]]:
    """Yield connected sets around a node: all of each size while they are few, then some."""
    whole = part_of(neighbours, node, ())
    level = {frozenset([node])}
    total = 0
    while level and total < MOST_SETS:
        yield from level
        total += len(level)
        larger = {inside | {v} for inside in level for v in boundary(neighbours, inside)}
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
    return math.prod(sizes[v] for v in boundary(neighbours, inside)), sorted(inside)


def connected_parts(
    neighbours: Neighbours, node: int, within: frozenset[int], most: int
) -> list[frozenset[int]] | None:
    """Return all connected sets around a node inside `within`; None if there are over `most`."""
    found: list[frozenset[int]] = []
    level = {frozenset([node])}
    while level:
        found.extend(level)
        if len(found) > most:
            return None
        level = {
            inside | {v} for inside in level for v in boundary(neighbours, inside) if v in within
        }
    return found


def _without_barren(network: Network, quilt: Quilt) -> Quilt:
    """Leave out nearby nodes whose children are all left out, and cut again."""
    children = _children(network)
    barren: set[int] = set()
    waiting = True
    while waiting:
        more = {
            v
            for v in quilt.nearby - barren - {quilt.node}
            if all(child in barren for child in children[v])
        }
        barren |= more
        waiting = bool(more)
    left = frozenset(barren)
    scopes = [scope for scope, _ in network.factors if scope[-1] not in left]
    neighbours = joined(scopes, network.length)
    outside = frozenset(range(network.length)) - quilt.nearby
    core = part_of(neighbours, quilt.node, outside)
    return Quilt(quilt.node, core | left, core, boundary(neighbours, core), left)


def _children(network: Network) -> list[list[int]]:
    found: list[list[int]] = [[] for _ in network.names]
    for scope, _ in network.factors:
        for parent in scope[:-1]:
            found[parent].append(scope[-1])
    return found
