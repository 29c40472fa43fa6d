"""Distinct l-diversity: at least l sensitive values in every group.

Finding a coalition that leaves fewer is NP-hard in general, but exponential only in the number of
values that few providers hold: bounds from sorted counts decide nearly every group, and branch and
bound over values the others.

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
from quiltwork.tables.constraints.constraint import MAX_COUNT, CheckCounter, Constraint

_SLACK = 1e-6  # sums of shares may round below the true sum
_NODE, _CELLS_PER_CHECK = 3, 1365
"""The checks that one node of the search counts as: about 3 µs each, like other checks."""


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
        object.__setattr__(self, "l", integer(self.l, "l", 1, MAX_COUNT))

    def holds(self, records: SecretCounts) -> bool:
        """Return whether there are at least l distinct values."""
        return records.distinct >= self.l

    def fitness(self, records: SecretCounts) -> float:
        """Return distinct values / l."""
        return records.distinct / self.l

    @property
    def values_asked(self) -> int:
        """The l."""
        return self.l

    @property
    def records_needed(self) -> int:
        """The fewest records, each of another person, that can satisfy it."""
        return self.l

    @property
    def counts_alone(self) -> bool:
        """Whether it depends only on the numbers of records and of distinct values."""
        return True

    def bound(self, counts: SparseCounts, m: int) -> Status:
        """Compare the values that no coalition can remove with l.

        To remove a value, all its providers must collude, so values with more providers than may
        collude stay. Most groups have enough of these.
        """
        group, value, provider = distinct_cells(counts)
        group_of, owners = owners_of_values(group * counts.values + value, provider >= 0, counts)
        # A value with more providers than may collude cannot be removed.
        removable = owners <= coalition_sizes(counts, m)[group_of]
        number = np.bincount(group_of, minlength=counts.groups)
        safe = number - np.bincount(group_of[removable], minlength=counts.groups) >= self.l
        status = np.where(safe, SAFE, np.where(number < self.l, BROKEN, OPEN)).astype(np.int8)
        undecided = np.flatnonzero(status == OPEN)
        if len(undecided):
            status[undecided] = _bound_rarest(subset(counts, undecided), self.l, m)
        return status

    def needs_coalitions(self, group: Group) -> bool:
        """Return whether some person is known to several providers."""
        return group.people_are_shared

    def breach(self, group: Group, m: int, count: CheckCounter) -> tuple[int, ...] | None:
        """Return a coalition that leaves fewer than l values, without trying coalitions."""
        by_value = group.weights if group.kinds is None else group.weights @ group.kinds
        holds, outside = by_value > 0, group.size - min(m, group.size - 1)
        remaining = covered_by_few(holds, self.l - 1, outside, count)
        return (
            None
            if remaining is None
            else tuple(np.flatnonzero((holds & ~remaining).any(axis=1)).tolist())
        )

    def violated(self, group: Group, kept: Weights) -> Flags:
        """Return which rows of `kept`, weights by kind, have fewer than l values."""
        values = kept if group.kinds is None else kept @ group.kinds
        return np.asarray(np.count_nonzero(values, axis=1) < self.l)

    def without(self, records: SecretCounts, removed: int) -> bool:
        """Return whether it holds whichever `removed` records, the rarest values, are removed."""
        lost_values = int((np.cumsum(np.sort(records.counts)) <= removed).sum())
        return records.distinct - lost_values >= self.l

    def __str__(self) -> str:
        return f"distinct {self.l}-diversity"


def _bound_rarest(counts: SparseCounts, wanted: int, m: int) -> Status:
    """Bound the providers of the e rarest values, where removing e values leaves fewer than l.

    Coalition members hold each removed value once for each of its providers. What single members
    can contribute to that, counted one by one, must be enough for the e rarest; for coalitions of
    one, it is sufficient too. If one provider is left, its values are all that remain; a provider
    may have none, if the values of its records are missing.

    `cells` are the occurring (group · values + value), `group_of` and `owners` the group and the
    number of providers of each. `rising` has these numbers sorted within each group, whose cells
    begin at `start`, so that differences of `running` are the sums of the e smallest.
    """
    group, value, provider = distinct_cells(counts)
    is_single, cell = provider >= 0, group * counts.values + value
    cells, inverse = np.unique(cell, return_inverse=True)
    group_of, owners = cells // counts.values, np.bincount(inverse[is_single], minlength=len(cells))
    rising = owners[np.lexsort((owners, group_of))]
    start = np.searchsorted(group_of, np.arange(counts.groups))
    emptied = np.bincount(group_of, minlength=counts.groups) - wanted + 1
    running = np.concatenate([[0], np.cumsum(rising)])
    together = running[start + emptied] - running[start]
    size, simple = coalition_sizes(counts, m), known_to_one_each(counts)
    is_removable = is_single & (owners <= size[group_of])[inverse]
    holder, contributed = entries_per_provider(group[is_removable], provider[is_removable], counts)
    status = np.full(counts.groups, OPEN, dtype=np.int8)
    status[simple & ((together <= size) | (size == 1))] = BROKEN
    status[together > sum_of_largest(holder, contributed, size)] = SAFE
    holder, contributed = entries_per_provider(group, provider, counts)
    valueless = counts.inside - np.bincount(holder, minlength=counts.groups)
    fewest = np.minimum.reduceat(contributed, np.searchsorted(holder, np.arange(counts.groups)))
    fewest = np.where(valueless > 0, 0, fewest)
    covered = valueless + _most_covered(group, value, provider, counts, wanted - 1)
    status[simple & (covered < counts.inside - size) & (status == OPEN)] = SAFE
    one_left = simple & (size == counts.inside - 1)
    # With one provider left, its own values decide: no bound is needed.
    status[one_left] = np.where(fewest < wanted, BROKEN, SAFE)[one_left]
    return status


def _most_covered(group: Ints, value: Ints, provider: Ints, counts: SparseCounts, few: int) -> Ints:
    """Bound the number of providers of each group that together hold at most `few` values.

    As in `covered_by_few`, each provider gives 1/j to each of its j values.
    """
    _, who, held = np.unique(
        group * (counts.providers + 1) + provider + 1, return_inverse=True, return_counts=True
    )
    held = held[who]
    share = np.where((held <= few) & (provider >= 0), 1 / held, 0.0)
    cells, cell = np.unique(group * counts.values + value, return_inverse=True)
    weight = np.bincount(cell, weights=share) + 1e-9  # margin: the sum is rounded down later
    limit = np.full(counts.groups, few, dtype=np.int64)
    return sum_of_largest(cells // counts.values, weight, limit)


def covered_by_few(holds: Flags, few: int, wanted: int, count: CheckCounter) -> Flags | None:
    """Return at most `few` values that cover `wanted` providers, or None if there are none.

    A provider is covered if all its values are chosen. Fewer than l values remain if and only if
    the providers that do not collude hold at most l − 1 values together; so a coalition of s of n
    providers breaches if some n − s providers are covered by l − 1 values. Branch and bound over
    the chosen values: a provider with j values still to be covered gives 1/j to each of them, and
    no set covers more providers than its values were given together. `holds` is provider × value;
    `count` is called with the work done, and may raise.

    >>> holds = np.array([[1, 0, 0], [1, 1, 0], [0, 1, 0], [0, 0, 1]], dtype=bool)
    >>> covered_by_few(holds, 2, 3, lambda _: None)
    array([ True,  True, False])
    >>> covered_by_few(holds, 1, 2, lambda _: None)
    """
    # A provider with more than `few` values is never covered.
    small = holds[holds.sum(axis=1) <= few]
    if len(small) < wanted:
        return None
    packed = np.packbits(small, axis=1)
    _, first, multiplicity = np.unique(packed, axis=0, return_index=True, return_counts=True)
    # Each entry: value sets still to be covered, the providers that each stands for, the number
    # already covered, the chosen values. Depth first, the likelier branch first.
    stack = [
        (small[first], multiplicity.astype(np.float64), 0.0, np.zeros(holds.shape[1], dtype=bool))
    ]
    while stack:
        sets, many, covered, chosen = stack.pop()
        count(_NODE + sets.size // _CELLS_PER_CHECK)
        room = few - int(chosen.sum())
        missing = sets.sum(axis=1)
        covered += float(many[missing == 0].sum())
        if covered >= wanted:
            return chosen
        is_coverable = (missing > 0) & (missing <= room)
        sets, many, missing = sets[is_coverable], many[is_coverable], missing[is_coverable]
        share = many / np.maximum(missing, 1)
        received = share @ sets
        if covered + float(np.sort(received)[::-1][:room].sum()) < wanted - _SLACK:
            continue
        # Branch on the smaller side: one provider's whole set, or a single value.
        if len(sets) < np.count_nonzero(received):
            at = int(share.argmax())
            others, added = np.arange(len(sets)) != at, sets[at]
        else:
            value = int(received.argmax())
            others, added = ~sets[:, value], np.arange(len(received)) == value
        stack.append((sets[others], many[others], covered, chosen))
        stack.append((sets & ~added, many, covered, chosen | added))
    return None
