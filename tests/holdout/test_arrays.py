"""Two sets of rows: alike, not the same, as they are, and recognised again."""

from __future__ import annotations

import threading
from contextlib import suppress

import numpy as np
import pandas
import polars
import pytest
from scipy import sparse

import quiltwork as qw
from quiltwork.holdout import ReusableHoldout
from quiltwork.holdout.arrays import commitment, freeze_rows, freeze_train_and_holdout
from quiltwork.holdout.evaluation import sums_in_private


def rows(n=400, columns=3, seed=0):
    return np.random.default_rng(seed).random((n, columns))


def table(row):
    return np.array([row], dtype=object)


@pytest.mark.parametrize("kind", [float, object])
def test_no_statistic_can_make_the_rows_writable(kind):
    train, held = rows(seed=1).astype(kind), rows(seed=2).astype(kind)
    h = ReusableHoldout(train, held, threshold=0.9, noise=0.0005, budget=3)

    def vandal(data):
        for array in (data, data.base):
            if isinstance(array, np.ndarray):
                try:
                    array.setflags(write=True)
                    array[:] = 1.0
                    array.shape = (-1,)
                except ValueError:
                    pass
        return np.ones(len(train) if data.ndim == 1 else len(data))

    with suppress(qw.InvalidInputError):
        h.ask(vandal)
    with suppress(qw.InvalidInputError):
        h.ask(lambda data: float(vandal(data).sum()), sensitivity=1)
    found = h.ask(lambda data: data[:, 0].astype(float))
    assert found.value == pytest.approx(rows(seed=1)[:, 0].mean(), abs=2**-20)
    _, private = freeze_train_and_holdout(train, held)
    for _ in range(2):
        sums_in_private(vandal, private, 20, None)
        assert private.shape == held.shape
    assert (private == held).all()


@pytest.mark.parametrize("cell", [[1.0], threading.Lock()])
def test_objects_that_a_statistic_could_change_are_refused(cell):
    cells = np.empty((2, 1), dtype=object)
    cells[:, 0] = [cell, 1]
    with pytest.raises(qw.InvalidInputError, match="train holds mutable objects"):
        ReusableHoldout(cells, cells, threshold=0.1, noise=0.1, budget=1)


@pytest.mark.parametrize(
    ("train", "holdout", "words"),
    [
        (rows(), rows(), "the same rows"),
        (rows(), np.empty((0, 3)), "no rows"),
        ((rows(), np.zeros(3)), (rows(seed=2), np.zeros(400)), "same length"),
        (rows(), (rows(seed=2), np.zeros(400)), "same kind"),
        ((rows(), np.zeros(400)), (rows(seed=2),), "2 arrays and holdout 1"),
        (rows(), rows(seed=2)[:, :2], r"\(3,\) and those of holdout \(2,\)"),
        (rows()[:, 0], rows(seed=2), "same columns"),
        ((rows(), ["1"] * 400), (rows(seed=2), [1] * 400), "text in train and numbers in holdout"),
        (
            table([1, "a"]),
            table(["old", "b"]),
            r"Column 1 holds numbers in train and text in holdout",
        ),
        (
            table([1, "a"]),
            table([1.5, True]),
            r"Column 2 holds text in train and numbers in holdout",
        ),
        (table([1, 2]), np.array([["a", "b"]]), "numbers in train and text in holdout"),
        (np.array(["2020-01-01"], "M8[D]"), np.array([5]), "dates in train and numbers in holdout"),
        (np.zeros(3, [("a", "f8")]), np.ones(3, [("b", "f8")]), "an array with fields"),
    ],
)
def test_two_sets_that_do_not_fit_are_refused(train, holdout, words):
    with pytest.raises(qw.InvalidInputError, match=words):
        ReusableHoldout(train, holdout, threshold=0.1, noise=0.01, budget=1)


@pytest.mark.parametrize("kind", [float, object])
def test_the_same_rows_are_recognised_with_missing_values(kind):
    rows = np.array([[1.0], [np.nan], [3.0]], dtype=kind)
    with pytest.raises(qw.InvalidInputError, match="the same rows"):
        ReusableHoldout(rows, rows.copy(), threshold=0.1, noise=0.1, budget=1)
    other = np.array([[1.0], [2.0], [np.nan]], dtype=kind)
    ReusableHoldout(rows, other, threshold=0.1, noise=0.1, budget=1)


def test_the_data_given_are_copied_so_that_later_changes_do_not_matter():
    inside = rows(seed=2)
    h = ReusableHoldout(rows(seed=1), inside, threshold=0.1, noise=0.0005, budget=1)
    inside[:] = 1.0
    assert not h.ask(lambda data: data[:, 0]).overfit


@pytest.mark.parametrize("kind", [np.dtype("longdouble"), np.dtype(object), np.dtype("U3")])
def test_rows_of_any_type_are_recognised_however_their_memory_is_laid_out(kind):
    """Bytes behind pointers and in long floats are whatever was there before."""

    def filled(background, extra=0):
        array = np.empty(6, kind)
        if not kind.hasobject:
            array.view("u1")[:] = background
        array[:] = np.arange(6) + extra
        return array

    key = "00" * 32
    assert commitment(key, filled(0)) == commitment(key, filled(255))
    assert commitment(key, filled(0)) != commitment(key, filled(0, extra=1))
    assert commitment(key, filled(0)) != commitment("11" * 32, filled(0))


FRAMES = {
    "pandas": lambda rows: pandas.DataFrame({"a": rows[:, 0], "b": ["x"] * len(rows)}),
    "polars": lambda rows: polars.DataFrame({"a": rows[:, 0], "b": ["x"] * len(rows)}),
    "sparse": lambda rows: sparse.csr_array(rows),
}


@pytest.mark.parametrize("kind", FRAMES)
def test_frames_reach_a_statistic_as_frames_and_stay_as_they_are(kind):
    make, rng = FRAMES[kind], np.random.default_rng(0)
    train, held = make(rng.random((50, 2))), make(rng.random((60, 2)))

    def spoil(rows):
        assert type(rows) is type(train)
        values = rows.toarray()[:, 0] if kind == "sparse" else rows["a"].to_numpy().copy()
        with suppress(Exception):
            if kind == "sparse":
                rows.data[:] = 0
            else:
                rows["a"] = 0.0
        with suppress(Exception):
            rows["a"].to_numpy()[:] = 0
        return values

    h = qw.ReusableHoldout(train, held, threshold=0.9, noise=0.01, budget=2)
    first = h.ask(spoil).value
    assert h.ask(spoil).value == first > 0.3
    for other in (make(rng.random((50, 2)))[:, :1] if kind == "sparse" else train[["b", "a"]],):
        with pytest.raises(qw.InvalidInputError, match="different columns"):
            qw.ReusableHoldout(other, held, threshold=0.9, noise=0.01, budget=2)
    with pytest.raises(qw.InvalidInputError, match="the same rows"):
        qw.ReusableHoldout(train, train, threshold=0.9, noise=0.01, budget=2)
    assert commitment("00", freeze_rows(train, "x")) != commitment("00", freeze_rows(held, "x"))


def test_one_row_that_fails_costs_a_few_passes_and_counts_as_0():
    calls = []

    def fails(rows):
        calls.append(len(rows))
        if (rows < 0).any():
            raise ValueError("as scikit-learn does for NaN")
        return np.ones(len(rows))

    held = np.ones(4096)
    held[1234] = -1
    assert sums_in_private(fails, held, 20, None) == [4095 << 20]
    assert len(calls) < 60
    assert sum(calls) < 4 * 4096
