"""Enclosures against decimals of sixty digits and exact fractions."""

from decimal import Decimal, localcontext
from fractions import Fraction

from hypothesis import given
from hypothesis import strategies as st

from quiltwork.noise import enclosure

exponents = st.fractions(min_value=0, max_value=60, max_denominator=10**9)
units = st.fractions(min_value=0, max_value=1, max_denominator=10**6)


def decimal_exp_minus(x: Fraction) -> Fraction:
    with localcontext() as context:
        context.prec = 60
        return Fraction((-Decimal(x.numerator) / Decimal(x.denominator)).exp())


@given(exponents, st.integers(8, 100))
def test_exp_minus_encloses_the_decimal_value_within_two_units(x, bits):
    lo, hi = enclosure.exp_minus(x, bits)
    truth = decimal_exp_minus(x) * 2**bits
    slack = Fraction(2**bits, 10**55)
    assert lo - slack <= truth <= hi + slack
    assert hi - lo <= 2


@given(units.filter(bool), st.integers(0, 10_000), st.integers(8, 64))
def test_power_encloses_the_exact_power(base, exponent, bits):
    lo, hi = enclosure.power(enclosure.of_fraction(base, bits), exponent, bits)
    with localcontext() as context:
        context.prec = 80
        exact = Fraction((Decimal(base.numerator) / Decimal(base.denominator)) ** exponent)
    assert lo <= exact * 2**bits + Fraction(1, 10**30)
    assert exact * 2**bits <= hi + Fraction(1, 10**30)


@given(units, units.filter(bool), st.integers(8, 64))
def test_division_and_complement_enclose(a, b, bits):
    a_in, b_in = enclosure.of_fraction(a, bits), enclosure.of_fraction(b, bits)
    if b_in[0] > 0:
        lo, hi = enclosure.divide(a_in, b_in, bits)
        assert lo <= a / b * 2**bits <= hi
    lo, hi = enclosure.complement(a_in, bits)
    assert lo <= (1 - a) * 2**bits <= hi


def test_a_negligible_exponential_is_enclosed_by_zero_and_one_unit():
    assert enclosure.exp_minus(Fraction(10**9), 64) == (0, 1)
    assert enclosure.exp_minus(Fraction(0), 64) == (1 << 64, 1 << 64)
