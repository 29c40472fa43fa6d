"""Which of many groups withstand every coalition: the one answer that cutting and verifying use.

Asked in this order, each for what the one before leaves open: `quick_bounds`, for all groups and
coalitions at once; `Coalitions`, where these are few, for all groups together; then group by
group (`one_group`), by branch and bound or, for constraints that can fail when records are added,
every set between what a coalition leaves and the whole group. What stays open is not private.
Cost: a few sorts of the entries, and O(coalitions · entries) for the groups in doubt.

Theorem: docs/theory/m-privacy.md
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from itertools import combinations, islice
from math import comb

import numpy as np
from numpy.typing import NDArray

from quiltwork.errors import UnsupportedError
from quiltwork.tables.constraints.constraint import Constraint, KAnonymity, LDiversity
from quiltwork.tables.constraints.distributions import TCloseness
from quiltwork.tables.group import (
    SparseCounts,
    by_value,
    headcount,
    narrow,
    one_value_each,
    subset,
    values_of_entries,
)
from quiltwork.tables.verification.corners import DECIDED, find_violations
from quiltwork.tables.verification.one_group import group_is_private
from quiltwork.tables.verification.quick_bounds import BROKEN, OPEN, SAFE, Status, bound

_CELLS = 4_000_000

Ints = NDArray[np.int64]
Flags = NDArray[np.bool_]
Floats = NDArray[np.float64]

MOST_COALITIONS = 5_000
"""Coalitions of one group, or of the table's providers, that are worth trying on all groups."""
_PORTION = 2_000_000
_ENTRIES = 50  # of a group, about
_MOST_STEPS = 100_000_000
_FIRST, _FEW_CELLS = 64, 50_000
"""Coalitions tried first: few where groups are many, of which they break most."""


def groups_withstand(counts: SparseCounts, constraint: Constraint, m: int) -> Flags:
    """Tell which groups are proven to withstand every coalition of at most m providers.

    Part after part, the cheap ones first, each for the groups that are left.
    """
    private = np.ones(counts.groups, dtype=np.bool_)
    doubts: list[tuple[Ints, Constraint]] = []
    for part in sorted(constraint.parts, key=lambda part: not part.eg_monotonic):
        left = np.flatnonzero(private)
        if not len(left):
            return private
        status = decide_together(subset(counts, left), part, m)
        private[left[status == BROKEN]] = False
        open_ = left[status == OPEN]
        if isinstance(part, DECIDED) and len(open_):
            few = Coalitions(subset(counts, open_), m).few
            private[open_[~few]] = False  # too many to try: undecided
            open_ = open_[few]
        doubts.append((open_, part))
    for groups, part in doubts:
        for group in groups[private[groups]].tolist():
            private[group] = _withstands(counts, group, part, m)
    return private


def _withstands(counts: SparseCounts, group: int, part: Constraint, m: int) -> bool:
    try:
        return group_is_private(counts.cut(group), part, m)
    except UnsupportedError:  # too many sets to try
        return False


def decide_together(counts: SparseCounts, part: Constraint, m: int) -> Status:
    """Return SAFE or BROKEN for groups that bounds or few coalitions decide, else OPEN."""
    if not isinstance(part, (KAnonymity, LDiversity, *DECIDED)):
        return np.full(counts.groups, OPEN, dtype=np.int8)
    if isinstance(part, DECIDED) and not isinstance(part, TCloseness) and not len(counts.kinds):
        counts = narrow(counts)
    step = counts.groups
    if isinstance(part, DECIDED):  # as tables of group × value
        step = max(1, _CELLS // max(counts.values, 1))
    status = np.full(counts.groups, OPEN, dtype=np.int8)
    for first in range(0, counts.groups, step):
        some = np.arange(first, min(first + step, counts.groups))
        status[some] = bound(subset(counts, some), part, m)
        left = some[status[some] == OPEN]
        if len(left):
            status[left] = _try_coalitions(subset(counts, left), part, m)
    return status


def _try_coalitions(counts: SparseCounts, part: Constraint, m: int) -> Status:
    """Decide groups with few coalitions by trying all of them."""
    if isinstance(part, KAnonymity):
        counts = headcount(counts)
    coalitions = Coalitions(counts, m)
    wanted = coalitions.few.copy()
    status = np.where(wanted, SAFE, OPEN).astype(np.int8)
    if not wanted.any():
        return status
    total, simple = by_value(counts), one_value_each(counts)
    for rows in coalitions.remains(wanted):
        if isinstance(part, KAnonymity):
            status[rows.group[rows.kept[:, 0] < part.k]] = BROKEN
        elif isinstance(part, LDiversity):
            status[rows.group[np.count_nonzero(rows.kept, axis=1) < part.l]] = BROKEN
        else:  # every set between what is left and the whole; people of two values allow fewer
            found = find_violations(part, rows.kept, total[rows.group], rows.group, len(status))
            status[~found.safe & (status == SAFE)] = OPEN
            status[(found.box >= 0) & simple] = BROKEN
        wanted &= status != BROKEN
        if not wanted.any():
            break
    return status


@dataclass(frozen=True, eq=False)
class Remains:
    """One row for each group and coalition; columns are the table's sensitive values.

    Attributes:
        group: its group.
        kept: the histogram of what is left.
    """

    group: Ints
    kept: Ints


class _Teams:
    """All coalitions of `size` of some providers, in portions; the first providers come first."""

    def __init__(self, providers: int, size: int) -> None:
        self.providers, self.spared = providers, providers - size < size
        self._drawn = combinations(range(providers), min(size, providers - size))

    def next(self, number: int) -> Floats:
        """Return coalition × provider: 1 for those who collude; no rows when all were given."""
        some = list(islice(self._drawn, number))
        table = np.zeros((len(some), self.providers))
        table[np.arange(len(some))[:, None], np.array(some, dtype=np.int64)] = 1
        return 1 - table if self.spared else table


class Coalitions:
    """The coalitions of the largest size of each group.

    Attributes:
        few: which groups have few enough for `remains`.
    """

    few: Flags

    def __init__(self, counts: SparseCounts, m: int) -> None:
        self._counts, self._m = counts, m
        if counts.contributors is None:
            inside, place = np.unique(counts.inside, return_inverse=True)
            few = [comb(n, min(m, n - 1)) <= MOST_COALITIONS for n in inside.tolist()]
            self.few = np.array(few, dtype=np.bool_)[place]
        else:
            teams = comb(counts.providers, min(m, counts.providers - 1))
            all_few = teams <= MOST_COALITIONS and teams * len(counts.group) <= _MOST_STEPS
            self.few = np.full(counts.groups, all_few)

    def remains(self, wanted: Flags) -> Iterator[Remains]:
        """Yield what they leave in the wanted groups, all of which have few; in portions.

        `wanted` may lose groups on the way.
        """
        counts = self._counts
        groups = np.flatnonzero(wanted)
        if counts.contributors is not None:
            step = max(1, _PORTION // (_ENTRIES * counts.providers))
            for first in range(0, len(groups), step):
                yield from _left_of_people(counts, groups[first : first + step], self._m, wanted)
            return
        position = _positions(counts)
        for providers in np.unique(counts.inside[groups]).tolist():
            alike = groups[counts.inside[groups] == providers]
            step = max(1, _PORTION // (providers * counts.values))
            for first in range(0, len(alike), step):
                some = alike[first : first + step]
                held = _held(counts, position, some, providers)
                yield from _left_of_records(held, some, self._m, wanted)


def _positions(counts: SparseCounts) -> Ints:
    """Return for each entry the position of its provider in its group, those who hold most first.

    Entries are sorted by group and provider; `first` is where each pair of them begins.
    """
    new = np.append(True, (np.diff(counts.group) != 0) | (np.diff(counts.who) != 0))
    first = np.flatnonzero(new)
    owner, records = counts.group[first], np.add.reduceat(counts.weight, first)
    order = np.lexsort((-records, owner))
    position = np.empty(len(first), dtype=np.int64)
    position[order] = np.arange(len(first)) - np.searchsorted(owner, owner[order])
    of_entry: Ints = position[np.cumsum(new) - 1]
    return of_entry


def _held(counts: SparseCounts, position: Ints, groups: Ints, providers: int) -> Floats:
    """Return group × provider × value: the records of some groups, all with so many providers."""
    place = np.full(counts.groups, -1, dtype=np.int64)
    place[groups] = np.arange(len(groups))
    taken = np.flatnonzero(place[counts.group] >= 0)
    held = np.zeros((len(groups), providers, counts.values))
    at = place[counts.group[taken]], position[taken], counts.kind[taken]
    held[at] = counts.weight[taken]
    return held


def _left_of_records(held: Floats, groups: Ints, m: int, wanted: Flags) -> Iterator[Remains]:
    """Draw coalitions of providers, each of whom alone knows their records; one value each."""
    _, providers, values = held.shape
    whole = held.sum(axis=1)
    teams = _Teams(providers, min(m, providers - 1))
    size = max(1, min(_FIRST, _FEW_CELLS // (len(groups) * values)))
    while len(colluding := teams.next(size)):
        still = wanted[groups]
        groups, held, whole = groups[still], held[still], whole[still]
        if not len(groups):
            return
        kept = whole[:, None, :] - colluding @ held
        yield Remains(np.repeat(groups, len(colluding)), kept.reshape(-1, values).astype(np.int64))
        size = max(1, min(8 * size, _PORTION // (len(groups) * values)))


def _left_of_people(counts: SparseCounts, groups: Ints, m: int, wanted: Flags) -> Iterator[Remains]:
    """Draw coalitions of the table's providers, of whom several may know a person.

    Every coalition that leaves out a provider with records in a group is part of one of the
    largest size that does; those that hold all of them are left out. First one coalition, of the
    largest providers, then more and more at a time.
    """
    here = _KnownPeople.of(subset(counts, groups))
    teams = _Teams(counts.providers, min(m, counts.providers - 1))
    largest = np.argsort(-np.bincount(here.inside[1], minlength=counts.providers), kind="stable")
    size = 1
    while len(drawn := teams.next(size)):
        still = wanted[groups]
        if 2 * still.sum() < len(groups):
            groups, still = groups[still], np.ones(int(still.sum()), dtype=np.bool_)
            here = _KnownPeople.of(subset(counts, groups))
        if not len(groups):
            return
        colluding = np.zeros_like(drawn)
        colluding[:, largest] = drawn
        group, team = np.nonzero(here.spared(colluding) & still[:, None])
        yield Remains(groups[group], here.total[group] - here.known(colluding)[group, team])
        cells = max(len(here.who), here.total.size)
        size = max(1, min(8 * size, _PORTION // cells))


@dataclass(frozen=True, eq=False)
class _KnownPeople:
    """The people of some groups by cell (group and value) and by who knows them.

    Attributes:
        knows: set of providers × provider: 1 for those who know these people.
        who, weight: for each entry the set that knows these people, and how many they are; sorted
            by cell. A person of two values is in two entries.
        cell, start: the cells that occur, group · values + value, and where their entries begin.
        inside: (group, provider) of those who have records in the group.
        total: group × value.
    """

    knows: Floats
    who: Ints
    weight: Ints
    cell: Ints
    start: Ints
    inside: tuple[Ints, Ints]
    total: Ints

    @classmethod
    def of(cls, counts: SparseCounts) -> _KnownPeople:
        """Find out who knows whom."""
        names, who = np.unique(counts.who, return_inverse=True)
        knows = np.zeros((len(names), counts.providers))
        alone = names < counts.providers
        knows[alone, names[alone]] = 1
        position, members = counts.sets.spread(names[~alone] - counts.providers)
        knows[np.flatnonzero(~alone)[position], members] = 1
        entry, value = values_of_entries(counts)
        cell = counts.group[entry] * counts.values + value
        order = np.argsort(cell, kind="stable")
        entry, cell = entry[order], cell[order]
        start = np.flatnonzero(np.append(True, np.diff(cell) != 0)[: len(cell)])
        inside = counts.contributors or (counts.group, counts.who)
        weight = counts.weight[entry]
        return cls(knows, who[entry], weight, cell[start], start, inside, by_value(counts))

    def known(self, colluding: Floats) -> Ints:
        """Return group × coalition × value: how many people the coalition knows."""
        met = (self.knows @ colluding.T > 0).astype(np.int64)
        table = np.zeros((self.total.size, len(colluding)), dtype=np.int64)
        table[self.cell] = np.add.reduceat(met[self.who] * self.weight[:, None], self.start)
        return table.reshape(*self.total.shape, -1).transpose(0, 2, 1)

    def spared(self, colluding: Floats) -> Flags:
        """Tell in which groups (rows) which coalitions leave out someone with records there."""
        inside = np.zeros((len(self.total), colluding.shape[1]))
        inside[self.inside] = 1
        out: Flags = inside @ (1 - colluding).T > 0
        return out
