"""The worst set of records between two: what Definition 2.1 asks beyond removing whole providers.

Given what is left for certain and what may or may not be taken away besides, find a set in
between that violates the constraint. The satisfying histograms of entropy and recursive
l-diversity and of t-closeness form convex cones, so corners suffice: all or nothing more of each
value. `between` finds them for nearly every group; where it stays in doubt they are found here, by
a closed form or by dynamic programming over the number of added records. Any other constraint is
tried on every set.

Theorem: m-privacy
"""

from __future__ import annotations

from collections.abc import Iterator
from itertools import product
from math import log, prod

import numpy as np
from numpy.typing import NDArray

from quiltwork.exact import to_fraction
from quiltwork.publishing.constraints.base import Constraint
from quiltwork.publishing.constraints.entropy import EntropyLDiversity
from quiltwork.publishing.constraints.recursive import RecursiveLDiversity
from quiltwork.publishing.constraints.t_closeness import TCloseness
from quiltwork.publishing.group import Group, Weights

_TOLERANCE = 1e-10
_MOST_ADDED = 2000


def trials(group: Group, part: Constraint, kept: Weights, known: Weights) -> int:
    """Return how many sets `violating_set` looks at, at most."""
    there = known[known > 0]
    if group.kinds is None and known.sum() <= _MOST_ADDED:
        if isinstance(part, RecursiveLDiversity):
            return len(there) + 1
        if isinstance(part, EntropyLDiversity | TCloseness):
            return int(known.sum()) + 1
    if part.corners_suffice:
        return int(2 ** len(there))
    return prod(int(n) + 1 for n in there)


def violating_set(group: Group, part: Constraint, kept: Weights, known: Weights) -> Weights | None:
    """Return weights between `kept` and `kept + known` that violate; None if there are none."""
    for candidate in _candidates(group, part, kept, known):
        if not part.holds(group.histogram(candidate)):
            return candidate
    return None


def _candidates(group: Group, part: Constraint, kept: Weights, known: Weights) -> Iterator[Weights]:
    if group.kinds is None and known.sum() <= _MOST_ADDED:
        if isinstance(part, RecursiveLDiversity):
            return _one_raised(kept, known)
        if isinstance(part, EntropyLDiversity):
            return _least_entropy(kept, known, log(to_fraction(part.l, "l")))
        if isinstance(part, TCloseness):
            return _farthest(group, kept, known, part)
    steps = [(0, int(n)) if part.corners_suffice else range(int(n) + 1) for n in known]
    return (kept + np.array(added, dtype=np.int64) for added in product(*map(_distinct, steps)))


def _distinct(steps: tuple[int, int] | range) -> list[int]:
    return sorted(set(steps))


def _one_raised(kept: Weights, known: Weights) -> Iterator[Weights]:
    """Recursive diversity fails most where one value alone is raised to be the most frequent."""
    yield kept
    for i in np.flatnonzero(known).tolist():
        raised = kept.copy()
        raised[i] += known[i]
        yield raised


def _least_entropy(kept: Weights, known: Weights, level: float) -> Iterator[Weights]:
    """Yield, for each number of added records, the corner of least entropy if it may violate.

    N·log N − Σ n·log n is separable once N is fixed, so the best choice is a knapsack.
    """
    gains = _n_log_n(kept + known) - _n_log_n(kept)
    best, chosen = _knapsack(known, gains)
    totals = kept.sum() + np.arange(len(best))
    surplus = _n_log_n(totals) - _n_log_n(kept).sum() - best - totals * level
    doubtful = surplus <= _TOLERANCE * (_n_log_n(totals) + 1)
    for added in np.flatnonzero(doubtful & np.isfinite(best)).tolist():
        yield kept + _traced(known, chosen, added)


def _n_log_n(numbers: NDArray[np.int64]) -> NDArray[np.float64]:
    floats = numbers.astype(np.float64)
    return floats * np.log(np.maximum(floats, 1.0))


def _knapsack(
    known: Weights, gains: NDArray[np.float64]
) -> tuple[NDArray[np.float64], NDArray[np.bool_]]:
    """Return the best total gain for each total weight, and which values it takes."""
    room = int(known.sum())
    best = np.full(room + 1, -np.inf)
    best[0] = 0.0
    chosen = np.zeros((len(known), room + 1), dtype=np.bool_)
    for i, weight in enumerate(known.tolist()):
        if weight:
            taken = np.full(room + 1, -np.inf)
            taken[weight:] = best[:-weight] + gains[i]
            chosen[i] = taken > best
            best = np.where(chosen[i], taken, best)
    return best, chosen


def _traced(known: Weights, chosen: NDArray[np.bool_], room: int) -> Weights:
    added = np.zeros(len(known), dtype=np.int64)
    for i in range(len(known) - 1, -1, -1):
        if chosen[i, room]:
            added[i] = known[i]
            room -= int(known[i])
    return added


def _farthest(group: Group, kept: Weights, known: Weights, part: TCloseness) -> Iterator[Weights]:
    """Yield, for each number of added records, the corner farthest from the whole table."""
    whole = np.array(part.reference, dtype=np.int64)
    base, extra = np.zeros_like(whole), np.zeros_like(whole)
    base[group.values], extra[group.values] = kept, known
    for added in range(int(known.sum()) + 1):
        corner = _farthest_with(base, extra, whole, added, part.distance == "ordered")
        if corner is not None:
            yield kept + corner[group.values]


def _farthest_with(
    base: Weights, extra: Weights, whole: Weights, added: int, ordered: bool
) -> Weights | None:
    """Choose which values to raise, by `added` records in all, for the largest distance.

    The state is the number of records added so far; distances are integers (times both totals).
    """
    total, overall = int(base.sum()) + added, int(whole.sum())
    best = np.full(added + 1, -1.0)
    best[0] = 0.0
    chosen = np.zeros((len(base), added + 1), dtype=np.bool_)
    so_far = np.arange(added + 1, dtype=np.float64)
    below, share = 0.0, 0.0
    for i, (low, more, expected) in enumerate(zip(base, extra, whole, strict=True)):
        below, share = below + float(low), share + float(expected)
        flat, raised = best.copy(), np.full(added + 1, -1.0)
        if 0 < more <= added:
            raised[more:] = best[:-more]
        if ordered:
            cost = np.abs((below + so_far) * overall - share * total)
            costs = (cost, cost)
        else:
            gap = float(low) * overall - float(expected) * total
            costs = (np.abs(gap), np.abs(gap + float(more) * overall))
        flat = np.where(flat >= 0, flat + costs[0], -1.0)
        raised = np.where(raised >= 0, raised + costs[1], -1.0)
        chosen[i] = raised > flat
        best = np.maximum(flat, raised)
    return _traced(extra, chosen, added) if best[added] >= 0 else None
