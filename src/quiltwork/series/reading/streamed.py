"""Records to sequences in blocks of rows: only the state codes of all time points are in memory.

A first pass over the blocks measures each subject's records (`Outline`), a second pass writes every
record to its time point. The rows of one subject must be in order of time; subjects may follow each
other or alternate. Unsorted rows are first sorted by key ranges through a temporary file
(`sorted_by_time`). Cost: two passes, five if rows are unsorted.
"""

from __future__ import annotations

import os
import weakref
from collections.abc import Callable, Iterator, Sequence
from itertools import chain
from tempfile import TemporaryFile, gettempdir
from typing import Any, Literal, NoReturn, TypeAlias

import numpy as np
from numpy.typing import NDArray

from quiltwork.beliefs.grids import Rule
from quiltwork.errors import InvalidInputError, StorageError
from quiltwork.exact import shortened
from quiltwork.wording import argument

_IN_MEMORY = 1 << 23


class Spilled:
    """A list of arrays that keeps `in_memory` bytes in memory and the rest in a temporary file.

    The file has no name, only its owner can read it, and it ends with the process.
    """

    def __init__(self, in_memory: int = _IN_MEMORY) -> None:
        """Begin with an empty list."""
        self._in_memory = in_memory
        self._parts: list[NDArray[Any] | tuple[int, int, Any]] = []
        self._held = 0
        self._file: Any = None

    def __len__(self) -> int:
        """The number of arrays."""
        return len(self._parts)

    def add(self, part: NDArray[Any]) -> None:
        """Append an array."""
        if self._held + part.nbytes <= self._in_memory:
            self._held += part.nbytes
            self._parts.append(part)
            return
        try:
            if self._file is None:
                self._file = TemporaryFile(buffering=0)  # noqa: SIM115  (closed with this list)
                weakref.finalize(self, self._file.close)
            offset, unwritten = self._file.seek(0, os.SEEK_END), memoryview(part.tobytes())
            while unwritten:  # on a full disk the first write is short, and the next one fails
                unwritten = unwritten[self._file.write(unwritten) :]
        except OSError as error:
            raise StorageError(
                f"Rows that do not fit in memory go to a temporary file in {gettempdir()!r}, "
                f"which failed: {error.strerror}. Name a folder with room in TMPDIR."
            ) from None
        self._parts.append((offset, len(part), part.dtype))

    def cut(self, number: int) -> None:
        """Drop all arrays but the first `number`."""
        del self._parts[number:]

    def __iter__(self) -> Iterator[NDArray[Any]]:
        """Yield the arrays in order."""
        return map(self.__getitem__, range(len(self._parts)))

    def __getitem__(self, index: int) -> NDArray[Any]:
        """Return one array."""
        part = self._parts[index]
        if isinstance(part, np.ndarray):
            return part
        offset, length, kind = part
        array = np.empty(length, kind)
        self._file.seek(offset)
        self._file.readinto(array.data)
        return array


IntArray: TypeAlias = NDArray[np.int64]
Block: TypeAlias = "tuple[NDArray[Any], IntArray | None, NDArray[Any]]"
"""Some records as columns: subject numbers, seconds (None without a time column), values."""

NEVER = -(2**62)
"""A time before all others."""

MOST_POINTS = 2_000_000_000


class Outline:
    """What the first pass measures of each subject: records, first and last time, time gaps.

    Attributes:
        counts: the number of records.
        first: the time of the first record; `NEVER` without one.
        last: the time of the last record.
        least: the shortest gap between two records.
        often: how many gaps are that short.
        longest: the longest gap.
        common: the greatest common divisor of the gaps.
        repeated: a subject and a time at which it has two records; None if no time is repeated.
    """

    def __init__(self, subjects: int) -> None:
        """Begin with no records."""
        self.counts, self.often, self.common, self.longest = np.zeros((4, subjects), np.int64)
        self.first, self.last, least = np.full((3, subjects), NEVER)
        self.least = -least
        self.repeated: tuple[int, int] | None = None

    @classmethod
    def of(cls, blocks: Iterator[Block], subjects: int) -> Outline | None:
        """Measure all records; None if those of a subject are not in order of time."""
        outline = cls(subjects)
        for who, when, _ in blocks:
            if not outline.take_in(*by_subject(who, when, None)[:2]):
                return None
        return outline

    def take_in(self, who: NDArray[Any], when: IntArray | None) -> bool:
        """Add records that are sorted by subject; False if they are not in order of time."""
        self.counts += np.bincount(who, minlength=len(self.counts))
        if when is None or not len(who):
            return True
        begins = _run_begins(who)
        new = begins[self.last[who[begins]] == NEVER]
        gaps = np.diff(when, prepend=0)
        gaps[begins] = when[begins] - self.last[who[begins]]
        gaps[new] = 1
        if (gaps <= 0).any():
            if (gaps < 0).any():
                return False
            at = np.argmax(gaps == 0)
            self.repeated = self.repeated or (int(who[at]), int(when[at]))
        self.first[who[new]] = when[new]
        self.last[who] = when  # of equal indices, assignment keeps the last
        self._add_gaps(np.delete(who, new), np.delete(gaps, new))
        return True

    def gaps(self) -> list[tuple[int, ...] | None]:
        """Return (often, least, common, longest, span) of each subject, for paths on no grid."""
        columns = (self.often, self.least, self.common, self.longest, self.last - self.first)
        return list(zip(*(column.tolist() for column in columns), strict=True))

    def _add_gaps(self, who: NDArray[Any], gaps: IntArray) -> None:
        """Add gaps, one for each record, sorted by subject."""
        if not len(who):
            return
        begins = _run_begins(who)
        subjects, least = who[begins], np.minimum.reduceat(gaps, begins)
        self.often[subjects[least < self.least[subjects]]] = 0
        self.least[subjects] = np.minimum(self.least[subjects], least)
        self.often += np.bincount(who[gaps == self.least[who]], minlength=len(self.often))
        divisors = np.gcd.reduceat(gaps, begins)
        self.common[subjects] = np.gcd(self.common[subjects], divisors)
        longest = np.maximum.reduceat(gaps, begins)
        self.longest[subjects] = np.maximum(self.longest[subjects], longest)


def _run_begins(who: NDArray[Any]) -> IntArray:
    """Return where each subject's records begin, of records sorted by subject."""
    return np.flatnonzero(np.append(True, who[1:] != who[:-1]))


def by_subject(
    who: NDArray[Any], when: IntArray | None, values: NDArray[Any] | None
) -> tuple[Any, Any, Any]:
    """Sort records by subject; each subject's records keep their order."""
    if (who[1:] >= who[:-1]).all():
        return who, when, values
    order = np.argsort(who, kind="stable")
    moments, cells = (None if column is None else column[order] for column in (when, values))
    return who[order], moments, cells


def without_repeats(blocks: Iterator[Block], rule: Literal["first", "mean"]) -> Iterator[Block]:
    """Merge the records that a subject has at one time: keep the first, or average the numbers.

    Records must be in order of time. Each subject's latest records wait for the next block, which
    may repeat their time.
    """
    waiting: list[Block] = []
    for block in chain(blocks, [None]):
        ready = [*waiting, *([] if block is None else [block])]
        if not ready:
            return
        who, when, values = by_subject(
            *(np.concatenate(column) for column in zip(*ready, strict=True))
        )
        new = np.append(True, (who[1:] != who[:-1]) | (when[1:] != when[:-1]))
        last = np.zeros(len(who), dtype=np.bool_)
        if block is not None and len(who):
            ends = np.append(_run_begins(who)[1:], len(who)) - 1
            moment = np.repeat(when[ends], np.diff(ends, prepend=-1))
            last = when == moment
        waiting = [(who[last], when[last], values[last])]
        who, when, values, new = who[~last], when[~last], values[~last], new[~last]
        group = np.cumsum(new) - 1
        merged = np.full(int(new.sum()), np.nan if values.dtype.kind == "f" else -1, values.dtype)
        present, chosen = reduced(group, values, rule)
        merged[present] = chosen
        yield who[new], when[new], merged


def sorted_by_time(
    blocks: Callable[[], Iterator[Block]], at_once: int = 1 << 18, in_memory: int = _IN_MEMORY
) -> Callable[[], Iterator[Block]]:
    """Sort records by subject and time; return a function that yields them again from the start.

    A sample of the rows gives key ranges of about `at_once` records; each range is collected and
    sorted on its own. Cost: three passes; memory for one range, the rest is on disk.
    """
    samples: list[tuple[int, int, int, int, NDArray[Any], IntArray]] = []
    stride = -(-at_once // 256)
    for who, when, _ in blocks():
        if when is not None and len(who):
            extremes = int(who.max()), int(when.min()), int(when.max())
            samples.append((len(who), *extremes, who[::stride].copy(), when[::stride].copy()))
    rows, subjects = sum(one[0] for one in samples), 1 + max(one[1] for one in samples)
    low, high = min(one[2] for one in samples), max(one[3] for one in samples)
    span = high - low + 1
    if subjects * span >= 2**63:
        raise InvalidInputError("Times are too far apart; write seconds, or ISO 8601.")

    def keys(who: NDArray[Any], when: Any) -> IntArray:
        combined: IntArray = who * np.int64(span) + (when - low)
        return combined

    sample = np.sort(np.concatenate([keys(*one[4:]) for one in samples]))
    ranges = -(-rows // at_once)
    limits = sample[np.arange(1, ranges) * len(sample) // ranges]
    stored, pieces = (Spilled(in_memory), Spilled(in_memory)), [list[int]() for _ in range(ranges)]
    for who, when, values in blocks():
        key = keys(who, when)
        part = np.searchsorted(limits, key, side="right").astype(np.uint16)
        order = np.argsort(part, kind="stable")
        splits = np.cumsum(np.bincount(part, minlength=ranges))[:-1]
        columns = [np.split(column[order], splits) for column in (key, values)]
        for number, *piece in zip(range(ranges), *columns, strict=True):
            if len(piece[0]):
                pieces[number].append(len(stored[0]))
                for spilled, column in zip(stored, piece, strict=True):
                    spilled.add(column)
    done = Spilled(in_memory), Spilled(in_memory)
    for indices in filter(None, pieces):
        key, values = (np.concatenate([spilled[i] for i in indices]) for spilled in stored)
        order = _stable_order(key)
        done[0].add(key[order])
        done[1].add(values[order])

    def again() -> Iterator[Block]:
        for key, values in zip(*done, strict=True):
            who, when = np.divmod(key, span)
            yield who, when + low, values

    return again


def _stable_order(keys: IntArray) -> IntArray:
    """Return the stable sorting order of keys.

    Short keys are sorted with their index in the low bits, which is faster than a stable argsort.
    """
    bits = len(keys).bit_length()
    keys = keys - keys.min()
    if int(keys.max()) >> (63 - bits):
        return np.argsort(keys, kind="stable")
    return np.sort((keys << bits) | np.arange(len(keys))) & ((1 << bits) - 1)


def subject_suffix(subjects: Sequence[Any], number: int) -> str:
    """Return " (subject …)" for a message about a row; empty if the subject has no name."""
    return "" if subjects[number] is None else f" (subject {shortened(subjects[number])})"


def refuse_repeat(
    records: Iterator[tuple[NDArray[np.int64], Block]],
    repeated: tuple[int, int],
    subjects: Sequence[Any],
) -> NoReturn:
    """Refuse two records of a subject at one time, naming the row of the second.

    `records` are blocks, each with the numbers of its rows in the file.
    """
    rows = [
        int(row)
        for numbers, (who, when, _) in records
        for row in numbers[(who == repeated[0]) & (when == repeated[1])]
    ]
    raise InvalidInputError(
        f"Row {rows[1]}{subject_suffix(subjects, repeated[0])} repeats the time of an earlier row, "
        f"row {rows[0]}. Remove the duplicate; or keep the first of such rows with "
        f"{argument('duplicates', 'first')}, or their mean with {argument('duplicates', 'mean')}; "
        f"or gather records on a regular grid with {argument('every', '10min')}. If the time "
        "stands in several columns, write it into one."
    )


def in_order(blocks: Iterator[Block], outline: Outline, kind: Any) -> tuple[NDArray[Any], IntArray]:
    """Return the values of all subjects, one after the other, and where each subject begins."""
    bounds = np.concatenate([[0], np.cumsum(outline.counts)])
    codes, filled = np.empty(int(bounds[-1]), kind), bounds[:-1].copy()
    for block in blocks:
        who, _, values = by_subject(*block)
        begins = _run_begins(who)
        sizes = np.diff(np.append(begins, len(who)))
        within = np.arange(len(who)) - np.repeat(begins, sizes)
        codes[filled[who] + within] = values
        filled[who[begins]] += sizes
    return codes, bounds


def on_steps(
    blocks: Iterator[Block],
    outline: Outline,
    step: int,
    rule: Rule,
    period: tuple[int, int] | None,
    encode: Callable[[NDArray[Any]], NDArray[Any]],
    kind: Any,
) -> tuple[NDArray[Any], IntArray, IntArray]:
    """Gather records on a grid: codes of all steps (−1 at gaps), subject bounds, first steps.

    Records of a subject's latest step wait for the next block, which may have more of them.
    """
    present = outline.counts > 0
    first, last = outline.first // step, outline.last // step
    if period is not None:
        first, last = np.full_like(first, period[0]), np.full_like(last, period[1])
    lengths = np.where(present, last - first + 1, 0)
    check_points(int(lengths.sum()))
    bounds = np.concatenate([[0], np.cumsum(lengths)])
    codes = np.full(int(bounds[-1]), -1, kind)
    waiting: list[tuple[Any, ...]] = []
    for block in chain(blocks, [None]):
        ready = [*waiting, *([] if block is None else [block])]
        if not ready:
            break
        who, when, values = by_subject(
            *(np.concatenate(column) for column in zip(*ready, strict=True))
        )
        position = bounds[who] + when // step - first[who]
        latest = np.zeros(len(who), dtype=np.bool_)
        if block is not None and len(who):
            ends = np.append(_run_begins(who)[1:], len(who)) - 1
            latest = position == np.repeat(position[ends], np.diff(ends, prepend=-1))
        steps, gathered = reduced(position[~latest], values[~latest], rule)
        codes[steps] = encode(gathered)
        waiting = [(who[latest], when[latest], values[latest])]
    return codes, bounds, first


def check_points(total: int) -> None:
    """Refuse more time points than fit in memory as codes."""
    if total > MOST_POINTS:
        raise InvalidInputError(
            f"There would be {total:,} time points; choose longer steps or a shorter range."
        )


def reduced(where: IntArray, values: NDArray[Any], rule: Rule) -> tuple[IntArray, NDArray[Any]]:
    """Reduce the values of each position by a rule; return positions with values, and these.

    Records of one position are adjacent. Missing values, NaN or −1, are left out.
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
    totals = {"min": np.minimum, "max": np.maximum}.get(rule, np.add).reduceat(values, first)
    return np.asarray(totals / (last - first + 1) if rule == "mean" else totals)


def spread(seconds: IntArray, until: IntArray, step: int) -> tuple[IntArray, IntArray]:
    """Return one record for every step that an interval touches: (row, seconds).

    The first record keeps its own time, the others have that of their step.
    """
    begin, end = seconds // step, np.maximum(-((-until) // step), seconds // step + 1)
    counts = end - begin
    check_points(int(counts.sum()))
    row = np.repeat(np.arange(len(seconds)), counts)
    within = np.arange(len(row)) - np.repeat(np.cumsum(counts) - counts, counts)
    return row, np.where(within == 0, seconds[row], (begin[row] + within) * step)
