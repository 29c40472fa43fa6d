"""Derivability: whether a mechanism is a post-processing (remap) of the geometric mechanism.

G has a tridiagonal inverse up to scaling, so x = y∘G has at most one solution y; it is a remap if
and only if (1+α²)·x[i] ≥ α·(x[i−1] + x[i+1]) holds in every column. Optimal vertices with the
paper's structure come from deterministic remaps, which can be read off the constraint matrix (Lemma
5.11). Cost: O(n²) fractions.

Theorem: docs/theory/geometric-mechanism.md (Derivability)
"""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from typing import Any

from quiltwork.counts.alpha_levels import parse_alpha
from quiltwork.counts.geometric_matrix import column_weights
from quiltwork.counts.optimality.exact_matrix import (
    FractionMatrix,
    parse_mechanism,
    parse_tolerance,
)
from quiltwork.exact import Number


@dataclass(frozen=True)
class Derivation:
    """How a mechanism x arises from the geometric mechanism G.

    Attributes:
        derivable: whether x = y∘G for a remap y.
        remap: y[s][r], the probability of reading G's answer s as r; with a negative entry if x is
            not derivable.
        detail: where it fails, or "".
        tolerance: the rounding error allowed in entries.
    """

    derivable: bool
    remap: FractionMatrix
    detail: str
    tolerance: Fraction = Fraction(0)

    @property
    def mapping(self) -> tuple[int, ...] | None:
        """The remap as a function of the answer, if it is deterministic; else None."""
        if not self.derivable or any(max(row) < 1 - self.tolerance for row in self.remap):
            return None
        return tuple(row.index(max(row)) for row in self.remap)


def derive(matrix: Any, alpha: Number, tolerance: Number | None = None) -> Derivation:
    """Return the remap y with x = y∘G, or where none exists.

    Fractions are exact; for floats, entries of y may be off by `tolerance` (1e-9 by default), and
    so may rows at α = 1.

    >>> from quiltwork.counts.geometric_matrix import geometric_matrix
    >>> g = geometric_matrix(2, Fraction(1, 2), exact=True)
    >>> derive(g[:, ::-1], 0.5).mapping
    (2, 1, 0)

    Theorem: docs/theory/geometric-mechanism.md
    """
    x = parse_mechanism(matrix)
    level = parse_alpha(alpha)
    slack = parse_tolerance(matrix, tolerance)
    remap = _inverse_times(x, level)
    if level == 1 and any(abs(a - b) > slack for row in x for a, b in zip(row, x[0], strict=True)):
        return Derivation(
            False, remap, "at alpha = 1 every count must have the same distribution of answers"
        )
    for s, row in enumerate(remap):
        least = min(row)
        if least < -slack:
            r = row.index(least)
            return Derivation(
                False,
                remap,
                f"answer {r} would need G's answer {s} with probability {float(least):.6g} < 0",
            )
    return Derivation(True, remap, "", slack)


def _inverse_times(x: FractionMatrix, alpha: Fraction) -> FractionMatrix:
    """Return G⁻¹·x; at α = 1, where every row of x is the same, x itself.

    G = K·diag(v) with K[i,r] = α^|i−r|, whose inverse has 1, 1+α², …, 1+α², 1 on the diagonal and
    −α beside it, divided by 1−α².
    """
    if alpha == 1:
        return [list(row) for row in x]
    n = len(x) - 1
    weights = column_weights(n, alpha, exact=True).tolist()
    rows = []
    for s in range(n + 1):
        diagonal = 1 if s in (0, n) else 1 + alpha**2
        neighbours = [x[t] for t in (s - 1, s + 1) if 0 <= t <= n]
        scale = weights[s] * (1 - alpha**2)
        rows.append(
            [
                (diagonal * entry - alpha * sum(row[r] for row in neighbours)) / scale
                for r, entry in enumerate(x[s])
            ]
        )
    return rows
