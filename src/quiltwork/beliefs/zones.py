"""Time zones with their clock changes.

Cost: one look at the zone for every quarter of an hour of the days that occur, since clocks change
on these; it is kept.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from datetime import datetime, timedelta, tzinfo
from difflib import get_close_matches
from functools import lru_cache
from zoneinfo import ZoneInfo, available_timezones

import numpy as np
from numpy.typing import NDArray

from quiltwork.errors import InvalidInputError
from quiltwork.exact import shortened
from quiltwork.wording import argument

DAY = 86400
EPOCH = datetime(1970, 1, 1)
_QUARTER = 900


def parse_zone(name: str | None) -> ZoneInfo | None:
    """Return a time zone by its name."""
    if name is None:
        return None
    try:
        return ZoneInfo(name)
    except (KeyError, ValueError, TypeError, OSError):
        near = get_close_matches(str(name), available_timezones(), 1)
        meant = f"did you mean {near[0]}?" if near else "write for example Europe/Berlin or UTC."
        raise InvalidInputError(f"There is no time zone {shortened(name)}; {meant}") from None


def local_seconds(seconds: NDArray[np.int64], zone: tzinfo) -> NDArray[np.int64]:
    """Return what the clocks of a zone show at moments of UTC, as seconds from the epoch.

    >>> winter = np.array([1767225600])  # 2026-01-01
    >>> (local_seconds(winter, ZoneInfo("Europe/Berlin")) - winter).tolist()
    [3600]
    """
    return seconds + _offsets(seconds, zone, _shown_on)[:, 0]


@dataclass
class RepeatedHour:
    """One subject's way through an hour that comes twice.

    Attributes:
        first: the latest time of the first pass, or the day's end once rows went back; -1 before.
        second: the latest time of the second pass; -1 before it.
        repeated: the row that began the second pass by repeating a time; 0 if it went back.
    """

    first: int = -1
    second: int = -1
    repeated: int = 0


@dataclass
class RowsBefore:
    """What earlier blocks of rows leave behind: how many there were, and repeated hours.

    `name` describes a subject by its number, for messages.
    """

    name: Callable[[int], str] = lambda subject: ""
    rows: int = 0
    hours: dict[tuple[int, int], RepeatedHour] = field(default_factory=dict)


def utc_seconds(
    seconds: NDArray[np.int64],
    subject: NDArray[np.integer],
    zone: tzinfo,
    before: RowsBefore | None = None,
    rows: NDArray[np.int64] | None = None,
) -> NDArray[np.int64]:
    """Return the moments of UTC at which the clocks of a zone show these seconds.

    In the hour that comes twice in autumn the first pass of a subject through it, in the order of
    the rows, is before the change. A time that is skipped in spring is read as after the change.
    """
    early, late = _offsets(seconds, zone, _meant_on).T
    offsets: NDArray[np.int64] = early.copy()
    before = RowsBefore() if before is None else before
    back = np.diff(seconds, prepend=seconds[:1])
    for row in np.flatnonzero(early > late).tolist():
        who, moment = int(subject[row]), int(seconds[row])
        number = before.rows + row + 1 if rows is None else int(rows[row])
        hour = before.hours.setdefault((who, moment // DAY), RepeatedHour())
        from_later = (
            row
            and subject[row - 1] == who
            and early[row - 1] == late[row - 1]
            and -DAY < back[row] < 0
        )
        if from_later or moment < hour.second:
            raise _unordered(moment, number, before.name(who), 0 if from_later else hour.repeated)
        if hour.first >= moment:
            offsets[row] = late[row]
            if hour.second < 0:
                hour.repeated = number if hour.first == moment else 0
            if hour.first > moment:
                hour.first = (moment // DAY + 1) * DAY
            hour.second = moment
        else:
            hour.first = moment
    before.rows += len(seconds)
    return seconds - offsets


def _unordered(moment: int, number: int, subject: str, repeated: int) -> InvalidInputError:
    """Return the error of a row that goes back once more in an hour that comes twice.

    `repeated` is the row that repeated a time in it: then the rows are in order, and one is double.
    """
    day = f"{EPOCH + timedelta(seconds=moment):%Y-%m-%d}"
    if repeated:
        return InvalidInputError(
            f"Row {repeated}{subject} repeats the time of an earlier row in the hour that comes "
            f"twice on {day}, so which of the following rows belong to the second pass is unknown. "
            f"Remove the duplicate, read with {argument('duplicates', 'first')}, or write times "
            "with their offset, as 02:30+01:00."
        )
    return InvalidInputError(
        f"Row {number}{subject} goes back in the hour that comes twice on {day} where no clock "
        "does, so which pass is meant is unknown. Sort the rows as they were recorded, the oldest "
        "first, or write times with their offset, as 02:30+01:00."
    )


def _offsets(
    seconds: NDArray[np.int64], zone: tzinfo, on_day: Callable[[tzinfo, int], NDArray[np.int64]]
) -> NDArray[np.int64]:
    """Return what `on_day` has for the quarter of an hour of each moment; one look a day."""
    first = int(seconds.min()) // DAY if len(seconds) else 0
    days = seconds // DAY - first
    occurs = np.zeros(int(days.max(initial=0)) + 1, dtype=np.bool_)
    occurs[days] = True
    known = [on_day(zone, first + day) for day in np.flatnonzero(occurs).tolist()]
    if not known:
        return np.zeros((0, 2), dtype=np.int64)
    place = (np.cumsum(occurs) - 1)[days]
    found: NDArray[np.int64] = np.stack(known)[place, seconds % DAY // _QUARTER]
    return found


@lru_cache(maxsize=1 << 14)
def _shown_on(zone: tzinfo, day: int) -> NDArray[np.int64]:
    """The offset in each quarter of an hour of a day of UTC."""
    quarters = range(day * DAY, (day + 1) * DAY, _QUARTER)
    return np.array([[_offset(datetime.fromtimestamp(one, zone))] for one in quarters])


@lru_cache(maxsize=1 << 14)
def _meant_on(zone: tzinfo, day: int) -> NDArray[np.int64]:
    """The offsets when clocks show a quarter of an hour of a day: the first and the last time."""
    quarters = range(day * DAY, (day + 1) * DAY, _QUARTER)
    shown = [(EPOCH + timedelta(seconds=one)).replace(tzinfo=zone) for one in quarters]
    return np.array([[_offset(one), _offset(one.replace(fold=1))] for one in shown])


def _offset(moment: datetime) -> int:
    return int((moment.utcoffset() or timedelta()).total_seconds())
