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
from typing import Literal, TypeAlias, TypeVar
from zoneinfo import ZoneInfo, ZoneInfoNotFoundError

from quiltwork.errors import InvalidInputError
from quiltwork.exact import shortened

Found = TypeVar("Found")
Every: TypeAlias = Literal["day", "week", "month"]
MOST_RUNS = 400
"""Of one schedule: a year of days, planned and debited within seconds."""


@dataclass(frozen=True)
class DataClock:
    """When time point 1 is, and the seconds to the next.

    If `local`, points are counted by what clocks show, without summer time, and `begins` is that
    time as if it were UTC.
    """

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


def read_instant(text: str, name: str) -> datetime:
    """Read an instant with its offset from UTC."""
    found = _read(datetime.fromisoformat, text, name, "an instant such as 2026-01-31T00:00Z")
    if found.tzinfo is None:
        raise InvalidInputError(f"{name} needs its offset from UTC: 2026-01-31T00:00+01:00.")
    return found


def read_day(text: str, name: str) -> date:
    """Read a day."""
    return _read(date.fromisoformat, text, name, "a day such as 2026-01-31")


def read_zone(name: str) -> ZoneInfo:
    """Return a time zone that this machine knows."""
    try:
        return ZoneInfo(name)
    except (ZoneInfoNotFoundError, ValueError, OSError):
        raise InvalidInputError(
            f"{shortened(name)} is no time zone that this machine knows; write an IANA name such "
            "as Europe/Berlin, or UTC."
        ) from None


def occurrences(
    every: Every, at: str, zone: str, first: str, runs: int, clock: DataClock
) -> tuple[Occurrence, ...]:
    """Return all runs in order; each has a time point, none before the first of the data.

    A period begins on the day `first`, a month on its first day, and is published on the day after
    it, `at` that time of the `zone`.
    """
    due = _read(time.fromisoformat, at, "at", "a time of day such as 02:00")
    place, begins = read_zone(zone), read_day(first, "first")
    if due.tzinfo is not None:
        raise InvalidInputError("at is a time of day of the zone: write it without an offset.")
    if every == "month" and begins.day != 1:
        raise InvalidInputError("first must be the first day of a month where every is a month.")
    midnights, step = ZoneInfo("UTC") if clock.local else place, timedelta(seconds=clock.step)
    try:
        days = [_first_day(every, begins, number) for number in range(runs + 1)]
        edges = [1 - (clock.begins - _instant(day, time(), midnights)) // step for day in days]
        dues = [_instant(day, due, place) for day in days[1:]]
    except (OverflowError, ValueError):
        raise InvalidInputError("The schedule reaches beyond the calendar; ask for less.") from None
    if edges[0] < 1 or any(stop <= start for start, stop in pairwise(edges)):
        raise InvalidInputError(
            "A period of the schedule begins before the first time point of the data, or is "
            "shorter than their step; choose a later first day or longer periods."
        )
    return tuple(
        Occurrence(number + 1, dues[number], days[number], edges[number], edges[number + 1] - 1)
        for number in range(runs)
    )


def _first_day(every: Every, first: date, number: int) -> date:
    if every == "month":
        months = first.year * 12 + first.month - 1 + number
        return date(months // 12, months % 12 + 1, 1)
    return first + timedelta(days=number * (7 if every == "week" else 1))


def _instant(day: date, at: time, zone: ZoneInfo) -> datetime:
    return datetime.combine(day, at, zone).astimezone(UTC)


def _read(read: Callable[[str], Found], text: str, name: str, what: str) -> Found:
    try:
        return read(text)
    except ValueError:
        raise InvalidInputError(f"{name} must be {what}, not {shortened(text)}.") from None
