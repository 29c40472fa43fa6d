"""The privacy level of a table of disjoint counts, the noise of sums, and consistency.

Replacing one person's row moves two cells by 1 and costs a cell's level twice; adding or removing a
row moves one. If one person may have several rows, all may be in one cell, so each cost is
multiplied by their number.

Consistency is post-processing and free: counts that are negative or do not add up to a public total
are projected. Cost: O(cells · log cells).
"""

from __future__ import annotations

import math
from collections.abc import Hashable, Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import Any, Literal, TypeAlias

from quiltwork.counts.alpha_levels import alpha_for_epsilon, parse_level
from quiltwork.counts.contributors import number_of_people, substitution_level
from quiltwork.errors import InvalidInputError, NotPrivateError
from quiltwork.exact import Number, privacy_level, proper_fraction
from quiltwork.noise import TwoSidedGeometric
from quiltwork.wording import argument

Adjacency: TypeAlias = Literal["replace", "add-remove"]
Cell: TypeAlias = Hashable


@dataclass(frozen=True)
class TableLevel:
    """The table's level under its adjacency, for replacing a row, and the cells' noise ratios."""

    epsilon: Fraction
    dp_epsilon: Fraction
    alphas: tuple[Fraction, ...]


def table_level(
    cells: tuple[Cell, ...],
    epsilon: Number | None,
    alpha: Number | None,
    adjacency: Adjacency,
    beliefs: Any = None,
    people: int | None = None,
    at_most: int = 1,
) -> TableLevel:
    """Compute the levels of a table.

    `epsilon` is the level of the whole table, `alpha` that of every single cell; `at_most` is the
    number of rows that one person may have.
    """
    moved = min(len(cells), 2 if adjacency == "replace" else 1)
    if epsilon is not None and alpha is None:
        requested = privacy_level(epsilon, "epsilon")
        level = requested
        if beliefs is not None:
            level = _under_beliefs(beliefs, people, adjacency, requested)
        ratio = alpha_for_epsilon(level / (moved * at_most))
        replace_level = level / moved * min(len(cells), 2)
        return TableLevel(requested, replace_level, (ratio,) * len(cells))
    if beliefs is not None:
        raise InvalidInputError(
            f"With beliefs, give {argument('epsilon')}, the level of the whole table."
        )
    ratio, cost = parse_level(alpha, epsilon)
    if cost is None:
        raise NotPrivateError(
            "alpha = 0 adds no noise and would publish the counts themselves; give alpha > 0."
        )
    if ratio == 1:
        raise InvalidInputError(
            "alpha = 1 would spread noise evenly over all integers, which no distribution does; "
            "give alpha < 1."
        )
    each = at_most * cost
    return TableLevel(moved * each, min(len(cells), 2) * each, (ratio,) * len(cells))


def _under_beliefs(
    beliefs: Any, people: int | None, adjacency: Adjacency, epsilon: Fraction
) -> Fraction:
    count = number_of_people(beliefs) if people is None else people
    if adjacency != "replace" or count is None:
        raise InvalidInputError(
            "With beliefs the people are known and only their rows are protected: use adjacency "
            f"replace, and under a chain give {argument('total')}, the number of people."
        )
    return substitution_level(beliefs, count, epsilon)


def sum_quantile(alphas: Sequence[Fraction], confidence: Number) -> int:
    """Return c with P(|sum of independent noises| ≤ c) ≥ confidence, by Chernoff's bound.

    The moment generating function of ratio α is (1−α)²/((1−αe^t)(1−αe^−t)) for αe^t < 1. The bound
    holds for every t, so a coarse search over t is safe.
    """
    level = proper_fraction(confidence, "confidence")
    if len(alphas) == 1:
        return TwoSidedGeometric.from_alpha(alphas[0]).quantile(level)
    ratios = [float(alpha) for alpha in alphas if alpha]
    largest = -math.log(max(ratios)) if ratios else 1.0
    miss = math.log((1 - level).numerator) - math.log(2 * (1 - level).denominator)
    best = math.inf
    for step in range(1, 100):
        t = largest * step / 100
        growth = sum(
            2 * math.log1p(-a) - math.log1p(-a * math.exp(t)) - math.log1p(-a * math.exp(-t))
            for a in ratios
        )
        best = min(best, (growth - miss) / t)
    # Rounded up by more than the floats of the search can lose.
    return math.ceil(best * (1 + 1e-9))


def project(noisy: Sequence[int], total: int | None) -> tuple[int, ...]:
    """Return the integers ≥ 0 nearest to the noisy ones, with sum `total` if there is one.

    They are max(x − θ, 0) with one θ for all cells; if θ is not an integer, the first cells above
    it are rounded up. O(k log k), in integers.

    >>> project([5, -1, 3], total=6)
    (4, 0, 2)
    """
    if not total:
        return tuple(0 if total == 0 else max(0, value) for value in noisy)
    above, excess = 0, -total
    for value in sorted(noisy, reverse=True):
        if above * value <= excess:  # at most θ = excess/above, as are all later values
            break
        above, excess = above + 1, excess + value
    shift = -(-excess // above)
    rounded_up = above * shift - excess
    projected = []
    for value in noisy:
        extra = value * above > excess and rounded_up > 0
        rounded_up -= extra
        projected.append(max(0, value - shift) + extra)
    return tuple(projected)
