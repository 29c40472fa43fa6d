"""The optimal count mechanism for a chain: its linear program, and a repair verified in integers.

It minimises Σ prior(c)·loss(c, r)·x[c, r] over stochastic x, such that for every time point, pair
of states and answer Σ_c P(c|a)·x[c, r] ≤ e^ε·Σ_c P(c|b)·x[c, r], and with a cap on the plain DP
level x[c, r] ≤ e^cap·x[c±1, r].

Most time points have nearly the same constraints, so a few are solved first, and violated ones are
added until none is left. The solver's matrix is clipped, rounded to a grid of fractions, and mixed
with the uniform mechanism until every constraint holds with P(c | X_i = a) rounded outwards and e^ε
rounded down. The verified matrix is the very one that answers are drawn from. Cost: a few programs
with (n+1)² variables; n = 30 in about a second, n = 100 in half a minute.

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
    """The distributions P(count | X_i = a) for every uncertain time point of every belief.

    Attributes:
        laws: of shape (time points over all beliefs, states, n + 1); zeros for impossible states.
        possible: which states each time point can have.
        n: the largest count.
    """

    laws: FloatArray
    possible: BoolArray
    n: int

    def extremes(self, table: FloatArray) -> tuple[FloatArray, FloatArray]:
        """Return the largest and least probability of each answer over a time point's states.

        Cost: O(T·k·n²).
        """
        answers = self.laws @ table
        high = np.where(self.possible[:, :, None], answers, 0.0).max(axis=1)
        return high, np.where(self.possible[:, :, None], answers, np.inf).min(axis=1)

    def spread(self, table: FloatArray) -> float:
        """Return the largest log-ratio of answers between two states; may be infinite."""
        high, low = self.extremes(table)
        possible_answers = high > 0
        if not possible_answers.any():
            return 0.0
        if (low[possible_answers] <= 0).any():
            return float("inf")
        return max(0.0, float(np.log(high[possible_answers] / low[possible_answers]).max()))


def statistic_of(query: Query, chain: MarkovChain, length: int) -> JointStatistic:
    """Return the additive statistic of a query that counts one state."""
    if not isinstance(query, Count):
        kind = getattr(query, "kind", repr(query))
        raise UnsupportedError(
            f"The optimal mechanism is for the count of one state, not for {kind!r}; give "
            "queries.count(state)."
        )
    return JointStatistic(additive_parts(query, chain.states, length), (Fraction(1),))


def count_laws(beliefs: Belief | Sequence[Belief], length: int, query: Query) -> CountLaws:
    """Return the distributions of a count under one chain or several."""
    chains = require_markov_chains(beliefs)
    statistic = statistic_of(query, chains[0], length)
    laws, possible = [np.zeros((0, chains[0].size, statistic.cells))], []
    for position, chain in enumerate(chains, start=1):
        chain_laws = Laws(chain, length, statistic, range(1, length + 1))
        if not chain_laws.in_floats:
            raise UnsupportedError(
                f"Belief {position} has possible states with probability below 1e-50, too small "
                "for floats here; drop them from the chain."
            )
        for block in chain_laws.blocks(logs=False):
            laws.append(block.weights.transpose(1, 2, 0))
            possible.append(block.possible)
    no_states = np.zeros((0, chains[0].size), dtype=np.bool_)
    return CountLaws(
        np.concatenate(laws), np.concatenate([no_states, *possible]), statistic.cells - 1
    )


def table_leakage(
    beliefs: Belief | Sequence[Belief], length: int, query: Query, table: FloatArray
) -> float:
    """Return the leakage of a mechanism for a count under the worst belief, in floats.

    `table[c][r]` is the probability of answer r when the count is c.
    """
    laws = count_laws(beliefs, length, query)
    return laws.spread(np.asarray(table, dtype=np.float64))


_TOLERANCE = 1e-9
_ADDED = 6
_ROUNDS = 60
_SPREAD = 7


@dataclass(frozen=True, eq=False)
class Solved:
    """The solver's solution; `bound` is Lagrange's lower bound on the optimum, in floats."""

    table: FloatArray
    bound: float
    rows: int


def solve(laws: CountLaws, costs: FloatArray, epsilon: float, cap: float | None) -> Solved:
    """Solve the program for costs[c, r] = prior(c)·loss(c, r), adding violated time points."""
    # Evenly spread: neighbouring time points have nearly the same constraints.
    active = set(np.unique(np.linspace(0, max(0, len(laws.laws) - 1), _SPREAD).astype(int)))
    active &= set(range(len(laws.laws)))
    for _ in range(_ROUNDS):
        rows = privacy_rows(laws, sorted(active), epsilon)
        limits = rows if cap is None else np.vstack([rows, cap_rows(len(costs), cap)])
        table, prices = cheapest_mechanism(costs, limits)
        worst = violations(laws, table, epsilon)
        failing = [int(i) for i in np.argsort(-worst)[:_ADDED] if worst[i] > _TOLERANCE]
        if not set(failing) - active:
            # A lower bound on the optimum for any prices ≥ 0 (Lagrange).
            bound = float((costs + limits.T @ prices).min(axis=1).sum())
            return Solved(table, bound, len(rows))
        active |= set(failing)
    raise UnsupportedError(
        "The solver did not converge to a mechanism; try a larger epsilon or a shorter series."
    )


def privacy_rows(laws: CountLaws, nodes: list[int], epsilon: float) -> FloatArray:
    """Return one row P(·|a) − e^ε·P(·|b) per time point and ordered pair of possible states."""
    rows = [
        laws.laws[i, a] - math.exp(epsilon) * laws.laws[i, b]
        for i in nodes
        for a, b in permutations(np.flatnonzero(laws.possible[i]), 2)
    ]
    return np.array(rows).reshape(-1, laws.n + 1)


def violations(laws: CountLaws, table: FloatArray, epsilon: float) -> FloatArray:
    """Return each time point's largest constraint violation over answers and states."""
    high, low = laws.extremes(table)
    return np.asarray((high - math.exp(epsilon) * low).max(axis=1))


def cap_rows(size: int, cap: float) -> FloatArray:
    """Return rows x[c] − e^cap·x[c±1] ≤ 0 for neighbouring counts; e^cap is at most e^500."""
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
        epsilon: a bound on the leakage of an answer about any time point, under each belief.
        dp_epsilon: the plain level for replacing one time point; None without a cap.
        mixed: the share of uniform noise that the repair mixed in.
        lower_bound: no mechanism that sees only the count, answers in 0..n and keeps the same
            constraints has a smaller expected loss (Lagrange's bound, in floats).
        checked: the number of verified inequalities.
    """

    epsilon: Fraction
    dp_epsilon: Fraction | None
    mixed: float
    lower_bound: float
    checked: int


@dataclass(frozen=True, eq=False)
class OutwardLaws:
    """Integers with low ≤ 2^bits·P(c | X_i = a) ≤ high, of shape (nodes, states, n + 1)."""

    low: list[Weights]
    high: list[Weights]


def outward_laws(chains: Sequence[MarkovChain], length: int, query: Query) -> OutwardLaws:
    """Compute the distributions exactly and round them outwards, without impossible states."""
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


def repair(
    table: FloatArray, laws: OutwardLaws, epsilon: Fraction, cap: Fraction | None
) -> tuple[Weights, int, Fraction]:
    """Return integers x[c, r] with a common row total, that total, and the share mixed in."""
    size = len(table)
    grid = _on_grid(table)
    share = Fraction(0)
    for _ in range(_ATTEMPTS):
        mixed, total = _mixed(grid, share)
        failing = largest_violation(mixed, laws, epsilon, cap)
        if failing <= 0:
            return mixed, total, share
        miss = Fraction(failing) / total
        needed = miss * size / (_uniform_slack(epsilon, cap) + miss * size)
        # At least doubled, so that a few attempts suffice.
        share = min(Fraction(1), 2 * share + _round_up(needed))
        if share >= Fraction(1, 2):
            break
    raise NotPrivateError(
        "The solver's mechanism could not be repaired to be private; try a larger epsilon."
    )


def largest_violation(
    table: Weights, laws: OutwardLaws, epsilon: Fraction, cap: Fraction | None
) -> Fraction:
    """Return the largest constraint violation, in units of the matrix; ≤ 0 if there is none."""
    worst = Fraction(-1)
    factor = exponential_down(epsilon)
    for low, high in zip(laws.low, laws.high, strict=True):
        above, below = high @ table, low @ table
        miss = above.max(axis=0) * factor.denominator - below.min(axis=0) * factor.numerator
        worst = max(worst, Fraction(int(miss.max()), factor.denominator << _LAW_BITS))
    if cap is not None:
        step = exponential_down(cap)
        for upper, lower in ((table[:-1], table[1:]), (table[1:], table[:-1])):
            miss = upper * step.denominator - lower * step.numerator
            worst = max(worst, Fraction(int(miss.max()), step.denominator))
    return worst


def number_of_inequalities(laws: OutwardLaws, size: int, cap: Fraction | None) -> int:
    """Return the number of inequalities that `largest_violation` checks."""
    pairs = sum(len(low) * (len(low) - 1) for low in laws.low)
    return pairs * size + (0 if cap is None else 2 * (size - 1) * size)


def exponential_down(level: Fraction) -> Fraction:
    """Return a rational at or below e^level, tight to 2^-127."""
    above = exp_minus(level, _LEVEL_BITS)[1]
    return Fraction(1 << _LEVEL_BITS, above)


def _on_grid(table: FloatArray) -> Weights:
    """Clip at 0 and round to multiples of 2^-60 that sum to 1 in every row."""
    whole = 1 << _TABLE_BITS
    clipped = np.maximum(np.nan_to_num(table), 0.0)
    shares = clipped / clipped.sum(axis=1, keepdims=True)
    rows = [[int(Fraction(float(x)) * whole) for x in row] for row in shares]
    for row in rows:
        # The largest entry absorbs the rounding: relative to its size it changes least.
        row[row.index(max(row))] += whole - sum(row)
    return np.array(rows, dtype=object)


def _mixed(grid: Weights, share: Fraction) -> tuple[Weights, int]:
    """Return (1 − share)·grid + share·uniform over one common denominator."""
    size = len(grid)
    p, q = share.numerator, share.denominator
    total = (1 << _TABLE_BITS) * q * size
    return grid * ((q - p) * size) + p * (1 << _TABLE_BITS), total


def _uniform_slack(epsilon: Fraction, cap: Fraction | None) -> Fraction:
    """Return the slack of the uniform mechanism, times n + 1."""
    levels = [epsilon] if cap is None else [epsilon, cap]
    return min(exponential_down(level) for level in levels) - 1


def _round_up(share: Fraction) -> Fraction:
    """Round a share up to a multiple of 2^-80, to keep denominators small."""
    return Fraction(math.ceil(share * (1 << _SHARE_BITS)) + 1, 1 << _SHARE_BITS)
