"""What providers learn by taking their own records out of published groups.

A coalition that leaves other people of one value only knows that value for certain. To leave only v
in a group it must have everyone there who provided anything else, and leave out someone who
provided v alone; so the smallest such coalition is known for every group and value without trying
any, and with it whose values some coalition of each size learns. A single provider's guess of the
others is the most common value of what is left.
Cost: one sort of the rows, and O(pairs of group and provider × values).
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from quiltwork.results import ResultBase
from quiltwork.tables.codes.group import SparseCounts, by_value, count_records
from quiltwork.tables.table import Table, read_table

_PORTION = 1 << 22  # pairs of group and provider × values that are looked at together

Ints = NDArray[np.int64]


@dataclass(frozen=True)
class SubtractionResult(ResultBase):
    """Whose values coalitions learn by subtraction.

    Attributes:
        providers: how many there are.
        rows: in all.
        told: size of a coalition → records of others whose value some coalition of at most that
            size knows for certain; only the sizes at which it grows. Size 0 are outsiders.
        smallest: the smallest coalition that learns somebody's value; empty if none does, or
            everybody does.
        group: in which it learns most.
        learned: how many records' value it learns there.
        alone: the provider who gains most for guesses.
        by_group: the share of others' records that the groups' most common values hit.
        reached: the share that this provider hits without their own records.
    """

    providers: int
    rows: int
    told: Mapping[int, int]
    smallest: tuple[Any, ...]
    group: tuple[Any, ...]
    learned: int
    alone: Any
    by_group: float
    reached: float

    def certain(self, size: int) -> int:
        """Return how many records' value some coalition of at most this size knows."""
        return max((number for at, number in self.told.items() if at <= size), default=0)


def subtraction(table: Table) -> SubtractionResult | None:
    """Take coalitions' own records out of every group, for a table that names its providers.

    None where there is one provider only, or people may be known to several.

    Raises:
        InvalidInputError: if there is no Table.

    >>> import pandas
    >>> frame = pandas.DataFrame({
    ...     "who": [*"aabc"], "age": "20..30", "ill": ["flu", "cold", "flu", "gout"]})
    >>> found = subtraction(Table(frame, "who", ["age"], "ill"))
    >>> found.told, found.smallest  # each two know what the third has, if that is one value
    ({2: 2}, ('a', 'c'))
    """
    encoded, groups = read_table(table).encoded, table.groups
    providers, values = len(encoded.providers), len(encoded.sensitive_values)
    if providers == 1 or encoded.subject is not None:
        return None
    columns = groups.labels, encoded.provider, encoded.sensitive
    counts = count_records(columns, (groups.count, providers, values))
    pair = counts.group * providers + counts.who
    first = np.flatnonzero(np.diff(pair, prepend=-1))
    held = np.diff(np.append(first, len(pair)))  # the values of each pair of group and provider
    only = first[held == 1]
    cell = counts.group[only] * values + counts.kind[only]
    cells, place, alike = np.unique(cell, return_inverse=True, return_counts=True)
    told = np.bincount(place, counts.weight[only], len(cells)).astype(np.int64)
    needed = counts.inside[cells // values] - alike
    steps, at = np.unique(needed, return_inverse=True)
    grown = np.cumsum(np.bincount(at, told)).astype(np.int64)
    who, by_group, reached = _alone(counts, first)
    return SubtractionResult(
        providers,
        encoded.rows,
        dict(zip(steps.tolist(), grown.tolist(), strict=True)),
        *_smallest(table, cells, needed, told, counts),
        encoded.providers[who],
        by_group,
        reached,
    )


def _smallest(
    table: Table, cells: Ints, needed: Ints, told: Ints, counts: SparseCounts
) -> tuple[tuple[Any, ...], tuple[Any, ...], int]:
    """Name the smallest coalition that learns something, and of these who learns most."""
    if not len(cells):
        return (), (), 0
    least = int(needed.min())
    best = int(np.argmax(np.where(needed == least, told, -1)))
    place, kept = divmod(int(cells[best]), counts.values)
    others = np.unique(counts.who[(counts.group == place) & (counts.kind != kept)]).tolist()
    names = tuple(table.encoded.providers[who] for who in others)
    return names, table.group_values(place), int(told[best])


def _alone(counts: SparseCounts, first: Ints) -> tuple[int, float, float]:
    """Return who guesses others best without their own records, and how often before and after.

    `first` is where the entries of each pair of group and provider begin.
    """
    group, owner, value, records = counts.group, counts.who, counts.kind, counts.weight
    whole = by_value(counts)
    common = whole.argmax(axis=1)
    top = whole[np.arange(len(whole)), common]
    own = np.bincount(owner, weights=records, minlength=counts.providers)
    before, gained = np.full(len(own), float(top.sum())), np.zeros(len(own))
    pair_of = np.repeat(np.arange(len(first)), np.diff(np.append(first, len(group))))
    step = max(1, _PORTION // counts.values)
    for start in range(0, len(first), step):
        some = slice(first[start], first[start + step] if start + step < len(first) else None)
        left = whole[group[first[start : start + step]]]
        np.subtract.at(left, (pair_of[some] - start, value[some]), records[some])
        at, who = group[first[start : start + step]], owner[first[start : start + step]]
        kept = left[np.arange(len(left)), common[at]]
        np.add.at(before, who, kept - top[at])
        np.add.at(gained, who, left.max(axis=1) - kept)
    others = np.maximum(records.sum() - own, 1)
    best = int(np.argmax(gained / others))
    return best, float(before[best] / others[best]), float((before + gained)[best] / others[best])
