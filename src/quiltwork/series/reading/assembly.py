"""Records to sequences of codes: in order, on the grid, one file after the other.

Where file names tell subjects apart, only the codes of a file are kept when the next one is read.
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterator, Sequence
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
from quiltwork.series.reading.collectors import GAP, LabelCollector, binned, smallest
from quiltwork.series.reading.columns import FILE_NAME, file_name
from quiltwork.series.reading.source_records import Records, Wanted, read_records
from quiltwork.series.reading.streamed import (
    NEVER,
    Block,
    Outline,
    in_order,
    in_time,
    on_steps,
    refuse_twice,
)
from quiltwork.series.reading.values import as_labels, match_labels
from quiltwork.wording import argument

_SMALL, _MOST_TOGETHER = 1 << 20, 1000
_MANY = 20
"""Fewer gaps may be about alike by chance."""


@dataclass(frozen=True, eq=False)
class Path:
    """The states of one subject in order, `GAP` where one is missing, and when they begin.

    On no grid `gaps` tells of the times: how often the shortest gap is there, that, what all are
    multiples of, the longest, and how long the path is.
    """

    subject: Any
    codes: NDArray[Any]
    start: int | None
    gaps: tuple[int, ...] | None = None


@dataclass(frozen=True, eq=False)
class Paths:
    """What was read: the paths of all subjects, by codes of `states`.

    Attributes:
        counted: whether times are whole numbers of nobody knows what, which show no step.
        holes: the step of times that would be regular if none were missing; None if none is.
        pause: without such a step, about how far apart the times of a path are that has a much
            longer pause, and how long that is.
    """

    states: tuple[Label, ...]
    paths: list[Path]
    grid: Grid
    note: str
    counted: bool = False
    holes: int | None = None
    pause: tuple[int, int] | None = None

    def regular(self) -> Paths:
        """Find the step of times without a grid; a path with other gaps begins at no known time.

        Most gaps must be one step, the others several.
        """
        if self.paths[0].gaps is None:
            return self
        rows = [(*path.gaps, len(path.codes) - 1) for path in self.paths if path.gaps is not None]
        often, least, common, longest, span, number = np.array(rows, dtype=np.int64).T
        step = int(least.min())
        most = 2 * int(often[least == step].sum()) > int(number.sum())
        if most and np.gcd.reduce(common) == step:
            whole = [gap in (step, 0) for gap in longest.tolist()]  # 0 of a path of one record
            paths = [
                one if keeps and not self.counted else replace(one, start=None)
                for one, keeps in zip(self.paths, whole, strict=True)
            ]
            holes = None if all(whole) else step
            grid = self.grid if self.counted else replace(self.grid, step=step)
            return replace(self, paths=paths, grid=grid, holes=holes)
        usual = (span - longest) / np.maximum(number - 1, 1)
        pauses = np.flatnonzero((number >= _MANY) & (2 * least > usual) & (longest > 2 * usual))
        pause = (int(least[pauses[0]]), int(longest[pauses[0]])) if len(pauses) else None
        return replace(self, paths=[replace(one, start=None) for one in self.paths], pause=pause)


@dataclass(frozen=True, eq=False)
class ReadingRules:
    """How records are to be read.

    Attributes:
        wanted: the columns.
        given: what the caller says about how files are written.
        bins: what turns numbers into states; None for labels.
        grid: the time points.
        clock: of the seconds.
        public: the states declared; None if they are those that occur.
        limits: from when to before when, in seconds; None for all.
        believed: whether there are beliefs, so that a release refuses what is no state.
        quietly: whether what is no number is missing.
    """

    wanted: Wanted
    given: DialectOptions
    bins: Bins | None
    grid: Grid
    clock: Clock
    public: Sequence[Label] | None
    limits: tuple[int, int] | None
    believed: bool
    quietly: bool

    def read(self, source: Any) -> Paths:
        """Read a source, file by file where their names tell subjects apart and states are known.

        States that occur depend on all files, so these are then read as one.
        """
        named = FILE_NAME in self.wanted.subjects and isinstance(source, (str, os.PathLike))
        if not named or self.public is None:
            return self._read_one(source).regular()
        sources = files.expand_files(os.fspath(source))
        if len(sources) == 1:
            return self._read_one(source).regular()
        alike = self.grid.step is not None or self.wanted.time is None
        found: list[Paths] = []
        for group in _groups(sources) if alike else ([path] for path in sources):
            found += self._read_group(group)
        return _merged(found).regular()

    def _read_group(self, paths: list[str]) -> list[Paths]:
        """Read small files as one, and each on its own if they are not alike, or one is wrong."""
        several = 1 < len(paths) == len(set(map(file_name, paths)))
        small = joined(paths, self.given) if several else None
        if small is not None:
            with suppress(InvalidInputError):
                return [self._read_one(small)]
        found = []
        for path in paths:
            try:
                found.append(self._read_one(path))
            except InvalidInputError as error:
                raise InvalidInputError(f"{path}: {error}") from None
        return found

    def _read_one(self, source: Any) -> Paths:
        begins: dict[str, int] = {}
        try:
            return self._read_all(source, begins)
        except InvalidInputError as error:
            row = re.match(r"Row (\d+) (?!of ')", str(error))  # not of a file that is named
            if row is None or not begins:
                raise
            path, before = [one for one in begins.items() if one[1] < int(row[1])][-1]
            words = f"{path}: Row {int(row[1]) - before} {str(error)[row.end() :]}"
            raise InvalidInputError(words) from None

    def _read_all(self, source: Any, begins: dict[str, int]) -> Paths:
        records = read_records(
            source,
            self.wanted,
            self.given,
            self.bins,
            self.grid.step,
            self.clock,
            quietly=self.quietly,
            apart=self.believed,
            begins=begins,
        )
        table = None
        if self.bins is None:
            known, table = _coded(records.value, self.public, believed=self.believed)
        else:
            known = self.bins.labels
        return Paths(known, *self._placed(source, records, table), records.note, records.counted)

    def _placed(
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

        blocks = recorded
        outline = Outline.of(blocks(), len(records.subjects))
        if outline is None:  # not in order of time
            blocks = in_time(recorded)
            outline = Outline.of(blocks(), len(records.subjects))
        assert outline is not None  # noqa: S101  (they are sorted now)
        timed = int(outline.first.max()) > NEVER
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
            if outline.twice is not None:
                refuse_twice(records.blocks(), outline.twice, records.subjects)
            if timed:
                gaps = outline.gaps()
            elif alone:
                step = index_step(source)
            codes, bounds = in_order(blocks(), outline, kind)
        else:
            period = None if limits is None else (limits[0] // step, (limits[1] - 1) // step)
            coded = partial(binned, bins=self.bins) if self.bins is not None else _unchanged
            rule = self.grid.rule or "last"
            codes, bounds, first = on_steps(blocks(), outline, step, rule, period, coded, kind)
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


def _groups(paths: Sequence[str]) -> Iterator[list[str]]:
    """Yield the files in groups that are small together; compressed ones stay alone."""
    group: list[str] = []
    size = 0
    for path in paths:
        plain = not path.endswith((*files.TABLES, ".gz")) and os.path.isfile(path)
        more = os.path.getsize(path) if plain else _SMALL
        if group and (size + more > _SMALL or len(group) == _MOST_TOGETHER):
            yield group
            group, size = [], 0
        group.append(path)
        size += more
    yield group


def _unchanged(codes: NDArray[Any]) -> NDArray[Any]:
    return codes


def _merged(found: Sequence[Paths]) -> Paths:
    """Put what was read from several files together, by codes of the states of all."""
    states = list(dict.fromkeys(label for one in found for label in one.states))
    index = {label: i for i, label in enumerate(states)}
    paths: dict[Any, Path] = {}
    for one in found:
        table = np.array([*(index[label] for label in one.states), GAP])
        same = table[:-1].tolist() == list(range(len(one.states)))
        small = table.astype(smallest(len(states) + 1))
        for path in one.paths:
            if path.subject in paths:
                raise InvalidInputError(
                    "A subject is in several files; files that name subjects must have names of "
                    "their own."
                )
            codes = path.codes if same else small[path.codes]  # code −1 is the last
            paths[path.subject] = replace(path, codes=codes)
    notes = dict.fromkeys(one.note for one in found if one.note)
    told = next(iter(notes), "")
    counted = any(one.counted for one in found)
    return Paths(tuple(states), list(paths.values()), found[0].grid, told, counted)


def _coded(
    column: LabelCollector, states: Sequence[Label] | None, *, believed: bool
) -> tuple[tuple[Label, ...], NDArray[Any]]:
    """Return the states, and by code of a cell that of its state, `GAP` for missing.

    Without beliefs all states are declared, or none. With them it is the release that refuses a
    row, once a ledger has seen whose beliefs they are; if they have no states, a row may be
    anything, and none may change how others are read.
    """
    cells = column.distinct
    if states is not None and column.textual:
        read = match_labels(cells, tuple(states), column.dialect)
    else:
        read = as_labels(cells, textual=column.textual, apart=believed, dialect=column.dialect)
        _refuse_undeclared(column, cells)
    found = list(dict.fromkeys(label for label in read if label is not None))
    known = list(states) if states is not None else list(sorted_labels(found))
    others = [label for label in found if label not in set(known)]
    if others and not believed:
        row = position_of(column.join(), read.index(others[0]))
        raise InvalidInputError(
            f"Row {row} of column {column.name!r} holds none of the states "
            f"{show_labels(tuple(known))}; declare what it holds as well, or drop it."
        )
    known += others
    index = {label: i for i, label in enumerate(known)}
    table = np.array([GAP if label is None else index[label] for label in read])
    return tuple(known), table.astype(smallest(len(known) + 1))


def _refuse_undeclared(column: LabelCollector, cells: Sequence[Any]) -> None:
    """Refuse usual words for missing values that would become states where gaps are declared."""
    for code, cell in enumerate(cells if column.dialect.declared else ()):
        word = cell.strip().lower() if isinstance(cell, str) else ""
        if word in MISSING_WORDS and not column.dialect.is_missing(cell):
            row = position_of(column.join(), code)
            raise InvalidInputError(
                f"Row {row} of column {column.name!r} holds a usual word for a missing value that "
                "was not declared, and where gaps are public the words for them must be: give "
                f"{argument('na_values')}, or if it is a state, list it in states."
            )


def refuse_gaps(paths: Sequence[Path], *, named: bool) -> None:
    """Refuse missing time points; subjects are not named unless they are files."""
    gaps = sum(int((path.codes == GAP).sum()) for path in paths)
    if not gaps:
        return
    number, path = next((i, path) for i, path in enumerate(paths) if (path.codes == GAP).any())
    position = int(np.argmax(path.codes == GAP)) + 1
    whose = f" of {path.subject!r}" if named else f" of subject {number + 1} (in their order)"
    whose = whose if path.subject is not None else ""
    raise InvalidInputError(
        f"Time point {position}{whose} is missing, and {gaps - 1} more are; say what to do: "
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
