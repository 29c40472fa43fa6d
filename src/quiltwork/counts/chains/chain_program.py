"""The optimal mechanism for a chain: its linear program, and a repair that is verified in integers.

Minimise Σ prior(c)·loss(c, r)·x[c, r] over stochastic x such that for every time point, pair of
states and answer Σ_c P(c|a)·x[c, r] ≤ e^ε·Σ_c P(c|b)·x[c, r], and with a cap on the plain level
x[c, r] ≤ e^cap·x[c±1, r]. Most time points are alike, so a few of them are solved first and those
that are violated are added until none is. The solver's table is clipped, put on a grid of
fractions, and mixed with the uniform mechanism until every constraint holds with P(c | X_i = a)
rounded outwards and e^ε rounded down. What is verified is the very table that answers are drawn
from. Cost: a few programs with (n+1)² variables; n = 30 in about a second, n = 100 in half a
minute.

Theorem: docs/theory/optimal-mechanism.md
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from itertools import permutations

import numpy as np

from quiltwork.audit.additive import JointStatistic, additive_parts
from quiltwork.audit.inner import inner_chain, require_markov_chains
from quiltwork.audit.laws import Weights, integer_laws
from quiltwork.audit.node_levels import Laws
from quiltwork.beliefs import Belief, MarkovChain
from quiltwork.beliefs.matrices import BoolArray, FloatArray
from quiltwork.counts.optimality.consumer_program import cheapest_mechanism
from quiltwork.errors import NotPrivateError, UnsupportedError
from quiltwork.noise.enclosure import exp_minus
from quiltwork.queries import Count, Query


@dataclass(frozen=True, eq=False)
class CountLaws:
    """P(count | X_i = a) for every uncertain time point of every belief.

    Attributes:
        laws: of shape (time points over all beliefs, states, n + 1); zeros for impossible states.
        possible: which states each time point can take.
        n: the largest count.
    """

    laws: FloatArray
    possible: BoolArray
    n: int

    def extremes(self, table: FloatArray) -> tuple[FloatArray, FloatArray]:
        """Per time point and answer, its largest and least probability over the possible states.

        Cost: O(T·k·n²).
        """
        answers = self.laws @ table
        high = np.where(self.possible[:, :, None], answers, 0.0).max(axis=1)
        return high, np.where(self.possible[:, :, None], answers, np.inf).min(axis=1)

    def spread(self, table: FloatArray) -> float:
        """The largest log-ratio of answers between two states; infinite if a state is ruled out."""
        high, low = self.extremes(table)
        seen = high > 0
        if not seen.any():
            return 0.0
        if (low[seen] <= 0).any():
            return float("inf")
        return max(0.0, float(np.log(high[seen] / low[seen]).max()))


def statistic_of(query: Query, chain: MarkovChain, length: int) -> JointStatistic:
    """Read a query that counts one state."""
    if not isinstance(query, Count):
        kind = getattr(query, "kind", repr(query))
        raise UnsupportedError(
            f"The optimal mechanism is for the count of one state, not for {kind!r}; ask for "
            "queries.count(state)."
        )
    return JointStatistic(additive_parts(query, chain.states, length), (Fraction(1),))


def count_laws(beliefs: Belief | Sequence[Belief], length: int, query: Query) -> CountLaws:
    """Return the laws of a count under one chain or several."""
    chains = require_markov_chains(beliefs)
    statistic = statistic_of(query, chains[0], length)
    laws, possible = [np.zeros((0, chains[0].size, statistic.cells))], []
    for position, chain in enumerate(chains, start=1):
        one = Laws(chain, length, statistic, range(1, length + 1))
        if not one.in_floats:
            raise UnsupportedError(
                f"Belief {position} has states that are possible but rarer than 1e-50, which "
                "floating point cannot follow here; drop them from the chain."
            )
        for block in one.blocks(logs=False):
            laws.append(block.weights.transpose(1, 2, 0))
            possible.append(block.possible)
    known = np.zeros((0, chains[0].size), dtype=np.bool_)
    return CountLaws(np.concatenate(laws), np.concatenate([known, *possible]), statistic.cells - 1)


def table_leakage(
    beliefs: Belief | Sequence[Belief], length: int, query: Query, table: FloatArray
) -> float:
    """Return what a mechanism for a count leaks under the worst belief, in floats.

    `table[c][r]` is the probability of answer r when the count is c.
    """
    found = count_laws(beliefs, length, query)
    return found.spread(np.asarray(table, dtype=np.float64))


_TOLERANCE = 1e-9
_ADDED = 6
_ROUNDS = 60
_SPREAD = 7


@dataclass(frozen=True, eq=False)
class Solved:
    """What the solver found; `bound` is Lagrange's lower bound on the optimum, in floats."""

    table: FloatArray
    bound: float
    rows: int


def solve(laws: CountLaws, costs: FloatArray, epsilon: float, cap: float | None) -> Solved:
    """Solve the program for costs[c, r] = prior(c)·loss(c, r)."""
    active = set(np.unique(np.linspace(0, max(0, len(laws.laws) - 1), _SPREAD).astype(int)))
    active &= set(range(len(laws.laws)))
    for _ in range(_ROUNDS):
        rows = privacy_rows(laws, sorted(active), epsilon)
        limits = rows if cap is None else np.vstack([rows, cap_rows(len(costs), cap)])
        table, prices = cheapest_mechanism(costs, limits)
        worst = violations(laws, table, epsilon)
        failing = [int(i) for i in np.argsort(-worst)[:_ADDED] if worst[i] > _TOLERANCE]
        if not set(failing) - active:
            # Below the optimum for any prices ≥ 0 (Lagrange).
            bound = float((costs + limits.T @ prices).min(axis=1).sum())
            return Solved(table, bound, len(rows))
        active |= set(failing)
    raise UnsupportedError(
        "The solver did not settle on a mechanism; try a larger epsilon or a shorter series."
    )


def privacy_rows(laws: CountLaws, nodes: list[int], epsilon: float) -> FloatArray:
    """One row P(·|a) − e^ε·P(·|b) per time point and ordered pair of possible states."""
    found = [
        laws.laws[i, a] - math.exp(epsilon) * laws.laws[i, b]
        for i in nodes
        for a, b in permutations(np.flatnonzero(laws.possible[i]), 2)
    ]
    return np.array(found).reshape(-1, laws.n + 1)


def violations(laws: CountLaws, table: FloatArray, epsilon: float) -> FloatArray:
    """How far each time point misses its constraints, at most over answers and states."""
    high, low = laws.extremes(table)
    return np.asarray((high - math.exp(epsilon) * low).max(axis=1))


def cap_rows(size: int, cap: float) -> FloatArray:
    """x[c] − e^cap·x[c±1] ≤ 0 for neighbouring counts; a cap of e^500 stands for all above."""
    most = math.exp(min(cap, 500.0))
    upper = np.eye(size)[:-1] - most * np.eye(size)[1:]
    lower = np.eye(size)[1:] - most * np.eye(size)[:-1]
    return np.vstack([upper, lower])


_TABLE_BITS = 60
_LAW_BITS = 256
_LEVEL_BITS = 128
_SHARE_BITS = 80
_ATTEMPTS = 60


@dataclass(frozen=True)
class ChainCertificate:
    """What was verified in integers about a mechanism.

    Attributes:
        epsilon: no answer tells more about any time point, under each belief given.
        dp_epsilon: the plain level for replacing one time point; None if there is none.
        mixed: the share of uniform noise that the repair mixed in.
        lower_bound: no mechanism that sees only the count, answers in 0..n and keeps the same
            constraints has a smaller expected loss (Lagrange's bound, in floats).
        checked: how many inequalities were verified.
    """

    epsilon: Fraction
    dp_epsilon: Fraction | None
    mixed: float
    lower_bound: float
    checked: int


@dataclass(frozen=True, eq=False)
class OutwardLaws:
    """Integers low ≤ 2^bits·P(c | X_i = a) ≤ high, of shape (nodes, states, n + 1)."""

    low: list[Weights]
    high: list[Weights]


def outward_laws(chains: Sequence[MarkovChain], length: int, query: Query) -> OutwardLaws:
    """Compute the laws exactly and round them outwards; impossible states are left out."""
    low, high = [], []
    for chain in chains:
        statistic = statistic_of(query, chain, length)
        for law in integer_laws(inner_chain(chain), length, statistic, range(1, length + 1)):
            rows = law.weights[law.possible]
            if len(rows) > 1:
                totals = rows.sum(axis=1)
                scaled = rows * (1 << _LAW_BITS)
                low.append(scaled // totals[:, None])
                high.append(-(-scaled // totals[:, None]))
    return OutwardLaws(low, high)


def repaired(
    table: FloatArray, laws: OutwardLaws, epsilon: Fraction, cap: Fraction | None
) -> tuple[Weights, int, Fraction]:
    """Return integers x[c, r] that add up to a common total per row, the total, and the share."""
    size = len(table)
    grid = _on_grid(table)
    share = Fraction(0)
    for _ in range(_ATTEMPTS):
        mixed, total = _mixed(grid, share)
        failing = largest_violation(mixed, laws, epsilon, cap)
        if failing <= 0:
            return mixed, total, share
        miss = Fraction(failing) / total
        needed = miss * size / (_room(epsilon, cap) + miss * size)
        share = min(Fraction(1), 2 * share + _round_up(needed))
        if share >= Fraction(1, 2):
            break
    raise NotPrivateError(
        "The solver's mechanism could not be repaired to be private; try a larger epsilon."
    )


def largest_violation(
    table: Weights, laws: OutwardLaws, epsilon: Fraction, cap: Fraction | None
) -> Fraction:
    """The largest amount, in units of the table, by which a constraint may fail; ≤ 0 if none."""
    worst = Fraction(-1)
    grown = exponential_down(epsilon)
    for low, high in zip(laws.low, laws.high, strict=True):
        above, below = high @ table, low @ table
        miss = above.max(axis=0) * grown.denominator - below.min(axis=0) * grown.numerator
        worst = max(worst, Fraction(int(miss.max()), grown.denominator << _LAW_BITS))
    if cap is not None:
        step = exponential_down(cap)
        for one, other in ((table[:-1], table[1:]), (table[1:], table[:-1])):
            miss = one * step.denominator - other * step.numerator
            worst = max(worst, Fraction(int(miss.max()), step.denominator))
    return worst


def number_of_inequalities(laws: OutwardLaws, size: int, cap: Fraction | None) -> int:
    """How many inequalities `largest_violation` looks at."""
    pairs = sum(len(low) * (len(low) - 1) for low in laws.low)
    return pairs * size + (0 if cap is None else 2 * (size - 1) * size)


def exponential_down(level: Fraction) -> Fraction:
    """A rational at or below e^level, tight to 2^-127."""
    above = exp_minus(level, _LEVEL_BITS)[1]
    return Fraction(1 << _LEVEL_BITS, above)


def _on_grid(table: FloatArray) -> Weights:
    """Clip at 0 and round to multiples of 2^-60 that add up to 1; the largest entry gives way."""
    whole = 1 << _TABLE_BITS
    clipped = np.maximum(np.nan_to_num(table), 0.0)
    shares = clipped / clipped.sum(axis=1, keepdims=True)
    rows = [[int(Fraction(float(x)) * whole) for x in row] for row in shares]
    for row in rows:
        row[row.index(max(row))] += whole - sum(row)
    return np.array(rows, dtype=object)


def _mixed(grid: Weights, share: Fraction) -> tuple[Weights, int]:
    """(1 − share)·grid + share·uniform over one common denominator."""
    size = len(grid)
    p, q = share.numerator, share.denominator
    total = (1 << _TABLE_BITS) * q * size
    return grid * ((q - p) * size) + p * (1 << _TABLE_BITS), total


def _room(epsilon: Fraction, cap: Fraction | None) -> Fraction:
    """How much slack the uniform mechanism has, times n + 1."""
    levels = [epsilon] if cap is None else [epsilon, cap]
    return min(exponential_down(level) for level in levels) - 1


def _round_up(share: Fraction) -> Fraction:
    """A multiple of 2^-80 above the share, so that the table's denominator stays small."""
    return Fraction(math.ceil(share * (1 << _SHARE_BITS)) + 1, 1 << _SHARE_BITS)
