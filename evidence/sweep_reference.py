"""The sweep, plainly: what leaks about a node through the releases themselves.

The recursion of docs/theory/sweep.md written down as it stands, with a general solver for every
step, every distance, node by node: slow, for comparing numbers. Nodes and states count from 0.
`levels` are three sequences, one number per node: what a node costs as the secret, and what it
adds when reached from the left or from the right (all the same for plain levels per point).
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from scipy.optimize import linprog

from evidence.sweep_program import Charges

Array = np.ndarray
IMPOSSIBLE = math.inf  # a state that cannot occur constrains nothing


@dataclass(frozen=True)
class Levels:
    own: tuple[float, ...]
    forward: tuple[float, ...]
    backward: tuple[float, ...]

    @classmethod
    def plain(cls, points: Sequence[float]) -> Levels:
        return cls(tuple(points), tuple(points), tuple(points))


def directional(charges: Charges) -> Levels:
    """Levels by direction for charges that cost less together.

    Walking right, node u pays its pair with u+1 and the windows that start at u: its pair with
    u−1 and the windows that reach it from the left are paid where the walk came from.
    """
    nodes = range(len(charges.points))
    pairs = (0.0, *charges.pairs, 0.0) if charges.pairs else (0.0,) * (len(nodes) + 1)
    starts = [sum(c for a, _, c in charges.windows if a == t) for t in nodes]
    ends = [sum(c for _, b, c in charges.windows if b == t) for t in nodes]
    return Levels(
        tuple(charges.cost([t]) for t in nodes),
        tuple(charges.points[t] + pairs[t + 1] + starts[t] for t in nodes),
        tuple(charges.points[t] + pairs[t] + ends[t] for t in nodes),
    )


@dataclass(frozen=True)
class Chain:
    """A start (None: any) and one matrix per step; `values` is what the data show of a state."""

    start: Array | None
    matrices: tuple[Array, ...]
    values: tuple[int, ...]

    @classmethod
    def of(cls, start, matrices: Sequence[Array], values: Sequence[int] | None = None) -> Chain:
        size = len(matrices[0]) if matrices else len(start)
        begin = None if start is None else np.asarray(start, dtype=float)
        return cls(begin, tuple(map(np.asarray, matrices)), tuple(values or range(size)))

    @property
    def length(self) -> int:
        return len(self.matrices) + 1

    @property
    def differ(self) -> Array:
        return np.not_equal.outer(self.values, self.values)

    def steps(self, t: int, u: int) -> Array:
        product = np.eye(len(self.values))
        for matrix in self.matrices[t:u]:
            product = product @ matrix
        return product

    def marginal(self, t: int) -> Array:
        start = np.ones(len(self.values)) if self.start is None else self.start
        return start @ self.steps(0, t)

    def possible(self, t: int) -> Array:
        return self.marginal(t) > 0

    def kernel(self, t: int, u: int) -> Array:
        """P(X_u = · | X_t = x), one row per x."""
        if t <= u:
            return self.steps(t, u)
        joint = (self.marginal(u)[:, None] * self.steps(u, t)).T
        return joint / np.maximum(joint.sum(axis=1, keepdims=True), 1e-300)


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


def charged(chain: Chain, levels: Levels) -> Array:
    """The pairs of states at which a node pays: those that the data tell apart.

    All of them where charges cost less together: a node that changes unseen would interrupt the
    run of changed nodes whose shared pairs and windows are paid only once.
    """
    plain = levels.own == levels.forward == levels.backward
    return chain.differ if plain else ~np.eye(len(chain.values), dtype=bool)


def one_way(
    chain: Chain, order: Sequence[int], levels: Sequence[float], differ: Array
) -> dict[int, Array]:
    """R_t for every t, where the nodes after t in `order` are those that may tell about it."""
    bounds: dict[int, Array] = {}
    for n in reversed(range(len(order))):
        t, further = order[n], order[n + 1 :]
        bound = np.full(differ.shape, cap([levels[u] for u in further]))
        gap = 0.0
        for u in further:
            apart = levels[u] * differ + bounds[u]
            bound = np.minimum(bound, gap + all_pairs(chain.kernel(t, u), apart, chain.possible(t)))
            gap += levels[u]
        bound[~chain.possible(t)] = bound[:, ~chain.possible(t)] = IMPOSSIBLE
        np.fill_diagonal(bound, 0.0)
        bounds[t] = bound
    return bounds


def cap(levels: Sequence[float]) -> float:
    """No h says more than all that was spent further on."""
    return float(sum(levels))


def contraction(
    chain: Chain, order: Sequence[int], levels: Sequence[float], differ: Array
) -> dict[int, Array]:
    """The same for any start, by tanh(L/4) = tanh(Δ/4)·tanh(α/4) with the projective diameter."""
    found: dict[int, float] = {}
    for n in reversed(range(len(order))):
        t, further = order[n], order[n + 1 :]
        options, gap = [cap([levels[u] for u in further])], 0.0
        for u in further:
            ratio = math.tanh(diameter(chain.steps(min(t, u), max(t, u))) / 4)
            options.append(gap + 4 * math.atanh(ratio * math.tanh((levels[u] + found[u]) / 4)))
            gap += levels[u]
        found[t] = min(options)
    return {t: np.where(np.eye(len(differ)), 0.0, bound) for t, bound in found.items()}


def diameter(matrix: Array, upper: Array | None = None) -> float:
    """Δ = max log P(x,z)P(x',z')/(P(x,z')P(x',z)), 0/0 skipped; or of all matrices of a box."""
    high = matrix if upper is None else upper
    worst = 0.0
    for x, y in itertools.permutations(range(len(matrix)), 2):
        for z, w in itertools.permutations(range(len(matrix)), 2):
            above, below = high[x, z] * high[y, w], matrix[x, w] * matrix[y, z]
            if above > 0:
                worst = max(worst, math.log(above / below) if below > 0 else math.inf)
    return worst


def leakage(chain: Chain, levels: Levels, episode: int = 1) -> Array:
    """What leaks about the block of `episode` nodes that starts at each node."""
    nodes, differ = range(chain.length), charged(chain, levels)
    right = one_way(chain, nodes, levels.forward, differ)
    backwards = contraction if chain.start is None else one_way
    left = backwards(chain, nodes[::-1], levels.backward, differ)
    starts = range(chain.length - episode + 1)
    return np.array([_of_block(chain, levels, left, right, i, i + episode - 1) for i in starts])


def _of_block(chain: Chain, levels: Levels, left, right, first: int, last: int) -> float:
    if all(
        len({chain.values[x] for x in np.flatnonzero(chain.possible(t))}) == 1
        for t in range(first, last + 1)
    ):
        return 0.0
    own = own_cost(levels, first, last)
    if first == last:
        pairs = chain.differ & np.outer(chain.possible(first), chain.possible(first))
        return own + float((left[first] + right[first])[pairs].max())
    inside = [np.outer(chain.possible(t), chain.possible(t)) for t in (first, last)]
    return own + float(left[first][inside[0]].max() + right[last][inside[1]].max())


def own_cost(levels: Levels, first: int, last: int) -> float:
    """What the block itself costs: its first node, and each further one reached from the left."""
    return levels.own[first] + sum(levels.forward[first + 1 : last + 1])


def box_leakage(lower: Array, upper: Array, levels: Levels) -> Array:
    """Every chain of a box, its matrix free at every step, any start: tanh in both directions."""
    ratio = math.tanh(diameter(lower, upper) / 4)
    return scalar_leakage([ratio] * (len(levels.own) - 1), levels)


def rows_known_leakage(matrices: Sequence[Array], levels: Levels) -> Array:
    """The same for one chain, against adversaries who know any of the other rows."""
    return scalar_leakage([math.tanh(diameter(matrix) / 4) for matrix in matrices], levels)


def scalar_leakage(ratios: Sequence[float], levels: Levels) -> Array:
    right = _scalar_way(ratios, levels.forward)
    left = _scalar_way(ratios[::-1], levels.backward[::-1])[::-1]
    return np.array(levels.own) + right + left


def _scalar_way(ratios: Sequence[float], levels: Sequence[float]) -> Array:
    bounds = [0.0]
    for t in reversed(range(len(ratios))):
        known = math.tanh((levels[t + 1] + bounds[0]) / 4)
        bounds.insert(0, 4 * math.atanh(ratios[t] * known))
    return np.array(bounds)


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
