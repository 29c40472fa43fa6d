"""What is to be released, and when: lists of queries on windows."""

from __future__ import annotations

import calendar as _calendar
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from fractions import Fraction

from quiltwork.errors import InvalidInputError
from quiltwork.exact import Number, integer, positive_fraction
from quiltwork.queries import Query


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
        if not isinstance(self.query, Query):
            raise InvalidInputError(
                f"{self.query!r} is no query; give one of qw.queries, such as queries.histogram()."
            )
        object.__setattr__(self, "weight", positive_fraction(self.weight, "weight"))
        object.__setattr__(self, "kind", self.kind or self.query.kind)


def as_planned(queries: Iterable[Query | Planned]) -> tuple[Planned, ...]:
    """Read a list of queries.

    Raises:
        InvalidInputError: for something that is no query, and for none at all.
    """
    if isinstance(queries, Query | Planned):
        queries = [queries]
    found = tuple(one if isinstance(one, Planned) else Planned(one) for one in queries)
    if not found:
        raise InvalidInputError("The list of queries is empty; there is nothing to plan.")
    return found


def repeated(
    query: Query, every: int | Sequence[int], length: int, kind: str = "", weight: Number = 1
) -> tuple[Planned, ...]:
    """The same query on one window after another, as many full ones as fit.

    Args:
        query: what to ask on each window.
        every: the length of all windows, or of each of them in turn.
        length: of the series.
        kind: a name for them.
        weight: as in `Planned`.

    >>> from quiltwork import queries
    >>> [(p.query.start, p.query.stop) for p in repeated(queries.histogram(), 4, 10)]
    [(1, 4), (5, 8)]
    """
    points = integer(length, "length", 1)
    if isinstance(every, int):
        sizes = [integer(every, "every", 1)] * (points // every)
    else:
        sizes = [integer(one, "A window's length", 1) for one in every]
    start, planned = 1, []
    for number, size in enumerate(sizes, start=1):
        stop = start + size - 1
        if stop > points:
            break
        name = f"{kind} {number}".strip()
        planned.append(Planned(query.on(start, stop), kind, name, Fraction(1)))
        start = stop + 1
    share = positive_fraction(weight, "weight")
    return tuple(Planned(p.query, p.kind, p.label, share) for p in planned)


def calendar(
    year: int,
    points_per_day: int,
    daily: Query | None = None,
    weekly: Query | None = None,
    monthly: Query | None = None,
) -> tuple[Planned, ...]:
    """A year of releases, in the order in which their windows end.

    One `daily` query per day, one `weekly` per full week of seven days from January 1 on, one
    `monthly` per calendar month; leave out what is not wanted. The series begins on January 1.

    >>> from quiltwork import queries
    >>> histogram = queries.histogram()
    >>> len(calendar(2025, 144, daily=histogram, weekly=histogram, monthly=histogram))
    429
    """
    day = integer(points_per_day, "points_per_day", 1)
    months = [_calendar.monthrange(integer(year, "year", 1), month)[1] for month in range(1, 13)]
    length = day * sum(months)
    planned: list[Planned] = []
    if daily is not None:
        planned += repeated(daily, day, length, "daily")
    if weekly is not None:
        planned += repeated(weekly, 7 * day, length, "weekly")
    if monthly is not None:
        planned += repeated(monthly, [day * days for days in months], length, "monthly")
    return tuple(sorted(planned, key=lambda one: (one.query.stop or 0, one.query.start)))
