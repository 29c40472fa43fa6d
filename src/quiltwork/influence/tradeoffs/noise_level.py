"""The largest Gaussian level per time point at which every secret leaks at most (ε, δ).

ε at which the worst curve meets δ grows about in proportion to the level, so secants of the two
logarithms converge in about four sweeps.

Theorem: docs/theory/f-sweep.md
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import lru_cache
from typing import Literal

from quiltwork.beliefs import Belief, Clusters
from quiltwork.errors import UnsupportedError
from quiltwork.influence.calibration_arguments import LONGEST
from quiltwork.influence.tradeoffs.chain_kernels import (
    FORGETS_NOTHING,
    MOST_STATES,
    ChainKernels,
    kernels_of,
)
from quiltwork.influence.tradeoffs.curves import CurveGrid, gaussian_epsilon, gaussian_level
from quiltwork.influence.tradeoffs.sweep import SHORT, TradeoffSweep, Window

Method = Literal["f-sweep", "group"]

_CLOSE = 5e-4
"""Relative tolerance of ε."""
_AIM = 1 - 2e-4
"""Secants aim slightly below ε, so that the result is on the safe side."""
_FIRST = 1.15
"""The first level is slightly too high, because lower levels reuse the curves of higher ones."""
_MOST_SWEEPS = 24
_GRIDS = 3


@dataclass(frozen=True)
class LargestLevel:
    """A level μ that every point of a window may have, all releases together, rounded down.

    Attributes:
        level: Σ (Δ/σ)² ≤ level² keeps (ε, δ).
        alone: the level for independent time points.
        method: "f-sweep", or "group" if all points of the window are charged together.
    """

    level: float
    alone: float
    method: Method


@lru_cache(maxsize=64)
def largest_level(
    belief: Belief, window: Window, epsilon: float, delta: float, pure: float = 0.0
) -> LargestLevel:
    """The largest level that a belief allows; `epsilon` and `delta` are rounded down.

    With `pure` every point may also have mechanisms whose pure levels add up to this.

    Raises:
        UnsupportedError: for beliefs that have no order in time.
    """
    alone = gaussian_level(epsilon, delta, pure)
    if isinstance(belief, Clusters):
        return _group_level(max(min(belief.largest, window.points), 1), epsilon, delta, pure, alone)
    kernels = _kernels(belief, window)
    group = _group_level(window.points, epsilon, delta, pure, alone)
    if kernels.has_no_secret:
        return LargestLevel(math.inf, alone, "f-sweep")
    if kernels.size > MOST_STATES:
        return group
    return _swept(kernels, window, (epsilon, delta, pure), group)


def _group_level(
    points: int, epsilon: float, delta: float, pure: float, alone: float
) -> LargestLevel:
    """Group privacy: all these points change at once."""
    level = gaussian_level(epsilon, delta, pure * points) if pure else alone
    return LargestLevel(level / points * (1 - 2.0**-50), alone, "group")


def holds_for_every_length(belief: Belief, window: Window) -> bool:
    """Whether an f-sweep over a whole series is one over series of every length.

    It is for more than 48 time points, swept by curves that bound every node, unless the given
    length ends the chain's first laws.
    """
    if belief.length is not None or window.points <= max(SHORT, window.episode):
        return False
    kernels, endless = kernels_of(belief, window.length), kernels_of(belief, LONGEST)
    return (
        kernels is not None
        and endless is not None
        and len(kernels.first) == len(endless.first)
        and len(kernels.possible) == len(endless.possible)
        and (kernels.left is None) == (endless.left is None)
        and bool((kernels.late == endless.late).all())
    )


@lru_cache(maxsize=64)
def epsilon_of_level(belief: Belief, window: Window, level: float, delta: float) -> float:
    """ε at which every secret leaks at most δ, if every point of the window has this level.

    Rounded up; inf where none of the grid's is. For plans that are fixed beforehand.

    Raises:
        UnsupportedError: for beliefs that have no order in time.
    """
    if isinstance(belief, Clusters):
        group_level = level * max(min(belief.largest, window.points), 1)
        return gaussian_epsilon(group_level * (1 + 2.0**-50), delta)
    kernels = _kernels(belief, window)
    if kernels.has_no_secret or level == 0:
        return 0.0
    group = gaussian_epsilon(level * window.points * (1 + 2.0**-50), delta)
    if kernels.size > MOST_STATES:
        return group
    steps = kernels.mixing_steps
    guess, least = gaussian_epsilon(level * min(1 + 2 * steps, window.points), delta), group
    for _ in range(_GRIDS):
        grid = CurveGrid.near(max(guess, level), level, steps)
        sweep = TradeoffSweep(kernels, grid, delta)
        least = min(least, grid.epsilon(sweep.worst(level, window), delta))
        if least >= guess / 2:
            break
        guess = least
    return least


def _kernels(belief: Belief, window: Window) -> ChainKernels:
    """The kernels of a belief, or a refusal."""
    kernels = kernels_of(belief, window.length)
    if kernels is None:
        raise UnsupportedError(
            "Gaussian noise needs a chain, a box of chains or clusters; this is a "
            f"{type(belief).__name__}. Use noise='geometric'."
        )
    return kernels


def _swept(
    kernels: ChainKernels,
    window: Window,
    target: tuple[float, float, float],
    group: LargestLevel,
) -> LargestLevel:
    """The largest level by secants, on grids that become finer while the level is small
    for them.
    """
    epsilon, delta, pure = target
    steps = kernels.mixing_steps
    if steps >= FORGETS_NOTHING and window.points > SHORT:
        return group
    guess, best = max(_FIRST * group.alone / (1 + 2 * steps), group.level, 1e-9), 0.0
    for _ in range(_GRIDS):
        sweep = TradeoffSweep(kernels, CurveGrid.near(epsilon, guess, steps), delta, pure)
        best = max(best, _by_secants(sweep, window, epsilon, delta, group, guess))
        # the grid was made for a level near this one
        if best >= guess / 2:
            break
        guess = max(best, guess / 8)
    if best <= group.level:
        return group
    return LargestLevel(best * (1 - 2.0**-50), group.alone, "f-sweep")


def _by_secants(
    sweep: TradeoffSweep,
    window: Window,
    epsilon: float,
    delta: float,
    group: LargestLevel,
    guess: float,
) -> float:
    """The largest level, itself swept, that keeps (ε, δ); 0 if there is none."""
    low, high, level = 0.0, group.alone * (1 + 2.0**-40), guess
    points: list[tuple[float, float]] = []
    for _ in range(_MOST_SWEEPS):
        leaked = sweep.grid.epsilon(sweep.worst(level, window), delta)
        if leaked <= epsilon:
            low = level
            if leaked > epsilon * (1 - _CLOSE):
                break
        else:
            high = min(high, level)
        if high - low <= high * _CLOSE / 2 or high < group.level:
            break
        level = _next(points, level, leaked, epsilon * _AIM)
        # a secant may leave the bracket: halve it instead, in logarithms
        if not low < level < high:
            level = math.sqrt(low * high) if low > 0 else high / 2
    return low


def _next(points: list[tuple[float, float]], level: float, leaked: float, aim: float) -> float:
    """The level at which the line through the last two points meets the aim; 0 without a line."""
    if not 0 < leaked < math.inf:
        return 0.0
    points.append((math.log(level), math.log(leaked)))
    slope = 1.0
    if len(points) > 1:
        (x, y), (x_, y_) = points[-2:]
        slope = (y_ - y) / (x_ - x) if x_ != x and y_ != y else 1.0
    return math.exp(points[-1][0] + (math.log(aim) - points[-1][1]) / slope)
