"""Mondrian's rule: along which quasi-identifier a node is cut, and where, from counts alone.

The widest quasi-identifier first, at the most balanced place. The rule takes counts per code,
whoever made them: passes over the rows of a level (`nodes`), or workers whose sums reach the
driver (`spark.tree`). Under a hierarchy widths are those of labels, and cuts lie between them.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

Counts = NDArray[np.int64]
Flags = NDArray[np.bool_]
Reals = NDArray[np.float64]


@dataclass(frozen=True, eq=False)
class Axes:
    """The quasi-identifiers as directions of cuts.

    Attributes:
        places: for each of them, where each code lies in 0..1; ascending.
        trees: for each of them, level × code: the block of its hierarchy that the code belongs to;
            None without a hierarchy.
    """

    places: tuple[Reals, ...]
    trees: tuple[Counts | None, ...]

    @cached_property
    def ends(self) -> tuple[tuple[Counts, Counts] | None, ...]:
        """Under a hierarchy, level × code: the first and the last code of its block."""
        return tuple(None if tree is None else _block_ends(tree) for tree in self.trees)

    def widths(self, low: NDArray[Any], high: NDArray[Any]) -> Reals:
        """Return quasi-identifier × node: the share of the whole that codes low..high span."""
        ends = zip(low, high, strict=True)
        return np.stack([self.width(axis, *both) for axis, both in enumerate(ends)])

    def width(self, axis: int, low: NDArray[Any], high: NDArray[Any]) -> Reals:
        """Return the same along one quasi-identifier; under a hierarchy, of the lowest label."""
        place, blocks, ends = self.places[axis], self.trees[axis], self.ends[axis]
        width: Reals = place[high] - place[low]
        if blocks is not None and ends is not None:
            level = _common_label(blocks, low, high)
            width = (ends[1][level, low] - ends[0][level, low]) / max(1, len(place) - 1)
        return width

    def lost(self, axis: int, low: NDArray[Any], high: NDArray[Any]) -> Reals:
        """Return what a record loses in a box from low to high along one quasi-identifier.

        The root of the width. Of a label its width and, as it takes several cuts to come to a lower
        one, the share of those below it that are touched. For low > high anything.
        """
        low = np.minimum(low, len(self.places[axis]) - 1)
        width, blocks, ends = self.width(axis, low, high), self.trees[axis], self.ends[axis]
        if blocks is None or ends is None:
            return np.sqrt(np.maximum(width, 0.0, out=width), out=width)
        level = below_common_label(blocks, low, high)
        touched: Reals = (ends[1][level, high] - ends[0][level, low]) / max(1, blocks.shape[1] - 1)
        return width + touched

    def widest_first(self, low: NDArray[Any], high: NDArray[Any]) -> tuple[Counts, Reals]:
        """Return rank × node, the quasi-identifiers by falling width; and their widths."""
        extent = self.widths(low, high)
        return np.argsort(-extent, axis=0, kind="stable"), extent

    def tried(self, counts: Sequence[Counts]) -> list[int]:
        """Return the quasi-identifiers that one node extends in, the widest first."""
        held = [np.flatnonzero(of_code) for of_code in counts]
        low, high = (np.array([codes[[end]] for codes in held]) for end in (0, -1))
        order, extent = self.widest_first(low, high)
        return [int(axis) for axis in order[:, 0] if extent[axis, 0] > 0]

    def last(self, axis: int, counts: Counts) -> int:
        """Return the last code of the left side of one node's most balanced cut.

        >>> Axes((np.linspace(0, 1, 3),), (None,)).last(0, np.array([2, 3, 1]))
        0
        """
        blocks = np.arange(len(counts))
        tree = self.trees[axis]
        if tree is not None:
            held = np.flatnonzero(counts)
            blocks = tree[below_common_label(tree, held[:1], held[-1:])[0]]
        of_block = np.bincount(blocks, weights=counts).astype(np.int64)
        cut = last_on_left(of_block, np.zeros(1, dtype=np.int64), of_block.sum(keepdims=True))
        return int(np.flatnonzero(blocks <= cut)[-1])


def last_on_left(histogram: Counts, starts: Counts, sizes: Counts) -> Counts:
    """Return the last bin of the left side of each node's most balanced cut.

    Of two cuts that are equally balanced, the one with more records on the left. The histograms of
    all nodes are one, one after the other: starts[i] records come before node i, which has
    sizes[i]; nodes have at least two bins with records. O(bins + nodes · log bins).
    """
    below = np.cumsum(histogram)
    # The first bin at which the left side holds at least half of the node.
    middle = np.searchsorted(2 * below, 2 * starts + sizes, side="left")
    up_to = below[middle] - starts
    last: Counts = middle - ~belongs_left(up_to, up_to - histogram[middle], sizes)
    return last


def belongs_left(up_to: Counts, without: Counts, sizes: Counts) -> Flags:
    """Tell whether the middle bin goes left: up_to records are there with it, or fewer without."""
    nearer = (2 * up_to - sizes <= sizes - 2 * without) | (without == 0)
    left: Flags = (up_to < sizes) & nearer
    return left


def below_common_label(blocks: Counts, low: NDArray[Any], high: NDArray[Any]) -> Counts:
    """Return the level below the lowest label that covers low..high; the leaves' at least."""
    level: Counts = np.maximum(_common_label(blocks, low, high) - 1, 0)
    return level


def _common_label(blocks: Counts, low: NDArray[Any], high: NDArray[Any]) -> Counts:
    """Return the level of the lowest label that covers low..high."""
    level: Counts = (blocks[:, low] == blocks[:, high]).argmax(axis=0)
    return level


def _block_ends(blocks: Counts) -> tuple[Counts, Counts]:
    first = np.stack([np.searchsorted(row, row, side="left") for row in blocks])
    last = np.stack([np.searchsorted(row, row, side="right") - 1 for row in blocks])
    return first, last
