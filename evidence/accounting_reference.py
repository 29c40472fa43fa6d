"""Small chains computed from their definition: all paths, all quilts, no shortcuts."""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterator
from fractions import Fraction

import numpy as np

Law = dict[tuple[int, ...], float]


def path_law(initial, transition, length: int) -> Law:
    """{path: probability} of all possible paths."""
    law = {}
    for path in itertools.product(range(len(transition)), repeat=length):
        p = initial[path[0]]
        for x, y in itertools.pairwise(path):
            p = p * transition[x][y]
        if p > 0:
            law[path] = p
    return law


def influence(law: Law, node: int, quilt) -> float:
    """e(X_Q | X_node) by Definition 2.2 over possible states; 0/0 is skipped, x/0 is infinite."""
    mass, joint = {}, {}
    for path, p in law.items():
        x, q = path[node - 1], tuple(path[j - 1] for j in quilt)
        mass[x] = mass.get(x, 0) + p
        joint[x, q] = joint.get((x, q), 0) + p
    values = {q for _, q in joint}
    worst = 0.0
    for q in values:
        conditional = [joint.get((x, q), 0) / mass[x] for x in mass]
        if max(conditional) > 0:
            if min(conditional) == 0:
                return math.inf
            worst = max(worst, math.log(max(conditional) / min(conditional)))
    return worst


def quilts(node: int, length: int) -> Iterator[tuple[tuple[int, ...], int, int]]:
    """All minimal quilts of a chain: (quilt, first nearby node, last nearby node). Lemma 2.5."""
    for left in [None, *range(1, node)]:
        for right in [None, *range(node + 1, length + 1)]:
            quilt = tuple(j for j in (left, right) if j is not None)
            yield quilt, (left or 0) + 1, (right or length + 1) - 1


def node_leakage(law: Law, length: int, node: int, spendings) -> float:
    """min over quilts of charge plus influence, for one node."""
    if len({path[node - 1] for path in law}) == 1:
        return 0.0
    return min(
        float(sum((s.cost(first, last) for s in spendings), Fraction(0)))
        + influence(law, node, quilt)
        for quilt, first, last in quilts(node, length)
    )


def total(law: Law, length: int, spendings, nodes=None) -> float:
    """The joint-quilt total over `nodes`, by brute force."""
    return max(node_leakage(law, length, i, spendings) for i in nodes or range(1, length + 1))


def chain_law(chain, length: int) -> Law:
    """The law of a chain with a given start."""
    return path_law(chain.start.tolist(), chain.transition.tolist(), length)


def random_chain(rng, size: int, shape: str) -> tuple[np.ndarray, np.ndarray]:
    """Integer weights with zeros, periodic, deterministic or absorbing."""
    rows = rng.integers(1, 9, (size, size))
    if shape == "sparse":
        rows = rows * (rng.random((size, size)) < 0.6)
    if shape == "periodic":
        rows = rows * (np.add.outer(np.arange(size), np.arange(size)) % 2 == 1)
    if shape == "deterministic":
        rows = np.eye(size, dtype=int)[rng.integers(0, size, size)]
    rows[rows.sum(axis=1) == 0, 0] = 1
    start = rng.integers(0 if shape == "sparse" else 1, 5, size)
    start[0] += start.sum() == 0
    return start / start.sum(), rows / rows.sum(axis=1, keepdims=True)


def exact_leakage(law: Law, length: int, releases, nodes=None) -> float:
    """The largest log-likelihood ratio of noisy counts about any node, over all answers.

    `releases` are (state, start, stop, scale): the count of a state with geometric (or Laplace)
    noise. Ratios are extreme on the grid of the counts.
    """
    counts = {
        path: tuple(sum(x == s for x in path[a - 1 : b]) for s, a, b, _ in releases) for path in law
    }
    grid = list(itertools.product(*(range(b - a + 2) for _, a, b, _ in releases)))
    scales = [float(scale) for *_, scale in releases]
    worst = 0.0
    for node in nodes or range(1, length + 1):
        densities = node_densities(law, counts, node, grid, scales)
        for p in densities:
            for q in densities:
                worst = max(worst, float(np.log(p / q).max()))
    return worst


def node_densities(law: Law, counts, node: int, grid, scales) -> list[np.ndarray]:
    """The density of the answers on the grid, up to a factor, given each state of a node."""
    found = {}
    points = np.array(grid, dtype=float).reshape(len(grid), len(scales))
    for path, p in law.items():
        away = np.abs(points - np.array(counts[path], dtype=float))
        density = float(p) * np.exp(-(away / np.array(scales)).sum(axis=1))
        mass, total = found.get(path[node - 1], (0.0, 0.0))
        found[path[node - 1]] = (mass + float(p), total + density)
    return [density / mass for mass, density in found.values()]
