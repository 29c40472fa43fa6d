"""Exact leakage with Gaussian noise, by summing over all paths and by quadrature."""

from __future__ import annotations

import itertools
import math

import numpy as np
import pytest
from scipy.special import ndtr

import quiltwork as qw
from quiltwork import queries
from quiltwork.errors import InvalidInputError, UnsupportedError

P = [[0.9, 0.1], [0.4, 0.6]]


def mixtures(chain, length, node):
    """The law of the count of state 1 given each state of a node, path by path."""
    law = np.zeros((chain.size, length + 1))
    for path in itertools.product(range(chain.size), repeat=length):
        chance = chain.stationary[path[0]]
        for a, b in itertools.pairwise(path):
            chance *= chain.transition[a, b]
        law[path[node - 1], path.count(1)] += chance
    return law / law.sum(axis=1, keepdims=True)


def told(one, other, sigma, epsilon):
    """Σ (P − e^ε Q)₊ over narrow cells: a little below the truth."""
    edges = np.linspace(-9 * sigma, len(one) + 9 * sigma, 60_001)
    cells = np.diff(ndtr((edges[None] - np.arange(len(one))[:, None]) / sigma), axis=1)
    return float(np.maximum((one - math.exp(epsilon) * other) @ cells, 0).sum())


@pytest.mark.parametrize(
    ("rows", "length", "sigma", "delta"),
    [
        (P, 6, 2.5, 1e-3),
        ([[0.1, 0.9], [0.8, 0.2]], 6, 1.5, 1e-4),
        ([[0.5, 0.4, 0.1], [0.1, 0.6, 0.3], [0.6, 0.1, 0.3]], 5, 1.0, 1e-3),
    ],
)
def test_it_is_the_least_epsilon_that_keeps_delta(rows, length, sigma, delta):
    chain = qw.MarkovChain(rows)
    found = qw.audit.leakage(
        chain, length, [(queries.count(1), sigma)], noise="gaussian", delta=delta
    )
    worst = dict.fromkeys((found, 0.95 * found), 0.0)
    for node in range(1, length + 1):
        laws = mixtures(chain, length, node)
        for one, other in itertools.permutations(laws, 2):
            for epsilon in worst:
                worst[epsilon] = max(worst[epsilon], told(one, other, sigma, epsilon))
    assert found > 0.1
    assert worst[found] == pytest.approx(delta, rel=1e-3)
    assert worst[0.95 * found] > delta


@pytest.mark.parametrize(("delta", "sigma"), [(1e-6, 11.29), (1e-9, 16.29)])
def test_the_example_needs_what_the_theory_page_says(delta, sigma):
    chain = qw.MarkovChain(P)
    found = qw.audit.leakage(chain, 100, [(queries.count(1), sigma)], noise="gaussian", delta=delta)
    assert found == pytest.approx(1, rel=1e-3)
    claimed = qw.calibrate(chain, 100, 1, noise="gaussian", delta=delta).scale
    assert sigma < claimed < 1.3 * sigma


def test_a_stretch_leaks_more_and_less_noise_leaks_more():
    chain, asked = qw.MarkovChain(P), {"noise": "gaussian", "delta": 1e-4}
    one, stretch = (
        qw.audit.leakage(chain, 8, [(queries.count(1), 3)], **asked, episode=w) for w in (1, 3)
    )
    louder = qw.audit.leakage(chain, 8, [(queries.count(1), 2)], **asked)
    assert 0 < one < min(stretch, louder)


@pytest.mark.parametrize(
    ("releases", "given", "error", "said"),
    [
        ([(queries.count(1), 3)], {"noise": "gaussian"}, InvalidInputError, "delta"),
        ([(queries.count(1), 3)], {"delta": 1e-6}, InvalidInputError, "is for noise"),
        (
            [(queries.histogram(), 3)],
            {"noise": "gaussian", "delta": 1e-6},
            UnsupportedError,
            "for one number",
        ),
    ],
)
def test_what_it_does_not_answer_gets_a_sentence(releases, given, error, said):
    with pytest.raises(error, match=said):
        qw.audit.leakage(qw.MarkovChain(P), 5, releases, **given)
