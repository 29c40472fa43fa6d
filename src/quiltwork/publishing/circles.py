"""Who knows a person: the providers that hold any of their records, anywhere in the table."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

Ints = NDArray[np.int64]
Sets = tuple[tuple[int, ...], ...]


def circles(subject: Ints, provider: Ints, providers: int) -> tuple[Ints, Sets]:
    """Return, for each row, who knows its person, and the sets of several providers.

    A number below `providers` is that provider alone; above, it counts through the sets.
    """
    people = int(subject.max()) + 1
    (person, owner), _ = distinct_rows([subject, provider], [people, providers])
    ids, sets = set_ids(person, owner, people, providers)
    return ids[subject], sets


def set_ids(owner: Ints, member: Ints, owners: int, members: int) -> tuple[Ints, Sets]:
    """Give each owner the number of their set of members: the member if there is one only.

    `owner` is sorted, and `member` is within each owner.
    """
    bounds = np.searchsorted(owner, np.arange(owners + 1))
    ids = member[np.minimum(bounds[:-1], len(member) - 1)].copy()
    known: dict[tuple[int, ...], int] = {}
    for i in np.flatnonzero(np.diff(bounds) > 1).tolist():
        several = tuple(member[bounds[i] : bounds[i + 1]].tolist())
        ids[i] = members + known.setdefault(several, len(known))
    return ids, tuple(known)


def distinct_rows(columns: Sequence[Ints], sizes: Sequence[int]) -> tuple[list[Ints], Ints]:
    """Return the distinct rows, sorted by the columns in turn, and how often each occurs."""
    span = 1
    for size in sizes:
        span *= max(size, 1)
    if span < 2**62:
        key = np.zeros(len(columns[0]), dtype=np.int64)
        for column, size in zip(columns, sizes, strict=True):
            key = key * size + column
        found, counts = np.unique(key, return_counts=True)
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
    return [column[first] for column in ordered], counts.astype(np.int64)
