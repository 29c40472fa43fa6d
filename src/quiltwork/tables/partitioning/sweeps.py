"""Mondrian's rule for one large node, from counts that are added up piece by piece.

The widest quasi-identifier, the most balanced cut, and whether both sides are m-private follow from
counts per code and per provider and sensitive value; so nothing as long as the node is made but its
two halves. Cost: O(rows · quasi-identifiers) time for each cut.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

from quiltwork.tables.constraints.k_anonymity import KAnonymity
from quiltwork.tables.constraints.l_diversity import LDiversity
from quiltwork.tables.group import Group
from quiltwork.tables.partitioning.axes import Axes
from quiltwork.tables.partitioning.cuts import balanced_last
from quiltwork.tables.partitioning.guards import CountingGuard
from quiltwork.tables.partitioning.nodes import Nodes, starts_of
from quiltwork.tables.partitioning.records import Records
from quiltwork.tables.verification import group_is_private

_PART = 1 << 16
_MOST_CELLS = 1 << 22

Counts = NDArray[np.int64]
Numbers: TypeAlias = NDArray[np.integer[Any]]
Cut: TypeAlias = Callable[[Records, Numbers, CountingGuard], tuple[Numbers, Numbers] | None]
"""Divides the rows of one node, or finds that nothing does."""


def countable(records: Records) -> bool:
    """Tell whether providers and sensitive values have few enough combinations."""
    return records.providers * records.values <= _MOST_CELLS


def pieces(
    records: Records, nodes: Nodes, guard: CountingGuard, most: int, cut: Cut
) -> Iterator[Numbers]:
    """Cut nodes of more than `most` rows as long as `cut` finds how; give each piece's rows."""
    pending: list[Numbers] = []
    pending += reversed(np.split(nodes.rows, nodes.starts[1:]))
    while pending:
        rows = pending.pop()
        children = cut(records, rows, guard) if len(rows) > most else None
        if children is None:
            yield rows
        else:
            pending += children[::-1]


def portions(parts: Iterator[Numbers], most: int) -> Iterator[Nodes]:
    """Put pieces together as nodes, with at most so many rows at a time where pieces allow it."""
    taken: list[Numbers] = []
    for rows in parts:
        if taken and sum(map(len, taken)) + len(rows) > most:
            yield side_by_side(taken)
            taken = []
        taken.append(rows)
    if taken:
        yield side_by_side(taken)


def side_by_side(parts: Sequence[Numbers]) -> Nodes:
    """Return pieces as the nodes they are."""
    return Nodes(np.concatenate(parts), starts_of(np.array([len(rows) for rows in parts])))


def halves(records: Records, rows: Numbers, guard: CountingGuard) -> tuple[Numbers, Numbers] | None:
    """Cut a node along the widest quasi-identifier that leaves two private sides, if one does.

    Rows keep their order on both sides.
    """
    pairs = zip(records.codes, records.places, strict=True)
    counts = [_counted(column, rows, len(place)) for column, place in pairs]
    whole = _holdings(records, _parts(rows))
    axes = Axes(records.places, records.trees or (None,) * len(counts))
    for axis in axes.widest(counts):
        last = axes.last(axis, counts[axis])
        found = _cut(records, rows, records.codes[axis], last, whole, guard)
        if found is not None:
            return found
    return None


def halves_by_provider(
    records: Records, rows: Numbers, guard: CountingGuard
) -> tuple[Numbers, Numbers] | None:
    """Cut a node between two providers, in their order, if that leaves two private sides."""
    whole = _holdings(records, _parts(rows))
    counts = whole.sum(axis=1)
    if np.count_nonzero(counts) < 2:
        return None
    return _cut(records, rows, records.provider, balanced_last(counts), whole, guard)


def _cut(
    records: Records,
    rows: Numbers,
    column: Numbers,
    last: int,
    whole: Counts,
    guard: CountingGuard,
) -> tuple[Numbers, Numbers] | None:
    """Cut after a code, if both sides are private."""
    low = np.concatenate([column[part] <= last for part in _parts(rows)])
    left = rows[low]
    if min(len(left), len(rows) - len(left)) < guard.smallest:
        return None
    held = _holdings(records, _parts(left))
    if _private(held, guard) and _private(whole - held, guard):
        return left, rows[~low]
    return None


def _parts(rows: Numbers) -> Iterator[Numbers]:
    for start in range(0, len(rows), _PART):
        yield rows[start : start + _PART]


def _counted(column: Numbers, rows: Numbers, codes: int) -> Counts:
    total = np.zeros(codes, dtype=np.int64)
    for part in _parts(rows):
        total += np.bincount(column[part], minlength=codes)
    return total


def _holdings(records: Records, parts: Iterator[Numbers]) -> Counts:
    """Count records by provider and sensitive value."""
    total = np.zeros(records.providers * records.values, dtype=np.int64)
    for part in parts:
        cell = records.provider[part].astype(np.int64) * records.values + records.sensitive[part]
        total += np.bincount(cell, minlength=len(total))
    return total.reshape(records.providers, records.values)


def _private(holdings: Counts, guard: CountingGuard) -> bool:
    asked = KAnonymity(guard.k) & LDiversity(guard.l)
    return group_is_private(Group.from_counts(holdings.tolist()), asked, guard.m)
