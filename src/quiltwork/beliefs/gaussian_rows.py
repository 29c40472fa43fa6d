"""`GaussianRows`: correlated numbers of several people or places.

Theorem: docs/theory/gaussian.md
"""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from quiltwork.beliefs.documents import field
from quiltwork.beliefs.gaussian import (
    Gaussian,
    parse_stored_within,
    parse_within,
    within_suffix,
    within_words,
)
from quiltwork.beliefs.matrices import FloatArray, parse_numbers
from quiltwork.errors import InvalidInputError
from quiltwork.exact import Number, counted, integer, to_fraction

_SYMMETRY = 1e-12
"""Rounding errors that a computed correlation matrix may have."""
_MOST_ROWS = 10**4
_MOST_IN_ALL = 10**7


@dataclass(frozen=True, init=False, eq=False, repr=False)
class GaussianRows(Gaussian):
    """Rows whose numbers are jointly Gaussian: families, neighbouring sites.

    Give `correlation`, or `bounds` with `rows` for every correlation matrix whose entries are at
    most `bounds` in size, whatever their signs. Means may be any.

    Args:
        correlation: m×m, symmetric, positive definite, 1 on the diagonal, up to rounding.
        deviations: the standard deviation of each row, where they differ; only ratios matter.
        bounds: the largest correlation between two rows, 0 ≤ bounds < 1.
        rows: how many rows `bounds` is about.
        families: the number of independent groups of such rows, one after the other.
        within: the largest true difference in one row that is hidden, in units of the data; by
            default the range hi − lo of the query. Clipping the data does not bound it.

    Raises:
        InvalidInputError: naming the entry that is wrong.

    >>> GaussianRows([[1, 0.5], [0.5, 1]], families=100).length
    200
    """

    correlation: FloatArray
    deviations: FloatArray
    bounded: bool
    families: int
    within: Fraction | None
    length: int
    schema = "belief/gaussian-rows"

    def __init__(
        self,
        correlation: ArrayLike | None = None,
        *,
        deviations: ArrayLike | None = None,
        bounds: Number | None = None,
        rows: int | None = None,
        families: int = 1,
        within: Number | None = None,
    ) -> None:
        if (correlation is None) == (bounds is None) or (bounds is None) != (rows is None):
            raise InvalidInputError(
                "Give GaussianRows a correlation matrix, or bounds=0.3 with rows=3 for every "
                "matrix with correlations up to 0.3 in size."
            )
        matrix = (
            _equicorrelation(bounds, rows)
            if correlation is None
            else _parse_correlation(correlation)
        )
        spread, bounded = _parse_deviations(deviations, len(matrix)), correlation is None
        groups = integer(families, "families", 1, _MOST_IN_ALL // len(matrix))
        length = len(matrix) * groups
        self.__setstate__((matrix, spread, bounded, groups, parse_within(within), length))

    @property
    def size(self) -> int:
        """The number of rows of one family."""
        return len(self.correlation)

    @property
    def farthest(self) -> Fraction | None:
        """The largest change of any number when a secret changes; None without `within`."""
        if self.within is None:
            return None
        slopes = np.abs(self.correlation) * self.deviations / self.deviations[:, np.newaxis]
        # Rounded up: the farthest change bounds what is hidden.
        return self.within * Fraction(float(slopes.max()) * (1 + _SYMMETRY))

    def _written(self) -> dict[str, Any]:
        return {
            "correlation": None if self.bounded else self.correlation.tolist(),
            "deviations": self.deviations.tolist(),
            "bounds": self.largest if self.bounded else None,
            "rows": self.size if self.bounded else None,
            "families": self.families,
            "within": None if self.within is None else str(self.within),
        }

    @property
    def largest(self) -> float:
        """The largest correlation between two rows, in size; 0 for a single row."""
        return float(np.abs(self.correlation - np.eye(self.size)).max())

    @classmethod
    def _arguments(cls, document: dict[str, Any]) -> dict[str, Any]:
        names = ("correlation", "deviations", "bounds", "rows", "families")
        fields = {name: field(document, name) for name in names}
        return {**fields, "within": parse_stored_within(document)}

    def summary(self) -> str:
        """Return the numbers of rows and the largest correlation in words."""
        group = f" in {self.families} independent families" if self.families > 1 else ""
        up = "any correlations up to" if self.bounded else "correlations of at most"
        rows = counted(self.length, "Gaussian row")
        return f"{rows}{group} with {up} {self.largest:g}{within_words(self)}"

    def __repr__(self) -> str:
        """Return the numbers of rows and the largest correlation, without the matrix."""
        noun = "row" if self.size == 1 else "rows"
        many = f", {self.families} families of them" if self.families > 1 else ""
        up = "correlations up to" if self.bounded else "largest correlation"
        return f"GaussianRows({self.size} {noun}{many}; {up} {self.largest:g}{within_suffix(self)})"


def _equicorrelation(bounds: Any, rows: Any) -> FloatArray:
    """Return the matrix with the largest correlations within the bounds."""
    largest = to_fraction(bounds, "bounds")
    if not 0 <= largest < 1:
        raise InvalidInputError(
            f"bounds is {float(largest):g}; give the largest correlation, from 0 to below 1."
        )
    size = integer(rows, "rows", 1, _MOST_ROWS)
    matrix = np.full((size, size), float(largest))
    np.fill_diagonal(matrix, 1.0)
    return matrix


def _parse_correlation(values: Any) -> FloatArray:
    matrix = parse_numbers(values, "correlation", dimensions=2)
    rows, columns = matrix.shape
    if rows != columns or not 1 <= rows <= _MOST_ROWS:
        raise InvalidInputError(
            f"correlation has {rows} rows and {columns} columns; it must be square, one row and "
            f"one column per row of the data, at most {_MOST_ROWS:,}."
        )
    matrix = _rounded(matrix)
    wrong = ~(np.abs(matrix) <= 1) | ((matrix == 1) ^ np.eye(rows, dtype=np.bool_))
    wrong |= ~(np.abs(matrix - matrix.T) <= _SYMMETRY)
    if wrong.any():
        i, j = np.argwhere(wrong)[0].tolist()
        raise InvalidInputError(
            f"Entry ({i + 1}, {j + 1}) of correlation is {float(matrix[i, j])!r}; a correlation "
            "matrix is symmetric, with 1 on the diagonal and numbers between -1 and 1 elsewhere."
        )
    # Of two entries that differ by rounding, the larger in size.
    matrix = np.where(np.abs(matrix) >= np.abs(matrix.T), matrix, matrix.T)
    try:
        np.linalg.cholesky(matrix)
    except np.linalg.LinAlgError:
        raise InvalidInputError(
            "correlation is not positive definite, so no numbers have these correlations. Estimate "
            "all entries from the same rows."
        ) from None
    return matrix


def _rounded(matrix: FloatArray) -> FloatArray:
    """Return the matrix with 1 on the diagonal, if it is 1 up to rounding; other entries raised."""
    diagonal = np.diag(matrix)
    if (diagonal == 1).all() or not (np.abs(diagonal - 1) <= _SYMMETRY).all():
        return matrix
    # A correlation is an entry over √(d_i·d_j), where d is 1 within the tolerance. Raised, an
    # entry must stay below 1.
    inner = np.abs(matrix) < 1 - 2 * _SYMMETRY
    raised = np.where(inner, matrix * (1 + 2 * _SYMMETRY), matrix)
    np.fill_diagonal(raised, 1.0)
    return raised


def _parse_deviations(values: Any, rows: int) -> FloatArray:
    if values is None:
        return np.ones(rows)
    deviations = parse_numbers(values, "deviations", dimensions=1)
    if len(deviations) != rows:
        raise InvalidInputError(
            f"deviations has {len(deviations)} entries for {rows} rows; give one per row."
        )
    if not ((deviations > 0) & np.isfinite(deviations)).all():
        position = int(np.flatnonzero(~((deviations > 0) & np.isfinite(deviations)))[0]) + 1
        raise InvalidInputError(f"Entry {position} of deviations must be greater than 0.")
    return deviations
