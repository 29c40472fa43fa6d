"""The consumer's linear program solved beyond floating point: the independent side of Theorem 3.1.

HiGHS answers to about 1e-9, which very small probabilities are lost in. Each further round solves a
program for the error itself, scaled up to full size, with residuals computed in integers of 120
binary places; two or three rounds reach 1e-16. The form is: minimise c·z with M·z = b and z ≥ 0.

Method: Gleixner, Steffy and Wolter, iterative refinement for linear programming (2016).
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property
from itertools import product
from typing import Any, TypeAlias

import numpy as np

from quiltwork.errors import QuiltworkError

Vector: TypeAlias = list[Fraction]

_ROUNDS = 4
_PLACES = 120
_ENOUGH_BITS = 53
_MOST_SCALING_BITS = 40
_SECONDS = 120.0
_REFINING_ITERATIONS = 10  # per variable: degenerate programs can go in circles
_ATTEMPTS = (("highs-ds", 1e-9, True), ("highs-ds", 1e-9, False), ("highs-ds", 1e-7, False))
"""Method, tolerance, presolve: the presolve of some HiGHS versions gives up on tiny entries."""


@dataclass(frozen=True)
class SparseRows:
    """An exact sparse matrix: for each row, its (column, entry) pairs."""

    rows: tuple[tuple[tuple[int, Fraction], ...], ...]
    width: int

    @cached_property
    def denominator(self) -> int:
        """A common denominator of all entries."""
        return math.lcm(*{m.denominator for row in self.rows for _, m in row})

    @cached_property
    def whole(self) -> list[list[tuple[int, int]]]:
        """The entries times the common denominator, as integers."""
        scale = self.denominator
        return [[(j, m.numerator * (scale // m.denominator)) for j, m in row] for row in self.rows]

    @cached_property
    def floats(self) -> Any:
        """The matrix for the solver."""
        from scipy.sparse import csr_matrix

        triples = [(i, j, float(m)) for i, row in enumerate(self.rows) for j, m in row]
        i, j, m = (np.array(part) for part in zip(*triples, strict=True))
        return csr_matrix((m, (i, j)), shape=(len(self.rows), self.width))


@dataclass(frozen=True)
class Solution:
    """Primal z and dual y, near-optimal to about 1e-16; z may be off by as little."""

    primal: Vector
    dual: Vector


@dataclass(frozen=True)
class _Iterate:
    """A candidate in integers of 2^-120; `missing` and `reduced` also carry M's denominator."""

    primal: list[int]
    dual: list[int]
    missing: list[int]
    reduced: list[int]
    denominator: int

    @property
    def primal_error(self) -> int:
        return max(max(map(abs, self.missing)) // self.denominator, -min(self.primal))

    @property
    def dual_error(self) -> int:
        return -min(self.reduced) // self.denominator

    @property
    def error(self) -> int:
        return max(self.primal_error, self.dual_error)


def solve(costs: list[Vector], alpha: Fraction) -> tuple[list[Vector], list[Vector]]:
    """Return the α-private mechanism of least Σ costs·x, and prices for `lagrange_bound`.

    Variables are x[i][r], then a slack for each α·x[i+1][r] − x[i][r] + slack = 0 and its mirror.
    """
    size = len(costs)
    rows: list[tuple[tuple[int, Fraction], ...]] = []
    for i, mirrored, r in product(range(size - 1), (False, True), range(size)):
        here, there = i * size + r, (i + 1) * size + r
        small, large = (here, there) if mirrored else (there, here)
        slack = size * size + len(rows)
        rows.append(((small, alpha), (large, Fraction(-1)), (slack, Fraction(1))))
    private = len(rows)
    rows += [tuple((i * size + r, Fraction(1)) for r in range(size)) for i in range(size)]
    zero, one = Fraction(0), Fraction(1)
    found = solve_precisely(
        [cost for row in costs for cost in row] + [zero] * private,
        SparseRows(tuple(rows), size * size + private),
        [zero] * private + [one] * size,
    )
    prices = [max(zero, -dual) for dual in found.dual[:private]]
    return _lines(found.primal[: size * size], size), _lines(prices, size)


def _lines(numbers: Vector, size: int) -> list[Vector]:
    return [numbers[start : start + size] for start in range(0, len(numbers), size)]


def solve_precisely(costs: Vector, matrix: SparseRows, bounds: Vector) -> Solution:
    """Minimise costs·z over M·z = bounds, z ≥ 0."""
    unit = 1 << _PLACES
    whole_costs = [round(cost * unit) for cost in costs]
    whole_bounds = [round(bound * unit) for bound in bounds]

    def iterate(primal: list[int], dual: list[int]) -> _Iterate:
        missing = _missing(whole_bounds, matrix, primal)
        return _Iterate(
            primal, dual, missing, _reduced(whole_costs, matrix, dual), matrix.denominator
        )

    current = _step(matrix, iterate([0] * matrix.width, [0] * len(matrix.rows)), 0, 0, iterate)
    if current is None:
        raise QuiltworkError("HiGHS did not solve the program; its numbers are too extreme.")
    for _ in range(_ROUNDS - 1):
        if current.error.bit_length() <= _PLACES - _ENOUGH_BITS:
            break
        scales = _scaling(current.primal_error), _scaling(current.dual_error)
        refined = _step(matrix, current, *scales, iterate)
        if refined is None or refined.error >= current.error:
            break
        current = refined
    return Solution(
        [Fraction(z, unit) for z in current.primal], [Fraction(y, unit) for y in current.dual]
    )


def _highs(
    attempts: Sequence[tuple[str, float, bool]], limits: dict[str, Any], **program: Any
) -> Any:
    """Return what HiGHS finds by the first method that succeeds; None if none does."""
    from scipy.optimize import linprog

    for method, tolerance, presolve in attempts:
        options = {
            "presolve": presolve,
            "primal_feasibility_tolerance": tolerance,
            "dual_feasibility_tolerance": tolerance,
            **limits,
        }
        result = linprog(**program, method=method, options=options)
        if result.status == 0:
            return result
    return None


def _step(
    matrix: SparseRows,
    at: _Iterate,
    primal_bits: int,
    dual_bits: int,
    iterate: Callable[[list[int], list[int]], _Iterate],
) -> _Iterate | None:
    """Solve for the error, magnified by 2^bits, and correct by it."""
    step = _solve(
        matrix,
        _floats(at.reduced, matrix.denominator, dual_bits),
        _floats(at.missing, matrix.denominator, primal_bits),
        _floats([-z for z in at.primal], 1, primal_bits),
        refining=bool(primal_bits or dual_bits),
    )
    if step is None:
        return None
    return iterate(
        [z + _whole(d, primal_bits) for z, d in zip(at.primal, step[0], strict=True)],
        [y + _whole(d, dual_bits) for y, d in zip(at.dual, step[1], strict=True)],
    )


def _missing(bounds: Sequence[int], matrix: SparseRows, primal: Sequence[int]) -> list[int]:
    """Return denominator·(b − M·z)."""
    return [
        matrix.denominator * bound - sum(m * primal[j] for j, m in row)
        for bound, row in zip(bounds, matrix.whole, strict=True)
    ]


def _reduced(costs: Sequence[int], matrix: SparseRows, dual: Sequence[int]) -> list[int]:
    """Return denominator·(c − Mᵀ·y)."""
    result = [matrix.denominator * cost for cost in costs]
    for value, row in zip(dual, matrix.whole, strict=True):
        if value:
            for j, m in row:
                result[j] -= m * value
    return result


def _solve(
    matrix: SparseRows,
    costs: list[float],
    sides: list[float],
    lower: list[float],
    refining: bool,
) -> tuple[list[float], list[float]] | None:
    """Solve one scaled program in floats: (z, y), or None if no attempt succeeds.

    A refinement ends early: without it, the answer is repaired and certified too.
    """
    limits: dict[str, Any] = {"time_limit": _SECONDS}
    if refining:
        limits["maxiter"] = _REFINING_ITERATIONS * matrix.width
    found = _highs(
        _ATTEMPTS,
        limits,
        c=costs,
        A_eq=matrix.floats,
        b_eq=sides,
        bounds=np.column_stack([lower, np.full(matrix.width, np.inf)]),
    )
    return None if found is None else (found.x.tolist(), found.eqlin.marginals.tolist())


def _floats(values: Sequence[int], denominator: int, bits: int) -> list[float]:
    """Return values/(denominator·2^120), magnified by 2^bits."""
    divisor = denominator << (_PLACES - bits)
    return [value / divisor for value in values]


def _whole(value: float, bits: int) -> int:
    return round(Fraction(value) * (1 << (_PLACES - bits)))


def _scaling(error: int) -> int:
    """Return how many bits bring an error of this size to about 1."""
    return min(_PLACES - max(error, 0).bit_length(), _MOST_SCALING_BITS)
