"""Queries about days: states by hour of the day, and the daily time in one state.

Each time point falls into one hour, so a table of hours and states has a histogram's sensitivity:
2 per time point. Hours are those of the local clock in the data's time zone, summer time included;
without a zone, of the clock in which `begins` is given.

Theorem: docs/theory/query-sensitivity.md
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from fractions import Fraction
from itertools import product
from typing import Any, ClassVar

import numpy as np

from quiltwork.beliefs.grids import parse_duration
from quiltwork.beliefs.zones import local_seconds, parse_zone
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
    """The number of time points in each state, by hour of the day.

    `step` is the length of a step in seconds. `begins` is the time of the series' first time point,
    in seconds after midnight, or with a `zone` since 1970. None: taken from the data or the belief.
    """

    kind: ClassVar[str] = "by_hour"
    step: int | None = None
    begins: int | None = None
    zone: str | None = None

    def states_among(self, cells: tuple[Any, ...]) -> States:
        """Return the states, which are the same in every hour."""
        return tuple(dict.fromkeys(state for _, state in cells))

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.step is not None:
            step: Any = self.step
            step = parse_duration(step) if isinstance(step, str) else step
            object.__setattr__(self, "step", integer(step, "step", 1, _HOUR))
        if self.zone is not None:
            parse_zone(self.zone)
            integer(self.begins, "begins", -_FAR, _FAR)
        elif self.begins is not None:
            object.__setattr__(self, "begins", _seconds_after_midnight(self.begins))

    def evaluate(self, codes: IntArray, states: States) -> Integers:
        """Return the count of every code in every hour, hour after hour."""
        part, size = self.part(codes), len(states)
        positions = self.part(np.arange(len(codes)))
        seconds = (self.begins or 0) + positions * self.step_seconds
        in_cells = part < size
        if (zone := parse_zone(self.zone)) is not None:
            seconds = local_seconds(seconds, zone)
        hours = seconds // _HOUR % HOURS
        return counts_of((hours * size + part)[in_cells], HOURS * size)

    @property
    def step_seconds(self) -> int:
        """The length of a step in seconds.

        Raises:
            InvalidInputError: if it is unknown.
        """
        if self.step is None:
            raise InvalidInputError(
                "The hour of a time point is unknown: neither the belief nor the data give the "
                "length of a step. Give it: "
                + either("queries.by_hour(step='10min').", "--every 10min.")
            )
        return self.step

    def cells(self, states: States) -> tuple[Any, ...]:
        """Return all (hour, state) pairs, hour after hour."""
        return tuple(product((f"{hour:02d}:00" for hour in range(HOURS)), states))

    def present(self, noisy: Integers, states: States, points: int) -> IntArray:
        """Return a matrix with a row for each hour."""
        return as_integers(noisy).reshape(HOURS, len(states))

    def parameters(self) -> dict[str, Any]:
        """Return the declared states, if any, the step, and the begin of the series."""
        zone = {} if self.zone is None else {"zone": self.zone}
        return {**super().parameters(), "step": self.step, "begins": self.begins, **zone}


@dataclass(frozen=True, kw_only=True)
class TimePerDay(Count):
    """The mean number of hours per day in one state, over the window."""

    kind: ClassVar[str] = "time_per_day"

    def grid(self, points: int) -> tuple[Fraction, Fraction]:
        """Return the unit 24/points: the hours per day that one time point stands for."""
        return Fraction(0), Fraction(HOURS, points)

    def divisor(self, points: int) -> int:
        """Return the number of points: the answer is a share of the day."""
        return points

    def present(self, noisy: Integers, states: States, points: int) -> Any:
        """Return hours."""
        return float(Fraction(int(noisy[0]) * HOURS, points))


def _seconds_after_midnight(value: Any) -> int:
    """Parse `06:30`, or seconds after midnight."""
    if not isinstance(value, str):
        return integer(value, "begins", 0, _DAY - 1)
    match = _CLOCK.fullmatch(value.strip())
    if match is None:
        raise InvalidInputError(f"begins is a time of day such as '06:30', not {shortened(value)}.")
    hours, minutes, seconds = (int(part or 0) for part in match.groups())
    return hours * _HOUR + minutes * 60 + seconds
