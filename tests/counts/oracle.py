"""Independent computations that the tests compare with: the definitions, in exact fractions."""

from __future__ import annotations

from fractions import Fraction
from itertools import pairwise
from math import lcm

import numpy as np
from hypothesis import strategies as st

from quiltwork.counts.consumers.loss_functions import asymmetric, parse_loss, power


def geometric(n, alpha):
    """G by its definition: fold the two-sided geometric law at 0 and n."""
    density = (1 - alpha) / (1 + alpha)
    rows = []
    for i in range(n + 1):
        row = [density * alpha ** abs(i - r) for r in range(n + 1)]
        row[0] = alpha**i / (1 + alpha)
        row[n] = alpha ** (n - i) / (1 + alpha)
        rows.append(row)
    return rows


def footnote_4(alpha=Fraction(1, 2)):
    """A vertex at n = 2 that no remap of G gives, a remap of G that beats it, and what that makes.

    The two differ only at count 2, where the vertex prefers answer 0 to 2.
    """
    large, small = 1 / (1 + alpha), alpha / (1 + alpha)
    vertex = [[large, 0, small], [small, 0, large], [large, 0, small]]
    better = [[row[0], Fraction(0), row[1] + row[2]] for row in geometric(2, alpha)]
    return [[Fraction(entry) for entry in row] for row in vertex], (0, 2, 2), better


def weights_of(prior, alpha, r):
    """The posterior of one answer."""
    raw = [prior[i] * alpha ** abs(i - r) for i in range(len(prior))]
    return [w / sum(raw) for w in raw]


def whole_numbers(rows):
    """A matrix of fractions as integers over one denominator, which are quicker to add."""
    exact = [[Fraction(value) for value in row] for row in rows]
    below = lcm(*(value.denominator for row in exact for value in row))
    return np.array(
        [[v.numerator * (below // v.denominator) for v in row] for row in exact], dtype=object
    ), below


def bayes(matrix, prior, loss):
    """(mapping, loss after, loss at face value) by Bayes' rule over the whole matrix."""
    size = len(matrix)
    joint, one = whole_numbers([[p * g for g in row] for p, row in zip(prior, matrix, strict=True)])
    losses, unit = whole_numbers([[loss.exact(i, r) for r in range(size)] for i in range(size)])
    costs = joint.T @ losses  # of telling r after s
    mapping = tuple(min(range(size), key=lambda r: (row[r], r)) for row in costs)
    after, face = sum(min(row) for row in costs), sum(costs.diagonal())
    return mapping, Fraction(after, one * unit), Fraction(face, one * unit)


def is_private(matrix, alpha):
    return all(sum(row) == 1 and min(row) >= 0 for row in matrix) and all(
        alpha * a <= b and alpha * b <= a
        for above, below in pairwise(matrix)
        for a, b in zip(above, below, strict=True)
    )


NAMED = [
    parse_loss("absolute"),
    parse_loss("squared"),
    parse_loss("binary"),
    asymmetric(3, 1),
    asymmetric(1, 5),
    power(Fraction(3, 2)),
    power(Fraction(1, 2)),
    power(3),
    power(4),
    power(5),
]


@st.composite
def priors(draw, n, full_support=False):
    low = 1 if full_support else 0
    weights = draw(
        st.lists(st.integers(low, 9), min_size=n + 1, max_size=n + 1).filter(lambda w: sum(w) > 0)
    )
    return [Fraction(w, sum(weights)) for w in weights]


ALPHAS = st.fractions(Fraction(1, 50), Fraction(49, 50), max_denominator=50)


def whole_posteriors(post, by_error):
    """Every cost of every answer, from all counts, in logarithms: no cut, no block."""
    counts = np.arange(post.n + 1)
    with np.errstate(divide="ignore"):
        logs = np.log(post.prior) + post.scale - post.rate * np.abs(counts[:, None] - counts)
    weights = np.exp(logs - logs.max(axis=1, keepdims=True))
    losses = by_error[counts - counts[:, None] + post.n]
    return weights / weights.sum(axis=1, keepdims=True) @ losses


SHAPES = {
    "uniform": lambda rng, x: np.ones(len(x)),
    "rough": lambda rng, x: rng.dirichlet(np.full(len(x), 0.05)),
    "narrow": lambda rng, x: np.exp(-0.5 * ((x - 0.3 * len(x)) / 4) ** 2),
    "falling": lambda rng, x: np.exp(-0.4 * x),
    "few": lambda rng, x: np.where(rng.random(len(x)) < 4 / len(x), 1.0, 0.0) + (x == 5),
    "two lumps": lambda rng, x: np.where(x < 9, 1.0, 0.0) + 1e-3 * (x > len(x) - 5),
}


def logs_of(prior):
    """The logarithms of a prior's probabilities; impossible counts have −∞."""
    with np.errstate(divide="ignore"):
        return np.log(np.array(prior, dtype=float))
