"""Stretches of nodes swept by the kernel; what is swept, and why, says `sweep.stretches`."""

from __future__ import annotations

import ctypes
from functools import cache
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

from quiltwork.influence.kernel.library import MOST_WORK, address, in_parts, loaded, room

FloatArray: TypeAlias = NDArray[np.float64]
IntArray: TypeAlias = NDArray[np.int64]
BoolArray: TypeAlias = NDArray[np.bool_]
_WHOLE = "count", "size", "phases", "pairs", "spans", "columns", "known", "results"
_ARRAYS = {
    "above": np.float64,
    "below": np.float64,
    "span": np.int64,
    "margins": np.float64,
    "x": np.int64,
    "y": np.int64,
    "tells": np.float64,
    "start": np.float64,
    "begin": np.int64,
    "steps": np.int64,
    "first": np.int64,
    "levels": np.float64,
    "possible": np.bool_,
}
_TWO = {
    "p": np.float64,
    "q": np.float64,
    "start": np.float64,
    "begin": np.int64,
    "steps": np.int64,
    "first": np.int64,
    "levels": np.float64,
}


class _Place(ctypes.Structure):
    """`struct place` of sweep.c: where a sweep goes on."""

    _fields_ = [(name, ctypes.c_int64) for name in ("stretch", "step", "span", "pair")]


class _Stretches(ctypes.Structure):
    """`struct stretches` of sweep.c."""

    _fields_ = [
        *((name, ctypes.c_int64) for name in (*_WHOLE, "to_left", "any_start")),
        *((name, ctypes.c_void_p) for name in (*_ARRAYS, "result")),
    ]


class _TwoStates(ctypes.Structure):
    """`struct two_states` of sweep.c."""

    _fields_ = [
        *((name, ctypes.c_int64) for name in ("count", "columns", "results", "toward")),
        *((name, ctypes.c_void_p) for name in (*_TWO, "result")),
    ]


def sweep(
    above: FloatArray,
    below: FloatArray,
    span: IntArray,
    margins: FloatArray,
    pairs: tuple[IntArray, IntArray],
    tells: BoolArray,
    start: FloatArray,
    begin: IntArray,
    steps: IntArray,
    first: IntArray,
    levels: FloatArray,
    possible: BoolArray,
    result: FloatArray,
    *,
    to_left: bool,
    any_start: bool,
    known: int = 0,
) -> None:
    """Sweep stretches of nodes; bounds of their nodes are written to `result`.

    Args:
        above: (spans, phases, pairs, k) rows p, not negative; from any start their square roots.
        below: the rows q.
        span: how many nodes each span takes, ascending.
        margins: what each adds to a bound.
        pairs: the states x and y of each pair.
        tells: (k, k) whether a release moves between two states.
        start: (stretches, k, k) the bounds at the first node, and at `known` more.
        begin: the first node of each stretch.
        steps: how many steps it takes.
        first: the node that the first place of its result is for.
        levels: (stretches, columns) of the node after so many steps.
        possible: (stretches, columns, k) the states of that node.
        result: (stretches, nodes, k, k), contiguous; only nodes that are met are written.
        to_left: whether nodes are visited in ascending order.
        any_start: whether columns are weighted in any way.
        known: at how many more nodes `start` holds.
    """
    spans, phases, count, size = above.shape
    stretches, columns = levels.shape
    rows, places = (above, below, span, margins, *pairs, tells), (start, begin, steps, first)
    arrays, lane = _arrays(_ARRAYS, *rows, *places, levels, possible), (stretches,)
    _check(
        arrays | {"result": result},
        {
            "below": above.shape,
            "span": (spans,),
            "margins": (spans,),
            "x": (count,),
            "y": (count,),
            "tells": (size, size),
            "start": (stretches, size, size),
            "begin": lane,
            "steps": lane,
            "first": lane,
            "possible": (stretches, columns, size),
            "result": (stretches, *result.shape[1:2], size, size),
        },
    )
    whole = stretches, size, phases, count, spans, columns, known, result.shape[1]
    addresses = [address(one) for one in (*arrays.values(), result)]
    given_to = _Stretches(*whole, int(to_left), int(any_start), *addresses)
    compiled = _sweep()
    widest = int(arrays["span"][-1])
    needed = int(loaded().sweep_room(size, widest, spans * count))
    space, at = room(needed), _Place()
    where = ctypes.byref(given_to), ctypes.sizeof(given_to), address(space), needed
    in_parts(lambda: int(compiled(*where, ctypes.byref(at), MOST_WORK)))


def sweep_two(
    rows: FloatArray,
    start: FloatArray,
    begin: IntArray,
    steps: IntArray,
    first: IntArray,
    levels: FloatArray,
    result: FloatArray,
    *,
    to_left: bool,
) -> None:
    """The same for two states whose steps are all likely; `rows` are p and q.

    `start`, `levels` and `result` are exponentials.
    """
    stretches, columns = levels.shape
    arrays, lane = _arrays(_TWO, *rows, start, begin, steps, first, levels), (stretches,)
    shapes: dict[str, tuple[int, ...]] = {"p": (2,), "q": (2,), "start": (stretches, 2, 2)}
    shapes |= {"begin": lane, "steps": lane, "first": lane}
    _check(arrays | {"result": result}, shapes | {"result": (stretches, *result.shape[1:2], 2, 2)})
    places = [address(one) for one in (*arrays.values(), result)]
    toward = 1 if to_left else -1
    given_to = _TwoStates(stretches, columns, result.shape[1], toward, *places)
    bounds, at, compiled = np.zeros(2), _Place(), _sweep_two()
    where = ctypes.byref(given_to), ctypes.sizeof(given_to), address(bounds), ctypes.byref(at)
    in_parts(lambda: int(compiled(*where, MOST_WORK)))


def _arrays(kinds: dict[str, Any], *given: np.ndarray) -> dict[str, np.ndarray]:
    """The arrays of the kinds that the kernel reads, by the names of their places."""
    named = zip(kinds.items(), given, strict=True)
    return {name: np.ascontiguousarray(array, dtype=kind) for (name, kind), array in named}


def _check(arrays: dict[str, np.ndarray], shapes: dict[str, tuple[int, ...]]) -> None:
    wrong = [name for name, shape in shapes.items() if arrays[name].shape != shape]
    if wrong or arrays["result"].dtype != np.float64:
        raise ValueError(f"Arrays of a sweep differ in shape: {wrong or ['result']}.")


@cache
def _sweep() -> Any:
    found, whole, pointer = loaded(), ctypes.c_int64, ctypes.c_void_p
    found.sweep_room.argtypes, found.sweep_room.restype = [whole] * 3, whole
    found.sweep.argtypes = [pointer, whole, pointer, whole, pointer, whole]
    found.sweep.restype = ctypes.c_int
    return found.sweep


@cache
def _sweep_two() -> Any:
    found, whole, pointer = loaded(), ctypes.c_int64, ctypes.c_void_p
    found.sweep_two.argtypes = [pointer, whole, pointer, pointer, whole]
    found.sweep_two.restype = ctypes.c_int
    return found.sweep_two
