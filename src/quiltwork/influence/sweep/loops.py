"""Compiled loops: one program after the other, one node after the other; see `program.py`.

Arrays are changed in place. Imported only where Numba is installed; compiled once per machine.
"""

from __future__ import annotations

from typing import Any

import numba
import numpy as np

from quiltwork.influence.sweep.limits import (
    FEASIBLE,
    LARGEST_LIMIT,
    MARGIN,
    SIGN,
    SLACK,
)

_njit = numba.njit(cache=True)
_PASSES = 8


@_njit
def _plant(above: Any, below: Any, a: Any, parent: Any, upper: Any, v: Any) -> None:
    """The best star: all nodes at their upper, or all at their lower limit over one."""
    size = len(above)
    best = -1.0
    for root in range(size):
        for side in range(2):
            most = -np.inf
            for z in range(size):
                if z == root:
                    v[z] = 0.0
                elif side == 0:
                    v[z] = a[z, root]
                else:
                    v[z] = -a[root, z]
                if (above[z] > 0 or below[z] > 0) and v[z] > most:
                    most = v[z]
            top, bottom = 0.0, 0.0
            for z in range(size):
                if above[z] > 0 or below[z] > 0:
                    weight = np.exp(v[z] - most)
                    top += above[z] * weight
                    bottom += below[z] * weight
            ratio = np.inf if top > 0 else 0.0
            if bottom > 0:
                ratio = top / bottom
            if ratio > best:
                best = ratio
                for z in range(size):
                    parent[z] = root
                    upper[z] = side == 0


@_njit
def _ordered(a: Any, parent: Any, upper: Any, v: Any, order: Any) -> int:
    """Nodes from the root outwards, with their log u; how many hang together.

    `order` has rows for the nodes, for the first child of each, and for the next of its siblings.
    """
    size = len(parent)
    nodes, child, sibling = order[0], order[1], order[2]
    found = 0
    for z in range(size):
        child[z] = -1
    for z in range(size - 1, -1, -1):
        if parent[z] == z:
            nodes[0], v[z], found = z, 0.0, 1
        else:
            sibling[z], child[parent[z]] = child[parent[z]], z
    place = 0
    while place < found:
        z = nodes[place]
        y = child[z]
        while y >= 0:
            v[y] = v[z] + a[y, z] if upper[y] else v[z] - a[z, y]
            nodes[found] = y
            found += 1
            y = sibling[y]
        place += 1
    return found


@_njit
def _hang(a: Any, parent: Any, upper: Any, v: Any, inside: Any, node: int, down: bool) -> float:
    """Move what hangs on `node` until another limit is met, and hang it there; how far it moved."""
    size = len(parent)
    least, joint, outside = np.inf, -1, -1
    for z in range(size):
        if inside[z] > 0:
            for y in range(size):
                if inside[y] == 0:
                    room = a[y, z] + v[z] - v[y] if down else a[z, y] - v[z] + v[y]
                    if room < least:
                        least, joint, outside = room, z, y
    if joint < 0:  # no limit is a number
        return np.inf
    at, above_it, at_upper = joint, outside, not down
    for _ in range(size):
        old_parent, old_upper = parent[at], upper[at]
        parent[at], upper[at] = above_it, at_upper
        if at == node:
            break
        above_it, at_upper, at = at, not old_upper, old_parent
    return float(-least if down else least)


@_njit
def _weigh(above: Any, below: Any, v: Any, p: Any, q: Any) -> tuple[float, float]:
    """The shares of p·u and q·u that each node has, and both sums over e^(largest v)."""
    size = len(above)
    most, top, bottom = -np.inf, 0.0, 0.0
    for z in range(size):
        if (above[z] > 0 or below[z] > 0) and v[z] > most:
            most = v[z]
    for z in range(size):
        p[z] = q[z] = 0.0
        if above[z] > 0 or below[z] > 0:
            weight = np.exp(v[z] - most)
            p[z], q[z] = above[z] * weight, below[z] * weight
            top += p[z]
            bottom += q[z]
    for z in range(size):
        p[z] = p[z] / top if top > 0 else 0.0
        q[z] = q[z] / bottom if bottom > 0 else 0.0
    return top, bottom


@_njit
def _climb(above: Any, below: Any, a: Any, parent: Any, upper: Any, work: Any, order: Any) -> bool:
    """From any v to a tree close to the best: all nodes of p as high as those of q let them be,
    those of q as low as possible, while that helps; then parts that hang together are joined.

    False where p and q do not differ.
    """
    size = len(above)
    v, p, q, inside = work[0], work[1], work[2], work[6]
    part = order[1]
    before = work[3]
    for z in range(size):
        before[z] = v[z]
    for z in range(size):  # the largest feasible v below the given one
        for y in range(size):
            if y != z:
                v[z] = min(v[z], before[y] + a[z, y])
    last = -np.inf
    for _ in range(_PASSES):
        top, bottom = _weigh(above, below, v, p, q)
        if not (top > 0 and bottom > 0) or top / bottom <= last * (1 + 2.0**-20):
            break
        last = top / bottom
        risers = 0
        for z in range(size):
            inside[z] = 1.0 if p[z] > q[z] else 0.0
            risers += p[z] > q[z]
        if risers == 0:
            return False
        for z in range(size):
            if inside[z] > 0:
                best, at = np.inf, z
                for y in range(size):
                    if inside[y] == 0 and a[z, y] + v[y] < best:
                        best, at = a[z, y] + v[y], y
                v[z], parent[z], upper[z] = best, at, True
        for y in range(size):
            if inside[y] == 0:
                best, at = -np.inf, y
                for z in range(size):
                    if inside[z] > 0 and v[z] - a[z, y] > best:
                        best, at = v[z] - a[z, y], z
                v[y], parent[y], upper[y] = best, at, False
    if last == -np.inf:
        return False
    for z in range(size):  # every node points at another: a circle in each part is cut
        part[z] = -1
    parts = 0
    for start in range(size):
        z = start
        while part[z] == -1:
            part[z] = -2
            z = parent[z]
        if part[z] == -2:
            parent[z] = z
            name, parts = z, parts + 1
        else:
            name = part[z]
        z = start
        while part[z] == -2:
            part[z] = name
            z = parent[z]
    for root in range(size):
        if parts == 1:
            break
        if parent[root] != root:
            continue
        _weigh(above, below, v, p, q)
        gain = 0.0
        name = part[root]
        for z in range(size):
            inside[z] = 1.0 if part[z] == name else 0.0
            gain += (p[z] - q[z]) * inside[z]
        moved = _hang(a, parent, upper, v, inside, root, gain < 0)
        if not np.isfinite(moved):
            return False
        at = root
        while inside[at] > 0:
            at = parent[at]
        for z in range(size):
            if inside[z] > 0:
                v[z] += moved
                part[z] = part[at]
        parts -= 1
    return True


@_njit
def _tree(
    above: Any, below: Any, a: Any, parent: Any, upper: Any, planted: bool, work: Any, order: Any
) -> float:
    """One program from a kept tree; +inf where no tree was certified.

    `work` has rows for v, shares p and q, those below each node, and what is passed on.
    """
    size = len(above)
    v, p, q, p_below, q_below, left = work[0], work[1], work[2], work[3], work[4], work[5]
    inside, nodes = work[6], order[0]
    if not planted:
        _plant(above, below, a, parent, upper, v)
    broken = _ordered(a, parent, upper, v, order) < size or not planted
    for z in range(size):
        for y in range(size):
            if z != y and v[z] - v[y] > a[z, y] + FEASIBLE:
                broken = True
    if broken and not _climb(above, below, a, parent, upper, work, order):
        _plant(above, below, a, parent, upper, v)
    top, bottom = 0.0, 0.0
    last = 8 * size + 17
    for turn in range(last + 1):
        _ordered(a, parent, upper, v, order)
        top, bottom = _weigh(above, below, v, p, q)
        for z in range(size):
            p_below[z], q_below[z] = p[z], q[z]
        worst, node = 0.0, -1
        for place in range(size - 1, 0, -1):
            z = nodes[place]
            p_below[parent[z]] += p_below[z]
            q_below[parent[z]] += q_below[z]
            wrong = q_below[z] - p_below[z] if upper[z] else p_below[z] - q_below[z]
            if wrong > SIGN * (p_below[z] + q_below[z]) and wrong > worst:
                worst, node = wrong, z
        if node < 0 or turn == last:
            break
        for z in range(size):
            inside[z] = 0.0
        inside[node] = 1.0
        for place in range(1, size):
            z = nodes[place]
            if inside[parent[z]] > 0:
                inside[z] = 1.0
        if not np.isfinite(_hang(a, parent, upper, v, inside, node, upper[node])):
            return np.inf
    # the certificate, from the leaves up
    rounding = 8 * (size + 4) * 2.0**-53
    holds = bottom > 0 and top > 0
    for z in range(size):
        left[z] = p[z] * (1 + rounding) - q[z] * ((1 + MARGIN / 2) * (1 - rounding))
    for place in range(size - 1, -1, -1):
        z = nodes[place]
        if place > 0 and upper[z]:
            left[parent[z]] += max(left[z], 0.0)
        else:
            if left[z] > 0:
                holds = False
            if place > 0:
                left[parent[z]] += left[z]
    return float(np.log(top / bottom) + MARGIN) if holds else np.inf


@_njit
def _two(above: Any, below: Any, a: Any) -> float:
    """Both trees there are with two states."""
    best = -np.inf
    for side in range(2):
        weight = np.exp(a[1, 0]) if side == 0 else np.exp(-a[0, 1])
        top, bottom = above[0] + above[1] * weight, below[0] + below[1] * weight
        value = np.inf
        if bottom > 0:
            value = np.log(top / bottom)
        elif top == 0:
            value = -np.inf
        best = max(best, value)
    return best + 2.0**-48


@_njit
def _without_trees(above: Any, below: Any, closed: Any) -> float:
    """A bound by the largest limit and by single entries alone."""
    size = len(above)
    most, p_sum, q_sum, ratio = 0.0, 0.0, 0.0, 0.0
    for z in range(size):
        p_sum += above[z]
        q_sum += below[z]
        if above[z] > 0:
            ratio = max(ratio, above[z] / below[z]) if below[z] > 0 else np.inf
        if above[z] > 0 or below[z] > 0:
            for y in range(size):
                if (above[y] > 0 or below[y] > 0) and y != z:
                    most = max(most, closed[z, y])
    limited = most + np.log(p_sum / q_sum) + 2.0**-48 if q_sum > 0 and p_sum > 0 else np.inf
    if ratio <= 0:
        return float(limited)
    unlimited = np.log(ratio)
    return float(min(limited, unlimited + abs(unlimited) * 2.0**-50 + 2.0**-50))


@_njit
def solve(
    above: Any,
    below: Any,
    limits: Any,
    group: Any,
    parent: Any,
    upper: Any,
    planted: Any,
    values: Any,
    slope: Any,
    high: Any,
    low: Any,
) -> None:
    """Solve every pair of rows; `planted` says which rows of `parent` and `upper` hold a tree."""
    count, size = above.shape
    work, order = np.empty((7, size)), np.empty((3, size), dtype=np.int64)
    for m in range(count):
        if not planted[m] and m > 0 and group[m - 1] == group[m]:
            # a tree of the same limits is feasible, whatever the rows it was found for
            parent[m], upper[m] = parent[m - 1], upper[m - 1]
            planted[m] = True
        a = limits[group[m]]
        values[m] = _tree(above[m], below[m], a, parent[m], upper[m], planted[m], work, order)
        planted[m] = True
        for z in range(size):
            change = work[3, z] - work[4, z] if upper[m, z] else work[4, z] - work[3, z]
            slope[m, z] = 0.0 if parent[m, z] == z else max(change, 0.0)
            high[m, z] = z if upper[m, z] else parent[m, z]
            low[m, z] = parent[m, z] if upper[m, z] else z


@_njit
def sweep(
    above: Any,
    below: Any,
    spans: Any,
    margins: Any,
    x: Any,
    y: Any,
    tells: Any,
    to_left: bool,
    start: Any,
    begin: Any,
    steps: Any,
    levels: Any,
    possible: Any,
    first: Any,
    result: Any,
) -> None:
    """Sweep stretches of nodes, one after the other.

    `above` and `below` are (spans, phases, pairs, k). Stretch g begins at node begin[g] with the
    bounds start[g] and takes steps[g] steps; node first[g] + j is written to result[g, j].
    `levels[g, j]` and `possible[g, j]` belong to the node after j steps.
    """
    count, phases, pairs, size = len(start), above.shape[1], above.shape[2], above.shape[3]
    widest = spans[-1]
    toward = 1 if to_left else -1
    work, order = np.empty((7, size)), np.empty((3, size), dtype=np.int64)
    p, q = np.empty(size), np.empty(size)
    ring = np.empty((widest, size, size))
    closed, a = np.empty((size, size)), np.empty((size, size))
    parent = np.zeros((len(spans), pairs, size), dtype=np.int64)
    upper = np.zeros((len(spans), pairs, size), dtype=np.bool_)
    for g in range(count):
        planted = np.zeros((len(spans), pairs), dtype=np.bool_)
        ring[0] = start[g]
        for j in range(steps[g] + 1):
            node = begin[g] + toward * j
            now = ring[j % widest].copy()
            if j > 0:
                now[:] = np.inf
                for s in range(len(spans)):
                    span = spans[s]
                    if span > j:
                        break
                    beyond = ring[(j - span) % widest]
                    gap = margins[s]
                    for i in range(1, span):
                        gap += levels[g, j - i]
                    level = levels[g, j - span]
                    for u in range(size):
                        for w in range(size):
                            closed[u, w] = beyond[u, w] + level * tells[u, w] if u != w else 0.0
                    if size > 2:
                        for z in range(size):
                            for u in range(size):
                                for w in range(size):
                                    through = closed[u, z] + closed[z, w]
                                    closed[u, w] = min(closed[u, w], through)
                    large = False
                    for u in range(size):
                        for w in range(size):
                            large = large or closed[u, w] > LARGEST_LIMIT
                            limit = min(closed[u, w], LARGEST_LIMIT)
                            a[u, w] = limit + SLACK * (1 + abs(limit))
                    phase = (node - span - 1 if to_left else node - 1) % phases
                    for m in range(pairs):
                        if to_left and not (possible[g, j, x[m]] and possible[g, j, y[m]]):
                            continue
                        for z in range(size):
                            reached = not to_left or possible[g, j - span, z]
                            p[z] = above[s, phase, m, z] if reached else 0.0
                            q[z] = below[s, phase, m, z] if reached else 0.0
                        if size == 2:
                            value = _two(p, q, a)
                        else:
                            if not planted[s, m] and m > 0 and planted[s, m - 1]:
                                parent[s, m], upper[s, m] = parent[s, m - 1], upper[s, m - 1]
                                planted[s, m] = True
                            value = _tree(
                                p, q, a, parent[s, m], upper[s, m], planted[s, m], work, order
                            )
                            planted[s, m] = True
                        if large or value == np.inf:
                            bound = _without_trees(p, q, closed)
                            if large:
                                # limits that the rows do not reach do not count
                                reaches = False
                                for u in range(size):
                                    for w in range(size):
                                        if (p[u] > 0 or q[u] > 0) and (p[w] > 0 or q[w] > 0):
                                            reaches = reaches or closed[u, w] > LARGEST_LIMIT
                                value = bound if reaches else value
                            if value == np.inf:
                                value = bound
                        now[x[m], y[m]] = min(now[x[m], y[m]], value + gap)
                for z in range(size):
                    now[z, z] = 0.0
                ring[j % widest] = now
            place = node - first[g]
            if 0 <= place < result.shape[1]:
                result[g, place] = now
