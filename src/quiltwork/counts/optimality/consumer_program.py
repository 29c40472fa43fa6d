"""The consumer's linear program (2)–(6): the optimal mechanism for one prior and one loss.

HiGHS solves it in floats (`cheapest_mechanism`), and no guarantee depends on its rounding: the
solution is repaired to be exactly private, and competes with the exact best remap of the geometric
mechanism, which wins for every loss that the main theorem covers. The winner's distance from the
optimum is certified in fractions by Lagrange's bound, which does not involve the geometric
mechanism and so checks the theorem independently. Cost: (n+1)² variables, 2n(n+1) constraints.

Theorem: docs/theory/consumer-program.md
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import Any, TypeAlias

import numpy as np

from quiltwork.arguments import instance
from quiltwork.counts.alpha_levels import epsilon_for_alpha, parse_alpha
from quiltwork.counts.consumers.consumer import LARGEST_PRIOR, Consumer
from quiltwork.counts.consumers.loss_functions import FloatArray
from quiltwork.counts.consumers.universality import Universality
from quiltwork.counts.exact_draws import ExactMechanism
from quiltwork.counts.geometric_mechanism import GeometricMechanism
from quiltwork.counts.optimality.exact_matrix import (
    FractionMatrix,
    best_remap,
    compose,
    deterministic,
    expected_loss,
    make_stochastic,
    mix_until_private,
    private_floats,
)
from quiltwork.errors import NotPrivateError, UnsupportedError
from quiltwork.exact import Number, integer
from quiltwork.results import plain

Pairs: TypeAlias = Sequence[tuple[int, int]]

LARGEST_PROGRAM = 200


@dataclass(frozen=True)
class OptimalityCertificate:
    """A certificate of optimality in exact fractions.

    Attributes:
        alpha: the level that every pair of neighbouring rows keeps exactly.
        expected_loss: the consumer's loss under the exact mechanism.
        lower_bound: no α-private mechanism with answers 0..n has a smaller loss.
        mixed: the share of uniform noise that the repair mixed in; 0 for a remap.
    """

    alpha: Fraction
    expected_loss: Fraction
    lower_bound: Fraction
    mixed: Fraction

    @property
    def gap(self) -> Fraction:
        """An upper bound on the mechanism's distance from the optimum."""
        return self.expected_loss - self.lower_bound


@dataclass(frozen=True, eq=False)
class OptimalMechanism(ExactMechanism):
    """The optimal α-private mechanism for one consumer.

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
    certificate: OptimalityCertificate
    universality: Universality

    def body(self) -> dict[str, Any]:
        """Return the mechanism as JSON values."""
        names = ("matrix", "expected_loss", "certificate")
        return {name: plain(getattr(self, name)) for name in names}

    def records(self) -> list[dict[str, Any]]:
        """Return a row per count: the probability of every answer."""
        return [
            {"count": count, **{str(answer): probability for answer, probability in enumerate(row)}}
            for count, row in enumerate(self.matrix.tolist())
        ]

    def explain(self) -> str:
        """Return its expected loss, and the proven lower bound."""
        return (
            f"Expected loss {self.expected_loss:.6g}; no mechanism with alpha = "
            f"{self.certificate.alpha} is below {float(self.certificate.lower_bound):.6g}."
        )

    def _refuse(self) -> None:
        if self.certificate.alpha == 0:
            raise NotPrivateError("alpha = 0 offers no privacy; give alpha > 0.")

    def _debit(self) -> dict[str, Any]:
        return {
            "mechanism": "consumer's program",
            "n": self.n,
            "alpha": str(self.certificate.alpha),
            "table": self._table(),
            "dp_epsilon": str(epsilon_for_alpha(self.certificate.alpha)),
        }


def optimal_mechanism(consumer: Consumer, n: int, alpha: Number) -> OptimalMechanism:
    """Solve the consumer's program for the optimal α-private mechanism.

    Where the theorem covers the loss, the result is exactly the geometric mechanism followed by the
    consumer's best remap; `certificate.gap` then only reflects the solver's rounding.

    Raises:
        UnsupportedError: above n = 200; for monotone losses, remaps have no such limit.

    >>> best = optimal_mechanism(Consumer([0.5, 0.5]), 1, alpha=0.5)
    >>> round(best.expected_loss, 9), best.certificate.gap < 1e-9
    (0.333333333, True)

    Theorem: docs/theory/consumer-program.md
    """
    level = parse_alpha(alpha)
    size = integer(n, "n", 1)
    universality = instance(consumer, Consumer, "consumer").universality(size)
    if size > LARGEST_PROGRAM:
        raise UnsupportedError(
            f"The program for n = {size} has {(size + 1) ** 2:,} variables; the limit is "
            f"n = {LARGEST_PROGRAM}. For monotone losses GeometricMechanism(…).remap(consumer) is "
            f"optimal, up to n = {LARGEST_PRIOR:,}."
        )
    prior = consumer.fractions(size)
    costs = [
        [prior[i] * consumer.loss.exact(i, r) for r in range(size + 1)] for i in range(size + 1)
    ]
    solution, prices = solve(costs, level)
    exact, mixed = mix_until_private(make_stochastic(solution), level)
    loss = expected_loss(exact, costs)
    geometric = GeometricMechanism(size, alpha=level).matrix(exact=True).tolist()
    mapping, remapped_loss = best_remap(geometric, consumer)
    # Where the theorem applies the remap is optimal, and exact where the solver is not.
    if remapped_loss <= loss:
        exact, mixed = compose(geometric, deterministic(mapping)), Fraction(0)
        loss = remapped_loss
    bound = lagrange_bound(costs, prices, level)
    return OptimalMechanism(
        matrix=private_floats(exact, level),
        exact=exact,
        expected_loss=float(loss),
        certificate=OptimalityCertificate(level, loss, min(bound, loss), mixed),
        universality=universality,
    )


def solve(
    costs: FractionMatrix, alpha: Fraction, pairs: Pairs | None = None
) -> tuple[FractionMatrix, FractionMatrix]:
    """Return the mechanism with least Σ costs·x, and the prices of its privacy constraints.

    `pairs` are the neighbouring inputs, by default successive counts. Prices 2k and 2k + 1 are
    those of α·x[j] ≤ x[i] and α·x[i] ≤ x[j] for the k-th pair (i, j), one per answer.
    """
    neighbours = _neighbours(costs, pairs)
    limits = np.zeros((2 * len(neighbours), len(costs)))
    for k, (i, j) in enumerate(neighbours):
        limits[2 * k, [j, i]] = limits[2 * k + 1, [i, j]] = float(alpha), -1.0
    solution, prices = cheapest_mechanism(np.array(costs, dtype=np.float64), limits)
    return _exactly(solution), _exactly(prices)


def _exactly(numbers: FloatArray) -> FractionMatrix:
    return [[Fraction(x) for x in row] for row in numbers.tolist()]


def lagrange_bound(
    costs: FractionMatrix, prices: FractionMatrix, alpha: Fraction, pairs: Pairs | None = None
) -> Fraction:
    """Return a lower bound on the loss of every α-private mechanism, for any prices ≥ 0.

    Prices m of the privacy constraints A·x ≤ 0 give, for a private x, Σ costs·x ≥ Σ costs·x +
    m·(A·x), and since rows of x add up to 1 that is at least Σ_i min_r (costs + Aᵀm)[i][r].
    """
    reduced = [list(row) for row in costs]
    for k, (i, j) in enumerate(_neighbours(costs, pairs)):
        for r, (falling, rising) in enumerate(zip(*prices[2 * k : 2 * k + 2], strict=True)):
            reduced[i][r] += alpha * rising - falling
            reduced[j][r] += alpha * falling - rising
    return sum((min(row) for row in reduced), Fraction(0))


def _neighbours(costs: FractionMatrix, pairs: Pairs | None) -> Pairs:
    return [(i, i + 1) for i in range(len(costs) - 1)] if pairs is None else pairs


_SECONDS = 300.0
# The dual simplex first, interior points where it fails, then a looser tolerance.
_ATTEMPTS = (("highs-ds", 1e-10), ("highs-ipm", 1e-10), ("highs-ds", 1e-7))


def cheapest_mechanism(costs: FloatArray, limits: FloatArray) -> tuple[FloatArray, FloatArray]:
    """Return x, and each limit's price ≥ 0 (Lagrange multiplier) for each answer."""
    from scipy import sparse
    from scipy.optimize import linprog

    inputs, answers = costs.shape
    program: dict[str, Any] = {
        "A_eq": sparse.kron(sparse.identity(inputs), np.ones((1, answers)), format="csr"),
        "b_eq": np.ones(inputs),
    }
    if len(limits):
        rows = sparse.kron(sparse.csr_matrix(limits), sparse.identity(answers), format="csr")
        program |= {"A_ub": rows, "b_ub": np.zeros(rows.shape[0])}
    for method, tolerance in _ATTEMPTS:
        options = {
            "primal_feasibility_tolerance": tolerance,
            "dual_feasibility_tolerance": tolerance,
            "time_limit": _SECONDS,
        }
        solution = linprog(costs.ravel(), **program, method=method, options=options)
        if solution.status == 0:
            prices = np.maximum(0.0, -solution.ineqlin.marginals) if len(limits) else np.zeros(0)
            return solution.x.reshape(costs.shape), prices.reshape(len(limits), answers)
    raise UnsupportedError(
        f"HiGHS could not solve the program of {costs.size:,} variables: its numbers are too "
        "extreme, or it is too large. Try fewer counts or a larger epsilon."
    )
