"""Which provider holds which sensitive values in each group of a table.

`Group` is one group as a matrix, `SparseCounts` all groups as sorted arrays. Records are counted by
the provider that knows them and the sensitive value that they carry. With a subject column people
are counted instead: by the set of providers that know the person (each holds some record of theirs,
perhaps in another group), and by the set of values that the person has in this group. Cost: a sort
of the rows.
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
    """The records of one group by provider and sensitive value.

    Attributes:
        providers: codes of the providers that know someone in the group. Coalitions are written as
            positions in this array.
        contributors: which of them have records in the group; None: all of them.
        values: codes of the sensitive values that occur.
        weights: records (people) by who knows them (row) and which values they have (column).
        held: for each row of `weights`, which providers know these people; None: row i is provider
            i.
        kinds: for each column of `weights`, which values these people have; None: column i is value
            i.
    """

    providers: NDArray[np.int64]
    values: NDArray[np.int64]
    weights: Weights
    contributors: NDArray[np.bool_] | None = None
    held: NDArray[np.bool_] | None = None
    kinds: NDArray[np.int64] | None = None

    @classmethod
    def from_counts(cls, counts: Sequence[Sequence[int]]) -> Group:
        """Make a group from records by provider (rows) and sensitive value (columns).

        >>> Group.from_counts([[2, 0], [0, 1]]).left([0]).as_dict()
        {1: 1}
        """
        table = np.atleast_2d(np.asarray(counts, dtype=np.int64))
        providers = np.flatnonzero(table.sum(axis=1))
        values = np.flatnonzero(table.sum(axis=0))
        return cls(providers, values, np.ascontiguousarray(table[np.ix_(providers, values)]))

    @property
    def size(self) -> int:
        """The number of providers that know someone in the group."""
        return len(self.providers)

    @property
    def providers_inside(self) -> int:
        """The number of providers with records in the group: the paper's n_G."""
        return self.size if self.contributors is None else int(self.contributors.sum())

    @property
    def people_are_shared(self) -> bool:
        """Whether several providers know one person, or one knows a person without records here."""
        return self.contributors is not None or self.held is not None

    @cached_property
    def total(self) -> Weights:
        """The weights of the whole group, by column."""
        total: Weights = self.weights.sum(axis=0)
        return total

    def kept(self, coalition: Iterable[int]) -> Weights:
        """Return the weights, by column, of the people that no member of the coalition knows."""
        members = list(coalition)
        # Without shared people each row of `weights` belongs to one provider: subtraction is
        # enough.
        if self.held is None:
            remaining: Weights = self.total - self.weights[members].sum(axis=0)
        else:
            remaining = self.weights[~self.held[:, members].any(axis=1)].sum(axis=0)
        return remaining

    def left(self, coalition: Iterable[int]) -> SecretCounts:
        """Return the histogram of what remains once the coalition removes everyone it knows."""
        return self.histogram(self.kept(coalition))

    def known(self, coalition: Iterable[int]) -> SecretCounts:
        """Return the histogram of what the coalition knows; its fitness is its attack power."""
        return self.histogram(self.total - self.kept(coalition))

    def histogram(self, weights: Weights) -> SecretCounts:
        """Convert weights by column into a histogram of values."""
        counts = weights if self.kinds is None else weights @ self.kinds
        present = counts > 0
        return SecretCounts(int(weights.sum()), self.values[present], counts[present])


@dataclass(frozen=True, eq=False)
class SparseCounts:
    """The non-empty cells of every group, sorted by group, then knowing providers, then values.

    Attributes:
        group, who, kind, weight: one entry per non-empty cell: its group, the code of the providers
            that know these people, the code of their values, and how many there are.
        start: where each group's entries begin; one entry more than there are groups.
        sets: the providers of each `who` at or above `providers`; below it, `who` is a provider.
        kinds: the values of each `kind` at or above `values`; below it, `kind` is a value.
        inside: for each group, how many providers have records in it.
        contributors: sorted (group, provider) pairs with records; None if `who` already has them.
        providers: the number of providers of the table.
        values: the number of sensitive values of the table.
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
        """The number of groups."""
        return len(self.start) - 1

    def cut(self, group: int) -> Group:
        """Return one group as a matrix."""
        span = slice(int(self.start[group]), int(self.start[group + 1]))
        who, rows = np.unique(self.who[span], return_inverse=True)
        kind, columns = np.unique(self.kind[span], return_inverse=True)
        weights = np.zeros((len(who), len(kind)), dtype=np.int64)
        weights[rows, columns] = self.weight[span]
        values, kinds = kind, None
        # Only where someone has several values, or none, a kind is not a value itself.
        if int(kind[-1]) >= self.values:
            values, has_value = _members(kind, self.values, self.kinds)
            kinds = has_value.astype(np.int64)
        # Records without subjects: who knows a record is its provider.
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
    """Expand codes to the single items they stand for: (items, code × item membership)."""
    is_single = numbers < single
    position, members = sets.spread(numbers[~is_single] - single)
    rows = np.concatenate((np.flatnonzero(is_single), np.flatnonzero(~is_single)[position]))
    names, column = np.unique(np.concatenate((numbers[is_single], members)), return_inverse=True)
    table = np.zeros((len(numbers), len(names)), dtype=np.bool_)
    table[rows, column] = True
    return names, table


def count_groups(
    encoded: CodedTable, labels: Ints, groups: int, rows: NDArray[np.integer[Any]] | None = None
) -> SparseCounts:
    """Count the groups of a table, or of the given rows; `labels` is the group of each row.

    Cost: O(rows log rows).
    """
    chosen = slice(None) if rows is None else rows
    # People are counted once, however many records they have in a group.
    if encoded.subject is not None:
        return _count_people(encoded, encoded.subject[chosen], labels, groups, chosen)
    sizes = (groups, len(encoded.providers), len(encoded.classes))
    return count_records((labels, encoded.provider[chosen], encoded.row_classes[chosen]), sizes)


def count_records(
    columns: tuple[NDArray[np.integer[Any]], ...], sizes: tuple[int, int, int]
) -> SparseCounts:
    """Count records by (group, provider, class of sensitive values).

    `sizes` are the numbers of groups, providers and classes. A record with the class code
    `sizes[2]` has no value.
    """
    groups, providers, values = sizes
    has_valueless = int(columns[2].max(initial=0)) >= values
    (group, who, kind), weight = distinct_rows(columns, (groups, providers, values + has_valueless))
    counts = _sorted_counts(group, who, kind, weight, sizes)
    return replace(counts, kinds=ONE_EMPTY_SET) if has_valueless else counts


def one_group(table: Ints, values: int) -> SparseCounts:
    """Make counts of one group from a matrix provider × class of sensitive values.

    A column beyond the classes holds the records without a value.
    """
    # Row-major order is the order that SparseCounts requires.
    who, kind = np.nonzero(table)
    zeros = np.zeros(len(who), dtype=np.int64)
    counts = _sorted_counts(zeros, who, kind, table[who, kind], (1, len(table), values))
    return replace(counts, kinds=ONE_EMPTY_SET) if (kind == values).any() else counts


def _sorted_counts(
    group: Ints, who: Ints, kind: Ints, weight: Ints, sizes: tuple[int, int, int]
) -> SparseCounts:
    start = np.searchsorted(group, np.arange(sizes[0] + 1))
    new = np.append(True, (np.diff(group) != 0) | (np.diff(who) != 0))
    inside = np.bincount(group[new], minlength=sizes[0])
    return SparseCounts(group, who, kind, weight, start, inside, sizes[1], sizes[2])


def _count_people(
    encoded: CodedTable, subject: Ints, labels: Ints, groups: int, chosen: Any
) -> SparseCounts:
    """Count each person once per group, by the providers that know them and the values they have.

    `triples` are the distinct (group, person, value), sorted; `new` marks where the values of a
    person in a group begin, and `presence` numbers these pairs of group and person, so that
    `set_ids` gives each pair its set of values (`value_set`), which is empty for a person without
    any.
    """
    people, providers = int(subject.max()) + 1, len(encoded.providers)
    values = len(encoded.classes)
    known_by, sets = encoded.known_by
    knowers = np.zeros(people, dtype=np.int64)
    knowers[subject] = known_by[chosen]
    columns = [labels, subject, encoded.row_classes[chosen]]
    triples, _ = distinct_rows(columns, [groups, people, values + 1])
    new = np.append(True, (np.diff(triples[0]) != 0) | (np.diff(triples[1]) != 0))
    presence, counted = np.cumsum(new) - 1, triples[2] < values
    number = int(presence[-1]) + 1
    value_set, kinds = set_ids(presence[counted], triples[2][counted], number, values)
    group_of, person_of = triples[0][new], triples[1][new]
    sizes = [groups, providers + len(sets), values + len(kinds)]
    (group, who, kind), weight = distinct_rows([group_of, knowers[person_of], value_set], sizes)
    start = np.searchsorted(group, np.arange(groups + 1))
    columns = [labels, encoded.provider[chosen]]
    (inside_group, inside_provider), _ = distinct_rows(columns, [groups, providers])
    inside = np.bincount(inside_group, minlength=groups)
    contributors = (inside_group, inside_provider)
    return SparseCounts(
        group, who, kind, weight, start, inside, providers, values, sets, kinds, contributors
    )


def subset(counts: SparseCounts, groups: Ints) -> SparseCounts:
    """Return the counts of some groups, renumbered in the same order."""
    # Callers pass all groups, in order, in the usual case.
    if len(groups) == counts.groups:
        return counts
    new_number = np.full(counts.groups, -1, dtype=np.int64)
    new_number[groups] = np.arange(len(groups))
    selected = new_number[counts.group] >= 0
    group = new_number[counts.group[selected]]
    contributors = counts.contributors
    if contributors is not None:
        inside = new_number[contributors[0]] >= 0
        contributors = (new_number[contributors[0][inside]], contributors[1][inside])
    return replace(
        counts,
        group=group,
        who=counts.who[selected],
        kind=counts.kind[selected],
        weight=counts.weight[selected],
        start=np.searchsorted(group, np.arange(len(groups) + 1)),
        inside=counts.inside[groups],
        contributors=contributors,
    )


def by_value(counts: SparseCounts) -> Ints:
    """Return each group's histogram (group × value); people count once for each of their values."""
    entry, value = values_of_entries(counts)
    cell = counts.group[entry] * counts.values + value
    size = counts.groups * counts.values
    # Float weights are exact: counts are below 2^53.
    table = np.bincount(cell, weights=counts.weight[entry], minlength=size)
    return table.astype(np.int64).reshape(counts.groups, counts.values)


def values_of_entries(counts: SparseCounts) -> tuple[Ints, Ints]:
    """Return (entry, value) for every value that the people of an entry have."""
    single = counts.kind < counts.values
    if single.all():
        return np.arange(len(counts.kind)), counts.kind
    position, members = counts.kinds.spread(counts.kind[~single] - counts.values)
    entry = np.concatenate((np.flatnonzero(single), np.flatnonzero(~single)[position]))
    return entry, np.concatenate((counts.kind[single], members))
