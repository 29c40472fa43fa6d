"""The consumer's linear program (2)–(6): the best α-private mechanism for one prior and one loss.

It knows nothing of the geometric mechanism, so it is the independent side of the main theorem,
and the way out for losses that the theorem does not cover. HiGHS solves it, refined to about
1e-16; the answer is then repaired to be exactly private, and its distance from the optimum is
certified in fractions by Lagrange's bound. Cost: (n+1)² variables, 2n(n+1) constraints.

Theorem: consumer-program
"""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction

import numpy as np

from quiltwork.counts.consumer import Consumer
from quiltwork.counts.exact_matrix import (
    FractionMatrix,
    expected_loss,
    make_stochastic,
    mix_until_private,
    smallest_slack,
)
from quiltwork.counts.levels import read_alpha
from quiltwork.counts.losses import FloatArray
from quiltwork.counts.monotonicity import Universality
from quiltwork.counts.refinement import SparseRows, solve_precisely
from quiltwork.errors import UnsupportedError
from quiltwork.exact import Number, integer

LARGEST_PROGRAM = 80


@dataclass(frozen=True)
class Certificate:
    """What is certain about a mechanism, in exact fractions.

    Attributes:
        alpha: the level that every pair of neighbouring rows keeps exactly.
        expected_loss: the consumer's loss under the exact mechanism.
        lower_bound: no α-private mechanism with answers 0..n has a smaller loss.
        mixed: the share of uniform noise that the repair mixed in.
    """

    alpha: Fraction
    expected_loss: Fraction
    lower_bound: Fraction
    mixed: Fraction

    @property
    def gap(self) -> Fraction:
        """How far from optimal the mechanism can be at most."""
        return self.expected_loss - self.lower_bound


@dataclass(frozen=True, eq=False)
class OptimalMechanism:
    """The best α-private mechanism for one consumer.

    Attributes:
        matrix: probabilities as floats; α·matrix[i] ≤ matrix[i±1] holds exactly for them.
        exact: the same mechanism in fractions, whose rows add up to exactly 1.
        expected_loss: the consumer's expected loss.
        certificate: privacy and optimality in exact fractions.
        universality: whether a remap of the geometric mechanism does equally well.
    """

    matrix: FloatArray
    exact: FractionMatrix
    expected_loss: float
    certificate: Certificate
    universality: Universality


def optimal_mechanism(consumer: Consumer, n: int, alpha: Number) -> OptimalMechanism:
    """Solve the consumer's program.

    Raises:
        UnsupportedError: above n = 80; for monotone losses, remaps have no such limit.

    >>> best = optimal_mechanism(Consumer([0.5, 0.5]), 1, alpha=0.5)
    >>> round(best.expected_loss, 9), best.certificate.gap < 1e-9
    (0.333333333, True)

    Theorem: consumer-program
    """
    level = read_alpha(alpha)
    size = integer(n, "n", 1)
    universality = consumer.universality(size)
    if size > LARGEST_PROGRAM:
        raise UnsupportedError(
            f"The program for n = {size} has {(size + 1) ** 2} variables; it is solved up to "
            f"n = {LARGEST_PROGRAM}. For monotone losses GeometricMechanism(…).remap(consumer) is "
            "optimal at any n."
        )
    prior = consumer.fractions(size)
    costs = [
        [prior[i] * consumer.loss.exact(i, r) for r in range(size + 1)] for i in range(size + 1)
    ]
    solution, duals = solve(costs, level)
    exact, mixed = mix_until_private(make_stochastic(solution), level)
    loss = expected_loss(exact, costs)
    bound = lagrange_bound(costs, duals, level)
    return OptimalMechanism(
        matrix=np.array(exact, dtype=np.float64),
        exact=exact,
        expected_loss=float(loss),
        certificate=Certificate(level, loss, min(bound, loss), mixed),
        universality=universality,
    )


def solve(costs: FractionMatrix, alpha: Fraction) -> tuple[FractionMatrix, list[Fraction]]:
    """Return (mechanism, duals) of the program with objective Σ costs·x, precise to about 1e-16.

    The duals belong to `standard_form`'s rows: first the privacy constraints, then the row sums.
    """
    size = len(costs)
    form = standard_form(size, alpha)
    flat = [cost for row in costs for cost in row]
    slack_costs = [Fraction(0)] * (form.width - size * size)
    sides = [Fraction(0)] * (len(form.rows) - size) + [Fraction(1)] * size
    solution = solve_precisely(flat + slack_costs, form, sides)
    matrix = [solution.primal[i * size : (i + 1) * size] for i in range(size)]
    return matrix, solution.dual


def standard_form(size: int, alpha: Fraction) -> SparseRows:
    """Return the equations: α·x[i+1][r] − x[i][r] + slack = 0, its mirror, and Σ_r x[i][r] = 1.

    In (3) and (4) of the paper, i runs over 0..n−1 and r over 0..n.
    """
    rows: list[tuple[tuple[int, Fraction], ...]] = []
    for i in range(size - 1):
        for r in range(size):
            here, below = i * size + r, (i + 1) * size + r
            for small, large in ((below, here), (here, below)):
                slack = size * size + len(rows)
                rows.append(((small, alpha), (large, Fraction(-1)), (slack, Fraction(1))))
    slacks = len(rows)
    rows += [tuple((i * size + r, Fraction(1)) for r in range(size)) for i in range(size)]
    return SparseRows(tuple(rows), size * size + slacks)


def lagrange_bound(costs: FractionMatrix, duals: list[Fraction], alpha: Fraction) -> Fraction:
    """Return a number that the loss of no α-private mechanism goes below, for any duals.

    Multipliers m = max(0, −dual) ≥ 0 of the privacy constraints A·x ≤ 0 give, for a private x,
    Σ costs·x ≥ Σ costs·x + m·(A·x), and since rows of x add up to 1 that is at least
    Σ_i min_r (costs + Aᵀm)[i][r].
    """
    size = len(costs)
    reduced = [list(row) for row in costs]
    multipliers = iter([max(Fraction(0), -dual) for dual in duals])
    for i in range(size - 1):
        for r in range(size):
            falling, rising = next(multipliers), next(multipliers)
            reduced[i][r] += alpha * rising - falling
            reduced[i + 1][r] += alpha * falling - rising
    return sum((min(row) for row in reduced), Fraction(0))


def check_private(matrix: FractionMatrix, alpha: Fraction) -> bool:
    """Whether neighbouring rows keep the ratio α exactly and every row is a distribution."""
    rows_add_up = all(sum(row) == 1 and min(row) >= 0 for row in matrix)
    return rows_add_up and smallest_slack(matrix, alpha) >= 0
