"""Counting queries answer right, and change by exactly as much as they say."""

from collections import Counter
from itertools import pairwise

import numpy as np
import pytest

from quiltwork import InvalidInputError, queries

COUNTING = [
    queries.count(0),
    queries.histogram(),
    queries.frequencies(),
    queries.transitions(),
]
BY_DAYS = [queries.top(2), queries.by_hour("20min", "23:10"), queries.time_per_day(0)]


@pytest.mark.parametrize("query", COUNTING + BY_DAYS, ids=lambda q: q.kind)
@pytest.mark.parametrize(("size", "length"), [(2, 5), (3, 4)])
def test_change_is_the_exact_maximum_over_all_pairs(query, size, length, largest_changes, all_runs):
    for window in all_runs(length):
        windowed = query.on(*window)
        for (start, stop), expected in largest_changes(windowed, range(size), length).items():
            assert windowed.l1_sensitivity(start, stop, length) == expected, (window, start, stop)


@pytest.mark.parametrize("query", [q for q in COUNTING if q.kind != "count"], ids=lambda q: q.kind)
def test_rows_in_no_cell_move_no_more(query, largest_changes):
    """Codes 0, 1 and 2, of which the last stands for values that the query does not declare."""

    class Partly:
        def evaluate(self, codes, states):
            return query.evaluate(codes, states[:2])

    for (start, stop), found in largest_changes(Partly(), range(3), 4).items():
        assert found <= query.l1_sensitivity(start, stop, 4)


def test_most_common_moves_log_probabilities_by_at_most_change_over_scale():
    """And by nearly that much where one state is far behind, so the 2 is needed."""
    states, length = (0, 1), 40
    scale = 3.0

    def log_probabilities(counts):
        weights = np.array(counts) / scale
        return weights - np.logaddexp.reduce(weights)

    for points in (1, 2, 5):
        bound = queries.most_common().l1_sensitivity(10, 9 + points, length) / scale
        moves = [
            np.abs(log_probabilities([c, length - c]) - log_probabilities([d, length - d])).max()
            for c in range(length + 1)
            for d in range(length + 1)
            if abs(c - d) <= points
        ]
        assert 0.99 * bound <= max(moves) <= bound
    assert tuple(queries.most_common().evaluate(np.array([0, 1, 1]), states)) == (1, 2)


def test_transition_changes_are_those_of_the_group_form():
    pairs = queries.transitions()
    assert pairs.l1_sensitivity(50, 50, 100) == 4
    assert [int(pairs.l1_sensitivity(50, 49 + n, 100)) for n in range(1, 6)] == [4, 6, 8, 10, 12]
    assert pairs.l1_sensitivity(1, 100, 100) == 2 * 99
    assert pairs.l1_sensitivity(1, 1, 100) == 2
    assert pairs.l1_sensitivity(1, 1, 1) == 0
    assert pairs.on(10, 20).l1_sensitivity(9, 9, 100) == 0
    assert pairs.on(10, 20).l1_sensitivity(10, 10, 100) == 2
    assert pairs.on(10, 10).l1_sensitivity(10, 10, 100) == 0


@pytest.mark.parametrize("query", [*COUNTING, queries.most_common()], ids=lambda q: q.kind)
def test_change_is_vectorized_and_empty_runs_change_nothing(query):
    start, stop = np.array([1, 3, 5, 7]), np.array([2, 9, 4, 7])
    together = query.on(2, 8).l1_sensitivity(start, stop, 10)
    apart = [int(query.on(2, 8).l1_sensitivity(a, b, 10)) for a, b in zip(start, stop, strict=True)]
    assert together.tolist() == apart
    assert apart[2] == 0


@pytest.mark.parametrize("query", [*COUNTING, queries.most_common()], ids=lambda q: q.kind)
def test_change_without_a_known_length_is_never_less(query, all_runs):
    for start, stop in all_runs(6):
        for chosen in (query, query.on(2, 4), query.on(3)):
            assert chosen.l1_sensitivity(start, stop, None) >= chosen.l1_sensitivity(start, stop, 6)


def test_answers_on_a_small_sequence():
    codes, states = np.array([0, 1, 1, 2, 0]), ("a", "b", "c")
    assert queries.count("b").evaluate(codes, states).tolist() == [2]
    assert queries.histogram().evaluate(codes, states).tolist() == [2, 2, 1]
    assert queries.histogram().on(2, 3).evaluate(codes, states).tolist() == [0, 2, 0]
    matrix = queries.transitions().evaluate(codes, states).reshape(3, 3)
    assert matrix.tolist() == [[0, 1, 0], [0, 1, 1], [1, 0, 0]]
    assert queries.transitions().on(4, 5).evaluate(codes, states).sum() == 1
    assert queries.transitions().cells(states)[:4] == (
        ("a", "a"),
        ("a", "b"),
        ("a", "c"),
        ("b", "a"),
    )


def test_presented_values_divide_by_public_numbers_only():
    states = ("a", "b")
    noisy = np.array([-1, 4])
    assert queries.histogram().present(noisy, states, 10).tolist() == [-1, 4]
    assert queries.frequencies().present(noisy, states, 10).tolist() == [-0.1, 0.4]
    assert queries.frequencies().present(noisy, states, 1).dtype == np.float64
    assert queries.count("a").present(noisy[:1], states, 10) == -1
    assert queries.most_common().present(np.array([1]), states, 10) == "b"


def test_public_totals():
    assert queries.histogram().total(30, 3) == 30
    assert queries.frequencies().total(30, 3) == 1
    assert queries.transitions().total(30, 3) == 27
    assert queries.count("a").total(30, 3) is None


@pytest.mark.parametrize(
    ("build", "words"),
    [
        (lambda: queries.count(float("nan")), "NaN"),
        (lambda: queries.count(["walk"]), "label"),
        (lambda: queries.histogram(states=["a", "a"]), "same label"),
        (lambda: queries.histogram(states=[]), "empty"),
        (lambda: queries.histogram(states="ab"), "states must be a list"),
        (lambda: queries.histogram(states=3), "states must be a list"),
        (lambda: queries.count("run").check(("rest", "walk")), "'run'"),
        (lambda: queries.histogram(states=["a"]).check(("b",)), "leave them out"),
        (lambda: queries.histogram().on(0, 3), "at least 1"),
        (lambda: queries.histogram().on(3, 2), "at least 3"),
        (lambda: queries.histogram().on(1.5, 2), "integer"),
        (lambda: queries.histogram().on(True, 2), "integer"),
        (lambda: queries.histogram().on(3, 9).window(8), "does not fit"),
        (lambda: queries.histogram().on(9).window(8), "does not fit"),
    ],
)
def test_bad_queries_are_refused_with_a_sentence(build, words):
    with pytest.raises(InvalidInputError, match=words):
        build()


def test_a_query_is_a_value():
    assert queries.count("a").on(2, 3) == queries.count("a").on(2, 3)
    assert queries.count("a") != queries.count("b")
    assert hash(queries.histogram()) == hash(queries.histogram())
    assert queries.histogram().on(3, 9).on(1, 2).window(9) == (1, 2)


@pytest.mark.parametrize("size", [2, 16, 17, 255, 256, 300])
@pytest.mark.parametrize("kind", [np.int64, np.uint16, np.min_scalar_type])
def test_pairs_are_counted_right_however_many_states_there_are(size, kind):
    """Against Python's own counting; 17·16 does not fit the 8 bits that 17 states do."""
    codes = np.random.default_rng(size).integers(0, size, 2000)
    narrow = kind(size) if kind is np.min_scalar_type else kind
    found = queries.transitions().evaluate(codes.astype(narrow), range(size))
    counted = Counter(pairwise(codes.tolist()))
    assert found.tolist() == [counted[a, b] for a in range(size) for b in range(size)]
