"""Rows and what a statistic says about them, as exact integer sums.

A value in [0, 1] becomes a whole number of steps of 2^-bits, and steps are added exactly: replacing
one row moves the sum by at most 2^bits, with nothing to charge for rounding
(`docs/theory/public-grid.md`). A statistic sees the training rows first, so mistakes in it show
there; on the holdout it cannot fail: a row without a value in [0, 1] counts as 0, clipped. No
warning, error or exit of a statistic gets out from there either. Time does: a statistic that fails
on the holdout, or mixes its rows, is evaluated row by row. No statistic can change a row: it gets
views of bytes, which nothing makes writable, or copies of the objects and what they hold.
"""

from __future__ import annotations

import copy
import secrets
from collections.abc import Callable, Iterable, Iterator
from fractions import Fraction
from typing import Any, Literal, TypeAlias

import numpy as np
from numpy.typing import NDArray

from quiltwork.errors import InvalidInputError
from quiltwork.exact import to_fraction
from quiltwork.holdout.silence import silent

Data: TypeAlias = Any
"""An array with one row per sample, or a tuple of such arrays, for example (X, y)."""
Statistic: TypeAlias = Callable[[Any], Any]
_KINDS = {"U": "text", "T": "text", "S": "bytes", "O": "objects", "M": "dates", "m": "durations"}
_UNCHANGING = {str, bytes, int, float, complex, bool, type(None)}
_NUMBERS = (int, float, np.number, np.bool_)
_SPOT_CHECKED = 8
_RANDOM_CHECKS = (1, 1, 2, 8, 64)

NEEDS_SENSITIVITY = (
    "The statistic returned a single number. Give one value in [0, 1] per row, or declare how far "
    "replacing one row can move the number: sensitivity=. F1, AUC and R² are not means over rows "
    "and have no useful proven sensitivity; ask for accuracy, Brier score or a clipped error."
)


def read_rows(data: Any, name: str) -> Data:
    """Return the data as arrays with one row per sample that share no memory with what was given.

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
    try:
        array = np.asarray(data)
    except (TypeError, ValueError) as error:
        raise InvalidInputError(
            f"{name} cannot be read as an array with one row per sample: {error}."
        ) from None
    if array.ndim == 0 or len(array) == 0:
        raise InvalidInputError(f"{name} has no rows; give an array with one row per sample.")
    if array.dtype.hasobject:
        return _copied(array, name)
    order: Literal["C", "F"] = "F" if array.flags.fnc else "C"
    frozen = np.frombuffer(array.tobytes(order), array.dtype).reshape(array.shape, order=order)
    return _with_own_type(frozen)


def _copied(array: NDArray[Any], name: str) -> NDArray[Any]:
    """Copy an array of objects with all that they hold."""
    try:
        return _apart(array)
    except Exception as error:  # whatever objects do when they are copied
        raise InvalidInputError(
            f"{name} holds objects that cannot be copied ({type(error).__name__}); give numbers or "
            "text."
        ) from None


def _apart(array: NDArray[Any]) -> NDArray[Any]:
    """Return a copy of an array of objects that shares nothing that can be changed."""
    plain = array.dtype.names is None and set(map(type, array.ravel().tolist())) <= _UNCHANGING
    return array.copy() if plain else _with_own_type(copy.deepcopy(array))


def _with_own_type(array: NDArray[Any]) -> NDArray[Any]:
    """Return a view whose type, in which the names of fields can be changed, is no other's."""
    return array.view() if array.dtype.names is None else array.view(copy.deepcopy(array.dtype))


def shown(data: Data) -> Data:
    """Return what a statistic is given: views of the bytes, which stay as they are, or copies."""
    if isinstance(data, tuple):
        return tuple(shown(part) for part in data)
    return _apart(data) if data.dtype.hasobject else _with_own_type(data)


def count_rows(data: Data) -> int:
    """Return the number of rows."""
    return len(data[0] if isinstance(data, tuple) else data)


def take(data: Data, rows: Any) -> Data:
    """Return some of the rows, as a statistic is given them."""
    return shown(tuple(part[rows] for part in data) if isinstance(data, tuple) else data[rows])


def same_rows(one: Data, other: Data) -> bool:
    """Whether two datasets are the same, row by row; missing values count as the same."""
    pairs = zip(
        one if isinstance(one, tuple) else (one,),
        other if isinstance(other, tuple) else (other,),
        strict=False,
    )
    return all(a.shape == b.shape and _same_cells(a, b) for a, b in pairs)


def check_alike(one: Data, other: Data) -> None:
    """Refuse training rows and holdout that no statistic can read alike, before any is asked.

    Raises:
        InvalidInputError: unless both have as many parts, columns and fields, and text where the
            other has text.
    """
    if isinstance(one, tuple) != isinstance(other, tuple):
        raise InvalidInputError(
            "train and holdout must be of the same kind: both arrays, or both tuples such as "
            "(X, y)."
        )
    parts, others = (data if isinstance(data, tuple) else (data,) for data in (one, other))
    if len(parts) != len(others):
        raise InvalidInputError(
            f"train has {len(parts)} arrays and holdout {len(others)}; give both the same ones."
        )
    for a, b in zip(parts, others, strict=True):
        if a.shape[1:] != b.shape[1:]:
            raise InvalidInputError(
                f"The rows of train have shape {a.shape[1:]} and those of holdout {b.shape[1:]}; "
                "give both the same columns, or every question would seem to overfit."
            )
        for at, (left, right) in enumerate(zip(*_kinds(a, b), strict=True), start=1):
            if left != right and "objects" not in (left, right):
                raise InvalidInputError(
                    f"train has {left} where holdout has {right} (column {at}), so nothing in them "
                    "would compare; convert one of the two."
                )


def _kinds(*parts: NDArray[Any]) -> list[list[str]]:
    """Name what cells hold, column by column where an array holds objects."""
    if all(part.dtype == object for part in parts):
        tables = [part.reshape(len(part), -1) for part in parts]
        return [[kind_of(column.tolist()) for column in table.T] for table in tables]
    return [[_kind(part)] for part in parts]


def _kind(part: NDArray[Any]) -> str:
    if part.dtype.names is not None:
        return f"the fields {', '.join(part.dtype.names)}"
    if part.dtype == object:
        return kind_of(part.ravel().tolist())
    return _KINDS.get(part.dtype.kind, "numbers")


def kind_of(cells: Iterable[Any]) -> str:
    """Name what cells hold, as far as comparing with others goes; "objects" may be anything.

    >>> kind_of([1, 2.5, None]), kind_of(["a", "b"]), kind_of([1, "a"])
    ('numbers', 'text', 'objects')
    """
    kinds = {
        "text" if isinstance(cell, str) else "numbers" if isinstance(cell, _NUMBERS) else "objects"
        for cell in cells
        if cell is not None and not (isinstance(cell, float) and cell != cell)
    }
    return kinds.pop() if len(kinds) == 1 else "objects"


def _same_cells(a: NDArray[Any], b: NDArray[Any]) -> bool:
    return bool(np.all((a == b) | ((a != a) & (b != b))))  # NaN differs from itself


def sums_in_public(statistic: Statistic, data: Data, bits: int) -> tuple[list[int], int | None]:
    """Evaluate a statistic on the training rows and add up the steps, one sum per question.

    Also returns the number of columns, None for one value per row.

    Raises:
        InvalidInputError: whatever is wrong with the statistic, naming the offending value.
    """
    values = _evaluate(statistic, shown(data))
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
    if _mixes_rows(lambda some: _evaluate(statistic, some), data, values):
        raise InvalidInputError(
            "The statistic gives a row another value when the other rows change, so one row can "
            "move more than its own share of the mean. Compute such quantities (means, ranks, "
            "thresholds) on the training rows first, and use them as constants."
        )
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
        except (OverflowError, TypeError, ValueError):
            raise InvalidInputError(
                f"The statistic returned {values.dtype} instead of numbers in [0, 1]."
            ) from None
    return values


def _mixes_rows(evaluate: Callable[[Data], NDArray[Any]], data: Data, values: NDArray[Any]) -> bool:
    """Compare some rows alone with the same rows among all the others.

    This finds mistakes, and proves nothing: a statistic may mix rows in ways that no subset shows.
    """
    for rows in _spot_checks(len(values)):
        alone, among = evaluate(take(data, rows)).astype(float), values[rows].astype(float)
        if alone.shape != among.shape:
            return True
        if not np.allclose(alone, among, atol=1e-6, equal_nan=True):
            return True
    return False


def _spot_checks(count: int) -> Iterator[NDArray[Any]]:
    """Yield rows from end to end, then random ones: alone, two, several."""
    yield np.unique(np.linspace(0, count - 1, _SPOT_CHECKED).astype(int))
    for size in _RANDOM_CHECKS:
        yield np.array(secrets.SystemRandom().sample(range(count), min(size, count)))


def sums_in_private(statistic: Statistic, data: Data, bits: int, columns: int | None) -> list[int]:
    """Evaluate a statistic on the holdout: never fails, and says nothing about any row.

    `columns` is how many the training rows had, None for one value per row. Even an exit or an
    interrupt counts as a failure of the statistic: whether one occurs may depend on the rows.
    """
    with silent():
        values = _values_in_private(statistic, data, columns)
        if values.dtype != bool:
            values = np.clip(np.nan_to_num(values, nan=0.0), 0.0, 1.0)
        return _add_up(values, bits)


def _values_in_private(statistic: Statistic, data: Data, columns: int | None) -> NDArray[Any]:
    def evaluate(some: Data) -> NDArray[Any]:
        found = np.asarray(statistic(some))
        return found if found.dtype == bool else found.astype(float, copy=False)

    rows = count_rows(data)
    shape = (rows,) if columns is None else (rows, columns)
    try:
        values = evaluate(shown(data))
        if values.shape == shape and not _mixes_rows(evaluate, data, values):
            return values
    except BaseException:  # noqa: S110  (the rows are next, one by one)
        pass
    return np.stack([_one_row(statistic, take(data, [i]), columns) for i in range(rows)])


def _one_row(statistic: Statistic, row: Data, columns: int | None) -> NDArray[Any]:
    shape = () if columns is None else (columns,)
    try:
        value = np.asarray(statistic(row)).astype(float)[0]
    except BaseException:
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
    values = _evaluate(statistic, shown(data))
    if values.ndim != 0:
        raise InvalidInputError(
            "sensitivity= is for a statistic that returns one number; for one value per row leave "
            "it out, a row's share of the mean is known."
        )
    return to_fraction(float(values), "the statistic's value on the training rows")


def number_in_private(statistic: Statistic, data: Data) -> Fraction | None:
    """Evaluate such a statistic on the holdout; None if it fails there."""
    with silent():
        try:
            return to_fraction(float(np.asarray(statistic(shown(data)))), "value")
        except BaseException:
            return None
