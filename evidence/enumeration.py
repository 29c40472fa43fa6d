"""Everything by enumeration of paths: the independent computation behind the tests of influence.

Only for short series (k^T paths). Probabilities are those of the chain's own floats, added up
path by path; nothing here uses powers of the matrix, supports or quilts of the package.
"""

from __future__ import annotations

import itertools
import math
from collections import defaultdict
from collections.abc import Iterator

import numpy as np

from quiltwork.beliefs import MarkovChain


def paths(chain: MarkovChain, length: int, start=None) -> dict[tuple[int, ...], float]:
    """Every path of positive probability, with it."""
    law = chain.start if start is None else start
    found = {}
    for path in itertools.product(range(chain.size), repeat=length):
        p = float(law[path[0]])
        for x, y in itertools.pairwise(path):
            p *= float(chain.transition[x, y])
        if p > 0:
            found[path] = p
    return found


def conditional_laws(weighted, node: int, quilt) -> dict[int, dict[tuple[int, ...], float]]:
    """P(X_Q = · | X_node = x) for each possible x."""
    joint: dict[int, dict[tuple[int, ...], float]] = defaultdict(lambda: defaultdict(float))
    for path, p in weighted.items():
        joint[path[node - 1]][tuple(path[q - 1] for q in quilt)] += p
    return {x: {z: p / sum(law.values()) for z, p in law.items()} for x, law in joint.items()}


def influence(weighted, node: int, quilt) -> float:
    """Definition 2.2 over states of positive probability."""
    laws = conditional_laws(weighted, node, quilt)
    worst = 0.0
    for x, y in itertools.permutations(laws, 2):
        for z, p in laws[x].items():
            q = laws[y].get(z, 0.0)
            worst = max(worst, math.log(p / q) if q else math.inf)
    return worst


def separators(length: int, node: int) -> Iterator[tuple[tuple[int, ...], tuple[int, ...]]]:
    """Every set of nodes without `node`, with the nearby set it leaves around `node`."""
    others = [i for i in range(1, length + 1) if i != node]
    for size in range(length):
        for quilt in itertools.combinations(others, size):
            before = max((q for q in quilt if q < node), default=0)
            after = min((q for q in quilt if q > node), default=length + 1)
            yield quilt, tuple(range(before + 1, after))


def best_scale(weighted, length: int, node: int, epsilon: float, change=len) -> float:
    """The least change(N)/(ε − e(Q)) over all separators; 0 if X_node has one state."""
    if len({path[node - 1] for path in weighted}) == 1:
        return 0.0
    best = math.inf
    for quilt, nearby in separators(length, node):
        e = influence(weighted, node, quilt)
        if e < epsilon:
            best = min(best, change(nearby) / (epsilon - e))
    return best


def scale(weighted, length: int, epsilon: float, change=len, nodes=None) -> float:
    """Algorithm 1 over all separators."""
    wanted = range(1, length + 1) if nodes is None else nodes
    return max(best_scale(weighted, length, i, epsilon, change) for i in wanted)


def leakage(weighted, length: int, answer, sigma: float) -> float:
    """The largest log-likelihood ratio of answer + Laplace(σ) between two states of a node.

    With Laplace noise it is monotone between the possible answers and constant beyond them, so
    the possible answers are the only outputs to look at.
    """
    outputs = sorted({answer(path) for path in weighted})
    worst = 0.0
    for node in range(1, length + 1):
        laws: dict[int, dict[float, float]] = defaultdict(lambda: defaultdict(float))
        for path, p in weighted.items():
            laws[path[node - 1]][answer(path)] += p
        densities = [
            np.array(
                [sum(p * math.exp(-abs(w - f) / sigma) for f, p in law.items()) for w in outputs]
            )
            / sum(law.values())
            for law in laws.values()
        ]
        for one, other in itertools.permutations(densities, 2):
            worst = max(worst, float(np.log(one / other).max()))
    return worst
