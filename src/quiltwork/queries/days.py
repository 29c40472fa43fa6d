"""Queries about days: states by hour of the day, and how long a day is spent in one.

Each time point falls into one hour, so a table of hours and states moves as a histogram does: by 2
for every changed point. Hours are those of the clock in the data's time zone, with its summer time;
where no zone is known, of the clock on which the first time point is told.

Theorem: docs/theory/query-sensitivity.md
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from fractions import Fraction
from itertools import product
from typing import Any, ClassVar

import numpy as np

from quiltwork.beliefs.grids import seconds_of
from quiltwork.beliefs.zones import local_seconds, read_zone
from quiltwork.errors import InvalidInputError
from quiltwork.exact import integer, shortened
from quiltwork.queries.cells import Count, Histogram
from quiltwork.queries.query import IntArray, Integers, States, as_integers, counts_of
from quiltwork.wording import either

HOURS = 24
_HOUR = 3600
_FAR = 10**11
_DAY = HOURS * _HOUR
_CLOCK = re.compile(r"([01]?\d|2[0-3]):([0-5]\d)(?::([0-5]\d))?")


@dataclass(frozen=True, kw_only=True)
class ByHour(Histogram):
    """How many time points are in each state, by hour of the day.

    `step` is that of the time points in seconds, and `begins` when the first of the series is, in
    seconds after midnight, or with a `zone` since 1970; None where the data or the belief say so.
    """

    kind: ClassVar[str] = "by_hour"
    step: int | None = None
    begins: int | None = None
    zone: str | None = None

    def states_among(self, cells: tuple[Any, ...]) -> States:
        """The states of one hour, as of every other."""
        return tuple(dict.fromkeys(state for _, state in cells))

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.step is not None:
            given: Any = self.step
            step = seconds_of(given) if isinstance(given, str) else given
            object.__setattr__(self, "step", integer(step, "step", 1, _HOUR))
        if self.zone is not None:
            read_zone(self.zone)
            integer(self.begins, "begins", -_FAR, _FAR)
        elif self.begins is not None:
            object.__setattr__(self, "begins", _of_the_clock(self.begins))

    def evaluate(self, codes: IntArray, states: States) -> Integers:
        """Count every code in every hour, hour after hour."""
        part, size = self.part(codes), len(states)
        places = self.part(np.arange(len(codes)))
        seconds = (self.begins or 0) + places * self.known_step
        known = part < size
        if (zone := read_zone(self.zone)) is not None:
            seconds = local_seconds(seconds, zone)
        hours = seconds // _HOUR % HOURS
        return counts_of((hours * size + part)[known], HOURS * size)

    @property
    def known_step(self) -> int:
        """The step.

        Raises:
            InvalidInputError: if nobody said how long it is.
        """
        if self.step is None:
            raise InvalidInputError(
                "Which hour is a time point in? Neither the belief nor the data say how long a "
                "step is; write " + either("queries.by_hour(step='10min').", "--every 10min.")
            )
        return self.step

    def cells(self, states: States) -> tuple[Any, ...]:
        """All (hour, state) pairs, hour after hour."""
        return tuple(product((f"{hour:02d}:00" for hour in range(HOURS)), states))

    def present(self, noisy: Integers, states: States, points: int) -> IntArray:
        """A matrix with a row for each hour."""
        return as_integers(noisy).reshape(HOURS, len(states))

    def parameters(self) -> dict[str, Any]:
        """The states declared, if any, the step, and when the series begins."""
        zone = {} if self.zone is None else {"zone": self.zone}
        return {**super().parameters(), "step": self.step, "begins": self.begins, **zone}


@dataclass(frozen=True, kw_only=True)
class TimePerDay(Count):
    """How many hours of a day are spent in one state, on average over the window."""

    kind: ClassVar[str] = "time_per_day"

    def grid(self, points: int) -> tuple[Fraction, Fraction]:
        """One time point of so many is as large a part of 24 hours."""
        return Fraction(0), Fraction(HOURS, points)

    def divisor(self, points: int) -> int:
        """Hours are shares of a day."""
        return points

    def present(self, noisy: Integers, states: States, points: int) -> Any:
        """Hours."""
        return float(Fraction(int(noisy[0]) * HOURS, points))


def _of_the_clock(value: Any) -> int:
    """Read `06:30` or seconds after midnight."""
    if not isinstance(value, str):
        return integer(value, "begins", 0, _DAY - 1)
    found = _CLOCK.fullmatch(value.strip())
    if found is None:
        raise InvalidInputError(f"begins is a time of day such as '06:30', not {shortened(value)}.")
    hours, minutes, seconds = (int(part or 0) for part in found.groups())
    return hours * _HOUR + minutes * 60 + seconds
