"""Programs solved by the kernel, one after the other, each from the tree that is kept for it."""

from __future__ import annotations

import ctypes
from dataclasses import dataclass
from functools import cache
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

from quiltwork.influence.kernel.library import MOST_WORK, address, in_parts, loaded, room

FloatArray: TypeAlias = NDArray[np.float64]
IntArray: TypeAlias = NDArray[np.int64]
BoolArray: TypeAlias = NDArray[np.bool_]


@dataclass(frozen=True, eq=False)
class KeptTrees:
    """One spanning tree per program, as arrays of (programs, k).

    `parent` is the state itself at the root; `upper` tells whether a state is at its upper limit
    above its parent; `order` lists states from the root outwards, −1 first where only some were
    reached, −2 where there is no tree yet.
    """

    parent: IntArray
    upper: BoolArray
    order: IntArray

    @classmethod
    def none(cls, count: int, size: int) -> KeptTrees:
        """No trees for so many programs."""
        parent, upper = np.zeros((count, size), np.int64), np.zeros((count, size), np.bool_)
        return cls(parent, upper, np.full((count, size), -2, np.int64))


def solve(
    above: FloatArray, below: FloatArray, limits: FloatArray, group: IntArray, trees: KeptTrees
) -> tuple[FloatArray, FloatArray, IntArray, IntArray, KeptTrees]:
    """The bound of every pair of rows under the closed limits of its group, with its slopes.

    Args:
        above: (n, k) rows p, not negative.
        below: (n, k) rows q.
        limits: (groups, k, k) closed limits, none above what an exponential can hold.
        group: (n,) the limits of each pair of rows.
        trees: where to begin; they are not changed, since other threads may begin there too.

    Returns:
        The bounds (n,), +inf where none was certified; slopes (n, k), and the two states of the
        limit that each belongs to; the trees at which they were found.
    """
    count, size = above.shape
    above, below, limits = (_numbers(one) for one in (above, below, limits))
    group = np.ascontiguousarray(group, dtype=np.int64)
    given = {"below": below.shape, "group": (*group.shape, size)}
    given |= {name: getattr(trees, name).shape for name in ("parent", "upper", "order")}
    wrong = [name for name, shape in given.items() if shape != (count, size)]
    if wrong or limits.shape[1:] != (size, size):
        raise ValueError(f"Arrays of programs differ in shape: {wrong or ['limits']}.")
    values, slope = np.empty(count), np.empty((count, size))
    high, low = np.empty((count, size), np.int64), np.empty((count, size), np.int64)
    compiled = _solve()
    needed = int(loaded().solve_room(size))
    space, at = room(needed), ctypes.c_int64(0)
    inputs = [address(one) for one in (above, below, limits, group)]
    trees = KeptTrees(trees.parent.copy(), trees.upper.copy(), trees.order.copy())
    kept = [address(one) for one in (trees.parent, trees.upper, trees.order)]
    outputs = [address(one) for one in (values, slope, high, low)]
    where = address(space), needed, ctypes.byref(at), MOST_WORK
    in_parts(lambda: int(compiled(count, size, len(limits), *inputs, *kept, *outputs, *where)))
    return values, slope, high, low, trees


@cache
def _solve() -> Any:
    found = loaded()
    found.solve_room.argtypes, found.solve_room.restype = [ctypes.c_int64], ctypes.c_int64
    whole, pointer = ctypes.c_int64, ctypes.c_void_p
    found.solve.argtypes = [*[whole] * 3, *[pointer] * 12, whole, pointer, whole]
    found.solve.restype = ctypes.c_int
    return found.solve


def _numbers(array: FloatArray) -> FloatArray:
    return np.ascontiguousarray(array, dtype=np.float64)
