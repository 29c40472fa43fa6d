"""Axes: scales and tick marks, which map data to coordinates of a drawing."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

_LETTER = 6.5  # width of an average letter in a drawing 720 wide
_SHORT = 250.0  # an axis with room for fewer ticks


@dataclass(frozen=True)
class Axis:
    """A linear or logarithmic axis from `low` to `high`, drawn from `start` to `stop`.

    With `names`, the values 0, 1, … are labelled by them instead of numbers.
    """

    low: float
    high: float
    start: float
    stop: float
    logarithmic: bool = False
    names: tuple[str, ...] = ()

    def place(self, value: float) -> float:
        """Return the coordinate of a value."""
        low, high, position = (self._measure(x) for x in (self.low, self.high, value))
        return self.start + (position - low) / (high - low) * (self.stop - self.start)

    def ticks(self) -> list[float]:
        """Return round values within the axis, about six at most; one for each name."""
        if self.names:
            return [float(value) for value in range(len(self.names))]
        ticks = _decades if self.logarithmic else _round
        return ticks(self.low, self.high, 5 if abs(self.stop - self.start) > _SHORT else 3)

    def labels(self) -> list[str]:
        """Return the labels of the ticks, leaving out names that would overlap."""
        if not self.names:
            return [label(tick) for tick in self.ticks()]
        every = 1 + int(
            _LETTER
            * (2 + max(map(len, self.names)))
            * len(self.names)
            / abs(self.stop - self.start)
        )
        return [name if i % every == 0 else "" for i, name in enumerate(self.names)]

    def _measure(self, value: float) -> float:
        return math.log10(value) if self.logarithmic else value


def axis_for(
    values: Sequence[float], start: float, stop: float, *, logarithmic: bool, zero: bool = False
) -> Axis:
    """Choose an axis that contains all values; `zero` makes it include 0."""
    usable = [v for v in values if math.isfinite(v) and (v > 0 or not logarithmic)]
    low, high = (min(usable), max(usable)) if usable else (0.0, 1.0)
    if logarithmic:
        low, high = (low, high) if usable else (1.0, 10.0)
        return Axis(low / 1.15, high * 1.15, start, stop, logarithmic=True)
    if zero:
        low, high = min(low, 0.0), max(high, 0.0)
    if low == high:
        high = low + 1.0
    margin = 0.04 * (high - low)
    return Axis(low if low == 0 else low - margin, high + margin, start, stop)


def label(value: float) -> str:
    """Return the short text of a tick's value.

    >>> label(1000.0), label(0.25), label(1e-7)
    ('1,000', '0.25', '1e-07')
    """
    if value == int(value) and abs(value) < 1e7:
        return f"{int(value):,}"
    return f"{value:.4g}"


def _round(low: float, high: float, most: int) -> list[float]:
    rough = (high - low) / most
    unit = 10.0 ** math.floor(math.log10(rough))
    step = next(unit * factor for factor in (1, 2, 5, 10) if unit * factor >= rough)
    first, last = math.ceil(low / step), math.floor(high / step)
    return [round(i * step, 12) for i in range(first, last + 1)]


def _decades(low: float, high: float, most: int) -> list[float]:
    first, last = math.ceil(math.log10(low)), math.floor(math.log10(high))
    if last - first < 1:
        return [
            v
            for e in range(first - 1, last + 2)
            for m in (1, 2, 5)
            if low <= (v := m * 10.0**e) <= high
        ]
    stride = max(1, math.ceil((last - first) / (most + 1)))
    return [10.0**e for e in range(first, last + 1, stride)]
