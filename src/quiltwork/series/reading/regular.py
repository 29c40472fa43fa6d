"""What a public rule makes of the records of one step, and the steps that a row holds for."""

from __future__ import annotations

from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

from quiltwork.beliefs.grids import Rule
from quiltwork.errors import InvalidInputError

IntArray: TypeAlias = NDArray[np.int64]

MOST_POINTS = 2_000_000_000


def check_points(total: int) -> None:
    """Refuse more time points than are ever kept.

    Raises:
        InvalidInputError: telling how many there would be.
    """
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
    check_points(int(counts.sum()))
    row = np.repeat(np.arange(len(seconds)), counts)
    within = np.arange(len(row)) - np.repeat(np.cumsum(counts) - counts, counts)
    return row, np.where(within == 0, seconds[row], (begin[row] + within) * step)
