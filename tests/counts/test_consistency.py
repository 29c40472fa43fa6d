from __future__ import annotations

from itertools import product

from hypothesis import given
from hypothesis import strategies as st

from quiltwork.counts.count_table_level import project


@given(st.lists(st.integers(-6, 9), min_size=1, max_size=4), st.integers(0, 12))
def test_the_projection_is_the_nearest_consistent_table(noisy, total):
    """Of all tables of counts with this total."""
    values = project(noisy, total)
    tables = product(range(total + 1), repeat=len(noisy))

    def distance(table):
        return sum((v - x) ** 2 for v, x in zip(table, noisy, strict=True))

    assert sum(values) == total
    assert min(values) >= 0
    assert distance(values) == min(distance(one) for one in tables if sum(one) == total)


@given(st.lists(st.integers(-(10**25), 10**25), min_size=1, max_size=6), st.integers(0, 10**26))
def test_totals_add_up_where_floats_skip_integers(noisy, total):
    values = project(noisy, total)
    assert sum(values) == total
    assert min(values) >= 0


def test_of_cells_that_are_rounded_the_first_go_up():
    assert project([10, -4], 8) == (8, 0)
    assert project([7, 5], 8) == (5, 3)
    assert project([7, 5, 7], 8) == (4, 1, 3)
    assert project([7, -5], None) == (7, 0)
    assert project([7, 5], 0) == (0, 0)
