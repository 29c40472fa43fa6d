"""Dates in place of time points: "January 2026", "17 March 2026, 18:20".

A release keeps from when to when its window is, in ISO 8601 as clocks show it. Other time points
follow from these two by its step; months are named in English whatever the machine's language.
"""

from __future__ import annotations

from datetime import datetime, timedelta
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from quiltwork.series.releases.released_answer import ReleasedAnswer

_MONTHS = (
    *("January", "February", "March", "April", "May", "June", "July", "August"),
    *("September", "October", "November", "December"),
)


def moment_words(moment: datetime, *, offset: bool = False) -> str:
    """Return a moment as people write it, with its offset from UTC if asked for.

    >>> moment_words(datetime(2026, 3, 17, 18, 20))
    '17 March 2026, 18:20'
    """
    text = f"{moment.day} {_MONTHS[moment.month - 1]} {moment.year}, {moment:%H:%M}"
    return f"{text} ({moment.isoformat()[-6:]})" if offset and moment.tzinfo is not None else text


def period_words(period: tuple[str, str]) -> str:
    """Return from when to when a window is; whole days, months and years by their names.

    >>> period_words(("2026-01-01T00:00+01:00", "2026-02-01T00:00+01:00"))
    'January 2026'
    >>> period_words(("2026-03-28T00:00+01:00", "2026-03-30T00:00+02:00"))
    '28 March 2026 to 29 March 2026'
    """
    begin, end = (datetime.fromisoformat(text).replace(tzinfo=None) for text in period)
    if (begin.hour, begin.minute, end.hour, end.minute) != (0, 0, 0, 0) or end <= begin:
        return f"{moment_words(begin)} to {moment_words(end)}"
    last = end - timedelta(days=1)
    whole_months = begin.day == 1 and end.day == 1
    if whole_months and begin.month == 1 and end == datetime(begin.year + 1, 1, 1):
        return str(begin.year)
    if whole_months and (last.year, last.month) == (begin.year, begin.month):
        return _month(begin)
    if whole_months:
        return f"{_month(begin)} to {_month(last)}"
    return _day(begin) if begin.date() == last.date() else f"{_day(begin)} to {_day(last)}"


def _month(moment: datetime) -> str:
    return f"{_MONTHS[moment.month - 1]} {moment.year}"


def _day(moment: datetime) -> str:
    return f"{moment.day} {_month(moment)}"


def node_words(release: ReleasedAnswer, node: int, last: int | None = None) -> str:
    """Name a time point of a release by its date if that is known, else by its number.

    With `last`, name the stretch up to that time point.
    """
    if last is not None and last > node:
        return f"{node_words(release, node)} to {node_words(release, last)}"
    moment = node_moment(release, node)
    return f"time point {node:,}" if moment is None else moment


def node_moment(release: ReleasedAnswer, node: int) -> str | None:
    """Return when a time point begins; None where the times of the release are unknown.

    Counted from the beginning of the window with its offset from UTC, which is shown where clocks
    change within the window: then they may show another hour.
    """
    if release.period is None:
        return None
    begin, end = map(datetime.fromisoformat, release.period)
    start, stop = release.window
    changes = begin.utcoffset() != end.utcoffset()
    whole_days = (end.replace(tzinfo=None) - begin.replace(tzinfo=None)) / (stop - start + 1)
    if whole_days % timedelta(days=1) == timedelta(0):  # local days, some of 23 or 25 hours
        day = begin.replace(tzinfo=None) + (node - start) * whole_days
        return _day(day)
    step = (end - begin) / (stop - start + 1)
    return moment_words(begin + (node - start) * step, offset=changes)
