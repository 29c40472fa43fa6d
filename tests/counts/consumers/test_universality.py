from __future__ import annotations

from itertools import product

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from quiltwork.counts.consumers.loss_functions import (
    CallableLoss,
    ErrorLoss,
    MatrixLoss,
    asymmetric,
)
from quiltwork.counts.consumers.universality import (
    crosses_once,
    has_decreasing_differences,
    is_unimodal,
    monotone_failure,
    universality,
)
from tests.counts.oracle import NAMED

TABLES = st.integers(1, 4).flatmap(
    lambda n: st.lists(
        st.lists(st.integers(0, 3), min_size=n + 1, max_size=n + 1), min_size=n + 1, max_size=n + 1
    )
)


def is_monotone(table):
    """The paper's condition, word by word."""
    size = range(len(table))
    return all(
        table[i][r] <= table[i][s]
        for i, r, s in product(size, size, size)
        if abs(i - r) <= abs(i - s)
    )


@given(TABLES)
def test_monotonicity_is_the_papers(table):
    losses = np.array(table, dtype=float)
    assert (monotone_failure(losses) == "") is is_monotone(table)


@given(TABLES)
def test_each_condition_implies_single_crossing(table):
    losses = np.array(table, dtype=float)
    if is_monotone(table) or has_decreasing_differences(losses):
        assert crosses_once(losses)


@given(st.lists(st.integers(0, 4), min_size=3, max_size=4), st.data())
def test_unimodal_functions_of_the_error_cross_once(right, data):
    n = len(right)
    left = sorted(data.draw(st.lists(st.integers(0, 9), min_size=n, max_size=n)), reverse=True)
    by_error = np.array([*left, 0, *sorted(right)], dtype=float)
    assert is_unimodal(by_error)
    counts = np.arange(n + 1)
    assert crosses_once(by_error[counts[None, :] - counts[:, None] + n])


@pytest.mark.parametrize("loss", NAMED, ids=lambda loss: loss.name)
def test_what_is_known_of_named_losses_is_what_their_tables_say(loss):
    n = 7
    counts = np.arange(n + 1)
    table = loss.table(counts[:, None], counts[None, :])
    known = universality(loss, n)
    assert known.condition == universality(MatrixLoss(table), n).condition
    assert (known.condition == "monotone") is (monotone_failure(table) == "")


def test_failures_are_named():
    result = universality(CallableLoss(lambda i, r: (i + r) % 2), 4)
    assert result.condition == "fails"
    assert not result.proven
    assert "although answer" in result.detail
    lopsided = universality(ErrorLoss(lambda e: 2 * e if e > 0 else -e), 5)
    assert lopsided.condition == "single crossing"
    assert "error 1 costs 2 and error -1 costs 1" in lopsided.detail
    assert universality(asymmetric(2, 1), 1).condition == "single crossing"


def test_functions_of_the_error_are_decided_at_any_size():
    assert universality(ErrorLoss(lambda e: min(abs(e), 9)), 50_000).condition == "monotone"


def test_other_large_losses_are_left_open():
    assert universality(CallableLoss(lambda i, r: 0), 10_000).condition == "not decided"


@settings(max_examples=20)
@given(st.integers(2, 5), st.integers(0, 10**6))
def test_single_crossing_survives_relabelling_rows_by_weights(n, seed):
    """Multiplying a count's losses by its prior does not change which answer it prefers."""
    rng = np.random.default_rng(seed)
    counts = np.arange(n + 1)
    losses = np.abs(counts[:, None] - counts[None, :]) * rng.integers(1, 9, n + 1)[:, None]
    assert crosses_once(losses.astype(float))
