"""Compiled loops: trees that keep all limits, to begin with; see `program.py`.

Arrays are changed in place. Imported only where Numba is installed; compiled once per machine, and
again when one of the files changes that are compiled together.
"""

from __future__ import annotations

from collections.abc import Callable
from hashlib import sha256
from pathlib import Path
from typing import Any, TypeVar, cast

import numba
import numpy as np

from quiltwork.influence.sweep.tolerances import FEASIBLE

_PASSES = 8
Loop = TypeVar("Loop", bound=Callable[..., Any])


def edition() -> str:
    """A digest of all that is compiled together: Numba looks at the file of a loop alone."""
    names = ("loops.py", "pivots.py", "starting_trees.py", "tolerances.py")
    files = b"".join(Path(__file__).with_name(name).read_bytes() for name in names)
    return sha256(files).hexdigest()[:16]


def compiled(loop: Loop) -> Loop:
    """Compile at the first call, and keep it for other processes where there is a place for it."""
    try:
        loop.__qualname__ = f"{loop.__name__}_{edition()}"  # which names the file it is kept in
        made: Any = numba.njit(cache=True, error_model="numpy")(loop)
    except (RuntimeError, OSError):  # no sources, or neither beside them nor at home may be written
        made = numba.njit(cache=False, error_model="numpy")(loop)
    return cast("Loop", made)


@compiled
def plant(above: Any, below: Any, a: Any, parent: Any, upper: Any, v: Any) -> None:
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
def ordered(a: Any, parent: Any, upper: Any, v: Any, order: Any) -> int:
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
def hang(a: Any, parent: Any, upper: Any, v: Any, inside: Any, node: int, down: bool) -> float:
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
def weigh(above: Any, below: Any, v: Any, p: Any, q: Any) -> tuple[float, float]:
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
def climb(above: Any, below: Any, a: Any, parent: Any, upper: Any, work: Any, order: Any) -> bool:
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
        top, bottom = weigh(above, below, v, p, q)
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
        weigh(above, below, v, p, q)
        gain = 0.0
        name = part[root]
        for z in range(size):
            inside[z] = 1.0 if part[z] == name else 0.0
            gain += (p[z] - q[z]) * inside[z]
        moved = hang(a, parent, upper, v, inside, root, gain < 0)
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
def keeps_limits(a: Any, parent: Any, upper: Any, v: Any, order: Any) -> bool:
    """Whether the log u of a tree keeps all limits."""
    size = len(parent)
    if ordered(a, parent, upper, v, order) < size:
        return False
    for z in range(size):
        high, crossed = v[z] - FEASIBLE, 0
        for y in range(size):  # counted, which is quicker than to stop at the first
            crossed += high - v[y] > a[z, y]
        if crossed > 0:
            return False
    return True
