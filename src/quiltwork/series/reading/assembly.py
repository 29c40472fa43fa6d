"""Records to sequences of state codes: in order, on the grid, one file after the other.

Where each file is a subject, only the codes of a file stay in memory when the next one is read.
"""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

import numpy as np
from numpy.typing import NDArray

from quiltwork import files
from quiltwork.beliefs.grids import Grid
from quiltwork.beliefs.origins import CodedSequence, CodedSequences, Origin, index_step
from quiltwork.beliefs.sequences import label_array, position_of
from quiltwork.beliefs.states import Label, show_labels, sorted_labels
from quiltwork.delimited import MISSING_WORDS, DialectOptions, joined
from quiltwork.errors import InvalidInputError
from quiltwork.series.reading.binning import Bins
from quiltwork.series.reading.clock import Clock
from quiltwork.series.reading.collectors import GAP, SINCE_1970, LabelCollector, binned, smallest
from quiltwork.series.reading.columns import FILE_NAME, file_name
from quiltwork.series.reading.source_records import ColumnChoice, Records, read_records
from quiltwork.series.reading.streamed import (
    NEVER,
    Block,
    Outline,
    in_order,
    on_steps,
    refuse_repeat,
    sorted_by_time,
    without_repeats,
)
from quiltwork.series.reading.values import as_labels, match_labels
from quiltwork.wording import argument

_SMALL, _MOST_TOGETHER = 1 << 20, 1000
"""Files are read together up to so many bytes, and so many files."""
_ENOUGH_GAPS = 20
"""Fewer time gaps may be similar by chance."""


@dataclass(frozen=True, eq=False)
class Path:
    """The state codes of one subject in order, `GAP` where one is missing, and its first moment.

    On no grid, `gaps` measures the times between records: how many gaps are the shortest one, the
    shortest, the greatest common divisor, the longest, and their sum.
    """

    subject: Any
    codes: NDArray[Any]
    start: int | None
    gaps: tuple[int, ...] | None = None


@dataclass(frozen=True, eq=False)
class Paths:
    """The paths of all subjects, by codes of `states`.

    Attributes:
        states: the labels, by code.
        paths: one for each subject.
        grid: the time points; its step also where the times show one.
        note: a sentence on how the file is written.
        counted: whether times are whole numbers of an unknown unit, which show no step.
        holes: the step of times that would be regular if none were missing; None if none is.
        pause: without such a step, the usual time gap of a path that has one much longer gap, and
            that gap.
    """

    states: tuple[Label, ...]
    paths: list[Path]
    grid: Grid
    note: str
    counted: bool = False
    holes: int | None = None
    pause: tuple[int, int] | None = None

    def regular(self) -> Paths:
        """Find the step of times without a grid; a path with other gaps has no known start.

        More than half of the gaps must be one step, the others multiples of it.
        """
        if self.paths[0].gaps is None:
            return self
        rows = [(*path.gaps, len(path.codes) - 1) for path in self.paths if path.gaps is not None]
        often, least, common, longest, span, number = np.array(rows, dtype=np.int64).T
        step = int(least.min())
        mostly_steps = 2 * int(often[least == step].sum()) > int(number.sum())
        if mostly_steps and np.gcd.reduce(common) == step:
            even = [gap in (step, 0) for gap in longest.tolist()]  # 0: a path of one record
            paths = [
                path if is_even and not self.counted else replace(path, start=None)
                for path, is_even in zip(self.paths, even, strict=True)
            ]
            holes = None if all(even) else step
            grid = self.grid if self.counted else replace(self.grid, step=step)
            return replace(self, paths=paths, grid=grid, holes=holes)
        usual = (span - longest) / np.maximum(number - 1, 1)
        enough = number >= _ENOUGH_GAPS
        pauses = np.flatnonzero(enough & (2 * least > usual) & (longest > 2 * usual))
        pause = (int(least[pauses[0]]), int(longest[pauses[0]])) if len(pauses) else None
        return replace(self, paths=[replace(path, start=None) for path in self.paths], pause=pause)


@dataclass(frozen=True, eq=False)
class ReadingRules:
    """The rules by which records become paths.

    Attributes:
        columns: the columns to read.
        dialect: how the caller says the files are written.
        bins: the bins that turn numbers into states; None for labels.
        grid: the time points.
        clock: the clock of the times.
        public: the states declared; None if they are those that occur.
        limits: the first second and the second after the last one; None for all times.
        believed: whether there are beliefs, so that a release refuses cells that are no state.
        quietly: whether a cell that is no number counts as missing.
    """

    columns: ColumnChoice
    dialect: DialectOptions
    bins: Bins | None
    grid: Grid
    clock: Clock
    public: Sequence[Label] | None
    limits: tuple[int, int] | None
    believed: bool
    quietly: bool

    def read(self, source: Any) -> Paths:
        """Read a source, file by file where each file is a subject and the states are declared.

        Undeclared states depend on all files, so these are then read as one.
        """
        by_file = FILE_NAME in self.columns.subjects and isinstance(source, (str, os.PathLike))
        if not by_file or self.public is None:
            return self._read_one(source).regular()
        sources = files.expand_files(os.fspath(source))
        if len(sources) == 1:
            return self._read_one(source).regular()
        if self.columns.only is not None:
            sources = [path for path in sources if file_name(path) == self.columns.only] or sources
        together = self.grid.step is not None or self.columns.time is None
        results: list[Paths] = []
        for group in _groups(sources) if together else ([path] for path in sources):
            results += self._read_group(group)
        return _merged(results).regular()

    def _read_group(self, paths: list[str]) -> list[Paths]:
        """Read small files as one; each on its own if their formats differ or one has an error."""
        several = 1 < len(paths) == len(set(map(file_name, paths)))
        small = joined(paths, self.dialect) if several else None
        if small is not None:
            with suppress(InvalidInputError):
                return [self._read_one(small)]
        results = []
        for path in paths:
            try:
                results.append(self._read_one(path))
            except InvalidInputError as error:
                raise InvalidInputError(f"{path}: {error}") from None
        return results

    def _read_one(self, source: Any) -> Paths:
        begins: dict[str, int] = {}
        try:
            return self._read_all(source, begins)
        except InvalidInputError as error:
            row = re.match(r"Row (\d+) (?!of ')", str(error))  # "Row 3 of 'file'" names its file
            if row is None or not begins:
                raise
            path, before = [item for item in begins.items() if item[1] < int(row[1])][-1]
            message = f"{path}: Row {int(row[1]) - before} {str(error)[row.end() :]}"
            raise InvalidInputError(message) from None

    def _read_all(self, source: Any, begins: dict[str, int]) -> Paths:
        records = read_records(
            source,
            self.columns,
            self.dialect,
            self.bins,
            self.grid.step,
            self.clock,
            quietly=self.quietly,
            apart=self.believed,
            begins=begins,
        )
        table = None
        if self.bins is None:
            states, table = _coded(records.value, self.public, believed=self.believed)
        else:
            states = self.bins.labels
        return Paths(states, *self._paths(source, records, table), records.note, records.counted)

    def _paths(
        self, source: Any, records: Records, table: NDArray[Any] | None
    ) -> tuple[list[Path], Grid]:
        """Put the records of each subject in order, on the grid if there is one, block by block."""
        step, limits, alone = self.grid.step, self.limits, len(records.subjects) == 1

        def recorded() -> Iterator[Block]:
            for who, when, values in records.blocks():
                codes = values if table is None else table[values]
                if limits is not None and when is not None:
                    inside = (when >= limits[0]) & (when < limits[1])
                    who, when, codes = who[inside], when[inside], codes[inside]
                yield who, when, codes

        blocks = self._merging(recorded)
        outline = Outline.of(blocks(), len(records.subjects))
        if outline is None:  # not in order of time
            blocks = self._merging(sorted_by_time(recorded))
            outline = Outline.of(blocks(), len(records.subjects))
        assert outline is not None  # noqa: S101  (they are sorted now)
        timed = int(outline.first.max()) > NEVER
        if outline.repeated is not None and (step is None or self.columns.duplicates == "error"):
            refuse_repeat(records.numbered(), outline.repeated, records.subjects)
        if limits is not None and (step is None or (not timed and outline.counts.any())):
            raise InvalidInputError(
                f"Public days need the time column, {argument('time')}, and steps, for example "
                f"{argument('every', '15min')}."
            )
        if not outline.counts.any():
            raise InvalidInputError("No record is on these days; check them, and the time zone.")
        kind = np.int8 if table is None else table.dtype
        if self.bins is not None:
            kind = smallest(len(self.bins.labels))
        gaps: list[tuple[int, ...] | None] = [None] * len(records.subjects)
        begins = outline.first if timed else None
        if step is None or not timed:
            if timed:
                gaps = outline.gaps()
            elif alone:
                step = index_step(source)
            codes, bounds = in_order(blocks(), outline, kind)
        else:
            period = None if limits is None else (limits[0] // step, (limits[1] - 1) // step)
            encode = partial(binned, bins=self.bins) if self.bins is not None else _unchanged
            rule = self.grid.rule or "last"
            codes, bounds, first = on_steps(blocks(), outline, step, rule, period, encode, kind)
            begins = first * step
        paths = [
            Path(
                records.subjects[i],
                codes[bounds[i] : bounds[i + 1]],
                None if begins is None else int(begins[i]),
                gaps[i],
            )
            for i in np.flatnonzero(outline.counts).tolist()
        ]
        return paths, replace(self.grid, step=step)

    def _merging(self, blocks: Callable[[], Iterator[Block]]) -> Callable[[], Iterator[Block]]:
        """Return blocks in which duplicates are merged, if the caller asked for that."""
        duplicates = self.columns.duplicates
        if duplicates is None or duplicates == "error":
            return blocks
        bins = self.bins if self.grid.step is None and duplicates == "mean" else None

        def merged() -> Iterator[Block]:
            for who, when, values in without_repeats(blocks(), duplicates):
                yield who, when, values if bins is None else binned(values, bins)

        return merged


def _groups(paths: Sequence[str]) -> Iterator[list[str]]:
    """Group files whose sizes add up to little; compressed files stay alone."""
    group: list[str] = []
    size = 0
    for path in paths:
        plain = not path.endswith((*files.TABLES, ".gz")) and os.path.isfile(path)
        added = os.path.getsize(path) if plain else _SMALL
        if group and (size + added > _SMALL or len(group) == _MOST_TOGETHER):
            yield group
            group, size = [], 0
        group.append(path)
        size += added
    yield group


def _unchanged(codes: NDArray[Any]) -> NDArray[Any]:
    return codes


def _merged(results: Sequence[Paths]) -> Paths:
    """Merge the paths of several files, by codes of the states of all."""
    states = list(dict.fromkeys(label for result in results for label in result.states))
    index = {label: i for i, label in enumerate(states)}
    paths: dict[Any, Path] = {}
    for result in results:
        table = np.array([*(index[label] for label in result.states), GAP])
        same = table[:-1].tolist() == list(range(len(result.states)))
        small = table.astype(smallest(len(states) + 1))
        for path in result.paths:
            if path.subject in paths:
                raise InvalidInputError(
                    "A subject is in several files; files that name subjects must have names of "
                    "their own."
                )
            codes = path.codes if same else small[path.codes]  # GAP is −1, the last entry
            paths[path.subject] = replace(path, codes=codes)
    note = next((result.note for result in results if result.note), "")
    counted = any(result.counted for result in results)
    return Paths(tuple(states), list(paths.values()), results[0].grid, note, counted)


def _coded(
    column: LabelCollector, states: Sequence[Label] | None, *, believed: bool
) -> tuple[tuple[Label, ...], NDArray[Any]]:
    """Return the states, and the state code of each cell code, `GAP` for a missing cell.

    Without beliefs all states are declared, or none is. With beliefs it is the release that refuses
    a row, once a ledger has checked the beliefs; if these have no states, a row may hold any value,
    and no row may change how others are read.
    """
    cells = column.distinct
    if states is not None and column.textual:
        labels = match_labels(cells, tuple(states), column.dialect)
    else:
        labels = as_labels(cells, textual=column.textual, apart=believed, dialect=column.dialect)
        _refuse_undeclared(column, cells)
    present = list(dict.fromkeys(label for label in labels if label is not None))
    known = list(states) if states is not None else list(sorted_labels(present))
    others = [label for label in present if label not in set(known)]
    if others and not believed:
        row = position_of(column.join(), labels.index(others[0]))
        raise InvalidInputError(
            f"Row {row} of column {column.name!r} holds none of the states "
            f"{show_labels(tuple(known))}; declare what it holds as well, or drop it."
        )
    known += others
    index = {label: i for i, label in enumerate(known)}
    table = np.array([GAP if label is None else index[label] for label in labels])
    return tuple(known), table.astype(smallest(len(known) + 1))


def _refuse_undeclared(column: LabelCollector, cells: Sequence[Any]) -> None:
    """Refuse an undeclared word for a missing value, where missing words must be declared."""
    for code, cell in enumerate(cells if column.dialect.declared else ()):
        word = cell.strip().lower() if isinstance(cell, str) else ""
        if word in MISSING_WORDS and not column.dialect.is_missing(cell):
            row = position_of(column.join(), code)
            raise InvalidInputError(
                f"Row {row} of column {column.name!r} holds a usual word for a missing value that "
                "was not declared, and where gaps are public the words for them must be: name it "
                f"with {argument('na_values')}, or if it is a state, list it in states."
            )


def refuse_gaps(paths: Sequence[Path], grid: Grid, clock: Clock, *, named: bool) -> None:
    """Refuse missing time points; subjects are not named unless they are files.

    The first one is named by its date where that is known, else by its number alone.
    """
    gaps = sum(int((path.codes == GAP).sum()) for path in paths)
    if not gaps:
        return
    number, path = next((i, path) for i, path in enumerate(paths) if (path.codes == GAP).any())
    position = int(np.argmax(path.codes == GAP)) + 1
    whose = f" of {path.subject!r}" if named else f" of subject {number + 1} (in their order)"
    whose = whose if path.subject is not None else ""
    date = ""
    if path.start is not None and grid.step is not None and path.start >= SINCE_1970:
        moment = clock.shown(path.start + grid.step * (position - 1))
        date = f", {moment:%Y-%m-%d %H:%M},"
    more = f", and {gaps - 1:,} more {'is' if gaps == 2 else 'are'}" if gaps > 1 else ""
    raise InvalidInputError(
        f"Time point {position:,}{whose}{date} is missing{more}; say what to do: "
        f"{argument('missing', 'state')} makes it a state of its own; "
        f"{argument('missing', 'public')} leaves it out, if when the "
        "series was silent is public and says nothing about its states."
    )


def sequences(
    paths: Sequence[Path],
    states: tuple[Label, ...],
    gap: str | None,
    origin: Origin,
    *,
    public: bool,
) -> tuple[CodedSequences, tuple[Label, ...]]:
    """Return the sequences by subject and their states: with `gap`, or with `public` gaps."""
    labels = label_array(states)
    if public or gap is not None or any((path.codes == GAP).any() for path in paths):
        labels = label_array((*states, gap))
    if gap is not None and gap not in states:
        states = (*states, gap)
    origin = replace(origin, parts=len(paths))
    coded = {}
    for path in paths:
        codes = path.codes.astype(smallest(len(labels)), copy=False)
        gaps = codes == GAP
        if gaps.any():
            codes = codes.copy()
            codes[gaps] = len(labels) - 1
        recorded = ~gaps if public else None
        coded[path.subject] = CodedSequence(codes, labels, origin, path.start, recorded)
    return CodedSequences(coded), states
