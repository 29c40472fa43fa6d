"""Records to sequences block by block: only the codes of all time points are held at once.

A first pass over the blocks finds how long each sequence is, a second puts every record in its
place. Rows of each subject must come in order of time, subjects may follow each other or take
turns; other rows are sorted first, through a temporary file (`in_time`).
"""

from __future__ import annotations

import os
import weakref
from collections.abc import Callable, Iterator, Sequence
from itertools import chain
from tempfile import TemporaryFile, gettempdir
from typing import Any, NoReturn, TypeAlias

import numpy as np
from numpy.typing import NDArray

from quiltwork.beliefs.grids import Rule
from quiltwork.errors import InvalidInputError, StorageError
from quiltwork.exact import shortened
from quiltwork.wording import argument

_IN_MEMORY = 1 << 23


class Spilled:
    """A list of arrays, of which `in_memory` bytes are held in memory, the others in a file.

    The file has no name, only its owner can read it, and it goes with the process.
    """

    def __init__(self, in_memory: int = _IN_MEMORY) -> None:
        """Begin with none."""
        self._in_memory = in_memory
        self._parts: list[NDArray[Any] | tuple[int, int, Any]] = []
        self._held = 0
        self._file: Any = None

    def __len__(self) -> int:
        """How many there are."""
        return len(self._parts)

    def add(self, part: NDArray[Any]) -> None:
        """Keep one more."""
        if self._held + part.nbytes <= self._in_memory:
            self._held += part.nbytes
            self._parts.append(part)
            return
        try:
            if self._file is None:
                self._file = TemporaryFile(buffering=0)  # noqa: SIM115  (closed with this list)
                weakref.finalize(self, self._file.close)
            place, left = self._file.seek(0, os.SEEK_END), memoryview(part.tobytes())
            while left:  # a full disk takes a part, and then fails
                left = left[self._file.write(left) :]
        except OSError as error:
            raise StorageError(
                f"Rows that memory should not hold go to a temporary file in {gettempdir()!r}, "
                f"which failed: {error.strerror}; name a folder with room in TMPDIR."
            ) from None
        self._parts.append((place, len(part), part.dtype))

    def cut(self, number: int) -> None:
        """Forget all but the first so many."""
        del self._parts[number:]

    def __iter__(self) -> Iterator[NDArray[Any]]:
        """Yield them in order."""
        return map(self.__getitem__, range(len(self._parts)))

    def __getitem__(self, place: int) -> NDArray[Any]:
        """Return one of them."""
        part = self._parts[place]
        if isinstance(part, np.ndarray):
            return part
        begin, length, kind = part
        found = np.empty(length, kind)
        self._file.seek(begin)
        self._file.readinto(found.data)
        return found


IntArray: TypeAlias = NDArray[np.int64]
Block: TypeAlias = "tuple[NDArray[Any], IntArray | None, NDArray[Any]]"
"""Of whom, when where there are times, and what."""

NEVER = -(2**62)
"""Before all moments."""

MOST_POINTS = 2_000_000_000


class Outline:
    """What a first pass finds of each subject: how many records, from when to when, how far apart.

    `least` is the shortest gap between two of its records, which is there `often` times, `longest`
    the longest, and all are multiples of `common`. `twice` is whose record is at the time of
    another, and when.
    """

    def __init__(self, subjects: int) -> None:
        """Begin with no records."""
        self.counts, self.often, self.common, self.longest = np.zeros((4, subjects), np.int64)
        self.first, self.last, least = np.full((3, subjects), NEVER)
        self.least = -least
        self.twice: tuple[int, int] | None = None

    @classmethod
    def of(cls, blocks: Iterator[Block], subjects: int) -> Outline | None:
        """Look at all records; None if those of a subject are not in order of time."""
        found = cls(subjects)
        for who, when, _ in blocks:
            if not found.take_in(*in_turn(who, when, None)[:2]):
                return None
        return found

    def take_in(self, who: NDArray[Any], when: IntArray | None) -> bool:
        """Add records that are sorted by subject; False if they are not in order of time."""
        self.counts += np.bincount(who, minlength=len(self.counts))
        if when is None or not len(who):
            return True
        begins = _turns(who)
        new = begins[self.last[who[begins]] == NEVER]
        gaps = np.diff(when, prepend=0)
        gaps[begins] = when[begins] - self.last[who[begins]]
        gaps[new] = 1
        if (gaps <= 0).any():
            if (gaps < 0).any():
                return False
            at = np.argmax(gaps == 0)
            self.twice = self.twice or (int(who[at]), int(when[at]))
        self.first[who[new]] = when[new]
        self.last[who] = when  # the last of each stays
        self._compare(np.delete(who, new), np.delete(gaps, new))
        return True

    def gaps(self) -> list[tuple[int, ...] | None]:
        """Return, for each subject, what a path on no grid tells of its times."""
        parts = (self.often, self.least, self.common, self.longest, self.last - self.first)
        return list(zip(*(part.tolist() for part in parts), strict=True))

    def _compare(self, who: NDArray[Any], gaps: IntArray) -> None:
        """Take in gaps, one for each record, sorted by subject; `own` are the subjects met."""
        if not len(who):
            return
        begins = _turns(who)
        own, least = who[begins], np.minimum.reduceat(gaps, begins)
        self.often[own[least < self.least[own]]] = 0
        self.least[own] = np.minimum(self.least[own], least)
        self.often += np.bincount(who[gaps == self.least[who]], minlength=len(self.often))
        self.common[own] = np.gcd(self.common[own], np.gcd.reduceat(gaps, begins))
        self.longest[own] = np.maximum(self.longest[own], np.maximum.reduceat(gaps, begins))


def _turns(who: NDArray[Any]) -> IntArray:
    """Return where the records of a subject begin, of records sorted by subject."""
    return np.flatnonzero(np.append(True, who[1:] != who[:-1]))


def in_turn(
    who: NDArray[Any], when: IntArray | None, values: NDArray[Any] | None
) -> tuple[Any, Any, Any]:
    """Return records sorted by subject, those of each in the order they came."""
    if (who[1:] >= who[:-1]).all():
        return who, when, values
    order = np.argsort(who, kind="stable")
    one, other = (None if column is None else column[order] for column in (when, values))
    return who[order], one, other


def in_time(
    blocks: Callable[[], Iterator[Block]], at_once: int = 1 << 18, in_memory: int = _IN_MEMORY
) -> Callable[[], Iterator[Block]]:
    """Sort records by subject and time; return what yields them, as often as it is asked.

    They are parted by keys between which about `at_once` of them are, as a sample of the rows
    tells, and each part is sorted on its own: three passes, O(1) memory beside the disk's.
    """
    seen: list[tuple[int, int, int, int, NDArray[Any], IntArray]] = []
    each = -(-at_once // 256)
    for who, when, _ in blocks():
        if when is not None and len(who):
            ends = int(who.max()), int(when.min()), int(when.max())
            seen.append((len(who), *ends, who[::each].copy(), when[::each].copy()))
    rows, subjects = sum(one[0] for one in seen), 1 + max(one[1] for one in seen)
    low, high = min(one[2] for one in seen), max(one[3] for one in seen)
    span = high - low + 1
    if subjects * span >= 2**63:
        raise InvalidInputError("Times are too far apart; write seconds, or ISO 8601.")

    def keys(who: NDArray[Any], when: Any) -> IntArray:
        found: IntArray = who * np.int64(span) + (when - low)
        return found

    sample = np.sort(np.concatenate([keys(*one[4:]) for one in seen]))
    parts = -(-rows // at_once)
    limits = sample[np.arange(1, parts) * len(sample) // parts]
    stored, pieces = (Spilled(in_memory), Spilled(in_memory)), [list[int]() for _ in range(parts)]
    for who, when, values in blocks():
        found = keys(who, when)
        part = np.searchsorted(limits, found, side="right").astype(np.uint16)
        order = np.argsort(part, kind="stable")
        turns = np.cumsum(np.bincount(part, minlength=parts))[:-1]
        columns = [np.split(column[order], turns) for column in (found, values)]
        for number, *piece in zip(range(parts), *columns, strict=True):
            if len(piece[0]):
                pieces[number].append(len(stored[0]))
                for kept, column in zip(stored, piece, strict=True):
                    kept.add(column)
    done = Spilled(in_memory), Spilled(in_memory)
    for some in filter(None, pieces):
        found, values = (np.concatenate([kept[one] for one in some]) for kept in stored)
        order = _sorting(found)
        done[0].add(found[order])
        done[1].add(values[order])

    def again() -> Iterator[Block]:
        for found, values in zip(*done, strict=True):
            who, when = np.divmod(found, span)
            yield who, when + low, values

    return again


def _sorting(keys: IntArray) -> IntArray:
    """Return the order of keys, equal ones as they are; with their places behind them, if short."""
    behind = len(keys).bit_length()
    keys = keys - keys.min()
    if int(keys.max()) >> (63 - behind):
        return np.argsort(keys, kind="stable")
    return np.sort((keys << behind) | np.arange(len(keys))) & ((1 << behind) - 1)


def subject_of(subjects: Sequence[Any], number: int) -> str:
    """Return the words that name a subject behind a row; none if there is one without a name."""
    return "" if subjects[number] is None else f" (subject {shortened(subjects[number])})"


def refuse_twice(
    blocks: Iterator[Block], twice: tuple[int, int], subjects: Sequence[Any]
) -> NoReturn:
    """Refuse two records of a subject at one time, which no grid gathers."""
    rows = chain.from_iterable(
        ((who == twice[0]) & (when == twice[1])).tolist() for who, when, _ in blocks
    )
    _, row, *_ = (number for number, is_there in enumerate(rows, 1) if is_there)
    raise InvalidInputError(
        f"Row {row}{subject_of(subjects, twice[0])} repeats the time of an earlier row. "
        "Remove the duplicate, or gather records on a regular grid with "
        f"{argument('every', '10min')}. If the "
        "time stands in several columns, write it into one."
    )


def in_order(blocks: Iterator[Block], outline: Outline, kind: Any) -> tuple[NDArray[Any], IntArray]:
    """Return the values of all subjects, one after the other, and where each begins."""
    bounds = np.concatenate([[0], np.cumsum(outline.counts)])
    found, filled = np.empty(int(bounds[-1]), kind), bounds[:-1].copy()
    for block in blocks:
        who, _, values = in_turn(*block)
        begins = _turns(who)
        sizes = np.diff(np.append(begins, len(who)))
        within = np.arange(len(who)) - np.repeat(begins, sizes)
        found[filled[who] + within] = values
        filled[who[begins]] += sizes
    return found, bounds


def on_steps(
    blocks: Iterator[Block],
    outline: Outline,
    step: int,
    rule: Rule,
    period: tuple[int, int] | None,
    coded: Callable[[NDArray[Any]], NDArray[Any]],
    kind: Any,
) -> tuple[NDArray[Any], IntArray, IntArray]:
    """Return one code for each step of all subjects, −1 without a record, bounds, first steps.

    Records of a subject's latest step wait for the next block, which may have more of them.
    """
    known = outline.counts > 0
    first, last = outline.first // step, outline.last // step
    if period is not None:
        first, last = np.full_like(first, period[0]), np.full_like(last, period[1])
    lengths = np.where(known, last - first + 1, 0)
    check_points(int(lengths.sum()))
    bounds = np.concatenate([[0], np.cumsum(lengths)])
    found = np.full(int(bounds[-1]), -1, kind)
    waiting: list[tuple[Any, ...]] = []
    for block in chain(blocks, [None]):
        ready = [*waiting, *([] if block is None else [block])]
        if not ready:
            break
        who, when, values = in_turn(
            *(np.concatenate(column) for column in zip(*ready, strict=True))
        )
        where = bounds[who] + when // step - first[who]
        latest = np.zeros(len(who), dtype=np.bool_)
        if block is not None and len(who):
            ends = np.append(np.flatnonzero(who[1:] != who[:-1]), len(who) - 1)
            latest = where == np.repeat(where[ends], np.diff(ends, prepend=-1))
        places, chosen = reduced(where[~latest], values[~latest], rule)
        found[places] = coded(chosen)
        waiting = [(who[latest], when[latest], values[latest])]
    return found, bounds, first


def check_points(total: int) -> None:
    """Refuse more time points than are ever kept."""
    if total > MOST_POINTS:
        raise InvalidInputError(
            f"There would be {total:,} time points; choose longer steps or a shorter range."
        )


def reduced(where: IntArray, values: NDArray[Any], rule: Rule) -> tuple[IntArray, NDArray[Any]]:
    """Return the places that have records, and what the rule makes of those of each.

    Records of a place follow each other; missing ones, NaN or −1, are left out.
    """
    present = ~np.isnan(values) if values.dtype.kind == "f" else values >= 0
    if not present.all():
        where, values = where[present], values[present]
    if not len(values):
        return where, values
    first = np.flatnonzero(np.append(True, where[1:] != where[:-1]))
    return where[first], _reduce(values, first, rule)


def _reduce(values: NDArray[Any], first: IntArray, rule: Rule) -> NDArray[Any]:
    last: IntArray = np.append(first[1:], len(values)) - 1
    if rule in ("first", "last"):
        return values[first if rule == "first" else last]
    gathered = {"min": np.minimum, "max": np.maximum}.get(rule, np.add).reduceat(values, first)
    return np.asarray(gathered / (last - first + 1) if rule == "mean" else gathered)


def spread(seconds: IntArray, until: IntArray, step: int) -> tuple[IntArray, IntArray]:
    """Return one record for every step that an interval touches: (row, seconds).

    The first keeps its own time, the others have that of their step.
    """
    begin, end = seconds // step, np.maximum(-((-until) // step), seconds // step + 1)
    counts = end - begin
    check_points(int(counts.sum()))
    row = np.repeat(np.arange(len(seconds)), counts)
    within = np.arange(len(row)) - np.repeat(np.cumsum(counts) - counts, counts)
    return row, np.where(within == 0, seconds[row], (begin[row] + within) * step)
