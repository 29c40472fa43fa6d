"""`Axes`: where a node is cut, told from its counts alone.

It is the rule of whole levels (`mondrian`, `cuts`) for one node at a time: for nodes too large to
hold in memory at once, on one machine or on many.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from quiltwork.tables.partitioning.cuts import balanced_last, below_common_label
from quiltwork.tables.partitioning.nodes import label_widths

Counts = NDArray[np.int64]


@dataclass(frozen=True, eq=False)
class Axes:
    """The quasi-identifiers as directions of cuts.

    Attributes:
        places: for each of them, where each working code lies in 0..1.
        trees: for each of them, the blocks of its hierarchy by level and code, or None.
    """

    places: tuple[NDArray[np.float64], ...]
    trees: tuple[Counts | None, ...]

    def widest(self, counts: Sequence[Counts]) -> list[int]:
        """Return those that a node extends in, the widest first; `counts` are records per code."""
        extents = [self._extent(axis, np.flatnonzero(count)) for axis, count in enumerate(counts)]
        order = np.argsort(-np.array(extents), kind="stable")
        return [int(axis) for axis in order if extents[axis] > 0]

    def _extent(self, axis: int, held: Counts) -> float:
        tree = self.trees[axis]
        if tree is None:
            return float(self.places[axis][held[-1]] - self.places[axis][held[0]])
        return float(label_widths(tree, held[:1], held[-1:])[0])

    def last(self, axis: int, counts: Counts) -> int:
        """Return the last code of the left side of the most balanced cut."""
        tree = self.trees[axis]
        if tree is None:
            return balanced_last(counts)
        held = np.flatnonzero(counts)
        blocks = tree[below_common_label(tree, held[:1], held[-1:])[0]]
        cut = balanced_last(np.bincount(blocks, weights=counts).astype(np.int64))
        return int(np.flatnonzero(blocks <= cut)[-1])
