"""Irregular records to a regular grid of time points, many subjects at once.

Records are sorted by subject and time, grouped into steps of fixed length counted from a public
origin, and each group is reduced by a public rule. Everything is vectorized: O(n log n) for the
sort, O(n + steps) for the rest.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray

from quiltwork.beliefs.grids import Rule
from quiltwork.errors import InvalidInputError

IntArray: TypeAlias = NDArray[np.int64]
FloatArray: TypeAlias = NDArray[np.float64]

MOST_POINTS = 2_000_000_000


@dataclass(frozen=True, eq=False)
class OrderedRows:
    """Records in order: `subject` codes, and `step` numbers where there is a clock."""

    order: IntArray
    subject: IntArray
    step: IntArray | None


def ordered(subject: IntArray, seconds: IntArray | None, every: int | None) -> OrderedRows:
    """Sort by subject, then time, else keep the order of the file.

    Raises:
        InvalidInputError: if a subject has two records at one time and no grid gathers them.
    """
    if seconds is None:
        order = np.argsort(subject, kind="stable")
        return OrderedRows(order, subject[order], None)
    order = np.lexsort((seconds, subject))
    who, when = subject[order], seconds[order]
    if every is not None:
        return OrderedRows(order, who, when // every)
    twice = (np.diff(when) == 0) & (np.diff(who) == 0)
    if twice.any():
        row = int(order[int(np.argmax(twice)) + 1]) + 1
        raise InvalidInputError(
            f"Row {row} repeats a time of its subject; remove duplicates, or gather records on a "
            "regular grid with every='10min'."
        )
    return OrderedRows(order, who, None)


def on_grid(rows: OrderedRows, values: FloatArray, rule: Rule) -> tuple[FloatArray, IntArray]:
    """Reduce each step to one value: (values with NaN for empty steps, subject of each point).

    A step whose records are all missing, or that has none, is NaN; missing records beside others
    are left out.
    """
    assert rows.step is not None  # noqa: S101  (callers have a grid)
    present = ~np.isnan(values)
    starts, lengths = _spans(rows.subject, rows.step)
    total = int(lengths.sum())
    if total > MOST_POINTS:
        raise InvalidInputError(
            f"The grid would have {total:,} time points; choose longer steps or a shorter range."
        )
    base = np.cumsum(lengths) - lengths
    subjects, first_row = np.unique(rows.subject, return_index=True)
    where = base[np.searchsorted(subjects, rows.subject)] + rows.step
    where -= np.repeat(starts, np.diff(np.append(first_row, len(rows.subject))))
    gridded = np.full(total, np.nan)
    where, kept = where[present], values[present]
    if len(kept):
        first = np.flatnonzero(np.append(True, np.diff(where) != 0))
        gridded[where[first]] = _reduce(kept, first, rule)
    return gridded, np.repeat(subjects, lengths)


def _spans(subject: IntArray, step: IntArray) -> tuple[IntArray, IntArray]:
    first = np.flatnonzero(np.append(True, np.diff(subject) != 0))
    last = np.append(first[1:], len(subject)) - 1
    return step[first], step[last] - step[first] + 1


def _reduce(values: FloatArray, first: IntArray, rule: Rule) -> FloatArray:
    last: IntArray = np.append(first[1:], len(values)) - 1
    match rule:
        case "mean":
            return np.asarray(np.add.reduceat(values, first) / (last - first + 1))
        case "sum":
            return np.asarray(np.add.reduceat(values, first))
        case "min":
            return np.asarray(np.minimum.reduceat(values, first))
        case "max":
            return np.asarray(np.maximum.reduceat(values, first))
        case "first":
            return values[first]
        case "last":
            return values[last]
