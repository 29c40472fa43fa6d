"""Graph algorithms on neighbour sets: moral graph, ancestors, components, elimination width.

Nodes are 0-based here. Everything is linear in the graph, except `elimination_width`.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from itertools import combinations
from typing import TypeAlias

Neighbours: TypeAlias = tuple[frozenset[int], ...]


def joined(scopes: Iterable[Sequence[int]], nodes: int) -> Neighbours:
    """Return the graph that joins nodes sharing a scope; for families, the moral graph.

    >>> joined([(0,), (1,), (0, 1, 2)], 3)
    (frozenset({1, 2}), frozenset({0, 2}), frozenset({0, 1}))
    """
    neighbours: list[set[int]] = [set() for _ in range(nodes)]
    for scope in scopes:
        for a, b in combinations(scope, 2):
            neighbours[a].add(b)
            neighbours[b].add(a)
    return tuple(map(frozenset, neighbours))


def ancestors(parents: Sequence[Sequence[int]], nodes: Iterable[int]) -> frozenset[int]:
    """Return the nodes and all their ancestors."""
    seen: set[int] = set()
    waiting = list(nodes)
    while waiting:
        node = waiting.pop()
        if node not in seen:
            seen.add(node)
            waiting.extend(parents[node])
    return frozenset(seen)


def part_of(neighbours: Neighbours, node: int, removed: Iterable[int]) -> frozenset[int]:
    """Return the nodes that can be reached from `node` without entering `removed`."""
    blocked = set(removed)
    seen, waiting = {node}, [node]
    while waiting:
        for other in neighbours[waiting.pop()]:
            if other not in seen and other not in blocked:
                seen.add(other)
                waiting.append(other)
    return frozenset(seen)


def boundary(neighbours: Neighbours, inside: frozenset[int]) -> frozenset[int]:
    """Return the nodes outside with a neighbour inside."""
    return frozenset().union(*(neighbours[node] for node in inside)) - inside


def elimination_width(neighbours: Neighbours, sizes: Sequence[int]) -> tuple[int, int]:
    """Return the width of a greedy elimination order and the entries of its largest table.

    The width (nodes of the largest table, less one) bounds the treewidth from above. Greedy
    min-weight, as in `eliminate`.
    """
    left = {node: set(near) for node, near in enumerate(neighbours)}
    width, entries = 0, 1
    while left:
        node = min(left, key=lambda v: (sizes[v] * math.prod(sizes[u] for u in left[v]), v))
        near = left.pop(node)
        width = max(width, len(near))
        entries = max(entries, sizes[node] * math.prod(sizes[u] for u in near))
        for other in near:
            left[other] |= near - {other}
            left[other].discard(node)
    return width, entries
