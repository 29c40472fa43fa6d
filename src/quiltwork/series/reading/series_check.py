"""A look at one's own series before anything else: steps, subjects, doubles, holes, values.

It shows names, times and cells, so it is for the screen of whoever owns the rows; no release and
no ledger uses it. Cost: one pass and a sort; rows are held in memory.
"""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

from quiltwork.beliefs.grids import duration
from quiltwork.delimited import Dialect, DialectOptions
from quiltwork.errors import InvalidInputError
from quiltwork.results import ResultBase
from quiltwork.series.reading.clock import Clock, series_clock
from quiltwork.series.reading.source_records import Records, Wanted, read_records
from quiltwork.series.reading.values import as_numbers
from quiltwork.wording import either

_SHOWN = 10
_Numbers: TypeAlias = tuple[int, float, float, float]


@dataclass(frozen=True)
class SubjectLook(ResultBase):
    """One subject: how many rows, from when to when, doubled times, and steps without a row."""

    name: str
    rows: int
    first: str | None
    last: str | None
    doubles: int
    missing_steps: int


@dataclass(frozen=True)
class Double(ResultBase):
    """A row at the time of an earlier one of the same subject."""

    subject: str
    time: str
    row: int
    earlier: int
    equal: bool


@dataclass(frozen=True)
class Hole(ResultBase):
    """Steps without a row, after one."""

    subject: str
    after: str
    row: int
    steps: int


@dataclass(frozen=True)
class TimesLook:
    """The usual step, subjects, doubled times and holes."""

    step: int | None
    subjects: tuple[SubjectLook, ...]
    doubles: tuple[Double, ...] = ()
    holes: tuple[Hole, ...] = ()


@dataclass(frozen=True)
class Cell(ResultBase):
    """A cell of the value column: how often, and in which row first."""

    text: str
    count: int
    row: int


@dataclass(frozen=True)
class SeriesLook(ResultBase):
    """What a file of series looks like.

    Attributes:
        path: the file, or files.
        rows: how many.
        reading: how the file is written, where that is not plain.
        zone: in which times were read; None as clocks show them.
        unread: why the zone could not be used, if one was given.
        step: the usual time between two rows of a subject, in seconds; None without times.
        subjects: each of them.
        doubles: rows at the time of an earlier one.
        holes: the longest first.
        numbers: how many cells of the value column are numbers, and their least, median, largest.
        words: cells that are no numbers beside numbers, or the states, the commonest first.
        missing: how many cells are empty or a word for a missing value.
    """

    path: str
    rows: int
    reading: str
    zone: str | None
    unread: str | None
    step: int | None
    subjects: tuple[SubjectLook, ...]
    doubles: tuple[Double, ...]
    holes: tuple[Hole, ...]
    numbers: _Numbers | None
    words: tuple[Cell, ...]
    missing: int
    schema = ("check-series", 1)

    def explain(self) -> str:
        """Say all of it; of what is long the first."""
        lines = [f"{self.path}: {self.rows:,} rows of {len(self.subjects):,} series.", self.reading]
        if self.unread:
            lines.append(f"Times cannot be read in {self.zone}: {self.unread}")
        if self.step is not None:
            lines.append(
                f"Steps: mostly {duration(self.step)} from row to row. "
                f"To read them so: {_named('every', '--every', duration(self.step))}."
            )
        lines += self._of_subjects() + self._of_places() + self._of_values()
        return "\n".join(filter(None, lines))

    def _of_subjects(self) -> list[str]:
        lines = ["", "Subjects:"] if self.subjects else []
        for one in self.subjects[:_SHOWN]:
            when = "" if one.first is None else f", {one.first} to {one.last}"
            odd = [f"{one.doubles:,} doubled"] if one.doubles else []
            odd += [f"{one.missing_steps:,} steps missing"] if one.missing_steps else []
            lines.append(f"  {one.name}: {one.rows:,} rows{when}{''.join(f', {o}' for o in odd)}")
        return lines + _more(self.subjects, "subjects")

    def _of_places(self) -> list[str]:
        lines = ["", "Doubled times:"] if self.doubles else []
        for double in self.doubles[:_SHOWN]:
            same = "with the same value" if double.equal else "with another value"
            lines.append(
                f"  row {double.row:,}: {double.subject} at {double.time} again, {same} "
                f"(row {double.earlier:,})"
            )
        lines += _more(self.doubles, "doubled times")
        if self.holes:
            lines += ["", "Holes, the longest first:"]
            lines += [
                f"  after row {hole.row:,}: {hole.subject} from {hole.after}, {hole.steps:,} steps"
                for hole in self.holes[:_SHOWN]
            ]
            lines += _more(self.holes, "holes")
        return lines

    def _of_values(self) -> list[str]:
        lines = ["", "Values:"]
        if self.numbers is not None:
            count, low, middle, high = self.numbers
            lines.append(
                f"  {count:,} numbers from {low:g} to {high:g}, half of them up to {middle:g}. "
                f"Public edges make them states, {_named('edges', '--edges', [0.5, 2])}, which are "
                "not chosen by these rows."
            )
            named = _named("na_values", "--na", ["…"])
            kind = f"no number; if it means that nothing was recorded, declare it: {named}"
        else:
            kind = "a state"
        lines += [
            f"  {cell.text!r}: {cell.count:,} times, first in row {cell.row:,}; {kind}"
            for cell in self.words[:_SHOWN]
        ]
        lines += _more(self.words, "different cells")
        if self.missing:
            lines.append(f"  {self.missing:,} cells are missing.")
        return lines


def _named(called: str, typed: str, value: Any) -> str:
    """Name an argument of a command that reads series, which is another one than this."""
    text = ",".join(map(str, value)) if isinstance(value, list) else str(value)
    return either(f"{called}={value!r}", f"{typed} {text}")


def _more(shown: Sequence[Any], what: str) -> list[str]:
    left = len(shown) - _SHOWN
    return [f"  … and {left:,} more {what}"] if left > 0 else []


def look_at_series(
    source: Any,
    value: str,
    *,
    time: str | None = None,
    subject: str | Sequence[str] | None = None,
    timezone: str | None = None,
    given: DialectOptions | None = None,
) -> SeriesLook:
    """Look at a file of series, as `read_series` would read it, and refuse as little as can be.

    Raises:
        InvalidInputError: for columns that are not there, and times that cannot be read at all.
    """
    wanted = Wanted(value, time, subject, None, None, timezone)
    dialect, unread = given or DialectOptions(), None
    clock = series_clock(timezone, None)
    try:
        rows = _rows_of(read_all := _read(source, wanted, dialect, clock))
    except InvalidInputError as error:
        if timezone is None:
            raise
        clock, unread = series_clock(None, None), str(error)
        rows = _rows_of(read_all := _read(source, wanted, dialect, clock))
    who, when, codes = rows
    names = [str(name) if name is not None else "the series" for name in read_all.subjects]
    numbers, words, missing = _values(read_all, codes)
    if when is None:
        counts = np.bincount(who, minlength=len(names)).tolist()
        alone = tuple(
            SubjectLook(name, count, None, None, 0, 0)
            for name, count in zip(names, counts, strict=True)
        )
        outline = TimesLook(None, alone)
    else:
        outline = _times(who, when, codes, names, clock)
    return SeriesLook(
        path=str(source),
        rows=len(who),
        reading=read_all.note,
        zone=timezone,
        unread=unread,
        step=outline.step,
        subjects=outline.subjects,
        doubles=outline.doubles,
        holes=outline.holes,
        numbers=numbers,
        words=words,
        missing=missing,
    )


def _read(source: Any, wanted: Wanted, given: DialectOptions, clock: Clock) -> Records:
    return read_records(
        source, wanted, given, None, None, clock, quietly=True, apart=True, begins={}
    )


def _rows_of(
    records: Records,
) -> tuple[NDArray[np.int64], NDArray[np.int64] | None, NDArray[np.int64]]:
    """Return whose each row is, when, and the code of its cell, in the order of the file."""
    blocks = list(records.blocks())
    who = np.concatenate([np.asarray(block[0], dtype=np.int64) for block in blocks])
    codes = np.concatenate([np.asarray(block[2], dtype=np.int64) for block in blocks])
    known = [block[1] for block in blocks]
    if any(part is None for part in known):
        return who, None, codes
    return who, np.concatenate([np.asarray(part, dtype=np.int64) for part in known]), codes


def _times(
    who: NDArray[np.int64],
    when: NDArray[np.int64],
    codes: NDArray[np.int64],
    names: list[str],
    clock: Clock,
) -> TimesLook:
    order = np.lexsort((np.arange(len(who)), when, who))
    who, when, codes = who[order], when[order], codes[order]
    gaps = np.diff(when)
    inside = who[1:] == who[:-1]
    later = gaps[inside & (gaps > 0)]
    step = None
    if len(later):
        sizes, often = np.unique(later, return_counts=True)
        step = int(sizes[np.argmax(often)])
    twice = np.flatnonzero(inside & (gaps == 0)) + 1
    doubles = tuple(
        Double(
            names[who[at]],
            clock.written(int(when[at])),
            int(order[at]) + 1,
            int(order[at - 1]) + 1,
            bool(codes[at] == codes[at - 1]),
        )
        for at in twice.tolist()
    )
    wide = np.flatnonzero(inside & (gaps > (step or 0))) if step else np.array([], dtype=np.int64)
    lost = gaps[wide] // (step or 1) - 1
    wide, lost = wide[lost > 0], lost[lost > 0]
    holes = tuple(
        Hole(names[who[at]], clock.written(int(when[at])), int(order[at]) + 1, int(steps))
        for at, steps in sorted(zip(wide.tolist(), lost.tolist(), strict=True), key=lambda h: -h[1])
    )
    size = len(names)
    counts = np.bincount(who, minlength=size)
    doubled = np.bincount(who[twice], minlength=size)
    missing = np.bincount(who[wide], weights=lost, minlength=size).astype(np.int64)
    ends = np.cumsum(counts)
    subjects = tuple(
        SubjectLook(
            names[one],
            int(counts[one]),
            clock.written(int(when[ends[one] - counts[one]])),
            clock.written(int(when[ends[one] - 1])),
            int(doubled[one]),
            int(missing[one]),
        )
        for one in range(size)
        if counts[one]
    )
    return TimesLook(step, subjects, doubles, holes)


def _values(
    records: Records, codes: NDArray[np.int64]
) -> tuple[_Numbers | None, tuple[Cell, ...], int]:
    """Sort cells into numbers, words and missing ones; half of the cells decide what all are."""
    cells, dialect = records.value.distinct, records.value.dialect
    counts = np.bincount(codes, minlength=len(cells))
    numbers = np.array([_number(cell, dialect) for cell in cells])
    empty = np.array([_is_missing(cell, dialect) for cell in cells], dtype=np.bool_)
    numeric = ~np.isnan(numbers) & ~empty
    words = ~numeric & ~empty
    found: _Numbers | None = None
    if counts[numeric].sum() > counts[words].sum() and numeric.sum() > _SHOWN:
        order = np.argsort(numbers[numeric])
        sums = np.cumsum(counts[numeric][order])
        middle = numbers[numeric][order][np.searchsorted(sums, sums[-1] / 2)]
        low, high = float(numbers[numeric].min()), float(numbers[numeric].max())
        found = int(sums[-1]), low, float(middle), high
    else:
        words = ~empty
    shown = np.flatnonzero(words)
    shown = shown[np.argsort(-counts[shown], kind="stable")]
    first = {int(code): int(np.argmax(codes == code)) + 1 for code in shown[: 4 * _SHOWN]}
    listed = tuple(
        Cell(str(cells[code]), int(counts[code]), first.get(code, 0)) for code in shown.tolist()
    )
    return found, listed, int(counts[empty].sum())


def _is_missing(cell: Any, dialect: Dialect) -> bool:
    if isinstance(cell, str):
        return dialect.is_missing(cell)
    return cell is None or cell != cell


def _number(cell: Any, dialect: Dialect) -> float:
    with suppress(Exception):  # whatever is in a cell
        return float(as_numbers([cell], "", quietly=True, dialect=dialect)[0])
    return float("nan")
