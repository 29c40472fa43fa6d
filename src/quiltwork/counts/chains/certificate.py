"""Repair and certificate: a mechanism that is exactly private, verified in integers.

The solver's table is clipped, put on a grid of fractions, and mixed with the uniform mechanism
until every constraint holds with P(c | X_i = a) rounded outwards and e^ε rounded down. What is
verified is the very table that answers are drawn from.

Theorem: docs/theory/optimal-mechanism.md
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction

import numpy as np

from quiltwork.audit.inner import inner_chain
from quiltwork.audit.laws import Weights, integer_laws
from quiltwork.beliefs import MarkovChain
from quiltwork.beliefs.matrices import FloatArray
from quiltwork.counts.chains.chain_program import statistic_of
from quiltwork.errors import NotPrivateError
from quiltwork.noise.enclosure import exp_minus
from quiltwork.queries import Query

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
