"""Charges in integers equal the sum of each release's own, on any run and any stretch."""

from __future__ import annotations

from fractions import Fraction

import numpy as np
from hypothesis import example, given, settings
from hypothesis import strategies as st

from quiltwork.budget import Spending
from quiltwork.budget.accounting.usage import Usage
from tests.sizes import sample

LENGTH = 12
COST = st.one_of(
    st.just(Fraction(0)),
    st.fractions(0, 3, max_denominator=12),
    st.floats(1e-9, 3).map(lambda x: Fraction(str(x))),
)


@st.composite
def spendings(draw, length=LENGTH, most=6):
    found = []
    for _ in range(draw(st.integers(0, most))):
        a, b = draw(st.integers(1, length)), draw(st.integers(1, length))
        found.append(Spending(min(a, b), max(a, b), draw(COST), draw(COST), draw(COST)))
    return found


def used(records) -> Usage:
    usage = Usage()
    for record in records:
        usage = usage.plus(record)
    return usage


@given(spendings())
@example([Spending(1, 2, once=Fraction(1, 10**9)), Spending(1, 1, once=Fraction(1, 2))])
@settings(max_examples=sample(25, full=50))
def test_charges_are_the_sum_over_releases(records):
    usage = used(records)
    levels = usage.levels(LENGTH)
    for first in range(1, LENGTH + 1):
        for last in range(first, LENGTH + 1):
            expected = sum((record.cost(first, last) for record in records), Fraction(0))
            assert usage.charge(first, last) == expected
            assert usage.max_point_charge(first, last) == max(
                usage.charge(t, t) for t in range(first, last + 1)
            )
            spent = levels.block(np.array([first]), np.array([last]))[0]
            most = float(expected) * (1 + 1e-12) + float(usage.total) * 1e-13  # prefix sums
            assert float(expected) <= spent <= most
    assert usage.total == usage.charge(1, LENGTH)
    together = used([]).plus(*records)
    assert np.array_equal(together.times, usage.times)
    assert np.array_equal(together.sums, usage.sums)


@given(spendings(), spendings(), st.floats(1e-6, 50))
@settings(max_examples=sample(25, full=50))
def test_a_scaled_usage_charges_in_proportion(some, others, factor):
    exact = Fraction(str(factor))
    combined = used(some).combined(used(others), exact)
    separately = used([*some, *(other.times(exact) for other in others)])
    for first in range(1, LENGTH + 1):
        assert combined.charge(first, LENGTH) == separately.charge(first, LENGTH)
        assert combined.charge(1, first) == separately.charge(1, first)
    assert combined.total == separately.total


def test_denominators_that_do_not_go_together_are_rounded_up_by_less_than_the_eye_can_see():
    primes = [p for p in range(1000, 3000) if all(p % d for d in range(2, 60))]
    records = [Spending.dp(Fraction(1, p), 1, 2) for p in primes]
    usage = used(records)
    assert usage.denominator.bit_length() <= 1024 + 256
    true = sum(Fraction(2, p) for p in primes)
    assert true <= usage.total <= true + Fraction(2 * len(primes), 2**256)


def test_a_few_releases_of_a_long_series_are_a_few_runs():
    usage = used([Spending.dp(0.1, 10**k, 10**12) for k in range(12)])
    assert len(usage.times) == 13
    assert usage.charge(1, 10**12) == usage.total
    assert usage.charge(10**11, 10**11) == Fraction(12, 10)
    assert len(usage.levels(10**12).first) == 12
