"""Mechanisms that see the whole database: with priors over databases none is optimal for all.

Theorem 6.3 in exact numbers, with its Figures 4 and 5.
Cost: exponential in the number of rows; meant for small examples.

Theorem: docs/theory/geometric-mechanism.md (Beyond counts)
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from itertools import product
from typing import TypeAlias

from quiltwork.counts.consumers.loss_functions import parse_loss
from quiltwork.counts.optimality.consumer_program import Pairs, lagrange_bound, solve
from quiltwork.counts.optimality.exact_matrix import FractionMatrix

Database: TypeAlias = tuple[Hashable, ...]
Predicate: TypeAlias = Callable[[Hashable], bool]

_SIMPLE = 10**6


def databases(domain: Sequence[Hashable], rows: int) -> list[Database]:
    """Return every database with this many rows."""
    return list(product(domain, repeat=rows))


def neighbours(everything: Sequence[Database]) -> list[tuple[int, int]]:
    """Return the index pairs of databases that differ in exactly one row."""
    return [
        (a, b)
        for a in range(len(everything))
        for b in range(a + 1, len(everything))
        if sum(x != y for x, y in zip(everything[a], everything[b], strict=True)) == 1
    ]


def count_of(database: Database, predicate: Predicate) -> int:
    """Return how many rows satisfy the predicate."""
    return sum(bool(predicate(row)) for row in database)


@dataclass(frozen=True)
class NoCommonOptimum:
    """Theorem 6.3 in exact numbers.

    Attributes:
        alone: the least loss of each of two consumers, each with its own optimal mechanism; it is
            the same for both, and Figure 4 attains it.
        together: a lower bound on the sum of their losses under any one mechanism.
    """

    alone: Fraction
    together: Fraction

    @property
    def excess(self) -> Fraction:
        """The least additional loss, summed, if both use one mechanism; positive."""
        return self.together - 2 * self.alone


FIGURE_4: Mapping[Database, Mapping[int, Fraction]] = {
    (1, 0, 0): {1: Fraction(11, 12), 2: Fraction(1, 12)},
    (0, 1, 0): {1: Fraction(2, 3), 2: Fraction(1, 3)},
    (1, 0, 1): {1: Fraction(5, 6), 2: Fraction(1, 6)},
    (0, 1, 1): {1: Fraction(1, 3), 2: Fraction(2, 3)},
}
"""The first consumer's optimum where its prior lies; with rows 1 and 2 swapped, the second's."""


def database_prior(epsilon: Fraction, swapped: bool) -> dict[Database, Fraction]:
    """Return the prior of Theorem 6.3's first consumer; `swapped`, that of the second."""
    first: dict[Database, Fraction] = {
        (1, 0, 0): Fraction(1, 4),
        (0, 1, 0): Fraction(1, 4),
        (0, 1, 1): Fraction(1, 2) - epsilon,
        (1, 0, 1): epsilon,
    }
    return {(d[1], d[0], d[2]): p for d, p in first.items()} if swapped else first


def no_common_optimum(epsilon: Fraction = Fraction(1, 10)) -> NoCommonOptimum:
    """Prove Theorem 6.3 for α = 1/2, three rows and these priors, by exact duality.

    Both bounds are for binary loss. Every |i−r|^(1−δ) is at least that, and equal to it for
    answers one off, as in Figure 4; so the bounds hold for those losses too, and Figure 4 attains
    the first.
    """
    everything, alpha = databases((0, 1), 3), Fraction(1, 2)
    pairs = neighbours(everything)
    priors = [database_prior(epsilon, swapped) for swapped in (False, True)]
    loss = parse_loss("binary")

    def cost(prior: Mapping[Database, Fraction], database: Database, answer: int) -> Fraction:
        return prior.get(database, Fraction(0)) * loss.exact(sum(map(int, database)), answer)  # type: ignore[arg-type]

    answers = range(4)
    own = [[cost(priors[0], d, r) for r in answers] for d in everything]
    both = [
        [cost(priors[0], d, r) + cost(priors[1], d, s) for r in answers for s in answers]
        for d in everything
    ]
    return NoCommonOptimum(_bound(own, alpha, pairs), _bound(both, alpha, pairs))


def _bound(costs: FractionMatrix, alpha: Fraction, pairs: Pairs) -> Fraction:
    """Return a lower bound of the least loss; rounded to simple fractions it is often exact."""
    _, prices = solve(costs, alpha, pairs)
    simple = [[price.limit_denominator(_SIMPLE) for price in row] for row in prices]
    return max(lagrange_bound(costs, tried, alpha, pairs) for tried in (prices, simple))


def figure_5(deltas: Sequence[Fraction]) -> dict[Database, list[Fraction]]:
    """Return Figure 5: any mechanism with answers l, m, n, o that is optimal for both consumers.

    Remapping l and n to 1, m and o to 2 gives the first consumer's optimum; l and o to 1, m and n
    to 2 the second's. `deltas` are δ1..δ4 in [0, 1].
    """
    d1, d2, d3, d4 = deltas
    return {
        (1, 0, 0): [(8 - d1) / 12, (1 - d1) / 12, (3 + d1) / 12, d1 / 12],
        (0, 1, 0): [(8 - d2) / 12, (1 - d2) / 12, d2 / 12, (3 + d2) / 12],
        (1, 0, 1): [(2 - d3) / 6, (1 - d3) / 6, (3 + d3) / 6, d3 / 6],
        (0, 1, 1): [(2 - d4) / 6, (1 - d4) / 6, d4 / 6, (3 + d4) / 6],
    }


def figure_5_contradiction() -> tuple[Fraction, Fraction]:
    """Return the two probabilities of answer l that end the proof: 7/12 and 1/6, no factor 2.

    Columns n and o of databases two rows apart ask 3 + δ1 ≤ 4·δ2 and 3 + δ2 ≤ 4·δ1; added up,
    δ1 + δ2 ≥ 2, so both are 1, and likewise δ3 and δ4. Then {1} and {1, 3}, one row apart, differ
    too much in column l.
    """
    forced = figure_5([Fraction(1)] * 4)
    return forced[1, 0, 0][0], forced[1, 0, 1][0]
