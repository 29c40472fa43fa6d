"""The evolution of a chain: marginals by matrix–vector steps or squaring, and simulation.

Products are summed in the order of the inner index, so that their digits do not depend on the
machine's BLAS. They have the same digits as those of the kernel, which this room cannot import.
"""

from __future__ import annotations

import itertools
from bisect import bisect_right

import numpy as np

from quiltwork.beliefs.matrices import FloatArray, IntArray


def ordered_product(left: FloatArray, right: FloatArray) -> FloatArray:
    """Return left @ right, summed in the order of the inner index; each may be a vector.

    Cost: O(rows · inner · columns), in one NumPy call per value of the inner index.

    >>> ordered_product(np.array([0.5, 0.5]), np.array([[0.9, 0.1], [0.4, 0.6]]))
    array([0.65, 0.35])
    """
    result = np.zeros((*left.shape[:-1], *right.shape[1:]))
    for m in range(len(right)):
        result += np.multiply.outer(left[..., m], right[m])
    return result


def evolve(start: FloatArray, transition: FloatArray, steps: int) -> FloatArray:
    """Return start·P^steps. O(k²·steps) at first, then O(k³ log steps) by squaring.

    Stops as soon as a step changes nothing. Only non-negative numbers are added and multiplied,
    so small entries keep their relative accuracy until they underflow.
    """
    current = np.array(start)
    walked = min(steps, (16 + len(start) // 2) * steps.bit_length())
    for _ in range(walked):
        following = ordered_product(current, transition)
        following /= following.sum()
        if np.array_equal(following, current):
            return current
        current = following
    return _evolve_by_squaring(current, transition, steps - walked)


def _evolve_by_squaring(current: FloatArray, transition: FloatArray, steps: int) -> FloatArray:
    power = transition
    while steps:
        if steps & 1:
            current = ordered_product(current, power)
            current /= current.sum()
        steps >>= 1
        if steps:
            power = ordered_product(power, power)
            power /= power.sum(axis=1, keepdims=True)
    return current


def simulate(start: FloatArray, transition: FloatArray, length: int, seed: int | None) -> IntArray:
    """Return a random path of state indices by inversion, one bisection per step. O(T log k)."""
    return simulate_cycle(start, transition[np.newaxis], length, seed)


def simulate_cycle(
    start: FloatArray, matrices: FloatArray, length: int, seed: int | None
) -> IntArray:
    """Return a random path of a chain whose matrices repeat in turn."""
    uniforms = np.random.default_rng(seed).random(length).tolist()
    cycle = [[_thresholds(row) for row in matrix] for matrix in matrices]
    state = bisect_right(_thresholds(start), uniforms[0])
    path = [state]
    for uniform, rows in zip(uniforms[1:], itertools.cycle(cycle), strict=False):
        state = bisect_right(rows[state], uniform)
        path.append(state)
    return np.array(path, dtype=np.int64)


def _thresholds(distribution: FloatArray) -> list[float]:
    """Return cumulative sums, infinite from the last possible state on, so no 0 is ever drawn."""
    sums = np.cumsum(distribution)
    sums[np.flatnonzero(distribution)[-1] :] = np.inf
    return [float(total) for total in sums]
