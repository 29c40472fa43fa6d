"""Rows and what a statistic says about them, as exact integer sums.

A value in [0, 1] becomes a whole number of steps of 2^-bits, and steps are added exactly: replacing
one row moves the sum by at most 2^bits, with nothing to charge for rounding
(`docs/theory/public-grid.md`). A statistic sees the training rows first, so mistakes in it show
there; on the holdout it cannot fail: a row without a value in [0, 1] counts as 0, clipped.
"""

from __future__ import annotations

from collections.abc import Callable
from fractions import Fraction
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

from quiltwork.errors import InvalidInputError
from quiltwork.exact import to_fraction

Data: TypeAlias = Any
"""An array with one row per sample, or a tuple of such arrays, for example (X, y)."""
Statistic: TypeAlias = Callable[[Any], Any]
_SPOT_CHECKED = 8

NEEDS_SENSITIVITY = (
    "The statistic returned a single number. Give one value in [0, 1] per row, or declare how far "
    "replacing one row can move the number: sensitivity=. F1, AUC and R² are not means over rows "
    "and have no useful proven sensitivity; ask for accuracy, Brier score or a clipped error."
)


def read_rows(data: Any, name: str) -> Data:
    """Return the data as read-only arrays with one row per sample.

    Raises:
        InvalidInputError: for no rows, or arrays of different lengths.
    """
    if isinstance(data, tuple):
        parts = tuple(_frozen(part, name) for part in data)
        if not parts or len({len(part) for part in parts}) != 1:
            raise InvalidInputError(
                f"The arrays of {name} have {', '.join(str(len(part)) for part in parts) or 'no'} "
                "rows; give arrays of the same length, such as (X, y)."
            )
        return parts
    return _frozen(data, name)


def _frozen(data: Any, name: str) -> NDArray[Any]:
    array = np.array(data)
    if array.ndim == 0 or len(array) == 0:
        raise InvalidInputError(f"{name} has no rows; give an array with one row per sample.")
    array.flags.writeable = False
    return array


def count_rows(data: Data) -> int:
    """Return the number of rows."""
    return len(data[0] if isinstance(data, tuple) else data)


def take(data: Data, rows: Any) -> Data:
    """Return some of the rows."""
    return tuple(part[rows] for part in data) if isinstance(data, tuple) else data[rows]


def same_rows(one: Data, other: Data) -> bool:
    """Whether two datasets are the same, row by row."""
    pairs = zip(
        one if isinstance(one, tuple) else (one,),
        other if isinstance(other, tuple) else (other,),
        strict=False,
    )
    return all(a.shape == b.shape and np.array_equal(a, b) for a, b in pairs)


def sums_in_public(statistic: Statistic, data: Data, bits: int) -> tuple[list[int], int | None]:
    """Evaluate a statistic on the training rows and add up the steps, one sum per question.

    Also returns the number of columns, None for one value per row.

    Raises:
        InvalidInputError: whatever is wrong with the statistic, naming the offending value.
    """
    values = _evaluate(statistic, data)
    if values.ndim == 0:
        raise InvalidInputError(NEEDS_SENSITIVITY)
    if values.ndim > 2 or len(values) != count_rows(data):
        raise InvalidInputError(
            f"The statistic returned an array of shape {values.shape} for {count_rows(data)} rows; "
            "return one value per row, or one column per question."
        )
    if values.dtype != bool:
        wrong = ~((values >= 0) & (values <= 1))
        if wrong.any():
            row = int(np.argwhere(wrong)[0][0])
            raise InvalidInputError(
                f"The statistic gave training row {row + 1} the value {values[wrong][0]!r}; values "
                "must lie in [0, 1]. Divide by the range and clip."
            )
    _check_rows_do_not_mix(statistic, data, values)
    return _add_up(values, bits), values.shape[1] if values.ndim == 2 else None


def _evaluate(statistic: Statistic, data: Data) -> NDArray[Any]:
    try:
        values = np.asarray(statistic(data))
    except Exception as error:
        raise InvalidInputError(
            f"The statistic failed on the training rows: {type(error).__name__}: {error}."
        ) from error
    if values.dtype != bool:
        try:
            values = values.astype(float, copy=False)
        except (TypeError, ValueError):
            raise InvalidInputError(
                f"The statistic returned {values.dtype} instead of numbers in [0, 1]."
            ) from None
    return values


def _check_rows_do_not_mix(statistic: Statistic, data: Data, values: NDArray[Any]) -> None:
    """Compare a few training rows alone with the same rows among all the others."""
    rows = np.unique(np.linspace(0, len(values) - 1, _SPOT_CHECKED).astype(int))
    alone = _evaluate(statistic, take(data, rows))
    expected = values[rows].astype(float)
    if alone.shape != expected.shape or not np.allclose(alone.astype(float), expected, atol=1e-6):
        raise InvalidInputError(
            "The statistic gives a row another value when the other rows change, so one row can "
            "move more than its own share of the mean. Compute such quantities (means, ranks, "
            "thresholds) on the training rows first, and use them as constants."
        )


def sums_in_private(statistic: Statistic, data: Data, bits: int, columns: int | None) -> list[int]:
    """Evaluate a statistic on the holdout: never fails, and says nothing about any row.

    `columns` is how many the training rows had, None for one value per row.
    """
    rows = count_rows(data)
    shape = (rows,) if columns is None else (rows, columns)
    try:
        values = np.asarray(statistic(data))
        if values.dtype != bool:
            values = values.astype(float, copy=False)
        whole = values.shape == shape
    except Exception:
        whole = False
    if not whole:
        values = np.stack([_one_row(statistic, take(data, [i]), columns) for i in range(rows)])
    if values.dtype != bool:
        values = np.clip(np.nan_to_num(values, nan=0.0), 0.0, 1.0)
    return _add_up(values, bits)


def _one_row(statistic: Statistic, row: Data, columns: int | None) -> NDArray[Any]:
    shape = () if columns is None else (columns,)
    try:
        value = np.asarray(statistic(row)).astype(float)[0]
    except Exception:
        return np.zeros(shape)
    return value if value.shape == shape else np.zeros(shape)


def _add_up(values: NDArray[Any], bits: int) -> list[int]:
    """Add up the steps; in floats all partial sums are whole numbers below 2^53, hence exact."""
    if values.dtype == bool:
        return [int(count) << bits for count in np.atleast_1d(_count_true(values))]
    steps = np.rint(values * float(1 << bits))
    if len(values) << bits > 1 << 53:
        steps = steps.astype(np.int64)
    return [int(total) for total in np.atleast_1d(steps.sum(axis=0))]


def _count_true(values: NDArray[np.bool_]) -> NDArray[np.int64]:
    """Count by column; blocks of 255 rows add up in single bytes, which is several times faster."""
    if values.ndim == 1:
        return np.array([np.count_nonzero(values)])
    whole = len(values) // 255 * 255
    ones = np.ascontiguousarray(values).view(np.uint8)
    blocks = ones[:whole].reshape(-1, 255, values.shape[1]).sum(axis=1, dtype=np.uint8)
    counts = blocks.sum(axis=0, dtype=np.int64) + ones[whole:].sum(axis=0, dtype=np.int64)
    return np.asarray(counts)


def number_in_public(statistic: Statistic, data: Data) -> Fraction:
    """Evaluate a statistic with a declared sensitivity on the training rows."""
    values = _evaluate(statistic, data)
    if values.ndim != 0:
        raise InvalidInputError(
            "sensitivity= is for a statistic that returns one number; for one value per row leave "
            "it out, a row's share of the mean is known."
        )
    return to_fraction(float(values), "the statistic's value on the training rows")


def number_in_private(statistic: Statistic, data: Data) -> Fraction | None:
    """Evaluate such a statistic on the holdout; None if it fails there."""
    try:
        return to_fraction(float(np.asarray(statistic(data))), "value")
    except Exception:
        return None
