"""What sorted counts say about every coalition of many groups at once; constraints build on it.

No coalition knows more records of a group than its largest providers together; to remove a value,
all its providers must collude. Cost: a few sorts of the entries.

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
    """Return how many records (people) of each group its largest providers know, at most.

    No coalition knows more; each person whom several of them know counts several times.
    """
    return sum_of_largest(*_known_by_provider(counts), coalition_sizes(counts, m))


def sum_of_largest(group: Ints, numbers: NDArray[Any], how_many: Ints) -> Ints:
    """Add up the largest numbers of each group, as many as asked, and floor."""
    order = np.lexsort((-numbers, group))
    group, numbers = group[order], numbers[order]
    position = np.arange(len(group)) - np.searchsorted(group, group)
    taken = position < how_many[group]
    sums = np.bincount(group[taken], weights=numbers[taken], minlength=len(how_many))
    return sums.astype(np.int64)


def coalition_sizes(counts: SparseCounts, m: int) -> Ints:
    """Return how many providers of each group may collude; at most m where others know someone."""
    limited = np.minimum(m, counts.inside - 1)
    size: Ints = np.where(known_to_one_each(counts), limited, m)
    return size


def known_to_one_each(counts: SparseCounts) -> Flags:
    """Tell which groups hold only people known to one provider each."""
    simple = np.ones(counts.groups, dtype=np.bool_)
    simple[counts.group[counts.who >= counts.providers]] = False
    return simple


def _known_by_provider(counts: SparseCounts) -> tuple[Ints, Ints]:
    """Return (group, people known) for every provider of every group.

    Entries are sorted by group and by who knows them; a set of several providers counts for each of
    its members, so that these are spread out, sorted again and added up.
    """
    new = np.append(True, (np.diff(counts.group) != 0) | (np.diff(counts.who) != 0))
    first = np.flatnonzero(new)
    group, who = counts.group[first], counts.who[first]
    known = np.add.reduceat(counts.weight, first)
    if not len(counts.sets):
        return group, known
    own = who < counts.providers
    position, members = counts.sets.spread(who[~own] - counts.providers)
    columns = [
        np.concatenate([group[own], group[~own][position]]),
        np.concatenate([who[own], members]),
    ]
    weights = np.concatenate([known[own], known[~own][position]])
    order = np.lexsort(columns[::-1])
    (where, _), repeats = distinct_rows(columns, [counts.groups, counts.providers])
    first = np.cumsum(repeats) - repeats
    return where, np.add.reduceat(weights[order], first)


def distinct_cells(counts: SparseCounts) -> tuple[Ints, Ints, Ints]:
    """Return the distinct (group, value, provider); provider −1 stands for several at once."""
    provider = np.where(counts.who < counts.providers, counts.who, -1)
    if not len(counts.kinds) and not len(counts.sets):
        return counts.group, counts.kind, provider
    rows, values = values_of_entries(counts)
    sizes = [counts.groups, counts.values, counts.providers + 1]
    (group, value, owner), _ = distinct_rows(
        [counts.group[rows], values, provider[rows] + 1], sizes
    )
    return group, value, owner - 1


def owners_of_values(cell: Ints, alone: Flags, counts: SparseCounts) -> tuple[Ints, Ints]:
    """Return the group of each (group, value) that occurs, and how many providers must collude."""
    found, owners = distinct_counts(cell, counts.groups * counts.values)
    if not alone.all():
        shared, several = distinct_counts(cell[~alone], counts.groups * counts.values)
        owners[np.searchsorted(found, shared)] -= several
    return found // counts.values, owners


def entries_per_provider(group: Ints, provider: Ints, counts: SparseCounts) -> tuple[Ints, Ints]:
    """Return (group, number of entries) for every provider of every group."""
    (where, _), number = distinct_rows([group, provider + 1], [counts.groups, counts.providers + 1])
    return where, number
