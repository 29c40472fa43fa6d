"""What each time point leaks: the joint-quilt bound node by node, as runs of equal nodes."""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass
from typing import TypeAlias

import numpy as np

from quiltwork.accounting.account import Account
from quiltwork.accounting.cells import Cells
from quiltwork.accounting.joint import Joint
from quiltwork.accounting.quilts import QuiltTable
from quiltwork.accounting.sets import set_profile
from quiltwork.accounting.view import FloatArray, IntArray, View
from quiltwork.errors import InvalidInputError
from quiltwork.exact import float_up
from quiltwork.influence.families import TO_END, IntervalFamily

_MOST_PAIRS = 10**7
_FEW = 128

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
    joint, length = account.joint, account.joint.quilts.length
    top = float_up(account.by_joint_quilts)
    values = np.zeros(length)
    cells = Cells([part for table in joint.leakage.cells.tables for part in _sharpened(table)])
    for number, table in enumerate(cells.tables):
        grids = _grids(table.family, math.isqrt(_MOST_PAIRS // length))
        for cell in np.flatnonzero(cells.table == number):
            nodes, bounds = _of_stretch(joint, cells.nodes(int(cell)), table, grids)
            values[nodes - 1] = np.maximum(values[nodes - 1], bounds)
    if joint.quilts.sets:
        values = np.maximum(values, set_profile(joint.quilts.sets, joint.usage, length))
    return _runs(np.minimum(values, top) + float_up(account.by_theorem_3_6))


def _sharpened(table: QuiltTable) -> list[QuiltTable]:
    """Few nodes that stand for each other are looked at one by one."""
    parts = table.refined() if len(table.nodes) <= _FEW else None
    return [table] if parts is None else [sharp for part in parts for sharp in _sharpened(part)]


def _of_stretch(
    joint: Joint, stretch: range, table: QuiltTable, grids: tuple[Sides, Sides]
) -> tuple[IntArray, FloatArray]:
    two_sided, one_sided = grids
    nodes = np.array(stretch)
    view = View.around(joint.usage, table.family, stretch[0], stretch[-1])
    some = view.representatives(stretch, every=False)
    near = _least(view, some, two_sided)
    bounds = near[np.searchsorted(some, nodes, side="right") - 1]
    tried, _ = table.bounds(view, nodes, far=True)
    ends = _least(view, nodes, one_sided)
    return nodes, view.raised(np.minimum(np.minimum(bounds, tried), ends), far=True)


def _least(view: View, nodes: IntArray, sides: Sides) -> FloatArray:
    """The best bound of each node among these quilts."""
    least = [
        view.bounds(part[:, np.newaxis], *sides).min(axis=1, initial=np.inf)
        for part in np.array_split(nodes, max(1, len(nodes) * len(sides[0]) >> 20))
    ]
    return np.concatenate(least)


def _grids(family: IntervalFamily, most: int) -> tuple[Sides, Sides]:
    """Two-sided quilts at up to most² pairs of distances, and one-sided ones."""
    left = _distances(len(family.left_rows), most)
    right = _distances(len(family.right_rows), most)
    a, b = np.repeat(left, len(right)), np.tile(right, len(left))
    one_sided = (
        np.concatenate((left, np.full_like(right, TO_END))),
        np.concatenate((np.full_like(left, TO_END), right)),
        np.concatenate((family.left_most[left], family.right_most[right])),
    )
    return (a, b, family.two_sided(a + 1, b + 1)), one_sided


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
