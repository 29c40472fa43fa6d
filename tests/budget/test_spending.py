"""A spending is an exact record: its charges are those of the query, and it survives JSON."""

from __future__ import annotations

import inspect
import json
from decimal import Decimal
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from quiltwork import queries
from quiltwork.beliefs import MarkovChain
from quiltwork.budget import Spending
from quiltwork.errors import InvalidInputError, UnsupportedError
from quiltwork.queries.numbers import NumericMean, NumericSum

HOSTILE = [0, -1, True, "1", None, float("nan"), float("inf"), -float("inf"), b"1", [1], 1j]


@pytest.mark.parametrize("value", HOSTILE)
def test_a_level_that_is_no_positive_number_is_refused(value):
    with pytest.raises(InvalidInputError):
        Spending.dp(value, 1, 10)


@pytest.mark.parametrize(
    "value", [1, 0.1, 1e-300, Fraction(1, 3), Decimal("0.25"), np.float64(0.5), 10**30]
)
def test_a_level_is_read_exactly(value):
    expected = Fraction(str(value)) if isinstance(value, float) else Fraction(value)
    assert Spending.dp(value, 1, 10).dp_epsilon == expected


@pytest.mark.parametrize(
    ("start", "stop"), [(0, 3), (4, 3), (1.0, 3), (True, 3), ("1", 3), (1, None)]
)
def test_a_window_that_is_none_is_refused(start, stop):
    with pytest.raises(InvalidInputError):
        Spending.dp(1, start, stop)


QUERIES = [
    queries.count(1),
    queries.histogram(),
    queries.frequencies(),
    queries.transitions(),
    queries.most_common(),
    queries.mean(0, 1),
    queries.sum(0, 1),
    queries.custom(lambda x: x.sum(), lipschitz=1),
    queries.top(2),
    queries.by_hour("10min"),
    queries.time_per_day(1),
    NumericSum(lo=0, hi=1, bits=3),
    NumericMean(lo=0, hi=1, bits=3),
]


def test_every_query_is_among_those_whose_charges_are_checked():
    def below(kind):
        return {kind, *(one for child in kind.__subclasses__() for one in below(child))}

    concrete = {
        one
        for one in below(queries.Query)
        if not inspect.isabstract(one) and one.__module__.startswith("quiltwork.")
    }
    assert concrete == {type(query) for query in QUERIES}


@given(
    st.sampled_from(QUERIES),
    st.integers(1, 8).flatmap(
        lambda n: st.tuples(st.just(n), st.integers(1, n), st.integers(1, n))
    ),
    st.fractions(Fraction(1, 9), 9),
)
def test_the_charges_of_a_query_are_its_change_over_the_scale(query, place, scale):
    length, a, b = place
    start, stop = min(a, b), max(a, b)
    asked = query.on(start, stop)
    per_point_only = query.sensitivity[1:] == (0, 0)
    if stop > start + 1 and per_point_only:  # two runs, the first of one time point
        asked = query.on_runs([(start, start), (start + 2, stop)])
    spending = Spending.of_query(asked, scale, length)
    for first in range(1, length + 1):
        for last in range(first, length + 1):
            change = Fraction(int(asked.l1_sensitivity(first, last, length)))
            assert spending.cost(first, last) == change / scale
    single = [int(asked.l1_sensitivity(i, i, length)) for i in range(1, length + 1)]
    assert spending.dp_epsilon == max(single) / scale


def test_transition_counts_cost_what_the_theory_says():
    whole = Spending.of_query(queries.transitions(), 1, 100)
    assert whole.dp_epsilon == 4
    assert [whole.cost(11, 10 + n) for n in (1, 2, 5)] == [4, 6, 12]
    assert whole.cost(1, 100) == 2 * 99


def test_a_release_is_recorded_with_its_own_noise():
    from quiltwork.series import release

    chain = MarkovChain([[0.9, 0.1], [0.4, 0.6]])
    made = release([0, 1] * 20, queries.histogram().on(3, 9), chain, epsilon=0.5)
    spending = made.spending
    assert (spending.start, spending.stop, spending.epsilon) == (3, 9, Fraction(1, 2))
    assert spending.per_point == 2 / made.noise_scale
    assert spending.quilts is not None


def test_a_release_without_noise_has_no_level():
    from quiltwork.series import release

    certain = MarkovChain([[0, 1], [1, 0]], initial=[1, 0])
    made = release([0, 1] * 5, queries.histogram(), certain, epsilon=1)
    with pytest.raises(UnsupportedError, match="no noise"):
        _ = made.spending


@given(
    st.integers(1, 20),
    st.integers(0, 20),
    st.lists(st.fractions(0, 10, max_denominator=10**20), min_size=3, max_size=3),
    st.text(max_size=5),
)
def test_a_record_comes_back_from_json_exactly(start, more, costs, label):
    spending = Spending(start, start + more, *costs, quilts="exact at scale 3", label=label)
    assert Spending.from_body(json.loads(json.dumps(spending.to_body()))) == spending


@pytest.mark.parametrize(
    "change",
    [
        {"per_point": 0.5},
        {"per_point": "x"},
        {"per_point": "1/0"},
        {"per_point": "-1"},
        {"start": "1"},
        {"start": 0},
        {"stop": None},
        {"unknown": 1},
        {"composes_by": "hope"},
        {"composes_by": "nothing"},
        {"composes_by": "general", "epsilon": "1", "per_point": "0"},
        {"divergence": "1"},
        {"label": 3},
    ],
)
def test_a_damaged_record_is_refused_with_a_sentence(change):
    body = Spending.dp(0.1, 1, 10).to_body() | change
    with pytest.raises(InvalidInputError) as refusal:
        Spending.from_body(body)
    assert len(str(refusal.value)) > 15


def test_an_uncapped_mechanism_is_recorded_by_its_level_alone():
    alone = Spending(1, 10, composes_by="nothing", epsilon=Fraction(1))
    assert alone.dp_epsilon is None
    with pytest.raises(InvalidInputError):
        Spending(1, 10, composes_by="nothing")
    with pytest.raises(InvalidInputError):
        Spending(1, 10, per_point=Fraction(1), composes_by="nothing", epsilon=Fraction(1))


def test_sums_tell_the_range_that_values_were_clipped_to():
    known = Spending.of_query(queries.sum(0, 5), 10, 100)
    assert known.span == 5
    assert Spending.from_body(known.to_body()) == known == known.times(1)
    assert Spending.of_query(queries.count(1), 10, 100).span is None
    assert "span" not in Spending.dp(1, 1, 2).to_body()
    on_grid = NumericSum(lo=0, hi=1, bits=3).on(4, 4)
    single = Spending.of_query(on_grid, 1, 100)
    assert (single.per_point, single.once) == (8, 1)
