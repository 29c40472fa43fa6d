"""One program as compiled loops: from a kept or a planted tree to the best; see `program.py`.

Arrays are changed in place. Imported only where Numba is installed.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from quiltwork.influence.sweep.starting_trees import (
    climb,
    compiled,
    hang,
    keeps_limits,
    ordered,
    plant,
    weigh,
)
from quiltwork.influence.sweep.tolerances import FEASIBLE, MARGIN, SIGN

_FAR = 1e120
"""Where products of ratios and entries come near what a number can hold, logarithms are taken."""


@compiled
def _pivoted(
    above: Any, below: Any, a: Any, parent: Any, upper: Any, work: Any, order: Any, turns: int
) -> tuple[float, float, bool]:
    """Turn the worst of the wrong edges until there is none; p·u, q·u, and whether that is so."""
    size, nodes = len(above), order[0]
    v, p, q, p_below, q_below, inside = work[0], work[1], work[2], work[3], work[4], work[6]
    top, bottom = 0.0, 0.0
    for turn in range(turns + 1):
        ordered(a, parent, upper, v, order)
        top, bottom = weigh(above, below, v, p, q)
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
        if node < 0:
            return top, bottom, True
        if turn == turns:
            break
        for z in range(size):
            inside[z] = 0.0
        inside[node] = 1.0
        for place in range(1, size):
            z = nodes[place]
            if inside[parent[z]] > 0:
                inside[z] = 1.0
        if not np.isfinite(hang(a, parent, upper, v, inside, node, upper[node])):
            return 0.0, 0.0, False
    return top, bottom, False


@compiled
def _best_tree(
    above: Any, below: Any, a: Any, parent: Any, upper: Any, feasible: bool, work: Any, order: Any
) -> float:
    """From a tree to the best; +inf where none was certified.

    `work` has rows for v, shares p and q, those below each node, and what is passed on.
    """
    size = len(above)
    v, p, q, left, nodes = work[0], work[1], work[2], work[5], order[0]
    top, bottom, best = 0.0, 0.0, False
    if feasible:
        top, bottom, best = _pivoted(above, below, a, parent, upper, work, order, 2 * size)
    if not best:  # many trees are as good as each other, or this one is none
        if not climb(above, below, a, parent, upper, work, order):
            plant(above, below, a, parent, upper, v)
        turns = 8 * size + 17
        top, bottom, best = _pivoted(above, below, a, parent, upper, work, order, turns)
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
    above: Any, below: Any, ratio: Any, parent: Any, upper: Any, order: Any, row: int, work: Any
) -> float:
    """The bound by the tree in a row, if it is still the best and all states are reached; else NaN.

    The same sums as in `_best_tree`, in one pass and with `ratio` e^limit in place of logarithms:
    mostly trees stay, and then this is all there is.
    """
    size, least, most, top, bottom = len(above), 1.0, 1.0, 0.0, 0.0
    work[0, order[row, 0]] = 1.0
    for place in range(1, size):
        z = order[row, place]
        y = parent[row, z]
        u = work[0, y] * ratio[z, y] if upper[row, z] else work[0, y] / ratio[y, z]
        work[0, z] = u
        least, most = min(least, u), max(most, u)
    if not (least > 1 / _FAR and most < _FAR):
        return np.nan
    for z in range(size):
        u = work[0, z]
        work[1, z], work[2, z] = above[z] * u, below[z] * u
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
        low, crossed = work[0, z] * (1 - FEASIBLE), 0
        for y in range(size):
            crossed += low > work[0, y] * ratio[z, y]
        if crossed > 0:
            return np.nan
    return float(np.log(top / bottom) + MARGIN)


@compiled
def best_tree(
    above: Any,
    below: Any,
    a: Any,
    ratio: Any,
    parent: Any,
    upper: Any,
    order: Any,
    row: int,
    beside: int,
    flow: Any,
    numbers: Any,
    places: Any,
    flags: Any,
) -> float:
    """One program from the tree in a row, on the states that its rows reach: limits are closed.

    `order` lists the nodes from the root outwards; −1 first where only some states were reached, −2
    where there is no tree. Where the tree breaks a limit, one of the `beside` rows before is begun
    with, which was found under the same limits. `flow` gets what each node and those below it have
    of p less of q. The last three are room to work in: (k + 9, k) numbers, (6, k) places and (k,)
    flags.
    """
    size, found = len(above), 0
    if order[row, 0] >= 0:
        value = _kept(above, below, ratio, parent, upper, order, row, numbers)
        if not np.isnan(value):
            for z in range(size):
                flow[z] = numbers[3, z] - numbers[4, z]
            return value
    seen, place, branch = places[3], places[4], places[5]
    for z in range(size):
        found += above[z] > 0 or below[z] > 0
    if found == size:
        work, tree = numbers[size + 2 :], (parent[row], upper[row])
        feasible = order[row, 0] > -2 and keeps_limits(a, *tree, work[0], places)
        best = -1.0
        for back in (1, size - 1):  # p or q is the same there, where rows are those of all pairs
            kept = row - back
            if feasible or back > beside or order[kept, 0] < 0:
                continue
            ordered(a, parent[kept], upper[kept], work[0], places)
            top, bottom = weigh(above, below, work[0], work[1], work[2])
            if top / bottom > best:
                best = top / bottom
                parent[row], upper[row] = parent[kept], upper[kept]
        feasible = feasible or (best >= 0 and keeps_limits(a, *tree, work[0], places))
        if order[row, 0] == -2 and not feasible:
            plant(above, below, a, *tree, work[0])
        value = _best_tree(above, below, a, *tree, feasible, work, places)
        for z in range(size):
            flow[z] = work[3, z] - work[4, z]
            order[row, z] = places[0, z]
        if np.isinf(value):
            order[row, 0] = -1
        return value
    if beside > 0 and order[row, 0] == -2 and order[row - 1, 0] > -2:
        parent[row], upper[row] = parent[row - 1], upper[row - 1]
        order[row, 0] = -1
    found = 0
    for z in range(size):
        place[z] = -1
        flow[z] = 0.0
        if above[z] > 0 or below[z] > 0:
            seen[found], place[z] = z, found
            found += 1
    # from here on without gaps: compiled for one layout
    rows = numbers[size : size + 2].reshape(-1)
    above_seen, below_seen = rows[:found], rows[found : 2 * found]
    limits = numbers[:found].reshape(-1)[: found * found].reshape(found, found)
    work = numbers[size + 2 :].reshape(-1)[: 7 * found].reshape(7, found)
    nodes = places[:3].reshape(-1)[: 3 * found].reshape(3, found)
    planted = order[row, 0] > -2
    for i in range(found):
        z = seen[i]
        above_seen[i], below_seen[i] = above[z], below[z]
        branch[i], flags[i] = place[parent[row, z]], upper[row, z]
        planted = planted and branch[i] >= 0
        for j in range(found):
            limits[i, j] = a[z, seen[j]]
    part = branch[:found], flags[:found]
    if not planted:
        plant(above_seen, below_seen, limits, *part, work[0])
    feasible = planted and keeps_limits(limits, *part, work[0], nodes)
    value = _best_tree(above_seen, below_seen, limits, *part, feasible, work, nodes)
    for z in range(size):
        parent[row, z] = z
    for i in range(found):
        z = seen[i]
        parent[row, z], upper[row, z] = seen[branch[i]], flags[i]
        flow[z] = work[3, i] - work[4, i]
    order[row, 0] = -1
    return value
