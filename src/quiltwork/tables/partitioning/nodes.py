"""Nodes of a partition: runs of row numbers, handled many at a time.

Nothing here loops over nodes: a level of the tree costs a fixed number of passes over its rows.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from quiltwork.tables.partitioning.cut_rule import Counts, Flags
from quiltwork.tables.partitioning.records import Records, RowNumbers


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
        return Nodes(self.rows[runs(self.starts[index], sizes)], starts_of(sizes))

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


def runs(starts: Counts, sizes: Counts) -> Counts:
    """Return the numbers starts[i], …, starts[i]+sizes[i]−1 for each i in turn."""
    offset = np.repeat(starts - starts_of(sizes), sizes)
    return offset + np.arange(len(offset))


def starts_of(sizes: Counts) -> Counts:
    """Return where runs of these sizes begin."""
    starts = np.zeros(len(sizes), dtype=np.int64)
    np.cumsum(sizes[:-1], out=starts[1:])
    return starts


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


def bounds(records: Records, nodes: Nodes) -> tuple[NDArray[Any], NDArray[Any]]:
    """Return the least and largest code of each quasi-identifier in each node."""
    codes = records.codes
    low = np.empty((len(codes), nodes.count), dtype=codes.dtype)
    high = np.empty_like(low)
    for place, column in enumerate(codes):
        taken = column[nodes.rows]
        np.minimum.reduceat(taken, nodes.starts, out=low[place])
        np.maximum.reduceat(taken, nodes.starts, out=high[place])
    return low, high
