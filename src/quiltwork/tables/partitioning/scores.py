"""Fitness scores of many groups at once: `fitness.score` in arrays.

Cost: O(groups · values), with a sort of the values for recursive diversity; constraints of the
user's are asked group by group.
"""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import NDArray

from quiltwork.exact import positive_fraction, to_fraction
from quiltwork.tables.constraints.base import Constraint
from quiltwork.tables.constraints.entropy import EntropyLDiversity
from quiltwork.tables.constraints.k_anonymity import KAnonymity
from quiltwork.tables.constraints.l_diversity import LDiversity
from quiltwork.tables.constraints.recursive import RecursiveLDiversity
from quiltwork.tables.constraints.t_closeness import TCloseness
from quiltwork.tables.sparse import SparseCounts, by_value, subset
from quiltwork.tables.verification.corners import find_violations

Floats = NDArray[np.float64]
Flags = NDArray[np.bool_]
Ints = NDArray[np.int64]
_CELLS = 4_000_000


def group_scores(constraint: Constraint, counts: SparseCounts, alpha: float) -> Floats:
    """Return the fitness score of every whole group, below 1 exactly if it is violated."""
    step = max(1, _CELLS // max(counts.values, 1))
    starts = range(0, counts.groups, step)
    portions = (np.arange(first, min(first + step, counts.groups)) for first in starts)
    found = [_scores(constraint, subset(counts, some), alpha) for some in portions]
    return np.concatenate(found) if found else np.zeros(0)


def _scores(constraint: Constraint, counts: SparseCounts, alpha: float) -> Floats:
    table = by_value(counts)
    number = np.bincount(counts.group, weights=counts.weight, minlength=counts.groups)
    people = number.astype(np.float64)
    parts = [_fitness(part, counts, table, people) for part in constraint.parts]
    first, *others = (fitness for fitness, _ in parts)
    if others:
        first = (1 - alpha) * first + alpha * (sum(others) / len(others))
    return _agreeing(first, np.all([holds for _, holds in parts], axis=0))


def _agreeing(fitness: Floats, holds: Flags) -> Floats:
    below = np.minimum(fitness, math.nextafter(1.0, 0.0))
    return np.where(holds, np.maximum(fitness, 1.0), below)


def _fitness(
    part: Constraint, counts: SparseCounts, table: Ints, people: Floats
) -> tuple[Floats, Flags]:
    """Return how far each group fulfils one constraint, and whether it does."""
    if isinstance(part, KAnonymity):
        return people / part.k, people >= part.k
    if isinstance(part, LDiversity):
        values = np.count_nonzero(table, axis=1)
        return values / part.l, values >= part.l
    if isinstance(part, EntropyLDiversity):
        shares = table / table.sum(axis=1, keepdims=True)
        entropy = -(shares * np.log(np.where(shares > 0, shares, 1.0))).sum(axis=1)
        fitness = np.exp(entropy) / float(to_fraction(part.l, "l"))
    elif isinstance(part, RecursiveLDiversity):
        falling = -np.sort(-table, axis=1)
        tail = falling[:, part.l - 1 :].sum(axis=1)
        fitness = float(positive_fraction(part.c, "c")) * tail / falling[:, 0]
    elif isinstance(part, TCloseness):
        fitness = (1.0 - _distances(part, table)) / float(1 - to_fraction(part.t, "t"))
    else:
        left = [counts.cut(group).left(()) for group in range(counts.groups)]
        holds = np.array([part.holds(records) for records in left], dtype=np.bool_)
        return np.array([part.fitness(records) for records in left]), holds
    holds = find_violations(part, table, table, np.arange(len(table)), len(table)).safe
    return _agreeing(fitness, holds), holds


def _distances(part: TCloseness, table: Ints) -> Floats:
    """Return each group's earth mover's distance to the whole table."""
    whole = part.whole / part.whole.sum()
    gaps = table / table.sum(axis=1, keepdims=True) - whole
    if part.distance == "equal":
        return np.asarray(np.abs(gaps).sum(axis=1) / 2)
    moved = np.abs(np.cumsum(gaps, axis=1)[:, :-1]).sum(axis=1)
    return np.asarray(moved / max(len(whole) - 1, 1))
