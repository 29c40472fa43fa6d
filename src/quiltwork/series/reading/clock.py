"""Local time: zones with their clock changes, and windows as people say them.

A series counts seconds from the epoch in UTC, or on the clock of its place where no zone is given
or a time point is a day: local days have 23 or 25 hours when clocks change. Cost: one look at the
zone for every quarter of an hour of the days that occur, since clocks change on these; it is kept.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass
from datetime import datetime, timedelta, tzinfo
from difflib import get_close_matches
from functools import lru_cache
from zoneinfo import ZoneInfo, available_timezones

import numpy as np
from numpy.typing import NDArray

from quiltwork.errors import InvalidInputError
from quiltwork.exact import shortened

DAY = 86400
_QUARTER = 900
_EPOCH = datetime(1970, 1, 1)
_DAY = r"\d{4}(?:-\d\d(?:-\d\d)?)?"  # or month, or year
_MOMENT = rf"({_DAY})(?:[T ](\d\d:\d\d))?"
_RANGE = re.compile(rf"{_MOMENT}\s*(?:\.\.|/|:|–|to)\s*{_MOMENT}")
_LAST = re.compile(r"last\s+(\d+)?\s*(hour|day|week)s?", re.IGNORECASE)
_HOURS = re.compile(r"(\d\d?:\d\d)\s*[-–]\s*(\d\d?:\d\d)")
_NAMES = ("monday", "tuesday", "wednesday", "thursday", "friday", "saturday", "sunday")
_GROUPS = {"weekdays": range(5), "weekends": range(5, 7), "daily": range(7), "": range(7)}
_HELP = (
    "write positions START:STOP, days 2026-03-01:2026-03-07 (both included), a month 2026-03, "
    "'last 7 days', or 'Mondays 18:00-22:00'"
)


def read_zone(name: str | None) -> ZoneInfo | None:
    """Return a time zone by its name.

    Raises:
        InvalidInputError: if there is none of that name.
    """
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


def utc_seconds(
    seconds: NDArray[np.int64],
    subject: NDArray[np.integer],
    zone: tzinfo,
    passed: dict[tuple[int, int], tuple[int, int]] | None = None,
) -> NDArray[np.int64]:
    """Return the moments of UTC at which the clocks of a zone show these seconds.

    In the hour that comes twice in autumn the first pass of a subject through it, in the order of
    the rows, is before the change. A time that is skipped in spring is read as after the change.
    `passed` remembers these hours from one block of rows to the next: the latest time of the first
    pass, or the day's end once rows went back, and that of the second pass or -1.

    Raises:
        InvalidInputError: if rows go back in that hour otherwise than from one pass to the other.
    """
    early, late = _offsets(seconds, zone, _meant_on).T
    offsets: NDArray[np.int64] = early.copy()
    passed = {} if passed is None else passed
    back = np.diff(seconds, prepend=seconds[:1])
    for row in np.flatnonzero(early > late).tolist():
        key, moment = (int(subject[row]), int(seconds[row]) // DAY), int(seconds[row])
        first, second = passed.get(key, (-1, -1))
        from_later = row and early[row - 1] == late[row - 1] and -DAY < back[row] < 0
        if from_later or moment < second:
            raise InvalidInputError(
                f"In the hour that comes twice on {_EPOCH + timedelta(seconds=moment):%Y-%m-%d} "
                "rows are not in order, so which hour is meant is unknown; sort them as they were "
                "recorded, the oldest first, or write times with their offset, as 02:30+01:00."
            )
        if first >= moment:
            offsets[row] = late[row]
            passed[key] = (first if first == moment else key[1] * DAY + DAY, moment)
        else:
            passed[key] = (moment, second)
    return seconds - offsets


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
    shown = [(_EPOCH + timedelta(seconds=one)).replace(tzinfo=zone) for one in quarters]
    return np.array([[_offset(one), _offset(one.replace(fold=1))] for one in shown])


def _offset(moment: datetime) -> int:
    return int((moment.utcoffset() or timedelta()).total_seconds())


@dataclass(frozen=True)
class Clock:
    """How the seconds of a series are to be read.

    Attributes:
        zone: the name of the time zone; None is the clock that the times were written by.
        local: whether seconds are those that clocks show, not those of UTC.
    """

    zone: str | None = None
    local: bool = True

    def seconds(self, shown: datetime) -> int:
        """Return the seconds of the series when clocks show this, the first time they do."""
        place = read_zone(self.zone)
        if self.local or place is None:
            return int((shown - _EPOCH).total_seconds())
        return int(shown.replace(tzinfo=place).timestamp())

    def shown(self, seconds: int) -> datetime:
        """Return what clocks show; with an offset where the zone is known and times are in UTC."""
        place = read_zone(self.zone)
        if self.local or place is None:
            return _EPOCH + timedelta(seconds=seconds)
        return datetime.fromtimestamp(seconds, place)

    def written(self, seconds: int) -> str:
        """Return a moment in ISO 8601, with its offset where the zone is known."""
        place = read_zone(self.zone)
        moment = self.shown(seconds)
        if place is not None and moment.tzinfo is None:
            moment = moment.replace(tzinfo=place)
        return moment.isoformat(timespec="minutes")


def series_clock(zone: str | None, step: int | None) -> Clock:
    """Return the clock of a series: by what clocks show without a zone, and for whole days."""
    return Clock(zone, zone is None or (step or 1) % DAY == 0)


@dataclass(frozen=True)
class TimePoints:
    """The time points of sequences that begin together: `count` steps from `start` on."""

    start: int
    step: int
    count: int
    clock: Clock

    def windows(self, text: str) -> list[tuple[int, int]]:
        """Return the runs of time points, 1-based and inclusive, that words mean.

        A time point belongs to a window if it begins in it.

        Raises:
            InvalidInputError: for words that are not understood, or mean no time point.

        >>> hours = TimePoints(0, 3600, 24 * 14, Clock())  # from Thursday, 1 January 1970
        >>> hours.windows("1970-01-02:1970-01-03"), hours.windows("Mondays 18:00-22:00")
        ([(25, 72)], [(115, 118), (283, 286)])
        """
        words = text.strip()
        if (span := self.span(words)) is not None:
            found = [self._points(*span)]
        else:
            found = self._recurring(words)
        if not found or found[0][0] > found[0][1]:
            raise InvalidInputError(
                f"No time point is in {text!r}: the series is from "
                f"{self.clock.written(self.start)} to "
                f"{self.clock.written(self.start + self.step * self.count)}."
            )
        return found

    def _points(self, begin: int, end: int) -> tuple[int, int]:
        first = -((self.start - begin) // self.step) + 1
        last = -((self.start - end) // self.step)
        return max(first, 1), min(last, self.count)

    def span(self, text: str) -> tuple[int, int] | None:
        """Return from when to before when, in seconds of the series, if it is one span of time."""
        if found := _RANGE.fullmatch(text):
            begin, end = self._begin(found[1], found[2]), self._end(found[3], found[4])
            if end <= begin:
                raise InvalidInputError(f"The window {text!r} ends before it begins.")
            return begin, end
        if re.fullmatch(_DAY, text):
            return self._begin(text, None), self._end(text, None)
        if found := _LAST.fullmatch(text):
            return self._last(int(found[1] or 1), found[2].lower())
        return None

    def _begin(self, day: str, time: str | None) -> int:
        return self.clock.seconds(_moment(day, time))

    def _end(self, day: str, time: str | None) -> int:
        shown = _moment(day, time)
        return self.clock.seconds(shown if time else _after(shown, day.count("-")))

    def _last(self, number: int, unit: str) -> tuple[int, int]:
        end = self.start + self.step * self.count
        if unit == "hour":
            return end - 3600 * number, end
        final = self.clock.shown(end - 1).replace(tzinfo=None)
        days = number * (7 if unit == "week" else 1)
        midnight = datetime.combine(final.date() - timedelta(days=days - 1), datetime.min.time())
        return self.clock.seconds(midnight), end

    def _recurring(self, text: str) -> list[tuple[int, int]]:
        """Return the runs of time points that begin on such days, at such times of the clock."""
        chosen, opens, closes = _recurrence(text)
        shown = self.start + self.step * np.arange(self.count)
        place = read_zone(self.clock.zone)
        if place is not None and not self.clock.local:
            shown = local_seconds(shown, place)
        day, time = (shown // DAY + 3) % 7, shown % DAY  # the epoch began on a Thursday
        asked = np.isin(day, list(chosen))
        if opens < closes:
            inside = asked & (time >= opens) & (time < closes)
        else:  # over midnight
            eve = np.isin((day - 1) % 7, list(chosen))
            inside = (asked & (time >= opens)) | (eve & (time < closes))
        turns = np.flatnonzero(np.diff(inside, prepend=False, append=False))
        return [(int(a) + 1, int(b)) for a, b in zip(turns[::2], turns[1::2], strict=True)]


def is_span(text: str) -> bool:
    """Whether words mean one span of time; 1000:2000 are positions."""
    if re.fullmatch(r"\d+\s*:\s*\d+", text.strip()):
        return False
    return TimePoints(0, 1, 1, Clock()).span(text.strip()) is not None


def check_window(text: str) -> None:
    """Refuse words that mean no window, whatever the series.

    Raises:
        InvalidInputError: with those that do.
    """
    if not is_span(text):
        _recurrence(text.strip())


def _recurrence(text: str) -> tuple[set[int], int, int]:
    """Return the days of the week, Monday being 0, and from when to before when on these."""
    hours = _HOURS.search(text)
    words = text[: hours.start()] if hours else text
    meant = [_days(word) for word in re.split(r"[,\s]+", words.lower().strip())]
    if not all(meant) or (hours and hours.end() != len(text)) or not text:
        raise InvalidInputError(f"Cannot read the window {text!r}; {_HELP}.")
    opens, closes = (_clock_time(hours[1]), _clock_time(hours[2])) if hours else (0, DAY)
    return {day for days in meant for day in days}, opens, closes


def _days(word: str) -> list[int]:
    """Return the days of the week that a word means, Monday being 0; none if it is no such word."""
    if word in _GROUPS:
        return list(_GROUPS[word])
    return [i for i, name in enumerate(_NAMES) if word in (name, f"{name}s", name[:3])]


def _moment(day: str, time: str | None) -> datetime:
    try:
        if time is not None and day.count("-") < 2:
            raise ValueError("a time of day goes with a day")
        return datetime.fromisoformat(f"{day}{'-01' * (2 - day.count('-'))}T{time or '00:00'}")
    except ValueError as error:
        shown = day if time is None else f"{day} {time}"
        raise InvalidInputError(f"{shown} is no moment: {error}.") from None


def _after(shown: datetime, dashes: int) -> datetime:
    """Return when the next year, month or day begins, by the dashes in how this one is written."""
    try:
        later = shown + timedelta(days=(366, 31, 1)[dashes])
    except OverflowError:
        raise InvalidInputError(f"The year {shown.year} has no end that can be told.") from None
    return later if dashes == 2 else later.replace(month=later.month if dashes else 1, day=1)


def _clock_time(text: str) -> int:
    hours, minutes = map(int, text.split(":"))
    if 60 * hours + minutes > 24 * 60 or minutes > 59:
        raise InvalidInputError(f"{text!r} is no time of day; {_HELP}.")
    return 3600 * hours + 60 * minutes


def period_seconds(text: str, clock: Clock) -> tuple[int, int]:
    """Return from when to before when public days such as 2026-03-01:2026-03-31, or 2026-03, are.

    Raises:
        InvalidInputError: if it is none.
    """
    words = text.strip()
    span = None if _LAST.fullmatch(words) else TimePoints(0, 1, 1, clock).span(words)
    if span is None:
        raise InvalidInputError(
            f"Cannot read the days {text!r}; write 2026-03-01:2026-03-31, or a month 2026-03."
        )
    return span
