"""The worst of very many coalitions of one group, without going through them: branch and bound.

Between what a coalition leaves and the whole group, a constraint whose violation is a convex
function F > 0 of the histogram fails if and only if it fails at a corner (`corners`): of some
values all records of the coalition are taken away, of the others none. A linear function above F is
a sum over the members of a coalition, so the best of them are those that gain most, one by one.
Where the line stays positive and F at its best point does not, coalitions are divided: by whether a
value is taken away, by how much of it is left, or by how many providers of a kind collude. Cost:
O(values · kinds of providers) for each division, and exponentially many of them only where bounds
stay in doubt.

Theorem: m-privacy
"""

from __future__ import annotations

from dataclasses import dataclass, fields, replace

import numpy as np

from quiltwork.publishing.constraints.base import Constraint
from quiltwork.publishing.verification.corners import Excess, Flags, Floats, Ints, confirm
from quiltwork.publishing.verification.excess import Distance, Entropy

_AT_ONCE = 256
_ROUNDING = 2.0**-40


@dataclass(frozen=True, eq=False)
class Alliance:
    """What a search found.

    Attributes:
        members: how many providers of each kind collude; None if no coalition violates.
        point: the histogram that violates.
        looked: how many sets of coalitions were looked at.
    """

    members: Ints | None
    point: Ints
    looked: int


@dataclass(frozen=True, eq=False)
class _Sets:
    """Sets of coalitions, one in each row.

    Attributes:
        fewest, most: how many providers of each kind collude.
        choice: for each value 1 if no records are taken away, −1 if all of the coalition's are, 0
            for either; for a distance, the sign that each gap counts with, or 0 for either.
        least, top: how many records of each value are left where they are taken away.
    """

    fewest: Floats
    most: Floats
    choice: Floats
    least: Floats
    top: Floats

    def select(self, wanted: Flags | slice) -> _Sets:
        """Return some of the sets."""
        return _Sets(*(getattr(self, field.name)[wanted] for field in fields(self)))

    def tightened(self, size: int) -> _Sets:
        """Let bounds follow from each other; leave out empty sets."""
        room = size - self.fewest.sum(axis=1, keepdims=True)
        most = np.minimum(self.most, self.fewest + room)
        short = size - most.sum(axis=1, keepdims=True)
        fewest = np.maximum(self.fewest, most + short)
        possible = (room[:, 0] >= 0) & (short[:, 0] <= 0)
        return replace(self, fewest=fewest, most=most).select(possible)


def worst_alliance(
    excess: Excess, part: Constraint, held: Ints, number: Ints, size: int, limit: int
) -> Alliance | None:
    """Look for a coalition of `size` providers and a set in between that violates `part`.

    Args:
        excess: F, for histograms of the group.
        part: the constraint.
        held: kind of provider × sensitive value: the records of one such provider.
        number: how many providers of each kind there are; more than `size` together.
        size: how many collude.
        limit: sets of coalitions to look at; None is returned beyond.
    """
    weights = held.astype(np.float64)
    total = number @ weights
    orders = np.argsort(-weights, axis=0, kind="stable").T
    terms = len(excess.expected) if isinstance(excess, Distance) else len(total)
    none, all_ = np.zeros((1, len(number))), number[None, :].astype(np.float64)
    nothing, whole = np.zeros((1, len(total))), total[None, :]
    pending, looked = [_Sets(none, all_, np.zeros((1, terms)), nothing, whole)], 0
    while pending:
        sets = pending.pop().tightened(size)
        if len(sets.fewest) > _AT_ONCE:
            pending += [sets.select(slice(_AT_ONCE, None)), sets.select(slice(_AT_ONCE))]
            continue
        looked += len(sets.fewest)
        if looked > limit:
            return None
        sets = _counted(sets, weights, orders, total, size)
        if isinstance(excess, Distance):
            constant, slope, taken, doubtful = _signed(excess, sets.choice, sets.least, total)
        else:
            constant, slope, taken, doubtful = _boxed(excess, sets, total)
        members = _filled(sets, -(np.where(taken, slope, 0.0) @ weights.T), size)
        corner = total - np.where(taken, members @ weights, 0.0)
        value, doubt = excess.at(corner)
        confirm(excess, part, corner, value, doubt)
        hit = np.flatnonzero(value > doubt)
        if len(hit):
            first = hit[0]
            return Alliance(members[first].astype(np.int64), corner[first].astype(np.int64), looked)
        open_ = constant + (slope * corner).sum(axis=1) > 0
        curved = taken & isinstance(excess, Entropy)  # distances are linear but for signs
        if open_.any():
            pending.append(_divided(sets.select(open_), doubtful[open_], curved[open_], weights))
    return Alliance(None, total.astype(np.int64), looked)


def _signed(
    excess: Distance, signs: Floats, least: Floats, total: Floats
) -> tuple[Floats, Floats, Flags, Floats]:
    """Return (constant, slopes) of a line above F, what it takes away, and its doubtful terms.

    F is the largest of the functions with every gap counted positive or negative, and each of them
    is linear: so no more than the signs need a decision.
    """
    high = np.broadcast_to(total, least.shape)
    constant, slope, over = excess.signed_line(least, high, signs)
    return constant, slope, slope < 0, over


def _boxed(excess: Excess, sets: _Sets, total: Floats) -> tuple[Floats, Floats, Flags, Floats]:
    """Return the same, of values that are taken away or not."""
    choice = sets.choice
    low, high = np.where(choice > 0, total, sets.least), np.where(choice < 0, sets.top, total)
    constant, slope = excess.line(low, high)
    constant = constant + _ROUNDING * (np.abs(slope) @ total)  # it is asked outside the box too
    taken = (choice < 0) | ((choice == 0) & (slope < 0))
    return constant, slope, taken, np.where(choice == 0, high - low, 0.0)


def _counted(sets: _Sets, weights: Floats, orders: Ints, total: Floats, size: int) -> _Sets:
    """Bound how many records of each value coalitions of each set leave; leave out empty sets."""
    rest = total - sets.fewest @ weights
    room = size - sets.fewest.sum(axis=1)
    free = (sets.most - sets.fewest)[:, orders]  # set × value × kind, those with most first
    each = np.take_along_axis(weights.T, orders, axis=1)
    most = (_first(free, room) * each).sum(axis=2)
    fewest = (_first(free[:, :, ::-1], room) * each[:, ::-1]).sum(axis=2)
    least, top = np.maximum(sets.least, rest - most), np.minimum(sets.top, rest - fewest)
    return replace(sets, least=least, top=top).select((least <= top).all(axis=1))


def _first(free: Floats, room: Floats) -> Floats:
    """Take as many as there is room for, in the order of the last axis."""
    before = np.cumsum(free, axis=-1) - free
    return np.clip(room[(...,) + (None,) * (free.ndim - 1)] - before, 0.0, free)


def _filled(sets: _Sets, gain: Floats, size: int) -> Floats:
    """Fill each coalition up with the providers of most gain."""
    order = np.argsort(-gain, axis=1, kind="stable")
    free = np.take_along_axis(sets.most - sets.fewest, order, axis=1)
    more = np.empty_like(free)
    np.put_along_axis(more, order, _first(free, size - sets.fewest.sum(axis=1)), axis=1)
    return sets.fewest + more


def _divided(sets: _Sets, doubtful: Floats, curved: Flags, weights: Floats) -> _Sets:
    """Divide each set by its most doubtful term, by how much of a value is left, or by kind."""
    gap = (sets.top - sets.least) ** 2 / np.maximum(sets.top + sets.least, 1.0)
    ways = (
        (doubtful, "choice", "choice"),
        (np.where(curved & (gap > 1.0), gap, 0.0), "top", "least"),
        ((sets.most - sets.fewest) * weights.sum(axis=1), "most", "fewest"),
    )
    undivided = np.ones(len(sets.fewest), dtype=bool)
    parts = []
    for score, upper, lower in ways:
        here = undivided & score.any(axis=1)
        undivided &= ~here
        some, place = sets.select(here), (np.arange(here.sum()), score[here].argmax(axis=1))
        below, above = getattr(some, upper).copy(), getattr(some, lower).copy()
        middle = np.floor((below[place] + above[place]) / 2)
        below[place], above[place] = (-1.0, 1.0) if upper == "choice" else (middle, middle + 1)
        parts += [replace(some, **{upper: below}), replace(some, **{lower: above})]
    return _Sets(*(np.concatenate([getattr(p, f.name) for p in parts]) for f in fields(sets)))
