"""Origins: on which grid, and from which file, a sequence in memory was read.

Readers note where their arrays come from, and whoever is handed such an array, or a slice of it,
can ask. The note is about the array and not about what it holds; it goes when the array does, and
copies have none. A pandas series whose index has regular moments shows its step itself.
"""

from __future__ import annotations

import os
import weakref
from collections.abc import Iterable
from dataclasses import dataclass, replace
from datetime import datetime, timedelta, tzinfo
from functools import partial
from pathlib import Path
from typing import Any
from zoneinfo import ZoneInfo

import numpy as np
from numpy.typing import NDArray

from quiltwork.beliefs.grids import Grid, common_grid, read_grid
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


_WEEK = 7 * 86_400
_NOTED: dict[int, tuple[weakref.ref[NDArray[Any]], Origin]] = {}
_BEGUN: dict[int, tuple[weakref.ref[NDArray[Any]], int]] = {}
_DECODED: dict[int, tuple[weakref.ref[NDArray[Any]], NDArray[Any]]] = {}


def note(arrays: Iterable[NDArray[Any]], origin: Origin) -> None:
    """Remember the origin of arrays for as long as they live. O(1) for each."""
    for array in arrays:
        _NOTED[id(array)] = (weakref.ref(array, partial(_forget, id(array))), origin)


def note_start(array: NDArray[Any], seconds: int) -> None:
    """Remember when the first time point of an array with regular times is, in seconds."""
    _BEGUN[id(array)] = (weakref.ref(array, partial(_forget, id(array))), seconds)


def note_codes(array: NDArray[Any], codes: NDArray[Any]) -> None:
    """Remember the codes that an array of labels was made of."""
    _DECODED[id(array)] = (weakref.ref(array, partial(_forget, id(array))), codes)


def codes_of(sequence: Any) -> NDArray[Any] | None:
    """Return the codes that a sequence, or what it is a slice of, was made of; None if of none."""
    if isinstance(getattr(sequence, "origin", None), Origin):
        return np.asarray(sequence.codes)
    if not isinstance(sequence, np.ndarray):
        return None
    array = owner(sequence)
    ref, codes = _DECODED.get(id(array), (None, None))
    if ref is None or codes is None or ref() is not array:
        return None
    if sequence.ndim != 1 or sequence.itemsize != array.itemsize or sequence.size == 0:
        return codes
    away = sequence.__array_interface__["data"][0] - array.__array_interface__["data"][0]
    first, stride = away // array.itemsize, sequence.strides[0] // array.itemsize
    last = first + stride * (sequence.size - 1)
    return codes[min(first, last) : max(first, last) + 1 : abs(stride) or 1]


def _forget(place: int, _: object) -> None:
    for noted in (_NOTED, _BEGUN, _DECODED):
        noted.pop(place, None)


def origin_of(sequence: Any) -> Origin | None:
    """Return the origin of an array or of what it is a slice of; None if nobody noted one."""
    if isinstance(own := getattr(sequence, "origin", None), Origin):
        return own
    if not isinstance(sequence, np.ndarray):
        return None
    array = owner(sequence)
    found = _NOTED.get(id(array))
    return found[1] if found is not None and found[0]() is array else None


def known_grid(sequence: Any) -> Grid | None:
    """Return what is known about the grid of a sequence: as it was read, or by its index."""
    origin = origin_of(sequence)
    if origin is None:
        step = index_step(sequence)
        return None if step is None else Grid(step=step)
    if not isinstance(sequence, np.ndarray):
        return origin.grid
    if sequence.strides == owner(sequence).strides:
        return origin.grid
    return replace(origin.grid, step=None)  # every second time point, or backwards


def start_of(sequence: Any) -> int | None:
    """Return what clocks show when a sequence begins, in seconds from the epoch; None if unknown.

    Phases of a day are those of the clock, so moments of a time zone are turned to its clock.
    """
    moment, clock = moment_of(sequence), clock_of(sequence)
    if moment is None or clock is None:
        return moment
    shown = datetime.fromtimestamp(moment, clock)
    return moment + int((shown.utcoffset() or timedelta()).total_seconds())


def clocks_change(sequence: Any) -> bool:
    """Whether the clocks of its zone are changed while a sequence lasts; False if not known."""
    begin, clock, grid = moment_of(sequence), clock_of(sequence), known_grid(sequence)
    if begin is None or clock is None or grid is None or grid.step is None:
        return False
    end = begin + grid.step * len(sequence)
    moments = (*range(begin, end, _WEEK), end)
    return len({datetime.fromtimestamp(moment, clock).utcoffset() for moment in moments}) > 1


def refuse_clock_changes(sequence: Any) -> None:
    """Refuse a sequence in which clocks are changed for a belief about the phases of a day.

    Raises:
        InvalidInputError: with two ways out.
    """
    if clocks_change(sequence):
        raise InvalidInputError(
            "The belief is about days of equal length, and clocks change in this series. Leave out "
            "the time zone: then time points are those that clocks show. Or fit a belief that does "
            "not know the time of day."
        )


def clock_of(sequence: Any) -> tzinfo | None:
    """Return the time zone of moments in UTC, as it was read or by the index; None if unknown."""
    origin = origin_of(sequence)
    if origin is None:
        found = getattr(getattr(sequence, "index", None), "tz", None)
        return found if isinstance(found, tzinfo) else None
    return None if origin.zone is None or origin.local else ZoneInfo(origin.zone)


def moment_of(sequence: Any) -> int | None:
    """Return when a sequence begins, in seconds: as it was read, or by its index; None if unknown.

    A slice of an array that was read begins so many steps later.
    """
    if not isinstance(sequence, np.ndarray):
        if origin_of(sequence) is not None:
            return sequence.start  # type: ignore[no-any-return]  # a sequence kept as codes
        if index_step(sequence) is None:
            return None
        moment = np.asarray(sequence.index[:1], dtype="datetime64[us]").astype(np.int64)[0]
        return int(moment) // 10**6
    array, grid = owner(sequence), known_grid(sequence)
    found = _BEGUN.get(id(array))
    if found is None or found[0]() is not array or grid is None or grid.step is None:
        return None
    away = sequence.__array_interface__["data"][0] - array.__array_interface__["data"][0]
    return found[1] + grid.step * int(away // array.itemsize)


def index_step(table: Any) -> int | None:
    """Return the step of a pandas series or frame with an index of regular moments, in seconds."""
    index = getattr(table, "index", None)
    if getattr(getattr(index, "dtype", None), "kind", "") != "M":
        return None
    moments = np.asarray(index, dtype="datetime64[us]").astype(np.int64)
    return regular_step(np.diff(moments), 10**6)


def regular_step(gaps: NDArray[np.int64], ticks: int = 1) -> int | None:
    """Return the step of times with these gaps between them, in seconds of so many ticks.

    Most gaps must be one step, the others several: records that are missing do not hide it.

    >>> regular_step(np.array([600, 600, 1200])), regular_step(np.array([600, 1200, 900]))
    (600, None)
    """
    step = int(gaps.min(initial=2**62))
    single = int((gaps == step).sum())
    if step <= 0 or step % ticks or (gaps % step).any() or 2 * single <= len(gaps):
        return None
    return step // ticks


def grid_of(sequences: Iterable[Any], given: Grid | None = None) -> Grid | None:
    """Return the grid of sequences: what is known about them, and what is given.

    Raises:
        InvalidInputError: if they are not of one grid.
    """
    return common_grid([read_grid(given), *map(known_grid, sequences)])


def owner(array: NDArray[Any]) -> NDArray[Any]:
    """Return the array whose memory this one shows."""
    while isinstance(array.base, np.ndarray):
        array = array.base
    return array


def resolved(source: Any) -> str | None:
    """Return the place of a file, links resolved; None for standard input and what is no path."""
    if not isinstance(source, (str, os.PathLike)) or str(source) == "-":
        return None
    try:
        return os.path.realpath(Path(source))
    except ValueError:  # a zero byte: no place of a file
        return None
