"""Exact leakage with Gaussian noise, by summing over all paths and by quadrature."""

from __future__ import annotations

import itertools
import math

import numpy as np
import pytest
from scipy.integrate import quad
from scipy.special import ndtr

import quiltwork as qw
from quiltwork import queries
from quiltwork.audit.gaussian_leakage import excess
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


def excess_by_cells(p, q, sigma, epsilon):
    """Σ (P − e^ε Q)₊ over narrow cells: a little below the truth."""
    edges = np.linspace(-9 * sigma, len(p) + 9 * sigma, 60_001)
    z = (edges[None] - np.arange(len(p))[:, None]) / sigma
    # Differences of the smaller tail, since those of values close to 1 are rounding errors.
    cells = np.where(z[:, :-1] > 0, -np.diff(ndtr(-z)), np.diff(ndtr(z)))
    return float(np.maximum((p - math.exp(epsilon) * q) @ cells, 0).sum())


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
                worst[epsilon] = max(worst[epsilon], excess_by_cells(one, other, sigma, epsilon))
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


@pytest.mark.parametrize("gap", [1e-2, 1e-3, 1e-4, 1e-6, 1e-8])
@pytest.mark.parametrize("sigma", [0.4, 0.5, 0.77])
@pytest.mark.parametrize("lead", [0, 7])
def test_an_excess_between_two_close_roots_is_not_missed(gap, sigma, lead):
    """P is 1, Q is 0 or 2: over P's bell the integrand is 1 − e^{ε − 1/2σ²}·cosh(t)."""
    p, q = np.zeros(lead + 3), np.zeros(lead + 3)
    p[lead + 1], q[lead], q[lead + 2] = 1, 0.5, 0.5
    epsilon = 1 / (2 * sigma**2) + math.log1p(-gap)
    root = sigma**2 * math.acosh(1 / (1 - gap))

    def density(y):
        bell = math.exp(-((y / sigma) ** 2) / 2) / sigma / math.sqrt(2 * math.pi)
        # 1 − (1 − gap)·cosh(t), without cancellation.
        return bell * (gap - (1 - gap) * 2 * math.sinh(y / sigma**2 / 2) ** 2)

    true, error = quad(density, -root, root, epsabs=0, epsrel=1e-12)
    assert error < 1e-11 * true
    found = excess(p, q, sigma, epsilon)
    assert true <= found <= true * (1 + 1e-6) + 2.0**-44


def test_an_excess_lost_between_two_close_roots_is_not_missed():
    """The other way around: Q's bell is a dip in P, which lifts the excess above 1 − e^ε·Q."""
    sigma, gap = 0.5, 1e-4
    p, q = np.array([0.5, 0.0, 0.5]), np.array([0.0, 1.0, 0.0])
    # The weights of a law need not be one: P stands for what is left of it at ε = 0.
    p *= math.exp(1 / (2 * sigma**2)) * (1 - gap)
    root = sigma**2 * math.acosh(1 / (1 - gap))

    def dip(y):
        bell = math.exp(-((y / sigma) ** 2) / 2) / sigma / math.sqrt(2 * math.pi)
        return bell * (gap - (1 - gap) * 2 * math.sinh(y / sigma**2 / 2) ** 2)

    true = p.sum() - 1 + quad(dip, -root, root, epsabs=0, epsrel=1e-12)[0]
    assert true <= excess(p, q, sigma, 0) <= true + 1e-12


def test_a_root_on_a_point_of_the_grid_counts():
    """The weights are odd about the middle, which is a root whatever the noise."""
    p, q = np.array([0.4, 0.1, 0.3, 0.2]), np.array([0.2, 0.3, 0.1, 0.4])
    for sigma in np.linspace(0.2, 3, 40).tolist():
        below = excess_by_cells(p, q, sigma, 0)
        assert below - 1e-13 <= excess(p, q, sigma, 0) <= below + 1e-7


def test_random_mixtures_are_never_below_a_fine_integral():
    rng = np.random.default_rng(7)
    for _ in range(60):
        size = int(rng.integers(3, 12))
        p, q = rng.dirichlet(np.full(size, 0.3), 2)
        sigma, epsilon = float(np.exp(rng.uniform(-1, 1.5))), float(rng.uniform(0, 4))
        below = excess_by_cells(p, q, sigma, epsilon)
        assert below - 1e-13 <= excess(p, q, sigma, epsilon) <= below + 1e-6


@pytest.mark.parametrize("sigma", [2.0, 10.0])
def test_laws_on_even_and_odd_values_that_noise_makes_alike_need_no_refining(sigma):
    """Every sign of the weights changes, and the mixtures are equal but at their ends."""
    size = 40
    p, q = (np.where(np.arange(size) % 2 == odd, 2 / size, 0.0) for odd in (0, 1))
    below = excess_by_cells(p, q, sigma, 0)
    assert below - 1e-13 <= excess(p, q, sigma, 0) <= below + 1e-7
