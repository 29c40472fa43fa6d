"""Mechanisms as matrices of exact fractions: validation, privacy, repair, composition, Bayes' rule.

The constraint matrix of Figure 3 shows where a mechanism's privacy constraints are tight: between
rows i and i+1, column r of an α-private mechanism falls by exactly α ("down"), rises by exactly 1/α
("up"), does neither ("slack"), or is zero altogether ("zero"). For an optimal vertex of a
consumer's program these states form a pattern that only remaps of the geometric mechanism have.

Theorem: docs/theory/geometric-mechanism.md (Structure)
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from fractions import Fraction
from itertools import pairwise
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

from quiltwork.arguments import instance
from quiltwork.counts.alpha_levels import parse_alpha
from quiltwork.counts.consumers.consumer import Consumer
from quiltwork.errors import InvalidInputError, NotPrivateError
from quiltwork.exact import Number, float_down, float_up, shortened, to_fraction

FractionMatrix: TypeAlias = list[list[Fraction]]

_SUM_TOLERANCE = Fraction(1, 10**9)  # for floats, and for programs solved in floats


def parse_mechanism(matrix: Any, name: str = "the mechanism") -> FractionMatrix:
    """Validate a stochastic matrix exactly: fractions as they are, floats by their binary value."""
    rows = [list(row) for row in matrix] if _is_nested(matrix) else []
    if len(rows) < 2 or len({len(row) for row in rows}) != 1:
        raise InvalidInputError(f"{name} must be a matrix with one row per count, at least 2.")
    fractions = [[_parse_entry(entry, name) for entry in row] for row in rows]
    for i, row in enumerate(fractions):
        total = sum(row, Fraction(0))
        if min(row) < -_SUM_TOLERANCE or abs(total - 1) > _SUM_TOLERANCE:
            raise InvalidInputError(
                f"Row {i} of {name} is not a distribution: probabilities must be at least 0 and "
                f"add up to 1, not to {float(total):.9g}."
            )
    return fractions


def _parse_entry(entry: Any, name: str) -> Fraction:
    number = entry.item() if isinstance(entry, np.generic) else entry
    if isinstance(number, float) and math.isfinite(number):
        return Fraction(number)
    return to_fraction(number, f"An entry of {name}")


def _is_nested(matrix: Any) -> bool:
    return _is_list(matrix) and all(_is_list(row) for row in matrix)


def _is_list(part: Any) -> bool:
    return isinstance(part, Sequence) or (isinstance(part, np.ndarray) and part.ndim > 0)


def compose(matrix: FractionMatrix, remap: FractionMatrix) -> FractionMatrix:
    """Return y∘x, the mechanism x followed by the remap y: (y∘x)[i][r] = Σ_s x[i][s]·y[s][r]."""
    columns = list(zip(*remap, strict=True))
    return [
        [
            sum((a * b for a, b in zip(row, column, strict=True) if a and b), Fraction(0))
            for column in columns
        ]
        for row in matrix
    ]


def deterministic(mapping: Sequence[int]) -> FractionMatrix:
    """Return a deterministic remap as a matrix of zeros and ones."""
    size = len(mapping)
    return [[Fraction(int(mapping[s] == r)) for r in range(size)] for s in range(size)]


def expected_loss(matrix: FractionMatrix, costs: FractionMatrix) -> Fraction:
    """Return Σ costs·x, with costs[i][r] = prior[i]·l(i, r)."""
    pairs = zip(matrix, costs, strict=True)
    return sum((x * c for row, cost in pairs for x, c in zip(row, cost, strict=True)), Fraction(0))


def smallest_slack(matrix: FractionMatrix, alpha: Fraction) -> Fraction:
    """Return the least x[i±1][r] − α·x[i][r]; negative if the mechanism is not α-private."""
    return min(
        min(b - alpha * a, a - alpha * b)
        for above, below in pairwise(matrix)
        for a, b in zip(above, below, strict=True)
    )


def make_stochastic(matrix: FractionMatrix) -> FractionMatrix:
    """Clip entries at 0 and divide every row by its sum."""
    clipped = [[max(Fraction(0), entry) for entry in row] for row in matrix]
    return [[entry / sum(row) for entry in row] for row in clipped]


def mix_until_private(matrix: FractionMatrix, alpha: Fraction) -> tuple[FractionMatrix, Fraction]:
    """Mix with the uniform mechanism until neighbouring rows keep α; return it and the share λ.

    If x[i±1] ≥ α·x[i] fails by at most v, the share λ = v(n+1)/((1−α) + v(n+1)) of uniform noise
    restores it. At α = 1 all rows become their average.
    """
    size = len(matrix)
    if alpha == 1:
        average = [sum(column, Fraction(0)) / size for column in zip(*matrix, strict=True)]
        return [list(average) for _ in range(size)], Fraction(0)
    # Uniform noise has slack (1−α)/(n+1) in every constraint, which pays for the violation.
    violation = max(Fraction(0), -smallest_slack(matrix, alpha))
    share = violation * size / ((1 - alpha) + violation * size)
    uniform = share / size
    return [[(1 - share) * entry + uniform for entry in row] for row in matrix], share


def private_floats(matrix: FractionMatrix, alpha: Fraction) -> NDArray[np.float64]:
    """Round a private mechanism to floats that keep α exactly.

    Each entry is the float nearest to its own value among those that keep α with the rounded entry
    above it. An entry moves by a relative (n+1)·2^-52 at most, or by the smallest float if it is
    about as small.
    """
    columns = []
    for column in zip(*matrix, strict=True):
        rounded = [
            float_up(column[0])
        ]  # never 0 for a possible answer: all entries below would be 0
        for entry in column[1:]:
            above = Fraction(rounded[-1])
            lowest = float_up(alpha * above)
            highest = float_down(min(above / alpha, Fraction(1))) if alpha else 1.0
            rounded.append(min(max(float(entry), lowest), highest))
        columns.append(rounded)
    return np.array(columns).T


def best_remap(matrix: Any, consumer: Consumer) -> tuple[tuple[int, ...], Fraction]:
    """Return the consumer's Bayes-optimal remap of any mechanism, and its loss, exactly.

    Ties go to the smallest answer. The mechanism may have any number of answers; the remapped ones
    are counts 0..n. Cost: O(n³) operations on integers, seconds at n = 200.
    """
    x = parse_mechanism(matrix)
    size = len(x)
    prior = instance(consumer, Consumer, "consumer").fractions(size - 1)
    weights, share = _whole([[p * entry for entry in row] for p, row in zip(prior, x, strict=True)])
    losses, unit = _whole([[consumer.loss.exact(i, r) for r in range(size)] for i in range(size)])
    costs = (weights.T @ losses).tolist()
    least = [min(row) for row in costs]
    mapping = tuple(row.index(cost) for row, cost in zip(costs, least, strict=True))
    return mapping, Fraction(sum(least), share * unit)


def _whole(matrix: FractionMatrix) -> tuple[NDArray[Any], int]:
    """Return the matrix times a common denominator, as Python integers, and that denominator."""
    scale = math.lcm(*{entry.denominator for row in matrix for entry in row})
    rows = [[entry.numerator * (scale // entry.denominator) for entry in row] for row in matrix]
    return np.array(rows, dtype=object), scale


States: TypeAlias = NDArray[np.object_]

DOWN, UP, SLACK, ZERO = "down", "up", "slack", "zero"


def constraint_matrix(matrix: Any, alpha: Number, tolerance: Number | None = None) -> States:
    """Return the n×(n+1) constraint states of Figure 3: "down", "up", "slack" or "zero".

    Entry [i, r] is "down" if α·x[i,r] = x[i+1,r] and "up" if x[i,r] = α·x[i+1,r]. Fractions are
    compared exactly; floats within `tolerance` (1e-9 by default), relative to the column.

    Raises:
        NotPrivateError: naming the first pair of rows that violates α.

    >>> from quiltwork.counts import GeometricMechanism
    >>> print(constraint_matrix(GeometricMechanism(2, alpha=0.5).matrix(exact=True), 0.5))
    [['down' 'up' 'up']
     ['down' 'down' 'up']]

    Theorem: docs/theory/geometric-mechanism.md
    """
    level = parse_alpha(alpha)
    if not 0 < level < 1:
        raise InvalidInputError(f"A constraint matrix needs 0 < alpha < 1, not {alpha!r}.")
    fractions = parse_mechanism(matrix)
    slack = parse_tolerance(matrix, tolerance)
    columns = [
        _column(r, list(column), level, slack)
        for r, column in enumerate(zip(*fractions, strict=True))
    ]
    states = np.empty((len(fractions) - 1, len(columns)), dtype=object)
    for r, column in enumerate(columns):
        states[:, r] = column
    return states


def parse_tolerance(matrix: Any, tolerance: Number | None) -> Fraction:
    """Return the given tolerance, by default 1e-9 for floats and 0 for fractions."""
    if tolerance is not None:
        given = to_fraction(tolerance, "tolerance")
        if not 0 <= given < 1:
            raise InvalidInputError(f"tolerance must lie in 0..1, not {shortened(tolerance)}.")
        return given
    floats = any(isinstance(entry, (float, np.floating)) for row in matrix for entry in row)
    return Fraction(1, 10**9) if floats else Fraction(0)


def _column(r: int, column: list[Fraction], alpha: Fraction, slack: Fraction) -> list[str]:
    if max(column) <= slack:
        return [ZERO] * (len(column) - 1)
    states = []
    for i, (current, below) in enumerate(pairwise(column)):
        margin = slack * max(current, below)
        if below < alpha * current - margin or current < alpha * below - margin:
            raise NotPrivateError(
                f"The probabilities of answer {r} at counts {i} and {i + 1} ({float(current):.6g}, "
                f"{float(below):.6g}) differ by more than a factor 1/alpha: the mechanism is not "
                f"{float(alpha):.6g}-private."
            )
        falls, rises = (
            abs(below - alpha * current) <= margin,
            abs(current - alpha * below) <= margin,
        )
        states.append(DOWN if falls else UP if rises else SLACK)
    return states
