"""Charges in integers equal the sum of each release's own, on any run and any stretch."""

from __future__ import annotations

from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from quiltwork.budget import Spending
from quiltwork.budget.accounting import steps as steps_module
from quiltwork.budget.accounting.steps import Steps
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


@given(spendings(), st.integers(1, LENGTH), st.integers(1, LENGTH))
@settings(max_examples=sample(25, full=50))
def test_charges_are_the_sum_over_releases(records, a, b):
    usage = used(records)
    low, high = min(a, b), max(a, b)
    whole, part = usage.charges(1, LENGTH), usage.charges(low, high)
    for first in range(1, LENGTH + 1):
        for last in range(first, LENGTH + 1):
            expected = sum((record.cost(first, last) for record in records), Fraction(0))
            assert usage.charge(first, last) == expected
            for charges in (whole, part):
                if charges.first <= first and last <= charges.last:
                    (found,) = charges.of(np.array([first]), np.array([last]))
                    assert Fraction(int(found), usage.denominator) == expected
    assert usage.total == usage.charge(1, LENGTH)


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


@given(
    st.lists(
        st.tuples(st.integers(1, 60), st.integers(0, 20), st.integers(-(10**25), 10**25)),
        max_size=40,
    )
)
@settings(max_examples=60)
def test_step_functions_equal_dense_ones(changes):
    steps, dense = Steps(), [0] * 100
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(steps_module, "_BLOCK", 5)
        for first, more, value in changes:
            steps = steps.plus(first, first + more, value)
            for t in range(first, first + more + 1):
                dense[t] += value
    assert steps.on(1, 90).tolist() == dense[1:91]
    assert [steps.at(t) for t in range(1, 90)] == dense[1:90]
    assert [steps.sum_before(t) for t in range(1, 95)] == [sum(dense[:t]) for t in range(1, 95)]
    corners = [t for t in range(1, 95) if dense[t] != dense[t - 1]]
    assert steps.corners_within(1, 94) == corners
    doubled = steps.combined(steps.times(3), 2)
    assert doubled.on(1, 90).tolist() == [7 * value for value in dense[1:91]]


def test_adding_a_release_does_not_copy_the_history():
    steps = Steps()
    for k in range(5000):
        steps = steps.plus(10 * k + 1, 10 * k + 5, k + 1)
    after = steps.plus(25_003, 25_004, 1)
    new = [block for block in after.blocks if block not in steps.blocks]
    assert len(steps.blocks) > 20
    assert len(new) <= 2
