"""Nodes of a partition, runs of row numbers, and their halves: many nodes are cut at a time.

`coded_records` says where. Counts of many nodes are one histogram over (node, code). Nothing here
loops over nodes: a level of the tree costs a fixed number of passes over its rows.
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
    """Some nodes: node i has the rows rows[starts[i]:starts[i+1]]."""

    rows: RowNumbers
    starts: Counts

    @property
    def count(self) -> int:
        """How many nodes there are."""
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
        """Return some of the nodes: flags or indices in order."""
        index = np.flatnonzero(wanted) if wanted.dtype == bool else wanted
        if len(index) == self.count:
            return self
        sizes = self.sizes[index]
        return Nodes(self.rows[concatenated_ranges(self.starts[index], sizes)], starts_of(sizes))

    def owners(self) -> Counts:
        """For each row in order, its node."""
        return np.repeat(np.arange(self.count), self.sizes)

    def portions(self, most: int) -> Iterator[Nodes]:
        """Give the nodes in turn, several small ones together, about `most` rows at a time."""
        place = np.cumsum(self.sizes) // most
        for number in np.unique(place).tolist():
            yield self.select(place == number)


@dataclass(frozen=True, eq=False)
class Halves:
    """Nodes whose rows are ordered so that the left child comes first.

    Attributes:
        nodes: the parents, rows reordered.
        left: the number of rows of each left child; 0 or all of them where there is no cut.
    """

    nodes: Nodes
    left: Counts

    def children(self) -> Nodes:
        """Return left and right children in turn; empty ones must have been dropped."""
        starts = np.stack((self.nodes.starts, self.nodes.starts + self.left), axis=1)
        return Nodes(self.nodes.rows, starts.ravel())

    def select(self, wanted: NDArray[Any]) -> Halves:
        """Return some of the nodes."""
        return Halves(self.nodes.select(wanted), self.left[wanted])


def joined(parts: list[Nodes]) -> Nodes:
    """Put lists of nodes one after the other."""
    if len(parts) == 1:
        return parts[0]
    sizes = [part.sizes for part in parts]
    return Nodes(np.concatenate([p.rows for p in parts]), starts_of(np.concatenate(sizes)))


def halve(nodes: Nodes, goes_left: Flags) -> Halves:
    """Order each node's rows so that those that go left come first; stable."""
    left = np.add.reduceat(goes_left, nodes.starts, dtype=np.int64)
    lengths = np.stack((left, nodes.sizes - left), axis=1).ravel()
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
    for place, column in enumerate(codes):
        taken = column[nodes.rows]
        np.minimum.reduceat(taken, nodes.starts, out=low[place])
        np.maximum.reduceat(taken, nodes.starts, out=high[place])
    return low, high


def halved(
    records: CodedRecords,
    nodes: Nodes,
    axis: Counts,
    low: NDArray[Any],
    high: NDArray[Any],
    relaxed: bool = False,
) -> Halves:
    """Cut each node along its own quasi-identifier `axis`, whose codes go from low to high.

    Relaxed: exactly in the middle, records with the middle code going to both sides in their order.
    """
    sizes = nodes.sizes
    codes = records.codes[np.repeat(axis, sizes), nodes.rows]
    if relaxed:
        order = np.lexsort((codes, nodes.owners()))
        return Halves(Nodes(nodes.rows[order], nodes.starts), sizes // 2)
    for number, blocks in enumerate(records.axes.trees):
        if blocks is not None and (axis == number).any():
            codes, low, high = _in_blocks(blocks, axis == number, sizes, codes, low, high)
    cut = _balanced_cut(codes, nodes, low, high)
    return halve(nodes, codes <= np.repeat(cut, sizes))


def halved_by_provider(records: CodedRecords, nodes: Nodes) -> tuple[Flags, Halves]:
    """Tell which nodes have several providers; cut these between two, in their order, in halves."""
    codes = records.provider[nodes.rows]
    low = np.minimum.reduceat(codes, nodes.starts)
    high = np.maximum.reduceat(codes, nodes.starts)
    several = low < high
    some, codes = nodes.select(several), codes[np.repeat(several, nodes.sizes)]
    cut = _balanced_cut(codes, some, low[several], high[several])
    return several, halve(some, codes <= np.repeat(cut, some.sizes))


def _in_blocks(
    blocks: Counts,
    here: Flags,
    sizes: Counts,
    codes: NDArray[Any],
    low: NDArray[Any],
    high: NDArray[Any],
) -> tuple[NDArray[Any], NDArray[Any], NDArray[Any]]:
    """Replace the codes of the nodes `here` by the blocks that their common label is made of.

    `codes` has one entry for each row, nodes after one another; low and high one for each node.
    """
    level = np.zeros(len(low), dtype=np.int64)
    level[here] = below_common_label(blocks, low[here], high[here])
    rows = np.repeat(here, sizes)
    codes, low, high = (array.astype(np.int64) for array in (codes, low, high))
    codes[rows] = blocks[np.repeat(level, sizes)[rows], codes[rows]]
    low[here], high[here] = blocks[level[here], low[here]], blocks[level[here], high[here]]
    return codes, low, high


def _balanced_cut(
    codes: NDArray[Any], nodes: Nodes, low: NDArray[Any], high: NDArray[Any]
) -> Counts:
    """Return the last code of the left side of the most balanced cut, per node (low < high)."""
    first = low.astype(np.int64)
    spans = high.astype(np.int64) - first + 1
    begin = starts_of(spans)  # code c of node i is in bin begin[i] − first[i] + c
    numbers = np.repeat(begin - first, nodes.sizes) + codes
    bins, histogram = distinct_counts(numbers, int(spans.sum()))
    cut: Counts = first + bins[last_on_left(histogram, nodes.starts, nodes.sizes)] - begin
    return cut
