"""Counting distinct numbers and rows, ragged sets of numbers, and which providers know a person.

Two ways to count: a table of counts (`numpy.bincount`), or a sort where the table would be larger.
Measured, both cost the same at about two cells per number; `numpy.unique` without counts takes
several times as long.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

Ints = NDArray[np.int64]

_SMALL = 1024  # a table of so many cells is cheap whatever is counted


def bincount_is_cheaper(cells: int, numbers: int) -> bool:
    """Return whether a table of `cells` counts costs less than sorting so many numbers."""
    return cells <= 2 * numbers + _SMALL


def distinct_counts(numbers: Ints, cells: int) -> tuple[Ints, Ints]:
    """Return the distinct numbers of 0..cells−1, ascending, and how often each occurs.

    >>> [column.tolist() for column in distinct_counts(np.array([7, 2, 7]), 10)]
    [[2, 7], [1, 2]]
    """
    if not bincount_is_cheaper(cells, len(numbers)):
        return np.unique(numbers, return_counts=True)
    counts = np.bincount(numbers, minlength=cells)
    values = np.flatnonzero(counts)
    return values, counts[values]


@dataclass(frozen=True, eq=False)
class NumberSets:
    """Several sets of numbers in one array (a ragged array).

    Attributes:
        start: where each set begins in `members`; one entry more than there are sets.
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
        """The number of members of each set."""
        return np.diff(self.start)

    def spread(self, indices: Ints) -> tuple[Ints, Ints]:
        """Return (position in `indices`, member) for every member of the sets at `indices`."""
        sizes = self.sizes[indices]
        return np.repeat(np.arange(len(indices)), sizes), self.members[
            concatenated_ranges(self.start[indices], sizes)
        ]

    def take(self, indices: Ints) -> NumberSets:
        """Return the sets at `indices`."""
        start = np.append(0, np.cumsum(self.sizes[indices]))
        return NumberSets(start, self.spread(indices)[1])


def concatenated_ranges(starts: Ints, sizes: Ints) -> Ints:
    """Concatenate the ranges starts[i], …, starts[i] + sizes[i] − 1."""
    offset = np.repeat(starts - starts_of(sizes), sizes)
    return offset + np.arange(len(offset))


def starts_of(sizes: Ints) -> Ints:
    """Return where runs of the given sizes begin: the exclusive prefix sum."""
    starts = np.zeros(len(sizes), dtype=np.int64)
    np.cumsum(sizes[:-1], out=starts[1:])
    return starts


NO_SETS = NumberSets(np.zeros(1, dtype=np.int64), np.zeros(0, dtype=np.int64))
ONE_EMPTY_SET = NumberSets(np.zeros(2, dtype=np.int64), np.zeros(0, dtype=np.int64))


def knowing_providers(subject: Ints, provider: Ints, providers: int) -> tuple[Ints, NumberSets]:
    """Return, for each row, the code of the providers that know its person, and sets of providers.

    A code below `providers` is that provider alone; a higher one numbers the sets of several.
    """
    people = int(subject.max()) + 1
    (person, owner), _ = distinct_rows([subject, provider], [people, providers])
    ids, sets = set_ids(person, owner, people, providers)
    return ids[subject], sets


def set_ids(owner: Ints, member: Ints, owners: int, members: int) -> tuple[Ints, NumberSets]:
    """Number each owner's set of members: single members by themselves, sets from `members` on.

    `owner` is sorted, and `member` is sorted within each owner. Owners without members are allowed.
    """
    bounds = np.searchsorted(owner, np.arange(owners + 1))
    sizes = np.diff(bounds)
    ids = np.zeros(owners, dtype=np.int64)
    ids[sizes == 1] = member[bounds[:-1][sizes == 1]]
    sets, lengths = [NO_SETS.members], [NO_SETS.members]
    # Sets of one size form a matrix, so that distinct sets are distinct rows.
    for size in np.unique(sizes[sizes != 1]).tolist():
        owners_of_size = np.flatnonzero(sizes == size)
        rows = member[bounds[owners_of_size][:, None] + np.arange(size)]
        distinct, inverse = rows[:1], np.zeros(len(owners_of_size), dtype=np.int64)
        if size:
            distinct, inverse = np.unique(rows, axis=0, return_inverse=True)
        ids[owners_of_size] = members + sum(map(len, lengths)) + inverse.reshape(-1)
        sets.append(distinct.reshape(-1))
        lengths.append(np.full(len(distinct), size, dtype=np.int64))
    start = np.concatenate([[0], np.cumsum(np.concatenate(lengths))]).astype(np.int64)
    return ids, NumberSets(start, np.concatenate(sets))


def distinct_rows(
    columns: Sequence[NDArray[np.integer[Any]]], sizes: Sequence[int]
) -> tuple[list[Ints], Ints]:
    """Return the distinct rows in lexicographic order, and how often each occurs."""
    span = 1  # rows become one integer each as long as these fit 64 bits
    for size in sizes:
        span *= max(size, 1)
    if span < 2**62:
        key = np.zeros(len(columns[0]), dtype=np.int64)
        for column, size in zip(columns, sizes, strict=True):
            key *= size
            key += column
        keys, counts = distinct_counts(key, span)
        del key  # it is as large as the table
        parts = []
        for size in reversed(sizes):
            keys, part = np.divmod(keys, size)
            parts.append(part)
        return parts[::-1], counts.astype(np.int64)
    # The keys would overflow: sort by columns instead, which is slower.
    order = np.lexsort(list(columns)[::-1])
    ordered = [column[order] for column in columns]
    changes = np.any([np.diff(column) != 0 for column in ordered], axis=0)
    first = np.flatnonzero(np.append(True, changes))
    counts = np.diff(np.append(first, len(order)))
    return [column[first].astype(np.int64) for column in ordered], counts.astype(np.int64)
