"""Conversion between UTC and local time with clock changes, for arrays of seconds.

Offsets are looked up for every quarter of an hour of the days that occur, since clocks change at
these, and cached per day.
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
    """Return the time zone of a name; None for None."""
    if name is None:
        return None
    try:
        return ZoneInfo(name)
    except (KeyError, ValueError, TypeError, OSError):
        near = get_close_matches(str(name), available_timezones(), 1)
        meant = f"did you mean {near[0]}?" if near else "write for example Europe/Berlin or UTC."
        raise InvalidInputError(f"There is no time zone {shortened(name)}; {meant}") from None


def local_seconds(seconds: NDArray[np.int64], zone: tzinfo) -> NDArray[np.int64]:
    """Return the local times of UTC moments in a zone, as seconds from the epoch.

    >>> winter = np.array([1767225600])  # 2026-01-01
    >>> (local_seconds(winter, ZoneInfo("Europe/Berlin")) - winter).tolist()
    [3600]
    """
    return seconds + _offsets(seconds, zone, _shown_on)[:, 0]


@dataclass
class RepeatedHour:
    """The state of one subject's rows within an hour that occurs twice, in autumn.

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
    """The state carried over from earlier blocks of rows: their number, and repeated hours.

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
    """Return the UTC moments of local times in a zone.

    In the hour that occurs twice in autumn, a subject's first pass in the order of rows is before
    the change. A local time that is skipped in spring counts as after the change.
    """
    early, late = _offsets(seconds, zone, _meant_on).T
    offsets: NDArray[np.int64] = early.copy()
    before = RowsBefore() if before is None else before
    back = np.diff(seconds, prepend=seconds[:1])
    for row in np.flatnonzero(early > late).tolist():
        subject_number, moment = int(subject[row]), int(seconds[row])
        number = before.rows + row + 1 if rows is None else int(rows[row])
        hour = before.hours.setdefault((subject_number, moment // DAY), RepeatedHour())
        from_later = (
            row
            and subject[row - 1] == subject_number
            and early[row - 1] == late[row - 1]
            and -DAY < back[row] < 0
        )
        if from_later or moment < hour.second:
            raise _unordered(
                moment, number, before.name(subject_number), 0 if from_later else hour.repeated
            )
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
    """Return the error of a row whose pass through a repeated hour is ambiguous.

    `repeated` is the row that repeated a time in it: then the rows are in order with a duplicate.
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
    """Return the offsets by `on_day` of each moment's quarter of an hour, one lookup per day."""
    first = int(seconds.min()) // DAY if len(seconds) else 0
    days = seconds // DAY - first
    occurs = np.zeros(int(days.max(initial=0)) + 1, dtype=np.bool_)
    occurs[days] = True
    by_day = [on_day(zone, first + day) for day in np.flatnonzero(occurs).tolist()]
    if not by_day:
        return np.zeros((0, 2), dtype=np.int64)
    day_index = (np.cumsum(occurs) - 1)[days]
    offsets: NDArray[np.int64] = np.stack(by_day)[day_index, seconds % DAY // _QUARTER]
    return offsets


@lru_cache(maxsize=1 << 14)
def _shown_on(zone: tzinfo, day: int) -> NDArray[np.int64]:
    """Return the offset in each quarter of an hour of a UTC day."""
    quarters = range(day * DAY, (day + 1) * DAY, _QUARTER)
    return np.array([[_offset(datetime.fromtimestamp(quarter, zone))] for quarter in quarters])


@lru_cache(maxsize=1 << 14)
def _meant_on(zone: tzinfo, day: int) -> NDArray[np.int64]:
    """Return both possible offsets of each quarter of an hour of a local day, the earlier first."""
    quarters = range(day * DAY, (day + 1) * DAY, _QUARTER)
    local = [(EPOCH + timedelta(seconds=quarter)).replace(tzinfo=zone) for quarter in quarters]
    return np.array([[_offset(time), _offset(time.replace(fold=1))] for time in local])


def _offset(moment: datetime) -> int:
    return int((moment.utcoffset() or timedelta()).total_seconds())
