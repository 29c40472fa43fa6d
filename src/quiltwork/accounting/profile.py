"""What each time point leaks: the joint-quilt bound node by node, as runs of equal nodes."""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass
from typing import TypeAlias

import numpy as np

from quiltwork.accounting.account import Account
from quiltwork.accounting.joint import Joint
from quiltwork.accounting.quilts import QuiltTable
from quiltwork.accounting.sets import set_profile
from quiltwork.accounting.view import FloatArray, IntArray, View
from quiltwork.errors import InvalidInputError
from quiltwork.exact import float_up
from quiltwork.influence.families import IntervalFamily

_MOST_PAIRS = 10**7

Sides: TypeAlias = tuple[IntArray, IntArray, FloatArray]


@dataclass(frozen=True)
class LeakageRun:
    """Time points first..last, each of which leaks at most `epsilon`."""

    first: int
    last: int
    epsilon: float


@dataclass(frozen=True, eq=False)
class LeakageProfile:
    """Run j of time points first[j]..last[j] leaks at most epsilon[j]; rounded up."""

    first: IntArray
    last: IntArray
    epsilon: FloatArray

    def __len__(self) -> int:
        """The number of runs."""
        return len(self.first)

    def __iter__(self) -> Iterator[LeakageRun]:
        """The runs in order."""
        for first, last, epsilon in zip(self.first, self.last, self.epsilon, strict=True):
            yield LeakageRun(int(first), int(last), float(epsilon))

    def at(self, node: int) -> float:
        """Return what one time point leaks at most.

        Raises:
            InvalidInputError: if there is no such time point.
        """
        if not 1 <= node <= int(self.last[-1]):
            raise InvalidInputError(f"There is no time point {node!r} in 1..{self.last[-1]}.")
        return float(self.epsilon[np.searchsorted(self.first, node, side="right") - 1])

    def values(self) -> FloatArray:
        """Return one entry per time point."""
        return np.repeat(self.epsilon, self.last - self.first + 1)


def leakage_profile(account: Account) -> LeakageProfile:
    """Bound the leakage of every time point of an account.

    At every time point quilts at all small and some large distances are tried, so many that there
    are about 10⁷ (time point, quilt) pairs at most; the worst time point is exact in any case.
    """
    joint = account.joint
    top = float_up(account.by_joint_quilts)
    values = np.zeros(joint.quilts.length)
    for number, table in enumerate(joint.leakage.cells.tables):
        grid = _grid(table.family, math.isqrt(_MOST_PAIRS // joint.quilts.length))
        for cell in np.flatnonzero(joint.leakage.cells.table == number):
            nodes, bounds = _of_cell(joint, int(cell), table, grid)
            values[nodes - 1] = np.maximum(values[nodes - 1], bounds)
    if joint.quilts.sets:
        values = np.maximum(values, set_profile(joint.quilts.sets, joint.usage, len(values)))
    return _runs(np.minimum(values, top) + float_up(account.by_theorem_3_6))


def _of_cell(
    joint: Joint, cell: int, table: QuiltTable, grid: Sides
) -> tuple[IntArray, FloatArray]:
    nodes = np.array(joint.leakage.cells.nodes(cell))
    view = View.around(joint.usage, table.family, int(nodes[0]), int(nodes[-1]))
    some = view.representatives(joint.leakage.cells.nodes(cell), every=False)
    near = np.concatenate([_least(view, part, grid) for part in _parts(some, len(grid[0]))])
    expanded = near[np.searchsorted(some, nodes, side="right") - 1]
    everywhere, _ = table.bounds(view, nodes, far=True)
    return nodes, np.minimum(expanded, everywhere) + view.error


def _least(view: View, nodes: IntArray, grid: Sides) -> FloatArray:
    least: FloatArray = view.bounds(nodes[:, np.newaxis], *grid).min(axis=1, initial=np.inf)
    return least


def _parts(nodes: IntArray, quilts: int) -> list[IntArray]:
    return np.array_split(nodes, max(1, len(nodes) * quilts >> 20))


def _grid(family: IntervalFamily, most: int) -> Sides:
    """Two-sided quilts at up to most² pairs of distances."""
    left = _distances(len(family.left_rows), most)
    right = _distances(len(family.right_rows), most)
    pairs = np.array([(a, b) for a in left for b in right], dtype=np.int64).reshape(-1, 2)
    influence = family.two_sided(pairs[:, 0] + 1, pairs[:, 1] + 1)
    return pairs[:, 0], pairs[:, 1], influence


def _distances(reach: int, most: int) -> IntArray:
    """All of 0..reach−1, or the first of them and then ever fewer."""
    if reach <= most:
        return np.arange(reach)
    close = np.arange(most // 2)
    wide = np.geomspace(max(1, most // 2), reach - 1, max(2, most // 2)).astype(np.int64)
    return np.unique(np.concatenate((close, wide)))


def _runs(values: FloatArray) -> LeakageProfile:
    begins = np.flatnonzero(np.append(True, values[1:] != values[:-1]))
    ends = np.append(begins[1:], len(values))
    return LeakageProfile(begins + 1, ends, values[begins])
