"""Consumers with a known range instead of a prior: the least worst-case loss.

A minimax consumer knows that the count lies in lower..upper and fears the worst of them. Its best
reading of the geometric mechanism is a randomized remap, found by a linear program; the program's
duals are a least favourable prior, whose Bayesian consumer certifies that no α-private mechanism
does better. Cost: (upper−lower+1)² variables.

Theorem: docs/theory/minimax-consumers.md
"""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from typing import Any

import numpy as np

from quiltwork.arguments import instance
from quiltwork.counts.choice import draw_index
from quiltwork.counts.consumers.consumer import Consumer
from quiltwork.counts.consumers.losses import Loss, MatrixLoss, read_loss
from quiltwork.counts.consumers.monotonicity import universality
from quiltwork.counts.geometric import GeometricMechanism
from quiltwork.counts.optimality.exact_matrix import (
    FractionMatrix,
    best_remap,
    compose,
    make_stochastic,
)
from quiltwork.counts.optimality.refinement import SparseRows, solve_precisely
from quiltwork.errors import InvalidInputError, UnsupportedError
from quiltwork.exact import integer

LARGEST_RANGE = 60


@dataclass(frozen=True)
class MinimaxRemap:
    """The best randomized reading for a consumer that knows only a range.

    Attributes:
        lower, upper: the range known to hold the count.
        remap: remap[s][r] is the probability of reading answer lower+s as lower+r; answers
            outside the range are first clipped to it.
        worst_loss: the largest expected loss over the range, exactly.
        prior: a least favourable prior over lower..upper.
        lower_bound: what a Bayesian consumer with that prior loses at least; no private mechanism
            with answers in lower..upper has a smaller worst-case loss.
        face_value_loss: the largest expected loss without the remap, answers clipped to 0..n.
    """

    lower: int
    upper: int
    remap: FractionMatrix
    worst_loss: Fraction
    prior: list[Fraction]
    lower_bound: Fraction
    face_value_loss: Fraction

    @property
    def gap(self) -> Fraction:
        """How far from optimal the remap can be at most."""
        return self.worst_loss - self.lower_bound

    def __call__(self, released: int) -> int:
        """Read one released count; this draws, so read every release once and keep the reading."""
        clipped = min(max(integer(released, "released", -(2**62)), self.lower), self.upper)
        return self.lower + draw_index(self.remap[clipped - self.lower])


def minimax_remap(
    mechanism: GeometricMechanism, loss: Any, lower: int = 0, upper: int | None = None
) -> MinimaxRemap:
    """Find the remap of least worst-case loss for counts known to lie in lower..upper.

    Raises:
        UnsupportedError: for ranges of more than 61 counts, and for losses that are not monotone.
        InvalidInputError: if the range is empty or not within 0..n.

    >>> answer = minimax_remap(GeometricMechanism(1, alpha=0.5), "absolute")
    >>> round(float(answer.worst_loss), 9)
    0.333333333

    Theorem: docs/theory/minimax-consumers.md
    """
    instance(mechanism, GeometricMechanism, "mechanism")
    low = integer(lower, "lower", 0)
    high = integer(mechanism.n if upper is None else upper, "upper", 0)
    if not low < high <= mechanism.n:
        raise InvalidInputError(
            f"The range {lower}..{high} must hold two counts at least and lie in 0..{mechanism.n}."
        )
    if high - low > LARGEST_RANGE:
        raise UnsupportedError(
            f"Minimax remaps are solved for ranges up to {LARGEST_RANGE + 1} counts, not "
            f"{high - low + 1}; use a prior over the range instead."
        )
    function = read_loss(loss)
    losses = [[function.exact(i, r) for r in range(low, high + 1)] for i in range(low, high + 1)]
    table = MatrixLoss(np.array(losses, dtype=np.float64), tuple(map(tuple, losses)))
    condition = universality(table, high - low)
    if not condition.proven:
        raise UnsupportedError(
            f"The loss is not monotone ({condition.detail}), so a remap of the geometric mechanism "
            "need not be the best; minimax remaps are for monotone losses."
        )
    geometric = GeometricMechanism(high - low, alpha=mechanism.alpha).matrix(exact=True).tolist()
    remap, prior = _solve(geometric, losses)
    _, bound = best_remap(geometric, Consumer(prior, table))
    return MinimaxRemap(
        low,
        high,
        remap,
        max(
            sum((x * lost for x, lost in zip(row, own, strict=True)), Fraction(0))
            for row, own in zip(compose(geometric, remap), losses, strict=True)
        ),
        prior,
        bound,
        max(_face_value(mechanism, function, i) for i in range(low, high + 1)),
    )


def _solve(
    geometric: FractionMatrix, losses: FractionMatrix
) -> tuple[FractionMatrix, list[Fraction]]:
    """Minimise t over remaps y with Σ_s G[i,s]·Σ_r y[s,r]·l(i,r) ≤ t for every i.

    Variables: y row by row, then t, then one slack per count. Returns (y, least favourable prior).
    """
    size = len(losses)
    worst = size * size
    one = Fraction(1)
    rows: list[tuple[tuple[int, Fraction], ...]] = []
    for i in range(size):
        entries = [
            (s * size + r, geometric[i][s] * losses[i][r])
            for s in range(size)
            for r in range(size)
            if losses[i][r] and geometric[i][s]
        ]
        rows.append((*entries, (worst, -one), (worst + 1 + i, one)))
    rows += [tuple((s * size + r, one) for r in range(size)) for s in range(size)]
    costs = [Fraction(0)] * worst + [one] + [Fraction(0)] * size
    sides = [Fraction(0)] * size + [one] * size
    solution = solve_precisely(costs, SparseRows(tuple(rows), worst + 1 + size), sides)
    remap = make_stochastic([solution.primal[s * size : (s + 1) * size] for s in range(size)])
    weights = [max(Fraction(0), -dual) for dual in solution.dual[:size]]
    total = sum(weights, Fraction(0))
    return remap, [weight / total for weight in weights] if total else [Fraction(1, size)] * size


def _face_value(mechanism: GeometricMechanism, loss: Loss, count: int) -> Fraction:
    return sum(
        (mechanism.probability(count, r) * loss.exact(count, r) for r in range(mechanism.n + 1)),
        Fraction(0),
    )
