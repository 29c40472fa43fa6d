"""The largest Gaussian level per time point at which no secret leaks more than (ε, δ).

ε at which the worst curve meets δ grows about in proportion to the level, so that secants of
the two logarithms arrive in some four sweeps.

Theorem: docs/theory/f-sweep.md
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import lru_cache
from typing import Literal

from quiltwork.beliefs import Belief, Clusters
from quiltwork.errors import UnsupportedError
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
_AIM = 1 - 2e-4
_FIRST = 1.15
"""Rather too high at first: lower levels go on from the curves of higher ones."""
_MOST_SWEEPS = 24
_GRIDS = 3


@dataclass(frozen=True)
class LargestLevel:
    """A level μ that every point of a window may have, all releases together, rounded down.

    Attributes:
        level: Σ (Δ/σ)² ≤ level² keeps (ε, δ).
        alone: the level that would do if no other time point mattered.
        method: "f-sweep", or "group" where all points of the window are paid for at once.
    """

    level: float
    alone: float
    method: Method


@lru_cache(maxsize=64)
def largest_level(
    belief: Belief, window: Window, epsilon: float, delta: float, pure: float = 0.0
) -> LargestLevel:
    """The level that a belief allows; `epsilon` and `delta` are rounded down.

    With `pure` every point may also have mechanisms whose pure levels add up to so much.

    Raises:
        UnsupportedError: for beliefs that have no order in time.
    """
    alone = gaussian_level(epsilon, delta, pure)
    if isinstance(belief, Clusters):
        return _together(max(min(belief.largest, window.points), 1), epsilon, delta, pure, alone)
    kernels = _kernels(belief, window)
    group = _together(window.points, epsilon, delta, pure, alone)
    if kernels.known:
        return LargestLevel(math.inf, alone, "f-sweep")
    if kernels.size > MOST_STATES:
        return group
    return _swept(kernels, window, (epsilon, delta, pure), group)


def _together(points: int, epsilon: float, delta: float, pure: float, alone: float) -> LargestLevel:
    """Group privacy: all these points change at once."""
    level = gaussian_level(epsilon, delta, pure * points) if pure else alone
    return LargestLevel(level / points * (1 - 2.0**-50), alone, "group")


@lru_cache(maxsize=64)
def epsilon_of_level(belief: Belief, window: Window, level: float, delta: float) -> float:
    """ε at which no secret leaks more than δ, if every point of the window is of this level.

    Rounded up; inf where none of the grid's is. For plans that are fixed beforehand.

    Raises:
        UnsupportedError: for beliefs that have no order in time.
    """
    if isinstance(belief, Clusters):
        together = level * max(min(belief.largest, window.points), 1)
        return gaussian_epsilon(together * (1 + 2.0**-50), delta)
    kernels = _kernels(belief, window)
    if kernels.known or level == 0:
        return 0.0
    group = gaussian_epsilon(level * window.points * (1 + 2.0**-50), delta)
    if kernels.size > MOST_STATES:
        return group
    steps = kernels.steps_that_matter
    guess, found = gaussian_epsilon(level * min(1 + 2 * steps, window.points), delta), group
    for _ in range(_GRIDS):
        grid = CurveGrid.near(max(guess, level), level, steps)
        sweep = TradeoffSweep(kernels, grid, delta)
        found = min(found, grid.epsilon(sweep.worst(level, window), delta))
        if found >= guess / 2:
            break
        guess = found
    return found


def _kernels(belief: Belief, window: Window) -> ChainKernels:
    kernels = kernels_of(belief, window.length)
    if kernels is None:
        raise UnsupportedError(
            "Gaussian noise needs a chain, a box of chains or clusters, and this is a "
            f"{type(belief).__name__}; use noise='geometric' there."
        )
    return kernels


def _swept(
    kernels: ChainKernels,
    window: Window,
    asked: tuple[float, float, float],
    group: LargestLevel,
) -> LargestLevel:
    """By secants, on a grid that is made finer while the level is small for it."""
    epsilon, delta, pure = asked
    steps = kernels.steps_that_matter
    if steps >= FORGETS_NOTHING and window.points > SHORT:
        return group
    guess, found = max(_FIRST * group.alone / (1 + 2 * steps), group.level, 1e-9), 0.0
    for _ in range(_GRIDS):
        sweep = TradeoffSweep(kernels, CurveGrid.near(epsilon, guess, steps), delta, pure)
        found = max(found, _by_secants(sweep, window, epsilon, delta, group, guess))
        if found >= guess / 2:
            break
        guess = max(found, guess / 8)
    if found <= group.level:
        return group
    return LargestLevel(found * (1 - 2.0**-50), group.alone, "f-sweep")


def _by_secants(
    sweep: TradeoffSweep,
    window: Window,
    epsilon: float,
    delta: float,
    group: LargestLevel,
    guess: float,
) -> float:
    """The largest level found that keeps (ε, δ), 0 if none does; every one was swept itself."""
    low, high, level = 0.0, group.alone * (1 + 2.0**-40), guess
    places: list[tuple[float, float]] = []
    for _ in range(_MOST_SWEEPS):
        told = sweep.grid.epsilon(sweep.worst(level, window), delta)
        if told <= epsilon:
            low = level
            if told > epsilon * (1 - _CLOSE):
                break
        else:
            high = min(high, level)
        if high - low <= high * _CLOSE / 2 or high < group.level:
            break
        level = _next(places, level, told, epsilon * _AIM)
        if not low < level < high:
            level = math.sqrt(low * high) if low > 0 else high / 2
    return low


def _next(places: list[tuple[float, float]], level: float, told: float, aim: float) -> float:
    """Where the line through the last two places meets the aim; 0 where there is no line."""
    if not 0 < told < math.inf:
        return 0.0
    places.append((math.log(level), math.log(told)))
    slope = 1.0
    if len(places) > 1:
        (x, y), (x_, y_) = places[-2:]
        slope = (y_ - y) / (x_ - x) if x_ != x and y_ != y else 1.0
    return math.exp(places[-1][0] + (math.log(aim) - places[-1][1]) / slope)
