"""Products and powers of matrices whose digits do not depend on the machine's linear algebra
library.

Every entry is summed in the order of the inner index. Cost: O(rows · inner · columns) for a pair.
"""

from __future__ import annotations

import ctypes
import math
from functools import cache
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

from quiltwork.influence.kernel.library import MOST_WORK, KernelError, address, loaded

FloatArray: TypeAlias = NDArray[np.float64]


def product(left: FloatArray, right: FloatArray) -> FloatArray:
    """The product left @ right of matrices or stacks of them; a vector on the left is one row.

    >>> product(np.array([0.5, 0.5]), np.array([[0.9, 0.1], [0.4, 0.6]]))
    array([0.65, 0.35])
    """
    if left.ndim == 1:
        return np.asarray(product(left[np.newaxis], right)[..., 0, :])
    stack = np.broadcast_shapes(left.shape[:-2], right.shape[:-2])
    rows, inner, columns = left.shape[-2], left.shape[-1], right.shape[-1]
    if right.shape[-2] != inner:
        raise ValueError(f"Matrices of {left.shape} and {right.shape} have no product.")
    left_stack = _stacked(left, (*stack, rows, inner))
    right_stack = _stacked(right, (*stack, inner, columns))
    result = np.empty((*stack, rows, columns))
    count = len(left_stack)
    at_once = max(1, MOST_WORK // max(1, rows * inner * columns))
    addresses = [address(array) for array in (left_stack, right_stack, result)]
    sizes = rows * inner, inner * columns, rows * columns
    multiply = _product()
    for first in range(0, count, at_once):
        pointers = [p + 8 * first * size for p, size in zip(addresses, sizes, strict=True)]
        status = multiply(min(at_once, count - first), rows, inner, columns, *pointers)
        if status < 0:
            raise KernelError(f"A product of {left.shape} and {right.shape} is refused.")
    return result


def power(matrix: FloatArray, exponent: int) -> FloatArray:
    """The matrix to a power of at least 1, by squaring."""
    if exponent < 1:
        raise ValueError(f"Powers begin at 1, and {exponent} was asked for.")
    result: FloatArray | None = None
    while True:
        if exponent & 1:
            result = matrix if result is None else product(result, matrix)
        exponent >>= 1
        if not exponent:
            assert result is not None  # noqa: S101  (the highest bit is 1)
            return result
        matrix = product(matrix, matrix)


def _stacked(matrices: FloatArray, shape: tuple[int, ...]) -> FloatArray:
    """One contiguous array of matrices."""
    whole = np.broadcast_to(np.asarray(matrices, dtype=np.float64), shape)
    return np.ascontiguousarray(whole).reshape(math.prod(shape[:-2]), *shape[-2:])


@cache
def _product() -> Any:
    """The C function, with its argument types."""
    kernel = loaded()
    kernel.product.argtypes = [*[ctypes.c_int64] * 4, *[ctypes.c_void_p] * 3]
    kernel.product.restype = ctypes.c_int
    return kernel.product
