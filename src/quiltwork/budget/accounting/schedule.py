"""Schedules of planned releases: lists of queries, each on its window."""

from __future__ import annotations

import calendar as _calendar
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from fractions import Fraction
from itertools import pairwise, repeat

from quiltwork.arguments import instance, listed
from quiltwork.beliefs.zones import parse_zone
from quiltwork.errors import InvalidInputError
from quiltwork.exact import Number, integer, positive_fraction
from quiltwork.queries import Query
from quiltwork.queries.query import parse_query

_SECONDS_PER_DAY = 86_400
_MOST_QUERIES = 20_000
"""Queries in one plan, which takes seconds; half-hourly ones of a year are fewer."""


@dataclass(frozen=True)
class Planned:
    """A query to be answered, on its window.

    Args:
        query: from `qw.queries`, with its window.
        kind: the kind of release, such as "daily"; plans are summarized by kind.
        label: its own name.
        weight: its relative precision: noise is divided by it.

    >>> from quiltwork import queries
    >>> Planned(queries.histogram().on(1, 144), kind="daily", label="Monday").weight
    Fraction(1, 1)
    """

    query: Query
    kind: str = ""
    label: str = ""
    weight: Fraction = Fraction(1)

    def __post_init__(self) -> None:
        parse_query(self.query)
        instance(self.kind, str, "kind")
        instance(self.label, str, "label")
        object.__setattr__(self, "weight", positive_fraction(self.weight, "weight"))
        object.__setattr__(self, "kind", self.kind or self.query.kind)


def as_planned(queries: Iterable[Query | Planned]) -> tuple[Planned, ...]:
    """Parse a list of queries.

    Raises:
        InvalidInputError: for an item that is no query, and for an empty list.
    """
    if isinstance(queries, Query | Planned):
        queries = [queries]
    planned = tuple(
        item if isinstance(item, Planned) else Planned(item) for item in listed(queries, "queries")
    )
    if not planned:
        raise InvalidInputError("The list of queries is empty; there is nothing to plan.")
    _check_number(len(planned))
    return planned


def _check_number(number: int) -> None:
    if number > _MOST_QUERIES:
        raise InvalidInputError(
            f"A plan holds at most {_MOST_QUERIES:,} queries; ask about longer windows, or plan a "
            "shorter series."
        )


def repeated(
    query: Query,
    every: int | Sequence[int],
    length: int,
    kind: str = "",
    weight: Number = 1,
    step: int | None = None,
) -> tuple[Planned, ...]:
    """Return the same query on consecutive windows, as many full ones as fit.

    Args:
        query: the query on each window.
        every: the length of all windows, or of each of them in turn.
        length: of the series.
        kind: a name for them.
        weight: as in `Planned`.
        step: the distance between the starts of rolling windows; by default a window begins where
            the one before ends.

    >>> from quiltwork import queries
    >>> [(p.query.start, p.query.stop) for p in repeated(queries.histogram(), 4, 10)]
    [(1, 4), (5, 8)]
    >>> [(p.query.start, p.query.stop) for p in repeated(queries.histogram(), 4, 8, step=2)]
    [(1, 4), (3, 6), (5, 8)]
    """
    distance = None if step is None else integer(step, "step", 1)
    points, exact_weight = integer(length, "length", 1), positive_fraction(weight, "weight")
    query = parse_query(query)
    sizes = listed(every, "every") if isinstance(every, Iterable) else repeat(every)
    start, planned = 1, []
    for number, size in enumerate(sizes, start=1):
        stop = start + integer(size, "A window's length", 1) - 1
        if stop > points:
            break
        _check_number(number)
        name = f"{instance(kind, str, 'kind')} {number}".strip()
        planned.append(Planned(query.on(start, stop), kind, name, exact_weight))
        start = stop + 1 if distance is None else start + distance
    return tuple(planned)


def calendar(
    year: int,
    points_per_day: int,
    daily: Query | None = None,
    weekly: Query | None = None,
    monthly: Query | None = None,
    timezone: str | None = None,
    begins: datetime | None = None,
    length: int | None = None,
) -> tuple[Planned, ...]:
    """Return a year of releases, in the order in which their windows end.

    One `daily` query per day, one `weekly` per full week of seven days from the first day on, one
    `monthly` per calendar month; each is optional. Days and months are numbered as in the year, so
    that March is "monthly 3". With a `timezone`, days are those of its clocks: of 23 hours in
    spring and of 25 in autumn.

    Args:
        year: the calendar year.
        points_per_day: the number of time points in a day of 24 hours.
        daily: the query for every day.
        weekly: the query for every week.
        monthly: the query for every month.
        timezone: the zone of the clocks; None for days of 24 hours.
        begins: when the first time point begins, by default on January 1 of the year; days, weeks
            and months that are not wholly in the series are left out.
        length: of the series; by default to the end of the year.

    Raises:
        InvalidInputError: if no such day, week or month is in the series.

    >>> from quiltwork import queries
    >>> histogram = queries.histogram()
    >>> len(calendar(2025, 144, daily=histogram, weekly=histogram, monthly=histogram))
    429
    >>> calendar(2026, 144, monthly=histogram, begins=datetime(2026, 3, 1))[0].label
    'monthly 3'
    """
    points = integer(points_per_day, "points_per_day", 1)
    number = integer(year, "year", 1, 9998)
    origin = datetime(number, 1, 1) if begins is None else instance(begins, datetime, "begins")
    days = _points_before_days(number, points, timezone, origin)
    end = days[-1] if length is None else integer(length, "length", 1)
    months = [days[datetime(number, month, 1).timetuple().tm_yday - 1] for month in range(1, 13)]
    first_day = next((day for day, before in enumerate(days) if before >= 0), len(days))
    later_year = f"{number}-" if origin.year < number else ""
    planned: list[Planned] = []
    for kind, query, bounds in (
        ("daily", daily, days),
        ("weekly", weekly, days[first_day::7]),
        ("monthly", monthly, [*months, days[-1]]),
    ):
        if query is None:
            continue
        query = parse_query(query)
        for place, (before, stop) in enumerate(pairwise(bounds), start=1):
            if before >= 0 and stop <= end:
                label = f"{kind} {later_year}{place}"
                planned.append(Planned(query.on(before + 1, stop), kind, label))
    if not planned and any(query is not None for query in (daily, weekly, monthly)):
        raise InvalidInputError(
            f"No whole day, week or month that is asked about is both in {number} and in the "
            f"series, which begins on {origin:%Y-%m-%d} and has {end:,} time points."
        )
    return tuple(sorted(planned, key=lambda item: (item.query.stop or 0, item.query.start)))


def _points_before_days(
    year: int, points_per_day: int, timezone: str | None, origin: datetime
) -> list[int]:
    """Return how many time points begin before each midnight of a year, the last one included.

    Negative before the series begins.

    Raises:
        InvalidInputError: if a time point does not divide a day whose clocks change.
    """
    zone = parse_zone(timezone)
    midnights = [
        datetime(year, 1, 1, tzinfo=zone) + timedelta(days=day)
        for day in range((366 if _calendar.isleap(year) else 365) + 1)
    ]
    if zone is None:
        start, seconds = _utc_seconds(origin), [*map(_utc_seconds, midnights)]
    else:
        start = int((origin if origin.tzinfo else origin.replace(tzinfo=zone)).timestamp())
        seconds = [int(midnight.timestamp()) for midnight in midnights]
    if any((end - begin) * points_per_day % _SECONDS_PER_DAY for begin, end in pairwise(seconds)):
        raise InvalidInputError(
            f"Clocks in {timezone} change in {year}, and {points_per_day} time points a day do "
            "not divide the change; plan without a time zone, as clocks show the time."
        )
    return [-((start - moment) * points_per_day // _SECONDS_PER_DAY) for moment in seconds]


def _utc_seconds(shown: datetime) -> int:
    """Return seconds since 1970 of a local time, as if it were UTC: its days have 24 hours."""
    return int(shown.replace(tzinfo=UTC).timestamp())
