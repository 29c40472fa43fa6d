"""The records of a source: whose, when, and which label or number; not yet in order."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from quiltwork.arguments import instance, listed
from quiltwork.delimited import GivenDialect
from quiltwork.errors import InvalidInputError
from quiltwork.series.reading.binning import Bins
from quiltwork.series.reading.clock import Clock, local_seconds, read_zone, utc_seconds
from quiltwork.series.reading.collectors import (
    DurationCollector,
    LabelCollector,
    NumberCollector,
    TimeCollector,
)
from quiltwork.series.reading.columns import read_columns
from quiltwork.series.reading.regular import MOST_POINTS, spread
from quiltwork.series.reading.streamed import Block
from quiltwork.series.reading.values import as_labels


@dataclass(frozen=True)
class Wanted:
    """The names of the columns to read.

    Raises:
        InvalidInputError: if they are no names, or do not go together.
    """

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
        row: the row of each record, where rows hold for several time points; else None.
        subjects: the names of the subjects.
        counted: whether times are plain whole numbers.
        note: how the file is written.
        whole: returns the number of each record's subject, and when it is on the clock of the
            series, in two arrays.
        blocks: the same, with values, for some rows after the other; None where that cannot be.
    """

    value: Any
    row: NDArray[np.int64] | None
    subjects: list[Any]
    counted: bool
    note: str
    whole: Callable[[], tuple[NDArray[Any], NDArray[np.int64] | None]]
    blocks: Callable[[], Iterator[Block]] | None = None

    @property
    def labels(self) -> LabelCollector:
        """The labels of the value column."""
        assert isinstance(self.value, LabelCollector)  # noqa: S101  (without edges)
        return self.value

    @property
    def values(self) -> NDArray[Any]:
        """The numbers of the value column, the codes of their bins, or those of labels."""
        return self.value.codes if isinstance(self.value, LabelCollector) else self.value.values


def read_records(
    source: Any,
    wanted: Wanted,
    given: GivenDialect,
    bins: Bins | None,
    step: int | None,
    clock: Clock,
    *,
    quietly: bool,
    apart: bool,
) -> Records:
    """Read the wanted columns: labels, or numbers if there are bins, which a grid gathers first.

    `quietly`, what is no number is missing; `apart`, what is no label is for others to refuse.

    Raises:
        InvalidInputError: naming the row that cannot be read.
    """

    value: LabelCollector | NumberCollector = (
        LabelCollector(wanted.value, apart=apart)
        if bins is None
        else NumberCollector(wanted.value, None if step else bins, quietly=quietly)
    )
    owners = [LabelCollector(name, runs=True) for name in wanted.subjects]
    times = [TimeCollector(name) for name in (wanted.time, wanted.end) if name is not None]
    held = None if wanted.duration is None else DurationCollector(wanted.duration)
    collectors = [value, *owners, *times, *([] if held is None else [held])]
    note = read_columns(source, collectors, given)
    if value.rows == 0:
        raise InvalidInputError(f"Column {wanted.value!r} has no rows; there is nothing to read.")
    counted = bool(times) and times[0].counted
    if held is None and len(times) < 2 and len(owners) < 2:
        names, table = _named(owners)
        made = _Plain(value, owners, table, times, clock)
        return Records(value, None, names, counted, note, made.whole, made.blocks)
    who, subjects = _subjects(owners, value.rows)
    lasting = None if held is None else held.values
    moments = [_on_clock(one, one.seconds, who, clock) for one in times]
    seconds = moments[0] if moments else None
    if lasting is None and len(moments) < 2:
        return Records(value, None, subjects, counted, note, lambda: (who, seconds))
    if seconds is None:
        assert lasting is not None  # noqa: S101  (an end needs a time)
        row = _repeated(lasting, wanted.duration or "")
        return Records(value, row, subjects, counted, note, lambda: (who[row], None))
    if step is None:
        raise InvalidInputError(
            "Rows that hold for a while need a grid of time points; add every='10min' (--every)."
        )
    until = moments[1] if lasting is None else seconds + lasting
    if (until < seconds).any():
        at = int(np.argmax(until < seconds)) + 1
        raise InvalidInputError(f"Row {at} ends before it begins.")
    row, every = spread(seconds, until, step)
    return Records(value, row, subjects, counted, note, lambda: (who[row], every))


@dataclass(frozen=True, eq=False)
class _Plain:
    """Rows of one time point each, whose subject is in one column if there are several."""

    value: Any
    owners: list[LabelCollector]
    table: NDArray[Any] | None
    times: list[TimeCollector]
    clock: Clock

    def whole(self) -> tuple[NDArray[Any], NDArray[np.int64] | None]:
        """All subjects and moments."""
        who: NDArray[Any] = np.zeros(self.value.rows, dtype=np.int8)
        if self.owners:
            codes = self.owners[0].codes
            who = codes if self.table is None else self.table[codes]
        if not self.times:
            return who, None
        moments, at = np.empty(self.value.rows, dtype=np.int64), 0
        latest: dict[tuple[int, int], int] = {}
        for part in self.times[0].parts:
            some = slice(at, at := at + len(part))
            moments[some] = _on_clock(self.times[0], part, who[some], self.clock, latest)
        return who, moments

    def blocks(self) -> Iterator[Block]:
        """The same with the values, for the rows that were read at a time."""
        columns = [self.value, *self.owners, *self.times]
        if any(one.sizes != self.value.sizes for one in columns):
            who, when = self.whole()
            yield who, when, next(self.value.parts)
            return
        latest: dict[tuple[int, int], int] = {}
        for values, *others in zip(*(one.parts for one in columns), strict=True):
            who = np.zeros(len(values), dtype=np.int8)
            if self.owners:
                who = others[0] if self.table is None else self.table[others[0]]
            when = None
            if self.times:
                when = _on_clock(self.times[0], others[-1], who, self.clock, latest)
            yield who, when, values


def _repeated(counts: NDArray[np.int64], name: str) -> NDArray[np.int64]:
    """Return each row as often as it holds."""
    if (counts < 0).any():
        row = int(np.argmax(counts < 0)) + 1
        raise InvalidInputError(f"Row {row} of column {name!r} is below zero; count time points.")
    if int(counts.sum()) > MOST_POINTS:
        raise InvalidInputError(
            f"Column {name!r} adds up to more than {MOST_POINTS:,} time points."
        )
    return np.repeat(np.arange(len(counts)), counts)


def _on_clock(
    column: TimeCollector,
    seconds: NDArray[np.int64],
    who: NDArray[Any],
    clock: Clock,
    latest: dict[tuple[int, int], int] | None = None,
) -> NDArray[np.int64]:
    """Return moments of a column on the clock of the series."""
    zone = read_zone(clock.zone)
    if zone is None:
        return seconds
    if column.aware:
        return local_seconds(seconds, zone) if clock.local else seconds
    return seconds if clock.local else utc_seconds(seconds, who, zone, latest)


def _named(columns: Sequence[LabelCollector]) -> tuple[list[Any], NDArray[Any] | None]:
    """Return the names of subjects in one column or none, and their places if cells mean one."""
    if not columns:
        return [None], None
    (column,) = columns
    names = as_labels(column.distinct, textual=column.textual, dialect=column.dialect)
    merged = {name: place for place, name in enumerate(dict.fromkeys(names))}
    if len(merged) == len(names):
        return names, None
    return list(merged), np.array([merged[name] for name in names])


def _subjects(columns: Sequence[LabelCollector], rows: int) -> tuple[NDArray[Any], list[Any]]:
    """Return the number of each row's subject, in order of appearance, and their names."""
    if len(columns) < 2:
        names, table = _named(columns)
        codes = columns[0].codes if columns else np.zeros(rows, dtype=np.int8)
        return codes if table is None else table[codes], names
    named = [
        as_labels(column.distinct, textual=column.textual, dialect=column.dialect)
        for column in columns
    ]
    code = np.zeros(rows, dtype=np.int64)
    for column, names in zip(columns, named, strict=True):
        code = code * len(names) + column.codes
    seen, first, codes = np.unique(code, return_index=True, return_inverse=True)
    place = np.empty(len(seen), dtype=np.int64)
    place[np.argsort(first)] = np.arange(len(seen))
    shown = [
        tuple(n[c.codes[i]] for n, c in zip(named, columns, strict=True)) for i in np.sort(first)
    ]
    return place[codes], shown
