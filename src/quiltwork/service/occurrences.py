"""When a schedule runs, and which time points each run is about.

"Every day at 02:00" publishes the day before: a period from midnight to midnight of a time zone,
which may have 23 or 25 hours. A time that the clock leaves out counts as the one an hour later, a
time that it shows twice as the first; so every period has one run.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from datetime import UTC, date, datetime, time, timedelta
from itertools import pairwise
from typing import Literal, TypeAlias, TypeVar, cast, get_args
from zoneinfo import ZoneInfo, ZoneInfoNotFoundError

from quiltwork.arguments import choice
from quiltwork.errors import InvalidInputError
from quiltwork.exact import integer, shortened

Found = TypeVar("Found")
Every: TypeAlias = Literal["day", "week", "month"]
MOST_RUNS = 400
"""Of one schedule: a year of days, planned and debited within seconds."""


@dataclass(frozen=True)
class Timing:
    """Which periods are published, and when.

    Attributes:
        every: how long a period is; a month begins on its first day.
        at: the time of day, "02:00", on the day after a period.
        zone: the IANA name of the time zone, "Europe/Berlin".
        first: the first day of the first period.
        runs: how many periods.
        begins: the instant of time point 1.
        step: the seconds between two time points.
        local: whether time points are counted by what clocks show, which has no summer time; then
            `begins` is that time, as if it were UTC.
    """

    every: Every
    at: time
    zone: ZoneInfo
    first: date
    runs: int
    begins: datetime
    step: int
    local: bool = False


@dataclass(frozen=True)
class Occurrence:
    """One run: its number from 1, when it is due, its period's first day and time points."""

    number: int
    due: datetime
    day: date
    start: int
    stop: int


def read_timing(
    every: str,
    at: str,
    zone: str,
    first: str,
    runs: int,
    begins: datetime,
    step: int,
    local: bool = False,
) -> Timing:
    """Read a timing as it is written in a request.

    Raises:
        InvalidInputError: for what is no time, day, zone or number of runs.
    """
    found = Timing(
        cast("Every", choice(every, get_args(Every), "every")),
        _read(time.fromisoformat, at, "at", "a time of day such as 02:00"),
        read_zone(zone),
        read_day(first, "first"),
        integer(runs, "runs", 1, MOST_RUNS),
        begins,
        integer(step, "step", 1),
        local,
    )
    if found.at.tzinfo is not None:
        raise InvalidInputError("at is a time of day of the zone: write it without an offset.")
    if every == "month" and found.first.day != 1:
        raise InvalidInputError("first must be the first day of a month where every is a month.")
    return found


def read_instant(text: str, name: str) -> datetime:
    """Read an instant with its offset from UTC.

    Raises:
        InvalidInputError: for anything else.
    """
    found = _read(datetime.fromisoformat, text, name, "an instant such as 2026-01-31T00:00Z")
    if found.tzinfo is None:
        raise InvalidInputError(f"{name} needs its offset from UTC: 2026-01-31T00:00+01:00.")
    return found


def read_day(text: str, name: str) -> date:
    """Read a day.

    Raises:
        InvalidInputError: for anything else.
    """
    return _read(date.fromisoformat, text, name, "a day such as 2026-01-31")


def read_zone(name: str) -> ZoneInfo:
    """Return a time zone.

    Raises:
        InvalidInputError: if this machine knows none of that name.
    """
    try:
        return ZoneInfo(name)
    except (ZoneInfoNotFoundError, ValueError, OSError):
        raise InvalidInputError(
            f"{shortened(name)} is no time zone that this machine knows; write an IANA name such "
            "as Europe/Berlin, or UTC."
        ) from None


def occurrences(timing: Timing) -> tuple[Occurrence, ...]:
    """Return all runs in order.

    Raises:
        InvalidInputError: if a period has no time point, lies before the first one, or is beyond
            the calendar.
    """
    try:
        days = [_first_day(timing, number) for number in range(timing.runs + 1)]
        clock = ZoneInfo("UTC") if timing.local else timing.zone
        edges = [_point_from(timing, _instant(day, time(), clock)) for day in days]
        dues = [_instant(day, timing.at, timing.zone) for day in days[1:]]
    except (OverflowError, ValueError):
        raise InvalidInputError("The schedule reaches beyond the calendar; ask for less.") from None
    if edges[0] < 1 or any(stop <= start for start, stop in pairwise(edges)):
        raise InvalidInputError(
            "A period of the schedule begins before the first time point of the data, or is "
            "shorter than their step; choose a later first day or longer periods."
        )
    return tuple(
        Occurrence(number + 1, dues[number], days[number], edges[number], edges[number + 1] - 1)
        for number in range(timing.runs)
    )


def _first_day(timing: Timing, number: int) -> date:
    if timing.every == "month":
        months = timing.first.year * 12 + timing.first.month - 1 + number
        return date(months // 12, months % 12 + 1, 1)
    return timing.first + timedelta(days=number * (7 if timing.every == "week" else 1))


def _instant(day: date, at: time, zone: ZoneInfo) -> datetime:
    return datetime.combine(day, at, zone).astimezone(UTC)


def _point_from(timing: Timing, instant: datetime) -> int:
    """Return the first time point at or after an instant."""
    return 1 - (timing.begins - instant) // timedelta(seconds=timing.step)


def _read(read: Callable[[str], Found], text: str, name: str, what: str) -> Found:
    try:
        return read(text)
    except ValueError:
        raise InvalidInputError(f"{name} must be {what}, not {shortened(text)}.") from None
