"""How often each sensitive value occurs in each group: what every privacy model is computed from.

Only pairs (group, value) that occur are kept, so that a column of many values costs no more than
its rows. Cost: one sort of the rows, or one pass where groups × values fit in a small array.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from quiltwork.tables.counting import counted
from quiltwork.tables.encoding import group_rows

if TYPE_CHECKING:
    from quiltwork.tables.table import Table


@dataclass(frozen=True, eq=False)
class ValueCounts:
    """Records per group and sensitive value, for the pairs that occur, by group and then value.

    Attributes:
        group: the group of each pair.
        value: the code of the value of each pair.
        records: how many records have both.
        sizes: the records of each group.
        values: how many values the column has.
        totals: the records of each value in the whole table, where they are not the sums over
            groups: a person in two groups counts once in the whole.
    """

    group: NDArray[np.int64]
    value: NDArray[np.int64]
    records: NDArray[np.int64]
    sizes: NDArray[np.int64]
    values: int
    totals: NDArray[np.int64] | None = None

    @cached_property
    def starts(self) -> NDArray[np.int64]:
        """Where the pairs of each group start."""
        return np.searchsorted(self.group, np.arange(len(self.sizes)))

    @cached_property
    def shares(self) -> NDArray[np.float64]:
        """The share of each pair's value within its group."""
        return np.asarray(self.records / self.sizes[self.group], dtype=np.float64)

    @cached_property
    def overall(self) -> NDArray[np.float64]:
        """The share of every value in the whole table."""
        totals = self.totals
        if totals is None:
            totals = np.bincount(self.value, weights=self.records, minlength=self.values)
        return np.asarray(totals / totals.sum(), dtype=np.float64)


def people_counts(
    labels: NDArray[np.int64],
    codes: NDArray[np.integer[Any]],
    subject: NDArray[np.integer[Any]],
    groups: int,
    values: int,
) -> ValueCounts:
    """Count people instead of records: each once for every value that they have in a group.

    >>> labels, codes = np.zeros(3, dtype=np.int64), np.array([1, 1, 0])
    >>> people_counts(labels, codes, np.array([7, 7, 7]), 1, 2).records.tolist()
    [1, 1]
    """
    persons = int(subject.max()) + 1
    once = group_rows([labels, codes, subject], [groups, values, persons]).first
    counted = value_counts(labels[once], codes[once], groups, values)
    overall = group_rows([codes, subject], [values, persons]).first
    return replace(counted, totals=np.bincount(codes[overall], minlength=values))


def people_per_group(table: Table) -> NDArray[np.int64]:
    """Return how many different people each group holds: records, if no subjects are named."""
    groups, subject = table.groups, table.encoded.subject
    if subject is None:
        return np.bincount(groups.labels, minlength=groups.count)
    once = group_rows([groups.labels, subject], [groups.count, int(subject.max()) + 1]).first
    return np.bincount(groups.labels[once], minlength=groups.count)


def value_counts(
    labels: NDArray[np.int64], codes: NDArray[np.integer[Any]], groups: int, values: int
) -> ValueCounts:
    """Count the pairs of group and value that occur.

    >>> counted = value_counts(np.array([0, 0, 1]), np.array([2, 2, 0], dtype=np.int32), 2, 3)
    >>> counted.records.tolist(), counted.overall.round(2).tolist()
    ([2, 1], [0.33, 0.0, 0.67])
    """
    keys = labels.astype(np.int64) * values + codes
    found, records = counted(keys, groups * values)
    sizes = np.bincount(labels, minlength=groups)
    return ValueCounts(found // values, found % values, records, sizes, values)
