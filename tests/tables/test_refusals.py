"""What is no table, no m, no path, no seed and no answer gets a sentence."""

from __future__ import annotations

import numpy as np
import pandas
import pytest

from quiltwork.errors import InvalidInputError
from quiltwork.tables import (
    Custom,
    KAnonymity,
    Table,
    anonymize,
    max_m,
    query_error,
    verify_m_privacy,
)
from quiltwork.tables.codes.histogram import SecretCounts

FRAME = pandas.DataFrame({"p": [*"AB"] * 4, "q": range(8), "s": [*"aabbccdd"]})
TABLE = Table(FRAME, "p", ["q"], "s")
K = KAnonymity(2)


def fails(counts):
    raise KeyError("absent")


@pytest.mark.parametrize(
    ("ask", "message"),
    [
        (lambda: anonymize(FRAME, K, 0), "Pass a Table, not a DataFrame"),
        (lambda: verify_m_privacy(FRAME, K, 0), "Pass a Table, not a DataFrame"),
        (lambda: max_m(FRAME, K), "Pass a Table, not a DataFrame"),
        (lambda: query_error(FRAME, TABLE), "Pass a Table, not a DataFrame"),
        (lambda: query_error(TABLE, FRAME), "the result of anonymize"),
        (lambda: query_error(TABLE, TABLE, 10, -1), "seed must be at least 0"),
        (lambda: query_error(TABLE, TABLE, 10, "x"), "seed must be an integer"),
        (lambda: query_error(TABLE, TABLE, 10, 1.5), "seed must be an integer"),
        (lambda: anonymize(TABLE, K, 10**30), "m must be at most"),
        (lambda: verify_m_privacy(TABLE, K, 2**31), "m must be at most"),
        (lambda: anonymize(TABLE, K, 0, progress=5), "progress must be a function"),
        (lambda: anonymize(TABLE, K, 0).write(None), "must be the name of a file"),
        (lambda: anonymize(TABLE, fails, 0), "fails raised KeyError;"),
        (lambda: anonymize(TABLE, lambda counts: float("nan"), 0), "True or False, not a float"),
        (lambda: verify_m_privacy(TABLE, lambda counts: "x", 0), "True or False, not a str"),
        (lambda: verify_m_privacy(TABLE, lambda counts: None, 0), "True or False, not a NoneType"),
    ],
)
def test_what_cannot_be_asked_is_refused_with_a_sentence(ask, message):
    with pytest.raises(InvalidInputError, match=message):
        ask()


def test_all_providers_may_be_asked_about_and_numpy_may_answer():
    assert verify_m_privacy(TABLE, KAnonymity(1), 2**31 - 1).private
    assert verify_m_privacy(TABLE, lambda counts: np.bool_(len(counts) > 0), 0).private


@pytest.mark.parametrize("answer", [float("nan"), "x", None])
def test_a_score_that_is_no_number_is_refused(answer):
    custom = Custom(lambda counts: True, score=lambda counts: answer, name="mine")
    with pytest.raises(InvalidInputError, match="score of mine must be a number"):
        custom.fitness(SecretCounts.of([0]))
