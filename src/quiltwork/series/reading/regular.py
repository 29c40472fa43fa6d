"""Records sorted by subject and time, and what a public rule makes of those of one step.

Everything is vectorized: O(n) for records that come in order, be it of subjects or of times,
O(n log n) for others.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

from quiltwork.beliefs.grids import Rule
from quiltwork.errors import InvalidInputError

IntArray: TypeAlias = NDArray[np.int64]
Codes: TypeAlias = NDArray[Any]

MOST_POINTS = 2_000_000_000


@dataclass(frozen=True, eq=False)
class OrderedRows:
    """Records in order: where each is in the file, of whom, and when where there are times."""

    order: IntArray | slice
    subject: Codes
    seconds: IntArray | None


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


def check_points(total: int) -> None:
    """Refuse more time points than are ever kept.

    Raises:
        InvalidInputError: telling how many there would be.
    """
    if total > MOST_POINTS:
        raise InvalidInputError(
            f"The grid would have {total:,} time points; choose longer steps or a shorter range."
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
