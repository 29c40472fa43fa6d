"""One program as compiled loops: from a kept or a planted tree to the best; see `program.py`.

Arrays are changed in place. Imported only where Numba is installed; compiled once per machine.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeVar, cast

import numba
import numpy as np

from quiltwork.influence.sweep.tolerances import FEASIBLE, MARGIN, SIGN

_PASSES = 8
Loop = TypeVar("Loop", bound=Callable[..., Any])


def compiled(loop: Loop) -> Loop:
    """Compile at the first call, and keep it for other processes where there is a place for it."""
    try:
        made: Any = numba.njit(cache=True)(loop)
    except RuntimeError:  # neither beside this file nor at home may be written
        made = numba.njit(cache=False)(loop)
    return cast("Loop", made)


@compiled
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


@compiled
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


@compiled
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


@compiled
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


@compiled
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


@compiled
def _best_tree(
    above: Any, below: Any, a: Any, parent: Any, upper: Any, planted: bool, work: Any, order: Any
) -> float:
    """From a kept tree to the best; +inf where none was certified.

    `work` has rows for v, shares p and q, those below each node, and what is passed on.
    """
    size = len(above)
    v, p, q, p_below, q_below, left = work[0], work[1], work[2], work[3], work[4], work[5]
    inside, nodes = work[6], order[0]
    if not planted:
        _plant(above, below, a, parent, upper, v)
    broken = _ordered(a, parent, upper, v, order) < size or not planted
    for z in range(size):
        high, crossed = v[z] - FEASIBLE, 0
        for y in range(size):  # counted, which is quicker than to stop at the first
            crossed += high - v[y] > a[z, y]
        broken = broken or crossed > 0
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
                holds = holds and _spare(a, v, q, z, left[z])
            if place > 0:
                left[parent[z]] += min(left[z], 0.0)
    return float(np.log(top / bottom) + MARGIN) if holds else np.inf


@compiled
def _spare(a: Any, v: Any, q: Any, node: int, excess: float) -> bool:
    """Whether what a node has too much of p is nothing beside what the node richest in q has."""
    rich = 0
    for z in range(len(q)):
        if q[z] > q[rich]:
            rich = z
    room = min(a[node, rich] - v[node] + v[rich], 700.0)
    return bool(excess * np.exp(room) <= MARGIN / (4 * len(q)) * q[rich])


@compiled
def _kept(
    above: Any, below: Any, a: Any, parent: Any, upper: Any, order: Any, row: int, work: Any
) -> float:
    """The bound by the tree in a row, if it is still the best and all states are reached; else NaN.

    The same sums as in `_best_tree`, in one pass: mostly trees stay, and then this is all there is.
    """
    size, most, top, bottom = len(above), 0.0, 0.0, 0.0
    work[0, order[row, 0]] = 0.0
    for place in range(1, size):
        z = order[row, place]
        y = parent[row, z]
        v = work[0, y] + a[z, y] if upper[row, z] else work[0, y] - a[y, z]
        work[0, z] = v
        most = max(most, v)
    for z in range(size):
        weight = np.exp(work[0, z] - most)
        work[1, z], work[2, z] = above[z] * weight, below[z] * weight
        top += work[1, z]
        bottom += work[2, z]
        if above[z] == 0 and below[z] == 0:
            return np.nan
    if not (top > 0 and bottom > 0):
        return np.nan
    rounding = 8 * (size + 4) * 2.0**-53
    p_raised, q_raised = (1 + rounding) / top, (1 + MARGIN / 2) * (1 - rounding) / bottom
    for z in range(size):
        work[3, z], work[4, z] = work[1, z] / top, work[2, z] / bottom
        work[5, z] = work[1, z] * p_raised - work[2, z] * q_raised
    for place in range(size - 1, 0, -1):
        z = order[row, place]
        y = parent[row, z]
        p, q, left, high = work[3, z], work[4, z], work[5, z], upper[row, z]
        wrong = q - p if high else p - q
        if wrong > SIGN * (p + q) or (left > 0 and not high):
            return np.nan
        work[3, y] += p
        work[4, y] += q
        work[5, y] += max(left, 0.0) if high else left
    if work[5, order[row, 0]] > 0:
        return np.nan
    for z in range(size):
        high, crossed = work[0, z] - FEASIBLE, 0
        for y in range(size):  # counted, which is quicker than to stop at the first
            crossed += high - work[0, y] > a[z, y]
        if crossed > 0:
            return np.nan
    return float(np.log(top / bottom) + MARGIN)


@compiled
def best_tree(
    above: Any,
    below: Any,
    a: Any,
    parent: Any,
    upper: Any,
    order: Any,
    row: int,
    flow: Any,
    numbers: Any,
    places: Any,
    flags: Any,
) -> float:
    """One program from the tree in a row, on the states that its rows reach: limits are closed.

    `order` lists the nodes from the root outwards; −1 first where only some states were reached, −2
    where there is no tree. `flow` gets what each node and those below it have of p less of q. The
    last three are room to work in: (k + 9, k) numbers, (6, k) places, (k,) flags.
    """
    size, found = len(above), 0
    if order[row, 0] >= 0:
        value = _kept(above, below, a, parent, upper, order, row, numbers)
        if not np.isnan(value):
            for z in range(size):
                flow[z] = numbers[3, z] - numbers[4, z]
            return value
    seen, place, branch = places[3], places[4], places[5]
    planted = order[row, 0] > -2
    for z in range(size):
        found += above[z] > 0 or below[z] > 0
    if found == size:
        work = numbers[size + 2 :]
        tree = parent[row], upper[row], planted
        value = _best_tree(above, below, a, *tree, work, places)
        for z in range(size):
            flow[z] = work[3, z] - work[4, z]
            order[row, z] = places[0, z]
        if np.isinf(value):
            order[row, 0] = -1
        return value
    found = 0
    for z in range(size):
        place[z] = -1
        flow[z] = 0.0
        if above[z] > 0 or below[z] > 0:
            seen[found], place[z] = z, found
            found += 1
    rows = numbers[size : size + 2].reshape(
        -1
    )  # from here on without gaps: compiled for one layout
    above_seen, below_seen = rows[:found], rows[found : 2 * found]
    limits = numbers[:found].reshape(-1)[: found * found].reshape(found, found)
    work = numbers[size + 2 :].reshape(-1)[: 7 * found].reshape(7, found)
    nodes = places[:3].reshape(-1)[: 3 * found].reshape(3, found)
    for i in range(found):
        z = seen[i]
        above_seen[i], below_seen[i] = above[z], below[z]
        branch[i], flags[i] = place[parent[row, z]], upper[row, z]
        planted = planted and branch[i] >= 0
        for j in range(found):
            limits[i, j] = a[z, seen[j]]
    tree = branch[:found], flags[:found], planted
    value = _best_tree(above_seen, below_seen, limits, *tree, work, nodes)
    for z in range(size):
        parent[row, z] = z
    for i in range(found):
        z = seen[i]
        parent[row, z], upper[row, z] = seen[branch[i]], flags[i]
        flow[z] = work[3, i] - work[4, i]
    order[row, 0] = -1
    return value
