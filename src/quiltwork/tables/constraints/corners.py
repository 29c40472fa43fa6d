"""The worst corners of many boxes at once: branch and bound in arrays.

A box holds the histograms between what a coalition leaves and the whole group. A violation of
t-closeness or entropy diversity is a convex function F > 0 of the histogram x, so the constraint
fails in the box if and only if it fails at a corner. Each round bounds F on every box by a linear
function, looks at the corner where that is largest, and halves the boxes that are still in doubt;
most boxes need one round. Cost: O(values) per box and round, exponential only in the values on
which bounds stay in doubt.

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
"""Parts of one box that may be in doubt at a time; beyond, nothing is decided."""
_CELLS = 4_000_000


class Excess(Protocol):
    """A convex function of histograms that is positive exactly where a constraint is violated."""

    def at(self, points: Floats) -> tuple[Floats, Floats]:
        """Return F at each point, and how far rounding may be off (0 where it is exact)."""

    def line(self, low: Floats, high: Floats) -> tuple[Floats, Floats]:
        """Return (constant, slopes) of a linear function that F does not exceed in the box."""


class Decided(Protocol):
    """A constraint whose worst histogram between two can be found."""

    @property
    def table_values(self) -> int | None:
        """How many values the whole table has, if it compares with that."""

    def holds(self, left: SecretCounts) -> bool:
        """Tell whether a set of records satisfies it."""

    def worst_between(self, low: Ints, high: Ints) -> Corners | None:
        """Look between histograms for one that violates."""


@dataclass(frozen=True, eq=False)
class Corners:
    """What a search found in each of several boxes.

    Attributes:
        safe: whether F ≤ 0 in all of it.
        violated: whether a corner with F > 0 was found.
        point: that corner.
        looked: how many boxes were looked at.
    """

    safe: Flags
    violated: Flags
    point: Ints
    looked: int


def worst_corners(
    excess: Excess, part: Decided, low: Ints, high: Ints, most_boxes: int = MOST_BOXES
) -> Corners:
    """Look in each box for a corner that violates `part`.

    One is neither safe nor violated where more than `most_boxes` parts of it were in doubt.
    """
    violated: Flags = np.asarray(
        ~low.any(axis=1)
    )  # no records at all violate every one of these constraints
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
        given_up |= np.bincount(owner[open_], minlength=len(low)) > most_boxes
        open_ &= ~given_up[owner]
        lows, highs = _split(lows[open_], highs[open_])
        owner = np.tile(owner[open_], 2)
    return Corners(~violated & ~given_up, violated, point, looked)


def _confirm(part: Decided, corner: Floats, value: Floats, doubt: Floats) -> None:
    """Ask the constraint itself where rounding leaves the sign open; changes `value`."""
    for i in np.flatnonzero(np.abs(value) <= doubt).tolist():
        if doubt[i] > 0:
            holds = part.holds(SecretCounts.from_histogram(corner[i].astype(np.int64)))
            value[i] = -np.inf if holds else np.inf


def _split(low: Floats, high: Floats) -> tuple[Floats, Floats]:
    """Cut every box in two: the value with most open records raised, or not."""
    rows = np.arange(len(low))
    widest = np.argmax(high - low, axis=1)
    raised, lowered = low.copy(), high.copy()
    raised[rows, widest] = high[rows, widest]
    lowered[rows, widest] = low[rows, widest]
    return np.concatenate((raised, low)), np.concatenate((high, lowered))


def bound_histograms(part: Decided, counts: SparseCounts, m: int) -> Status:
    """Decide groups by their histograms, as tables of group × value, portion after portion."""
    status = np.full(counts.groups, OPEN, dtype=np.int8)
    step = max(1, _CELLS // max(counts.values, 1))
    for first in range(0, counts.groups, step):
        some = np.arange(first, min(first + step, counts.groups))
        status[some] = _bound_some(part, subset(counts, some), m)
    return status


def _bound_some(part: Decided, counts: SparseCounts, m: int) -> Status:
    """Check the whole groups, then down to what those who have most of each value leave of it."""
    total, sizes = by_value(counts), coalition_sizes(counts, m)
    whole, safe = part.worst_between(total, total), sizes == 0
    if whole is None:
        return np.full(counts.groups, OPEN, dtype=np.int8)
    if m and not len(counts.sets) and not (counts.kinds.sizes > 1).any():
        entry, value = values_of_entries(counts)
        cell = counts.group[entry] * counts.values + value
        most = sum_of_largest(cell, counts.weight[entry], np.repeat(sizes, counts.values))
        below = part.worst_between(total - most.reshape(total.shape), total)
        safe |= below is not None and below.safe
    return np.where(whole.safe, np.where(safe, SAFE, OPEN), BROKEN).astype(np.int8)


def violations_of_group(group: Group, part: Decided, kept: Ints) -> Corners | None:
    """Look between what coalitions leave of one group, the rows of `kept`, and the whole group.

    Rows and the points that are found are weights by kind.
    """
    column, width = np.arange(len(group.values)), len(group.values)
    if part.table_values is not None:
        column, width = group.values, part.table_values
    high = np.broadcast_to(group.total, kept.shape)
    if group.kinds is None:  # a kind is a value
        spread = np.zeros((2, len(kept), width), dtype=np.int64)
        spread[:, :, column] = kept, high
        found = part.worst_between(*spread)
        return None if found is None else replace(found, point=found.point[:, column])
    values = np.zeros((len(group.kinds), width), dtype=np.int64)
    values[:, column] = group.kinds
    alone = group.kinds.sum(axis=1) == 1
    more = np.where(alone, high - kept, 0)
    found = part.worst_between(kept @ values, (kept + more) @ values)
    # Fewer sets are in between than the box by value holds: it proves safety only.
    outer = part.worst_between(kept @ values, high @ values)
    if found is None or outer is None:
        return None
    raised = (found.point > kept @ values) @ values.T > 0
    found = replace(found, point=kept + np.where(raised, more, 0))
    return replace(found, safe=outer.safe, looked=found.looked + outer.looked)


def at_least(left: Ints, by: int, right: Ints, times: int) -> Flags:
    """Tell where left·by ≥ right·times, in integers of any size."""
    largest = max(int(left.max(initial=1)) * by, int(right.max(initial=1)) * times)
    if largest < 2**62:
        return np.asarray(left * by >= right * times)
    return np.asarray(left.astype(object) * by >= right.astype(object) * times, dtype=np.bool_)
