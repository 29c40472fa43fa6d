"""Linear equations whose digits do not depend on the machine's linear algebra library.

Small systems by elimination in the kernel; large sparse ones by iteration, whose scalar products
NumPy sums itself, in its own fixed order.
"""

from __future__ import annotations

import ctypes
from functools import cache
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

from quiltwork.influence.kernel.library import MOST_WORK, address, call_until_done, loaded

FloatArray: TypeAlias = NDArray[np.float64]
_CLOSE, _TINY = 1e-10, 1e-14


def solve_linear(matrix: FloatArray, right: FloatArray) -> FloatArray:
    """The solution x of matrix @ x = right, for one or several columns; not finite if singular.

    >>> solve_linear(np.array([[2.0, 1.0], [1.0, 3.0]]), np.array([3.0, 5.0]))
    array([0.8, 1.4])
    """
    size = len(right)
    if matrix.shape != (size, size):
        raise ValueError(f"A matrix of {matrix.shape} and {size} equations do not fit.")
    work = np.array(matrix, dtype=np.float64, order="C")
    result = np.array(right, dtype=np.float64, order="C")
    columns, at, compiled = result.size // size if size else 0, ctypes.c_int64(0), _solve_linear()
    where = address(work), address(result), ctypes.byref(at)
    with np.errstate(all="ignore"):
        call_until_done(lambda: int(compiled(size, columns, *where, MOST_WORK)))
    return result


def iterate(matrix: Any, right: FloatArray, most: int) -> FloatArray | None:
    """The solution x of x − matrix @ x = right for a sparse matrix, by BiCGSTAB; None if it fails.

    After H. A. van der Vorst, SIAM J. Sci. Stat. Comput. 13 (1992) 631–644. Cost: two products with
    the matrix per iteration, at most `most` iterations.
    """
    x = np.zeros_like(right)
    residual, shadow = right.copy(), right.copy()
    direction = image = np.zeros_like(right)
    rho = alpha = omega = 1.0
    tolerance = max(_CLOSE * _norm(right), _TINY)
    with np.errstate(all="ignore"):
        for _ in range(most):
            if _norm(residual) <= tolerance:
                return x
            rho, last_rho = float((shadow * residual).sum()), rho
            # breakdown of the recurrence: the caller factorizes instead
            if omega == 0:
                return None
            direction = residual + rho / last_rho * (alpha / omega) * (direction - omega * image)
            image = direction - matrix @ direction
            overlap = float((shadow * image).sum())
            if rho == 0 or overlap == 0:
                return None
            alpha = rho / overlap
            half = residual - alpha * image
            image_of_half = half - matrix @ half
            length = float((image_of_half * image_of_half).sum())
            omega = float((image_of_half * half).sum()) / length if length else 0.0
            x = x + alpha * direction + omega * half
            residual = half - omega * image_of_half
            if not np.isfinite(x).all():
                return None
    return x if _norm(residual) <= tolerance else None


def _norm(vector: FloatArray) -> float:
    return float(np.sqrt((vector * vector).sum()))


@cache
def _solve_linear() -> Any:
    """The C function, with its argument types."""
    kernel, whole, pointer = loaded(), ctypes.c_int64, ctypes.c_void_p
    kernel.solve_linear.argtypes = [whole, whole, pointer, pointer, pointer, whole]
    kernel.solve_linear.restype = ctypes.c_int
    return kernel.solve_linear
