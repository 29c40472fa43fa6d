"""Converting cells of a column to numbers, labels or seconds.

A cell is missing if it is empty, NaN, None or one of the usual words. Errors name row and column,
never the content of a cell, and chain no other error that does.
"""

from __future__ import annotations

import math
import re
from collections.abc import Sequence
from contextlib import suppress
from typing import Any

import numpy as np
from numpy.typing import NDArray

from quiltwork.delimited import DECIMAL, WHOLE, Dialect
from quiltwork.errors import InvalidInputError
from quiltwork.wording import argument

_LARGEST = 2**1023  # of integers that are floats
_PLAIN = Dialect()


def as_numbers(
    column: Any, name: str, *, quietly: bool = False, dialect: Dialect = _PLAIN, before: int = 0
) -> NDArray[np.float64]:
    """Convert cells to numbers, NaN where a cell is missing.

    Args:
        column: the cells; text without a digit counts as a word for a missing value.
        name: the column, for messages.
        quietly: whether cells that are not numbers become NaN instead of an error.
        dialect: of the file.
        before: the number of rows before these.
    """
    if isinstance(column, np.ndarray) and column.dtype.kind in "biuf":
        numbers = column.astype(np.float64)
        if not quietly:
            return _finite(numbers, name, before)
        return np.where(np.isfinite(numbers), numbers, np.nan)
    if quietly:
        return np.array([_number_or_nan(_pointed(cell, dialect)) for cell in column])
    if dialect.decimal == ".":
        with suppress(TypeError, ValueError, OverflowError):
            return _finite(np.array(column, dtype=np.float64), name, before)
    cells = [_number(cell, row, name, dialect) for row, cell in enumerate(column, before + 1)]
    return _finite(np.array(cells), name, before)


def as_labels(
    cells: Sequence[Any], *, textual: bool = True, apart: bool = False, dialect: Dialect = _PLAIN
) -> list[Any]:
    """Convert distinct cells to labels, None where one is missing.

    Text of a CSV file becomes integers if every cell is an integer in its usual spelling, else
    floats likewise, else it stays text: `02` and `2`, or `1.5` and `1.50`, are different labels.
    With `apart` each cell is converted on its own, independently of the others.

    >>> as_labels(["2", "10"]), as_labels(["02", "10"])
    ([2, 10], ['02', '10'])
    >>> as_labels(["02", "10"], apart=True)
    ['02', 10]
    """
    present = [None if _is_missing(cell, dialect) else cell for cell in cells]
    if not textual:
        return present
    texts = [cell for cell in present if cell is not None]
    labels = iter([_as_numbers([text])[0] for text in texts] if apart else _as_numbers(texts))
    return [None if cell is None else next(labels) for cell in present]


def _as_numbers(texts: list[str]) -> list[Any]:
    """Return texts as numbers, if all of them are numbers and different; else unchanged."""
    for pattern, convert in ((WHOLE, int), (DECIMAL, float)):
        if texts and all(re.match(pattern, text.strip()) for text in texts):
            with suppress(ValueError):  # integers of thousands of digits stay text
                converted = [convert(text) for text in texts]
                if len(set(converted)) == len(texts):
                    return converted
            break
    return list(texts)


def match_labels(
    cells: Sequence[str], states: tuple[Any, ...], dialect: Dialect = _PLAIN
) -> list[Any]:
    """Match distinct texts to states: `1` is the state 1 if there is one.

    Cells that match no state stay unchanged, so that a later message can refer to them.
    """
    known = {str(state): state for state in states}
    numeric = {
        float(s): s for s in states if type(s) is float or (type(s) is int and abs(s) < _LARGEST)
    }
    return [
        known[cell]
        if cell in known
        else None
        if _is_missing(cell, dialect)
        else numeric.get(_float(cell), cell)
        for cell in cells
    ]


def as_seconds(column: NDArray[Any], name: str, before: int = 0) -> NDArray[np.int64]:
    """Convert moments or whole numbers to whole seconds."""
    if column.dtype.kind == "M":
        if np.isnat(column).any():
            row = before + int(np.argmax(np.isnat(column))) + 1
            raise InvalidInputError(f"Row {row} has no time in column {name!r}; fill or drop it.")
        return column.astype("datetime64[s]", copy=False).view(np.int64)
    return column.astype(np.int64)


def _finite(numbers: NDArray[np.float64], name: str, before: int) -> NDArray[np.float64]:
    infinite = np.isinf(numbers)
    if infinite.any():
        row = before + int(np.argmax(infinite)) + 1
        raise InvalidInputError(
            f"Row {row} of column {name!r} is infinite; treat it as missing or clip it first."
        )
    return numbers


def _pointed(cell: Any, dialect: Dialect) -> Any:
    """Replace a decimal comma by a point; a point in such a file makes the cell no number."""
    if dialect.decimal == "." or not isinstance(cell, str):
        return cell
    return "" if "." in cell else cell.replace(",", ".", 1)


def _number(cell: Any, row: int, name: str, dialect: Dialect) -> float:
    if _is_missing(cell, dialect):
        return np.nan
    with suppress(TypeError, ValueError, OverflowError):
        return float(_pointed(cell, dialect))
    if isinstance(cell, str) and not any(map(str.isdigit, cell)):
        if dialect.declared:
            raise InvalidInputError(
                f"Row {row} of column {name!r} holds a word that is not declared, and where gaps "
                "are public the words for a missing value must be: name it with "
                f"{argument('na_values')}."
            )
        return np.nan
    raise InvalidInputError(
        f"Row {row} of column {name!r} holds no number; {argument('decimal', ',')} reads decimal "
        "commas, "
        f"{argument('na_values')} names words for a missing value, and without edges the column "
        "is read as "
        "labels."
    )


def _number_or_nan(cell: Any) -> float:
    with suppress(Exception):  # an object in a frame may raise anything
        number = float(cell)
        return number if math.isfinite(number) else math.nan
    return math.nan


def _float(text: str) -> float:
    try:
        return float(text)
    except ValueError:
        return np.nan


def _is_missing(cell: Any, dialect: Dialect) -> bool:
    if isinstance(cell, str):
        return dialect.is_missing(cell)
    return cell is None or (isinstance(cell, float) and cell != cell) or str(cell) == "<NA>"
