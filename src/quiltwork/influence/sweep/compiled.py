"""The programs of `program.py` and the steps of `sides.py` as plain loops, for Numba.

NumPy spends a millisecond on a step of few states, whatever their number; compiled, the same takes
some microseconds. Numba takes half a second to start, so it is asked only once a process has done
some hundred programs, and where it is not installed nothing changes but the time.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import cache
from importlib.util import find_spec

_PATIENCE = 300
_LARGE = 12


@dataclass(frozen=True)
class Kernels:
    """The compiled functions: `solve` one set of programs, `sweep` many stretches of nodes.

    `sweep_two` is for two states.
    """

    solve: Callable[..., None]
    sweep: Callable[..., None]
    sweep_two: Callable[..., None]


class _Work:
    """How many programs this process has solved with NumPy."""

    done = 0


def kernels(size: int, programs: int = 1) -> Kernels | None:
    """The compiled functions, if Numba is installed and they pay with so many more programs."""
    _Work.done += programs
    if size < _LARGE and _Work.done < _PATIENCE:
        return None
    return _compiled()


@cache
def compilable() -> bool:
    """Whether Numba is installed."""
    return find_spec("numba") is not None


@cache
def _compiled() -> Kernels | None:
    if not compilable():
        return None
    from quiltwork.influence.sweep import loops

    return Kernels(loops.solve, loops.sweep, loops.sweep_two)
