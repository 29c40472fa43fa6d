"""How far one changed point moves a query in L2, by comparing all pairs of sequences."""

from __future__ import annotations

import math
from fractions import Fraction
from itertools import product

import numpy as np
import pytest

from quiltwork import queries

TIGHT = [
    (queries.count(0), 1),
    (queries.time_per_day(0), 1),
    (queries.histogram(), 2),
    (queries.frequencies(), 2),
    (queries.top(2), 2),
    (queries.by_hour("20min", "23:10"), 2),
    (queries.transitions(), 6),
]


def largest(query, states, length):
    """The largest squared distance of answers to sequences that differ in one point."""
    found = 0
    for codes in product(range(len(states)), repeat=length):
        before = np.array(query.evaluate(np.array(codes), states), dtype=float)
        for point, state in product(range(length), range(len(states))):
            other = np.array(codes)
            other[point] = state
            after = np.array(query.evaluate(other, states), dtype=float)
            found = max(found, float(((before - after) ** 2).sum()))
    return found


@pytest.mark.parametrize(("query", "squared"), TIGHT, ids=lambda one: getattr(one, "kind", None))
def test_squares_are_reached(query, squared):
    assert query.squared_l2_sensitivity == squared
    assert largest(query, (0, 1, 2), 4) == squared


def test_windows_move_no_more():
    assert largest(queries.transitions().on(2, 3), (0, 1, 2), 4) == 2
    assert largest(queries.histogram().on_runs([(1, 1), (3, 4)]), (0, 1), 4) == 2


@pytest.mark.parametrize("query", [queries.sum(-1, 5), queries.mean(-1, 5)])
def test_sums_move_by_their_range(query):
    states = (-1.0, 0.5, 3.0, 5.0)
    moved = largest(query, states, 3)
    assert moved <= query.squared_l2_sensitivity
    assert moved == query.squared_l2_sensitivity


def test_custom_queries_pay_for_rounding_every_coordinate():
    def spread(values):
        return np.array([np.sum(values == 0) * 0.3, np.sum(values == 1) * 0.3])

    query = queries.custom(spread, lipschitz=0.6, cells=["a", "b"]).refined(Fraction(1), 3)
    moved = largest(query, (0, 1, 2), 3)
    assert 0 < moved <= query.squared_l2_sensitivity
    exact = (query.sensitivity.point + math.sqrt(query.sensitivity.once)) ** 2
    assert query.sensitivity.once == 2
    assert exact <= query.squared_l2_sensitivity < exact + 1
