"""Every candidate of a family of interval quilts, one by one: what searches are checked against."""

from __future__ import annotations

import numpy as np

from quiltwork.influence.quilts.families import (
    TO_END,
    IntervalFamily,
    ListedFamily,
    pairwise_most,
)


class Listed:
    """All (reach+1)² quilts {i−a, i+b} of a family, the trivial one first."""

    def __init__(self, family: IntervalFamily) -> None:
        self.family, self.nodes = family, family.nodes
        rows = family.left_rows, family.right_rows
        sides = [np.arange(TO_END, len(side)) for side in rows]
        self.left = np.repeat(sides[0], len(sides[1]))
        self.right = np.tile(sides[1], len(sides[0]))
        self.left_most, self.right_most = (
            np.minimum.accumulate(side.most(np.arange(1, len(side) + 1))) for side in rows
        )
        both = (self.left != TO_END) & (self.right != TO_END)
        only_left = (self.left != TO_END) & ~both
        only_right = (self.right != TO_END) & ~both
        self.influence = np.zeros(len(self.left))
        self.influence[both] = self.two_sided(self.left[both] + 1, self.right[both] + 1)
        self.influence[only_left] = self.left_most[self.left[only_left]]
        self.influence[only_right] = self.right_most[self.right[only_right]]

    def two_sided(self, a, b):
        """e({i−a, i+b}|i) for arrays of distances."""
        lefts, left = np.unique(a, return_inverse=True)
        rights, right = np.unique(b, return_inverse=True)
        rows = self.family.left_rows.take(lefts), self.family.right_rows.take(rights)
        return pairwise_most(*rows, left, right)

    def at(self, node):
        """The candidates of one node."""
        start, stop = self.family.span(node, self.left, self.right)
        sides = zip(self.left.tolist(), self.right.tolist(), strict=True)
        quilts = tuple(self.family.separator(node, *both) for both in sides)
        one = range(node, node + 1)
        return ListedFamily(one, np.arange(len(start)), start, stop, quilts, self.influence)
