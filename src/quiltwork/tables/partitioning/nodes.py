"""Nodes of a partition as runs of row numbers, and their halves; many nodes are cut at a time.

`coded_records` chooses the cuts. Counts of many nodes are one histogram over (node, code). Nothing
here loops over nodes: a level of the tree costs a fixed number of passes over its rows.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from quiltwork.tables.codes.distinct import concatenated_ranges, distinct_counts, starts_of
from quiltwork.tables.partitioning.coded_records import (
    CodedRecords,
    Counts,
    Flags,
    RowNumbers,
    below_common_label,
    last_on_left,
)


@dataclass(frozen=True, eq=False)
class Nodes:
    """Several nodes: node i has the rows rows[starts[i]:starts[i+1]]."""

    rows: RowNumbers
    starts: Counts

    @property
    def count(self) -> int:
        """The number of nodes."""
        return len(self.starts)

    @cached_property
    def sizes(self) -> Counts:
        """The number of rows of each node."""
        sizes = np.empty(len(self.starts), dtype=np.int64)
        if len(sizes):
            np.subtract(self.starts[1:], self.starts[:-1], out=sizes[:-1])
            sizes[-1] = len(self.rows) - self.starts[-1]
        return sizes

    def select(self, wanted: NDArray[Any]) -> Nodes:
        """Return some of the nodes, given by flags or by indices in order."""
        index = np.flatnonzero(wanted) if wanted.dtype == bool else wanted
        # All nodes, in order: nothing to copy.
        if len(index) == self.count:
            return self
        sizes = self.sizes[index]
        return Nodes(self.rows[concatenated_ranges(self.starts[index], sizes)], starts_of(sizes))

    def node_of_row(self) -> Counts:
        """Return the node of each row, in order."""
        return np.repeat(np.arange(self.count), self.sizes)

    def portions(self, most: int) -> Iterator[Nodes]:
        """Yield the nodes in portions of about `most` rows, several small ones together."""
        portion_of = np.cumsum(self.sizes) // most
        for number in np.unique(portion_of).tolist():
            yield self.select(portion_of == number)


@dataclass(frozen=True, eq=False)
class Halves:
    """Nodes whose rows are ordered so that the left child comes first.

    Attributes:
        nodes: the parents, with rows reordered.
        left: the number of rows of each left child; 0 or all of them if there is no cut.
    """

    nodes: Nodes
    left: Counts

    def children(self) -> Nodes:
        """Return left and right children in turn; nodes without a cut must have been removed."""
        starts = np.stack((self.nodes.starts, self.nodes.starts + self.left), axis=1)
        return Nodes(self.nodes.rows, starts.ravel())

    def select(self, wanted: NDArray[Any]) -> Halves:
        """Return some of the nodes."""
        return Halves(self.nodes.select(wanted), self.left[wanted])


def concatenate(parts: list[Nodes]) -> Nodes:
    """Concatenate lists of nodes."""
    if len(parts) == 1:
        return parts[0]
    sizes = [part.sizes for part in parts]
    return Nodes(np.concatenate([p.rows for p in parts]), starts_of(np.concatenate(sizes)))


def halve(nodes: Nodes, goes_left: Flags) -> Halves:
    """Order each node's rows so that those that go left come first; the sort is stable."""
    left = np.add.reduceat(goes_left, nodes.starts, dtype=np.int64)
    lengths = np.stack((left, nodes.sizes - left), axis=1).ravel()
    # One pass of boolean masks instead of a sort.
    first = np.repeat(np.tile([True, False], nodes.count), lengths)
    rows = np.empty_like(nodes.rows)
    rows[first] = nodes.rows[goes_left]
    rows[~first] = nodes.rows[~goes_left]
    return Halves(Nodes(rows, nodes.starts), left)


def bounds(records: CodedRecords, nodes: Nodes) -> tuple[NDArray[Any], NDArray[Any]]:
    """Return the least and largest code of each quasi-identifier in each node."""
    codes = records.codes
    low = np.empty((len(codes), nodes.count), dtype=codes.dtype)
    high = np.empty_like(low)
    for axis, column in enumerate(codes):
        of_rows = column[nodes.rows]
        np.minimum.reduceat(of_rows, nodes.starts, out=low[axis])
        np.maximum.reduceat(of_rows, nodes.starts, out=high[axis])
    return low, high


def halve_along_axis(
    records: CodedRecords,
    nodes: Nodes,
    axis: Counts,
    low: NDArray[Any],
    high: NDArray[Any],
    relaxed: bool = False,
) -> Halves:
    """Cut each node along its own quasi-identifier `axis`, whose codes range from low to high.

    Relaxed: exactly in the middle, with records of the middle code on both sides, in their order.
    """
    sizes = nodes.sizes
    codes = records.codes[np.repeat(axis, sizes), nodes.rows]
    # Ties are split by order; `recipe.by_content` makes that order independent of the file.
    if relaxed:
        order = np.lexsort((codes, nodes.node_of_row()))
        return Halves(Nodes(nodes.rows[order], nodes.starts), sizes // 2)
    for number, blocks in enumerate(records.axes.trees):
        if blocks is not None and (axis == number).any():
            codes, low, high = _in_blocks(blocks, axis == number, sizes, codes, low, high)
    cut = _balanced_cut(codes, nodes, low, high)
    return halve(nodes, codes <= np.repeat(cut, sizes))


def halve_by_provider(records: CodedRecords, nodes: Nodes) -> tuple[Flags, Halves]:
    """Return which nodes have several providers, and these nodes cut between two, about in half."""
    codes = records.provider[nodes.rows]
    low = np.minimum.reduceat(codes, nodes.starts)
    high = np.maximum.reduceat(codes, nodes.starts)
    has_several = low < high
    selected, codes = nodes.select(has_several), codes[np.repeat(has_several, nodes.sizes)]
    cut = _balanced_cut(codes, selected, low[has_several], high[has_several])
    return has_several, halve(selected, codes <= np.repeat(cut, selected.sizes))


def _in_blocks(
    blocks: Counts,
    in_tree: Flags,
    sizes: Counts,
    codes: NDArray[Any],
    low: NDArray[Any],
    high: NDArray[Any],
) -> tuple[NDArray[Any], NDArray[Any], NDArray[Any]]:
    """Replace codes by the blocks directly below the node's lowest common label, where `here`.

    `codes` has one entry for each row, node after node; low and high have one for each node.
    """
    level = np.zeros(len(low), dtype=np.int64)
    level[in_tree] = below_common_label(blocks, low[in_tree], high[in_tree])
    rows = np.repeat(in_tree, sizes)
    codes, low, high = (array.astype(np.int64) for array in (codes, low, high))
    codes[rows] = blocks[np.repeat(level, sizes)[rows], codes[rows]]
    low[in_tree], high[in_tree] = (
        blocks[level[in_tree], low[in_tree]],
        blocks[level[in_tree], high[in_tree]],
    )
    return codes, low, high


def _balanced_cut(
    codes: NDArray[Any], nodes: Nodes, low: NDArray[Any], high: NDArray[Any]
) -> Counts:
    """Return the last code on the left of each node's most balanced cut (low < high)."""
    first = low.astype(np.int64)
    spans = high.astype(np.int64) - first + 1
    begin = starts_of(spans)  # code c of node i is in bin begin[i] − first[i] + c
    numbers = np.repeat(begin - first, nodes.sizes) + codes
    bins, histogram = distinct_counts(numbers, int(spans.sum()))
    cut: Counts = first + bins[last_on_left(histogram, nodes.starts, nodes.sizes)] - begin
    return cut
