"""The sweep on trees, plainly: what leaks about a node through the releases themselves.

The package has no sweep for trees yet. This is the recursion of docs/theory/sweep.md from the
leaves, with a general solver for every step. Nodes and states count from 0; levels are one number
per node.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Sequence

import numpy as np
from scipy.optimize import linprog

Array = np.ndarray
IMPOSSIBLE = math.inf  # a state that cannot occur constrains nothing


def reach(p: Array, q: Array, apart: Array) -> float:
    """L(p, q; A) = max log p·u/q·u with u(z) ≤ e^A[z,z']·u(z'), by a linear program."""
    rows = []
    for z, y in itertools.permutations(range(len(p)), 2):
        if math.isfinite(apart[z, y]):
            rows.append(np.zeros(len(p)))
            rows[-1][[z, y]] = math.exp(-apart[z, y]), -1.0
    above = np.array(rows).reshape(-1, len(p))
    found = linprog(-p, A_ub=above, b_ub=np.zeros(len(rows)), A_eq=[q], b_eq=[1.0])
    assert found.status in (0, 3), found.message
    return math.log(max(-found.fun, 1.0)) if found.status == 0 else math.inf


def all_pairs(kernel: Array, apart: Array, possible: Array) -> Array:
    bound = np.full(apart.shape, IMPOSSIBLE)
    np.fill_diagonal(bound, 0.0)
    for x, y in itertools.permutations(np.flatnonzero(possible), 2):
        same = np.array_equal(kernel[x], kernel[y])
        bound[x, y] = 0.0 if same else reach(kernel[x], kernel[y], apart)
    return bound


def tree_leakage(law: Array, edges: Sequence[tuple[int, int]], levels: Sequence[float]) -> Array:
    """On a tree: from the leaves, where what the branches say adds up."""
    near = {v: [b if a == v else a for a, b in edges if v in (a, b)] for v in range(law.ndim)}

    def pair(v: int, w: int) -> Array:
        table = law.sum(axis=tuple(t for t in range(law.ndim) if t not in (v, w)))
        return table if v < w else table.T

    def branch(v: int, w: int) -> Array:
        """What w and the nodes beyond it say about v."""
        apart = levels[w] * (1 - np.eye(law.shape[w]))
        for further in near[w]:
            if further != v:
                apart = apart + branch(w, further)
        joint = pair(v, w)
        masses = joint.sum(axis=1)
        kernel = joint / np.maximum(masses, 1e-300)[:, None]
        n = max(joint.shape)
        wide, tied = np.zeros((n, n)), np.full((n, n), IMPOSSIBLE)
        wide[: joint.shape[0], : joint.shape[1]] = kernel
        tied[: joint.shape[1], : joint.shape[1]] = apart
        found = all_pairs(wide, tied, np.append(masses > 0, np.zeros(n - len(masses), bool)))
        return found[: joint.shape[0], : joint.shape[0]]

    def node(v: int) -> float:
        mass = law.sum(axis=tuple(t for t in range(law.ndim) if t != v))
        possible = np.flatnonzero(mass)
        total = sum((branch(v, w) for w in near[v]), np.zeros((law.shape[v],) * 2))
        pairs = itertools.permutations(possible, 2)
        return max((levels[v] + float(total[x, y]) for x, y in pairs), default=0.0)

    return np.array([node(v) for v in range(law.ndim)])
