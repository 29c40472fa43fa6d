"""Exact linear algebra in fractions, for the few coefficients of a Gaussian belief."""

from __future__ import annotations

from collections.abc import Sequence
from fractions import Fraction
from typing import TypeVar

Entry = TypeVar("Entry")
Matrix = Sequence[Sequence[Fraction]]


def toeplitz(first: Sequence[Entry]) -> list[list[Entry]]:
    """Return the symmetric Toeplitz matrix with this first row.

    >>> toeplitz([1, 2])
    [[1, 2], [2, 1]]
    """
    return [[first[abs(i - j)] for j in range(len(first))] for i in range(len(first))]


def solved(matrix: Matrix, right: Sequence[Fraction]) -> list[Fraction] | None:
    """Return the solution x of matrix·x = right; None if the matrix is singular. O(n³).

    >>> solved([[Fraction(2), Fraction(1)], [Fraction(1), Fraction(1)]], [Fraction(3), Fraction(2)])
    [Fraction(1, 1), Fraction(1, 1)]
    """
    rows = [[*row, value] for row, value in zip(matrix, right, strict=True)]
    for column in range(len(rows)):
        # Any pivot that is not 0 will do, since fractions have no rounding errors.
        pivot = next((i for i in range(column, len(rows)) if rows[i][column]), None)
        if pivot is None:
            return None
        rows[column], rows[pivot] = rows[pivot], rows[column]
        for i in range(len(rows)):
            if i != column and rows[i][column]:
                factor = rows[i][column] / rows[column][column]
                rows[i] = [a - factor * b for a, b in zip(rows[i], rows[column], strict=True)]
    return [row[-1] / row[i] for i, row in enumerate(rows)]
