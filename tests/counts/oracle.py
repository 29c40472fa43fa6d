"""Independent computations that the tests compare with: the definitions, in exact fractions."""

from __future__ import annotations

from fractions import Fraction
from itertools import pairwise
from math import lcm

import numpy as np
import pytest
from hypothesis import strategies as st

from quiltwork.counts import Consumer, GeometricMechanism
from quiltwork.counts.consumers.losses import asymmetric, power, read_loss
from quiltwork.counts.remaps.filters import posteriors


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
    read_loss("absolute"),
    read_loss("squared"),
    read_loss("binary"),
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
        logs = np.log(post.prior) - post.rate * np.abs(counts[:, None] - counts)
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


@st.composite
def power_cases(draw, exponents):
    """A prior over few counts, a level, and the exponent of a power loss."""
    n = draw(st.integers(1, 22))
    return draw(priors(n)), draw(ALPHAS), draw(exponents)


def check_power_remap(case):
    """The remap under a power loss is Bayes' rule in fractions, and its excess is stated."""
    prior, alpha, exponent = case
    n, loss = len(prior) - 1, power(exponent)
    found = GeometricMechanism(n, alpha=alpha).remap(Consumer(prior, loss))
    mapping, after, face = bayes(geometric(n, alpha), prior, loss)
    assert found.mapping == mapping
    assert found.expected_loss == pytest.approx(float(after), rel=1e-12)
    assert found.face_value_loss == pytest.approx(float(face), rel=1e-12)
    assert found.truncation_cost == pytest.approx(2e-12 * float(after), rel=0.05, abs=1e-300)


def shaped_posteriors(shape, n, alpha):
    """The posteriors of a prior of some shape."""
    prior = SHAPES[shape](np.random.default_rng(n), np.arange(n + 1))
    return posteriors(prior / prior.sum(), alpha, 0)


def check_power_centres(found, post, exponent):
    """Chosen answers cost no more than the best of whole posteriors and the proven excess."""
    n = len(post.answers) - 1
    x = np.arange(n + 1)
    costs = whole_posteriors(post, np.abs(np.arange(-n, n + 1.0)) ** float(exponent))
    least = costs.min(axis=1)
    rounding = 1e-11  # of the logarithms that both computations take
    assert 2e-12 < found.excess < 3e-12
    assert (costs[x, found.answers] <= least * (1 + found.excess + rounding) + 1e-280).all()
    assert found.cost == pytest.approx(costs[x, found.answers], rel=rounding, abs=1e-280)
    assert found.face_cost == pytest.approx(np.diagonal(costs), rel=rounding, abs=1e-280)
    alone = (costs <= least[:, None] * (1 + 1e-9)).sum(axis=1) == 1
    assert (found.answers[alone] == np.argmin(costs, axis=1)[alone]).all()
