"""What is to be released, and when: lists of queries on windows."""

from __future__ import annotations

import calendar as _calendar
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from fractions import Fraction
from itertools import pairwise, repeat

from quiltwork.arguments import instance, listed
from quiltwork.beliefs.zones import parse_zone
from quiltwork.errors import InvalidInputError
from quiltwork.exact import Number, integer, positive_fraction
from quiltwork.queries import Query
from quiltwork.queries.query import parse_query

_DAY = 86_400
_MOST = 20_000
"""Of queries in one plan, which takes seconds: half-hourly ones of a year are fewer."""


@dataclass(frozen=True)
class Planned:
    """A query to be answered, on its window.

    Args:
        query: from `qw.queries`, with its window.
        kind: what it is one of, such as "daily"; plans are summed up by kind.
        label: its own name.
        weight: its share of precision: noise is divided by it.
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
    """Read a list of queries.

    Raises:
        InvalidInputError: for something that is no query, and for none at all.
    """
    if isinstance(queries, Query | Planned):
        queries = [queries]
    found = tuple(
        one if isinstance(one, Planned) else Planned(one) for one in listed(queries, "queries")
    )
    if not found:
        raise InvalidInputError("The list of queries is empty; there is nothing to plan.")
    _refuse_many(len(found))
    return found


def _refuse_many(number: int) -> None:
    if number > _MOST:
        raise InvalidInputError(
            f"A plan holds at most {_MOST:,} queries; ask about longer windows, or plan a shorter "
            "series."
        )


def repeated(
    query: Query,
    every: int | Sequence[int],
    length: int,
    kind: str = "",
    weight: Number = 1,
    step: int | None = None,
) -> tuple[Planned, ...]:
    """The same query on one window after another, as many full ones as fit.

    Args:
        query: what to ask on each window.
        every: the length of all windows, or of each of them in turn.
        length: of the series.
        kind: a name for them.
        weight: as in `Planned`.
        step: how far apart windows begin, for windows that roll; after each other if left out.

    >>> from quiltwork import queries
    >>> [(p.query.start, p.query.stop) for p in repeated(queries.histogram(), 4, 10)]
    [(1, 4), (5, 8)]
    >>> [(p.query.start, p.query.stop) for p in repeated(queries.histogram(), 4, 8, step=2)]
    [(1, 4), (3, 6), (5, 8)]
    """
    apart = None if step is None else integer(step, "step", 1)
    points, share = integer(length, "length", 1), positive_fraction(weight, "weight")
    asked = parse_query(query)
    given = listed(every, "every") if isinstance(every, Iterable) else repeat(every)
    start, planned = 1, []
    for number, one in enumerate(given, start=1):
        stop = start + integer(one, "A window's length", 1) - 1
        if stop > points:
            break
        _refuse_many(number)
        name = f"{instance(kind, str, 'kind')} {number}".strip()
        planned.append(Planned(asked.on(start, stop), kind, name, share))
        start = stop + 1 if apart is None else start + apart
    return tuple(planned)


def calendar(
    year: int,
    points_per_day: int,
    daily: Query | None = None,
    weekly: Query | None = None,
    monthly: Query | None = None,
    timezone: str | None = None,
) -> tuple[Planned, ...]:
    """A year of releases, in the order in which their windows end.

    One `daily` query per day, one `weekly` per full week of seven days from January 1 on, one
    `monthly` per calendar month; leave out what is not wanted. The series begins on January 1. With
    a `timezone`, days are those of its clocks: of 23 hours in spring and of 25 in autumn.

    >>> from quiltwork import queries
    >>> histogram = queries.histogram()
    >>> len(calendar(2025, 144, daily=histogram, weekly=histogram, monthly=histogram))
    429
    """
    points = integer(points_per_day, "points_per_day", 1)
    chosen = integer(year, "year", 1, 9998)
    days = _points_of_days(chosen, points, timezone)
    months, first = [], 0
    for month in range(1, 13):
        last = first + _calendar.monthrange(chosen, month)[1]
        months.append(sum(days[first:last]))
        first = last
    weeks = [sum(days[day : day + 7]) for day in range(0, len(days) - 6, 7)]
    planned: list[Planned] = []
    for kind, query, windows in (
        ("daily", daily, days),
        ("weekly", weekly, weeks),
        ("monthly", monthly, months),
    ):
        if query is not None:
            planned += repeated(query, windows, sum(days), kind)
    return tuple(sorted(planned, key=lambda one: (one.query.stop or 0, one.query.start)))


def _points_of_days(year: int, points_per_day: int, timezone: str | None) -> list[int]:
    """Return how many time points each day of a year has by the clocks of a zone.

    Raises:
        InvalidInputError: if a time point does not divide a day whose clocks change.
    """
    length = 366 if _calendar.isleap(year) else 365
    zone = parse_zone(timezone)
    if zone is None:
        return [points_per_day] * length
    midnights = [
        datetime(year, 1, 1, tzinfo=zone) + timedelta(days=day) for day in range(length + 1)
    ]
    seconds = [int(midnight.timestamp()) for midnight in midnights]
    days = []
    for begin, end in pairwise(seconds):
        points, rest = divmod((end - begin) * points_per_day, _DAY)
        if rest:
            raise InvalidInputError(
                f"Clocks in {timezone} change in {year}, and {points_per_day} time points a day do "
                "not divide the change; plan without a time zone, as clocks show the time."
            )
        days.append(points)
    return days
