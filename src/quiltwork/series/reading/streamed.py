"""Records to sequences block by block: only the codes of all time points are held at once.

Rows of each subject must come in order of time; subjects may follow each other or take turns. A
first pass over the blocks finds how long each sequence is, a second puts every record in its place.
O(rows) time; besides the packed columns one code for each time point.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from itertools import chain
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

from quiltwork.beliefs.grids import Rule
from quiltwork.series.reading.regular import check_points, reduced

IntArray: TypeAlias = NDArray[np.int64]
Block: TypeAlias = "tuple[NDArray[Any], IntArray | None, NDArray[Any]]"
"""Of whom, when where there are times, and what."""

NEVER = -(2**62)
"""Before all moments."""


@dataclass(eq=False)
class Outline:
    """What a first pass finds of each subject: how many records, from when to when."""

    counts: IntArray
    first: IntArray
    last: IntArray
    gaps: Counter[int] = field(default_factory=Counter)

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
