"""Two-sided exponential noise applied to laws: Σ_f p(f)·r^|w−f| for every output w at once.

One pass in each direction per statistic, so the cost is linear in the number of values. The same
in logarithms for noise so small, or laws so spread out, that floats would underflow. Constants
that cancel between two states are left out.
"""

from __future__ import annotations

import math
from fractions import Fraction
from typing import TypeAlias

import numpy as np

from quiltwork.beliefs.matrices import FloatArray

NO_RATE = math.inf
_FASTEST = 10**300
Rate: TypeAlias = float | FloatArray
"""How fast noise falls, 1/scale: one number, or one per node in a shape that broadcasts."""


def rate(scale: Fraction) -> float:
    """Return 1/scale to the nearest float; infinite without noise, or almost."""
    if not scale or 1 / scale > _FASTEST:
        return NO_RATE
    return float(1 / scale)


def smoothed(law: FloatArray, sizes: tuple[int, ...], rates: tuple[Rate, ...]) -> FloatArray:
    """Smooth laws of shape (number of codes, …) along every statistic."""
    shaped = law.reshape(*sizes, *law.shape[1:])
    for axis, speed in enumerate(rates):
        shaped = np.moveaxis(_along_first(np.moveaxis(shaped, axis, 0), speed), 0, axis)
    return shaped.reshape(law.shape)


def _along_first(law: FloatArray, speed: Rate) -> FloatArray:
    ratio = np.exp(-np.asarray(speed))
    forwards = np.array(law)
    backwards = np.zeros_like(forwards)
    for w in range(1, len(law)):
        forwards[w] += ratio * forwards[w - 1]
    for w in range(len(law) - 2, -1, -1):
        np.add(backwards[w + 1], law[w + 1], out=backwards[w])
        backwards[w] *= ratio
    return forwards + backwards


def smoothed_logs(law: FloatArray, sizes: tuple[int, ...], rates: tuple[Rate, ...]) -> FloatArray:
    """The same for logarithms of laws, −∞ for what is impossible; without noise nothing moves."""
    shaped = law.reshape(*sizes, *law.shape[1:])
    for axis, speed in enumerate(rates):
        if not np.all(np.isinf(speed)):
            shaped = np.moveaxis(_logs_along_first(np.moveaxis(shaped, axis, 0), speed), 0, axis)
    return shaped.reshape(law.shape)


def _logs_along_first(law: FloatArray, speed: Rate) -> FloatArray:
    forwards = np.array(law)
    backwards = np.full_like(forwards, -np.inf)
    for w in range(1, len(law)):
        forwards[w] = np.logaddexp(forwards[w], forwards[w - 1] - speed)
    for w in range(len(law) - 2, -1, -1):
        backwards[w] = np.logaddexp(backwards[w + 1], law[w + 1]) - speed
    return np.logaddexp(forwards, backwards)
