"""Origins: the grid, file and time zone from which a sequence in memory was read.

Readers return sequences stored as small codes, one byte per time point for up to 127 states, which
are turned into arrays of labels on access. Counting and fitting use the codes. For such an array,
or a slice of it, the functions here return its origin. The origin belongs to the array, not to its
values: it is dropped with the array, and copies have none. A pandas series with a regular time
index provides its own step.
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
    """The source of the sequences of one reading.

    Attributes:
        grid: the step and binning.
        path: the file, links resolved; None for other sources.
        parts: the number of sequences that were read.
        zone: the time zone of their moments, where one was given.
        local: whether seconds are local time instead of UTC.
    """

    grid: Grid
    path: str | None
    parts: int
    zone: str | None = None
    local: bool = True


@dataclass(frozen=True, eq=False)
class CodedSequence(Sequence[Label]):
    """A sequence of labels in compact form: `labels[code]` for each of the codes.

    `start` is the moment of the first time point in seconds, if times are regular. `recorded` marks
    the time points with a record, where gaps are public; the others have the last label, None.
    `cut` means that time points were dropped which are protected nevertheless.
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
        """Return the labels as an array whose origin is recorded for as long as it lives."""
        array = np.asarray(self.labels[self.codes])
        identity = id(array)
        # The reference's callback removes the entry, so a reused id never finds a stale origin.
        _ARRAYS[identity] = (weakref.ref(array, lambda _: _ARRAYS.pop(identity, None)), self)
        return array

    def factorized(self) -> tuple[NDArray[np.int64], list[Any]]:
        """Return the codes of the labels that occur, and these labels."""
        present = np.zeros(len(self.labels), dtype=np.bool_)
        present[self.codes] = True
        labels = self.labels.tolist()
        if present.all():
            return self.codes.astype(np.int64), labels
        table = np.cumsum(present, dtype=np.int64) - 1
        return table[self.codes], [
            label for label, occurs in zip(labels, present, strict=True) if occurs
        ]


class CodedSequences(Mapping[Any, NDArray[Any]]):
    """A mapping from subject to its array of labels, created on access from `coded`."""

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
"""How often offsets are compared; a clock change that is undone sooner would be missed."""
_ARRAYS: dict[int, tuple[weakref.ref[NDArray[Any]], CodedSequence]] = {}


def coded_source(sequence: Any) -> CodedSequence | None:
    """Return the coded sequence behind a sequence or a slice of one; None if unknown."""
    if not isinstance(sequence, np.ndarray):
        return sequence if isinstance(sequence, CodedSequence) else None
    array = memory_owner(sequence)
    entry = _ARRAYS.get(id(array))
    return entry[1] if entry is not None and entry[0]() is array else None


def codes_behind(sequence: Any) -> NDArray[Any] | None:
    """Return the codes behind a sequence or a slice of one; None if there are none."""
    coded = coded_source(sequence)
    if coded is None or sequence is coded:
        return None if coded is None else coded.codes
    array = memory_owner(sequence)
    if sequence.ndim != 1 or sequence.itemsize != array.itemsize or sequence.size == 0:
        return coded.codes
    first, stride = _offset(sequence), sequence.strides[0] // array.itemsize
    last = first + stride * (sequence.size - 1)
    # Read forwards also for a reversed slice: sources compare memory, which has no direction.
    return coded.codes[min(first, last) : max(first, last) + 1 : abs(stride) or 1]


def _offset(array: NDArray[Any]) -> int:
    """Return the offset, in items, of an array in the array that owns its memory."""
    whole = memory_owner(array)
    distance = array.__array_interface__["data"][0] - whole.__array_interface__["data"][0]
    return int(distance // whole.itemsize)


def gapped_sequence(sequence: Any) -> CodedSequence | None:
    """Return the codes of a sequence with public gaps, or of a slice of one; None for others.

    Raises:
        InvalidInputError: for a reversed or strided slice.
    """
    coded = coded_source(sequence)
    if coded is None or coded.recorded is None:
        return None
    if sequence is coded or not isinstance(sequence, np.ndarray):
        return coded
    if sequence.ndim != 1 or sequence.strides != memory_owner(sequence).strides:
        raise InvalidInputError(
            "This is a reversed or strided slice of a series with gaps; give the series as it was "
            "read, or a contiguous part of it."
        )
    begin = _offset(sequence)
    part: CodedSequence = coded.part(begin, begin + len(sequence))
    return part


def origin_of(sequence: Any) -> Origin | None:
    """Return the origin of an array or of a slice of one; None if unknown."""
    coded = coded_source(sequence)
    return None if coded is None else coded.origin


def grid_of_sequence(sequence: Any) -> Grid | None:
    """Return the grid of a sequence: from its origin, or from its time index."""
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
    """Return the local time at which a sequence begins, in seconds from the epoch; None if unknown.

    Phases of a day follow the local clock, so UTC moments are converted to it.
    """
    moment, clock = utc_start(sequence), timezone_of(sequence)
    if moment is None or clock is None:
        return moment
    local = datetime.fromtimestamp(moment, clock)
    return moment + int((local.utcoffset() or timedelta()).total_seconds())


def local_times(sequence: Any) -> NDArray[np.int64] | None:
    """Return the local time of each time point of a sequence, in seconds; None if unknown."""
    begin, clock, grid = utc_start(sequence), timezone_of(sequence), grid_of_sequence(sequence)
    if begin is None or grid is None or grid.step is None:
        return None
    moments = begin + grid.step * np.arange(len(sequence), dtype=np.int64)
    return moments if clock is None else local_seconds(moments, clock)


def has_clock_change(sequence: Any) -> bool:
    """Return whether the clocks of its zone change during a sequence; False if unknown."""
    begin, clock, grid = utc_start(sequence), timezone_of(sequence), grid_of_sequence(sequence)
    if begin is None or clock is None or grid is None or grid.step is None:
        return False
    end = begin + grid.step * len(sequence)
    moments = (*range(begin, end, _WEEK), end)
    return len({datetime.fromtimestamp(moment, clock).utcoffset() for moment in moments}) > 1


def split_at_clock_changes(sequence: Any) -> list[Any]:
    """Return the parts of a sequence between clock changes, in order.

    A part ends with the first time point of the next one: a step belongs to the phase it leaves.

    Raises:
        InvalidInputError: if the step does not divide a change.
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
    # A part of one time point has no step, so it is left out.
    ends = [*turns.tolist(), len(sequence) - 1]
    cut = [(a, b + 1) for a, b in zip([0, *turns.tolist()], ends, strict=True) if b > a]
    return [_part(sequence, a, b) for a, b in cut]


def _part(sequence: Any, begin: int, end: int) -> Any:
    if isinstance(sequence, CodedSequence):
        return sequence.part(begin, end)
    return sequence.iloc[begin:end] if hasattr(sequence, "iloc") else sequence[begin:end]


def ignore_clock_changes(sequence: Any) -> Any:
    """Return a sequence as if clocks never changed, with days of equal length."""
    coded, codes = coded_source(sequence), codes_behind(sequence)
    begin, grid = local_start(sequence), grid_of_sequence(sequence)
    if coded is None or codes is None or grid is None:
        return sequence
    whole = gapped_sequence(sequence) or replace(coded, codes=codes, recorded=None)
    origin = replace(coded.origin, grid=grid, zone=None, local=True)
    return replace(whole, origin=origin, start=begin)


def require_step_divides(change: int, step: int) -> None:
    """Raise InvalidInputError if a step does not divide a clock change.

    After such a change time points would lie between the phases.
    """
    if change % step:
        raise InvalidInputError(
            f"Clocks change by {duration(abs(change))} in this series, and steps of "
            f"{duration(step)} do not divide that: after the change time points lie between the "
            "phases of the day. Read the series in shorter steps, or leave out the time zone: then "
            "time points are in local time."
        )


def zone_name_of(sequence: Any) -> str | None:
    """Return the name of a sequence's time zone, from its origin or its index; None if unknown."""
    clock = timezone_of(sequence)
    return getattr(clock, "key", None) or getattr(clock, "zone", None)


def timezone_of(sequence: Any) -> tzinfo | None:
    """Return a sequence's time zone, from its origin or its index; None if unknown."""
    origin = origin_of(sequence)
    if origin is None:
        zone = getattr(getattr(sequence, "index", None), "tz", None)
        return zone if isinstance(zone, tzinfo) else None
    return None if origin.zone is None or origin.local else ZoneInfo(origin.zone)


def utc_start(sequence: Any) -> int | None:
    """Return the moment at which a sequence begins, in seconds; None if unknown.

    From its origin or its index; a slice begins correspondingly later.
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
    """Return the step of a pandas series or frame with a regular time index, in seconds.

    Most differences must be one step, the others multiples: missing records do not hide it.
    """
    index = getattr(table, "index", None)
    if getattr(getattr(index, "dtype", None), "kind", "") != "M":
        return None
    moments = np.asarray(index, dtype="datetime64[us]").astype(np.int64)
    gaps = np.diff(moments)
    step = int(gaps.min(initial=2**62))
    single = int((gaps == step).sum())
    # Where fewer than half of the differences are the least one, it need not be the step.
    if step <= 0 or step % 10**6 or (gaps % step).any() or 2 * single <= len(gaps):
        return None
    return step // 10**6


def grid_of(sequences: Iterable[Any], given: Grid | None = None) -> Grid | None:
    """Return the common grid of sequences and of the argument `grid`."""
    return common_grid([parse_grid(given), *map(grid_of_sequence, sequences)])


def memory_owner(array: NDArray[Any]) -> NDArray[Any]:
    """Return the array that owns the memory of this one."""
    while isinstance(array.base, np.ndarray):
        array = array.base
    return array


def real_path(source: Any) -> str | None:
    """Return the path of a file, links resolved; None for standard input and other sources."""
    if not isinstance(source, (str, os.PathLike)) or str(source) == "-":
        return None
    try:
        return os.path.realpath(Path(source))
    except ValueError:  # a zero byte cannot be part of a path
        return None
