"""Local time: the clock of a series, and windows in words.

A series counts seconds from the epoch in UTC, or on the clock of its place where no zone is given
or a time point is a day: local days have 23 or 25 hours when clocks change.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from datetime import datetime, timedelta

import numpy as np

from quiltwork.beliefs.zones import DAY, EPOCH, local_seconds, parse_zone
from quiltwork.errors import InvalidInputError

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


@dataclass(frozen=True)
class Clock:
    """The time zone of a series, and whether its seconds are local time or UTC.

    Attributes:
        zone: the name of the time zone; None where times have no known zone.
        local: whether seconds count local time, as clocks show it, not UTC.
    """

    zone: str | None = None
    local: bool = True

    def seconds(self, shown: datetime) -> int:
        """Return the seconds at which clocks show a local time, the first time they do."""
        place = parse_zone(self.zone)
        if self.local or place is None:
            return int((shown - EPOCH).total_seconds())
        return int(shown.replace(tzinfo=place).timestamp())

    def shown(self, seconds: int) -> datetime:
        """Return the local time; with its offset where the zone is known and seconds are UTC."""
        place = parse_zone(self.zone)
        if self.local or place is None:
            return EPOCH + timedelta(seconds=seconds)
        return datetime.fromtimestamp(seconds, place)

    def written(self, seconds: int) -> str:
        """Return a moment in ISO 8601, with its offset where the zone is known."""
        place = parse_zone(self.zone)
        moment = self.shown(seconds)
        if place is not None and moment.tzinfo is None:
            moment = moment.replace(tzinfo=place)
        return moment.isoformat(timespec="minutes")


def series_clock(zone: str | None, step: int | None) -> Clock:
    """Return the clock of a series: local time without a zone and for steps of whole days."""
    return Clock(zone, zone is None or (step or 1) % DAY == 0)


@dataclass(frozen=True)
class TimePoints:
    """The time points of sequences with a common start: `count` steps from `start` on."""

    start: int
    step: int
    count: int
    clock: Clock

    def windows(self, text: str) -> list[tuple[int, int]]:
        """Return the runs of time points, 1-based and inclusive, that a window in words covers.

        A time point is in a window if it begins in it.

        >>> hours = TimePoints(0, 3600, 24 * 14, Clock())  # from Thursday, 1 January 1970
        >>> hours.windows("1970-01-02:1970-01-03"), hours.windows("Mondays 18:00-22:00")
        ([(25, 72)], [(115, 118), (283, 286)])
        """
        words = text.strip()
        if (span := self.span(words)) is not None:
            runs = [self._points(*span)]
        else:
            runs = self._recurring(words)
        if not runs or runs[0][0] > runs[0][1]:
            raise InvalidInputError(
                f"No time point is in {text!r}: the series is from "
                f"{self.clock.written(self.start)} to "
                f"{self.clock.written(self.start + self.step * self.count)}."
            )
        return runs

    def _points(self, begin: int, end: int) -> tuple[int, int]:
        first = -((self.start - begin) // self.step) + 1
        last = -((self.start - end) // self.step)
        return max(first, 1), min(last, self.count)

    def span(self, text: str) -> tuple[int, int] | None:
        """Return the first second of a span of time and the second after it; None if it recurs."""
        if parts := _RANGE.fullmatch(text):
            begin, end = self._begin(parts[1], parts[2]), self._end(parts[3], parts[4])
            if end <= begin:
                raise InvalidInputError(f"The window {text!r} ends before it begins.")
            return begin, end
        if re.fullmatch(_DAY, text):
            return self._begin(text, None), self._end(text, None)
        if parts := _LAST.fullmatch(text):
            return self._last(int(parts[1] or 1), parts[2].lower())
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
        """Return the runs of time points on these days of the week, at these times of day."""
        chosen, opens, closes = _recurrence(text)
        shown = self.start + self.step * np.arange(self.count)
        place = parse_zone(self.clock.zone)
        if place is not None and not self.clock.local:
            shown = local_seconds(shown, place)
        day, time = (shown // DAY + 3) % 7, shown % DAY  # the epoch began on a Thursday
        on_day = np.isin(day, list(chosen))
        if opens < closes:
            inside = on_day & (time >= opens) & (time < closes)
        else:  # the window goes over midnight
            day_after = np.isin((day - 1) % 7, list(chosen))
            inside = (on_day & (time >= opens)) | (day_after & (time < closes))
        turns = np.flatnonzero(np.diff(inside, prepend=False, append=False))
        return [(int(a) + 1, int(b)) for a, b in zip(turns[::2], turns[1::2], strict=True)]


def is_span(text: str) -> bool:
    """Return whether a window is one span of time; 1000:2000 are positions."""
    if re.fullmatch(r"\d+\s*:\s*\d+", text.strip()):
        return False
    return TimePoints(0, 1, 1, Clock()).span(text.strip()) is not None


def check_window(text: str) -> None:
    """Refuse words that are not a window of any series."""
    if not is_span(text):
        _recurrence(text.strip())


def _recurrence(text: str) -> tuple[set[int], int, int]:
    """Return the days of the week (Monday is 0), and the seconds of day that begin and end it."""
    hours = _HOURS.search(text)
    words = text[: hours.start()] if hours else text
    weekdays = [_days(word) for word in re.split(r"[,\s]+", words.lower().strip())]
    if not all(weekdays) or (hours and hours.end() != len(text)) or not text:
        raise InvalidInputError(f"Cannot read the window {text!r}; {_HELP}.")
    opens, closes = (_clock_time(hours[1]), _clock_time(hours[2])) if hours else (0, DAY)
    return {day for days in weekdays for day in days}, opens, closes


def _days(word: str) -> list[int]:
    """Return the days of the week that a word names (Monday is 0); empty for other words."""
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
        raise InvalidInputError(f"{shown} is not a date or time: {error}.") from None


def _after(shown: datetime, dashes: int) -> datetime:
    """Return when the next year, month or day begins; `dashes` in the text say which it is."""
    try:
        later = shown + timedelta(days=(366, 31, 1)[dashes])
    except OverflowError:
        raise InvalidInputError(f"The year {shown.year} is out of range.") from None
    return later if dashes == 2 else later.replace(month=later.month if dashes else 1, day=1)


def _clock_time(text: str) -> int:
    hours, minutes = map(int, text.split(":"))
    if 60 * hours + minutes > 24 * 60 or minutes > 59:
        raise InvalidInputError(f"{text!r} is not a time of day; {_HELP}.")
    return 3600 * hours + 60 * minutes


def period_seconds(text: str, clock: Clock) -> tuple[int, int]:
    """Return the first second of public days 2026-03-01:2026-03-31, and the one after the last."""
    words = text.strip()
    span = None if _LAST.fullmatch(words) else TimePoints(0, 1, 1, clock).span(words)
    if span is None:
        raise InvalidInputError(
            f"Cannot read the days {text!r}; write 2026-03-01:2026-03-31, or a month 2026-03."
        )
    return span
