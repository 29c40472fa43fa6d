"""The leakage of a mechanism by enumeration of all paths: nothing of the package's audit is used.

Answers, laws, noise and outputs are written out from their definitions, path by path. Only for
short series (k^T paths).
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Sequence
from fractions import Fraction
from typing import Any

import numpy as np
from numpy.typing import NDArray

from quiltwork.beliefs import CyclicChain, HiddenChain, MarkovChain

Paths = tuple[NDArray[np.int64], NDArray[np.float64]]


def all_paths(belief: MarkovChain | CyclicChain | HiddenChain, length: int) -> Paths:
    """Every path of positive probability, one per row, and its probability; what it shows."""
    chain = belief.inner if isinstance(belief, HiddenChain) else belief
    matrices = chain.matrices if isinstance(chain, CyclicChain) else [chain.transition]
    rows = np.array(list(itertools.product(range(chain.size), repeat=length)))
    weight = np.asarray(chain.start)[rows[:, 0]]
    for t in range(1, length):
        weight = weight * matrices[(t - 1) % len(matrices)][rows[:, t - 1], rows[:, t]]
    shown = np.asarray(belief.shown)[rows] if isinstance(belief, HiddenChain) else rows
    return shown[weight > 0], weight[weight > 0]


def answers(query, states, rows) -> NDArray[Any]:
    """The query's answer on every path, from what its name says: what noise is added to."""
    start, stop = query.window(rows.shape[1])
    part = rows[:, start - 1 : stop]
    k = len(states)
    if query.kind == "count":
        return (part == states.index(query.state)).sum(axis=1)[:, None]
    if query.kind in ("histogram", "frequencies", "most_common"):
        counts = np.stack([(part == s).sum(axis=1) for s in range(k)], axis=1)
        return counts / part.shape[1] if query.kind == "frequencies" else counts
    if query.kind in ("sum", "mean"):
        values = [Fraction(str(state)) for state in states]
        if query.bits:
            step = (query.hi - query.lo) / 2**query.bits
            values = [
                query.lo + step * math.floor((v - query.lo) / step + Fraction(1, 2)) for v in values
            ]
        below = math.lcm(*(v.denominator for v in values))
        totals = np.array([int(v * below) for v in values])[part].sum(axis=1)[:, None]
        return totals / (below * (part.shape[1] if query.kind == "mean" else 1))
    pairs = itertools.product(range(k), repeat=2)
    both = [(part[:, :-1] == a) & (part[:, 1:] == b) for a, b in pairs]
    return np.stack([found.sum(axis=1) for found in both], axis=1)


def laws_at(node: int, rows, weight, answer) -> dict[int, tuple[NDArray, NDArray]]:
    """The distinct answers and their probabilities given each possible state of a node."""
    found = {}
    for a in np.unique(rows[:, node - 1]):
        chosen = rows[:, node - 1] == a
        values, index = np.unique(answer[chosen], axis=0, return_inverse=True)
        mass = np.bincount(index.ravel(), weight[chosen])
        found[int(a)] = (values, mass / mass.sum())
    return found


def product_grid(answer: NDArray[Any]) -> NDArray[Any]:
    """Every combination of the values that the coordinates take."""
    columns = [np.unique(answer[:, j]) for j in range(answer.shape[1])]
    return np.array(list(itertools.product(*columns)))


def additive_leakage(paths: Paths, answer, scales: Sequence[float], nodes) -> float:
    """The largest log-likelihood ratio of answer + two-sided exponential noise."""
    rows, weight = paths
    outputs, sigma = product_grid(answer), np.asarray(scales, dtype=float)
    worst = 0.0
    for node in nodes:
        densities = []
        for values, mass in laws_at(node, rows, weight, answer).values():
            distance = np.abs(outputs[:, None, :] - values[None, :, :]) / sigma
            exponents = np.log(mass) - distance.sum(axis=2)
            top = exponents.max(axis=1, keepdims=True)
            densities.append(top[:, 0] + np.log(np.exp(exponents - top).sum(axis=1)))
        for one, other in itertools.permutations(densities, 2):
            worst = max(worst, float((one - other).max()))
    return worst


def choice_leakage(paths: Paths, counts, scale: float, nodes) -> float:
    """The largest log-likelihood ratio of the exponential mechanism on counts."""
    chosen = np.exp((counts - counts.max(axis=1, keepdims=True)) / scale)
    chosen /= chosen.sum(axis=1, keepdims=True)
    return table_leakage(paths, chosen, nodes)


def table_leakage(paths: Paths, chosen, nodes) -> float:
    """The largest log-likelihood ratio of a mechanism given by P(output | path), one row each."""
    rows, weight = paths
    worst = 0.0
    for node in nodes:
        laws = []
        for a in np.unique(rows[:, node - 1]):
            here = rows[:, node - 1] == a
            laws.append(weight[here] @ chosen[here] / weight[here].sum())
        for one, other in itertools.permutations(laws, 2):
            seen = one > 0
            if (other[seen] == 0).any():
                return math.inf
            worst = max(worst, float(np.log(one[seen] / other[seen]).max(initial=0.0)))
    return worst
