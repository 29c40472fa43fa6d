"""Subtraction: what providers learn by removing their own records from published groups.

A coalition that leaves records of one value only knows that value for certain. To leave only value
v in a group, it must contain everyone there who provided anything else, and leave out someone who
provided v alone. So the smallest such coalition is known for every group and value without trying
any, and with it the values that some coalition of each size learns. A single provider's guess of
the others is the most common value of what is left. Cost: one sort of the rows, and O(pairs of
group and provider × values).
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from quiltwork.results import ResultBase
from quiltwork.tables.codes.group import SparseCounts, by_value, count_records
from quiltwork.tables.table import Table, as_table

_PORTION = 1 << 22  # pairs of group and provider × values, evaluated together to bound memory

Ints = NDArray[np.int64]


@dataclass(frozen=True)
class SubtractionResult(ResultBase):
    """The values that coalitions learn by subtraction.

    Attributes:
        providers: the number of providers.
        rows: the number of rows.
        told: size of a coalition → records of others whose value some coalition of at most that
            size knows for certain; only sizes at which the number grows. Size 0 are outsiders.
        smallest: the smallest coalition that learns somebody's value; empty if none does, or
            everybody.
        group: the group in which it learns most.
        learned: the number of records whose value it learns there.
        alone: the provider whose guesses gain most.
        by_group: the share of others' records with the most common value of their group.
        reached: the share that this provider guesses right after removing its own records.
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
        """Return the number of records whose value some coalition of at most this size knows."""
        return max((number for at, number in self.told.items() if at <= size), default=0)


def subtraction(table: Table) -> SubtractionResult | None:
    """Remove coalitions' own records from every group of a table that names its providers.

    Returns None if there is only one provider, or people may be known to several.

    Raises:
        InvalidInputError: if the argument is not a Table.

    >>> import pandas
    >>> frame = pandas.DataFrame({
    ...     "who": [*"aabc"], "age": "20..30", "ill": ["flu", "cold", "flu", "gout"]})
    >>> result = subtraction(Table(frame, "who", ["age"], "ill"))
    >>> result.told, result.smallest  # two providers know what the third has, if it is one value
    ({2: 2}, ('a', 'c'))
    """
    encoded, groups = as_table(table).encoded, table.groups
    providers, values = len(encoded.providers), len(encoded.sensitive_values)
    # Nobody to subtract, or people of several providers, whose removal is not by record.
    if providers == 1 or encoded.subject is not None:
        return None
    columns = groups.labels, encoded.provider, encoded.sensitive
    counts = count_records(columns, (groups.count, providers, values))
    pair = counts.group * providers + counts.who
    first = np.flatnonzero(np.diff(pair, prepend=-1))
    value_counts = np.diff(
        np.append(first, len(pair))
    )  # the values of each pair of group and provider
    single_valued = first[value_counts == 1]
    cell = counts.group[single_valued] * values + counts.kind[single_valued]
    cells, cell_number, providers_of_cell = np.unique(cell, return_inverse=True, return_counts=True)
    revealed = np.bincount(cell_number, counts.weight[single_valued], len(cells)).astype(np.int64)
    needed = counts.inside[cells // values] - providers_of_cell
    steps, step = np.unique(needed, return_inverse=True)
    cumulative = np.cumsum(np.bincount(step, revealed)).astype(np.int64)
    best_guesser, by_group, reached = _alone(counts, first)
    return SubtractionResult(
        providers,
        encoded.rows,
        dict(zip(steps.tolist(), cumulative.tolist(), strict=True)),
        *_smallest(table, cells, needed, revealed, counts),
        encoded.providers[best_guesser],
        by_group,
        reached,
    )


def _smallest(
    table: Table, cells: Ints, needed: Ints, revealed: Ints, counts: SparseCounts
) -> tuple[tuple[Any, ...], tuple[Any, ...], int]:
    """Return the smallest coalition that learns something, the group, and how many values."""
    if not len(cells):
        return (), (), 0
    smallest = int(needed.min())
    best = int(np.argmax(np.where(needed == smallest, revealed, -1)))
    group, value = divmod(int(cells[best]), counts.values)
    members = np.unique(counts.who[(counts.group == group) & (counts.kind != value)]).tolist()
    names = tuple(table.encoded.providers[who] for who in members)
    return names, table.group_values(group), int(revealed[best])


def _alone(counts: SparseCounts, first: Ints) -> tuple[int, float, float]:
    """Return the provider that guesses others best, with its score before and after subtraction.

    `first` is the index at which the entries of each pair of group and provider begin.
    """
    group, owner, value, records = counts.group, counts.who, counts.kind, counts.weight
    histograms = by_value(counts)
    common = histograms.argmax(axis=1)
    top = histograms[np.arange(len(histograms)), common]
    own = np.bincount(owner, weights=records, minlength=counts.providers)
    before, gained = np.full(len(own), float(top.sum())), np.zeros(len(own))
    pair_of = np.repeat(np.arange(len(first)), np.diff(np.append(first, len(group))))
    # The table pair × value can be much larger than the data.
    step = max(1, _PORTION // counts.values)
    for start in range(0, len(first), step):
        entries = slice(first[start], first[start + step] if start + step < len(first) else None)
        remaining = histograms[group[first[start : start + step]]]
        np.subtract.at(remaining, (pair_of[entries] - start, value[entries]), records[entries])
        group_of, provider = group[first[start : start + step]], owner[first[start : start + step]]
        still_common = remaining[np.arange(len(remaining)), common[group_of]]
        np.add.at(before, provider, still_common - top[group_of])
        np.add.at(gained, provider, remaining.max(axis=1) - still_common)
    others = np.maximum(records.sum() - own, 1)
    best = int(np.argmax(gained / others))
    return best, float(before[best] / others[best]), float((before + gained)[best] / others[best])
