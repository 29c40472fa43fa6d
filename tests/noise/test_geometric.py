"""The two-sided geometric law: exact probabilities first, statistics with their power second."""

import inspect
import math
import os
import threading
from decimal import Decimal, localcontext
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import quiltwork.noise
from evidence.checks.noise import exact_law, p_value
from quiltwork.errors import InvalidInputError
from quiltwork.noise import TwoSidedGeometric
from quiltwork.noise.geometric import build_sampler

alphas = st.fractions(Fraction(1, 50), Fraction(49, 50), max_denominator=60)
scales = st.fractions(Fraction(1, 10), 40, max_denominator=30)


@given(alphas)
def test_the_samplers_tables_multiply_to_the_exact_law(alpha):
    """Digits, magnitude and sign combine, in fractions, to (1−α)/(1+α)·α^|z|."""
    assert exact_law(alpha, word_bits=6, digit_bits=2) > 3


@given(scales)
def test_exponential_tables_enclose_the_law_to_sixty_digits(scale):
    law = TwoSidedGeometric.from_scale(scale)
    sampler = build_sampler(law, word_bits=8, digit_bits=3)
    with localcontext() as context:
        context.prec = 60
        alpha = Fraction((-Decimal(scale.denominator) / Decimal(scale.numerator)).exp())
    unit, slack = 2**80, Fraction(2**80, 10**50)
    for j in range(sampler.magnitude.thresholds.count):
        lo, hi = sampler.magnitude.thresholds.enclose(j, 80)
        truth = (1 - 2 * alpha ** (sampler.place * j + 1) / (1 + alpha)) * unit
        assert lo - slack <= truth <= hi + slack
        assert hi - lo <= 4
    for place, table in sampler.digits:
        base = table.thresholds.count + 1
        for j in range(table.thresholds.count):
            lo, hi = table.thresholds.enclose(j, 80)
            truth = (1 - alpha ** (place * (j + 1))) / (1 - alpha ** (place * base)) * unit
            assert lo - slack <= truth <= hi + slack
            assert hi - lo <= 4


@pytest.mark.parametrize(
    ("law", "wrong"),
    [
        (TwoSidedGeometric.from_scale(Fraction(3, 2)), TwoSidedGeometric.from_scale(1.515)),
        (TwoSidedGeometric.from_scale(5), TwoSidedGeometric.from_scale(Fraction(99, 20))),
        (TwoSidedGeometric.from_alpha(Fraction(1, 3)), TwoSidedGeometric.from_scale(0.92)),
    ],
)
def test_four_million_draws_fit_the_law_and_reject_a_scale_off_by_one_percent(law, wrong):
    draws = law.draw(4_000_000)
    assert p_value(draws, law) > 1e-12
    assert p_value(draws, wrong) < 1e-12  # 8 deviations beyond, for the least visible of the three


def test_single_draws_fit_the_law_and_reject_a_scale_off_by_ten_percent():
    law = TwoSidedGeometric.from_scale(2)
    draws = np.array([law.draw_one() for _ in range(60_000)])
    assert p_value(draws, law) > 1e-12
    assert p_value(draws, TwoSidedGeometric.from_scale(2.2)) < 1e-12


@pytest.mark.parametrize("scale", [Fraction(1, 10**6), 10**6, 2**40, 2**48])
def test_extreme_scales_have_the_right_spread(scale):
    law = TwoSidedGeometric.from_scale(scale)
    draws = law.draw(40_000)
    assert np.abs(draws).mean() == pytest.approx(law.expected_absolute, rel=0.05)
    assert isinstance(law.draw_one(), int)


@given(alphas, st.sampled_from([0.5, 0.9, 0.95, 0.99, Fraction(999_999, 10**6)]), st.integers(1, 9))
def test_quantiles_are_the_least_that_cover(alpha, confidence, cells):
    level = Fraction(str(confidence))
    c = TwoSidedGeometric.from_alpha(alpha).simultaneous_quantile(confidence, cells)

    def coverage(bound: int) -> Fraction:
        return (1 - 2 * alpha ** (bound + 1) / (1 + alpha)) ** cells

    assert coverage(c) >= level
    assert c == 0 or coverage(c - 1) < level


@given(scales, st.integers(0, 200))
def test_tail_bounds_from_above_and_tightly(scale, bound):
    alpha = math.exp(-1 / scale)
    truth = 2 * alpha ** (bound + 1) / (1 + alpha)
    tail = TwoSidedGeometric.from_scale(scale).tail(bound)
    assert truth * (1 - 1e-9) <= tail <= truth * (1 + 1e-9) + 2**-60


@given(scales)
def test_moments_agree_with_summation(scale):
    law = TwoSidedGeometric.from_scale(scale)
    last = 10 + 40 * math.ceil(scale)  # beyond, less than e^-40 is left
    z = np.arange(-last, last + 1)
    half = [law.probability(value) for value in range(last + 1)]
    p = np.array(half[:0:-1] + half)
    assert p.sum() == pytest.approx(1)
    assert (np.abs(z) * p).sum() == pytest.approx(law.expected_absolute)
    assert (z**2 * p).sum() == pytest.approx(law.variance)


def test_no_noise_at_scale_zero():
    law = TwoSidedGeometric.from_scale(0)
    assert law.draw(5).tolist() == [0] * 5
    assert (law.draw_one(), law.quantile(0.99), law.tail(0), law.expected_absolute) == (0, 0, 0, 0)
    assert law.probability(0) == 1
    assert TwoSidedGeometric.from_alpha(0).draw_one() == 0


@pytest.mark.parametrize("bad", [-1, math.nan, math.inf, True, "1", None, 2**49])
def test_bad_scales_are_refused_with_a_sentence(bad):
    with pytest.raises(InvalidInputError, match="scale must"):
        TwoSidedGeometric.from_scale(bad)


@pytest.mark.parametrize("bad", [-0.1, 1, 1.5, math.nan, True, "0.5", 1 - Fraction(1, 2**60)])
def test_bad_alphas_are_refused_with_a_sentence(bad):
    with pytest.raises(InvalidInputError, match="alpha must"):
        TwoSidedGeometric.from_alpha(bad)


@pytest.mark.parametrize("bad", [0, 1, -1, 2, math.nan, True])
def test_bad_confidences_are_refused(bad):
    with pytest.raises(InvalidInputError, match="confidence must"):
        TwoSidedGeometric.from_scale(1).quantile(bad)


@pytest.mark.parametrize("bad", [-1, 1.0, True])
def test_bad_sizes_are_refused(bad):
    with pytest.raises(InvalidInputError, match="size must"):
        TwoSidedGeometric.from_scale(1).draw(bad)


def test_forked_children_draw_different_noise():
    law = TwoSidedGeometric.from_scale(10**9)
    law.draw_one()
    readers = []
    for _ in range(3):
        reader, writer = os.pipe()
        if os.fork() == 0:
            os.write(writer, str(law.draw_one()).encode())
            os._exit(0)
        os.close(writer)
        readers.append(reader)
    values = {law.draw_one(), *(int(os.read(reader, 64)) for reader in readers)}
    for _ in readers:
        os.wait()
    assert len(values) == 4


def test_threads_draw_at_once_and_differently():
    law = TwoSidedGeometric.from_scale(Fraction(10**9, 7))
    results: list[np.ndarray] = []
    threads = [threading.Thread(target=lambda: results.append(law.draw(2000))) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(np.unique(np.concatenate(results))) > 7_990


def test_nothing_in_the_room_takes_a_seed():
    for name in quiltwork.noise.__all__:
        thing = getattr(quiltwork.noise, name)
        callables = [thing, *(m for _, m in inspect.getmembers(thing, callable))]
        for call in callables:
            try:
                parameters = inspect.signature(call).parameters
            except (TypeError, ValueError):
                continue
            assert not {"seed", "rng", "random_state", "generator"} & set(parameters)
