"""The exponential mechanism against decimals, and its frequencies with a negative control."""

import math
from decimal import Decimal, localcontext
from fractions import Fraction
from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from quiltwork.errors import InvalidInputError
from quiltwork.noise import exponential_mechanism
from quiltwork.noise.exponential import choice_thresholds

utilities = st.lists(st.integers(-50, 50), min_size=1, max_size=8)
rates = st.fractions(Fraction(1, 100), 5, max_denominator=100)


@given(utilities, rates)
def test_probabilities_are_enclosed_to_sixty_bits(values, rate):
    with localcontext() as context:
        context.prec = 50
        weights = [
            (Decimal(rate.numerator) / Decimal(rate.denominator) * (u - max(values))).exp()
            for u in values
        ]
        truth = [Fraction(weight / sum(weights)) for weight in weights]
    thresholds = choice_thresholds(values, rate)
    inside = [thresholds.enclose(j, 64) for j in range(thresholds.count)]
    edges = [(Fraction(a, 2**64), Fraction(b, 2**64)) for a, b in [(0, 0), *inside, (2**64,) * 2]]
    for (before, after), exact in zip(pairwise(edges), truth, strict=True):
        low, high = after[0] - before[1], after[1] - before[0]
        assert low <= exact + Fraction(1, 10**40)
        assert exact <= high + Fraction(1, 10**40)
        assert high - low <= Fraction(8, 2**64)


def test_frequencies_follow_the_probabilities_and_reject_a_rate_off_by_ten_percent():
    values, draws = [0, 1, 2, 6], 20_000
    counts = np.bincount(
        [exponential_mechanism(values, Fraction(1, 2)) for _ in range(draws)], minlength=4
    )

    def statistic(rate: float) -> float:
        weights = np.exp(rate * np.array(values))
        expected = weights / weights.sum() * draws
        return float(((counts - expected) ** 2 / expected).sum())

    # 50 is passed with probability 8e-11 at the right rate, and missed with 2e-10 at the wrong one.
    assert statistic(0.5) < 50
    assert statistic(0.55) > 50


def test_symmetric_choices_end_although_their_threshold_is_dyadic():
    counts = np.bincount([exponential_mechanism([0, 5, 0, 5], 1) for _ in range(2000)], minlength=4)
    assert abs(counts[:2].sum() - 1000) < 200


def test_huge_gaps_do_not_overflow():
    assert exponential_mechanism([10**30, 0, -(10**30)], 1) == 0


@pytest.mark.parametrize("bad", [[], [math.nan], [math.inf, 1], ["a"], [True]])
def test_bad_utilities_are_refused(bad):
    with pytest.raises(InvalidInputError):
        exponential_mechanism(bad, 1)


@pytest.mark.parametrize("bad", [0, -1, math.nan, True, "1"])
def test_bad_rates_are_refused(bad):
    with pytest.raises(InvalidInputError, match="rate"):
        exponential_mechanism([1, 2], bad)
