"""What a statistic says about rows, as exact integer sums, first in public and then in private.

A value in [0, 1] becomes a whole number of steps of 2^-bits, and steps are added exactly: replacing
one row moves the sum by at most 2^bits, with nothing to charge for rounding
(`docs/theory/public-grid.md`). A statistic sees the training rows first, so mistakes in it show
there; on the holdout it cannot fail: a row without a value in [0, 1] counts as 0, clipped. No
warning, error or exit of a statistic gets out from there either. Time does: a statistic that fails
on the holdout, or mixes its rows, is evaluated row by row.
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
from quiltwork.holdout.algorithm import AlgorithmSettings, Evaluated, mean_question, number_question
from quiltwork.holdout.arrays import Data, count_rows, shown, take

Statistic: TypeAlias = Callable[[Any], Any]
_SPOT_CHECKED = 8
_RANDOM_CHECKS = (1, 2, 256)
_BLOCK = 1 << 15
"""Values that are added up at once: they stay in the processor's cache."""

NEEDS_SENSITIVITY = (
    "The statistic returned a single number. Give one value in [0, 1] per row, or declare how far "
    "replacing one row can move the number: sensitivity=. F1, AUC and R² are not means over rows "
    "and have no useful proven sensitivity; ask for accuracy, Brier score or a clipped error."
)


@dataclass(frozen=True)
class Prepared:
    """A statistic that has been evaluated on the training rows, where its mistakes show.

    `known` is its training value, or the sums of its values by column, in steps; `columns` is None
    for one value per row, or a number.
    """

    statistic: Statistic
    sensitivity: Fraction | None
    known: tuple[int | Fraction, ...]
    columns: int | None = None


def prepare(
    settings: AlgorithmSettings, public: Data, statistic: Statistic, sensitivity: Fraction | None
) -> Prepared:
    """Evaluate a statistic on the training rows only."""
    check_statistic(statistic, "A statistic")
    if sensitivity is not None:
        return Prepared(statistic, sensitivity, (_number_in_public(statistic, public),))
    sums, columns = _sums_in_public(statistic, public, settings.bits)
    return Prepared(statistic, None, tuple(sums), columns)


def evaluate(
    settings: AlgorithmSettings, private: Data, asked: Prepared, train_rows: int
) -> list[Evaluated]:
    """Evaluate a prepared statistic on the holdout, where it cannot fail."""
    if asked.sensitivity is not None:
        known = Fraction(asked.known[0])
        hidden = _number_in_private(asked.statistic, private)
        # A statistic that fails there breaks its promise; its training value says nothing more.
        value = known if hidden is None else hidden
        return [number_question(settings, value, known, asked.sensitivity)]
    sums = sums_in_private(asked.statistic, private, settings.bits, asked.columns)
    return [
        mean_question(settings, hidden, int(known), train_rows)
        for hidden, known in zip(sums, asked.known, strict=True)
    ]


def check_statistic(statistic: object, name: str) -> None:
    """Refuse what is no function."""
    if not callable(statistic):
        raise InvalidInputError(
            f"{name} is a function from rows to values in [0, 1], not {shortened(statistic)}."
        )


def _sums_in_public(statistic: Statistic, data: Data, bits: int) -> tuple[list[int], int | None]:
    """Add up the steps, one sum per question; also the number of columns, None for no columns."""
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
            f"The statistic gave training row {row + 1} the value {values[wrong][0]!r}; values "
            "must lie in [0, 1]. Divide by the range and clip."
        )
    if _mixes_rows(lambda rows: _values_in_public(statistic, take(data, rows)), values):
        raise InvalidInputError(
            "The statistic gives a row another value when the other rows change, so one row can "
            "move more than its own share of the mean. Compute such quantities (means, ranks, "
            "thresholds) on the training rows first, and use them as constants."
        )
    return _add_up(values, bits), values.shape[1] if values.ndim == 2 else None


def _values_in_public(statistic: Statistic, data: Data) -> NDArray[Any]:
    try:
        values = np.asarray(statistic(data))
    except Exception as error:
        raise InvalidInputError(
            f"The statistic failed on the training rows: {type(error).__name__}: {error}."
        ) from error
    if values.dtype != bool:
        try:
            values = values.astype(float, copy=False)
        except (OverflowError, TypeError, ValueError):
            raise InvalidInputError(
                f"The statistic returned {values.dtype} instead of numbers in [0, 1]."
            ) from None
    return values


def _mixes_rows(of: Callable[[NDArray[Any]], NDArray[Any]], values: NDArray[Any]) -> bool:
    """Compare some rows alone with the same rows among all the others.

    This finds mistakes, and proves nothing: a statistic may mix rows in ways that no subset shows.
    """
    for rows in _spot_checks(len(values)):
        alone, among = of(rows), values[rows]
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
    """Yield rows from end to end, then random ones: alone, two, several."""
    yield _end_to_end(count)
    # Nobody knows which rows are tried.
    anew = np.frombuffer(os.urandom(8 * sum(_RANDOM_CHECKS)), "<u8") % np.uint64(count)
    start = 0
    for size in _RANDOM_CHECKS:
        yield anew[start : start + size].astype(np.intp)
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
    """Evaluate a statistic on the holdout: never fails, and says nothing about any row.

    `columns` is how many the training rows had, None for one value per row. Even an exit or an
    interrupt counts as a failure of the statistic: whether one occurs may depend on the rows.
    """
    with _silent():
        values = _values_in_private(statistic, data, columns)
        if not _inside(values):
            values = np.clip(np.nan_to_num(values, nan=0.0), 0.0, 1.0)
        return _add_up(values, bits)


def _values_in_private(statistic: Statistic, data: Data, columns: int | None) -> NDArray[Any]:
    def values_of(some: Data) -> NDArray[Any]:
        found = np.asarray(statistic(some))
        return found if found.dtype == bool else found.astype(float, copy=False)

    count, shape = count_rows(data), () if columns is None else (columns,)

    def of(rows: Any) -> NDArray[Any]:
        """Halve what fails, so that one row that does costs about two passes over the others."""
        try:
            found = values_of(shown(data) if rows is everything else take(data, rows))
            if found.shape == (len(rows), *shape):
                return found
        except BaseException:  # noqa: S110  (its halves are next)
            pass
        if len(rows) == 1:
            return np.zeros((1, *shape))
        middle = len(rows) // 2
        return np.concatenate([of(np.asarray(half)) for half in (rows[:middle], rows[middle:])])

    everything = range(count)
    values = of(everything)
    if _mixes_rows(of, values):
        return np.concatenate([of(np.array([row])) for row in range(count)])
    return values


def _add_up(values: NDArray[Any], bits: int) -> list[int]:
    """Add up the steps; in floats the sums of a block are whole numbers up to 2^53, hence exact."""
    if values.dtype == bool:
        counts = np.count_nonzero(values, axis=None if values.ndim == 1 else 0)
        return [int(count) << bits for count in np.atleast_1d(counts)]
    total: Any = 0
    rows = max(1, _BLOCK // max(1, values[:1].size))
    for start in range(0, len(values), rows):
        steps = values[start : start + rows] * float(1 << bits)
        np.rint(steps, out=steps)
        if len(steps) << bits > 1 << 53:
            steps = steps.astype(np.int64)
        total = total + steps.sum(axis=0).astype(np.int64)
    return [int(one) for one in np.atleast_1d(total)]


def _number_in_public(statistic: Statistic, data: Data) -> Fraction:
    values = _values_in_public(statistic, shown(data))
    if values.ndim != 0:
        raise InvalidInputError(
            "sensitivity= is for a statistic that returns one number; for one value per row leave "
            "it out, a row's share of the mean is known."
        )
    return to_fraction(float(values), "the statistic's value on the training rows")


def _number_in_private(statistic: Statistic, data: Data) -> Fraction | None:
    """Evaluate a statistic that gives one number; None if it fails on the holdout."""
    with _silent():
        try:
            return to_fraction(float(np.asarray(statistic(shown(data)))), "value")
        except BaseException:
            return None


class _Silence:
    """Turns warnings off while any thread needs it: Python's filters belong to the process.

    No lock is held while a statistic is evaluated, so that it may wait for other threads.
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
        """Forget the threads that are not in this process."""
        self._lock = threading.Lock()
        before = self._threads
        self._threads = [one for one in before if one == threading.get_ident()]
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
    """Let no warning tell what a statistic met on the holdout."""
    _silence.begin()
    try:
        with np.errstate(all="ignore"):
            yield
    finally:
        _silence.end()
