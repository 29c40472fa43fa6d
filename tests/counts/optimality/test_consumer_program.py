from __future__ import annotations

from fractions import Fraction
from itertools import product

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.optimize import linprog

from evidence.checks import universal_optimality
from quiltwork.counts import Consumer, GeometricMechanism, optimal_mechanism
from quiltwork.counts.optimality.consumer_program import lagrange_bound, solve
from quiltwork.counts.optimality.exact_matrix import expected_loss
from quiltwork.errors import InvalidInputError, NotPrivateError, UnsupportedError
from tests.counts import oracle
from tests.counts.oracle import ALPHAS, is_private, priors


@pytest.mark.parametrize("seed", range(12))
def test_no_private_mechanism_beats_the_remapped_geometric_one(seed):
    """Theorem 3.1 on a sample; `make evidence` runs 12,000 consumers."""
    rng = np.random.default_rng(seed)
    for loss_of in (universal_optimality.monotone_loss, universal_optimality.crossing_loss):
        consumer, n, alpha = universal_optimality.random_consumer(rng, loss_of)
        assert universal_optimality.distance(consumer, n, alpha) <= Fraction(1, 10**9)


def test_the_check_would_notice_a_worse_mechanism():
    """The same comparison with a mechanism 5 % more private than allowed must fail."""
    rng = np.random.default_rng(1)
    noticed = 0
    for _ in range(8):
        consumer, n, alpha = universal_optimality.random_consumer(
            rng, universal_optimality.monotone_loss
        )
        best = optimal_mechanism(consumer, n, alpha).certificate
        worse = GeometricMechanism(n, alpha=min(Fraction(1), alpha * Fraction(21, 20)))
        noticed += worse.remap(consumer).expected_loss - float(best.lower_bound) > 1e-9
    assert noticed >= 4


def plain_program(costs, alpha):
    """The optimal value from SciPy alone, constraints written out row by row."""
    size = len(costs)
    rows = []
    for i in range(size - 1):
        for r in range(size):
            for a, b in ((i, i + 1), (i + 1, i)):
                row = np.zeros((size, size))
                row[a, r], row[b, r] = alpha, -1
                rows.append(row.ravel())
    sums = np.kron(np.eye(size), np.ones((1, size)))
    return linprog(
        np.ravel(costs), A_ub=rows, b_ub=np.zeros(len(rows)), A_eq=sums, b_eq=np.ones(size)
    ).fun


NOT_MONOTONE = [
    lambda i, r: (7 * i + 3 * r) % 5,
    lambda i, r: abs(i - r) if i % 2 else abs((4 - i) - r),
    lambda i, r: int(r in (i, (i + 2) % 5)) * 2,
]


@pytest.mark.parametrize("loss", NOT_MONOTONE)
@settings(max_examples=8)
@given(priors(4), ALPHAS)
def test_losses_without_order_get_their_own_mechanism(loss, prior, alpha):
    best = optimal_mechanism(Consumer(prior, loss), 4, alpha)
    assert not best.universality.proven
    assert is_private(best.exact, alpha)
    assert oracle.is_private(best.exact, alpha)
    costs = [[float(prior[i]) * loss(i, r) for r in range(5)] for i in range(5)]
    assert best.expected_loss == pytest.approx(plain_program(costs, float(alpha)), abs=1e-7)
    assert 0 <= best.certificate.gap <= Fraction(1, 10**8)


def test_the_program_can_be_better_than_any_remap():
    """For a loss without order, remaps of the geometric mechanism are not enough."""
    user = Consumer("uniform", lambda i, r: int((i % 2) != (r % 2)))
    best = optimal_mechanism(user, 4, 0.5)
    remap = GeometricMechanism(4, alpha=0.5).remap(user)
    assert remap.universality.condition == "fails"
    assert best.expected_loss < remap.expected_loss * 0.95


NEAR_1 = [1 - Fraction(1, 10**digits) for digits in (6, 9, 12, 15, 18)]


@pytest.mark.parametrize("alpha", NEAR_1)
@pytest.mark.parametrize("loss", oracle.NAMED[:6], ids=lambda loss: loss.name)
def test_near_alpha_1_the_exact_remap_is_returned(alpha, loss):
    """Every deterministic reading of G, in fractions: none is better, and no noise is mixed in."""
    prior = [Fraction(w, 10) for w in (1, 4, 3, 2)]
    best = optimal_mechanism(Consumer(prior, loss), 3, alpha)
    g = oracle.geometric(3, alpha)
    weighed = [[prior[i] * g[i][s] for i in range(4)] for s in range(4)]
    least = min(
        sum(weighed[s][i] * loss.exact(i, reading[s]) for s in range(4) for i in range(4))
        for reading in product(range(4), repeat=4)
    )
    assert best.certificate.expected_loss == least
    assert best.certificate.mixed == 0
    assert oracle.is_private(best.exact, alpha)
    assert np.allclose(best.matrix, np.array(best.exact, dtype=float), rtol=1e-14, atol=0)


@settings(max_examples=15)
@given(
    st.integers(1, 5).flatmap(priors),
    ALPHAS | st.sampled_from([*NEAR_1, Fraction(1), Fraction(1, 10**200), Fraction(1, 10**400)]),
)
def test_floats_of_the_matrix_are_private_as_they_stand(prior, alpha):
    best = optimal_mechanism(Consumer(prior), len(prior) - 1, alpha)
    for a, b in zip(best.matrix[:-1].ravel(), best.matrix[1:].ravel(), strict=True):
        assert alpha * Fraction(a) <= Fraction(b)
        assert alpha * Fraction(b) <= Fraction(a)
    assert np.allclose(best.matrix, np.array(best.exact, dtype=float), rtol=1e-14, atol=1e-320)
    assert best.certificate.expected_loss == expected_loss(
        best.exact,
        [[prior[i] * abs(i - r) for r in range(len(prior))] for i in range(len(prior))],
    )


@settings(max_examples=20)
@given(st.integers(1, 4).flatmap(priors), ALPHAS, st.data())
def test_the_bound_holds_for_any_multipliers(prior, alpha, data):
    """Lagrange's bound with arbitrary prices is below the geometric mechanism's own loss."""
    n = len(prior) - 1
    costs = [[prior[i] * abs(i - r) for r in range(n + 1)] for i in range(n + 1)]
    _, prices = solve(costs, alpha)
    steps = st.lists(st.integers(-20, 20), min_size=n + 1, max_size=n + 1)
    wild = [
        [max(Fraction(0), p + Fraction(d, 10)) for p, d in zip(row, data.draw(steps), strict=True)]
        for row in prices
    ]
    _, best, _ = oracle.bayes(oracle.geometric(n, alpha), prior, Consumer(prior).loss)
    assert lagrange_bound(costs, wild, alpha) <= best


@pytest.mark.parametrize("alpha", [0, 1])
def test_the_ends_of_the_scale(alpha):
    best = optimal_mechanism(Consumer([0.5, 0.2, 0.3]), 2, alpha)
    assert best.expected_loss == pytest.approx(0 if alpha == 0 else 0.8, abs=1e-9)
    if alpha == 0:
        with pytest.raises(NotPrivateError):
            best.release(1)


def test_answers_are_drawn_from_the_exact_mechanism():
    best = optimal_mechanism(Consumer("uniform", "binary"), 3, 0.5)
    drawn = np.bincount([best.release(1) for _ in range(8000)], minlength=4) / 8000
    assert np.allclose(drawn, best.matrix[1], atol=0.04)  # more than 7 standard deviations
    with pytest.raises(InvalidInputError, match=r"0\.\.3"):
        best.release(4)


def test_large_programs_point_to_remaps():
    with pytest.raises(UnsupportedError, match="remap"):
        optimal_mechanism(Consumer("uniform"), 500, 0.5)
