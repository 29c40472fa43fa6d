from __future__ import annotations

from fractions import Fraction
from unittest.mock import patch

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from quiltwork.counts import Consumer, GeometricMechanism
from quiltwork.counts.consumers.losses import CallableLoss, ErrorLoss
from quiltwork.counts.remaps import remap, windows
from quiltwork.counts.remaps.filters import posteriors
from tests.counts.oracle import ALPHAS, bayes, geometric, priors


@settings(max_examples=12)
@given(st.integers(10, 25), st.integers(1, 6), st.sampled_from([Fraction(1, 2), Fraction(4, 5)]))
def test_cutting_costs_no_more_than_the_bound(n, reach, alpha):
    """The remap from cut posteriors against the best one, over the whole matrix in fractions."""
    prior = [Fraction(1 + (i * 7) % 5) for i in range(n + 1)]
    prior = [p / sum(prior) for p in prior]
    by_error = np.abs(np.arange(-n, n + 1, dtype=float)) ** 1.5
    post = posteriors(np.array(prior, dtype=float), alpha, 0)
    window = windows.Window(post, reach)
    chosen = windows.monotone_centres(post, 0, n, lambda r, c: window.cost(r, c, by_error))
    matrix = geometric(n, alpha)
    costs = [
        [
            float(
                sum(prior[i] * matrix[i][r] * Fraction(by_error[c - i + n]) for i in range(n + 1))
            )
            for c in range(n + 1)
        ]
        for r in range(n + 1)
    ]
    loss = sum(costs[r][chosen[r]] for r in range(n + 1))
    best = sum(min(row) for row in costs)
    assert loss - best <= windows.cut_cost(post, reach, by_error.max()) + 1e-12


LOSSES = [
    ErrorLoss(lambda e: min(abs(e), 3), "capped"),
    ErrorLoss(lambda e: 3 * e if e > 0 else e * e, "convex, lopsided"),
    ErrorLoss(lambda e: max(abs(e) - 2, 0) ** 2, "two for free"),
    ErrorLoss(lambda e: e % 3, "no order"),
    CallableLoss(lambda i, r: (7 * i + 3 * r) % 5, "no order at all"),
]


@pytest.mark.parametrize("loss", LOSSES, ids=lambda loss: loss.name)
@settings(max_examples=25, deadline=None)
@given(st.integers(2, 20).flatmap(priors), ALPHAS, st.integers(0, 6))
def test_the_stated_truncation_cost_covers_the_true_one(loss, prior, alpha, reach):
    """With windows far too short, for any prior, against Bayes' rule in fractions."""
    n = len(prior) - 1
    with (
        patch.object(remap, "LARGEST_WHOLE", 0),
        patch.object(remap, "_WHOLE_WORK", 10**9),
        patch.object(windows, "reach_for", lambda rate, n, spread: min(n, reach)),
        patch.object(windows, "reach_after", lambda post, reach, expected, largest: reach),
    ):
        found = GeometricMechanism(n, alpha=alpha).remap(Consumer(prior, loss))
    matrix = geometric(n, alpha)
    told = sum(
        prior[i] * matrix[i][r] * loss.exact(i, found.mapping[r])
        for i in range(n + 1)
        for r in range(n + 1)
    )
    _, best, _ = bayes(matrix, prior, loss)
    assert float(told - best) <= found.truncation_cost + 1e-13
    assert -1e-13 <= float(told) - found.expected_loss <= found.truncation_cost + 1e-13


def test_the_bound_is_the_probability_of_leaving_the_window():
    alpha, reach = Fraction(1, 2), 5
    tail = 1 - sum((1 - alpha) / (1 + alpha) * alpha ** abs(z) for z in range(-reach, reach + 1))
    post = posteriors(np.full(101, 1 / 101), alpha, 0)
    assert windows.cut_cost(post, reach, 7.0) == pytest.approx(7 * float(tail))
    assert windows.cut_cost(post, 100, 7.0) == 0


def test_a_window_as_wide_as_the_possible_counts_cuts_nothing():
    prior = np.zeros(101)
    prior[[40, 47]] = 0.5
    post = posteriors(prior, Fraction(1, 2), 0)
    assert windows.cut_cost(post, 7, 7.0) == 0 < windows.cut_cost(post, 6, 7.0)


def test_reach_grows_with_the_spread_of_the_loss_and_ends_at_n():
    assert windows.reach_for(0.5, 1000, 1e3) < windows.reach_for(0.5, 1000, 1e9) < 1000
    assert windows.reach_for(0.0, 1000, 1.0) == 1000


def test_scanning_finds_the_same_as_the_monotone_search():
    rng = np.random.default_rng(3)
    n = 700
    prior = rng.dirichlet(np.full(n + 1, 0.2))
    post = posteriors(prior, Fraction(9, 10), 0)
    window = windows.Window(post, 300)
    by_error = np.abs(np.arange(-n, n + 1, dtype=float)) ** 0.7

    class Loss:
        name = "power"

        def table(self, counts, answers):
            return by_error[answers - counts + n]

        def exact(self, count, answer):
            raise AssertionError

    scan = windows.scan_centres(window, Loss())
    chosen = windows.monotone_centres(post, 0, n, lambda r, c: window.cost(r, c, by_error))
    cost = window.cost(np.arange(n + 1), chosen, by_error)
    assert np.allclose(scan.cost, cost, rtol=1e-10)
    assert scan.largest_loss == pytest.approx(n**0.7)


def test_losses_of_any_spread_have_a_reach():
    """Spread enters by its logarithm: 300·ln 10 / 0.5 more steps for 1e300."""
    more = windows.reach_for(0.5, 5000, 1e300) - windows.reach_for(0.5, 5000, 1.0)
    assert more in (1381, 1382)
    assert windows.reach_for(0.5, 5000, float("inf")) == 5000
