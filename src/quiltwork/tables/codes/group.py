"""Who holds what in the groups of a table: one group as a matrix, all of them as sorted arrays.

Records are gathered by who knows them and which sensitive values they carry. Without a subject
column that is a provider and a value. With one, people are counted: by the set of providers of whom
each knows the person (holds any of their records, also in other groups), and by the set of values
that one person has in this group. Cost: a sort of the rows.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from quiltwork.tables.codes.distinct import (
    NO_SETS,
    ONE_EMPTY_SET,
    NumberSets,
    distinct_rows,
    set_ids,
)
from quiltwork.tables.codes.encoding import CodedTable
from quiltwork.tables.codes.histogram import SecretCounts

Ints = NDArray[np.int64]
Weights = NDArray[np.int64]
Flags = NDArray[np.bool_]


@dataclass(frozen=True, eq=False)
class Group:
    """One group, seen from its providers.

    Attributes:
        providers: codes of the providers that know someone in the group. Coalitions are written
            in positions of this array.
        contributors: which of them have records in the group; None: all of them.
        values: codes of the sensitive values that occur.
        weights: records (people) by who knows them and what values they have.
        held: for each row of `weights`, who knows these people; None: row i is provider i.
        kinds: for each column of `weights`, which values these people have; None: column i is
            value i.
    """

    providers: NDArray[np.int64]
    values: NDArray[np.int64]
    weights: Weights
    contributors: NDArray[np.bool_] | None = None
    held: NDArray[np.bool_] | None = None
    kinds: NDArray[np.int64] | None = None

    @classmethod
    def from_counts(cls, counts: Sequence[Sequence[int]]) -> Group:
        """Take records by provider (rows) and sensitive value (columns); zeros are allowed.

        >>> Group.from_counts([[2, 0], [0, 1]]).left([0]).as_dict()
        {1: 1}
        """
        table = np.atleast_2d(np.asarray(counts, dtype=np.int64))
        who = np.flatnonzero(table.sum(axis=1))
        what = np.flatnonzero(table.sum(axis=0))
        return cls(who, what, np.ascontiguousarray(table[np.ix_(who, what)]))

    @property
    def size(self) -> int:
        """How many providers know someone in the group."""
        return len(self.providers)

    @property
    def providers_inside(self) -> int:
        """How many providers have records in the group: the paper's n_G."""
        return self.size if self.contributors is None else int(self.contributors.sum())

    @property
    def people_are_shared(self) -> bool:
        """Whether several providers know one person, or one without having records here."""
        return self.contributors is not None or self.held is not None

    @cached_property
    def total(self) -> Weights:
        """The weights of the whole group by kind."""
        summed: Weights = self.weights.sum(axis=0)
        return summed

    def kept(self, coalition: Iterable[int]) -> Weights:
        """Return the weights by kind of those whom nobody in the coalition knows."""
        members = list(coalition)
        if self.held is None:
            rest: Weights = self.total - self.weights[members].sum(axis=0)
        else:
            rest = self.weights[~self.held[:, members].any(axis=1)].sum(axis=0)
        return rest

    def left(self, coalition: Iterable[int]) -> SecretCounts:
        """Return what is left when the coalition takes away everyone whom it knows."""
        return self.histogram(self.kept(coalition))

    def known(self, coalition: Iterable[int]) -> SecretCounts:
        """Return what the coalition knows: its attack power is the fitness of this."""
        return self.histogram(self.total - self.kept(coalition))

    def histogram(self, by_kind: Weights) -> SecretCounts:
        """Turn weights by kind into a histogram of values."""
        counts = by_kind if self.kinds is None else by_kind @ self.kinds
        there = counts > 0
        return SecretCounts(int(by_kind.sum()), self.values[there], counts[there])


@dataclass(frozen=True, eq=False)
class SparseCounts:
    """Weights of every group, sorted by group, then by who, then by kind.

    Attributes:
        group, who, kind, weight: one entry per non-empty cell.
        start: where each group's entries begin; one more than there are groups.
        sets: providers of each `who` at or above `providers`; below it, `who` is a provider.
        kinds: values of each `kind` at or above `values`; below it, `kind` is a value.
        inside: for each group, how many providers have records in it.
        contributors: (group, provider) pairs with records, sorted; None if `who` says it all.
        providers: how many providers the table has.
        values: how many sensitive values the table has.
    """

    group: Ints
    who: Ints
    kind: Ints
    weight: Ints
    start: Ints
    inside: Ints
    providers: int
    values: int
    sets: NumberSets = NO_SETS
    kinds: NumberSets = NO_SETS
    contributors: tuple[Ints, Ints] | None = None

    @property
    def groups(self) -> int:
        """How many groups there are."""
        return len(self.start) - 1

    def cut(self, group: int) -> Group:
        """Return one group."""
        span = slice(int(self.start[group]), int(self.start[group + 1]))
        who, rows = np.unique(self.who[span], return_inverse=True)
        kind, columns = np.unique(self.kind[span], return_inverse=True)
        weights = np.zeros((len(who), len(kind)), dtype=np.int64)
        weights[rows, columns] = self.weight[span]
        values, kinds = kind, None
        if int(kind[-1]) >= self.values:
            values, some = _members(kind, self.values, self.kinds)
            kinds = some.astype(np.int64)
        if self.contributors is None:
            return Group(who, values, weights, kinds=kinds)
        providers, held = _members(who, self.providers, self.sets)
        groups, owners = self.contributors
        lo, hi = np.searchsorted(groups, [group, group + 1])
        inside = np.isin(providers, owners[lo:hi])
        return Group(
            providers,
            values,
            weights,
            None if inside.all() else inside,
            held if int(who[-1]) >= self.providers else None,
            kinds,
        )


def _members(numbers: Ints, single: int, sets: NumberSets) -> tuple[Ints, Flags]:
    """Return what numbers stand for, and number × that; below `single`, each for itself."""
    alone = numbers < single
    position, members = sets.spread(numbers[~alone] - single)
    rows = np.concatenate((np.flatnonzero(alone), np.flatnonzero(~alone)[position]))
    names, column = np.unique(np.concatenate((numbers[alone], members)), return_inverse=True)
    table = np.zeros((len(numbers), len(names)), dtype=np.bool_)
    table[rows, column] = True
    return names, table


def count_groups(
    encoded: CodedTable, labels: Ints, groups: int, rows: NDArray[np.integer[Any]] | None = None
) -> SparseCounts:
    """Count the groups of a table, or of some of its rows; `labels` gives each row's group.

    O(rows log rows).
    """
    some = slice(None) if rows is None else rows
    if encoded.subject is not None:
        return _count_people(encoded, encoded.subject[some], labels, groups, some)
    sizes = (groups, len(encoded.providers), len(encoded.classes))
    return count_records((labels, encoded.provider[some], encoded.row_classes[some]), sizes)


def count_records(
    columns: tuple[NDArray[np.integer[Any]], ...], sizes: tuple[int, int, int]
) -> SparseCounts:
    """Count records by group, provider and class of sensitive values; `sizes`: how many of each.

    Records whose class is one more than that have no value.
    """
    groups, providers, values = sizes
    without = int(columns[2].max(initial=0)) >= values
    (group, who, kind), weight = distinct_rows(columns, (groups, providers, values + without))
    counts = _sorted_counts(group, who, kind, weight, sizes)
    return replace(counts, kinds=ONE_EMPTY_SET) if without else counts


def one_group(table: Ints, values: int) -> SparseCounts:
    """Take records by provider (rows) and class of values (columns) as the only group.

    A column more than there are classes holds the records without a value.
    """
    who, kind = np.nonzero(table)
    nothing = np.zeros(len(who), dtype=np.int64)
    counts = _sorted_counts(nothing, who, kind, table[who, kind], (1, len(table), values))
    return replace(counts, kinds=ONE_EMPTY_SET) if (kind == values).any() else counts


def _sorted_counts(
    group: Ints, who: Ints, kind: Ints, weight: Ints, sizes: tuple[int, int, int]
) -> SparseCounts:
    start = np.searchsorted(group, np.arange(sizes[0] + 1))
    new = np.append(True, (np.diff(group) != 0) | (np.diff(who) != 0))
    inside = np.bincount(group[new], minlength=sizes[0])
    return SparseCounts(group, who, kind, weight, start, inside, sizes[1], sizes[2])


def _count_people(
    encoded: CodedTable, subject: Ints, labels: Ints, groups: int, some: Any
) -> SparseCounts:
    """Count each person once in each of their groups, by who knows them and what they have.

    `triples` are the distinct (group, person, value), sorted; `new` marks where a person's values
    in a group begin, and `presence` numbers these pairs of group and person, so that `set_ids`
    gives each pair the set of its values (`value_set`), which is empty for a person without any.
    """
    people, providers = int(subject.max()) + 1, len(encoded.providers)
    values = len(encoded.classes)
    known_by, sets = encoded.known_by
    known = np.zeros(people, dtype=np.int64)
    known[subject] = known_by[some]
    columns = [labels, subject, encoded.row_classes[some]]
    triples, _ = distinct_rows(columns, [groups, people, values + 1])
    new = np.append(True, (np.diff(triples[0]) != 0) | (np.diff(triples[1]) != 0))
    presence, counted = np.cumsum(new) - 1, triples[2] < values
    number = int(presence[-1]) + 1
    value_set, kinds = set_ids(presence[counted], triples[2][counted], number, values)
    where, whom = triples[0][new], triples[1][new]
    sizes = [groups, providers + len(sets), values + len(kinds)]
    (group, who, kind), weight = distinct_rows([where, known[whom], value_set], sizes)
    start = np.searchsorted(group, np.arange(groups + 1))
    columns = [labels, encoded.provider[some]]
    (inside_group, inside_provider), _ = distinct_rows(columns, [groups, providers])
    inside = np.bincount(inside_group, minlength=groups)
    contributors = (inside_group, inside_provider)
    return SparseCounts(
        group, who, kind, weight, start, inside, providers, values, sets, kinds, contributors
    )


def subset(counts: SparseCounts, groups: Ints) -> SparseCounts:
    """Return some of the groups, numbered anew in the same order."""
    if len(groups) == counts.groups:
        return counts
    place = np.full(counts.groups, -1, dtype=np.int64)
    place[groups] = np.arange(len(groups))
    taken = place[counts.group] >= 0
    group = place[counts.group[taken]]
    contributors = counts.contributors
    if contributors is not None:
        inside = place[contributors[0]] >= 0
        contributors = (place[contributors[0][inside]], contributors[1][inside])
    return replace(
        counts,
        group=group,
        who=counts.who[taken],
        kind=counts.kind[taken],
        weight=counts.weight[taken],
        start=np.searchsorted(group, np.arange(len(groups) + 1)),
        inside=counts.inside[groups],
        contributors=contributors,
    )


def by_value(counts: SparseCounts) -> Ints:
    """Return each group's histogram; people count at each of their values."""
    entry, value = values_of_entries(counts)
    cell = counts.group[entry] * counts.values + value
    size = counts.groups * counts.values
    table = np.bincount(cell, weights=counts.weight[entry], minlength=size)
    return table.astype(np.int64).reshape(counts.groups, counts.values)


def values_of_entries(counts: SparseCounts) -> tuple[Ints, Ints]:
    """Return (entry, value) for every value that an entry's people have."""
    single = counts.kind < counts.values
    if single.all():
        return np.arange(len(counts.kind)), counts.kind
    position, members = counts.kinds.spread(counts.kind[~single] - counts.values)
    entry = np.concatenate((np.flatnonzero(single), np.flatnonzero(~single)[position]))
    return entry, np.concatenate((counts.kind[single], members))
