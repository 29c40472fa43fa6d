"""Origins: on which grid, and from which file, a sequence in memory was read.

Readers hand out sequences kept as small codes, one byte a time point where there are up to 127
states, which look like arrays of labels when somebody asks. Whoever counts or fits takes the codes;
whoever is handed such an array, or a slice of it, can ask what it was made of. What is known is
about the array and not about what it holds; it goes when the array does, and copies have none.
A pandas series whose index has regular moments shows its step itself.
"""

from __future__ import annotations

import os
import weakref
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime, timedelta, tzinfo
from pathlib import Path
from typing import Any
from zoneinfo import ZoneInfo

import numpy as np
from numpy.typing import NDArray

from quiltwork.beliefs.grids import Grid, common_grid, duration, parse_grid
from quiltwork.beliefs.states import Label
from quiltwork.beliefs.zones import local_seconds
from quiltwork.errors import InvalidInputError


@dataclass(frozen=True, eq=False)
class Origin:
    """Where the sequences of one reading come from.

    Attributes:
        grid: how records became time points and states.
        path: the file, links resolved; None if they come from elsewhere.
        parts: how many sequences were read.
        zone: the time zone of their moments, where one was given.
        local: whether seconds are those that clocks show, not those of UTC.
    """

    grid: Grid
    path: str | None
    parts: int
    zone: str | None = None
    local: bool = True


@dataclass(frozen=True, eq=False)
class CodedSequence(Sequence[Label]):
    """A sequence of labels: `labels[code]` for each of the codes.

    `start` is when the first time point is, in seconds, if times are regular. `recorded` says which
    time points have a record, where gaps are public; the others have the last label, None. One that
    is `cut` has lost time points that are protected all the same.
    """

    codes: NDArray[Any]
    labels: NDArray[Any]
    origin: Origin
    start: int | None = None
    recorded: NDArray[np.bool_] | None = None
    cut: bool = False

    def __len__(self) -> int:
        return len(self.codes)

    def __getitem__(self, place: Any) -> Any:
        return self.labels[self.codes[place]]

    def __iter__(self) -> Iterator[Any]:
        return iter(self.array().tolist())

    def part(self, begin: int, end: int) -> CodedSequence:
        """Return the time points from begin to before end, counted from 0."""
        step, start = self.origin.grid.step, self.start
        later = None if start is None or step is None else start + step * begin
        mask = None if self.recorded is None else self.recorded[begin:end]
        return replace(self, codes=self.codes[begin:end], start=later, recorded=mask)

    def array(self) -> NDArray[Any]:
        """Return the labels as an array that keeps where it comes from, for as long as it lives."""
        array = np.asarray(self.labels[self.codes])
        place = id(array)
        _MADE[place] = (weakref.ref(array, lambda _: _MADE.pop(place, None)), self)
        return array

    def factorized(self) -> tuple[NDArray[np.int64], list[Any]]:
        """Return codes of the labels that occur, and these."""
        present = np.zeros(len(self.labels), dtype=np.bool_)
        present[self.codes] = True
        labels = self.labels.tolist()
        if present.all():
            return self.codes.astype(np.int64), labels
        table = np.cumsum(present, dtype=np.int64) - 1
        return table[self.codes], [
            label for label, is_there in zip(labels, present, strict=True) if is_there
        ]


class CodedSequences(Mapping[Any, NDArray[Any]]):
    """Subject → array of labels, made when it is asked for; `coded` holds what they are made of."""

    def __init__(self, coded: dict[Any, CodedSequence]) -> None:
        self.coded = coded

    def __getitem__(self, subject: Any) -> NDArray[Any]:
        return self.coded[subject].array()

    def __iter__(self) -> Iterator[Any]:
        return iter(self.coded)

    def __len__(self) -> int:
        return len(self.coded)

    def __repr__(self) -> str:
        return repr(dict(self))


_WEEK = 7 * 86_400
_MADE: dict[int, tuple[weakref.ref[NDArray[Any]], CodedSequence]] = {}


def coded_source(sequence: Any) -> CodedSequence | None:
    """Return what a sequence, or what it is a slice of, was made of; None if nobody knows."""
    if not isinstance(sequence, np.ndarray):
        return sequence if isinstance(sequence, CodedSequence) else None
    array = memory_owner(sequence)
    found = _MADE.get(id(array))
    return found[1] if found is not None and found[0]() is array else None


def codes_behind(sequence: Any) -> NDArray[Any] | None:
    """Return the codes that a sequence, or what it is a slice of, was made of; None if of none."""
    coded = coded_source(sequence)
    if coded is None or sequence is coded:
        return None if coded is None else coded.codes
    array = memory_owner(sequence)
    if sequence.ndim != 1 or sequence.itemsize != array.itemsize or sequence.size == 0:
        return coded.codes
    first, stride = _offset(sequence), sequence.strides[0] // array.itemsize
    last = first + stride * (sequence.size - 1)
    return coded.codes[min(first, last) : max(first, last) + 1 : abs(stride) or 1]


def _offset(array: NDArray[Any]) -> int:
    """How many items after the array whose memory it shows an array begins."""
    whole = memory_owner(array)
    away = array.__array_interface__["data"][0] - whole.__array_interface__["data"][0]
    return int(away // whole.itemsize)


def gapped_sequence(sequence: Any) -> CodedSequence | None:
    """Return a sequence whose gaps are public, or a slice of one, as codes; None for others.

    Raises:
        InvalidInputError: for one that was turned round or thinned out.
    """
    coded = coded_source(sequence)
    if coded is None or coded.recorded is None:
        return None
    if sequence is coded or not isinstance(sequence, np.ndarray):
        return coded
    if sequence.ndim != 1 or sequence.strides != memory_owner(sequence).strides:
        raise InvalidInputError(
            "These are not the time points of a series with gaps one after the other; give the "
            "series as it was read, or a part of it."
        )
    begin = _offset(sequence)
    part: CodedSequence = coded.part(begin, begin + len(sequence))
    return part


def origin_of(sequence: Any) -> Origin | None:
    """Return the origin of an array or of what it is a slice of; None if nobody noted one."""
    coded = coded_source(sequence)
    return None if coded is None else coded.origin


def grid_of_sequence(sequence: Any) -> Grid | None:
    """Return what is known about the grid of a sequence: as it was read, or by its index."""
    origin = origin_of(sequence)
    if origin is None:
        step = index_step(sequence)
        return None if step is None else Grid(step=step)
    if not isinstance(sequence, np.ndarray):
        return origin.grid
    if sequence.strides == memory_owner(sequence).strides:
        return origin.grid
    return replace(origin.grid, step=None)  # every second time point, or backwards


def local_start(sequence: Any) -> int | None:
    """Return what clocks show when a sequence begins, in seconds from the epoch; None if unknown.

    Phases of a day are those of the clock, so moments of a time zone are turned to its clock.
    """
    moment, clock = utc_start(sequence), timezone_of(sequence)
    if moment is None or clock is None:
        return moment
    shown = datetime.fromtimestamp(moment, clock)
    return moment + int((shown.utcoffset() or timedelta()).total_seconds())


def local_times(sequence: Any) -> NDArray[np.int64] | None:
    """Return what clocks show at each time point of a sequence, in seconds; None if unknown."""
    begin, clock, grid = utc_start(sequence), timezone_of(sequence), grid_of_sequence(sequence)
    if begin is None or grid is None or grid.step is None:
        return None
    moments = begin + grid.step * np.arange(len(sequence), dtype=np.int64)
    return moments if clock is None else local_seconds(moments, clock)


def has_clock_change(sequence: Any) -> bool:
    """Whether the clocks of its zone are changed while a sequence lasts; False if not known."""
    begin, clock, grid = utc_start(sequence), timezone_of(sequence), grid_of_sequence(sequence)
    if begin is None or clock is None or grid is None or grid.step is None:
        return False
    end = begin + grid.step * len(sequence)
    moments = (*range(begin, end, _WEEK), end)
    return len({datetime.fromtimestamp(moment, clock).utcoffset() for moment in moments}) > 1


def split_at_clock_changes(sequence: Any) -> list[Any]:
    """Return the parts of a sequence in which clocks are not changed, in order.

    A part ends with the first time point of the next one: a step is that of the phase it leaves.

    Raises:
        InvalidInputError: where steps do not divide a change.
    """
    begin, clock, grid = utc_start(sequence), timezone_of(sequence), grid_of_sequence(sequence)
    if not has_clock_change(sequence) or begin is None or clock is None or grid is None:
        return [sequence]
    step = grid.step or 1
    moments = begin + step * np.arange(len(sequence), dtype=np.int64)
    offsets = local_seconds(moments, clock) - moments
    turns = np.flatnonzero(np.diff(offsets)) + 1
    for turn in turns.tolist():
        require_step_divides(int(offsets[turn] - offsets[turn - 1]), step)
    ends = [*turns.tolist(), len(sequence) - 1]
    cut = [(a, b + 1) for a, b in zip([0, *turns.tolist()], ends, strict=True) if b > a]
    return [_part(sequence, a, b) for a, b in cut]


def _part(sequence: Any, begin: int, end: int) -> Any:
    if isinstance(sequence, CodedSequence):
        return sequence.part(begin, end)
    return sequence.iloc[begin:end] if hasattr(sequence, "iloc") else sequence[begin:end]


def ignore_clock_changes(sequence: Any) -> Any:
    """Return a sequence as if clocks never changed: each of its days is as long as the first."""
    coded, codes = coded_source(sequence), codes_behind(sequence)
    begin, grid = local_start(sequence), grid_of_sequence(sequence)
    if coded is None or codes is None or grid is None:
        return sequence
    whole = gapped_sequence(sequence) or replace(coded, codes=codes, recorded=None)
    origin = replace(coded.origin, grid=grid, zone=None, local=True)
    return replace(whole, origin=origin, start=begin)


def require_step_divides(change: int, step: int) -> None:
    """Refuse steps that do not divide a change of clocks: points would lie between phases."""
    if change % step:
        raise InvalidInputError(
            f"Clocks change by {duration(abs(change))} in this series, and steps of "
            f"{duration(step)} do not divide that: after the change time points lie between the "
            "phases of the day. Read the series in shorter steps, or leave out the time zone: then "
            "time points are those that clocks show."
        )


def zone_name_of(sequence: Any) -> str | None:
    """Return the name of the zone of moments in UTC, as it was read or by the index, if known."""
    clock = timezone_of(sequence)
    return getattr(clock, "key", None) or getattr(clock, "zone", None)


def timezone_of(sequence: Any) -> tzinfo | None:
    """Return the time zone of moments in UTC, as it was read or by the index; None if unknown."""
    origin = origin_of(sequence)
    if origin is None:
        found = getattr(getattr(sequence, "index", None), "tz", None)
        return found if isinstance(found, tzinfo) else None
    return None if origin.zone is None or origin.local else ZoneInfo(origin.zone)


def utc_start(sequence: Any) -> int | None:
    """Return when a sequence begins, in seconds: as it was read, or by its index; None if unknown.

    A slice of an array that was read begins so many steps later.
    """
    coded = coded_source(sequence)
    if coded is None:
        if index_step(sequence) is None:
            return None
        moment = np.asarray(sequence.index[:1], dtype="datetime64[us]").astype(np.int64)[0]
        return int(moment) // 10**6
    if sequence is coded or coded.start is None:
        return coded.start
    grid = grid_of_sequence(sequence)
    if grid is None or grid.step is None:
        return None
    return coded.start + grid.step * _offset(sequence)


def index_step(table: Any) -> int | None:
    """Return the step of a pandas series or frame with an index of regular moments, in seconds.

    Most gaps must be one step, the others several: records that are missing do not hide it.
    """
    index = getattr(table, "index", None)
    if getattr(getattr(index, "dtype", None), "kind", "") != "M":
        return None
    moments = np.asarray(index, dtype="datetime64[us]").astype(np.int64)
    gaps = np.diff(moments)
    step = int(gaps.min(initial=2**62))
    single = int((gaps == step).sum())
    if step <= 0 or step % 10**6 or (gaps % step).any() or 2 * single <= len(gaps):
        return None
    return step // 10**6


def grid_of(sequences: Iterable[Any], given: Grid | None = None) -> Grid | None:
    """Return the grid of sequences: what is known about them, and what is given."""
    return common_grid([parse_grid(given), *map(grid_of_sequence, sequences)])


def memory_owner(array: NDArray[Any]) -> NDArray[Any]:
    """Return the array whose memory this one shows."""
    while isinstance(array.base, np.ndarray):
        array = array.base
    return array


def real_path(source: Any) -> str | None:
    """Return the place of a file, links resolved; None for standard input and what is no path."""
    if not isinstance(source, (str, os.PathLike)) or str(source) == "-":
        return None
    try:
        return os.path.realpath(Path(source))
    except ValueError:  # a zero byte: no place of a file
        return None
