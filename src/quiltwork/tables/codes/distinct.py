"""Distinct numbers, rows and sets, how often each occurs, and runs of numbers; who knows a person.

By a table of counts, or by sorting if that is less. Measured, a table costs as much as a sort at
about two cells for each number; `numpy.unique` without counts takes several times as long.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

Ints = NDArray[np.int64]

_SMALL = 1024


def bincount_is_cheaper(cells: int, numbers: int) -> bool:
    """Tell whether a table of so many counts is cheaper than sorting so many numbers."""
    return cells <= 2 * numbers + _SMALL


def distinct_counts(numbers: Ints, cells: int) -> tuple[Ints, Ints]:
    """Return the distinct numbers from 0..cells−1 in order, and how often each occurs.

    >>> [found.tolist() for found in distinct_counts(np.array([7, 2, 7]), 10)]
    [[2, 7], [1, 2]]
    """
    if not bincount_is_cheaper(cells, len(numbers)):
        return np.unique(numbers, return_counts=True)
    counts = np.bincount(numbers, minlength=cells)
    found = np.flatnonzero(counts)
    return found, counts[found]


@dataclass(frozen=True, eq=False)
class NumberSets:
    """Several sets of numbers, one after the other.

    Attributes:
        start: where each set begins in `members`; one more than there are sets.
        members: the numbers, ascending within each set.
    """

    start: Ints
    members: Ints

    def __len__(self) -> int:
        return len(self.start) - 1

    def __getitem__(self, index: int) -> tuple[int, ...]:
        return tuple(self.members[self.start[index] : self.start[index + 1]].tolist())

    @property
    def sizes(self) -> Ints:
        """How many numbers each set has."""
        return np.diff(self.start)

    def spread(self, indices: Ints) -> tuple[Ints, Ints]:
        """Return, for sets asked by index, (position in `indices`, member) for every member."""
        sizes = self.sizes[indices]
        return np.repeat(np.arange(len(indices)), sizes), self.members[
            concatenated_ranges(self.start[indices], sizes)
        ]

    def take(self, indices: Ints) -> NumberSets:
        """Return some of the sets."""
        start = np.append(0, np.cumsum(self.sizes[indices]))
        return NumberSets(start, self.spread(indices)[1])


def concatenated_ranges(starts: Ints, sizes: Ints) -> Ints:
    """Return the numbers starts[i], …, starts[i]+sizes[i]−1 for each i in turn."""
    offset = np.repeat(starts - starts_of(sizes), sizes)
    return offset + np.arange(len(offset))


def starts_of(sizes: Ints) -> Ints:
    """Return where runs of these sizes begin."""
    starts = np.zeros(len(sizes), dtype=np.int64)
    np.cumsum(sizes[:-1], out=starts[1:])
    return starts


NO_SETS = NumberSets(np.zeros(1, dtype=np.int64), np.zeros(0, dtype=np.int64))
ONE_EMPTY_SET = NumberSets(np.zeros(2, dtype=np.int64), np.zeros(0, dtype=np.int64))


def who_knows(subject: Ints, provider: Ints, providers: int) -> tuple[Ints, NumberSets]:
    """Return, for each row, who knows its person, and the sets of several providers.

    A number below `providers` is that provider alone; above, it counts through the sets.
    """
    people = int(subject.max()) + 1
    (person, owner), _ = distinct_rows([subject, provider], [people, providers])
    ids, sets = set_ids(person, owner, people, providers)
    return ids[subject], sets


def set_ids(owner: Ints, member: Ints, owners: int, members: int) -> tuple[Ints, NumberSets]:
    """Give each owner the number of their set of members: the member if there is one only.

    `owner` is sorted, and `member` is within each owner. An owner may have none.
    """
    bounds = np.searchsorted(owner, np.arange(owners + 1))
    sizes = np.diff(bounds)
    ids = np.zeros(owners, dtype=np.int64)
    ids[sizes == 1] = member[bounds[:-1][sizes == 1]]
    known, lengths = [NO_SETS.members], [NO_SETS.members]
    for size in np.unique(sizes[sizes != 1]).tolist():
        several = np.flatnonzero(sizes == size)
        rows = member[bounds[several][:, None] + np.arange(size)]
        found, inverse = rows[:1], np.zeros(len(several), dtype=np.int64)
        if size:
            found, inverse = np.unique(rows, axis=0, return_inverse=True)
        ids[several] = members + sum(map(len, lengths)) + inverse.reshape(-1)
        known.append(found.reshape(-1))
        lengths.append(np.full(len(found), size, dtype=np.int64))
    start = np.concatenate([[0], np.cumsum(np.concatenate(lengths))]).astype(np.int64)
    return ids, NumberSets(start, np.concatenate(known))


def distinct_rows(
    columns: Sequence[NDArray[np.integer[Any]]], sizes: Sequence[int]
) -> tuple[list[Ints], Ints]:
    """Return the distinct rows, sorted by the columns in turn, and how often each occurs."""
    span = 1
    for size in sizes:
        span *= max(size, 1)
    if span < 2**62:
        key = np.zeros(len(columns[0]), dtype=np.int64)
        for column, size in zip(columns, sizes, strict=True):
            key *= size
            key += column
        found, counts = distinct_counts(key, span)
        del key  # as large as the table
        parts = []
        for size in reversed(sizes):
            found, part = np.divmod(found, size)
            parts.append(part)
        return parts[::-1], counts.astype(np.int64)
    order = np.lexsort(list(columns)[::-1])
    ordered = [column[order] for column in columns]
    changes = np.any([np.diff(column) != 0 for column in ordered], axis=0)
    first = np.flatnonzero(np.append(True, changes))
    counts = np.diff(np.append(first, len(order)))
    return [column[first].astype(np.int64) for column in ordered], counts.astype(np.int64)
