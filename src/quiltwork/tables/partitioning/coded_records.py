"""`CodedRecords`: what the partitioning algorithms see of a table: small integer arrays.

Quasi-identifiers are recoded so that neighbours in code are close to each other: numbers and
declared orders keep theirs, categories without an order come by falling frequency (the common
value is then one end of the range, and rare ones are cut off together).
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from quiltwork.tables.encoding import code_type, group_rows
from quiltwork.tables.partitioning.cut_rule import Axes

if TYPE_CHECKING:
    from quiltwork.tables.encoding import CodedTable, Column

RowNumbers = NDArray[np.int64]
"""Row numbers, the rows of one node next to each other."""


@dataclass(frozen=True, eq=False)
class CodedRecords:
    """Rows to be partitioned.

    Attributes:
        codes: quasi-identifier × row.
        provider: for each row, 0..providers−1.
        providers: how many providers there are.
        sensitive: for each row, 0..values−1.
        values: how many sensitive values there are.
        ids: for each row, its number in the whole table.
        axes: the quasi-identifiers as directions of cuts.
    """

    codes: NDArray[np.integer[Any]]
    provider: NDArray[np.integer[Any]]
    providers: int
    sensitive: NDArray[np.integer[Any]]
    values: int
    ids: NDArray[np.integer[Any]]
    axes: Axes

    @property
    def count(self) -> int:
        """How many rows there are."""
        return len(self.provider)

    @cached_property
    def heaviest(self) -> int:
        """The most records of one provider."""
        return int(np.bincount(self.provider).max(initial=0))

    @cached_property
    def first(self) -> NDArray[np.bool_]:
        """Which rows are the first with their quasi-identifiers and provider. A sort, once."""
        columns = [*self.codes, self.provider]
        sizes = [*map(len, self.axes.places), self.providers]
        found = np.zeros(self.count, dtype=np.bool_)
        found[group_rows(columns, sizes).first] = True
        return found

    def take(self, rows: RowNumbers) -> CodedRecords:
        """Return some of the rows, next to each other in memory."""
        return CodedRecords(
            np.ascontiguousarray(self.codes[:, rows]),
            self.provider[rows],
            self.providers,
            self.sensitive[rows],
            self.values,
            self.ids[rows],
            self.axes,
        )


def records_of(encoded: CodedTable) -> CodedRecords:
    """Recode a table for partitioning. O(rows · quasi-identifiers)."""
    ranks = [
        working_order(column, np.bincount(column.codes, minlength=len(column.values)))
        for column in encoded.quasi
    ]
    kind = code_type(max(len(column.values) for column in encoded.quasi))
    codes = np.empty((len(encoded.quasi), encoded.rows), dtype=kind)
    for row, column, rank in zip(codes, encoded.quasi, ranks, strict=True):
        np.take(rank.astype(kind), column.codes, out=row)
    return CodedRecords(
        codes,
        encoded.provider,
        len(encoded.providers),
        encoded.sensitive,
        len(encoded.sensitive_values),
        np.arange(encoded.rows, dtype=code_type(encoded.rows)),
        Axes(tuple(map(places, encoded.quasi)), tuple(map(_tree, encoded.quasi))),
    )


def is_unordered(column: Column) -> bool:
    """Tell whether groups publish sets of this column's values: no order, no hierarchy."""
    return column.kind == "categorical" and column.hierarchy is None


def _tree(column: Column) -> NDArray[np.int64] | None:
    """Return the blocks of a hierarchy over the values that occur; a missing value is apart."""
    if column.hierarchy is None:
        return None
    known = [value for value in column.values if value is not None]
    leaf = [column.hierarchy.leaf(value) for value in known]
    blocks = column.hierarchy.blocks[:, leaf]
    if len(known) == len(column.values):
        return blocks
    alone = np.full((len(blocks), 1), blocks.max(initial=0) + 1)
    return np.vstack((np.hstack((blocks, alone)), np.zeros((1, len(known) + 1), dtype=np.int64)))


def working_order(column: Column, counts: NDArray[np.int64]) -> NDArray[np.int64]:
    """Return code → working code: categories without an order come by falling frequency."""
    if not is_unordered(column):
        return np.arange(len(counts))
    rank = np.empty(len(counts), dtype=np.int64)
    rank[np.argsort(-counts, kind="stable")] = np.arange(len(counts))
    return rank


def places(column: Column) -> NDArray[np.float64]:
    """Return where each working code lies between the least (0) and the largest (1)."""
    if column.kind == "numeric" and column.hierarchy is None:
        numbers = column.numbers
        known = numbers[~np.isnan(numbers)]
        low, high = (known[0], known[-1]) if len(known) else (0.0, 0.0)
        # A missing value is as far from every number as they can be from each other.
        filled = np.where(np.isnan(numbers), 2 * high - low, numbers) - low
    else:
        filled = np.arange(len(column.values), dtype=np.float64)
    span = float(filled[-1]) if len(filled) else 0.0
    return filled / span if span > 0 else np.zeros(len(filled))
