"""Error bars from the exact distribution of the noise, without approximation or simulation.

Noise is added to integers, so an interval is noisy ± c with the least c that has the requested
coverage, converted to the scale of the value and widened by the rounding error of the grid. It uses
public values alone and costs no privacy.

Theorem: docs/theory/public-grid-queries.md
"""

from __future__ import annotations

import math
from fractions import Fraction
from typing import Any

import numpy as np

from quiltwork.errors import UnsupportedError
from quiltwork.exact import float_down, float_up, proper_fraction
from quiltwork.results import Interval as Interval


def ends(
    noisy: tuple[int, ...], steps: int, offset: Fraction, unit: Fraction, rounding: Fraction
) -> tuple[Any, Any]:
    """Return flat arrays of lower and upper ends; integers stay integers, floats round outwards."""
    if offset == 0 and unit == 1 and rounding == 0:
        centre = np.array(noisy, dtype=np.int64)
        return centre - steps, centre + steps
    low = [float_down(offset + unit * (m - steps) - rounding) for m in noisy]
    high = [float_up(offset + unit * (m + steps) + rounding) for m in noisy]
    return np.array(low), np.array(high)


def shortfall(scale: Fraction, states: int, confidence: object) -> int:
    """Return c such that the chosen state's count is within c of the largest with `confidence`.

    States more than c behind have together at most x/(1+x) of the probability, where
    x = (k−1)·e^(−(c+1)/scale).
    """
    level = proper_fraction(confidence, "confidence")
    if states == 1 or scale == 0:
        return 0
    odds = (states - 1) * level / (1 - level)
    needed = float(scale) * math.log(odds) * (1 + 1e-12) if odds > 1 else 0.0
    return max(0, math.ceil(needed) - 1)


def refuse_label_interval() -> UnsupportedError:
    """Return the error for the interval of a label."""
    return UnsupportedError(
        "The most common state is a label and has no interval; shortfall(0.95) bounds how far its "
        "count may lie below the largest."
    )
