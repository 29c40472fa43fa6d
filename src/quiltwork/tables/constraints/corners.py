"""Branch and bound for the worst histogram in each of many boxes, in arrays.

A box holds the histograms between what a coalition leaves and the whole group. A violation of
t-closeness or entropy diversity is a convex function F > 0 of the histogram, so the constraint
fails somewhere in the box if and only if it fails at a corner. Each round bounds F on every box by
a linear function, evaluates the corner where that is largest, and halves the boxes still in doubt;
most boxes need one round. Cost: O(values) per box and round, exponential only in the number of
values on which the bounds stay in doubt.

Theorem: docs/theory/m-privacy.md
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from quiltwork.tables.codes.group import Group, SparseCounts, by_value, subset, values_of_entries
from quiltwork.tables.codes.histogram import SecretCounts
from quiltwork.tables.constraints.coalition_bounds import (
    BROKEN,
    OPEN,
    SAFE,
    Status,
    coalition_sizes,
    sum_of_largest,
)

Floats = NDArray[np.float64]
Flags = NDArray[np.bool_]
Ints = NDArray[np.int64]

ROUNDING = 2.0**-50
MOST_BOXES = 1024
"""Sub-boxes of one box that may be in doubt at a time; with more, the box stays undecided."""
_CELLS = 4_000_000  # entries of one table group × value, to bound the memory


class ConvexViolation(Protocol):
    """A convex function F of histograms that is positive exactly where a constraint is violated."""

    def at(self, points: Floats) -> tuple[Floats, Floats]:
        """Return F at each point, and a bound on its rounding error (0 where it is exact)."""

    def line(self, low: Floats, high: Floats) -> tuple[Floats, Floats]:
        """Return (constant, slopes) of a linear upper bound on F in each box."""


class HistogramConstraint(Protocol):
    """A constraint whose worst histogram in a box can be searched for."""

    @property
    def table_values(self) -> int | None:
        """The number of values of the whole table, if it compares with that."""

    def holds(self, records: SecretCounts) -> bool:
        """Return whether a set of records satisfies it."""

    def worst_between(self, low: Ints, high: Ints) -> Corners | None:
        """Search each box of histograms, low..high, for one that violates."""


@dataclass(frozen=True, eq=False)
class Corners:
    """The result of a search in each of several boxes.

    Attributes:
        safe: whether F ≤ 0 in the whole box.
        violated: whether a corner with F > 0 was found.
        point: that corner.
        looked: the number of boxes and sub-boxes evaluated.
    """

    safe: Flags
    violated: Flags
    point: Ints
    looked: int


def worst_corners(
    excess: ConvexViolation,
    part: HistogramConstraint,
    low: Ints,
    high: Ints,
    most_boxes: int = MOST_BOXES,
) -> Corners:
    """Search each box for a corner that violates `part`.

    A box is neither safe nor violated if more than `most_boxes` of its sub-boxes were in doubt.
    """
    # The empty histogram violates each of these constraints.
    violated: Flags = np.asarray(~low.any(axis=1))
    point, given_up = low.copy(), np.zeros(len(low), dtype=np.bool_)
    owner = np.flatnonzero(~violated)
    looked = len(low) - len(owner)
    lows, highs = low[owner].astype(np.float64), high[owner].astype(np.float64)
    while len(owner):
        looked += len(owner)
        constant, slope = excess.line(lows, highs)
        corner = np.where(slope > 0, highs, lows)
        upper = constant + (slope * corner).sum(axis=1)
        value, doubt = excess.at(corner)
        _confirm(part, corner, value, doubt)
        hit = value > doubt
        violated[owner[hit]], point[owner[hit]] = True, corner[hit].astype(np.int64)
        open_ = (upper > 0) & (lows < highs).any(axis=1) & ~violated[owner]
        # Without this cap a single hard group could take exponential time.
        given_up |= np.bincount(owner[open_], minlength=len(low)) > most_boxes
        open_ &= ~given_up[owner]
        lows, highs = _split(lows[open_], highs[open_])
        owner = np.tile(owner[open_], 2)
    return Corners(~violated & ~given_up, violated, point, looked)


def _confirm(part: HistogramConstraint, corner: Floats, value: Floats, doubt: Floats) -> None:
    """Ask the constraint itself where rounding leaves the sign of F open; changes `value`."""
    for i in np.flatnonzero(np.abs(value) <= doubt).tolist():
        if doubt[i] > 0:
            holds = part.holds(SecretCounts.from_histogram(corner[i].astype(np.int64)))
            value[i] = -np.inf if holds else np.inf


def _split(low: Floats, high: Floats) -> tuple[Floats, Floats]:
    """Halve every box along the value with the widest range: all of its open records, or none."""
    rows = np.arange(len(low))
    # The widest value contributes most to the gap between F and its linear bound.
    widest = np.argmax(high - low, axis=1)
    raised, lowered = low.copy(), high.copy()
    raised[rows, widest] = high[rows, widest]
    lowered[rows, widest] = low[rows, widest]
    return np.concatenate((raised, low)), np.concatenate((high, lowered))


def bound_histograms(part: HistogramConstraint, counts: SparseCounts, m: int) -> Status:
    """Decide groups by their histograms, in portions that fit memory."""
    status = np.full(counts.groups, OPEN, dtype=np.int8)
    # Tables group × value are dense; portions bound their memory.
    step = max(1, _CELLS // max(counts.values, 1))
    for first in range(0, counts.groups, step):
        portion = np.arange(first, min(first + step, counts.groups))
        status[portion] = _bound_some(part, subset(counts, portion), m)
    return status


def _bound_some(part: HistogramConstraint, counts: SparseCounts, m: int) -> Status:
    """Check each whole group, then the box down to what the largest holders of each value leave."""
    total, sizes = by_value(counts), coalition_sizes(counts, m)
    whole_group, safe = part.worst_between(total, total), sizes == 0
    if whole_group is None:
        return np.full(counts.groups, OPEN, dtype=np.int8)
    # With shared people or several values per person, removals are not bounded by value.
    if m and not len(counts.sets) and not (counts.kinds.sizes > 1).any():
        entry, value = values_of_entries(counts)
        cell = counts.group[entry] * counts.values + value
        removable = sum_of_largest(cell, counts.weight[entry], np.repeat(sizes, counts.values))
        between = part.worst_between(total - removable.reshape(total.shape), total)
        safe |= between is not None and between.safe
    return np.where(whole_group.safe, np.where(safe, SAFE, OPEN), BROKEN).astype(np.int8)


def violations_of_group(group: Group, part: HistogramConstraint, kept: Ints) -> Corners | None:
    """Search between what coalitions leave of one group, the rows of `kept`, and the whole group.

    Rows and the points in the result are weights by kind.
    """
    column, width = np.arange(len(group.values)), len(group.values)
    # The reference distribution has columns for all values of the table.
    if part.table_values is not None:
        column, width = group.values, part.table_values
    high = np.broadcast_to(group.total, kept.shape)
    if group.kinds is None:  # a kind is a value
        spread = np.zeros((2, len(kept), width), dtype=np.int64)
        spread[:, :, column] = kept, high
        corners = part.worst_between(*spread)
        return None if corners is None else replace(corners, point=corners.point[:, column])
    values = np.zeros((len(group.kinds), width), dtype=np.int64)
    values[:, column] = group.kinds
    has_one_value = group.kinds.sum(axis=1) == 1
    addable = np.where(has_one_value, high - kept, 0)
    corners = part.worst_between(kept @ values, (kept + addable) @ values)
    # The box by value holds more histograms than the sets in between: it can only prove safety.
    outer = part.worst_between(kept @ values, high @ values)
    if corners is None or outer is None:
        return None
    raised = (corners.point > kept @ values) @ values.T > 0
    corners = replace(corners, point=kept + np.where(raised, addable, 0))
    return replace(corners, safe=outer.safe, looked=corners.looked + outer.looked)


def at_least(left: Ints, by: int, right: Ints, times: int) -> Flags:
    """Return where left·by ≥ right·times, in integers of any size."""
    largest = max(int(left.max(initial=1)) * by, int(right.max(initial=1)) * times)
    if largest < 2**62:
        return np.asarray(left * by >= right * times)
    return np.asarray(left.astype(object) * by >= right.astype(object) * times, dtype=np.bool_)
