"""Algorithm 1 of the time-series paper as it is written: loops over nodes and quilts.

A second, plain implementation: the bench races it, the tests compare with it on series too long
for enumeration. Supremum over states of positive probability; powers by repeated multiplication.
"""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import NDArray

from quiltwork.beliefs import MarkovChain

Matrix = NDArray[np.float64]


def mqm_exact(chain: MarkovChain, length: int, epsilon: float) -> tuple[float, int]:
    """The scale and the worst node. O(T³·k³)."""
    transition = chain.transition
    powers = [np.eye(chain.size)]
    for _ in range(length):
        powers.append(powers[-1] @ transition)
    marginal = [chain.start]
    for _ in range(length):
        marginal.append(marginal[-1] @ transition)
    worst, node = 0.0, 1
    for i in range(1, length + 1):
        scale = _node_scale(powers, marginal, i, length, epsilon)
        if scale > worst:
            worst, node = scale, i
    return worst, node


def _node_scale(powers, marginal, i: int, length: int, epsilon: float) -> float:
    states = np.flatnonzero(marginal[i - 1] > 0)
    if len(states) == 1:
        return 0.0
    best = length / epsilon
    lefts = [(a, _left(powers, marginal, i, a, states)) for a in range(1, i)]
    rights = [(b, _right(powers, b, states)) for b in range(1, length - i + 1)]
    for a, left in lefts:
        best = min(best, _score(length - i + a, float(left.max()), epsilon))
        for b, right in rights:
            best = min(best, _score(a + b - 1, float((left + right).max()), epsilon))
    for b, right in rights:
        best = min(best, _score(i + b - 1, float(right.max()), epsilon))
    return best


def _score(nearby: int, influence: float, epsilon: float) -> float:
    return nearby / (epsilon - influence) if influence < epsilon else math.inf


def _right(powers, b: int, states) -> Matrix:
    rows = powers[b][states]
    return _log_ratios(rows)


def _left(powers, marginal, i: int, a: int, states) -> Matrix:
    """P(X_{i−a} = z | X_i = x) by Bayes' rule, row by row."""
    before = marginal[i - a - 1]
    rows = (before[:, None] * powers[a][:, states]).T / marginal[i - 1][states, None]
    return _log_ratios(rows)


def _log_ratios(rows) -> Matrix:
    size = len(rows)
    result = np.zeros((size, size))
    for x in range(size):
        for y in range(size):
            if x != y:
                seen = rows[x] > 0
                with np.errstate(divide="ignore"):
                    result[x, y] = np.log(rows[x][seen] / rows[y][seen]).max()
    return result
