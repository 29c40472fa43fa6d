from __future__ import annotations

from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import quiltwork as qw
from quiltwork.budget import Ledger
from quiltwork.counts import derive
from quiltwork.counts.optimality.exact_matrix import compose
from quiltwork.counts.several_levels import (
    LevelledCount,
    draw_step,
    nothing_added,
    release_levels,
)
from quiltwork.errors import InvalidInputError
from tests.counts.oracle import ALPHAS, geometric


def step_matrix(n, before, after):
    """The remap that makes G at level `after` out of G at level `before`."""
    return derive(geometric(n, after), before).remap


def generating_function(alpha, z):
    """E z^Z of two-sided geometric noise, where it converges."""
    return (1 - alpha) ** 2 / ((1 - alpha * z) * (1 - alpha / z))


@settings(max_examples=40)
@given(st.lists(ALPHAS, min_size=2, max_size=2).map(sorted), st.data())
def test_a_step_turns_one_noise_into_the_other_exactly(levels, data):
    """Generating functions multiply; equality at more points than their degree is equality."""
    before, after = levels
    stay = nothing_added(before, after)
    assert 0 < stay <= 1
    for k in range(1, 6):
        z = 1 + (1 / after - 1) * Fraction(k, 7)
        step = stay + (1 - stay) * generating_function(after, z)
        assert generating_function(before, z) * step == generating_function(after, z)


@settings(max_examples=40)
@given(st.integers(1, 5), st.lists(ALPHAS, min_size=3, max_size=3).map(sorted))
def test_within_the_range_the_steps_are_remaps_of_g(n, levels):
    first = step_matrix(n, levels[0], levels[1])
    second = step_matrix(n, levels[1], levels[2])
    assert all(min(row) >= 0 and sum(row) == 1 for row in first + second)
    middle = compose(geometric(n, levels[0]), first)
    assert middle == geometric(n, levels[1])
    assert compose(middle, second) == geometric(n, levels[2])


@settings(max_examples=40)
@given(st.integers(1, 3), st.lists(ALPHAS, min_size=2, max_size=2).map(sorted))
def test_colluding_recipients_learn_no_more_than_the_least_private(n, levels):
    """The joint law of both answers, by enumeration, keeps the first level."""
    g, step = geometric(n, levels[0]), step_matrix(n, levels[0], levels[1])
    for i in range(n):
        for a in range(n + 1):
            for b in range(n + 1):
                here, below = g[i][a] * step[a][b], g[i + 1][a] * step[a][b]
                assert levels[0] * here <= below
                assert levels[0] * below <= here


def test_fresh_noise_for_each_would_leak_more():
    """The negative control: two independent answers break the first level."""
    n, levels = 2, [Fraction(1, 2), Fraction(3, 5)]
    one, two = (geometric(n, level) for level in levels)
    worst = min(
        one[i + 1][a] * two[i + 1][b] / (one[i][a] * two[i][b])
        for i in range(n)
        for a in range(n + 1)
        for b in range(n + 1)
    )
    assert worst < levels[0]


def test_going_back_is_impossible():
    assert not derive(geometric(3, Fraction(1, 4)), Fraction(1, 2)).derivable


@pytest.mark.parametrize(("before", "after"), [(Fraction(1, 2), Fraction(4, 5))])
def test_drawn_steps_have_the_right_spread(before, after):
    """The bounds are 7 and 14 standard deviations."""
    drawn = np.array([draw_step(before, after) for _ in range(20_000)])
    variance = 2 * after / (1 - after) ** 2 - 2 * before / (1 - before) ** 2
    assert drawn.var() == pytest.approx(float(variance), rel=0.12)
    assert (drawn == 0).mean() == pytest.approx(
        float(nothing_added(before, after) + (1 - nothing_added(before, after)) / 9), abs=0.04
    )


def test_only_the_least_private_level_is_paid(tmp_path):
    ledger = Ledger.open(f"sqlite:///{tmp_path}/budget.db")
    ledger.create("d", qw.Clusters(range(100)), None, 2)
    answer = release_levels(40, 100, epsilons=[2, 1, 0.5], ledger=ledger, dataset="d", key="k")
    assert [debit.spending.per_point for debit in ledger.history("d")] == [2]
    assert answer.dp_epsilon == 2
    assert len(answer.values) == 3
    assert all(0 <= value <= 100 for value in answer.values)
    again = release_levels(40, 100, epsilons=[2, 1, 0.5], ledger=ledger, dataset="d", key="k")
    assert again == answer
    assert LevelledCount.from_json(answer.to_json()) == answer


def test_a_later_level_too_near_to_1_is_refused_before_paying(tmp_path):
    ledger = Ledger.open(f"sqlite:///{tmp_path}/budget.db")
    ledger.create("d", qw.Clusters(range(100)), None, 1)
    levels = [Fraction(1, 2), 1 - Fraction(1, 2**60)]
    with pytest.raises(InvalidInputError, match="alpha must not lie within"):
        release_levels(2, 100, alphas=levels, ledger=ledger, dataset="d")
    assert ledger.history("d") == ()


def test_equal_levels_get_equal_answers():
    answer = release_levels(40, 100, alphas=[0.5, 0.5])
    assert answer.noisy[0] == answer.noisy[1]


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        ({}, "once"),
        ({"alphas": [0.5], "epsilons": [1]}, "once"),
        ({"alphas": [0.5, 0.4]}, "least private"),
        ({"epsilons": [1, 2]}, "least private"),
        ({"alphas": [0, 0.5]}, "0 < alpha < 1"),
        ({"alphas": []}, "at least one"),
        ({"alphas": [0.5], "count": 11}, "count"),
    ],
)
def test_levels_come_in_order(arguments, words):
    with pytest.raises(InvalidInputError, match=words):
        release_levels(**{"count": 4, "n": 10} | arguments)
