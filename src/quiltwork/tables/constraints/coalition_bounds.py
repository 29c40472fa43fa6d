"""Bounds on every coalition of many groups at once, from sorted counts; constraints build on them.

A coalition knows at most as many records of a group as its largest providers together; to remove a
value, all its providers must collude. Cost: a few sorts of the entries.

Theorem: docs/theory/m-privacy.md
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from quiltwork.tables.codes.distinct import distinct_counts, distinct_rows
from quiltwork.tables.codes.group import SparseCounts, values_of_entries

Flags = NDArray[np.bool_]
Ints = NDArray[np.int64]
Status = NDArray[np.int8]

OPEN, SAFE, BROKEN = 0, 1, 2


def most_known(counts: SparseCounts, m: int) -> Ints:
    """Return, for each group, an upper bound on the records (people) that a coalition of m knows.

    It is the sum over the largest providers; a person known to several of them counts repeatedly.
    """
    return sum_of_largest(*_known_by_provider(counts), coalition_sizes(counts, m))


def sum_of_largest(group: Ints, numbers: NDArray[Any], how_many: Ints) -> Ints:
    """Return, for each group, the sum of its `how_many` largest numbers, rounded down."""
    order = np.lexsort((-numbers, group))
    group, numbers = group[order], numbers[order]
    rank = np.arange(len(group)) - np.searchsorted(group, group)
    among_largest = rank < how_many[group]
    sums = np.bincount(
        group[among_largest], weights=numbers[among_largest], minlength=len(how_many)
    )
    # The bounded counts are integers, so a fractional bound may be rounded down.
    return sums.astype(np.int64)


def coalition_sizes(counts: SparseCounts, m: int) -> Ints:
    """Return the largest coalition to consider in each group.

    It is min(m, n_G − 1), but m where someone is also known to a provider without records in the
    group.
    """
    # A coalition of all n_G providers would leave nobody to protect.
    limited = np.minimum(m, counts.inside - 1)
    size: Ints = np.where(known_to_one_each(counts), limited, m)
    return size


def known_to_one_each(counts: SparseCounts) -> Flags:
    """Return which groups hold only people known to a single provider."""
    simple = np.ones(counts.groups, dtype=np.bool_)
    simple[counts.group[counts.who >= counts.providers]] = False
    return simple


def _known_by_provider(counts: SparseCounts) -> tuple[Ints, Ints]:
    """Return (group, people known) for every provider of every group.

    Entries are sorted by group and by who knows them. A set of several providers counts for each of
    its members, so these entries are expanded, sorted again and added up.
    """
    is_start = np.append(True, (np.diff(counts.group) != 0) | (np.diff(counts.who) != 0))
    first = np.flatnonzero(is_start)
    group, who = counts.group[first], counts.who[first]
    known = np.add.reduceat(counts.weight, first)
    # Without shared people every entry has one provider already.
    if not len(counts.sets):
        return group, known
    is_single = who < counts.providers
    position, members = counts.sets.spread(who[~is_single] - counts.providers)
    columns = [
        np.concatenate([group[is_single], group[~is_single][position]]),
        np.concatenate([who[is_single], members]),
    ]
    weights = np.concatenate([known[is_single], known[~is_single][position]])
    order = np.lexsort(columns[::-1])
    (group_of, _), repeats = distinct_rows(columns, [counts.groups, counts.providers])
    first = np.cumsum(repeats) - repeats
    return group_of, np.add.reduceat(weights[order], first)


def distinct_cells(counts: SparseCounts) -> tuple[Ints, Ints, Ints]:
    """Return the distinct (group, value, provider), with provider −1 for a set of several."""
    provider = np.where(counts.who < counts.providers, counts.who, -1)
    # Entries are distinct already unless people are shared or have several values.
    if not len(counts.kinds) and not len(counts.sets):
        return counts.group, counts.kind, provider
    rows, values = values_of_entries(counts)
    sizes = [counts.groups, counts.values, counts.providers + 1]
    (group, value, owner), _ = distinct_rows(
        [counts.group[rows], values, provider[rows] + 1], sizes
    )
    return group, value, owner - 1


def owners_of_values(cell: Ints, alone: Flags, counts: SparseCounts) -> tuple[Ints, Ints]:
    """Return the group of each occurring (group, value), and the number of providers that hold it.

    All of these must collude to remove the value. `alone` says for which cells a single provider
    knows the people.
    """
    occurring, owners = distinct_counts(cell, counts.groups * counts.values)
    if not alone.all():
        also_shared, counts_shared = distinct_counts(cell[~alone], counts.groups * counts.values)
        # A cell known to several providers at once does not identify one that must collude.
        owners[np.searchsorted(occurring, also_shared)] -= counts_shared
    return occurring // counts.values, owners


def entries_per_provider(group: Ints, provider: Ints, counts: SparseCounts) -> tuple[Ints, Ints]:
    """Return (group, number of entries) for every provider of every group."""
    (group_of, _), number = distinct_rows(
        [group, provider + 1], [counts.groups, counts.providers + 1]
    )
    return group_of, number
