"""All groups of a table at once, as sorted arrays: (group, who knows them, what they have).

Cost: a sort of the rows. A `Group` is cut out of it when one is needed.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from quiltwork.publishing.encoding import Encoded
from quiltwork.publishing.group import Group

Ints = NDArray[np.int64]


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
    sets: tuple[tuple[int, ...], ...] = ()
    kinds: tuple[tuple[int, ...], ...] = ()
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
        if self.contributors is None:
            return Group(who, kind, weights)
        return self._cut_people(group, who, kind, weights)

    def _cut_people(self, group: int, who: Ints, kind: Ints, weights: Ints) -> Group:
        circles = [self.holders(w) for w in who.tolist()]
        tastes = [self.values_of(k) for k in kind.tolist()]
        providers = np.unique(np.concatenate([np.array(c, dtype=np.int64) for c in circles]))
        values = np.unique(np.concatenate([np.array(t, dtype=np.int64) for t in tastes]))
        held = np.array([np.isin(providers, circle) for circle in circles])
        kinds = np.array([np.isin(values, taste) for taste in tastes]).astype(np.int64)
        groups, owners = self.contributors or (who, who)
        lo, hi = np.searchsorted(groups, [group, group + 1])
        return Group(providers, values, weights, np.isin(providers, owners[lo:hi]), held, kinds)

    def holders(self, who: int) -> tuple[int, ...]:
        """Return the providers that `who` stands for."""
        return (who,) if who < self.providers else self.sets[who - self.providers]

    def values_of(self, kind: int) -> tuple[int, ...]:
        """Return the sensitive values that `kind` stands for."""
        return (kind,) if kind < self.values else self.kinds[kind - self.values]


def count_groups(encoded: Encoded, labels: Ints, groups: int) -> SparseCounts:
    """Count all groups of a table; `labels` gives each row's group. O(rows log rows)."""
    if encoded.subject is not None:
        return _count_people(encoded, encoded.subject, labels, groups)
    columns = [labels, encoded.provider.astype(np.int64), encoded.sensitive.astype(np.int64)]
    sizes = [groups, len(encoded.providers), len(encoded.sensitive_values)]
    (group, who, kind), weight = distinct_rows(columns, sizes)
    start = np.searchsorted(group, np.arange(groups + 1))
    new = np.append(True, (np.diff(group) != 0) | (np.diff(who) != 0))
    inside = np.bincount(group[new], minlength=groups)
    return SparseCounts(group, who, kind, weight, start, inside, sizes[1], sizes[2])


def distinct_rows(columns: Sequence[Ints], sizes: Sequence[int]) -> tuple[list[Ints], Ints]:
    """Return the distinct rows, sorted by the columns in turn, and how often each occurs."""
    span = 1
    for size in sizes:
        span *= max(size, 1)
    if span < 2**62:
        key = np.zeros(len(columns[0]), dtype=np.int64)
        for column, size in zip(columns, sizes, strict=True):
            key = key * size + column
        found, counts = np.unique(key, return_counts=True)
        parts = []
        for size in reversed(sizes):
            found, part = np.divmod(found, size)
            parts.append(part)
        return parts[::-1], counts.astype(np.int64)
    order = np.lexsort(list(columns)[::-1])
    ordered = [column[order] for column in columns]
    changes = np.any([np.diff(column) != 0 for column in ordered], axis=0)
    first = np.flatnonzero(np.append(True, changes))
    counts = np.diff(np.append(first, len(order)))
    return [column[first] for column in ordered], counts.astype(np.int64)


def _count_people(encoded: Encoded, subject: Ints, labels: Ints, groups: int) -> SparseCounts:
    """Count each person once in each of their groups, by who knows them and what they have."""
    people = int(subject.max()) + 1
    provider = encoded.provider.astype(np.int64)
    sensitive = encoded.sensitive.astype(np.int64)
    providers, values = len(encoded.providers), len(encoded.sensitive_values)
    pairs, _ = distinct_rows([subject, provider], [people, providers])
    circle, sets = _set_ids(pairs[0], pairs[1], people, providers)
    triples, _ = distinct_rows([labels, subject, sensitive], [groups, people, values])
    new = np.append(True, (np.diff(triples[0]) != 0) | (np.diff(triples[1]) != 0))
    presence = np.cumsum(new) - 1
    taste, kinds = _set_ids(presence, triples[2], int(presence[-1]) + 1, values)
    where, whom = triples[0][new], triples[1][new]
    sizes = [groups, providers + len(sets), values + len(kinds)]
    (group, who, kind), weight = distinct_rows([where, circle[whom], taste], sizes)
    start = np.searchsorted(group, np.arange(groups + 1))
    (inside_group, inside_provider), _ = distinct_rows([labels, provider], [groups, providers])
    inside = np.bincount(inside_group, minlength=groups)
    contributors = (inside_group, inside_provider)
    return SparseCounts(
        group, who, kind, weight, start, inside, providers, values, sets, kinds, contributors
    )


def _set_ids(
    owner: Ints, member: Ints, owners: int, members: int
) -> tuple[Ints, tuple[tuple[int, ...], ...]]:
    """Give each owner the id of their set of members: the member itself if there is one only."""
    bounds = np.searchsorted(owner, np.arange(owners + 1))
    ids = member[np.minimum(bounds[:-1], len(member) - 1)].copy()
    known: dict[tuple[int, ...], int] = {}
    for i in np.flatnonzero(np.diff(bounds) > 1).tolist():
        several = tuple(member[bounds[i] : bounds[i + 1]].tolist())
        ids[i] = members + known.setdefault(several, len(known))
    return ids, tuple(known)
