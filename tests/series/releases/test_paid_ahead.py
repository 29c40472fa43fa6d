"""Releases that were planned and paid for before their data were there."""

from __future__ import annotations

from dataclasses import replace
from fractions import Fraction

import pytest

from quiltwork import queries
from quiltwork.beliefs import MarkovChain
from quiltwork.budget import Accountant, plan
from quiltwork.errors import InvalidInputError, UnsupportedError
from quiltwork.series.releases.paid_ahead import release_planned

CHAIN = MarkovChain([[0.9, 0.1], [0.4, 0.6]], states=["rest", "walk"])
DATA = ["rest", "walk", "rest", "rest", "walk", "walk", "walk", "rest"]


def planned(query, budget, length=12):
    windows = [(1, 4), (5, 8), (9, 12)]
    return plan(CHAIN, length=length, budget=budget, queries=[query.on(*one) for one in windows])


def drawn(item, data=DATA, **change):
    asked = {"paid": item.spending, "scale": item.scale, "epsilon": item.cost_alone, **change}
    return release_planned(data, item.planned.query, CHAIN, **asked)


@pytest.mark.filterwarnings("ignore::quiltwork.errors.QuiltworkWarning")  # of the level
@pytest.mark.parametrize(
    ("query", "first", "second"),
    [
        (queries.histogram(), [3, 1], [1, 3]),
        (queries.frequencies(), [0.75, 0.25], [0.25, 0.75]),
        (queries.count("walk"), 1, 3),
        (queries.most_common(), "rest", "walk"),
        (queries.transitions(), [[1, 1], [1, 0]], [[0, 0], [1, 2]]),
    ],
)
def test_a_planned_release_answers_about_its_window_with_the_noise_of_the_plan(
    query, first, second
):
    items = planned(query, 5000).items  # so little noise that it is 0
    for item, expected in zip(items, (first, second), strict=False):
        found = drawn(item)
        value = found.value.tolist() if hasattr(found.value, "tolist") else found.value
        assert value == expected
        assert found.noise_scale == Fraction(repr(item.scale))
        assert found.window == (item.spending.start, item.spending.stop)


def test_what_it_tells_alone_is_what_its_record_says():
    item = planned(queries.histogram(), 1).items[1]
    found = drawn(item)
    alone = Accountant(CHAIN, len(DATA)).cost_after(found.spending)
    assert alone <= found.epsilon == pytest.approx(item.cost_alone)
    assert alone > 0.95 * found.epsilon


def test_what_was_not_paid_for_is_not_drawn():
    item = planned(queries.histogram(), 1).items[0]
    less = replace(item.spending, per_point=item.spending.per_point / 2)
    with pytest.raises(InvalidInputError, match="nothing was drawn"):
        drawn(item, paid=less)
    with pytest.raises(InvalidInputError):
        drawn(planned(queries.histogram(), 1).items[2])  # its window has not arrived


def test_queries_on_a_grid_are_not_planned_ahead():
    item = planned(queries.histogram(), 1).items[0]
    with pytest.raises(UnsupportedError, match="cannot be planned ahead"):
        release_planned(DATA, queries.mean(0, 1), CHAIN, item.spending, 1, 1)
