from __future__ import annotations

from decimal import Decimal, localcontext
from fractions import Fraction

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from quiltwork.counts.alpha_levels import (
    alpha_for_epsilon,
    epsilon_for_alpha,
    parse_alpha,
    parse_level,
)
from quiltwork.errors import InvalidInputError


def reference(epsilon: Fraction) -> Fraction:
    """e^−ε to 400 digits by its series, without Decimal.exp."""
    halvings = 40
    y = Fraction(epsilon, 2**halvings) if isinstance(epsilon, int) else epsilon / 2**halvings
    term, total = Fraction(1), Fraction(1)
    for k in range(1, 40):
        term = Fraction(round(term * -y / k * 10**420), 10**420)
        total += term
    for _ in range(halvings):
        total = Fraction(round(total * total * 10**420), 10**420)
    return total


@settings(max_examples=40)
@given(st.fractions(Fraction(1, 10**6), 30, max_denominator=10**6))
def test_alpha_is_at_least_as_private_as_epsilon_and_hardly_more(epsilon):
    exact = reference(epsilon)
    alpha = alpha_for_epsilon(epsilon)
    assert alpha >= exact
    assert alpha - exact <= exact * epsilon * Fraction(1, 2**50)


@pytest.mark.parametrize(
    "epsilon", [*map(Fraction, ("692.9", "693", "693.1", "693.14", "693.15", "694"))]
)
def test_alpha_is_private_enough_where_it_stops_falling(epsilon):
    """2^-1000 = e^-693.147…: below that level it would be too little noise."""
    exact = reference(epsilon)
    assert exact <= alpha_for_epsilon(epsilon)
    assert alpha_for_epsilon(epsilon) <= max(exact * (1 + epsilon / 2**50), Fraction(1, 2**1000))


@pytest.mark.parametrize("epsilon", [694, 10**9, 1e300])
def test_huge_epsilons_stop_at_a_tiny_alpha(epsilon):
    assert alpha_for_epsilon(epsilon) == Fraction(1, 2**1000)


def test_tiny_epsilons_stay_below_one():
    assert alpha_for_epsilon(1e-300) < 1
    assert float(epsilon_for_alpha(alpha_for_epsilon(1e-300))) == pytest.approx(1e-300)


@settings(max_examples=40)
@given(st.fractions(Fraction(1, 1000), Fraction(999, 1000), max_denominator=1000))
def test_epsilon_of_alpha_is_never_below_its_logarithm(alpha):
    epsilon = epsilon_for_alpha(alpha)
    assert reference(epsilon) <= alpha
    assert reference(epsilon * (1 - Fraction(1, 10**40))) > alpha
    with localcontext(prec=30):
        assert Decimal(epsilon.numerator) / epsilon.denominator == pytest.approx(
            -(Decimal(alpha.numerator) / alpha.denominator).ln(), rel=Decimal("1e-25")
        )


def test_the_ends_of_the_scale():
    assert epsilon_for_alpha(Fraction(1)) == 0
    assert parse_level(0, None) == (0, None)
    with pytest.raises(InvalidInputError, match="no finite epsilon"):
        epsilon_for_alpha(Fraction(0))


@pytest.mark.parametrize("alpha", [-0.1, 1.1, True, "0.5", float("nan"), float("inf"), None])
def test_alpha_outside_the_unit_interval_is_refused(alpha):
    with pytest.raises(InvalidInputError, match="alpha"):
        parse_alpha(alpha)


@pytest.mark.parametrize("arguments", [(None, None), (0.5, 1.0)])
def test_the_level_is_given_once(arguments):
    with pytest.raises(InvalidInputError, match="once"):
        parse_level(*arguments)
