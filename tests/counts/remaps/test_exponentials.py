"""Powers as sums of exponentials, against 50 decimal places."""

from __future__ import annotations

import math
from decimal import Decimal, localcontext
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from quiltwork.counts.remaps.exponentials import power_sum

EXPONENTS = st.fractions(Fraction(1, 50), Fraction(9), max_denominator=1000)


def relative_error(terms, exponent, x):
    with localcontext() as context:
        context.prec = 50
        total = sum(
            Decimal(float(c)) * (-Decimal(float(t)) * x).exp()
            for c, t in zip(terms.weights, terms.rates, strict=True)
        )
        power = (Decimal(exponent.numerator) / exponent.denominator * Decimal(x).ln()).exp()
        return abs(float(total * x**terms.degree / power - 1))


@settings(max_examples=12, deadline=None)
@given(EXPONENTS, st.sampled_from([10, 1_000, 10**6]), st.data())
def test_the_error_stays_below_its_bound(exponent, largest, data):
    terms = power_sum(exponent, largest)
    assert terms.error < 5e-14
    assert (terms.weights > 0).all()
    assert len(terms.rates) < 220
    for x in (1, 2, data.draw(st.integers(1, largest)), largest):
        assert relative_error(terms, exponent, x) <= terms.error + 1e-40


@pytest.mark.parametrize("exponent", [Fraction(1001, 1000), Fraction(1999999, 10**6)])
def test_exponents_next_to_integers(exponent):
    terms = power_sum(exponent, 10**6)
    for x in (1, 3, 1_000, 10**6):
        assert relative_error(terms, exponent, x) <= terms.error <= 5e-14


def test_the_bound_notices_a_missing_term():
    """Any of the terms that matter, left out or off by a twentieth, breaks the bound."""
    exponent = Fraction(3, 2)
    terms = power_sum(exponent, 1_000)
    for m in range(len(terms.rates)):
        if 1e-3 < terms.rates[m] < 1:
            x = round(1 / terms.rates[m])
            share = terms.weights[m] * math.exp(-terms.rates[m] * x) * math.sqrt(x)
            assert share / 20 > terms.error


@settings(max_examples=30)
@given(EXPONENTS, st.integers(1, 500), st.integers(0, 500), st.integers(0, 300))
def test_sources_times_targets_is_the_power_of_the_sum_also_after_a_shift(exponent, x, y, gap):
    terms = power_sum(exponent, 2_000)
    moved = terms.shifter(gap)(terms.sources(np.array([x]))[0])
    total = float(moved @ terms.targets(np.array([y]))[0])
    assert total == pytest.approx(float(x + gap + y) ** float(exponent), rel=1e-12)


def test_whole_powers_take_one_exact_term():
    terms = power_sum(Fraction(11), 10**6)
    assert terms.error == 0
    assert terms(np.array([1.0, 2.0, 10.0])).tolist() == [1, 2**11, 10**11]
