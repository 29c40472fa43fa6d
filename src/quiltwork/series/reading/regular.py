"""Records to time points in order, many subjects at once, and to a regular grid.

Records are sorted by subject and time, grouped into steps of fixed length counted from a public
origin, and each group is reduced by a public rule. Everything is vectorized: O(n) for records that
come in order, be it of subjects or of times, O(n log n) for others, O(n + steps) for the rest. The
grid is made for some subjects at a time, so that only codes are held for all of them.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

from quiltwork.beliefs.grids import Rule
from quiltwork.errors import InvalidInputError

IntArray: TypeAlias = NDArray[np.int64]
Codes: TypeAlias = NDArray[Any]

MOST_POINTS = 2_000_000_000
_AT_ONCE = 1 << 20


@dataclass(frozen=True, eq=False)
class OrderedRows:
    """Records in order: where each is in the file, of whom, and when where there are times."""

    order: IntArray | slice
    subject: Codes
    seconds: IntArray | None

    @property
    def bounds(self) -> IntArray:
        """Where each subject begins, and the end."""
        changes = np.flatnonzero(self.subject[1:] != self.subject[:-1]) + 1
        return np.concatenate([[0], changes, [len(self.subject)]])

    def gaps(self) -> Counter[int]:
        """How often so many seconds are between neighbouring records of one subject."""
        found: Counter[int] = Counter()
        for begin in range(0, 0 if self.seconds is None else len(self.seconds) - 1, _AT_ONCE):
            part = slice(begin, begin + _AT_ONCE + 1)
            who, when = self.subject[part], self.seconds[part]  # type: ignore[index]
            gaps, counts = np.unique(np.diff(when)[who[1:] == who[:-1]], return_counts=True)
            found.update(dict(zip(gaps.tolist(), counts.tolist(), strict=True)))
        return found


def ordered(subject: Codes, seconds: IntArray | None) -> OrderedRows:
    """Sort by subject, then time, else keep the order of the file."""
    order: IntArray | slice = slice(None)
    if (subject[1:] < subject[:-1]).any():
        order = np.argsort(subject, kind="stable")
    who = subject[order]
    if seconds is None:
        return OrderedRows(order, who, None)
    when = seconds[order]
    if ((when[1:] < when[:-1]) & (who[1:] == who[:-1])).any():
        order = np.lexsort((seconds, subject))
        who, when = subject[order], seconds[order]
    return OrderedRows(order, who, when)


def refuse_twice(rows: OrderedRows) -> None:
    """Refuse two records of a subject at one time, which no grid gathers.

    Raises:
        InvalidInputError: naming the row.
    """
    when, who = rows.seconds, rows.subject
    if when is None:
        return
    twice = (when[1:] == when[:-1]) & (who[1:] == who[:-1])
    if twice.any():
        place = int(np.argmax(twice)) + 1
        row = place + 1 if isinstance(rows.order, slice) else int(rows.order[place]) + 1
        raise InvalidInputError(
            f"Row {row} repeats a time of its subject; remove duplicates, or gather records on a "
            "regular grid with every='10min'."
        )


@dataclass(frozen=True, eq=False)
class Gridded:
    """Some subjects on the grid: their values one after the other, and where each begins."""

    values: NDArray[Any]
    subjects: Codes
    lengths: IntArray
    first_step: IntArray


def on_grid(
    rows: OrderedRows,
    values: NDArray[Any],
    rule: Rule,
    step: int,
    period: tuple[int, int] | None = None,
) -> Iterator[Gridded]:
    """Reduce each step to one value, for some subjects at a time.

    A step whose records are all missing, or that has none, is NaN among floats and −1 among codes;
    missing records beside others are left out. With a `period`, first and last step, every subject
    has all of its steps.

    Raises:
        InvalidInputError: if there are more than two billion time points.
    """
    assert rows.seconds is not None  # noqa: S101  (callers have a clock)
    bounds = rows.bounds
    first, last = rows.seconds[bounds[:-1]] // step, rows.seconds[bounds[1:] - 1] // step
    if period is not None:
        first, last = np.full_like(first, period[0]), np.full_like(last, period[1])
    lengths = last - first + 1
    check_points(int(lengths.sum()))
    begin = 0
    while begin < len(lengths):
        end = int(np.searchsorted(bounds, bounds[begin] + _AT_ONCE, side="right")) - 1
        end = min(max(end, begin + 1), len(lengths))
        part = slice(bounds[begin], bounds[end])
        some = slice(begin, end)
        base = np.cumsum(lengths[some]) - lengths[some] - first[some]
        where = rows.seconds[part] // step + np.repeat(base, np.diff(bounds[begin : end + 1]))
        chosen = values[part] if isinstance(rows.order, slice) else values[rows.order[part]]
        yield Gridded(
            _gathered(where, chosen, int(lengths[some].sum()), rule),
            rows.subject[bounds[:-1][some]],
            lengths[some],
            first[some],
        )
        begin = end


def check_points(total: int) -> None:
    """Refuse more time points than are ever kept.

    Raises:
        InvalidInputError: telling how many there would be.
    """
    if total > MOST_POINTS:
        raise InvalidInputError(
            f"The grid would have {total:,} time points; choose longer steps or a shorter range."
        )


def _gathered(where: IntArray, values: NDArray[Any], points: int, rule: Rule) -> NDArray[Any]:
    gridded = np.full(points, np.nan if values.dtype.kind == "f" else -1, dtype=values.dtype)
    places, chosen = reduced(where, values, rule)
    gridded[places] = chosen
    return gridded


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


def spread(seconds: IntArray, until: IntArray, step: int) -> tuple[IntArray, IntArray]:
    """Return one record for every step that an interval touches: (row, seconds).

    The first keeps its own time, the others have that of their step.
    """
    begin, end = seconds // step, np.maximum(-((-until) // step), seconds // step + 1)
    counts = end - begin
    if (total := int(counts.sum())) > MOST_POINTS:
        raise InvalidInputError(
            f"The intervals cover {total:,} time points; choose longer steps or a shorter range."
        )
    row = np.repeat(np.arange(len(seconds)), counts)
    within = np.arange(len(row)) - np.repeat(np.cumsum(counts) - counts, counts)
    return row, np.where(within == 0, seconds[row], (begin[row] + within) * step)
