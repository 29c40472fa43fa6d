"""Distinct l-diversity: at least l sensitive values in every group.

To leave fewer is NP-hard in general, but exponential only in the values that few providers hold:
bounds from sorted counts settle nearly every group, branch and bound over values the others.

Theorem: docs/theory/m-privacy.md
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from quiltwork.exact import integer
from quiltwork.tables.codes.group import Group, SparseCounts, Weights, subset
from quiltwork.tables.codes.histogram import SecretCounts
from quiltwork.tables.constraints.coalition_bounds import (
    BROKEN,
    OPEN,
    SAFE,
    Flags,
    Ints,
    Status,
    coalition_sizes,
    distinct_cells,
    entries_per_provider,
    known_to_one_each,
    owners_of_values,
    sum_of_largest,
)
from quiltwork.tables.constraints.constraint import MOST, Constraint, Counter

_SLACK = 1e-6
_NODE, _CELLS_PER_CHECK = 3, 1365
"""What looking at one choice counts as: some three millionths of a second each."""


@dataclass(frozen=True)
class LDiversity(Constraint):
    """At least l distinct sensitive values in every group. EG monotonic.

    Raises:
        InvalidInputError: unless l is an integer ≥ 1.

    >>> LDiversity(2).holds(SecretCounts.of([0, 0, 0]))
    False
    """

    l: int  # noqa: E741  (the field's own letter)
    eg_monotonic: ClassVar[bool] = True
    generalization_monotonic: ClassVar[bool] = True

    def __post_init__(self) -> None:
        object.__setattr__(self, "l", integer(self.l, "l", 1, MOST))

    def holds(self, left: SecretCounts) -> bool:
        """Tell whether there are at least l values."""
        return left.distinct >= self.l

    def fitness(self, left: SecretCounts) -> float:
        """Return distinct values / l."""
        return left.distinct / self.l

    @property
    def values_asked(self) -> int:
        """The l."""
        return self.l

    @property
    def records_needed(self) -> int:
        """How many records it takes at least, each its own person."""
        return self.l

    @property
    def counts_alone(self) -> bool:
        """Whether it asks for numbers of records and of values, and nothing else."""
        return True

    def bound(self, counts: SparseCounts, m: int) -> Status:
        """Bound how many providers it takes to remove the rarest values of each group.

        To remove a value, all its providers must collude; so values of more providers than may
        collude stay. Most groups have enough of these.
        """
        group, value, provider = distinct_cells(counts)
        where, owners = owners_of_values(group * counts.values + value, provider >= 0, counts)
        removable = owners <= coalition_sizes(counts, m)[where]
        number = np.bincount(where, minlength=counts.groups)
        safe = number - np.bincount(where[removable], minlength=counts.groups) >= self.l
        status = np.where(safe, SAFE, np.where(number < self.l, BROKEN, OPEN)).astype(np.int8)
        left = np.flatnonzero(status == OPEN)
        if len(left):
            status[left] = _bound_rarest(subset(counts, left), self.l, m)
        return status

    def needs_coalitions(self, group: Group) -> bool:
        """Tell whether coalitions have to be tried: not where each person is known to one."""
        return group.people_are_shared

    def breach(self, group: Group, m: int, count: Counter) -> tuple[int, ...] | None:
        """Return a coalition that leaves fewer than l values, without trying any."""
        held = group.weights if group.kinds is None else group.weights @ group.kinds
        holds, spared = held > 0, group.size - min(m, group.size - 1)
        left = covered_by_few(holds, self.l - 1, spared, count)
        return None if left is None else tuple(np.flatnonzero((holds & ~left).any(axis=1)).tolist())

    def violated(self, group: Group, kept: Weights) -> Flags:
        """Tell which rows, weights by kind, have too few values."""
        values = kept if group.kinds is None else kept @ group.kinds
        return np.asarray(np.count_nonzero(values, axis=1) < self.l)

    def without(self, left: SecretCounts, known: int) -> bool:
        """Tell whether it holds whichever `known` records are taken away: those of rare values."""
        gone = int((np.cumsum(np.sort(left.counts)) <= known).sum())
        return left.distinct - gone >= self.l

    def __str__(self) -> str:
        return f"distinct {self.l}-diversity"


def _bound_rarest(counts: SparseCounts, wanted: int, m: int) -> Status:
    """Bound the providers of the e rarest values, if fewer than l are left without e values.

    Members hold each removed value once for each of its providers: what single members can
    contribute to that, counted one by one, must be enough for the e rarest. For coalitions of one
    it is enough. If one provider is left, its values are all that is; some may have none, as those
    of their records are missing.

    `found` are the cells (group · values + value) that occur, `where` and `owners` the group and
    the number of providers of each; `rising` has these numbers sorted within each group, whose
    cells begin at `start`, so that differences of `running` add up the e smallest.
    """
    group, value, provider = distinct_cells(counts)
    alone, cell = provider >= 0, group * counts.values + value
    found, inverse = np.unique(cell, return_inverse=True)
    where, owners = found // counts.values, np.bincount(inverse[alone], minlength=len(found))
    rising = owners[np.lexsort((owners, where))]
    start = np.searchsorted(where, np.arange(counts.groups))
    emptied = np.bincount(where, minlength=counts.groups) - wanted + 1
    running = np.concatenate([[0], np.cumsum(rising)])
    together = running[start + emptied] - running[start]
    size, simple = coalition_sizes(counts, m), known_to_one_each(counts)
    use = alone & (owners <= size[where])[inverse]
    holder, held = entries_per_provider(group[use], provider[use], counts)
    status = np.full(counts.groups, OPEN, dtype=np.int8)
    status[simple & ((together <= size) | (size == 1))] = BROKEN
    status[together > sum_of_largest(holder, held, size)] = SAFE
    holder, held = entries_per_provider(group, provider, counts)
    without = counts.inside - np.bincount(holder, minlength=counts.groups)
    fewest = np.minimum.reduceat(held, np.searchsorted(holder, np.arange(counts.groups)))
    fewest = np.where(without > 0, 0, fewest)
    covered = without + _most_covered(group, value, provider, counts, wanted - 1)
    status[simple & (covered < counts.inside - size) & (status == OPEN)] = SAFE
    one_left = simple & (size == counts.inside - 1)
    status[one_left] = np.where(fewest < wanted, BROKEN, SAFE)[one_left]
    return status


def _most_covered(group: Ints, value: Ints, provider: Ints, counts: SparseCounts, few: int) -> Ints:
    """Bound how many providers of each group hold, together, at most `few` values.

    As `covered_by_few` does: each of them gives 1/j to each of their j values.
    """
    _, who, held = np.unique(
        group * (counts.providers + 1) + provider + 1, return_inverse=True, return_counts=True
    )
    held = held[who]
    share = np.where((held <= few) & (provider >= 0), 1 / held, 0.0)
    found, cell = np.unique(group * counts.values + value, return_inverse=True)
    given = np.bincount(cell, weights=share) + 1e-9  # never below the true sum, which is floored
    many = np.full(counts.groups, few, dtype=np.int64)
    return sum_of_largest(found // counts.values, given, many)


def covered_by_few(holds: Flags, few: int, wanted: int, count: Counter) -> Flags | None:
    """Return at most `few` values that cover `wanted` providers; None if there are none.

    Fewer than l values are left if and only if those who do not collude hold, all together, at most
    l − 1: so a coalition of s of n providers breaches if some n − s hold values out of one set of
    l − 1. Branch and bound over that set: each provider of j values that could still be covered
    gives 1/j to each of them, and no set covers more providers than its values were given together.
    `holds` is provider × value. `count` is told how much was looked at, and may raise.

    >>> holds = np.array([[1, 0, 0], [1, 1, 0], [0, 1, 0], [0, 0, 1]], dtype=bool)
    >>> covered_by_few(holds, 2, 3, lambda _: None)
    array([ True,  True, False])
    >>> covered_by_few(holds, 1, 2, lambda _: None)
    """
    small = holds[holds.sum(axis=1) <= few]
    if len(small) < wanted:
        return None
    packed = np.packbits(small, axis=1)
    _, first, alike = np.unique(packed, axis=0, return_index=True, return_counts=True)
    # Sets to be covered still, how many providers each stands for, how many are covered; the
    # values chosen. Depth first, what is likelier first.
    stack = [(small[first], alike.astype(np.float64), 0.0, np.zeros(holds.shape[1], dtype=bool))]
    while stack:
        sets, many, covered, chosen = stack.pop()
        count(_NODE + sets.size // _CELLS_PER_CHECK)
        room = few - int(chosen.sum())
        missing = sets.sum(axis=1)
        covered += float(many[missing == 0].sum())
        if covered >= wanted:
            return chosen
        open_ = (missing > 0) & (missing <= room)
        sets, many, missing = sets[open_], many[open_], missing[open_]
        share = many / np.maximum(missing, 1)
        given = share @ sets
        if covered + float(np.sort(given)[::-1][:room].sum()) < wanted - _SLACK:
            continue
        if len(sets) < np.count_nonzero(given):
            at = int(share.argmax())
            others, added = np.arange(len(sets)) != at, sets[at]
        else:
            value = int(given.argmax())
            others, added = ~sets[:, value], np.arange(len(given)) == value
        stack.append((sets[others], many[others], covered, chosen))
        stack.append((sets & ~added, many, covered, chosen | added))
    return None
