"""The records of a source as columns: whose, when, and which label or number; not yet in order."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any, Literal, TypeAlias

import numpy as np
from numpy.typing import NDArray

from quiltwork.arguments import instance, listed
from quiltwork.beliefs.zones import RowsBefore, local_seconds, parse_zone, utc_seconds
from quiltwork.delimited import DialectOptions
from quiltwork.errors import InvalidInputError
from quiltwork.exact import shortened
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
from quiltwork.series.reading.streamed import (
    NEVER,
    Block,
    check_points,
    spread,
    subject_suffix,
)
from quiltwork.series.reading.times import UNITS, named_units
from quiltwork.series.reading.values import as_labels
from quiltwork.wording import argument

Duplicates: TypeAlias = Literal["error", "first", "mean"]
_HOUR = 3600


@dataclass(frozen=True)
class ColumnChoice:
    """The columns to read, and which of their records.

    Attributes:
        value: the column of states or numbers.
        time: the column of times.
        subject: the column, or columns, of subject names.
        duration: the column that says for how long a row holds.
        end: the column that says until when a row holds.
        timezone: the zone of times without an offset.
        only: the subject to read; None for all.
        duplicates: what becomes of a subject's records at one time; None gathers them on a grid
            and refuses them without one.
    """

    value: str
    time: str | None
    subject: str | Sequence[str] | None = None
    duration: str | None = None
    end: str | None = None
    timezone: str | None = None
    only: Any = None
    duplicates: Duplicates | None = None

    def __post_init__(self) -> None:
        """Check that the columns go together."""
        for name in (self.value, self.time, self.duration, self.end, *self.subjects):
            if name is not None:
                instance(name, str, "A column")
        if self.timezone is not None and self.time is None:
            raise InvalidInputError("A time zone needs the name of the time column (time, --time).")
        if self.duplicates is not None and self.time is None:
            raise InvalidInputError(
                f"{argument('duplicates')} is about rows at one time and needs the name of the "
                f"time column, {argument('time')}."
            )
        if self.only is not None and not self.subjects:
            raise InvalidInputError(
                f"{argument('only')} names a subject and needs the column of subjects, "
                f"{argument('subject')}."
            )
        if self.end is not None and (self.time is None or self.duration is not None):
            raise InvalidInputError(
                "An end column goes with a time column that says when a row begins, and without a "
                "duration."
            )

    @property
    def subjects(self) -> list[str]:
        """The columns of subject names."""
        if self.subject is None or isinstance(self.subject, str):
            return [] if self.subject is None else [self.subject]
        return list(listed(self.subject, "subject"))

    @property
    def merges(self) -> bool:
        """Whether records of one subject at one time become one record."""
        return self.duplicates in ("first", "mean")


@dataclass(frozen=True, eq=False)
class Records:
    """The records of a source.

    Attributes:
        value: the collector of the value column.
        subjects: the names of the subjects.
        counted: whether times are whole numbers of an unknown unit, which only order rows.
        note: a sentence on how the file is written.
        numbered: yields blocks of records, each with the numbers of its rows in the file. A record
            is the number of its subject, its time on the clock of the series, and its value.
    """

    value: Any
    subjects: list[Any]
    counted: bool
    note: str
    numbered: Callable[[], Iterator[tuple[NDArray[np.int64], Block]]]

    def blocks(self) -> Iterator[Block]:
        """Yield the records without row numbers."""
        return (block for _, block in self.numbered())


def read_records(
    source: Any,
    columns: ColumnChoice,
    dialect: DialectOptions,
    bins: Bins | None,
    step: int | None,
    clock: Clock,
    *,
    quietly: bool,
    apart: bool,
    begins: dict[str, int],
) -> Records:
    """Read the chosen columns: labels, or numbers if there are bins.

    Args:
        source: as for `read_columns`.
        columns: which columns, and which records.
        dialect: how the caller says the files are written.
        bins: the bins of numbers; they are applied here unless numbers are combined first, on a
            grid or where duplicates are averaged.
        step: of the grid, in seconds.
        clock: the clock of the series.
        quietly: whether a cell that is no number counts as missing.
        apart: whether a cell that cannot be a label is kept, for others to refuse.
        begins: filled with the number of rows before each of several files.
    """
    combined = step is not None or columns.duplicates == "mean"
    value: LabelCollector | NumberCollector = (
        LabelCollector(columns.value, apart=apart)
        if bins is None
        else NumberCollector(columns.value, None if combined else bins, quietly=quietly)
    )
    owners = [LabelCollector(name) for name in columns.subjects]
    times = [TimeCollector(name) for name in (columns.time, columns.end) if name is not None]
    held = [] if columns.duration is None else [DurationCollector(columns.duration)]
    collectors = [value, *owners, *times, *held]
    note = read_columns(source, collectors, dialect, begins)
    if value.rows == 0:
        raise InvalidInputError(f"Column {columns.value!r} has no rows; there is nothing to read.")
    if any(one.sizes != value.sizes for one in collectors):
        for one in collectors:
            one.join()
    lasting = bool(held) or len(times) > 1
    if lasting and times and step is None:
        raise InvalidInputError(
            "Rows that hold for a while need a grid of time points; add "
            f"{argument('every', '10min')}."
        )
    duration_unit = held[0].unit() if held and times else ""
    durations = held[0].checked(UNITS.get(duration_unit, 1)) if held else None
    numeric = any(one.counted for one in times)
    time_unit = _time_unit(times, dialect.date_format, step) if numeric else ""
    units = [
        (columns.time, time_unit and f"{time_unit} since 1970"),
        (columns.duration, duration_unit if held and held[0].plain else ""),
    ]
    sentences = (f"Numbers of {name!r} are {unit}." for name, unit in units if unit)
    note = " ".join(filter(None, (note, *sentences)))
    seconds_each = UNITS[time_unit or "seconds"]
    subjects, subject_numbers = _subjects(owners)
    chosen = None if columns.only is None else _chosen(columns.only, subjects)

    def numbered() -> Iterator[tuple[NDArray[np.int64], Block]]:
        clocks = [
            _LocalTimes(clock, partial(subject_suffix, subjects), len(subjects), columns.merges)
            for _ in times
        ]
        before = 0
        for values, *others in zip(*(one.parts for one in collectors), strict=True):
            rows = np.arange(before + 1, before + len(values) + 1)
            before += len(values)
            who = subject_numbers(others[: len(owners)], len(values))
            if chosen is not None:
                kept = chosen[who]
                rows, who, values = rows[kept], who[kept], values[kept]
                others = [other[kept] for other in others]
            moments = [
                local.convert(column, part * seconds_each, who, rows)
                for local, column, part in zip(clocks, times, others[len(owners) :], strict=False)
            ]
            when = moments[0] if moments else None
            if lasting:
                holds = None if durations is None else durations[others[-1]]
                row, when = _spread(when, holds, moments[1:], step, rows)
                rows, who, values = rows[row], who[row], values[row]
            yield rows, (who, when, values)

    return Records(value, subjects, numeric and not time_unit, note, numbered)


def _chosen(only: Any, subjects: Sequence[Any]) -> NDArray[np.bool_]:
    """Return which of the subjects is meant: by its name, or by the text of it."""
    names = [", ".join(map(str, one)) if isinstance(one, tuple) else str(one) for one in subjects]
    wanted = ", ".join(map(str, only)) if isinstance(only, (tuple, list)) else str(only)
    chosen = np.array([name == wanted for name in names], dtype=np.bool_)
    if not chosen.any():
        raise InvalidInputError(
            f"There is no subject {shortened(wanted)} among the {len(subjects):,} of the data."
        )
    return chosen


def _time_unit(times: Sequence[TimeCollector], stated: str | None, step: int | None) -> str:
    """Return the unit of times that are whole numbers; empty if they only order rows.

    Seconds since 1970 are recognized by their size, other units by what is stated, or by the name
    of the column.
    """
    if stated in UNITS:
        return str(stated)
    if min(one.least for one in times) >= SINCE_1970:
        return "seconds"
    named = named_units(" ".join(one.name for one in times))
    if len(named) == 1:
        return named[0]
    if step is not None:
        raise InvalidInputError(
            f"Do the whole numbers of column {times[0].name!r} count seconds, minutes, hours or "
            f"days? A grid needs their unit: give it, for example "
            f"{argument('date_format', 'minutes')}, or write it into the column's name."
        )
    return ""


def _spread(
    when: NDArray[np.int64] | None,
    holds: NDArray[np.int64] | None,
    ends: list[NDArray[np.int64]],
    step: int | None,
    rows: NDArray[np.int64],
) -> tuple[NDArray[np.int64], NDArray[np.int64] | None]:
    """Return one record for each time point at which rows hold: (row, when)."""
    if when is None or step is None:
        assert holds is not None  # noqa: S101  (an end needs a time)
        check_points(int(holds.sum()))
        return np.repeat(np.arange(len(holds)), holds), None
    until = ends[0] if holds is None else when + holds
    if (until < when).any():
        raise InvalidInputError(f"Row {rows[int(np.argmax(until < when))]} ends before it begins.")
    return spread(when, until, step)


class _LocalTimes:
    """Converts the times of one column to the clock of the series, block by block.

    In the hour that comes twice in autumn, a repeated time begins the second pass. With `merges`, a
    row that repeats the row directly before it is a duplicate instead, and gets the same moment;
    not so where rows are an hour or more apart, since there the repeat is the second pass.
    """

    def __init__(
        self, clock: Clock, name: Callable[[int], str], subjects: int, merges: bool
    ) -> None:
        self._clock = clock
        self._zone = parse_zone(clock.zone)
        self._before = RowsBefore(name)
        self._merges = merges
        self._shown, self._moment, self._gap = np.full((3, subjects), NEVER)

    def convert(
        self,
        column: TimeCollector,
        seconds: NDArray[np.int64],
        who: NDArray[Any],
        rows: NDArray[np.int64],
    ) -> NDArray[np.int64]:
        if self._zone is None:
            return seconds
        if column.aware:
            return local_seconds(seconds, self._zone) if self._clock.local else seconds
        if self._clock.local:
            return seconds
        if not self._merges or not len(seconds):
            return utc_seconds(seconds, who, self._zone, self._before, rows)
        return self._without_duplicates(seconds, who, rows)

    def _without_duplicates(
        self, seconds: NDArray[np.int64], who: NDArray[Any], rows: NDArray[np.int64]
    ) -> NDArray[np.int64]:
        zone = self._zone
        assert zone is not None  # noqa: S101  (checked by the caller)
        order = np.argsort(who, kind="stable")
        owner, shown = who[order], seconds[order]
        starts = np.append(True, owner[1:] != owner[:-1])
        previous = np.append(NEVER, shown[:-1])
        previous[starts] = self._shown[owner[starts]]
        gaps = shown - previous
        gaps[previous == NEVER] = 0
        before = np.append(NEVER, gaps[:-1])  # the gap before the row directly before
        before[starts] = self._gap[owner[starts]]
        repeats = (shown == previous) & (before < _HOUR)
        positions = np.arange(len(order))
        source = np.maximum.accumulate(np.where(repeats, -1, positions))
        first = np.maximum.accumulate(np.where(starts, positions, 0))
        new = np.sort(order[~repeats])
        moments = np.empty_like(seconds)
        moments[new] = utc_seconds(seconds[new], who[new], zone, self._before, rows[new])
        sorted_moments = moments[order]
        from_block = repeats & (source >= first)
        sorted_moments[from_block] = sorted_moments[source[from_block]]
        carried = repeats & ~from_block
        sorted_moments[carried] = self._moment[owner[carried]]
        moments[order] = sorted_moments
        self._shown[owner], self._moment[owner] = shown, sorted_moments
        self._gap[owner] = np.where(repeats, before, gaps)
        return moments


def _subjects(
    columns: Sequence[LabelCollector],
) -> tuple[list[Any], Callable[[Sequence[NDArray[Any]], int], NDArray[Any]]]:
    """Return the names of subjects in order of appearance, and what numbers those of some rows."""
    if not columns:
        return [None], lambda codes, rows: np.zeros(rows, dtype=np.int8)
    names_by_column, tables = [], []
    for column in columns:
        cells = as_labels(column.distinct, textual=column.textual, dialect=column.dialect)
        numbers = {name: number for number, name in enumerate(dict.fromkeys(cells))}
        names_by_column.append(list(numbers))
        same = len(numbers) == len(cells)
        tables.append(None if same else np.array([numbers[name] for name in cells]))

    def combined(codes: Sequence[NDArray[Any]], rows: int) -> NDArray[Any]:
        parts = [c if t is None else t[c] for c, t in zip(codes, tables, strict=True)]
        if len(parts) == 1:
            return parts[0]
        return np.ravel_multi_index(parts, [len(names) for names in names_by_column])

    if len(columns) == 1:
        return names_by_column[0], combined
    appearance: dict[int, int] = {}
    for codes in zip(*(column.parts for column in columns), strict=True):
        distinct, first = np.unique(combined(codes, 0), return_index=True)
        for code in distinct[np.argsort(first)].tolist():
            appearance.setdefault(code, len(appearance))
    present = np.array(list(appearance), dtype=np.int64)
    order = np.argsort(present)
    parts = np.unravel_index(present, [len(names) for names in names_by_column])
    shown = list(
        zip(
            *([n[i] for i in p.tolist()] for n, p in zip(names_by_column, parts, strict=True)),
            strict=True,
        )
    )
    return shown, lambda codes, rows: order[np.searchsorted(present[order], combined(codes, rows))]
