"""The records of a source: whose, when, and which label or number; not yet in order."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np
from numpy.typing import NDArray

from quiltwork.arguments import instance, listed
from quiltwork.beliefs.zones import RowsBefore, local_seconds, read_zone, utc_seconds
from quiltwork.delimited import DialectOptions
from quiltwork.errors import InvalidInputError
from quiltwork.series.reading.binning import Bins
from quiltwork.series.reading.clock import Clock
from quiltwork.series.reading.collectors import (
    SINCE_1970,
    DurationCollector,
    LabelCollector,
    NumberCollector,
    TimeCollector,
)
from quiltwork.series.reading.columns import read_columns
from quiltwork.series.reading.streamed import Block, check_points, spread, subject_of
from quiltwork.series.reading.times import UNITS, named_units
from quiltwork.series.reading.values import as_labels
from quiltwork.wording import argument


@dataclass(frozen=True)
class Wanted:
    """The names of the columns to read."""

    value: str
    time: str | None
    subject: str | Sequence[str] | None
    duration: str | None
    end: str | None
    timezone: str | None

    def __post_init__(self) -> None:
        """Check them."""
        for name in (self.value, self.time, self.duration, self.end, *self.subjects):
            if name is not None:
                instance(name, str, "A column")
        if self.timezone is not None and self.time is None:
            raise InvalidInputError("A time zone needs the name of the time column (time, --time).")
        if self.end is not None and (self.time is None or self.duration is not None):
            raise InvalidInputError(
                "An end column goes with a time column that says when a row begins, and without a "
                "duration."
            )

    @property
    def subjects(self) -> list[str]:
        """The columns that tell subjects apart."""
        if self.subject is None or isinstance(self.subject, str):
            return [] if self.subject is None else [self.subject]
        return list(listed(self.subject, "subject"))


@dataclass(frozen=True, eq=False)
class Records:
    """What was read.

    Attributes:
        value: the collector of the value column.
        subjects: the names of the subjects.
        counted: whether times are whole numbers of nobody knows what, which only order rows.
        note: how the file is written.
        blocks: yields the records, some rows after the other: the number of each one's subject,
            when it is on the clock of the series, and its value.
    """

    value: Any
    subjects: list[Any]
    counted: bool
    note: str
    blocks: Callable[[], Iterator[Block]]


def read_records(
    source: Any,
    wanted: Wanted,
    given: DialectOptions,
    bins: Bins | None,
    step: int | None,
    clock: Clock,
    *,
    quietly: bool,
    apart: bool,
    begins: dict[str, int],
) -> Records:
    """Read the wanted columns: labels, or numbers if there are bins, which a grid gathers first.

    `quietly`, what is no number is missing; `apart`, what is no label is for others to refuse.
    `begins` is as in `read_columns`.
    """
    value: LabelCollector | NumberCollector = (
        LabelCollector(wanted.value, apart=apart)
        if bins is None
        else NumberCollector(wanted.value, None if step else bins, quietly=quietly)
    )
    owners = [LabelCollector(name) for name in wanted.subjects]
    times = [TimeCollector(name) for name in (wanted.time, wanted.end) if name is not None]
    held = [] if wanted.duration is None else [DurationCollector(wanted.duration)]
    columns = [value, *owners, *times, *held]
    note = read_columns(source, columns, given, begins)
    if value.rows == 0:
        raise InvalidInputError(f"Column {wanted.value!r} has no rows; there is nothing to read.")
    if any(one.sizes != value.sizes for one in columns):
        for one in columns:
            one.join()
    lasting = bool(held) or len(times) > 1
    if lasting and times and step is None:
        raise InvalidInputError(
            "Rows that hold for a while need a grid of time points; add "
            f"{argument('every', '10min')}."
        )
    lasts = held[0].unit() if held and times else ""
    table = held[0].checked(UNITS.get(lasts, 1)) if held else None
    numbers = any(one.counted for one in times)
    counts = _counts(times, given.date_format, step) if numbers else ""
    told = [
        (wanted.time, counts and f"{counts} since 1970"),
        (wanted.duration, lasts if held and held[0].plain else ""),
    ]
    said = (f"Numbers of {name!r} are {word}." for name, word in told if word)
    note = " ".join(filter(None, (note, *said)))
    unit = UNITS[counts or "seconds"]
    subjects, places = _subjects(owners)

    def blocks() -> Iterator[Block]:
        earlier = [RowsBefore(partial(subject_of, subjects)) for _ in times]
        before = 0
        for values, *others in zip(*(one.parts for one in columns), strict=True):
            rows = len(values)
            who = places(others[: len(owners)], rows)
            moments = [
                _on_clock(column, part if unit == 1 else part * unit, who, clock, seen)
                for column, part, seen in zip(times, others[len(owners) :], earlier, strict=False)
            ]
            when = moments[0] if moments else None
            if lasting:
                holds = None if table is None else table[others[-1]]
                row, when = _spread(when, holds, moments[1:], step, before)
                who, values = who[row], values[row]
            yield who, when, values
            before += rows

    return Records(value, subjects, numbers and not counts, note, blocks)


def _counts(times: Sequence[TimeCollector], given: str | None, step: int | None) -> str:
    """Return what times that are whole numbers count; nothing if they only order rows.

    Seconds since 1970 are known by their size, others by what is said, or by a column's name.
    """
    if given in UNITS:
        return str(given)
    if min(one.least for one in times) >= SINCE_1970:
        return "seconds"
    named = named_units(" ".join(one.name for one in times))
    if len(named) == 1:
        return named[0]
    if step is not None:
        raise InvalidInputError(
            f"Do the whole numbers of column {times[0].name!r} count seconds, minutes, hours or "
            f"days? A grid must know: say it, for example {argument('date_format', 'minutes')}, "
            "or in the column's "
            "name."
        )
    return ""


def _spread(
    when: NDArray[np.int64] | None,
    holds: NDArray[np.int64] | None,
    ends: list[NDArray[np.int64]],
    step: int | None,
    before: int,
) -> tuple[NDArray[np.int64], NDArray[np.int64] | None]:
    """Return one record for each time point at which rows hold: (row, when)."""
    if when is None or step is None:
        assert holds is not None  # noqa: S101  (an end needs a time)
        check_points(int(holds.sum()))
        return np.repeat(np.arange(len(holds)), holds), None
    until = ends[0] if holds is None else when + holds
    if (until < when).any():
        at = before + int(np.argmax(until < when)) + 1
        raise InvalidInputError(f"Row {at} ends before it begins.")
    return spread(when, until, step)


def _on_clock(
    column: TimeCollector,
    seconds: NDArray[np.int64],
    who: NDArray[Any],
    clock: Clock,
    earlier: RowsBefore,
) -> NDArray[np.int64]:
    """Return moments of a column on the clock of the series."""
    zone = read_zone(clock.zone)
    if zone is None:
        return seconds
    if column.aware:
        return local_seconds(seconds, zone) if clock.local else seconds
    return seconds if clock.local else utc_seconds(seconds, who, zone, earlier)


def _subjects(
    columns: Sequence[LabelCollector],
) -> tuple[list[Any], Callable[[Sequence[NDArray[Any]], int], NDArray[Any]]]:
    """Return the names of subjects in order of appearance, and what finds them in some rows."""
    if not columns:
        return [None], lambda codes, rows: np.zeros(rows, dtype=np.int8)
    named, tables = [], []
    for column in columns:
        cells = as_labels(column.distinct, textual=column.textual, dialect=column.dialect)
        merged = {name: place for place, name in enumerate(dict.fromkeys(cells))}
        named.append(list(merged))
        same = len(merged) == len(cells)
        tables.append(None if same else np.array([merged[name] for name in cells]))

    def combined(codes: Sequence[NDArray[Any]], rows: int) -> NDArray[Any]:
        found = [c if t is None else t[c] for c, t in zip(codes, tables, strict=True)]
        if len(found) == 1:
            return found[0]
        return np.ravel_multi_index(found, [len(names) for names in named])

    if len(columns) == 1:
        return named[0], combined
    seen: dict[int, int] = {}
    for codes in zip(*(column.parts for column in columns), strict=True):
        distinct, first = np.unique(combined(codes, 0), return_index=True)
        for code in distinct[np.argsort(first)].tolist():
            seen.setdefault(code, len(seen))
    known = np.array(list(seen), dtype=np.int64)
    order = np.argsort(known)
    parts = np.unravel_index(known, [len(names) for names in named])
    shown = list(
        zip(*([n[i] for i in p.tolist()] for n, p in zip(named, parts, strict=True)), strict=True)
    )
    return shown, lambda codes, rows: order[np.searchsorted(known[order], combined(codes, rows))]
