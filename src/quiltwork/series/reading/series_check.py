"""What a file of series looks like: step, subjects, doubled times, holes, values.

For `quiltwork check`. It shows names, times and cells, so it is for the screen of the owner of the
rows; no release and no ledger uses it. Cost: one pass, two with a zone, and a sort; rows are held
in memory.
"""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass
from datetime import timedelta
from itertools import islice
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

from quiltwork.beliefs.grids import duration
from quiltwork.beliefs.zones import EPOCH, local_seconds, parse_zone
from quiltwork.delimited import Dialect, DialectOptions
from quiltwork.errors import InvalidInputError
from quiltwork.exact import counted
from quiltwork.results import ResultBase
from quiltwork.series.reading.clock import Clock, series_clock
from quiltwork.series.reading.source_records import (
    ColumnChoice,
    Duplicates,
    Records,
    read_records,
)
from quiltwork.series.reading.values import as_numbers
from quiltwork.wording import either

_SHOWN = 10
NumberSummary: TypeAlias = tuple[int, float, float, float]
"""How many numbers there are, the least, the median and the largest."""


@dataclass(frozen=True)
class SubjectSummary(ResultBase):
    """One subject: rows, first and last time, doubled times, and steps without a row."""

    name: str
    rows: int
    first: str | None
    last: str | None
    doubles: int
    missing_steps: int


@dataclass(frozen=True)
class DoubledTime(ResultBase):
    """A row at the time of an earlier row of the same subject."""

    subject: str
    time: str
    row: int
    earlier: int
    equal: bool


@dataclass(frozen=True)
class Hole(ResultBase):
    """Steps without a row, after `row`."""

    subject: str
    after: str
    row: int
    steps: int


@dataclass(frozen=True)
class Cell(ResultBase):
    """A distinct cell of the value column: how often it occurs, and its first row."""

    text: str
    count: int
    row: int


@dataclass(frozen=True)
class TimeSummary:
    """The usual step, the subjects, doubled times and holes."""

    step: int | None
    subjects: tuple[SubjectSummary, ...]
    doubles: tuple[DoubledTime, ...] = ()
    holes: tuple[Hole, ...] = ()


@dataclass(frozen=True)
class SeriesCheck(ResultBase):
    """What a file of series looks like.

    Attributes:
        path: the file, or files.
        rows: the number of rows.
        reading: a sentence on the file's format; empty for plain files.
        zone: the zone in which times were read; None for times as clocks show them.
        unread: why the zone could not be used, if one was given.
        step: the usual time between two rows of a subject, in seconds; None without times.
        subjects: a summary of each.
        doubles: rows at the time of an earlier row.
        holes: the longest first.
        numbers: count, least, median and largest number of the value column, if it has numbers.
        words: the cells beside numbers that are none, or the states, the most common first.
        missing: how many cells are empty or a word for a missing value.
        skipped: the first time that the zone's clocks skip in spring; None if there is none.
    """

    path: str
    rows: int
    reading: str
    zone: str | None
    unread: str | None
    step: int | None
    subjects: tuple[SubjectSummary, ...]
    doubles: tuple[DoubledTime, ...]
    holes: tuple[Hole, ...]
    numbers: NumberSummary | None
    words: tuple[Cell, ...]
    missing: int
    skipped: str | None = None
    schema = ("check-series", 1)

    def explain(self) -> str:
        """Describe the file in lines; of a long list the first ten."""
        rows, series = counted(self.rows, "row"), f"{len(self.subjects):,} series"
        lines = [f"{self.path}: {rows} of {series}.", self.reading]
        if self.unread:
            lines.append(f"Times cannot be read in {self.zone}: {self.unread}")
        if self.skipped:
            lines.append(
                f"{self.skipped} does not exist in {self.zone}, where clocks go forward that day; "
                "such times are read an hour later. Are these times without summer time? Then "
                f"read them without a zone: {either('timezone=None', '--timezone none')}."
            )
        if self.step is not None:
            every = _option("every", "--every", duration(self.step))
            lines.append(
                f"Steps: mostly {duration(self.step)} from row to row. To read them so: {every}."
            )
        lines += self._subject_lines() + self._double_lines() + self._hole_lines()
        lines += self._value_lines()
        return "\n".join(filter(None, lines))

    def _subject_lines(self) -> list[str]:
        lines = ["", "Subjects:"] if self.subjects else []
        for subject in self.subjects[:_SHOWN]:
            parts = [f"{subject.name}: {counted(subject.rows, 'row')}"]
            if subject.first is not None:
                parts.append(f"{subject.first} to {subject.last}")
            if subject.doubles:
                parts.append(f"{subject.doubles:,} doubled")
            if subject.missing_steps:
                parts.append(f"{counted(subject.missing_steps, 'step')} missing")
            lines.append(f"  {', '.join(parts)}")
        return lines + _rest(self.subjects, "subject")

    def _double_lines(self) -> list[str]:
        if not self.doubles:
            return []
        lines = ["", "Doubled times:"]
        for double in self.doubles[:_SHOWN]:
            value = "with the same value" if double.equal else "with another value"
            lines.append(
                f"  row {double.row:,}: {double.subject} at {double.time} again, {value} "
                f"(row {double.earlier:,})"
            )
        lines += _rest(self.doubles, "doubled time")
        first = _option("duplicates", "--duplicates", "first")
        mean = _option("duplicates", "--duplicates", "mean")
        lines.append(f"  {first} keeps the first of such rows; {mean} averages their numbers.")
        return lines

    def _hole_lines(self) -> list[str]:
        if not self.holes:
            return []
        lines = ["", "Holes, the longest first:"]
        lines += [
            f"  after row {hole.row:,}: {hole.subject} from {hole.after}, "
            f"{counted(hole.steps, 'step')}"
            for hole in self.holes[:_SHOWN]
        ]
        lines += _rest(self.holes, "hole")
        public = _option("missing", "--missing", "public")
        state = _option("missing", "--missing", "state")
        lines.append(
            f"  {public} leaves holes out, if when the series was silent says nothing about its "
            f"states; {state} makes them a state of their own."
        )
        return lines

    def _value_lines(self) -> list[str]:
        lines = ["", "Values:"]
        if self.numbers is not None:
            count, low, median, high = self.numbers
            edges = _option("edges", "--edges", [0.5, 2])
            lines.append(
                f"  {counted(count, 'number')} from {low:g} to {high:g}, half of them up to "
                f"{median:g}. Public edges make them states, {edges}, which are not chosen by "
                "these rows."
            )
            declare = _option("na_values", "--na", [self.words[0].text]) if self.words else ""
            meaning = f"not a number; if it means that nothing was recorded, declare it: {declare}"
        else:
            meaning = "a state"
        lines += [
            f"  {cell.text!r}: {counted(cell.count, 'time')}, first in row {cell.row:,}; {meaning}"
            for cell in self.words[:_SHOWN]
        ]
        lines += _rest(self.words, "different cell")
        if self.missing:
            lines.append(f"  {counted(self.missing, 'cell')} without a value.")
        return lines


def _option(name: str, option: str, value: Any) -> str:
    """Name an argument of a command that reads series, which is another one than this."""
    text = ",".join(map(str, value)) if isinstance(value, list) else str(value)
    return either(f"{name}={value!r}", f"{option} {text}")


def _rest(items: Sequence[Any], what: str) -> list[str]:
    hidden = len(items) - _SHOWN
    return [f"  … and {hidden:,} more {what}{'' if hidden == 1 else 's'}"] if hidden > 0 else []


def check_series(
    source: Any,
    value: str,
    *,
    time: str | None = None,
    subject: str | Sequence[str] | None = None,
    only: str | None = None,
    timezone: str | None = None,
    dialect: DialectOptions | None = None,
) -> SeriesCheck:
    """Describe a file of series as `read_series` would read it, refusing as little as possible.

    Raises:
        InvalidInputError: for columns that are not there, and times that cannot be read at all.
    """
    # As if duplicates were merged, so that one in the hour that comes twice is named, not refused.
    merged: Duplicates | None = "first" if time is not None else None
    columns = ColumnChoice(value, time, subject, timezone=timezone, only=only, duplicates=merged)
    options, unread = dialect or DialectOptions(), None
    clock = series_clock(timezone, None)
    try:
        records = _read(source, columns, options, clock)
        rows = _columns(records)
    except InvalidInputError as error:
        if timezone is None:
            raise
        # Rows out of order in the hour that comes twice: shown as clocks show them.
        clock, unread = series_clock(None, None), str(error)
        records = _read(source, columns, options, clock)
        rows = _columns(records)
    numbers, who, when, codes = rows
    skipped = None
    if timezone is not None and unread is None and when is not None:
        with suppress(InvalidInputError):  # times with offsets have nothing to be skipped
            naive = _columns(_read(source, columns, options, series_clock(None, None)))[2]
            skipped = _skipped_time(when, naive, timezone)
    names = [_name(subject) for subject in records.subjects]
    summary, words, missing = _values(records, codes, numbers)
    if when is None:
        counts = np.bincount(who, minlength=len(names)).tolist()
        times = TimeSummary(
            None,
            tuple(
                SubjectSummary(name, count, None, None, 0, 0)
                for name, count in zip(names, counts, strict=True)
            ),
        )
    else:
        times = _times(numbers, who, when, codes, names, clock)
    return SeriesCheck(
        path=str(source),
        rows=len(who),
        reading=records.note,
        zone=timezone,
        unread=unread,
        step=times.step,
        subjects=times.subjects,
        doubles=times.doubles,
        holes=times.holes,
        numbers=summary,
        words=words,
        missing=missing,
        skipped=skipped,
    )


def _skipped_time(
    moments: NDArray[np.int64], naive: NDArray[np.int64] | None, timezone: str
) -> str | None:
    """Return the first local time that the clocks of a zone skip in spring; None if there is none.

    Times with offsets are read alike with and without the zone.
    """
    zone = parse_zone(timezone)
    if zone is None or naive is None or len(naive) != len(moments):
        return None
    if np.array_equal(moments, naive):
        return None
    moved = local_seconds(moments, zone) != naive
    if not moved.any():
        return None
    return f"{EPOCH + timedelta(seconds=int(naive[moved].min())):%Y-%m-%d %H:%M}"


def find_series_columns(path: str, dialect: DialectOptions) -> tuple[str, str] | None:
    """Return the columns of times and of values, if a CSV file has one column of times."""
    from quiltwork.delimited import CsvSource
    from quiltwork.series.reading.times import AmbiguousTimesError, TimeReader

    source = CsvSource(path, dialect)
    rows = source.rows(lambda reader: list(islice(reader, 200)))
    header, rows = rows[0], [row for row in rows[1:] if len(row) == len(rows[0])]
    times, numbers = [], []
    for name, cells in zip(header, zip(*rows, strict=True), strict=False):
        present = [cell for cell in cells if cell.strip()]
        if not present:
            continue
        try:
            reader = TimeReader.of(present, dialect.date_format, name)
            if reader.kind != "seconds":
                reader.seconds(present)
                times.append(name)
                continue
        except AmbiguousTimesError:
            times.append(name)
            continue
        except InvalidInputError:
            pass
        if not np.isnan(_number(present[0], source.dialect)):
            numbers.append(name)
    others = numbers or [name for name in header if name not in times]
    return (times[0], others[0]) if len(times) == 1 and others else None


def _name(subject: Any) -> str:
    if isinstance(subject, tuple):
        return ", ".join(map(str, subject))
    return "the series" if subject is None else str(subject)


def _read(source: Any, columns: ColumnChoice, dialect: DialectOptions, clock: Clock) -> Records:
    return read_records(
        source, columns, dialect, None, None, clock, quietly=True, apart=True, begins={}
    )


def _columns(
    records: Records,
) -> tuple[NDArray[np.int64], NDArray[np.int64], NDArray[np.int64] | None, NDArray[np.int64]]:
    """Return row numbers, subjects, times and cell codes, in the order of the file."""
    blocks = list(records.numbered())
    numbers = np.concatenate([rows for rows, _ in blocks])
    who = np.concatenate([np.asarray(block[0], dtype=np.int64) for _, block in blocks])
    codes = np.concatenate([np.asarray(block[2], dtype=np.int64) for _, block in blocks])
    times = [block[1] for _, block in blocks]
    if any(part is None for part in times):
        return numbers, who, None, codes
    when = np.concatenate([np.asarray(part, dtype=np.int64) for part in times])
    return numbers, who, when, codes


def _times(
    numbers: NDArray[np.int64],
    who: NDArray[np.int64],
    when: NDArray[np.int64],
    codes: NDArray[np.int64],
    names: list[str],
    clock: Clock,
) -> TimeSummary:
    order = np.lexsort((numbers, when, who))
    numbers, who, when, codes = numbers[order], who[order], when[order], codes[order]
    gaps = np.diff(when)
    inside = who[1:] == who[:-1]
    later = gaps[inside & (gaps > 0)]
    step = None
    if len(later):
        sizes, often = np.unique(later, return_counts=True)
        step = int(sizes[np.argmax(often)])
    repeats = np.flatnonzero(inside & (gaps == 0)) + 1
    doubles = tuple(
        DoubledTime(
            names[who[at]],
            clock.written(int(when[at])),
            int(numbers[at]),
            int(numbers[at - 1]),
            bool(codes[at] == codes[at - 1]),
        )
        for at in repeats.tolist()
    )
    wide = np.flatnonzero(inside & (gaps > (step or 0))) if step else np.array([], dtype=np.int64)
    lost = gaps[wide] // (step or 1) - 1
    wide, lost = wide[lost > 0], lost[lost > 0]
    holes = tuple(
        Hole(names[who[at]], clock.written(int(when[at])), int(numbers[at]), int(steps))
        for at, steps in sorted(
            zip(wide.tolist(), lost.tolist(), strict=True), key=lambda pair: -pair[1]
        )
    )
    size = len(names)
    counts = np.bincount(who, minlength=size)
    doubled = np.bincount(who[repeats], minlength=size)
    missing = np.bincount(who[wide], weights=lost, minlength=size).astype(np.int64)
    ends = np.cumsum(counts)
    subjects = tuple(
        SubjectSummary(
            names[subject],
            int(counts[subject]),
            clock.written(int(when[ends[subject] - counts[subject]])),
            clock.written(int(when[ends[subject] - 1])),
            int(doubled[subject]),
            int(missing[subject]),
        )
        for subject in range(size)
        if counts[subject]
    )
    return TimeSummary(step, subjects, doubles, holes)


def _values(
    records: Records, codes: NDArray[np.int64], rows: NDArray[np.int64]
) -> tuple[NumberSummary | None, tuple[Cell, ...], int]:
    """Sort cells into numbers, words and missing ones; the majority decides what a column holds."""
    cells, dialect = records.value.distinct, records.value.dialect
    counts = np.bincount(codes, minlength=len(cells))
    numbers = np.array([_number(cell, dialect) for cell in cells])
    empty = np.array([_is_missing(cell, dialect) for cell in cells], dtype=np.bool_)
    present = counts > 0
    numeric = ~np.isnan(numbers) & ~empty & present
    words = ~numeric & ~empty & present
    summary: NumberSummary | None = None
    if counts[numeric].sum() > counts[words].sum() and numeric.sum() > _SHOWN:
        order = np.argsort(numbers[numeric])
        sums = np.cumsum(counts[numeric][order])
        median = numbers[numeric][order][np.searchsorted(sums, sums[-1] / 2)]
        low, high = float(numbers[numeric].min()), float(numbers[numeric].max())
        summary = int(sums[-1]), low, float(median), high
    else:
        words = ~empty & present
    shown = np.flatnonzero(words)
    shown = shown[np.argsort(-counts[shown], kind="stable")]
    first = {int(code): int(rows[np.argmax(codes == code)]) for code in shown[: 4 * _SHOWN]}
    listed = tuple(
        Cell(str(cells[code]), int(counts[code]), first.get(code, 0)) for code in shown.tolist()
    )
    return summary, listed, int(counts[empty].sum())


def _is_missing(cell: Any, dialect: Dialect) -> bool:
    if isinstance(cell, str):
        return dialect.is_missing(cell)
    return cell is None or cell != cell


def _number(cell: Any, dialect: Dialect) -> float:
    with suppress(Exception):  # a cell of a frame may be any object
        return float(as_numbers([cell], "", quietly=True, dialect=dialect)[0])
    return float("nan")
