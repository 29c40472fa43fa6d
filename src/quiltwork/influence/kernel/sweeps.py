"""Stretches of nodes swept by the kernel, for `sweep.step`."""

from __future__ import annotations

import ctypes
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
_WHOLE = "size", "blocks", "pairs", "spans", "steps", "known"
_ARRAYS = {
    "above": np.float64,
    "below": np.float64,
    "span": np.int64,
    "margins": np.float64,
    "x": np.int64,
    "y": np.int64,
    "distinguishable": np.float64,
    "start": np.float64,
    "levels": np.float64,
    "possible": np.bool_,
    "block": np.int64,
}
_TWO = {"p": np.float64, "q": np.float64, "start": np.float64, "levels": np.float64}


class _Place(ctypes.Structure):
    """`struct place` of sweep.c: the position at which a sweep continues."""

    _fields_ = [(name, ctypes.c_int64) for name in ("step", "span", "pair")]


class _Stretch(ctypes.Structure):
    """`struct stretch` of sweep.c."""

    _fields_ = [
        *((name, ctypes.c_int64) for name in (*_WHOLE, "to_left", "any_start")),
        *((name, ctypes.c_void_p) for name in (*_ARRAYS, "result")),
    ]


class _TwoStates(ctypes.Structure):
    """`struct two_states` of sweep.c."""

    _fields_ = [
        ("steps", ctypes.c_int64),
        *((name, ctypes.c_void_p) for name in (*_TWO, "result")),
    ]


def sweep(
    above: FloatArray,
    below: FloatArray,
    span: IntArray,
    margins: FloatArray,
    pairs: tuple[IntArray, IntArray],
    distinguishable: BoolArray,
    start: FloatArray,
    levels: FloatArray,
    possible: BoolArray,
    block: IntArray,
    *,
    to_left: bool,
    any_start: bool,
) -> FloatArray:
    """The bounds of all nodes of a stretch, (nodes, k, k).

    Args:
        above: (blocks, pairs, k) rows p, not negative; from any start their square roots.
        below: the rows q.
        span: the number of nodes of each span, ascending.
        margins: the rounding margin of each span.
        pairs: the states x and y of each pair.
        distinguishable: (k, k) whether a release can differ between two states.
        start: (n, k, k) the bounds at the first nodes.
        levels: (nodes,) of every node.
        possible: (nodes, k) the possible states of every node.
        block: (spans, nodes) the index of the rows that lead to every node.
        to_left: whether the rows are those of the left side.
        any_start: whether columns are weighted in any way.
    """
    blocks, count, size = above.shape
    spans, nodes = block.shape
    rows = above, below, span, margins, *pairs, distinguishable
    arrays = _arrays(_ARRAYS, *rows, start, levels, possible, block)
    _check(
        arrays,
        {
            "below": above.shape,
            "span": (spans,),
            "margins": (spans,),
            "x": (count,),
            "y": (count,),
            "distinguishable": (size, size),
            "start": (*start.shape[:1], size, size),
            "levels": (nodes,),
            "possible": (nodes, size),
        },
    )
    result = np.empty((nodes, size, size))
    # the last index of the stretch, and the last node with a given bound
    whole = size, blocks, count, spans, nodes - 1, len(start) - 1
    addresses = [address(array) for array in (*arrays.values(), result)]
    stretch = _Stretch(*whole, int(to_left), int(any_start), *addresses)
    compiled = _sweep()
    needed = int(loaded().sweep_room(size, int(arrays["span"][-1]), spans * count))
    buffer, position = workspace(needed), _Place()
    arguments = ctypes.byref(stretch), ctypes.sizeof(stretch), address(buffer), needed
    call_until_done(lambda: int(compiled(*arguments, ctypes.byref(position), MOST_WORK)))
    return result


def sweep_two(rows: FloatArray, start: FloatArray, levels: FloatArray) -> FloatArray:
    """The same for two states whose moves are all likely; `rows` are p and q.

    `start`, `levels` and the result are exponentials.
    """
    arrays = _arrays(_TWO, *rows, start, levels)
    _check(arrays, {"p": (2,), "q": (2,), "start": (2, 2), "levels": (len(levels),)})
    result = np.empty((len(levels), 2, 2))
    addresses = [address(array) for array in (*arrays.values(), result)]
    stretch = _TwoStates(len(levels) - 1, *addresses)
    compiled, position = _sweep_two(), ctypes.c_int64(0)
    arguments = ctypes.byref(stretch), ctypes.sizeof(stretch), ctypes.byref(position)
    call_until_done(lambda: int(compiled(*arguments, MOST_WORK)))
    return result


def _arrays(kinds: dict[str, Any], *arrays: np.ndarray) -> dict[str, np.ndarray]:
    """The arrays in the types that the kernel reads, by name."""
    named = zip(kinds.items(), arrays, strict=True)
    return {name: np.ascontiguousarray(array, dtype=kind) for (name, kind), array in named}


def _check(arrays: dict[str, np.ndarray], shapes: dict[str, tuple[int, ...]]) -> None:
    wrong = [name for name, shape in shapes.items() if arrays[name].shape != shape]
    if wrong:
        raise ValueError(f"Arrays of a sweep differ in shape: {wrong}.")


@cache
def _sweep() -> Any:
    """The C function, with its argument types."""
    kernel, whole, pointer = loaded(), ctypes.c_int64, ctypes.c_void_p
    kernel.sweep_room.argtypes, kernel.sweep_room.restype = [whole] * 3, whole
    kernel.sweep.argtypes = [pointer, whole, pointer, whole, pointer, whole]
    kernel.sweep.restype = ctypes.c_int
    return kernel.sweep


@cache
def _sweep_two() -> Any:
    """The C function, with its argument types."""
    kernel, whole, pointer = loaded(), ctypes.c_int64, ctypes.c_void_p
    kernel.sweep_two.argtypes = [pointer, whole, pointer, whole]
    kernel.sweep_two.restype = ctypes.c_int
    return kernel.sweep_two
