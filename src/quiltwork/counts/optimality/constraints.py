"""The constraint matrix of Figure 3: where a mechanism uses its privacy fully.

Between rows i and i+1, column r of an α-private mechanism falls by exactly α ("down"), rises by
exactly 1/α ("up"), does neither ("slack"), or is zero altogether ("zero"). For an optimal vertex of
a consumer's program these states form a pattern that only remaps of the geometric mechanism have.
Cost: O(n²) comparisons.

Theorem: docs/theory/geometric-mechanism.md (Structure)
"""

from __future__ import annotations

from fractions import Fraction
from itertools import pairwise
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

from quiltwork.counts.alpha_levels import read_alpha
from quiltwork.counts.optimality.exact_matrix import read_matrix
from quiltwork.errors import InvalidInputError, NotPrivateError
from quiltwork.exact import Number, shortened, to_fraction

States: TypeAlias = NDArray[np.object_]

DOWN, UP, SLACK, ZERO = "down", "up", "slack", "zero"


def constraint_matrix(matrix: Any, alpha: Number, tolerance: Number | None = None) -> States:
    """Return the n×(n+1) states of Figure 3: "down", "up", "slack" or "zero".

    Entry [i, r] is "down" if α·x[i,r] = x[i+1,r] and "up" if x[i,r] = α·x[i+1,r]. Fractions are
    compared exactly; floats within `tolerance` (1e-9 unless told), relative to the column.

    Raises:
        NotPrivateError: naming the first pair of rows that is further apart than α allows.

    >>> from quiltwork.counts import GeometricMechanism
    >>> print(constraint_matrix(GeometricMechanism(2, alpha=0.5).matrix(exact=True), 0.5))
    [['down' 'up' 'up']
     ['down' 'down' 'up']]

    Theorem: docs/theory/geometric-mechanism.md
    """
    level = read_alpha(alpha)
    if not 0 < level < 1:
        raise InvalidInputError(f"A constraint matrix needs 0 < alpha < 1, not {alpha!r}.")
    exact = read_matrix(matrix)
    slack = read_tolerance(matrix, tolerance)
    columns = [
        _column(r, list(column), level, slack) for r, column in enumerate(zip(*exact, strict=True))
    ]
    states = np.empty((len(exact) - 1, len(columns)), dtype=object)
    for r, column in enumerate(columns):
        states[:, r] = column
    return states


def read_tolerance(matrix: Any, tolerance: Number | None) -> Fraction:
    """Return by how much entries may be off: as told, else 1e-9 for floats, 0 for fractions."""
    if tolerance is not None:
        told = to_fraction(tolerance, "tolerance")
        if not 0 <= told < 1:
            raise InvalidInputError(f"tolerance must lie in 0..1, not {shortened(tolerance)}.")
        return told
    floats = any(isinstance(entry, (float, np.floating)) for row in matrix for entry in row)
    return Fraction(1, 10**9) if floats else Fraction(0)


def _column(r: int, column: list[Fraction], alpha: Fraction, slack: Fraction) -> list[str]:
    if max(column) <= slack:
        return [ZERO] * (len(column) - 1)
    states = []
    for i, (here, below) in enumerate(pairwise(column)):
        margin = slack * max(here, below)
        if below < alpha * here - margin or here < alpha * below - margin:
            raise NotPrivateError(
                f"Answer {r} is more than 1/alpha times likelier at one of the counts {i} and "
                f"{i + 1} ({float(here):.6g}, {float(below):.6g}): the mechanism is not "
                f"{float(alpha):.6g}-private."
            )
        falls, rises = abs(below - alpha * here) <= margin, abs(here - alpha * below) <= margin
        states.append(DOWN if falls else UP if rises else SLACK)
    return states
