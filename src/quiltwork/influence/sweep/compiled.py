"""The programs of `program.py` and the steps of `sides.py` as plain loops, for Numba.

NumPy spends a millisecond on a step of few states, whatever their number, and a tenth of that if
there are two; compiled, the same takes some microseconds. Numba takes half a second to start, so it
is asked only once a process has spent about as much without it, or would at once: nobody waits more
than twice as long as who knows what is to come. Where it is not installed nothing changes but the
time.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import cache
from importlib.util import find_spec

_PATIENCE = 0.4
"""Seconds without Numba after which it is asked."""
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
    """How many seconds this process has solved programs with NumPy, about."""

    seconds = 0.0


def kernels(size: int, programs: int = 1) -> Kernels | None:
    """The compiled functions, if Numba is installed and they pay with so many more programs."""
    _Work.seconds += programs * (0.0001 if size == 2 else 0.001)
    loaded = _compiled.cache_info().currsize
    if size < _LARGE and _Work.seconds < (0 if loaded else _PATIENCE):
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
