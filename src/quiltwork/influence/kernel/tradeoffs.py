"""Trade-off curves in the kernel: composed, carried one step along a chain, summed at a node.

A curve is an array of upper bounds of H_γ on a grid γ_0 = 1 < γ_1 < …; curves of all ordered pairs
of k states have the shape (k, k, points). Cost: O(points) for a composition, O(k⁴·points) at most
for a step.
"""

from __future__ import annotations

import ctypes
from functools import cache
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

from quiltwork.influence.kernel.library import KernelError, address, loaded, workspace

FloatArray: TypeAlias = NDArray[np.float64]
Marks: TypeAlias = NDArray[np.uint8]

MOST_STATES = 64
_ROWS_MARGIN = 2.0**-50


class CurveKernel:
    """Operations on curves on one grid for k states, with a shared workspace."""

    def __init__(self, size: int, gamma: FloatArray) -> None:
        self.size, self.points = size, len(gamma)
        self.gamma = np.ascontiguousarray(gamma, dtype=np.float64)
        if self.points < 2 or self.gamma[0] != 1 or not (np.diff(self.gamma) > 0).all():
            raise ValueError("A grid of trade-offs rises from 1.")
        self._workspace = workspace(_library().tradeoff_room(size, self.points))
        self._useful = np.ones(size**3, dtype=np.uint8)

    def step(
        self,
        level: FloatArray,
        kernel: FloatArray,
        curves: FloatArray,
        apart: Marks,
        possible: Marks,
        margin: float = 0.0,
        every: bool = True,
    ) -> FloatArray:
        """The curves of level∘curves after a kernel with rows p(x, ·), known to a relative margin.

        Pairs with impossible states get no bound. Without `every` only the reference states that
        lowered a value in the last step are tried.
        """
        result = np.zeros((self.size, self.size, self.points))
        between, able = self._marks(apart, 2), self._marks(possible, 1)
        own, rows, r = self._curve(level), self._sized(kernel, 2), self._curves(curves)
        _done(
            _library().tradeoff_step(
                *(self.size, self.points, address(self.gamma), address(between)),
                *(address(own), address(rows), address(able), margin + _ROWS_MARGIN),
                *(int(every), address(self._useful), address(r), address(result)),
                address(self._workspace),
            )
        )
        return result

    def spread_step(self, level: FloatArray, spread: FloatArray, curve: FloatArray) -> FloatArray:
        """The same with one curve for all pairs, for rows with η_γ ≤ spread."""
        result = np.zeros(self.points)
        inputs = [self._curve(array) for array in (level, spread, curve)]
        _done(
            _library().tradeoff_spread_step(
                *(self.points, address(self.gamma), *map(address, inputs)),
                *(address(result), address(self._workspace)),
            )
        )
        return result

    def leak(
        self,
        level: FloatArray,
        right: FloatArray,
        left: FloatArray,
        apart: Marks,
        asked: Marks,
    ) -> FloatArray:
        """The largest curve over the given pairs, each the least over orders of composition."""
        result = np.zeros(self.points)
        between, pairs = self._marks(apart, 2), self._marks(asked, 2)
        own, r, l_ = self._curve(level), self._curves(right), self._curves(left)
        _done(
            _library().tradeoff_leak(
                *(self.size, self.points, address(self.gamma), address(between), address(pairs)),
                *(address(own), address(r), address(l_), address(result), address(self._workspace)),
            )
        )
        return result

    def compose(self, first: FloatArray, other: FloatArray) -> FloatArray:
        """The lesser of both orders, for curves that bound both directions of a pair."""
        result = np.zeros(self.points)
        inputs = [self._curve(first), self._curve(other)]
        _done(
            _library().tradeoff_compose(
                *(self.points, address(self.gamma), *map(address, inputs)),
                *(address(result), address(self._workspace)),
            )
        )
        return result

    def _curve(self, curve: FloatArray) -> FloatArray:
        return _array(curve, (self.points,))

    def _curves(self, curves: FloatArray) -> FloatArray:
        return _array(curves, (self.size, self.size, self.points))

    def _sized(self, array: FloatArray, dimensions: int) -> FloatArray:
        return _array(array, (self.size,) * dimensions)

    def _marks(self, marks: Marks, dimensions: int) -> Marks:
        checked = np.ascontiguousarray(marks, dtype=np.uint8)
        if checked.shape != (self.size,) * dimensions:
            raise ValueError(f"Marks of shape {checked.shape} do not fit {self.size} states.")
        return checked


def _array(array: FloatArray, shape: tuple[int, ...]) -> FloatArray:
    checked = np.ascontiguousarray(array, dtype=np.float64)
    if checked.shape != shape:
        raise ValueError(f"An array of shape {checked.shape} is not one of {shape}.")
    return checked


def _done(status: int) -> None:
    """Raise an error for a negative status."""
    if status < 0:
        raise KernelError(f"The kernel refuses curves of these sizes: {status}.")


@cache
def _library() -> Any:
    """The library, with the argument types of its functions."""
    kernel = loaded()
    size, place, number = ctypes.c_int64, ctypes.c_void_p, ctypes.c_double
    kernel.tradeoff_room.argtypes = [size, size]
    kernel.tradeoff_room.restype = size
    kernel.tradeoff_step.argtypes = [size, size, *[place] * 5, number, size, *[place] * 4]
    kernel.tradeoff_spread_step.argtypes = [size, *[place] * 6]
    kernel.tradeoff_leak.argtypes = [size, size, *[place] * 8]
    kernel.tradeoff_compose.argtypes = [size, *[place] * 5]
    for name in ("step", "spread_step", "leak", "compose"):
        getattr(kernel, f"tradeoff_{name}").restype = ctypes.c_int
    return kernel
