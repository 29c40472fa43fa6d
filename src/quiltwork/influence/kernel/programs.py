"""Ratio programs solved by the kernel, each from its cached spanning tree."""

from __future__ import annotations

import ctypes
from dataclasses import dataclass
from functools import cache
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

from quiltwork.influence.kernel.library import (
    MOST_WORK,
    address,
    call_until_done,
    loaded,
    workspace,
)

FloatArray: TypeAlias = NDArray[np.float64]
IntArray: TypeAlias = NDArray[np.int64]
BoolArray: TypeAlias = NDArray[np.bool_]


@dataclass(frozen=True, eq=False)
class SpanningTrees:
    """One spanning tree per program, as arrays of (programs, k).

    `parent` is the state itself at the root; `upper` marks states at their upper limit above their
    parent; `order` lists states from the root outwards, −1 first if only some were reached, −2 if
    there is no tree yet.
    """

    parent: IntArray
    upper: BoolArray
    order: IntArray

    @classmethod
    def none(cls, count: int, size: int) -> SpanningTrees:
        """No trees yet, for `count` programs."""
        parent, upper = np.zeros((count, size), np.int64), np.zeros((count, size), np.bool_)
        return cls(parent, upper, np.full((count, size), -2, np.int64))


def solve(
    above: FloatArray, below: FloatArray, limits: FloatArray, group: IntArray, trees: SpanningTrees
) -> tuple[FloatArray, FloatArray, IntArray, IntArray, SpanningTrees]:
    """The bound of every pair of rows under the closed limits of its group, with its slopes.

    Args:
        above: (n, k) rows p, not negative.
        below: (n, k) rows q.
        limits: (groups, k, k) closed limits, small enough for an exponential.
        group: (n,) the limits of each pair of rows.
        trees: initial trees; they are copied, since other threads may use them too.

    Returns:
        The bounds (n,), +inf if none was certified; slopes (n, k), and the two states of the limit
        that each belongs to; the final trees.
    """
    count, size = above.shape
    above, below, limits = (_numbers(array) for array in (above, below, limits))
    group = np.ascontiguousarray(group, dtype=np.int64)
    shapes = {"below": below.shape, "group": (*group.shape, size)}
    shapes |= {name: getattr(trees, name).shape for name in ("parent", "upper", "order")}
    wrong = [name for name, shape in shapes.items() if shape != (count, size)]
    if wrong or limits.shape[1:] != (size, size):
        raise ValueError(f"Arrays of programs differ in shape: {wrong or ['limits']}.")
    values, slope = np.empty(count), np.empty((count, size))
    high, low = np.empty((count, size), np.int64), np.empty((count, size), np.int64)
    compiled = _solve()
    needed = int(loaded().solve_room(size))
    buffer, position = workspace(needed), ctypes.c_int64(0)
    inputs = [address(array) for array in (above, below, limits, group)]
    # copies: another thread may start from the same trees
    trees = SpanningTrees(trees.parent.copy(), trees.upper.copy(), trees.order.copy())
    tree_addresses = [address(array) for array in (trees.parent, trees.upper, trees.order)]
    outputs = [address(array) for array in (values, slope, high, low)]
    work = address(buffer), needed, ctypes.byref(position), MOST_WORK
    call_until_done(
        lambda: int(compiled(count, size, len(limits), *inputs, *tree_addresses, *outputs, *work))
    )
    return values, slope, high, low, trees


@cache
def _solve() -> Any:
    """The C function, with its argument types."""
    kernel = loaded()
    kernel.solve_room.argtypes, kernel.solve_room.restype = [ctypes.c_int64], ctypes.c_int64
    whole, pointer = ctypes.c_int64, ctypes.c_void_p
    kernel.solve.argtypes = [*[whole] * 3, *[pointer] * 12, whole, pointer, whole]
    kernel.solve.restype = ctypes.c_int
    return kernel.solve


def _numbers(array: FloatArray) -> FloatArray:
    return np.ascontiguousarray(array, dtype=np.float64)
