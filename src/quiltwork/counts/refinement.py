"""Linear programs solved beyond floating point, by iterative refinement.

HiGHS answers to about 1e-9. Each further round solves a program for the error itself, scaled up
to full size, with residuals computed in exact fractions; two or three rounds reach 1e-16. The form
is: minimise c·z with M·z = b and z ≥ 0.

Method: Gleixner, Steffy and Wolter, iterative refinement for linear programming (2016).
Cost: one call of HiGHS per round, O(nonzeros) fractions in between.
"""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from typing import TypeAlias

import numpy as np

from quiltwork.errors import QuiltworkError

Vector: TypeAlias = list[Fraction]

_ROUNDS = 4
_ENOUGH = Fraction(1, 10**16)
_MOST_SCALING = Fraction(1 << 40)
_GRID = 1 << 120  # keeps fractions short; far below what is asked for
_ATTEMPTS = (("highs-ds", 1e-9), ("highs-ds", 1e-7), ("highs-ipm", 1e-7))


@dataclass(frozen=True)
class SparseRows:
    """An exact sparse matrix: for each row, its (column, entry) pairs."""

    rows: tuple[tuple[tuple[int, Fraction], ...], ...]
    width: int

    def times(self, vector: Vector) -> Vector:
        """Return M·vector."""
        return [sum((m * vector[j] for j, m in row), Fraction(0)) for row in self.rows]

    def transposed_times(self, vector: Vector) -> Vector:
        """Return Mᵀ·vector."""
        result = [Fraction(0)] * self.width
        for value, row in zip(vector, self.rows, strict=True):
            if value:
                for j, m in row:
                    result[j] += m * value
        return result


@dataclass(frozen=True)
class Solution:
    """Primal z and dual y, near-optimal to about 1e-16; z may be off by as little."""

    primal: Vector
    dual: Vector


def solve_precisely(costs: Vector, matrix: SparseRows, bounds: Vector) -> Solution:
    """Minimise costs·z over M·z = bounds, z ≥ 0; the primal of the first round is a vertex.

    Raises:
        QuiltworkError: if HiGHS finds no solution in the first round.
    """
    primal: Vector = [Fraction(0)] * matrix.width
    dual: Vector = [Fraction(0)] * len(matrix.rows)
    primal_scale = dual_scale = Fraction(1)
    for attempt in range(_ROUNDS):
        missing = _difference(bounds, matrix.times(primal))
        reduced = _difference(costs, matrix.transposed_times(dual))
        if attempt:
            primal_error, dual_error = max(_largest(missing), -min(primal)), -min(reduced)
            if max(primal_error, dual_error) <= _ENOUGH:
                break
            primal_scale = _scale(primal_scale, primal_error)
            dual_scale = _scale(dual_scale, dual_error)
        step = _solve(reduced, matrix, missing, primal, primal_scale, dual_scale)
        if step is None:
            if not attempt:
                raise QuiltworkError(
                    "HiGHS did not solve the program; its numbers are too extreme."
                )
            break
        primal = [
            _short(z + Fraction(float(d)) / primal_scale)
            for z, d in zip(primal, step[0], strict=True)
        ]
        dual = [
            _short(y + Fraction(float(d)) / dual_scale) for y, d in zip(dual, step[1], strict=True)
        ]
    return Solution(primal, dual)


def _solve(
    reduced: Vector,
    matrix: SparseRows,
    missing: Vector,
    primal: Vector,
    primal_scale: Fraction,
    dual_scale: Fraction,
) -> tuple[list[float], list[float]] | None:
    """Solve for the scaled correction: costs `reduced`, right side `missing`, z + step ≥ 0."""
    from scipy.optimize import linprog
    from scipy.sparse import csr_matrix

    triples = [(i, j, float(m)) for i, row in enumerate(matrix.rows) for j, m in row]
    i, j, m = (np.array(part) for part in zip(*triples, strict=True))
    lower = np.array([float(-primal_scale * z) for z in primal])
    for method, tolerance in _ATTEMPTS:
        result = linprog(
            np.array([float(dual_scale * c) for c in reduced]),
            A_eq=csr_matrix((m, (i, j)), shape=(len(matrix.rows), matrix.width)),
            b_eq=np.array([float(primal_scale * b) for b in missing]),
            bounds=np.column_stack([lower, np.full(matrix.width, np.inf)]),
            method=method,
            options={
                "primal_feasibility_tolerance": tolerance,
                "dual_feasibility_tolerance": tolerance,
            },
        )
        if result.status == 0:
            return result.x.tolist(), result.eqlin.marginals.tolist()
    return None


def _difference(a: Vector, b: Vector) -> Vector:
    return [x - y for x, y in zip(a, b, strict=True)]


def _largest(vector: Vector) -> Fraction:
    return max((abs(value) for value in vector), default=Fraction(0))


def _scale(before: Fraction, error: Fraction) -> Fraction:
    """Return the power of two by which an error of this size is brought to about 1."""
    wanted = Fraction(1 << int(1 / max(error, _ENOUGH)).bit_length())
    return min(max(before, wanted), before * _MOST_SCALING)


def _short(value: Fraction) -> Fraction:
    return Fraction(round(value * _GRID), _GRID)
