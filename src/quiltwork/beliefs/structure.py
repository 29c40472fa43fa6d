"""The structure of a chain's transition graph: supports, communicating classes, periods.

All computations are boolean, so no probability is too small to matter. Boolean matrix products run
as float32 products (exact for k < 2²⁴), O(k³) each.
"""

from __future__ import annotations

import numpy as np

from quiltwork.beliefs.matrices import BoolArray, IntArray


def boolean_product(left: BoolArray, right: BoolArray) -> BoolArray:
    """Return which entries of the product of two non-negative matrices are positive. O(k³)."""
    product: BoolArray = (left.astype(np.float32) @ right.astype(np.float32)) > 0
    return product


def boolean_power(step: BoolArray, exponent: int) -> BoolArray:
    """Return the support of the `exponent`-th power (0: the identity). O(k³ log exponent)."""
    result = np.eye(len(step), dtype=np.bool_)
    square = step
    while exponent:
        if exponent & 1:
            result = boolean_product(result, square)
        exponent >>= 1
        if exponent:
            square = boolean_product(square, square)
    return result


def reach_in_steps(start: BoolArray, step: BoolArray, steps: int) -> BoolArray:
    """Return the states possible after exactly `steps` steps from a state in `start`.

    O(min(k²·steps, k³ log steps)); stops as soon as the set repeats itself.
    """
    current = start
    walked = min(steps, len(step) * max(1, steps.bit_length()))
    for _ in range(walked):
        following = _step(current, step)
        if np.array_equal(following, current):
            return current
        current = following
    if walked == steps:
        return current
    return _step(current, boolean_power(step, steps - walked))


def _step(current: BoolArray, step: BoolArray) -> BoolArray:
    return np.asarray(step[current].any(axis=0))


def reachability(step: BoolArray) -> BoolArray:
    """Return which states can follow which after any number of steps, 0 included. O(k³ log k)."""
    reach = step | np.eye(len(step), dtype=np.bool_)
    if reach.all():
        return reach
    while True:
        further = boolean_product(reach, reach)
        if np.array_equal(further, reach):
            return reach
        reach = further


def recurrent_classes(step: BoolArray) -> tuple[IntArray, ...]:
    """Return the closed communicating classes, each as sorted state indices. O(k³ log k)."""
    reach = reachability(step)
    mutual = reach & reach.T
    recurrent = (reach == mutual).all(axis=1)
    first = mutual.argmax(axis=1)
    return tuple(
        np.flatnonzero(mutual[x]).astype(np.int64)
        for x in np.flatnonzero(recurrent & (first == np.arange(len(step))))
    )


def class_period(step: BoolArray) -> int:
    """Return the period of an irreducible chain: the gcd of its cycle lengths. O(k²).

    By breadth-first levels: an edge from x to y closes a walk whose length is a multiple of the
    period away from level(x) + 1 − level(y), and these differences generate it.
    """
    level = np.full(len(step), -1, dtype=np.int64)
    level[0] = 0
    frontier = np.array([0])
    while len(frontier):
        fresh = step[frontier].any(axis=0) & (level < 0)
        level[fresh] = level[frontier[0]] + 1
        frontier = np.flatnonzero(fresh)
    source, target = np.nonzero(step)
    return int(np.gcd.reduce(np.abs(level[source] + 1 - level[target])))
