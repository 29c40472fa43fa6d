"""`CodedRecords`: the table as partitioning algorithms see it, and Mondrian's choice of cuts.

Quasi-identifiers are recoded so that neighbouring codes are similar: numbers and declared orders
keep theirs, categories without an order are sorted by falling frequency (common values are then at
one end of the range, and rare ones are cut off together).

A node is cut along the widest quasi-identifier first, at the most balanced position. The rule takes
counts per code, whoever counted: passes over the rows of a level (`nodes`), or workers whose sums
reach the driver (`spark.tree`). Under a hierarchy, widths are those of labels, and cuts lie between
labels.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from quiltwork.tables.codes.encoding import code_type, group_rows
from quiltwork.tables.codes.hierarchies import block_ends, common_label

if TYPE_CHECKING:
    from quiltwork.tables.codes.encoding import CodedTable, Column


Counts = NDArray[np.int64]
Flags = NDArray[np.bool_]
Reals = NDArray[np.float64]


@dataclass(frozen=True, eq=False)
class Axes:
    """The quasi-identifiers as directions of cuts.

    Attributes:
        positions: for each of them, the position of each code in 0..1, ascending.
        trees: for each of them, level × code: the block of its hierarchy that contains the code;
            None without a hierarchy.
        weights: for each of them, a factor on its width; none: all equal.
    """

    positions: tuple[Reals, ...]
    trees: tuple[Counts | None, ...]
    weights: tuple[float, ...] = ()

    @cached_property
    def ends(self) -> tuple[tuple[Counts, Counts] | None, ...]:
        """Under a hierarchy, level × code: the first and the last code of the code's block."""
        return tuple(None if tree is None else block_ends(tree) for tree in self.trees)

    def widths(self, low: NDArray[Any], high: NDArray[Any]) -> Reals:
        """Return quasi-identifier × node: the share of the range that codes low..high span."""
        ends = zip(low, high, strict=True)
        return np.stack([self.width(axis, *both) for axis, both in enumerate(ends)])

    def width(self, axis: int, low: NDArray[Any], high: NDArray[Any]) -> Reals:
        """Return the width along one quasi-identifier; in a hierarchy, of the lowest label."""
        position, blocks, ends = self.positions[axis], self.trees[axis], self.ends[axis]
        width: Reals = position[high] - position[low]
        if blocks is not None and ends is not None:
            level = common_label(blocks, low, high)
            width = (ends[1][level, low] - ends[0][level, low]) / max(1, len(position) - 1)
        return width * self.weights[axis] if self.weights else width

    def loss(self, axis: int, low: NDArray[Any], high: NDArray[Any]) -> Reals:
        """Return the loss of a record in a box from low to high along one quasi-identifier.

        It is the root of the width. For a label it is its width plus, as several cuts lead to a
        lower label, the share of the labels below it that are touched. Undefined for low > high.
        """
        # Empty sides have low > high; any value will do, as such cuts are excluded later.
        low = np.minimum(low, len(self.positions[axis]) - 1)
        width, blocks, ends = self.width(axis, low, high), self.trees[axis], self.ends[axis]
        if blocks is None or ends is None:
            return np.sqrt(np.maximum(width, 0.0, out=width), out=width)
        level = below_common_label(blocks, low, high)
        touched: Reals = (ends[1][level, high] - ends[0][level, low]) / max(1, blocks.shape[1] - 1)
        return width + touched

    def widest_first(self, low: NDArray[Any], high: NDArray[Any]) -> tuple[Counts, Reals]:
        """Return rank × node, the quasi-identifiers by falling width, and their widths."""
        extent = self.widths(low, high)
        return np.argsort(-extent, axis=0, kind="stable"), extent

    def axes_by_width(self, counts: Sequence[Counts]) -> list[int]:
        """Return the quasi-identifiers in which one node has several values, the widest first."""
        occurring = [np.flatnonzero(of_code) for of_code in counts]
        low, high = (np.array([codes[[end]] for codes in occurring]) for end in (0, -1))
        order, extent = self.widest_first(low, high)
        return [int(axis) for axis in order[:, 0] if extent[axis, 0] > 0]

    def balanced_cut(self, axis: int, counts: Counts) -> int:
        """Return the last code on the left of one node's most balanced cut.

        >>> Axes((np.linspace(0, 1, 3),), (None,)).balanced_cut(0, np.array([2, 3, 1]))
        0
        """
        blocks = np.arange(len(counts))
        tree = self.trees[axis]
        if tree is not None:
            occurring = np.flatnonzero(counts)
            # Cut between the labels below the common one, never inside a label.
            blocks = tree[below_common_label(tree, occurring[:1], occurring[-1:])[0]]
        of_block = np.bincount(blocks, weights=counts).astype(np.int64)
        cut = last_on_left(of_block, np.zeros(1, dtype=np.int64), of_block.sum(keepdims=True))
        return int(np.flatnonzero(blocks <= cut)[-1])


def last_on_left(histogram: Counts, starts: Counts, sizes: Counts) -> Counts:
    """Return the last bin on the left of each node's most balanced cut.

    Of two equally balanced cuts, the one with more records on the left. The histograms of all nodes
    are concatenated: starts[i] records come before node i, which has sizes[i]; nodes have at least
    two bins with records. O(bins + nodes · log bins).
    """
    below = np.cumsum(histogram)
    # the first bin with at least half of the node's records up to it
    middle = np.searchsorted(2 * below, 2 * starts + sizes, side="left")
    up_to = below[middle] - starts
    without = up_to - histogram[middle]
    nearer = (2 * up_to - sizes <= sizes - 2 * without) | (without == 0)
    last: Counts = middle - ~((up_to < sizes) & nearer)
    return last


def below_common_label(blocks: Counts, low: NDArray[Any], high: NDArray[Any]) -> Counts:
    """Return the level below the lowest common label of low..high, at least the level of leaves."""
    level: Counts = np.maximum(common_label(blocks, low, high) - 1, 0)
    return level


RowNumbers = NDArray[np.int64]
"""Row numbers, the rows of one node next to each other."""


@dataclass(frozen=True, eq=False)
class CodedRecords:
    """The rows to be partitioned.

    Attributes:
        codes: quasi-identifier × row.
        provider: for each row, 0..providers−1.
        providers: the number of providers.
        sensitive: for each row, the class of its sensitive value, 0..values−1; `values` for none.
        values: the number of classes.
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
        """The number of rows."""
        return len(self.provider)

    @cached_property
    def heaviest(self) -> int:
        """The number of records of the largest provider."""
        return int(np.bincount(self.provider).max(initial=0))

    @cached_property
    def first(self) -> NDArray[np.bool_]:
        """Which rows are the first with their quasi-identifiers and provider. One sort, cached."""
        columns = [*self.codes, self.provider]
        sizes = [*map(len, self.axes.positions), self.providers]
        is_first = np.zeros(self.count, dtype=np.bool_)
        is_first[group_rows(columns, sizes).first] = True
        return is_first

    def take(self, rows: RowNumbers) -> CodedRecords:
        """Return some of the rows, contiguous in memory."""
        codes, ids = np.ascontiguousarray(self.codes[:, rows]), self.ids[rows]
        owners, secrets = self.provider[rows], self.sensitive[rows]
        return replace(self, codes=codes, provider=owners, sensitive=secrets, ids=ids)


def records_of(encoded: CodedTable) -> CodedRecords:
    """Recode a table for partitioning. O(rows · quasi-identifiers)."""
    ranks = [
        working_order(column, np.bincount(column.codes, minlength=len(column.values)))
        for column in encoded.quasi
    ]
    # One type for all columns, so that codes are one matrix.
    kind = code_type(max(len(column.values) for column in encoded.quasi))
    codes = np.empty((len(encoded.quasi), encoded.rows), dtype=kind)
    for row, column, rank in zip(codes, encoded.quasi, ranks, strict=True):
        np.take(rank.astype(kind), column.codes, out=row)
    return CodedRecords(
        codes,
        encoded.provider,
        len(encoded.providers),
        encoded.row_classes,
        len(encoded.classes),
        np.arange(encoded.rows, dtype=code_type(encoded.rows)),
        Axes(
            tuple(column.positions for column in encoded.quasi),
            tuple(map(_tree, encoded.quasi)),
        ),
    )


def _tree(column: Column) -> NDArray[np.int64] | None:
    """Return the blocks of a hierarchy over the occurring values; a missing value is apart."""
    if column.hierarchy is None:
        return None
    present = [value for value in column.values if value is not None]
    leaf = [column.hierarchy.leaf(value) for value in present]
    blocks = column.hierarchy.blocks[:, leaf]
    if len(present) == len(column.values):
        return blocks
    alone = np.full((len(blocks), 1), blocks.max(initial=0) + 1)
    return np.vstack((np.hstack((blocks, alone)), np.zeros((1, len(present) + 1), dtype=np.int64)))


def working_order(column: Column, counts: NDArray[np.int64]) -> NDArray[np.int64]:
    """Return code → working code: categories without an order are sorted by falling frequency."""
    # Numbers and declared orders keep their order.
    if not column.unordered:
        return np.arange(len(counts))
    return np.argsort(np.argsort(-counts, kind="stable"))
