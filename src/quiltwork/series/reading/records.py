"""The records of a source: whose, when, and which label or number; not yet in order."""

from __future__ import annotations

from collections.abc import Sequence
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
        who: the number of each record's subject.
        subjects: their names.
        seconds: when each record is, on the clock of the series.
        counted: whether times are plain whole numbers.
        note: how the file is written.
    """

    value: Any
    row: NDArray[np.int64] | None
    who: NDArray[Any]
    subjects: list[Any]
    seconds: NDArray[np.int64] | None
    counted: bool
    note: str

    @property
    def labels(self) -> LabelCollector:
        """The labels of the value column."""
        assert isinstance(self.value, LabelCollector)  # noqa: S101  (without edges)
        return self.value

    @property
    def values(self) -> NDArray[Any]:
        """The numbers of the value column, or the codes of their bins."""
        return self.value.values  # type: ignore[no-any-return]


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
    owners = [LabelCollector(name) for name in wanted.subjects]
    times = [TimeCollector(name) for name in (wanted.time, wanted.end) if name is not None]
    held = None if wanted.duration is None else DurationCollector(wanted.duration)
    collectors = [value, *owners, *times, *([] if held is None else [held])]
    note = read_columns(source, collectors, given)
    rows = len(value.codes if isinstance(value, LabelCollector) else value.values)
    if rows == 0:
        raise InvalidInputError(f"Column {wanted.value!r} has no rows; there is nothing to read.")
    who, subjects = _subjects(owners, rows)
    lasting = None if held is None else held.values
    moments = [_on_clock(one, who, clock) for one in times]
    seconds = moments[0] if moments else None
    counted = bool(times) and times[0].counted
    if lasting is None and len(moments) < 2:
        return Records(value, None, who, subjects, seconds, counted, note)
    if seconds is None:
        assert lasting is not None  # noqa: S101  (an end needs a time)
        row = _repeated(lasting, wanted.duration or "")
        return Records(value, row, who[row], subjects, None, counted, note)
    if step is None:
        raise InvalidInputError(
            "Rows that hold for a while need a grid of time points; add every='10min' (--every)."
        )
    until = moments[1] if lasting is None else seconds + lasting
    if (until < seconds).any():
        at = int(np.argmax(until < seconds)) + 1
        raise InvalidInputError(f"Row {at} ends before it begins.")
    row, seconds = spread(seconds, until, step)
    return Records(value, row, who[row], subjects, seconds, counted, note)


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


def _on_clock(column: TimeCollector, who: NDArray[Any], clock: Clock) -> NDArray[np.int64]:
    """Return the moments of a column on the clock of the series."""
    zone = read_zone(clock.zone)
    if zone is None:
        return column.seconds
    if column.aware:
        return local_seconds(column.seconds, zone) if clock.local else column.seconds
    return column.seconds if clock.local else utc_seconds(column.seconds, who, zone)


def _subjects(columns: Sequence[LabelCollector], rows: int) -> tuple[NDArray[Any], list[Any]]:
    """Return the number of each row's subject, in order of appearance, and their names."""
    if not columns:
        return np.zeros(rows, dtype=np.int8), [None]
    named = [
        as_labels(column.distinct, textual=column.textual, dialect=column.dialect)
        for column in columns
    ]
    if len(columns) == 1:
        if len(set(named[0])) == len(named[0]):
            return columns[0].codes, named[0]
        merged = {name: place for place, name in enumerate(dict.fromkeys(named[0]))}
        table = np.array([merged[name] for name in named[0]])
        return table[columns[0].codes], list(merged)
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
