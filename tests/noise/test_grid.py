"""The public grid: rounding is charged, and outputs at neighbouring inputs share one lattice."""

import math
from fractions import Fraction

import pytest
from hypothesis import given
from hypothesis import strategies as st

from quiltwork.errors import InvalidInputError
from quiltwork.noise import PublicGrid, TwoSidedGeometric

coarse = st.fractions(-20, 20, max_denominator=64)
steps = st.sampled_from([Fraction(1, 8), Fraction(1, 2), Fraction(1), Fraction(2)])


@given(st.lists(st.tuples(coarse, coarse), min_size=1, max_size=4), steps)
def test_rounded_neighbours_never_differ_by_more_than_charged(pairs, step):
    grid = PublicGrid(step)
    apart = sum(abs(grid.round(x) - grid.round(y)) for x, y in pairs)
    distance = sum(abs(x - y) for x, y in pairs)
    assert apart <= grid.rounded_sensitivity(distance, len(pairs))


@pytest.mark.parametrize(("distance", "dimension", "charge"), [("1/2", 1, 1), (1, 1, 1), (2, 3, 4)])
def test_the_charge_is_reached(distance, dimension, charge):
    """Spread the distance so that every coordinate just crosses a rounding edge."""
    grid, distance = PublicGrid(Fraction(1)), Fraction(distance)
    assert grid.rounded_sensitivity(distance, dimension) == charge
    hair = Fraction(1, 1000)
    starts = [Fraction(1, 2) - hair] * dimension
    ends = [Fraction(1, 2)] * dimension
    ends[0] = starts[0] + distance - hair * (dimension - 1)
    moved = sum(abs(grid.round(a) - grid.round(b)) for a, b in zip(starts, ends, strict=True))
    assert sum(abs(a - b) for a, b in zip(starts, ends, strict=True)) == distance
    assert moved == charge


@given(st.fractions(Fraction(1, 10**6), 10**6))
def test_the_step_is_a_power_of_two_fixed_by_the_scale(scale):
    step = PublicGrid.for_scale(scale).step
    assert 2**20 * step <= scale < 2**21 * step


def test_half_a_step_rounds_up_on_both_sides_of_zero():
    grid = PublicGrid(Fraction(1))
    assert [grid.round(x) for x in (-1.5, -0.5, 0.5, 1.5)] == [-1, 0, 1, 2]


@given(coarse, coarse)
def test_outputs_at_neighbouring_inputs_lie_on_the_same_grid(x, y):
    grid = PublicGrid.for_scale(3)
    law = TwoSidedGeometric.from_scale(3 / grid.step)
    for value in (x, y):
        released = grid.value(grid.round(value) + law.draw_one())
        assert (released / grid.step).denominator == 1
        assert Fraction(float(released)) == released


@pytest.mark.parametrize("bad", [math.nan, math.inf, "1", True, None])
def test_values_that_are_no_numbers_are_refused(bad):
    with pytest.raises(InvalidInputError):
        PublicGrid(Fraction(1)).round(bad)


@pytest.mark.parametrize("bad", [Fraction(1, 3), Fraction(0), Fraction(-1), Fraction(3)])
def test_a_step_that_is_no_power_of_two_is_refused(bad):
    with pytest.raises(InvalidInputError, match="power of two"):
        PublicGrid(bad)


def test_a_negative_sensitivity_is_refused_and_zero_costs_nothing():
    with pytest.raises(InvalidInputError):
        PublicGrid(Fraction(1)).rounded_sensitivity(-1)
    assert PublicGrid(Fraction(1)).rounded_sensitivity(0, 5) == 0
