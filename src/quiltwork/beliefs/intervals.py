"""Boxes of rows: which bounds rows that sum to 1 can reach.

Bounds are read as their shortest decimals, so 1 − 0.9 is 0.1 and not 0.09999999999999998, and
results round outward: clipping never cuts off a row that was in the box.
"""

from __future__ import annotations

import math
from decimal import Context, Decimal, localcontext

import numpy as np

from quiltwork.beliefs.matrices import FloatArray
from quiltwork.errors import InvalidInputError

_FEASIBILITY = Decimal("1e-9")
_DIGITS = 400
"""Enough to add any two shortest decimals in [0, 1] exactly."""


def clip_to_row_sums(lower: FloatArray, upper: FloatArray) -> tuple[FloatArray, FloatArray]:
    """Return the tightest bounds with the same rows of sum 1. O(k²).

    lower(x,y) becomes max(lower(x,y), 1 − Σ_{z≠y} upper(x,z)), upper(x,y) becomes
    min(upper(x,y), 1 − Σ_{z≠y} lower(x,z)); one pass reaches the fixed point.

    Raises:
        InvalidInputError: naming the row where lower > upper, or no row of sum 1 fits.
    """
    for row, column in np.argwhere(lower > upper)[:1]:
        raise InvalidInputError(
            f"Row {row + 1}: lower is {float(lower[row, column])!r} and upper is "
            f"{float(upper[row, column])!r} in position {column + 1}; lower must not exceed upper."
        )
    low, high = lower.copy(), upper.copy()
    with localcontext(Context(prec=_DIGITS)):
        for row in range(len(lower)):
            _clip_row(low[row], high[row], row + 1)
    return low, high


def _clip_row(low: FloatArray, high: FloatArray, row: int) -> None:
    lows = [Decimal(repr(value)) for value in low.tolist()]
    highs = [Decimal(repr(value)) for value in high.tolist()]
    least, most = sum(lows, Decimal(0)), sum(highs, Decimal(0))
    if least > 1 + _FEASIBILITY or most < 1 - _FEASIBILITY:
        name, total = ("lower", least) if least > 1 else ("upper", most)
        raise InvalidInputError(
            f"Row {row} of {name} sums to {float(total):.10g}, so no distribution fits between "
            "lower and upper; lower must sum to at most 1 and upper to at least 1."
        )
    for column, (a, b) in enumerate(zip(lows, highs, strict=True)):
        need, room = 1 - (most - b), 1 - (least - a)
        if need > a:
            low[column] = min(_outward(need, -math.inf), float(high[column]))
        if room < b:
            high[column] = max(_outward(room, math.inf), float(low[column]))


def _outward(value: Decimal, direction: float) -> float:
    """Return the nearest float if its shortest decimal is not inside of `value`, else the next."""
    nearest = float(value)
    inside = Decimal(repr(nearest)) > value if direction < 0 else Decimal(repr(nearest)) < value
    return min(1.0, max(0.0, math.nextafter(nearest, direction) if inside else nearest))
