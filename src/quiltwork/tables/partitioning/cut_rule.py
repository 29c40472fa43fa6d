"""Mondrian's rule: along which quasi-identifier a node is cut, and where, from counts alone.

The widest quasi-identifier first, at the most balanced place. The rule takes counts per code,
whoever made them: passes over the rows of a level (`nodes`), or workers whose sums reach the
driver (`spark.tree`). Under a hierarchy widths are those of labels, and cuts lie between them.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
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

    def widths(self, low: NDArray[Any], high: NDArray[Any]) -> Reals:
        """Return quasi-identifier × node: the share of the whole that codes low..high span."""
        extents = [at[b] - at[a] for at, a, b in zip(self.places, low, high, strict=True)]
        for axis, blocks in enumerate(self.trees):
            if blocks is not None:
                extents[axis] = _label_widths(blocks, low[axis], high[axis])
        return np.stack(extents)

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
    common = (blocks[:, low] == blocks[:, high]).argmax(axis=0)
    level: Counts = np.maximum(common - 1, 0)
    return level


def _label_widths(blocks: Counts, low: NDArray[Any], high: NDArray[Any]) -> Reals:
    """Return the share of the other values that the lowest common label covers."""
    level = (blocks[:, low] == blocks[:, high]).argmax(axis=0)
    inside = np.stack([np.bincount(row)[row] for row in blocks])
    widths: Reals = (inside[level, low] - 1) / max(1, blocks.shape[1] - 1)
    return widths
