"""Columns as read to numbers, labels or seconds.

A cell is missing if it is empty, NaN, None or one of the usual words for it. Errors name rows and
columns, never what a cell holds, nor do the errors behind them.
"""

from __future__ import annotations

import math
import re
from contextlib import suppress
from datetime import UTC, datetime
from typing import Any

import numpy as np
from numpy.typing import NDArray

from quiltwork.arguments import hashable
from quiltwork.delimited import DECIMAL, MISSING_WORDS, WHOLE
from quiltwork.errors import InvalidInputError
from quiltwork.series.reading.columns import Column

_LARGEST = 2**1023  # of integers that are floats


def as_numbers(column: Column, name: str, *, quietly: bool = False) -> NDArray[np.float64]:
    """Return numbers, with NaN where a cell is missing; `quietly` also where it is no number.

    Raises:
        InvalidInputError: naming the first row that holds neither a number nor a missing value,
            unless `quietly`.
    """
    if quietly:
        return np.array([_number_or_nan(cell) for cell in column])
    if isinstance(column, np.ndarray) and column.dtype.kind in "biuf":
        return _finite(column.astype(np.float64), name)
    with suppress(TypeError, ValueError, OverflowError):
        return _finite(np.array(column, dtype=np.float64), name)
    return _finite(np.array([_number(cell, row, name) for row, cell in enumerate(column, 1)]), name)


def as_labels(column: Column, name: str, *, apart: bool = False) -> list[Any]:
    """Return labels, with None where a cell is missing.

    Text from a CSV file becomes integers if every cell is one in its usual spelling, else floats
    likewise, else it stays text: `02` and `2`, or `1.5` and `1.50`, are not one label. With `apart`
    each cell is read on its own, so that none depends on the others, and what cannot be a label
    stays one that cannot.

    Raises:
        InvalidInputError: naming the first row that holds a collection, unless `apart`.

    >>> as_labels(["2", "10"], "state"), as_labels(["02", "10"], "state")
    ([2, 10], ['02', '10'])
    >>> as_labels(["02", "10"], "state", apart=True)
    ['02', 10]
    """
    cells = column.tolist() if isinstance(column, np.ndarray) else column
    if apart and isinstance(column, np.ndarray):
        cells = [cell if hashable(cell) else ... for cell in cells]
    try:
        distinct = {cell: None if _is_missing(cell) else cell for cell in dict.fromkeys(cells)}
    except TypeError:
        row = next(row for row, cell in enumerate(cells, 1) if not hashable(cell))
        raise InvalidInputError(
            f"Row {row} of column {name!r} holds a list or another collection; a cell is one label."
        ) from None
    texts = [cell for cell in distinct.values() if cell is not None]
    if isinstance(column, list):
        for part in [[text] for text in texts] if apart else [texts]:
            distinct.update(zip(part, _spelled(part), strict=True))
    return [distinct[cell] for cell in cells]


def _spelled(texts: list[str]) -> list[Any]:
    """Return texts as the numbers that all of them spell, each another; else as they are."""
    for pattern, convert in ((WHOLE, int), (DECIMAL, float)):
        if texts and all(re.match(pattern, text.strip()) for text in texts):
            with suppress(ValueError):  # integers of thousands of digits stay text
                converted = [convert(text) for text in texts]
                if len(set(converted)) == len(texts):
                    return converted
            break
    return list(texts)


def match_labels(
    column: Column, name: str, states: tuple[Any, ...], *, apart: bool = False
) -> list[Any]:
    """Return labels spelled as in `states`: a cell `1` is the state 1 if that is one.

    Cells that match none stay as they are, so that the belief can name them.
    """
    if not isinstance(column, list):
        return as_labels(column, name, apart=apart)
    known = {str(state): state for state in states}
    numeric = {
        float(s): s for s in states if type(s) is float or (type(s) is int and abs(s) < _LARGEST)
    }
    translate: dict[str, Any] = {}
    for cell in dict.fromkeys(column):
        if cell in known:
            translate[cell] = known[cell]
        elif _is_missing(cell):
            translate[cell] = None
        else:
            translate[cell] = numeric.get(_float(cell), cell)
    return [translate[cell] for cell in column]


def as_seconds(column: Column, name: str) -> NDArray[np.int64]:
    """Return whole seconds: from numbers, or from dates and times in ISO 8601.

    Times with an offset are turned to UTC; times without one are taken as they are. Both kinds in
    one column are refused.

    Raises:
        InvalidInputError: naming the first row whose time cannot be read.
    """
    if isinstance(column, np.ndarray) and column.dtype.kind == "M":
        if np.isnat(column).any():
            row = int(np.argmax(np.isnat(column))) + 1
            raise InvalidInputError(f"Row {row} has no time in column {name!r}; fill or drop it.")
        return column.astype("datetime64[s]").astype(np.int64)
    if isinstance(column, np.ndarray) and column.dtype.kind in "biu":
        return column.astype(np.int64)
    cells = [str(cell) for cell in column]
    try:
        return np.array(cells, dtype=np.int64)
    except (ValueError, OverflowError):
        pass
    kinds: set[bool] = set()
    seconds = np.array([_moment(cell, row, name, kinds) for row, cell in enumerate(cells, 1)])
    if len(kinds) > 1:
        raise InvalidInputError(
            f"Column {name!r} mixes times with and without an offset from UTC; make them alike."
        )
    return seconds


def _finite(numbers: NDArray[np.float64], name: str) -> NDArray[np.float64]:
    infinite = np.isinf(numbers)
    if infinite.any():
        row = int(np.argmax(infinite)) + 1
        raise InvalidInputError(
            f"Row {row} of column {name!r} is infinite; treat it as missing or clip it first."
        )
    return numbers


def _number(cell: Any, row: int, name: str) -> float:
    if _is_missing(cell):
        return np.nan
    with suppress(TypeError, ValueError, OverflowError):
        return float(cell)
    raise InvalidInputError(
        f"Row {row} of column {name!r} holds no number; without edges the column is read as labels."
    )


def _number_or_nan(cell: Any) -> float:
    with suppress(Exception):  # whatever an object does when it is looked at
        number = float(cell)
        return number if math.isfinite(number) else math.nan
    return math.nan


def _moment(cell: str, row: int, name: str, kinds: set[bool]) -> int:
    moment = None
    with suppress(ValueError):
        moment = datetime.fromisoformat(cell)
    if moment is None:
        raise InvalidInputError(
            f"Row {row} of column {name!r} holds no time; use whole seconds or ISO 8601 such as "
            "2026-03-01T08:30."
        )
    kinds.add(moment.tzinfo is not None)
    aware = moment if moment.tzinfo is not None else moment.replace(tzinfo=UTC)
    return int(aware.timestamp() // 1)


def _float(text: str) -> float:
    try:
        return float(text)
    except ValueError:
        return np.nan


def _is_missing(cell: Any) -> bool:
    if isinstance(cell, str):
        return cell.strip().lower() in MISSING_WORDS
    return cell is None or (isinstance(cell, float) and cell != cell) or str(cell) == "<NA>"
