"""Validation of probability matrices and vectors, with messages that name the row.

A row counts as a distribution if its exactly rounded sum (`math.fsum`) is within 1e-9 of 1. It is
then divided by that sum, unless the sum is already within 2⁻⁵⁰ of 1, in which case it is kept bit
for bit; so reading a matrix twice, or from its own JSON, changes nothing.
"""

from __future__ import annotations

import math
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

from quiltwork.errors import InvalidInputError
from quiltwork.exact import shortened

FloatArray: TypeAlias = NDArray[np.float64]
BoolArray: TypeAlias = NDArray[np.bool_]
IntArray: TypeAlias = NDArray[np.int64]

SUM_TOLERANCE = 1e-9
KEPT_AS_IS = 2.0**-50

_MOST_PHASES = 100_000


def parse_matrix(values: Any, name: str) -> FloatArray:
    """Return a square float64 copy of `values` with entries in [0, 1], not yet row sums of 1."""
    matrix = parse_numbers(values, name, dimensions=2)
    rows, columns = matrix.shape
    if rows == 0:
        raise InvalidInputError(f"{name} is empty; give one row per state.")
    if rows != columns:
        raise InvalidInputError(
            f"{name} has {rows} rows and {columns} columns; it must be square, "
            "one row and one column per state."
        )
    for row in np.flatnonzero(~((matrix >= 0) & (matrix <= 1 + SUM_TOLERANCE)).all(axis=1)):
        _refuse_entry(matrix[row], f"Row {row + 1} of {name}")
    return matrix


def parse_stochastic(values: Any, name: str) -> FloatArray:
    """Return a read-only square matrix whose rows are distributions.

    >>> parse_stochastic([[0.9, 0.2], [0.4, 0.6]], "transition")
    Traceback (most recent call last):
        ...
    quiltwork.errors.InvalidInputError: Row 1 of transition sums to 1.1, not 1; correct it or
    divide it by its sum.
    """
    matrix = parse_matrix(values, name)
    for i in range(len(matrix)):
        matrix[i] = _normalized(matrix[i], f"Row {i + 1} of {name}")
    return frozen(matrix)


def parse_distribution(values: Any, size: int, name: str) -> FloatArray:
    """Return a read-only probability vector with `size` entries."""
    vector = parse_numbers(values, name, dimensions=1)
    if len(vector) != size:
        raise InvalidInputError(
            f"{name} has {len(vector)} entries for {size} states; give one probability per state."
        )
    if not ((vector >= 0) & (vector <= 1 + SUM_TOLERANCE)).all():
        _refuse_entry(vector, name)
    return frozen(_normalized(vector, name))


def frozen(array: NDArray[Any]) -> NDArray[Any]:
    """Return the array itself, made read-only."""
    array.setflags(write=False)
    return array


def parse_numbers(values: Any, name: str, dimensions: int | None) -> FloatArray:
    """Return a float64 copy of `values` with this number of dimensions; None for any but 0."""
    try:
        raw = np.asarray(values)
        if raw.dtype.kind not in "iufO" or _holds_text(raw):
            raise TypeError
        array = np.array(raw, dtype=np.float64) + 0.0
    except (TypeError, ValueError, OverflowError):
        _refuse_ragged(values, name)
        raise InvalidInputError(
            f"{name} must hold plain numbers, not {shortened(values)}; give a list of rows or an "
            "array of floats."
        ) from None
    if dimensions is None and array.ndim:
        return array
    if array.ndim != dimensions:
        shape = "a list of rows (two dimensions)" if dimensions == 2 else "one list of numbers"
        raise InvalidInputError(f"{name} must be {shape}; got {array.ndim} dimension(s).")
    return array


def _holds_text(raw: NDArray[Any]) -> bool:
    return raw.dtype.kind == "O" and any(isinstance(x, (str, bytes, bool)) for x in raw.flat)


def _refuse_ragged(values: Any, name: str) -> None:
    try:
        lengths = [len(row) for row in values if not isinstance(row, str)]
    except TypeError:
        return
    for i, length in enumerate(lengths):
        if length != lengths[0]:
            raise InvalidInputError(
                f"Row {i + 1} of {name} has {length} entries, row 1 has {lengths[0]}; "
                "give every row the same length."
            ) from None


def _refuse_entry(row: FloatArray, where: str) -> None:
    column = int(np.flatnonzero(~((row >= 0) & (row <= 1 + SUM_TOLERANCE)))[0])
    value = float(row[column])
    raise InvalidInputError(
        f"{where} has {value!r} in position {column + 1}; a probability is a number from 0 to 1."
    )


def _normalized(row: FloatArray, where: str) -> FloatArray:
    # Correctly rounded, so that acceptance does not depend on the order of summation.
    total = math.fsum(row.tolist())
    if abs(total - 1) > SUM_TOLERANCE:
        raise InvalidInputError(
            f"{where} sums to {total:.10g}, not 1; correct it or divide it by its sum."
        )
    # Rows within rounding of 1 are kept bit for bit, so a stored belief reads back equal.
    return row if abs(total - 1) <= KEPT_AS_IS else row / total


def parse_matrices(matrices: Any) -> FloatArray:
    """Return (p, k, k) read-only stochastic matrices."""
    try:
        rows = list(matrices)
    except TypeError:
        rows = []
    if not 0 < len(rows) <= _MOST_PHASES:
        raise InvalidInputError(
            f"matrices must be a list of 1 to {_MOST_PHASES:,} square matrices, one per phase."
        )
    parsed = [parse_stochastic(matrix, f"matrix {phase}") for phase, matrix in enumerate(rows)]
    for phase, matrix in enumerate(parsed):
        if matrix.shape != parsed[0].shape:
            raise InvalidInputError(
                f"Matrix {phase} has {len(matrix)} rows and matrix 0 has {len(parsed[0])}; give "
                "all of them one row per state."
            )
    return np.array(parsed)
