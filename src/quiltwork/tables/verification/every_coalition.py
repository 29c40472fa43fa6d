"""What coalitions leave, for many groups and coalitions at once, as rows of arrays.

Without a subject column groups whose coalitions are drawn alike are taken together, and what they
leave is a product of two tables: who colludes, and who holds what. With one, coalitions are drawn
from all providers of the table. Providers that hold the same are interchangeable: coalitions are
drawn from kinds of providers, with repetition, and where many collude those who do not are drawn.
Cost: O(coalitions · entries).
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from itertools import combinations, combinations_with_replacement, islice
from math import comb

import numpy as np
from numpy.typing import NDArray

from quiltwork.tables.sparse import SparseCounts, by_value, subset, values_of_entries

Ints = NDArray[np.int64]
Flags = NDArray[np.bool_]
Floats = NDArray[np.float64]

MOST_COALITIONS = 5_000
"""Coalitions of one group, or of the table's providers, that are worth trying on all groups."""
_CELLS = 2_000_000
_ENTRIES = 50  # of a group, about
_MOST_STEPS = 100_000_000
_FIRST, _FEW_CELLS = 64, 50_000
"""Coalitions tried first: few where groups are many, of which they break most."""


@dataclass(frozen=True)
class Draws:
    """How the coalitions of a group are drawn.

    Attributes:
        kinds: how many different providers there are.
        drawn: how many are drawn.
        spared: whether those are drawn who do not collude.
        repeated: whether several providers may be of one kind.
    """

    kinds: int
    drawn: int
    spared: bool
    repeated: bool

    @property
    def number(self) -> int:
        """How many draws there are, impossible ones included."""
        if self.repeated:
            return comb(self.kinds + self.drawn - 1, self.drawn)
        return comb(self.kinds, self.drawn)

    def all(self) -> Iterator[tuple[int, ...]]:
        """Yield every draw."""
        choose = combinations_with_replacement if self.repeated else combinations
        return choose(range(self.kinds), self.drawn)

    def table(self, some: list[tuple[int, ...]]) -> Floats:
        """Return draw × kind: how many of each are drawn."""
        table = np.zeros((len(some), self.kinds))
        line = np.repeat(np.arange(len(some)), self.drawn)
        np.add.at(table, (line, np.array(some, dtype=np.int64).ravel()), 1)
        return table


def draws_of(kinds: int, providers: int, size: int) -> Draws:
    """Draw coalitions of `size` of the providers, or those they spare if these are fewer."""
    spared = providers - size
    return Draws(kinds, min(size, spared), spared < size, kinds < providers)


@dataclass(frozen=True, eq=False)
class Rows:
    """One row for each group and coalition; columns are the table's sensitive values.

    Attributes:
        group: its group.
        kept: the histogram of what is left.
        more: the same with all the records that can be added to it value by value.
    """

    group: Ints
    kept: Ints
    more: Ints


class Coalitions:
    """The coalitions of the largest size of each group.

    Attributes:
        few: which groups have few enough for `rows`.
    """

    few: Flags

    def __init__(self, counts: SparseCounts, m: int) -> None:
        """Find out how the coalitions of each group are drawn."""
        self._counts, self._m = counts, m
        if counts.contributors is None:
            self._holders = _Holders(counts)
            self._draws = self._holders.draws(m)
            number = {d: d.number <= MOST_COALITIONS for d in set(self._draws)}
            self.few = np.array([number[d] for d in self._draws], dtype=np.bool_)
        else:
            teams = comb(counts.providers, min(m, counts.providers - 1))
            few = teams <= MOST_COALITIONS and teams * len(counts.group) <= _MOST_STEPS
            self.few = np.full(counts.groups, few)

    def rows(self, wanted: Flags) -> Iterator[Rows]:
        """Yield what they leave in the wanted groups, all of which have few; in portions.

        `wanted` may lose groups on the way.
        """
        if self._counts.contributors is not None:
            yield from _shared_rows(self._counts, self._m, wanted)
            return
        alike: dict[Draws, list[int]] = {}
        for group in np.flatnonzero(wanted).tolist():
            alike.setdefault(self._draws[group], []).append(group)
        for draws, groups in alike.items():
            step = max(1, _CELLS // (draws.kinds * self._counts.values))
            for first in range(0, len(groups), step):
                some = np.array(groups[first : first + step], dtype=np.int64)
                yield from _plain_rows(*self._holders.table(some, draws.kinds), some, draws, wanted)


class _Holders:
    """The different providers of each group: equal ones are one, with a number."""

    def __init__(self, counts: SparseCounts) -> None:
        self.counts = counts
        new = np.append(True, (np.diff(counts.group) != 0) | (np.diff(counts.who) != 0))
        first = np.flatnonzero(new)
        owner = counts.group[first]
        kind = _alike(counts, first, owner)
        found, example, number = np.unique(kind, return_index=True, return_counts=True)
        self.number, self.owner = number, owner[example]
        records = np.add.reduceat(counts.weight, first)[example]
        order = np.lexsort((-records, self.owner))
        begin = np.searchsorted(self.owner[order], np.arange(counts.groups))
        rank = np.empty(len(found), dtype=np.int64)
        rank[order] = np.arange(len(order)) - begin[self.owner[order]]
        self.rank = rank
        chosen = np.full(len(first), -1, dtype=np.int64)
        chosen[example] = np.arange(len(found))
        self.of_entry = chosen[np.cumsum(new) - 1]  # −1: the entry of a provider like another

    def draws(self, m: int) -> list[Draws]:
        """Return how each group's coalitions are drawn."""
        kinds = np.bincount(self.owner, minlength=self.counts.groups).tolist()
        inside = self.counts.inside.tolist()
        return [draws_of(k, n, min(m, n - 1)) for k, n in zip(kinds, inside, strict=True)]

    def table(self, groups: Ints, kinds: int) -> tuple[Floats, Floats]:
        """Return group × kind × value: how many records, and group × kind: how many providers."""
        counts = self.counts
        place = np.full(counts.groups, -1, dtype=np.int64)
        place[groups] = np.arange(len(groups))
        taken = (place[counts.group] >= 0) & (self.of_entry >= 0)
        held = np.zeros((len(groups), kinds, counts.values))
        rank = self.rank[self.of_entry[taken]]
        held[place[counts.group[taken]], rank, counts.kind[taken]] = counts.weight[taken]
        some = place[self.owner] >= 0
        number = np.zeros((len(groups), kinds))
        number[place[self.owner[some]], self.rank[some]] = self.number[some]
        return held, number


def _alike(counts: SparseCounts, first: Ints, owner: Ints) -> Ints:
    """Number the providers of all groups; those of a group that hold the same are one.

    Only where there are many providers; in groups of few, each has its own number.
    """
    length = np.diff(np.append(first, len(counts.group)))
    number = np.arange(len(first))
    crowded = counts.inside[owner] > _MOST_APART
    token = counts.kind * (int(counts.weight.max(initial=0)) + 1) + counts.weight
    next_number = len(first)
    for size in np.unique(length[crowded]).tolist():
        runs = np.flatnonzero(crowded & (length == size))
        lines = token[first[runs][:, None] + np.arange(size)]
        lines = np.column_stack((owner[runs], lines))
        found, inverse = np.unique(lines, axis=0, return_inverse=True)
        number[runs] = next_number + inverse.reshape(-1)
        next_number += len(found)
    return number


_MOST_APART = 12
"""Providers of a group up to which nobody looks for equal ones."""


def _plain_rows(
    held: Floats, number: Floats, groups: Ints, draws: Draws, wanted: Flags
) -> Iterator[Rows]:
    """Draw coalitions of providers, each of whom alone knows their records; one value each."""
    whole = (held * number[:, :, None]).sum(axis=1)
    values = held.shape[2]
    every, size = draws.all(), max(1, min(_FIRST, _FEW_CELLS // (len(groups) * values)))
    while some := list(islice(every, size)):
        still = wanted[groups]
        groups, held, number, whole = groups[still], held[still], number[still], whole[still]
        if not len(groups):
            return
        drawn = draws.table(some)
        part = drawn @ held
        kept = part if draws.spared else whole[:, None, :] - part
        there = (drawn <= number[:, None, :]).all(axis=2)
        group, team = np.nonzero(there)
        rest = kept[group, team].astype(np.int64)
        yield Rows(groups[group], rest, whole[group].astype(np.int64))
        size = max(1, min(8 * size, _CELLS // (len(groups) * values)))


def _shared_rows(counts: SparseCounts, m: int, wanted: Flags) -> Iterator[Rows]:
    """Draw coalitions of the table's providers, of whom several may know a person.

    Every coalition that leaves out a provider with records in a group is part of one of the
    largest size that does; those that hold all of them are left out.
    """
    groups = np.flatnonzero(wanted)
    step = max(1, _CELLS // (_ENTRIES * counts.providers))
    for first in range(0, len(groups), step):
        yield from _rows_of_people(counts, groups[first : first + step], m, wanted)


def _rows_of_people(counts: SparseCounts, groups: Ints, m: int, wanted: Flags) -> Iterator[Rows]:
    """Draw coalitions, first one, then more and more at a time; of the largest providers first."""
    here = _Circles.of(subset(counts, groups))
    draws = draws_of(counts.providers, counts.providers, min(m, counts.providers - 1))
    largest = np.argsort(-np.bincount(here.inside[1], minlength=counts.providers), kind="stable")
    every, size = draws.all(), 1
    while some := list(islice(every, size)):
        still = wanted[groups]
        if 2 * still.sum() < len(groups):
            groups, still = groups[still], np.ones(int(still.sum()), dtype=np.bool_)
            here = _Circles.of(subset(counts, groups))
        if not len(groups):
            return
        colluding = np.zeros((len(some), counts.providers))
        colluding[:, largest] = draws.table(some)
        colluding = 1 - colluding if draws.spared else colluding
        known = (here.knows @ colluding.T > 0).astype(np.int64)
        group, team = np.nonzero(here.spared(colluding) & still[:, None])
        kept = here.total[group] - here.entries.of(known, here.total.shape)[group, team]
        more = here.total[group]
        if here.several is not None:
            more = more - here.several.of(known, here.total.shape)[group, team]
        yield Rows(groups[group], kept, more)
        cells = max(len(here.entries.who), here.total.size)
        size = max(1, min(8 * size, _CELLS // cells))


@dataclass(frozen=True, eq=False)
class _Entries:
    """People by cell (group and value) and circle, the set of those who know them.

    Attributes:
        who, weight: for each entry its circle, and how many people; sorted by cell.
        cell: the cells that occur.
        start: where the entries of each begin.
    """

    who: Ints
    weight: Ints
    cell: Ints
    start: Ints

    @classmethod
    def of_cells(cls, cell: Ints, who: Ints, weight: Ints) -> _Entries:
        """Sort entries by cell."""
        order = np.argsort(cell, kind="stable")
        cell = cell[order]
        start = np.flatnonzero(np.append(True, np.diff(cell) != 0)[: len(cell)])
        return cls(who[order], weight[order], cell[start], start)

    def of(self, known: Ints, shape: tuple[int, ...]) -> Ints:
        """Return group × coalition × value: how many are known; `known` is circle × coalition."""
        table = np.zeros((shape[0] * shape[1], known.shape[1]), dtype=np.int64)
        table[self.cell] = np.add.reduceat(known[self.who] * self.weight[:, None], self.start)
        return table.reshape(*shape, known.shape[1]).transpose(0, 2, 1)


@dataclass(frozen=True, eq=False)
class _Circles:
    """The people of some groups by circle.

    Attributes:
        knows: circle × provider: 1 for those who know these people.
        entries: the people of each value.
        several: those of them who have several values; None if there are none.
        inside: (group, provider) of those who have records in the group.
        total: group × value.
    """

    knows: Floats
    entries: _Entries
    several: _Entries | None
    inside: tuple[Ints, Ints]
    total: Ints

    @classmethod
    def of(cls, counts: SparseCounts) -> _Circles:
        """Find out who knows whom."""
        names, who = np.unique(counts.who, return_inverse=True)
        knows = np.zeros((len(names), counts.providers))
        alone = names < counts.providers
        knows[alone, names[alone]] = 1
        position, members = counts.sets.spread(names[~alone] - counts.providers)
        knows[np.flatnonzero(~alone)[position], members] = 1
        entry, value = values_of_entries(counts)
        cell = counts.group[entry] * counts.values + value
        several, odd = None, counts.kind[entry] >= counts.values
        if odd.any():
            several = _Entries.of_cells(cell[odd], who[entry[odd]], counts.weight[entry[odd]])
        return cls(
            knows,
            _Entries.of_cells(cell, who[entry], counts.weight[entry]),
            several,
            counts.contributors or (counts.group, counts.who),
            by_value(counts),
        )

    def spared(self, colluding: Floats) -> Flags:
        """Tell in which groups (rows) which coalitions leave out someone with records there."""
        inside = np.zeros((len(self.total), colluding.shape[1]))
        inside[self.inside] = 1
        out: Flags = inside @ (1 - colluding).T > 0
        return out
