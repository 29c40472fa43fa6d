"""Sums and means: exact integer sums on a public grid, and what the grid costs."""

import math
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from quiltwork import InvalidInputError, queries
from quiltwork.queries.numbers import Mean, Sum


@pytest.mark.parametrize("bits", [0, 1, 3])
def test_change_is_the_exact_maximum_when_both_bounds_are_states(bits, largest_changes):
    for window in [(1, 4), (2, 3), (4, 4)]:
        query = Sum(lo=-1, hi=2, bits=bits).on(*window)
        for (start, stop), expected in largest_changes(query, (-1.0, 0.3, 2.0), 4).items():
            assert query.change(start, stop, 4) == expected


@given(
    values=st.lists(st.floats(-3, 3), min_size=2, max_size=6, unique=True),
    codes=st.lists(st.integers(0, 1), min_size=1, max_size=50),
    bits=st.integers(0, 30),
)
@settings(max_examples=60, deadline=None)
def test_the_grid_never_costs_more_than_it_says(values, codes, bits):
    states = tuple(values)
    encoded = np.array(codes, dtype=np.int64)
    exact = sum(Fraction(str(states[c])) for c in codes)
    for kind, truth in ((Sum, exact), (Mean, exact / len(codes))):
        query = kind(lo=-3, hi=3, bits=bits)
        offset, unit = query.grid(len(codes))
        on_grid = offset + unit * int(query.evaluate(encoded, states)[0])
        allowed = query.rounding(states, len(codes), 1)
        assert abs(on_grid - truth) <= allowed
        half_steps = query.step / 2 * (len(codes) if kind is Sum else 1)
        assert allowed <= half_steps


@given(
    scale=st.fractions(min_value=Fraction(1, 1000), max_value=10**6),
    points=st.integers(1, 10**7),
)
@settings(max_examples=100, deadline=None)
def test_the_chosen_grid_is_far_finer_than_the_noise_and_fits_the_sampler(scale, points):
    query = queries.sum(0, 1).refined(scale, points)
    if query.bits < 62 - points.bit_length():
        assert points * query.step / 2 <= scale / 2**11
    assert scale * query.subdivision <= max(2 * scale, points * 2**11) <= 2**48
    assert query.bits >= 1
    assert points * query.subdivision < 2**62
    assert query.step == Fraction(1, 2**query.bits)


def test_the_grid_without_noise_still_resolves():
    assert queries.mean(0, 1).refined(Fraction(0), 100).bits == 40


def test_a_mean_is_integer_steps_over_points():
    query = Mean(lo=0, hi=1, bits=4)
    codes = np.array([0, 1, 1, 2])
    steps = int(query.evaluate(codes, (0.0, 0.5, 1.0))[0])
    assert steps == 0 + 8 + 8 + 16
    assert query.present(np.array([steps]), (0.0, 0.5, 1.0), 4) == 0.5
    assert Sum(lo=-2, hi=2, bits=4).grid(10) == (Fraction(-20), Fraction(1, 4))


def test_huge_sums_are_exact():
    query = Sum(lo=0, hi=1, bits=40)
    codes = np.zeros(3_000_000, dtype=np.int64)
    assert int(query.evaluate(codes, (1,))[0]) == 3_000_000 << 40


def test_bool_states_count_as_zero_and_one_and_clip_moves_values():
    assert Sum(lo=0, hi=1).steps((False, True)) == [0, 1]
    assert Sum(lo=0, hi=1, clip=True, bits=1).steps((-5, 0.5, 9)) == [0, 1, 2]


@pytest.mark.parametrize(
    ("build", "words"),
    [
        (lambda: queries.mean(1, 1), "below hi"),
        (lambda: queries.mean(2, 1), "below hi"),
        (lambda: queries.mean(float("nan"), 1), "finite"),
        (lambda: queries.mean(0, math.inf), "finite"),
        (lambda: queries.mean(True, 2), "number"),
        (lambda: queries.mean("0", 2), "number"),
        (lambda: queries.mean(0, 1).check(("rest",)), "'rest'"),
        (lambda: queries.mean(0, 1).check((0, None)), "None"),
        (lambda: queries.mean(0, 1).check((0, math.inf)), "inf"),
        (lambda: queries.sum(0, 1).check((0, 1.5)), "1.5 lies outside"),
    ],
)
def test_bad_bounds_and_values_are_refused(build, words):
    with pytest.raises(InvalidInputError, match=words):
        build()
