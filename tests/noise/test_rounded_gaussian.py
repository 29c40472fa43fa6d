"""Rounded Gaussian noise: every decision against decimals, and its draws against its law."""

from __future__ import annotations

import math
from decimal import Decimal, localcontext
from fractions import Fraction
from itertools import product

import numpy as np
import pytest
from scipy import stats

from evidence.checks.noise import drawn_from
from quiltwork.errors import InvalidInputError
from quiltwork.noise import RoundedGaussian, rounded_gaussian
from quiltwork.noise import bits as random_bits


class OutOfBitsError(Exception):
    pass


def no_more(*_):
    raise OutOfBitsError


def chance(whole, x):
    with localcontext() as context:
        context.prec = 60
        exact = Decimal(x.numerator) / Decimal(x.denominator)
        return (-exact * (2 * whole + exact) / 2).exp()


@pytest.mark.parametrize("whole", [0, 1, 3])
def test_a_coin_is_decided_as_soon_as_its_bits_say_so_and_never_wrongly(monkeypatch, whole):
    monkeypatch.setattr(random_bits, "word", no_more)
    many, undecided = 32, 0
    for x, coin in product(range(many), repeat=2):
        part, thrown = (rounded_gaussian.PartialUniform(prefix, 5) for prefix in (x, coin))
        most, least = (chance(whole, end) for end in part.between)
        try:
            found = rounded_gaussian.accepted(whole, part, thrown)
        except OutOfBitsError:
            undecided += 1
            assert Decimal(coin + 1) / many > least - Decimal("1e-6")
            assert Decimal(coin) / many < most + Decimal("1e-6")
        else:
            low, high = Decimal(coin) / many, Decimal(coin + 1) / many
            assert high <= least if found else low >= most
    assert 0 < undecided < many * 6


def test_whole_parts_have_their_law():
    with localcontext() as context:
        context.prec = 60
        weights = [(-Decimal(k * k) / 2).exp() for k in range(40)]
        for first in (0, 8):
            thresholds = rounded_gaussian.whole_thresholds(8, first)
            rest = sum(weights[first:])
            for j in range(8):
                exact = sum(weights[first : first + j + 1]) / rest
                lo, hi = thresholds.enclose(j, 80)
                assert lo <= exact * 2**80 <= hi
                assert hi - lo < 2**60


@pytest.mark.parametrize("scale", [Fraction(1, 3), Fraction(7, 2), Fraction(10**9, 7)])
def test_rounding_waits_for_the_bits_that_decide(monkeypatch, scale):
    monkeypatch.setattr(random_bits, "word", no_more)
    decided = 0
    for whole, x in product(range(3), range(64)):
        part = rounded_gaussian.PartialUniform(x, 6)
        ends = [scale * (whole + end) + Fraction(1, 2) for end in part.between]
        same = math.floor(ends[0]) == math.floor(ends[1] - Fraction(1, 2**200))
        try:
            assert rounded_gaussian.rounded_value(scale, whole, part) == math.floor(ends[0])
        except OutOfBitsError:
            assert not same
        else:
            assert same
            decided += 1
    assert decided > 100 or scale > 100


@pytest.mark.parametrize("scale", [Fraction(1, 3), Fraction(14), Fraction(10**9, 7)])
def test_arrays_are_what_integers_make_of_the_same_bits(monkeypatch, scale):
    """Every value undecided by floats is decided by integers; so let all be."""
    source = np.random.default_rng(1)
    kept = [source.integers(0, 2**32, n, dtype=np.uint32) for n in (400, 800, 800)]
    coins = source.random(400) < 0.5

    def drawn(undecided):
        words = iter([one.copy() for one in kept])
        monkeypatch.setattr(random_bits, "words", lambda count: next(words))
        monkeypatch.setattr(random_bits, "signs", lambda count: coins)
        monkeypatch.setattr(rounded_gaussian, "_UNDECIDED", undecided)
        return rounded_gaussian._batch(scale, 400)

    by_floats, by_integers = drawn(2.0**-36), drawn(2.0)
    assert np.array_equal(by_floats, by_integers)
    assert 240 < len(by_floats) < 340


def test_draws_follow_the_law_and_one_off_by_a_percent_is_seen():
    assert drawn_from(RoundedGaussian, Fraction(3, 2), 2_000_000) > 1e-9


def test_single_draws_follow_the_law():
    law = RoundedGaussian.from_scale(2)
    drawn = np.array([law.draw_one() for _ in range(3000)])
    cells = np.arange(-4, 5)
    counts = [(drawn <= -5).sum(), *[(drawn == z).sum() for z in cells], (drawn >= 5).sum()]

    def p_value(other):
        expected = np.diff([0, *stats.norm.cdf((np.arange(-5, 5) + 0.5) / other), 1])
        return stats.chisquare(counts, expected * len(drawn)).pvalue

    assert p_value(2) > 1e-6
    assert p_value(2.4) < 1e-6


@pytest.mark.parametrize("scale", [0.2, 1, 14.06, 1e6])
@pytest.mark.parametrize("cells", [1, 4])
def test_intervals_are_those_of_the_rounded_law(scale, cells):
    law = RoundedGaussian.from_scale(scale)
    bound = law.simultaneous_quantile(0.95, cells)

    def inside(c):
        return (1 - 2 * stats.norm.sf((c + 0.5) / scale)) ** cells

    assert inside(bound) >= 0.95
    assert bound == 0 or inside(bound - 1) < 0.95


def test_moments_and_probabilities_are_those_of_the_rounded_law():
    for scale in (0.3, 2.5, 70):
        law, z = RoundedGaussian.from_scale(scale), np.arange(-3000, 3001)
        p = stats.norm.cdf((z + 0.5) / scale) - stats.norm.cdf((z - 0.5) / scale)
        assert law.variance == pytest.approx(p @ z**2, rel=1e-6)
        assert law.expected_absolute == pytest.approx(p @ abs(z), rel=1e-4)
        assert law.probability(2) == pytest.approx(p[3002], rel=1e-9)
        assert law.tail(3) == pytest.approx(2 * stats.norm.sf(3.5 / scale), rel=1e-9)


def test_no_noise_and_bad_scales():
    assert RoundedGaussian.from_scale(0).draw(3).tolist() == [0, 0, 0]
    assert RoundedGaussian.from_scale(0).draw_one() == 0
    assert RoundedGaussian.from_scale(0).quantile(0.9) == 0
    for scale in (-1, math.inf, 2**60):
        with pytest.raises(InvalidInputError):
            RoundedGaussian.from_scale(scale)
