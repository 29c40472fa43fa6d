"""Evaluates a statistic as exact integer sums, first on the training rows, then on the holdout.

A value in [0, 1] becomes a whole number of steps of 2^-bits, and steps are added exactly: replacing
one row moves the sum by at most 2^bits, with no rounding error to charge
(`docs/theory/public-grid.md`).

The statistic sees the training rows first, so its mistakes show there. On the holdout it cannot
fail: a row without a value in [0, 1] counts as 0, or is clipped, and no warning, error or exit gets
out. Timing does: a statistic that fails on the holdout, or mixes rows, is evaluated row by row.
"""

from __future__ import annotations

import os
import threading
import warnings
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from fractions import Fraction
from functools import lru_cache
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

from quiltwork.errors import InvalidInputError
from quiltwork.exact import shortened, to_fraction
from quiltwork.holdout.algorithm import (
    AlgorithmSettings,
    QueryValues,
    mean_question,
    number_question,
)
from quiltwork.holdout.arrays import Data, count_rows, shown, take

Statistic: TypeAlias = Callable[[Any], Any]
_SPOT_CHECKED = 8
_RANDOM_CHECKS = (1, 2, 256)
_BLOCK = 1 << 15
"""Values summed at a time, few enough to stay in the processor's cache."""

NEEDS_SENSITIVITY = (
    "The statistic returned a single number. Give one value in [0, 1] per row, or declare how far "
    "replacing one row can move the number: sensitivity=. F1, AUC and R² are not means over rows "
    "and have no useful proven sensitivity; ask for accuracy, Brier score or a clipped error."
)


@dataclass(frozen=True)
class TrainingQuery:
    """A statistic evaluated on the training rows.

    `known` is its training value, or the sums of its values by column, in steps; `columns` is None
    for one value per row, or a number.
    """

    statistic: Statistic
    sensitivity: Fraction | None
    known: tuple[int | Fraction, ...]
    columns: int | None = None


def prepare(
    settings: AlgorithmSettings, public: Data, statistic: Statistic, sensitivity: Fraction | None
) -> TrainingQuery:
    """Evaluate a statistic on the training rows only."""
    check_statistic(statistic, "A statistic")
    if sensitivity is not None:
        return TrainingQuery(statistic, sensitivity, (_number_in_public(statistic, public),))
    sums, columns = _sums_in_public(statistic, public, settings.bits)
    return TrainingQuery(statistic, None, tuple(sums), columns)


def evaluate(
    settings: AlgorithmSettings, private: Data, query: TrainingQuery, train_rows: int
) -> list[QueryValues]:
    """Evaluate a prepared statistic on the holdout, where it cannot fail."""
    if query.sensitivity is not None:
        train_value = Fraction(query.known[0])
        holdout_value = _number_in_private(query.statistic, private)
        # A failure breaks the declared sensitivity; repeating the training value reveals nothing.
        value = train_value if holdout_value is None else holdout_value
        return [number_question(settings, value, train_value, query.sensitivity)]
    sums = sums_in_private(query.statistic, private, settings.bits, query.columns)
    return [
        mean_question(settings, holdout_value, int(train_value), train_rows)
        for holdout_value, train_value in zip(sums, query.known, strict=True)
    ]


def check_statistic(statistic: object, name: str) -> None:
    """Refuse anything that is not a function."""
    if not callable(statistic):
        raise InvalidInputError(
            f"{name} must be a function from rows to values in [0, 1], not {shortened(statistic)}."
        )


def _sums_in_public(statistic: Statistic, data: Data, bits: int) -> tuple[list[int], int | None]:
    """Return the sums of steps, one per question, and the number of columns or None."""
    values = _values_in_public(statistic, shown(data))
    if values.ndim == 0:
        raise InvalidInputError(NEEDS_SENSITIVITY)
    if values.ndim > 2 or len(values) != count_rows(data):
        raise InvalidInputError(
            f"The statistic returned an array of shape {values.shape} for {count_rows(data)} rows; "
            "return one value per row, or one column per question."
        )
    if not _inside(values):
        wrong = ~((values >= 0) & (values <= 1))
        row = int(np.argwhere(wrong)[0][0])
        raise InvalidInputError(
            f"The statistic gave training row {row + 1} the value {float(values[wrong][0])}; "
            "values must lie in [0, 1]. Divide by the range and clip."
        )
    if _mixes_rows(lambda rows: _values_in_public(statistic, take(data, rows)), values):
        raise InvalidInputError(
            "The statistic's value of a row depends on other rows, so one row could move the mean "
            "by more than its share. Compute means, ranks and thresholds on the training rows "
            "first, and use them as constants."
        )
    return _add_up(values, bits), values.shape[1] if values.ndim == 2 else None


def _values_in_public(statistic: Statistic, data: Data) -> NDArray[Any]:
    try:
        values = np.asarray(statistic(data))
    except Exception as error:
        raise InvalidInputError(
            f"The statistic failed on the training rows: {type(error).__name__}: "
            f"{str(error).rstrip('.')}."
        ) from error
    if values.dtype != bool:
        try:
            values = values.astype(float, copy=False)
        except (OverflowError, TypeError, ValueError):
            raise InvalidInputError(
                f"The statistic returned {values.dtype} instead of numbers in [0, 1]."
            ) from None
    return values


def _mixes_rows(
    evaluate_rows: Callable[[NDArray[Any]], NDArray[Any]], values: NDArray[Any]
) -> bool:
    """Whether some rows get other values alone than among all rows.

    This finds mistakes and proves nothing: a statistic may mix rows in ways that no subset reveals.
    """
    for rows in _spot_checks(len(values)):
        alone, among = evaluate_rows(rows), values[rows]
        if alone.shape != among.shape:
            return True
        if (alone == among).all():
            continue
        if alone.dtype == among.dtype == bool:
            return True
        if not np.allclose(alone, among, atol=1e-6, equal_nan=True):
            return True
    return False


def _spot_checks(count: int) -> Iterator[NDArray[Any]]:
    """Yield rows from end to end, then random ones: one, two, many."""
    yield _end_to_end(count)
    # Random, so that a statistic cannot prepare for the rows that are tried.
    random_rows = np.frombuffer(os.urandom(8 * sum(_RANDOM_CHECKS)), "<u8") % np.uint64(count)
    start = 0
    for size in _RANDOM_CHECKS:
        yield random_rows[start : start + size].astype(np.intp)
        start += size


@lru_cache(maxsize=8)
def _end_to_end(count: int) -> NDArray[Any]:
    return np.unique(np.linspace(0, count - 1, _SPOT_CHECKED).astype(int))


def _inside(values: NDArray[Any]) -> bool:
    """Whether all values lie in [0, 1]; NaN does not."""
    if values.dtype == bool or not values.size:
        return True
    return bool(values.min() >= 0 and values.max() <= 1)


def sums_in_private(statistic: Statistic, data: Data, bits: int, columns: int | None) -> list[int]:
    """Evaluate a statistic on the holdout: it never fails, so a failure cannot reveal a row.

    `columns` is the number of columns on the training rows, None for one value per row. Even an
    exit or an interrupt counts as a failure of the statistic, because whether one occurs may depend
    on the rows.
    """
    with _silent():
        values = _values_in_private(statistic, data, columns)
        if not _inside(values):
            values = np.clip(np.nan_to_num(values, nan=0.0), 0.0, 1.0)
        return _add_up(values, bits)


def _values_in_private(statistic: Statistic, data: Data, columns: int | None) -> NDArray[Any]:
    def values_of(part: Data) -> NDArray[Any]:
        part_values = np.asarray(statistic(part))
        return part_values if part_values.dtype == bool else part_values.astype(float, copy=False)

    count, shape = count_rows(data), () if columns is None else (columns,)

    def evaluate_rows(rows: Any) -> NDArray[Any]:
        """Evaluate rows; halve a batch that fails, so one bad row costs about two more passes."""
        try:
            part_values = values_of(shown(data) if rows is all_rows else take(data, rows))
            if part_values.shape == (len(rows), *shape):
                return part_values
        except BaseException:  # noqa: S110  (the halves are tried next)
            pass
        if len(rows) == 1:
            return np.zeros((1, *shape))
        middle = len(rows) // 2
        return np.concatenate(
            [evaluate_rows(np.asarray(half)) for half in (rows[:middle], rows[middle:])]
        )

    all_rows = range(count)
    values = evaluate_rows(all_rows)
    if _mixes_rows(evaluate_rows, values):
        return np.concatenate([evaluate_rows(np.array([row])) for row in range(count)])
    return values


def _add_up(values: NDArray[Any], bits: int) -> list[int]:
    """Sum the steps exactly: in floats a block's sums are integers up to 2^53."""
    if values.dtype == bool:
        # Booleans are counted: exact, and faster than adding floats.
        counts = np.count_nonzero(values, axis=None if values.ndim == 1 else 0)
        return [int(count) << bits for count in np.atleast_1d(counts)]
    total: Any = 0
    rows = max(1, _BLOCK // max(1, values[:1].size))
    for start in range(0, len(values), rows):
        steps = values[start : start + rows] * float(1 << bits)
        np.rint(steps, out=steps)
        # Larger sums are not exact in floats, so they are added as integers.
        if len(steps) << bits > 1 << 53:
            steps = steps.astype(np.int64)
        total = total + steps.sum(axis=0).astype(np.int64)
    return [int(column_sum) for column_sum in np.atleast_1d(total)]


def _number_in_public(statistic: Statistic, data: Data) -> Fraction:
    values = _values_in_public(statistic, shown(data))
    if values.ndim != 0:
        raise InvalidInputError(
            "sensitivity= is for a statistic that returns one number. For one value per row leave "
            "it out: a row's share of the mean is known."
        )
    return to_fraction(float(values), "the statistic's value on the training rows")


def _number_in_private(statistic: Statistic, data: Data) -> Fraction | None:
    """Evaluate a number on the holdout; None if the statistic fails there."""
    with _silent():
        try:
            return to_fraction(float(np.asarray(statistic(shown(data)))), "value")
        except BaseException:
            return None


class _Silence:
    """Suppresses warnings while any thread needs it: Python's filters are per process.

    No lock is held while a statistic is evaluated, so it may wait for other threads.
    """

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._threads: list[int] = []
        self._caught = warnings.catch_warnings(record=True)

    def begin(self) -> None:
        with self._lock:
            self._threads.append(threading.get_ident())
            if len(self._threads) == 1:
                self._caught = warnings.catch_warnings(record=True)
                self._caught.__enter__()
                warnings.simplefilter("ignore")

    def end(self) -> None:
        with self._lock:
            self._threads.remove(threading.get_ident())
            self._lift()

    def after_fork(self) -> None:
        """Forget the threads of the parent process."""
        self._lock = threading.Lock()
        before = self._threads
        self._threads = [thread for thread in before if thread == threading.get_ident()]
        if before:
            self._lift()

    def _lift(self) -> None:
        if not self._threads:
            self._caught.__exit__(None, None, None)


_silence = _Silence()
if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_silence.after_fork)


@contextmanager
def _silent() -> Iterator[None]:
    """Suppress warnings, which could reveal what a statistic met on the holdout."""
    _silence.begin()
    try:
        with np.errstate(all="ignore"):
            yield
    finally:
        _silence.end()
