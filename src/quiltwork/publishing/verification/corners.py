"""The worst corners of many boxes at once: branch and bound in arrays.

A box holds the histograms between what a coalition leaves and the whole group. A constraint whose
violation is a convex function F > 0 of the histogram fails in the box if and only if it fails at a
corner. Each round bounds F on every box by a linear function, looks at the corner where that is
largest, and halves the boxes that are still in doubt; most boxes need one round. Cost: O(values)
per box and round, exponential only in the values on which bounds stay in doubt.

Theorem: m-privacy
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from quiltwork.publishing.constraints.base import Constraint
from quiltwork.publishing.constraints.histogram import Histogram

Ints = NDArray[np.int64]
Floats = NDArray[np.float64]
Flags = NDArray[np.bool_]

MOST_BOXES = 1024
"""Boxes that one owner may have in doubt at a time; beyond, nothing is decided."""


class Excess(Protocol):
    """A convex function of histograms that is positive exactly where a constraint is violated."""

    def histogram(self, point: Floats) -> Floats:
        """Return how often each value occurs at a point."""
        ...

    def at(self, points: Floats) -> tuple[Floats, Floats]:
        """Return F at each point, and how far rounding may be off (0 where it is exact)."""
        ...

    def narrowed(self, low: Floats, high: Floats) -> tuple[Floats, Floats]:
        """Return boxes in which F is as large as in the given ones; fewer values are open."""
        ...

    def line(self, low: Floats, high: Floats) -> tuple[Floats, Floats]:
        """Return (constant, slopes) of a linear function that F does not exceed in the box."""
        ...


@dataclass(frozen=True, eq=False)
class Corners:
    """What a search found.

    Attributes:
        safe: for each owner, whether F ≤ 0 in all its boxes.
        box: for each owner, the box with a corner where F > 0; −1 if none was found.
        point: for each owner, that corner.
        looked: how many boxes were looked at.
    """

    safe: Flags
    box: Ints
    point: Ints
    looked: int


def worst_corners(
    excess: Excess, part: Constraint, low: Ints, high: Ints, owner: Ints, owners: int
) -> Corners:
    """Look in the boxes of each owner for a corner that violates `part`.

    An owner is neither safe nor has a box where more than `MOST_BOXES` boxes were in doubt.
    """
    found = np.full(owners, -1, dtype=np.int64)
    points = np.zeros((owners, low.shape[1]), dtype=np.int64)
    given_up = np.zeros(owners, dtype=np.bool_)
    nobody = np.flatnonzero(~low.any(axis=1))[::-1]
    found[owner[nobody]] = nobody  # no records at all violate every one of these constraints
    source, looked = np.flatnonzero(found[owner] < 0), len(nobody)
    owner = owner[source]
    lows, highs = low[source].astype(np.float64), high[source].astype(np.float64)
    while len(source):
        looked += len(source)
        lows, highs = excess.narrowed(lows, highs)
        constant, slope = excess.line(lows, highs)
        corner = np.where(slope > 0, highs, lows)
        upper = constant + (slope * corner).sum(axis=1)
        value, doubt = excess.at(corner)
        confirm(excess, part, corner, value, doubt)
        hit = np.flatnonzero(value > doubt)[::-1]  # the first box of an owner is written last
        found[owner[hit]], points[owner[hit]] = source[hit], corner[hit].astype(np.int64)
        free = lows < highs
        open_ = (upper > 0) & free.any(axis=1) & (found[owner] < 0)
        given_up |= np.bincount(owner[open_], minlength=owners) > MOST_BOXES
        open_ &= ~given_up[owner]
        lows, highs, owner, source = _split(lows[open_], highs[open_], owner[open_], source[open_])
    return Corners((found < 0) & ~given_up, found, points, looked)


def confirm(excess: Excess, part: Constraint, corner: Floats, value: Floats, doubt: Floats) -> None:
    """Ask the constraint itself where rounding leaves the sign open; changes `value`."""
    for i in np.flatnonzero(np.abs(value) <= doubt).tolist():
        if doubt[i] > 0:
            counts = excess.histogram(corner[i]).astype(np.int64)
            there = np.flatnonzero(counts)
            holds = part.holds(Histogram(int(counts.sum()), there, counts[there]))
            value[i] = -np.inf if holds else np.inf


def _split(
    low: Floats, high: Floats, owner: Ints, source: Ints
) -> tuple[Floats, Floats, Ints, Ints]:
    """Cut every box in two: the value with most open records raised, or not."""
    rows = np.arange(len(low))
    widest = np.argmax(high - low, axis=1)
    raised, lowered = low.copy(), high.copy()
    raised[rows, widest] = high[rows, widest]
    lowered[rows, widest] = low[rows, widest]
    return (
        np.concatenate((raised, low)),
        np.concatenate((high, lowered)),
        np.concatenate((owner, owner)),
        np.concatenate((source, source)),
    )
