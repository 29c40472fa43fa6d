"""Which of many groups withstand every coalition: the one answer that cutting and verifying use.

First what sorted counts say about every coalition of all groups at once: for k-anonymity and
distinct l-diversity that decides nearly every group; for entropy and recursive diversity and
t-closeness, groups that fail as they are, and those far from failing. Then, for what is left open,
group by group (`one_group`). What stays open is not private. Cost: a few sorts of the entries, and
O(coalitions · entries) for the groups in doubt.

Theorem: docs/theory/m-privacy.md
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from quiltwork.errors import UnsupportedError
from quiltwork.tables.constraints.constraint import Constraint, KAnonymity, LDiversity
from quiltwork.tables.distinct import counted, distinct_rows
from quiltwork.tables.group import SparseCounts, by_value, subset, values_of_entries
from quiltwork.tables.verification.corners import DECIDED, find_violations
from quiltwork.tables.verification.one_group import group_is_private, needs_trying
from quiltwork.tables.verification.searches import number_of_coalitions

Flags = NDArray[np.bool_]

MOST_COALITIONS = 5_000
"""Coalitions of one group that are worth trying while groups are made."""
_CELLS = 4_000_000


def groups_withstand(counts: SparseCounts, constraint: Constraint, m: int) -> Flags:
    """Tell which groups are proven to withstand every coalition of at most m providers.

    Part after part, the cheap ones first, each for the groups that are left.
    """
    private = np.ones(counts.groups, dtype=np.bool_)
    doubts: list[tuple[NDArray[np.int64], Constraint]] = []
    for part in sorted(constraint.parts, key=lambda part: not part.eg_monotonic):
        left = np.flatnonzero(private)
        if not len(left):
            return private
        status = decide_by_bounds(subset(counts, left), part, m)
        private[left[status == BROKEN]] = False
        doubts.append((left[status == OPEN], part))
    for groups, part in doubts:
        for group in groups[private[groups]].tolist():
            private[group] = _withstands(counts, group, part, m)
    return private


def _withstands(counts: SparseCounts, number: int, part: Constraint, m: int) -> bool:
    group = counts.cut(number)
    if needs_trying(group, part) and number_of_coalitions(group, m) > MOST_COALITIONS:
        return False
    try:
        return group_is_private(group, part, m)
    except UnsupportedError:  # too many sets to try
        return False


def decide_by_bounds(counts: SparseCounts, part: Constraint, m: int) -> Status:
    """Return SAFE or BROKEN for groups that bounds decide, else OPEN."""
    if isinstance(part, KAnonymity):
        return _bound_k(counts, part.k, m)
    if isinstance(part, LDiversity):
        return _bound_l(counts, part.l, m)
    status = np.full(counts.groups, OPEN, dtype=np.int8)
    if isinstance(part, DECIDED):  # as tables of group × value
        step = max(1, _CELLS // max(counts.values, 1))
        for first in range(0, counts.groups, step):
            some = np.arange(first, min(first + step, counts.groups))
            status[some] = _bound_histograms(subset(counts, some), part, m)
    return status


OPEN, SAFE, BROKEN = 0, 1, 2

Ints = NDArray[np.int64]
Status = NDArray[np.int8]


def _bound_k(counts: SparseCounts, k: int, m: int) -> Status:
    """Take the largest providers away.

    Exact where each person is known to one provider; a bound otherwise.
    """
    total = np.bincount(counts.group, weights=counts.weight, minlength=counts.groups)
    enough = total - most_known(counts, m) >= k
    return np.where(enough, SAFE, np.where(_simple(counts), BROKEN, OPEN)).astype(np.int8)


def _bound_l(counts: SparseCounts, wanted: int, m: int) -> Status:
    """Bound how many providers it takes to remove the rarest values of each group.

    To remove a value, all its providers must collude; so values of more providers than may collude
    stay. Most groups have enough of these.
    """
    group, value, provider = _cells(counts)
    where, owners = _owners(group * counts.values + value, provider >= 0, counts)
    removable = owners <= _sizes(counts, m)[where]
    number = np.bincount(where, minlength=counts.groups)
    safe = number - np.bincount(where[removable], minlength=counts.groups) >= wanted
    status = np.where(safe, SAFE, np.where(number < wanted, BROKEN, OPEN)).astype(np.int8)
    left = np.flatnonzero(status == OPEN)
    if len(left):
        status[left] = _bound_rarest(subset(counts, left), wanted, m)
    return status


def _bound_rarest(counts: SparseCounts, wanted: int, m: int) -> Status:
    """Bound the providers of the e rarest values, if fewer than l are left without e values.

    Members hold each removed value once for each of its providers: what single members can
    contribute to that, counted one by one, must be enough for the e rarest. For coalitions of one
    it is enough. If one provider is left, its values are all that is.

    `found` are the cells (group · values + value) that occur, `where` and `owners` the group and
    the number of providers of each; `rising` has these numbers sorted within each group, whose
    cells begin at `start`, so that differences of `running` add up the e smallest.
    """
    group, value, provider = _cells(counts)
    alone, cell = provider >= 0, group * counts.values + value
    found, inverse = np.unique(cell, return_inverse=True)
    where, owners = found // counts.values, np.bincount(inverse[alone], minlength=len(found))
    rising = owners[np.lexsort((owners, where))]
    start = np.searchsorted(where, np.arange(counts.groups))
    emptied = np.bincount(where, minlength=counts.groups) - wanted + 1
    running = np.concatenate([[0], np.cumsum(rising)])
    together = running[start + emptied] - running[start]
    size, simple = _sizes(counts, m), _simple(counts)
    use = alone & (owners <= size[where])[inverse]
    holder, held = _per_provider(group[use], provider[use], counts)
    status = np.full(counts.groups, OPEN, dtype=np.int8)
    status[simple & ((together <= size) | (size == 1))] = BROKEN
    status[together > _sum_of_largest(holder, held, size)] = SAFE
    holder, held = _per_provider(group, provider, counts)
    fewest = np.minimum.reduceat(held, np.searchsorted(holder, np.arange(counts.groups)))
    covered = _most_covered(group, value, provider, counts, wanted - 1)
    status[simple & (covered < counts.inside - size) & (status == OPEN)] = SAFE
    one_left = simple & (size == counts.inside - 1)
    status[one_left] = np.where(fewest < wanted, BROKEN, SAFE)[one_left]
    return status


def _most_covered(group: Ints, value: Ints, provider: Ints, counts: SparseCounts, few: int) -> Ints:
    """Bound how many providers of each group hold, together, at most `few` values.

    As `covered_by_few` does: each of them gives 1/j to each of their j values.
    """
    _, who, held = np.unique(
        group * (counts.providers + 1) + provider + 1, return_inverse=True, return_counts=True
    )
    held = held[who]
    share = np.where((held <= few) & (provider >= 0), 1 / held, 0.0)
    found, cell = np.unique(group * counts.values + value, return_inverse=True)
    given = np.bincount(cell, weights=share) + 1e-9  # never below the true sum, which is floored
    many = np.full(counts.groups, few, dtype=np.int64)
    return _sum_of_largest(found // counts.values, given, many)


def _owners(cell: Ints, alone: Flags, counts: SparseCounts) -> tuple[Ints, Ints]:
    """Return the group of each (group, value) that occurs, and how many providers must collude."""
    found, owners = counted(cell, counts.groups * counts.values)
    if not alone.all():
        shared, several = counted(cell[~alone], counts.groups * counts.values)
        owners[np.searchsorted(found, shared)] -= several
    return found // counts.values, owners


def _per_provider(group: Ints, provider: Ints, counts: SparseCounts) -> tuple[Ints, Ints]:
    """Return (group, number of entries) for every provider of every group."""
    (where, _), number = distinct_rows([group, provider + 1], [counts.groups, counts.providers + 1])
    return where, number


def _bound_histograms(counts: SparseCounts, part: Constraint, m: int) -> Status:
    """Check the whole groups, then down to what those who have most of each value leave of it."""
    total, sizes = by_value(counts), _sizes(counts, m)
    whole, safe = find_violations(part, total, total), sizes == 0
    if m and not len(counts.sets) and not len(counts.kinds):
        cell = counts.group * counts.values + counts.kind
        most = _sum_of_largest(cell, counts.weight, np.repeat(sizes, counts.values))
        safe |= find_violations(part, total - most.reshape(total.shape), total).safe
    return np.where(whole.safe, np.where(safe, SAFE, OPEN), BROKEN).astype(np.int8)


def most_known(counts: SparseCounts, m: int) -> Ints:
    """Return how many records (people) of each group its largest providers know, at most.

    No coalition knows more; each person whom several of them know counts several times.
    """
    return _sum_of_largest(*_known_by_provider(counts), _sizes(counts, m))


def _sum_of_largest(group: Ints, numbers: NDArray[Any], how_many: Ints) -> Ints:
    """Add up the largest numbers of each group, as many as asked, and floor."""
    order = np.lexsort((-numbers, group))
    group, numbers = group[order], numbers[order]
    position = np.arange(len(group)) - np.searchsorted(group, group)
    taken = position < how_many[group]
    sums = np.bincount(group[taken], weights=numbers[taken], minlength=len(how_many))
    return sums.astype(np.int64)


def _sizes(counts: SparseCounts, m: int) -> Ints:
    """Return how many providers of each group may collude; at most m where others know someone."""
    limited = np.minimum(m, counts.inside - 1)
    size: Ints = np.where(_simple(counts), limited, m)
    return size


def _simple(counts: SparseCounts) -> Flags:
    """Tell which groups hold only people known to one provider each."""
    simple = np.ones(counts.groups, dtype=np.bool_)
    simple[counts.group[counts.who >= counts.providers]] = False
    return simple


def _known_by_provider(counts: SparseCounts) -> tuple[Ints, Ints]:
    """Return (group, people known) for every provider of every group.

    Entries are sorted by group and by who knows them; a set of several providers counts for each of
    its members, so that these are spread out, sorted again and added up.
    """
    new = np.append(True, (np.diff(counts.group) != 0) | (np.diff(counts.who) != 0))
    first = np.flatnonzero(new)
    group, who = counts.group[first], counts.who[first]
    known = np.add.reduceat(counts.weight, first)
    if not len(counts.sets):
        return group, known
    own = who < counts.providers
    position, members = counts.sets.spread(who[~own] - counts.providers)
    columns = [
        np.concatenate([group[own], group[~own][position]]),
        np.concatenate([who[own], members]),
    ]
    weights = np.concatenate([known[own], known[~own][position]])
    order = np.lexsort(columns[::-1])
    (where, _), repeats = distinct_rows(columns, [counts.groups, counts.providers])
    first = np.cumsum(repeats) - repeats
    return where, np.add.reduceat(weights[order], first)


def _cells(counts: SparseCounts) -> tuple[Ints, Ints, Ints]:
    """Return the distinct (group, value, provider); provider −1 stands for several at once."""
    provider = np.where(counts.who < counts.providers, counts.who, -1)
    if not len(counts.kinds) and not len(counts.sets):
        return counts.group, counts.kind, provider
    rows, values = values_of_entries(counts)
    sizes = [counts.groups, counts.values, counts.providers + 1]
    (group, value, owner), _ = distinct_rows(
        [counts.group[rows], values, provider[rows] + 1], sizes
    )
    return group, value, owner - 1
