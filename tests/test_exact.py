from __future__ import annotations

import tempfile
from fractions import Fraction
from math import inf

import numpy as np
import pytest

import quiltwork as qw
from quiltwork.counts import release_table
from quiltwork.errors import InvalidInputError
from quiltwork.exact import (
    float_nearest,
    integer,
    parse_stored_fraction,
    positive_fraction,
    shortened,
    to_fraction,
)


@pytest.mark.parametrize(
    ("read", "shown"),
    [
        (lambda: to_fraction(np.float64("nan"), "alpha"), "alpha must be finite, not nan."),
        (lambda: to_fraction(np.float32("inf"), "alpha"), "alpha must be finite, not inf."),
        (lambda: to_fraction(np.bool_(True), "alpha"), "alpha must be a number, not True; give"),
        (lambda: positive_fraction(np.float64(-0.5), "epsilon"), "greater than 0, not -0.5."),
        (lambda: integer(np.float64(2.5), "n", 1), "n must be an integer, not 2.5."),
        (lambda: integer(np.int64(0), "n", 1), "n must be at least 1, not 0."),
    ],
)
def test_numpy_numbers_are_shown_as_plain_ones(read, shown):
    with pytest.raises(InvalidInputError) as refused:
        read()
    assert shown in str(refused.value)
    assert "np." not in str(refused.value)


def test_long_values_are_shown_in_part():
    with pytest.raises(InvalidInputError, match=r"n must be at least 1, not -1{39}… \(201 char"):
        integer(-int("1" * 200), "n", 1)


def new_ledger():
    return qw.Ledger.open(f"sqlite:///{tempfile.mkdtemp()}/budget.db")


LEVELS = {
    "calibrate": lambda chain, level: qw.calibrate(chain, 2, level),
    "optimal-scale": lambda chain, level: qw.calibrate(chain, 2, level, method="optimal-scale"),
    "release": lambda chain, level: qw.release([0, 1], qw.queries.count(1), chain, epsilon=level),
    "preview": lambda chain, level: qw.preview(qw.queries.count(1), chain, length=2, epsilon=level),
    "curve": lambda chain, level: qw.influence_curve(chain, 2).dp_epsilon(level),
    "bayesian": lambda chain, level: qw.dp_for_bayesian_dp(chain, level, length=2),
    "plan": lambda chain, level: qw.plan(
        chain, length=2, budget=level, queries=[qw.queries.count(1)]
    ),
    "bayesian_dp": lambda chain, level: qw.bayesian_dp(chain, level, length=2),
    "account": lambda chain, level: qw.Accountant(chain, 2, level),
    "ledger": lambda chain, level: new_ledger().create("d", chain, 2, level),
    "count": lambda chain, level: qw.GeometricMechanism(2, epsilon=level),
    "table": lambda chain, level: release_table({"a": 1, "b": 1}, epsilon=level),
}


@pytest.mark.parametrize("name", LEVELS)
def test_levels_that_nobody_means_are_noticed_wherever_noise_is_chosen(name):
    chain = qw.MarkovChain([[0.5, 0.5], [0.5, 0.5]])
    LEVELS[name](chain, 99)
    with pytest.warns(qw.QuiltworkWarning, match="is 100: .*which protects nothing"):
        LEVELS[name](chain, 100)


@pytest.mark.parametrize("text", ["3", "-1/10", "0", "9" * 4000])
def test_exact_numbers_of_files_are_read_as_they_are_written(text):
    assert str(parse_stored_fraction(text, "x")) == text


@pytest.mark.parametrize(
    "text",
    [
        "1e10000000",
        "0.5",
        " 1",
        "1/0",
        "1/00",
        "1_0",
        "+1",
        "",
        "٣",
        "9" * 4001,
        1,
        None,
        0.5,
        [],
        b"1",
    ],
)
def test_nothing_else_is_read_from_files(text):
    with pytest.raises(InvalidInputError, match="x must be an exact number as text"):
        parse_stored_fraction(text, "x")


def test_the_nearest_float_is_infinite_beyond_the_largest():
    assert [float_nearest(Fraction(n)) for n in (10**400, -(10**400), 3)] == [inf, -inf, 3.0]


def test_what_cannot_be_shown_is_named_by_its_type():
    class Silent:
        def __repr__(self):
            raise RuntimeError

    assert shortened(Silent()) == "a Silent"
