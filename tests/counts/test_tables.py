from __future__ import annotations

import math
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import quiltwork as qw
from quiltwork.counts import CountTable, release_table
from quiltwork.counts.consistency import project
from quiltwork.counts.levels import alpha_for_epsilon
from quiltwork.counts.table_levels import sum_quantile, table_level
from quiltwork.errors import InvalidInputError, NotPrivateError
from tests.counts.oracle import ALPHAS

COUNTS = {("f", "young"): 40, ("f", "old"): 25, ("m", "young"): 30, ("m", "old"): 5}


def worst_leak(cells, alphas, adjacency):
    """The largest log-likelihood ratio over neighbouring tables: one step in one or two cells."""
    costs = sorted((-math.log(alpha) for alpha in alphas), reverse=True)
    return sum(costs[: 2 if adjacency == "replace" else 1])


@given(
    st.integers(1, 5),
    st.fractions(Fraction(1, 10), 3, max_denominator=20),
    st.sampled_from(["replace", "add-remove"]),
)
def test_the_whole_table_keeps_its_level(cells, epsilon, adjacency):
    level = table_level(tuple(range(cells)), epsilon, None, adjacency)
    leak = worst_leak(cells, level.alphas, adjacency)
    assert leak <= float(epsilon) * (1 + 1e-12)
    assert leak >= float(epsilon) * (1 - 1e-9)
    assert worst_leak(cells, level.alphas, "replace") <= float(level.dp_epsilon) * (1 + 1e-12)


@given(st.lists(ALPHAS, min_size=1, max_size=5), st.sampled_from(["replace", "add-remove"]))
def test_levels_of_single_cells_add_up(alphas, adjacency):
    cells = tuple(range(len(alphas)))
    level = table_level(cells, None, dict(zip(cells, alphas, strict=True)), adjacency)
    assert level.alphas == tuple(alphas)
    assert float(level.epsilon) == pytest.approx(worst_leak(cells, alphas, adjacency))
    assert level.epsilon <= level.dp_epsilon


def test_one_epsilon_per_cell():
    level = table_level(("a", "b", "c"), {"a": 1, "b": 2, "c": 3}, None, "replace")
    assert level.epsilon == 5
    assert level.alphas == tuple(alpha_for_epsilon(e) for e in (1, 2, 3))


def test_a_public_total_is_kept_and_nothing_is_negative():
    for _ in range(50):
        table = release_table(COUNTS, epsilon=0.2, total=100, dimensions=("sex", "age"))
        assert sum(table.values) == 100
        assert min(table.values) >= 0
        assert sum(table.margin("sex").values()) == 100
        assert table.margin("age")["old"] == table["f", "old"] + table["m", "old"]


def test_without_a_public_total_cells_are_only_clipped():
    table = release_table(COUNTS, epsilon=0.5, adjacency="add-remove")
    assert table.values == tuple(max(0, value) for value in table.noisy)


@given(
    st.lists(st.integers(-30, 60), min_size=1, max_size=7),
    st.integers(0, 80),
    st.data(),
)
def test_the_projection_is_the_nearest_consistent_table(noisy, total, data):
    """Against all integer moves of one unit: none comes nearer in the weighted distance."""
    spread = [data.draw(st.sampled_from([0.5, 2.0, 8.0])) for _ in noisy]
    values = project(noisy, spread, total)
    assert sum(values) == total
    assert min(values) >= 0

    def distance(table):
        return sum((v - x) ** 2 / s for v, x, s in zip(table, noisy, spread, strict=True))

    own = distance(values)
    for a in range(len(noisy)):
        for b in range(len(noisy)):
            if a != b and values[a] > 0:
                moved = list(values)
                moved[a] -= 1
                moved[b] += 1
                assert distance(moved) >= own - 2 * max(1 / s for s in spread)


def test_the_projection_of_reals_is_exact_before_rounding():
    """Weights alike: the projection onto the simplex, against a fine grid search in two cells."""
    assert project([10, -4], [2.0, 2.0], 8) == (8, 0)
    assert project([7, 5], [2.0, 2.0], 8) == (5, 3)
    assert project([7, 5], [1.0, 3.0], 8) == (6, 2)


def test_intervals_hold_the_truth_at_least_as_often_as_they_say():
    trials, hits, all_hits = 400, 0, 0
    for _ in range(trials):
        table = release_table(COUNTS, epsilon=1, total=100)
        each = table.intervals(0.8)
        together = table.intervals(0.8, simultaneous=True)
        hits += each["f", "old"][0] <= 25 <= each["f", "old"][1]
        all_hits += all(low <= COUNTS[c] <= high for c, (low, high) in together.items())
    assert hits > 0.8 * trials - 4 * math.sqrt(trials * 0.16)
    assert all_hits > 0.8 * trials - 4 * math.sqrt(trials * 0.16)
    assert table.interval(("f", "old"), 0.8) == each["f", "old"]


@given(st.lists(ALPHAS, min_size=1, max_size=4), st.sampled_from([0.5, 0.9, 0.99]))
def test_the_interval_of_a_sum_is_never_too_short(alphas, confidence):
    """Against the convolution of the noise laws."""
    law = np.ones(1)
    for alpha in map(float, alphas):
        reach = math.ceil(-40 / math.log(alpha)) + 1
        steps = np.abs(np.arange(-reach, reach + 1))
        law = np.convolve(law, (1 - alpha) / (1 + alpha) * alpha**steps)
    centre = len(law) // 2
    bound = sum_quantile(alphas, confidence)
    inside = law[max(0, centre - bound) : centre + bound + 1].sum()
    assert inside >= confidence - 1e-9


def test_sums_of_cells_have_intervals():
    table = release_table(COUNTS, epsilon=2, total=100, dimensions=("sex", "age"))
    low, high = table.sum_interval([("f", "young"), ("f", "old")])
    assert 0 <= low <= high <= 100


def test_a_table_survives_its_file():
    table = release_table(COUNTS, epsilon=1, total=100, dimensions=("sex", "age"))
    assert CountTable.from_json(table.to_json()) == table
    assert "replacing one person" in table.explain()


def test_households_share_one_level():
    labels = ["a", "a", "a", "b", "c"]
    table = release_table({"yes": 2, "no": 3}, epsilon=1, total=5, beliefs=qw.Clusters(labels))
    assert table.epsilon == 1
    assert table.dp_epsilon <= Fraction(1, 3)
    assert -math.log(table.alphas[0]) == pytest.approx(1 / 6, rel=1e-9)


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        ({"counts": {}}, "no cells"),
        ({"counts": {"a": -1}}, "at least 0"),
        ({"counts": {"a": 1.5}}, "integer"),
        ({"epsilon": None}, "once"),
        ({"alpha": 0.5}, "once"),
        ({"epsilon": {"a": 1}}, "'b' has no level"),
        ({"adjacency": "swap"}, "adjacency"),
        ({"total": 7}, "not the sum"),
        ({"total": 3, "adjacency": "add-remove"}, "protected"),
        ({"beliefs": qw.Clusters([1, 1, 2])}, "total"),
        ({"beliefs": qw.Clusters([1, 1, 2]), "epsilon": {"a": 1, "b": 1}}, "whole table"),
        ({"dataset": "d"}, "ledger"),
    ],
)
def test_what_makes_no_sense_is_refused_before_drawing(arguments, words):
    given_ = {"counts": {"a": 1, "b": 2}, "epsilon": 1} | arguments
    with pytest.raises(InvalidInputError, match=words):
        release_table(**given_)


def test_alpha_zero_is_refused():
    with pytest.raises(NotPrivateError, match="publish"):
        release_table({"a": 1, "b": 2}, alpha={"a": 0, "b": 0.5})


def test_unknown_cells_and_columns_are_named():
    table = release_table({"a": 1, "b": 2}, epsilon=1)
    with pytest.raises(InvalidInputError, match="'c'"):
        table["c"]
    with pytest.raises(InvalidInputError, match="sex"):
        table.margin("sex")
