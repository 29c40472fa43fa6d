"""Records to sequences block by block: only the codes of all time points are held at once.

A first pass over the blocks finds how long each sequence is, a second puts every record in its
place. Rows of each subject must come in order of time, subjects may follow each other or take
turns; other XX"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from itertools import chain
from typing import Any, NoReturn, TypeAlias

import numpy as np
from numpy.typing import NDArray

from quiltwork.beliefs.grids import Rule
from quiltwork.errors import InvalidInputError
from quiltwork.series.reading.regular import check_points, reduced

IntArray: TypeAlias = NDArray[np.int64]
Block: TypeAlias = "tuple[NDArray[Any], IntArray | None, NDArray[Any]]"
"""Of whom, when where there are times, and what."""

NEVER = -(2**62)
"""Before all moments."""

_AT_ONCE, _PASSES = 1 << 20, 16


@dataclass(eq=False)
class Outline:
    """What a first pass finds of each subject: how many records, from when to when.

    `twice` is whose record is at the time of another, and when.
    """

    counts: IntArray
    first: IntArray
    last: IntArray
    gaps: Counter[int] = field(default_factory=Counter)
    twice: tuple[int, int] | None = None

    @classmethod
    def of(cls, blocks: Iterator[Block], subjects: int) -> Outline | None:
        """Look at all records; None if those of a subject are not in order of time."""
        found = cls(np.zeros(subjects, np.int64), *np.full((2, subjects), NEVER))
        for who, when, _ in blocks:
            if not found.take_in(*in_turn(who, when, None)[:2]):
                return None
        return found

    def take_in(self, who: NDArray[Any], when: IntArray | None) -> bool:
        """Add records that are sorted by subject; False if they are not in order of time."""
        self.counts += np.bincount(who, minlength=len(self.counts))
        if when is None or not len(who):
            return True
        same, gaps = who[1:] == who[:-1], np.diff(when)
        begins = np.flatnonzero(np.append(True, ~same))
        ends = np.append(begins[1:], len(who)) - 1
        seen = self.last[who[begins]] > NEVER
        again = (when[begins] - self.last[who[begins]])[seen]
        gaps = np.concatenate([gaps[same], again])
        if (gaps < 0).any():
            return False
        if self.twice is None and not gaps.all():
            among = np.flatnonzero(same & (when[1:] == when[:-1])) + 1
            at = among[0] if len(among) else begins[seen][np.argmax(again == 0)]
            self.twice = int(who[at]), int(when[at])
        distinct, often = np.unique(gaps, return_counts=True)
        self.gaps.update(dict(zip(distinct.tolist(), often.tolist(), strict=True)))
        self.first[who[begins[~seen]]] = when[begins[~seen]]
        self.last[who[ends]] = when[ends]
        return True


def in_turn(
    who: NDArray[Any], when: IntArray | None, values: NDArray[Any] | None
) -> tuple[Any, Any, Any]:
    """Return records sorted by subject, those of each in the order they came."""
    if (who[1:] >= who[:-1]).all():
        return who, when, values
    order = np.argsort(who, kind="stable")
    one, other = (None if column is None else column[order] for column in (when, values))
    return who[order], one, other


def sorted_blocks(
    blocks: Callable[[], Iterator[tuple[NDArray[Any], Any, NDArray[Any]]]], subjects: int
) -> Iterator[Block]:
    """Yield records by subject and time, some subjects, or times of one, after the other.

    Sixteen passes over the blocks at most, in each of which a sixteenth of the records is sorted.
    """
    counts, first, last = np.zeros(subjects, np.int64), *np.full((2, subjects), NEVER)
    first = -first
    for who, when, _ in blocks():
        counts += np.bincount(who, minlength=subjects)
        np.minimum.at(first, who, when)
        np.maximum.at(last, who, when)
    size = max(_AT_ONCE, -(-int(counts.sum()) // _PASSES))
    slots = np.maximum(-(-counts // size), 1)
    begins, spans = np.cumsum(slots) - slots, np.maximum(last - first + 1, 1)

    def slot(who: NDArray[Any], when: Any) -> IntArray:
        found: IntArray = begins[who] + (when - first[who]) * slots[who] // spans[who]
        return found

    often = np.zeros(int(slots.sum()), np.int64)
    for who, when, _ in blocks():
        often += np.bincount(slot(who, when), minlength=len(often))
    turn = (np.cumsum(often) - often) // size
    for now in np.unique(turn[often > 0]).tolist():
        chosen = []
        for who, when, values in blocks():
            mine = turn[slot(who, when)] == now
            chosen.append((who[mine], when[mine], values[mine]))
        who, when, values = (np.concatenate(column) for column in zip(*chosen, strict=True))
        order = np.lexsort((when, who))
        yield who[order], when[order], values[order]


def refuse_twice(blocks: Iterator[Block], twice: tuple[int, int]) -> NoReturn:
    """Refuse two records of a subject at one time, which no grid gathers.

    Raises:
        InvalidInputError: naming the row.
    """
    rows = chain.from_iterable(
        ((who == twice[0]) & (when == twice[1])).tolist() for who, when, _ in blocks
    )
    _, row, *_ = (number for number, is_there in enumerate(rows, 1) if is_there)
    raise InvalidInputError(
        f"Row {row} repeats a time of its subject; remove duplicates, or gather records on a "
        "regular grid with every='10min'."
    )


def in_order(blocks: Iterator[Block], outline: Outline, kind: Any) -> tuple[NDArray[Any], IntArray]:
    """Return the values of all subjects, one after the other, and where each begins."""
    bounds = np.concatenate([[0], np.cumsum(outline.counts)])
    found, filled = np.empty(int(bounds[-1]), kind), bounds[:-1].copy()
    for block in blocks:
        who, _, values = in_turn(*block)
        begins = np.flatnonzero(np.append(True, who[1:] != who[:-1]))
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

    Raises:
        InvalidInputError: if there are more time points than are ever kept.
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
