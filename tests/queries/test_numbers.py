"""Sums and means: exact integer sums on a public grid, and what the grid costs."""

import itertools
import math
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from quiltwork import InvalidInputError, queries
from quiltwork.queries.document import from_document, to_document
from quiltwork.queries.numbers import Mean, NumericMean, NumericSum, Sum, clipped_total, of_numbers


@pytest.mark.parametrize("bits", [0, 1, 3])
def test_change_is_the_exact_maximum_when_both_bounds_are_states(bits, largest_changes):
    for window in [(1, 4), (2, 3), (4, 4)]:
        query = Sum(lo=-1, hi=2, bits=bits).on(*window)
        for (start, stop), expected in largest_changes(query, (-1.0, 0.3, 2.0), 4).items():
            assert query.l1_sensitivity(start, stop, 4) == expected


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


@pytest.mark.parametrize("bounds", [(-5, 50), (0, 2), (1, 50)])
@pytest.mark.parametrize("kind", [Sum, Mean])
def test_between_the_states_own_bounds_answers_are_the_same_and_changes_the_true_ones(kind, bounds):
    states, length = (0.5, 1, 3.25), 3
    wide = kind(lo=bounds[0], hi=bounds[1], clip=True)
    narrow = wide.narrowed(states)
    moved = {}
    for codes in itertools.product(range(3), repeat=length):
        array = np.array(codes)
        both = [(q.values(states), q.divisor(length)) for q in (wide, narrow)]
        totals = [sum(values[c] for c in codes) / n for values, n in both]
        assert totals[0] == totals[1]
        fine = narrow.refined(Fraction(1), length)
        moved[codes] = int(fine.evaluate(array, states)[0])
    for i in range(length):
        alike = [
            [m for c, m in moved.items() if c[:i] + c[i + 1 :] == rest]
            for rest in itertools.product(range(3), repeat=length - 1)
        ]
        worst = max(max(one) - min(one) for one in alike)
        assert worst == fine.l1_sensitivity(i + 1, i + 1, length)
    assert narrow.span < wide.span


def test_what_cannot_be_narrowed_stays():
    query = Sum(lo=0, hi=9)
    assert query.narrowed((4,)) == query == query.narrowed((0, 9))
    assert replaced_bits(query).narrowed((1, 2)) == replaced_bits(query)
    assert query.narrowed((1, 2)).narrowed((1, 2)) == query.narrowed((1, 2)) == Sum(lo=1, hi=2)


def replaced_bits(query):
    return Sum(lo=query.lo, hi=query.hi, bits=3)


@given(
    st.lists(st.floats(allow_nan=False), max_size=40),
    st.fractions(-3, 0, max_denominator=9),
    st.fractions(1, 4, max_denominator=9),
)
@settings(max_examples=100, deadline=None)
def test_numbers_are_clipped_and_added_without_any_rounding(values, lo, hi):
    inside = [v for v in values if abs(v) < 10]
    exact = sum((min(max(Fraction(v), lo), hi) for v in inside), Fraction(0))
    exact += sum(hi if v > 0 else lo for v in values if abs(v) >= 10)
    assert clipped_total(np.array(values, dtype=float), lo, hi) == exact


@given(
    st.lists(st.floats(-3, 3), min_size=1, max_size=8),
    st.lists(st.floats(-0.4, 0.4), min_size=8, max_size=8),
    st.integers(1, 12),
)
@settings(max_examples=150, deadline=None)
def test_totals_of_numbers_move_one_step_further_than_the_numbers_at_most(values, moves, bits):
    query = NumericSum(lo=-1, hi=2, bits=bits)
    after = [v + m for v, m in zip(values, moves, strict=False)]
    steps = [int(query.evaluate(np.array(one), ())[0]) for one in (values, after)]
    clipped = [[min(max(Fraction(v), -1), 2) for v in one] for one in (values, after)]
    moved = sum(abs(a - b) for a, b in zip(*clipped, strict=True))
    assert abs(steps[0] - steps[1]) < moved / query.step + query.sensitivity.once
    offset, unit = query.grid(len(values))
    assert abs(offset + unit * steps[0] - sum(clipped[0])) <= query.rounding((), len(values), 1)


def test_numbers_have_a_query_of_their_own():
    query = of_numbers(queries.mean(0, 5).on(2, 4)).refined(Fraction(9), 3)
    assert isinstance(query, NumericMean)
    assert of_numbers(query) is query
    assert query.step * 2**20 <= 5 * 9
    assert int(query.l1_sensitivity(2, 2, 9)) == query.subdivision + 1
    assert int(query.l1_sensitivity(5, 9, 9)) == 0
    assert from_document(to_document(query)) == query
    assert int(query.evaluate(np.array([9.0, 5, -1, math.nan]), ())[0]) == query.subdivision
    assert query.refined(Fraction(0), 3).bits == 40
