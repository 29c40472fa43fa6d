"""Compiled loops: one program after the other, one node after the other; see `program.py`.

Arrays are changed in place. Imported only where Numba is installed.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from quiltwork.influence.sweep.pivots import best_tree
from quiltwork.influence.sweep.starting_trees import compiled
from quiltwork.influence.sweep.tolerances import LARGEST_LIMIT, SLACK, SMALLEST_ENTRY

_ROOT = SMALLEST_ENTRY**0.5


@compiled
def _two(above: Any, below: Any, high: float, low: float) -> float:
    """Both trees there are with two states: the second weighs e^A[1,0] or e^−A[0,1]."""
    best = 0.0
    for weight in (high, low):
        top, bottom = above[0] + above[1] * weight, below[0] + below[1] * weight
        if top > 0:
            best = max(best, top / bottom if bottom > 0 else np.inf)
    return float(np.log(best)) + 2.0**-48


@compiled
def _weighted(above: Any, below: Any, fading: Any, spread: Any) -> float:
    """Columns weighted in any way, as square roots: see `any_start.py`."""
    size, most = len(above), 0.0
    for z in range(size):
        if above[z] == 0:
            continue
        top, least = max(above[z], _ROOT), below[z] * (1 - 2.0**-50)
        for y in range(size):
            if y == z or below[y] == 0:
                continue
            b = 0.0
            if above[y] >= _ROOT and below[z] >= _ROOT:
                b = min(above[y] * least / (top * max(below[y], _ROOT)), 1.0)
            a = fading[z, y]
            gain = spread[z, y] * (1 - b)
            most = max(most, gain / (a + b) if a + b > 0 else np.inf)
    return float(2 * np.log1p(most) * (1 + 2.0**-46) + 2.0**-48)


@compiled
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


@compiled
def _copy(given: Any, taken: Any) -> None:
    """`taken[:] = given`, which would compile sentences about shapes that do not fit as well."""
    for u in range(given.shape[0]):
        for w in range(given.shape[1]):
            taken[u, w] = given[u, w]


@compiled
def solve(
    above: Any,
    below: Any,
    limits: Any,
    group: Any,
    parent: Any,
    upper: Any,
    order: Any,
    values: Any,
    slope: Any,
    high: Any,
    low: Any,
) -> None:
    """Solve every pair of rows; `parent`, `upper` and `order` hold its tree, see `best_tree`."""
    count, size = above.shape
    numbers, places = np.empty((size + 9, size)), np.empty((6, size), dtype=np.int64)
    flags, flow = np.empty(size, dtype=np.bool_), np.empty(size)
    ratio, beside = np.empty((size, size)), 0
    for m in range(count):
        beside = beside + 1 if m > 0 and group[m - 1] == group[m] else 0
        if beside == 0:
            ratio[:] = np.exp(limits[group[m]])
        program = above[m], below[m], limits[group[m]], ratio
        room = flow, numbers, places, flags
        values[m] = best_tree(*program, parent, upper, order, m, beside, *room)
        for z in range(size):
            change = flow[z] if upper[m, z] else -flow[z]
            slope[m, z] = 0.0 if parent[m, z] == z else max(change, 0.0)
            high[m, z] = z if upper[m, z] else parent[m, z]
            low[m, z] = parent[m, z] if upper[m, z] else z


@compiled
def sweep(
    above: Any,
    below: Any,
    spans: Any,
    margins: Any,
    x: Any,
    y: Any,
    tells: Any,
    to_left: bool,
    any_start: bool,
    start: Any,
    known: int,
    begin: Any,
    steps: Any,
    levels: Any,
    possible: Any,
    first: Any,
    result: Any,
) -> None:
    """Sweep stretches of nodes, one after the other.

    `above` and `below` are (spans, phases, pairs, k). Stretch g begins at node begin[g] with the
    bounds start[g], which hold at the `known` nodes after it too, and takes steps[g] steps; node
    first[g] + j is written to result[g, j].
    `levels[g, j]` and `possible[g, j]` belong to the node after j steps.
    """
    count, phases, pairs, size = len(start), above.shape[1], above.shape[2], above.shape[3]
    widest = spans[-1]
    toward = 1 if to_left else -1
    numbers, places = np.empty((size + 9, size)), np.empty((6, size), dtype=np.int64)
    flags, flow = np.empty(size, dtype=np.bool_), np.empty(size)
    p, q = np.empty(size), np.empty(size)
    ring, now = np.empty((widest, size, size)), np.empty((size, size))
    closed, a, ratio = np.empty((size, size)), np.empty((size, size)), np.empty((size, size))
    parent = np.zeros((len(spans) * pairs, size), dtype=np.int64)
    upper = np.zeros((len(spans) * pairs, size), dtype=np.bool_)
    order = np.empty((len(spans) * pairs, size), dtype=np.int64)
    for g in range(count):
        order[:, 0] = -2
        for j in range(steps[g] + 1):
            node = begin[g] + toward * j
            if j <= known:
                _copy(start[g], now)
                _copy(start[g], ring[j % widest])
            else:
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
                    if size > 2 and not any_start:
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
                    if size > 2 and not any_start:
                        ratio[:] = np.exp(a)
                    if any_start:
                        for u in range(size):
                            for w in range(size):
                                a[u, w] = np.exp(-closed[u, w] / 2)
                                closed[u, w] = -np.expm1(-closed[u, w] / 2)
                    high, low = (np.exp(a[1, 0]), np.exp(-a[0, 1])) if size == 2 else (1.0, 1.0)
                    phase = (node - span - 1 if to_left else node - 1) % phases
                    for m in range(pairs):
                        if to_left and not (possible[g, j, x[m]] and possible[g, j, y[m]]):
                            continue
                        for z in range(size):
                            reached = not to_left or possible[g, j - span, z]
                            p[z] = above[s, phase, m, z] if reached else 0.0
                            q[z] = below[s, phase, m, z] if reached else 0.0
                        if any_start:
                            value = _weighted(p, q, a, closed)
                        elif size == 2:
                            value = _two(p, q, high, low)
                        else:
                            tree = parent, upper, order, s * pairs + m
                            room = flow, numbers, places, flags
                            value = best_tree(p, q, a, ratio, *tree, m, *room)
                        if not any_start and (large or value == np.inf):
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
                _copy(now, ring[j % widest])
            place = node - first[g]
            if 0 <= place < result.shape[1]:
                _copy(now, result[g, place])


@compiled
def sweep_two(
    p: Any,
    q: Any,
    toward: int,
    start: Any,
    begin: Any,
    steps: Any,
    levels: Any,
    first: Any,
    result: Any,
) -> None:
    """The same for two states whose steps are all likely, with ratios in place of logarithms.

    A step is t = (p0 + p1·w)/(q0 + q1·w) at the two ends of w = u(1)/u(0), and the bounds are the
    largest t and the inverse of the least. `start`, `levels` and `result` are exponentials.
    """
    up = 1 + 2.0**-48
    for g in range(len(start)):
        more, less = start[g, 0, 1], start[g, 1, 0]
        for j in range(steps[g] + 1):
            if j > 0:
                level = levels[g, j - 1] * up
                high, low = level * less, 1 / (level * more)
                one = (p[0] + p[1] * high) / (q[0] + q[1] * high)
                other = (p[0] + p[1] * low) / (q[0] + q[1] * low)
                more, less = max(one, other) * up, up / min(one, other)
            place = begin[g] + toward * j - first[g]
            if 0 <= place < result.shape[1]:
                result[g, place, 0, 0] = result[g, place, 1, 1] = 1.0
                result[g, place, 0, 1], result[g, place, 1, 0] = more, less
