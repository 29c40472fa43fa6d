"""Accounts of numbers: stretches move others farther than a single number does."""

from __future__ import annotations

import pytest

import quiltwork as qw
from quiltwork.budget import Accountant, Spending
from quiltwork.errors import InvalidInputError, UnsupportedError
from quiltwork.queries import sum as total


def test_an_account_of_stretches_costs_what_a_calibration_says():
    belief, query = qw.GaussianSeries(ar=[1.5, -0.7], within=1), total(-50, 50).on(3, 3)
    released = qw.release([0.0] * 5, query, belief, epsilon=1)
    account = Accountant(belief, 5, episode=2)
    account.add(released)
    needed = qw.calibrate(belief, 5, 1, query=query, episode=2).scale
    assert account.epsilon() == pytest.approx(needed / released.scale, rel=1e-6)
    assert account.epsilon() > 2  # (x, y) to (x - 1, y + 1) moves the third number by 2.2


@pytest.mark.parametrize(
    ("belief", "length", "query"),
    [
        (qw.GaussianSeries(ar=[0.8], within=1), 10, total(0, 4).on(3, 3)),
        (qw.GaussianSeries(ar=[0.8], within=1), 10, total(0, 100)),
        (qw.GaussianRows([[1, 0.5], [0.5, 1]], families=2, within=1), None, total(0, 10)),
    ],
)
def test_small_hidden_differences_still_need_noise(belief, length, query):
    found = Accountant(belief, length, budget=1).smallest_scale(query) * float(query.span)
    assert found == pytest.approx(qw.calibrate(belief, length, 1, query=query).scale, rel=1e-6)


def test_the_order_of_debits_does_not_decide_what_they_cost():
    account = Accountant(qw.GaussianSeries(ar=[0.8]), 100)
    account.add(Spending(1, 100, 0.001, span=1))
    account.add(Spending(1, 100, span=5))  # tells nothing
    account.add(Spending(1, 100, 0.001, span=1))
    together = Accountant(qw.GaussianSeries(ar=[0.8]), 100)
    together.add_all([Spending(1, 100, 0.001, span=1), Spending(1, 100, 0.001, span=1)])
    assert account.exact_epsilon == together.exact_epsilon
    with pytest.raises(InvalidInputError, match="range"):
        together.add_all([Spending(1, 100, 0.001, span=1), Spending(1, 100, 0.001, span=1000)])
    with pytest.raises(UnsupportedError, match="sums and means"):
        account.add(Spending(1, 100, per_pair=50, span=1))
