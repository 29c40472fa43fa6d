"""Constraints that can fail when records are added, on many boxes at once.

A box is what a coalition leaves and the whole group; an owner, a group with one box for each
coalition. Recursive diversity is decided by a closed form in integers, t-closeness and entropy
diversity by `worst_corners`; `surely_safe` decides whole groups from the number of records that
coalitions hold at most.

Theorem: m-privacy
"""

from __future__ import annotations

from dataclasses import replace
from itertools import combinations
from math import comb, log

import numpy as np

from quiltwork.exact import positive_fraction, to_fraction
from quiltwork.publishing.constraints.base import Constraint
from quiltwork.publishing.constraints.entropy import EntropyLDiversity
from quiltwork.publishing.constraints.recursive import RecursiveLDiversity
from quiltwork.publishing.constraints.t_closeness import TCloseness
from quiltwork.publishing.group import Group
from quiltwork.publishing.verification.alliances import Alliance, worst_alliance
from quiltwork.publishing.verification.corners import Corners, Flags, Ints, worst_corners
from quiltwork.publishing.verification.excess import ByKind, Entropy, excess_of

BETWEEN = (EntropyLDiversity, RecursiveLDiversity, TCloseness)
"""The constraints that are decided here."""


def worst_between(part: Constraint, low: Ints, high: Ints, owner: Ints, owners: int) -> Corners:
    """Look for histograms between `low` and `high` that violate; columns are sensitive values.

    For t-closeness a column for each value of the table, for the others as many as are needed.
    """
    if isinstance(part, RecursiveLDiversity):
        return _worst_recursive(part, low, high, owner, owners)
    excess = excess_of(part, int(high.sum(axis=1).max(initial=1)))
    return worst_corners(excess, part, low, high, owner, owners)


def worst_alliance_of(group: Group, part: Constraint, size: int, limit: int) -> Alliance | None:
    """Look for the worst coalition of so many providers, without going through all of them.

    Everybody is known to one provider and has one value. Who colludes is told by provider, the
    point by value of the group; None if the limit was reached.
    """
    column, width = _columns(group, part)
    held = np.zeros((group.size, width), dtype=np.int64)
    held[:, column] = group.weights
    kinds, kind = np.unique(held, axis=0, return_inverse=True)
    kind = kind.reshape(-1)
    number = np.bincount(kind)
    if isinstance(part, RecursiveLDiversity):
        found = _recursive_alliance(part, kinds, number, size, limit)
    else:
        excess = excess_of(part, int(held.sum()))
        found = worst_alliance(excess, part, kinds, number, size, limit)
    if found is None or found.members is None:
        return found
    order = np.argsort(kind, kind="stable")
    place = np.empty_like(order)  # of each provider among its like
    place[order] = np.arange(group.size) - np.searchsorted(kind[order], kind[order])
    return replace(
        found, members=(place < found.members[kind]).astype(np.int64), point=found.point[column]
    )


def _recursive_alliance(
    part: RecursiveLDiversity, held: Ints, number: Ints, size: int, limit: int
) -> Alliance | None:
    """Try every set of l − 1 values to be the most frequent: only others are taken away.

    Then the best members are those who hold most of the others. For l = 1 all values are weighed.
    """
    values, top = held.shape[1], max(part.l - 1, 1)
    if comb(values, min(top, values)) > limit:
        return None
    sets = np.array(list(combinations(range(values), min(top, values))), dtype=np.int64)
    others = np.ones((len(sets), values), dtype=np.int64)
    np.put_along_axis(others, sets, 0, axis=1)
    order = np.argsort(-(others @ held.T), axis=1, kind="stable")
    free = number[order]
    members = np.empty_like(free)
    taken = np.clip(size - np.cumsum(free, axis=1) + free, 0, free)
    np.put_along_axis(members, order, taken, axis=1)
    total = number @ held
    point = total - others * (members @ held)
    most = total[sets].max(axis=1)
    tail = (others * point).sum(axis=1) + (most if part.l == 1 else 0)
    factor = positive_fraction(part.c, "c")
    bad = np.flatnonzero(_at_least(most, factor.denominator, tail, factor.numerator))
    if not len(bad):
        return Alliance(None, total, len(sets))
    return Alliance(members[bad[0]], point[bad[0]], len(sets))


def _columns(group: Group, part: Constraint) -> tuple[Ints, int]:
    """Return where the group's values are among those that matter, and how many these are."""
    if isinstance(part, TCloseness):
        return group.values, len(part.whole)
    return np.arange(len(group.values)), len(group.values)


def worst_of_group(group: Group, part: Constraint, kept: Ints) -> Corners:
    """Look between what coalitions leave of one group, the rows of `kept`, and the whole group.

    Rows and the point that is found are weights by kind.
    """
    owner = np.zeros(len(kept), dtype=np.int64)
    column, width = _columns(group, part)
    if group.kinds is None:
        low, high = np.zeros((2, len(kept), width), dtype=np.int64)
        low[:, column], high[:, column] = kept, group.total
        found = worst_between(part, low, high, owner, 1)
        return replace(found, point=found.point[:, column])
    values = np.zeros((len(group.kinds), width))
    values[:, column] = group.kinds
    excess = ByKind(excess_of(part, int((group.total @ values).sum())), values)
    return worst_corners(excess, part, kept, np.broadcast_to(group.total, kept.shape), owner, 1)


def _worst_recursive(
    part: RecursiveLDiversity, low: Ints, high: Ints, owner: Ints, owners: int
) -> Corners:
    """Try each box with one value raised, and with none: O(values · log values) per box."""
    rows, columns = low.shape
    order = np.argsort(-low, axis=1, kind="stable")
    falling = np.take_along_axis(low, order, axis=1)
    top = part.l - 1
    heads = np.concatenate((np.zeros((rows, 1), np.int64), np.cumsum(falling, axis=1)), axis=1)
    head = heads[:, min(top, columns)][:, None]
    shorter = heads[:, min(max(top - 1, 0), columns)][:, None]
    total = heads[:, -1:]
    rank = np.empty_like(order)
    np.put_along_axis(rank, order, np.arange(columns)[None, :], axis=1)
    raised = np.where(rank < top, head + high - low, np.maximum(head, shorter + high))
    tail = total + high - low - (raised if top else 0)
    most = np.concatenate((falling[:, :1], np.maximum(high, falling[:, :1])), axis=1)
    tails = np.concatenate((total - head, tail), axis=1)
    factor = positive_fraction(part.c, "c")
    bad = _at_least(most, factor.denominator, tails, factor.numerator)
    which, failing = np.argmax(bad, axis=1), bad.any(axis=1)
    box = np.full(owners, -1, dtype=np.int64)
    point = np.zeros((owners, columns), dtype=np.int64)
    hit = np.flatnonzero(failing)[::-1]
    box[owner[hit]] = hit
    there = np.flatnonzero(box >= 0)
    point[there] = low[box[there]]
    one = which[box[there]] - 1
    some = there[one >= 0]
    point[some, one[one >= 0]] = high[box[some], one[one >= 0]]
    return Corners(box < 0, box, point, bad.size)


def _at_least(left: Ints, by: int, right: Ints, times: int) -> Flags:
    """Tell where left·by ≥ right·times, in integers of any size."""
    largest = max(int(left.max(initial=1)) * by, int(right.max(initial=1)) * times)
    if largest < 2**62:
        return np.asarray(left * by >= right * times)
    return np.asarray(left.astype(object) * by >= right.astype(object) * times, dtype=np.bool_)


def surely_safe(part: Constraint, total: Ints, most_known: Ints) -> Flags:
    """Tell which groups withstand every coalition that knows at most so many of the records.

    `total` has the groups' histograms as rows. A lower bound: other groups may be safe as well.
    """
    number = total.sum(axis=1)
    left = number - most_known
    safe: Flags = left > 0
    if isinstance(part, RecursiveLDiversity):
        falling = -np.sort(-total, axis=1)
        tail = np.maximum(falling[:, part.l - 1 :].sum(axis=1) - most_known, 0)
        factor = positive_fraction(part.c, "c")
        return safe & ~_at_least(falling[:, 0], factor.denominator, tail, factor.numerator)
    if isinstance(part, EntropyLDiversity):
        return safe & _entropy_survives(part, total, most_known)
    if isinstance(part, TCloseness):
        return safe & _distance_survives(part, total, most_known)
    return np.zeros(len(total), dtype=np.bool_)


def _entropy_survives(part: EntropyLDiversity, total: Ints, most_known: Ints) -> Flags:
    """Take the rarest values away first, as many records as are known: nothing leaves less entropy.

    With whole values taken away one by one, and the last as far as it goes; in between F is convex.
    """
    excess = Entropy(log(to_fraction(part.l, "l")))
    rising = np.sort(total, axis=1)
    gone = np.concatenate((np.zeros((len(total), 1), np.int64), np.cumsum(rising, axis=1)), axis=1)
    safe = np.ones(len(total), dtype=np.bool_)
    for taken in gone.T:
        removed = np.minimum(taken, most_known)[:, None]
        rest = rising - np.clip(removed - gone[:, :-1], 0, rising)
        value, doubt = excess.at(rest.astype(np.float64))
        safe &= value <= -doubt
    return safe


def _distance_survives(part: TCloseness, total: Ints, most_known: Ints) -> Flags:
    """Let every gap be as large as it can get, over the fewest records that are left."""
    whole = part.whole
    overall, t = int(whole.sum()), to_fraction(part.t, "t")
    number = total.sum(axis=1)
    columns = len(whole)
    exact = int(number.max(initial=1)) * overall * 2 * columns < 2**62
    kind = np.int64 if exact else object
    total, whole = total.astype(kind), whole.astype(kind)
    left = (number - most_known).astype(kind)
    if part.distance == "equal":
        over = total * overall - whole * left[:, None]
        moved, times = np.where(over > 0, over, 0).sum(axis=1), t.numerator
    else:
        below, share = np.cumsum(total, axis=1)[:, :-1], np.cumsum(whole)[:-1]
        known = most_known.astype(kind)[:, None]
        gaps = below * overall - share * number.astype(kind)[:, None]
        up, down = gaps + share * known, (overall - share) * known - gaps
        moved = np.where(up > down, up, down).sum(axis=1)
        times = t.numerator * max(columns - 1, 1)
    allowed = np.where(left > 0, left * overall, 0)
    return np.asarray(moved.astype(object) * t.denominator <= allowed.astype(object) * times)
