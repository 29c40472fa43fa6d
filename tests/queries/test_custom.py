"""Custom queries: rounding is charged, failures say nothing about the data."""

from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from quiltwork import InvalidInputError, UnsupportedError, queries
from tests.sizes import sample


@given(
    lipschitz=st.fractions(min_value=Fraction(1, 10**6), max_value=10**6),
    before=st.lists(st.fractions(-(10**3), 10**3), min_size=1, max_size=4),
    shares=st.lists(st.integers(-100, 100), min_size=4, max_size=4),
    points=st.integers(1, 5),
)
@settings(max_examples=sample(100, full=200), deadline=None)
def test_rounded_answers_of_neighbours_differ_by_at_most_change(lipschitz, before, shares, points):
    """Two real answers at L1 distance points·lipschitz, wherever they lie on the grid."""
    moved = shares[: len(before)]
    weight = sum(map(abs, moved)) or 1
    after = [
        b + lipschitz * points * Fraction(s, weight) for b, s in zip(before, moved, strict=True)
    ]
    cells = [str(i) for i in range(len(before))]
    answers = iter([before, after])
    query = queries.custom(lambda _: next(answers), lipschitz=lipschitz, cells=cells)
    first, second = (query.evaluate(np.zeros(9, dtype=np.int64), (0,)) for _ in range(2))
    assert int(np.abs(first - second).sum()) <= query.l1_sensitivity(1, points, 9)


def test_rounding_is_charged_once_per_release_and_coordinate():
    query = queries.custom(lambda x: [0, 0, 0], lipschitz=1, cells=["a", "b", "c"])
    steps = int(1 / query.step)
    assert [int(query.l1_sensitivity(1, n, 9)) for n in (1, 2)] == [steps + 3, 2 * steps + 3]
    assert query.on(5, 6).l1_sensitivity(1, 2, 9) == 0


def test_leaving_the_rounding_out_would_understate_the_change():
    """A negative control: 0.49 and 0.51 steps round to 0 and 1, fifty times their distance."""
    answers = iter([Fraction(49, 100), Fraction(51, 100)])
    query = queries.custom(lambda _: next(answers) * query.step, lipschitz=1)
    first, second = (int(query.evaluate(np.zeros(1, dtype=np.int64), (0,))[0]) for _ in range(2))
    assert (first, second) == (0, 1)


def test_the_function_sees_labels_of_the_window_only():
    seen = []
    query = queries.custom(lambda x: seen.append(x.tolist()) or 0, lipschitz=1).on(2, 3)
    query.evaluate(np.array([0, 1, 0, 1]), ("rest", "walk"))
    assert seen == [["walk", "rest"]]
    seen.clear()
    query.evaluate(np.array([0, 1, 0, 1]), ((0, 1), (1, 1)))
    assert seen == [[(1, 1), (0, 1)]]


@pytest.mark.parametrize(
    "function",
    [
        lambda x: 1 / 0,
        lambda x: float("nan"),
        lambda x: float("inf"),
        lambda x: "3",
        lambda x: None,
        lambda x: [1, 2],
        lambda x: [],
        lambda x: 1j,
        lambda x: {"a": 1}["the secret is " + x[0]],
    ],
)
def test_a_failure_on_the_data_shows_nothing_of_it(function):
    query = queries.custom(function, lipschitz=1, name="mine")
    with pytest.raises(InvalidInputError, match="'mine' failed") as caught:
        query.evaluate(np.array([0, 1]), ("sick", "well"))
    assert "sick" not in str(caught.value)
    assert caught.value.__context__ is None
    assert caught.value.__cause__ is None


def test_mistakes_show_in_a_rehearsal_on_public_input():
    query = queries.custom(lambda x: x.mean(), lipschitz=1)
    with pytest.raises(InvalidInputError, match="fails on 3 times 'rest'"):
        query.rehearse(3, ("rest", "walk"))
    queries.custom(lambda x: len(x), lipschitz=1).rehearse(3, ("rest",))


@pytest.mark.parametrize("size", [1e15, -1e15, 10**30, -1e200, 1e300, Fraction(10**40, 3)])
def test_answers_of_any_size_are_kept(size):
    """Within half a step, and not moved to the end of some range."""
    query = queries.custom(lambda x: [size, x.sum()], lipschitz=1, cells=["size", "sum"])
    large, small = query.evaluate(np.array([1, 1, 0]), (0, 1))
    assert abs(large * query.step - Fraction(size)) <= query.step / 2
    assert small * query.step == 2


@pytest.mark.parametrize("size", [1.1e300, -(10**301), 10**400, Fraction(10**310, 3)])
def test_answers_beyond_the_range_are_no_answers(size):
    query = queries.custom(lambda x: size, lipschitz=1, name="vast")
    with pytest.raises(InvalidInputError, match="between -1e300 and 1e300"):
        query.rehearse(3, (0, 1))
    with pytest.raises(InvalidInputError, match="'vast' failed"):
        query.evaluate(np.array([0]), (0, 1))


@pytest.mark.parametrize(
    ("build", "words"),
    [
        (lambda: queries.custom(3, lipschitz=1), "function"),
        (lambda: queries.custom(len, lipschitz=0), "greater than 0"),
        (lambda: queries.custom(len, lipschitz=True), "number"),
        (lambda: queries.custom(len, lipschitz=float("inf")), "finite"),
        (lambda: queries.custom(len, lipschitz=1, cells=[]), "empty"),
        (lambda: queries.custom(len, lipschitz=1, cells=[{}]), "label"),
    ],
)
def test_bad_declarations_are_refused(build, words):
    with pytest.raises(InvalidInputError, match=words):
        build()


def test_a_query_from_a_file_has_no_function():
    query = queries.from_document(queries.to_document(queries.custom(len, lipschitz=1)))
    with pytest.raises(UnsupportedError, match="'len' was read from a file"):
        query.check((0,))


def test_present_gives_a_number_or_one_per_cell():
    one = queries.custom(len, lipschitz=1)
    assert one.present(np.array([3], dtype=object), (0,), 5) == 3 * float(one.step)
    two = queries.custom(len, lipschitz=1, cells=["a", "b"])
    assert two.present(np.array([65536, -1], dtype=object), (0,), 5).tolist() == [1.0, -(2.0**-16)]


@pytest.mark.parametrize("kind", [ValueError, SystemExit, KeyboardInterrupt, GeneratorExit])
def test_where_a_ledger_pays_no_failure_of_a_function_escapes(kind):
    def ends(values):
        raise kind("".join(map(str, values)))

    query = queries.custom(ends, lipschitz=1)
    assert query.evaluate_quietly(np.zeros(4, dtype=np.int64), (0, 1)).tolist() == [0]
