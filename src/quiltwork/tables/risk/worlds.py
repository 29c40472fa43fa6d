"""Who has one possible value left in every world that fits several tables, counts included.

Everyone's groups are known, and in each group how many people have which value. A world gives every
person a value so that all these counts come out. People in the same groups are of one kind; n(c, v)
people of kind c have the value v, where every kind has its people and every group its counts:
linear equations in whole numbers. A person is pinned down if all worlds give them the same value.

Two arguments, each right by itself: bounds of n that follow equation by equation show that only
one value is left; a cycle of people who hand two values around shows that another is (in the graph
of groups, with those who have the one value as edges one way and those who have the other as edges
the other way, everybody on a cycle can). To decide the rest is NP-complete (Irving and Jerrum,
Three-dimensional statistical data security problems, 1994), so between the two there are bounds.
Cost: O(people · values) for cycles; O(kinds · possible values) for each of some rounds of bounds.
"""

from __future__ import annotations

from dataclasses import dataclass
from itertools import combinations

import numpy as np
from numpy.typing import NDArray

from quiltwork.tables.distinct import runs

MOST_ROUNDS = 50
MOST_ENTRIES = 5_000_000
"""Pairs of kind and possible value for which bounds are computed."""
MOST_STEPS = 200_000_000
"""Values × people up to which cycles are looked for."""

Ints = NDArray[np.int64]
Flags = NDArray[np.bool_]


@dataclass(frozen=True, eq=False)
class Memberships:
    """Who is in which groups, and what they have.

    Attributes:
        counts: group × value, of all tables one below the other.
        first: how many of the groups are those of the first table.
        person, group: one entry for each record.
        value: of each person.
    """

    counts: Ints
    first: int
    person: Ints
    group: Ints
    value: Ints


@dataclass(frozen=True, eq=False)
class _Kinds:
    """People in the same groups.

    Attributes:
        of: the kind of each person.
        sizes: the people of each kind.
        kind, group, times: one entry for each kind and group: how often its people are there.
    """

    of: Ints
    sizes: Ints
    kind: Ints
    group: Ints
    times: Ints


def pinned_down(
    people: Memberships, most_entries: int = MOST_ENTRIES, most_steps: int = MOST_STEPS
) -> tuple[Flags, Flags]:
    """Tell who is pinned down for certain, and who may be: the same people where both meet."""
    kinds = _kinds(people)
    have = np.zeros((len(kinds.sizes), people.counts.shape[1]), dtype=np.int64)
    np.add.at(have, (kinds.of, people.value), 1)
    may = (have > 0).sum(axis=1) == 1  # others of their kind have the same
    if people.counts.shape[1] * len(people.value) <= most_steps:
        may &= ~_on_cycles(people, kinds, have)
    kind, value = _possible(people, kinds)
    if len(kind) > most_entries:
        sure = np.bincount(kind, minlength=len(may)) == 1
    else:
        most = _most(people, kinds, kind, value)
        sure = np.bincount(kind[most > 0], minlength=len(may)) == 1
    sure &= may
    return sure[kinds.of], may[kinds.of]


def _kinds(people: Memberships) -> _Kinds:
    """Put people together who are in the same groups equally often.

    People are labelled by their first groups, then by their first two, and so on: `rank` counts
    through the records of each person, sorted by group, and a label so far and the next group make
    the next label.
    """
    order = np.lexsort((people.group, people.person))
    person, group = people.person[order], people.group[order]
    rank = np.arange(len(person)) - np.searchsorted(person, person)
    label = np.zeros(len(people.value), dtype=np.int64)
    groups = len(people.counts) + 1
    for turn in range(int(rank.max(initial=-1)) + 1):
        here = rank == turn
        label *= groups
        label[person[here]] += group[here] + 1
        label = np.unique(label, return_inverse=True)[1]
    sizes = np.bincount(label)
    example = np.full(len(sizes), -1, dtype=np.int64)
    example[label] = np.arange(len(label))
    taken = np.isin(person, example)
    cells, times = np.unique(
        np.stack((label[person[taken]], group[taken]), axis=1), axis=0, return_counts=True
    )
    return _Kinds(label, sizes, cells[:, 0], cells[:, 1], times)


def _on_cycles(people: Memberships, kinds: _Kinds, have: Ints) -> Flags:
    """Tell which kinds have someone on a cycle of people who can hand two values around.

    Those with several records in one table are left out. Nobody counts where a person has no
    record, so all such ends are one node.
    """
    from scipy.sparse import csr_array
    from scipy.sparse.csgraph import connected_components

    groups, values = people.counts.shape
    found = np.zeros(len(kinds.sizes), dtype=bool)
    ends = np.full((2, len(kinds.sizes)), groups, dtype=np.int64)
    later = (kinds.group >= people.first).astype(np.int64)
    ends[later, kinds.kind] = kinds.group
    records = np.zeros((2, len(kinds.sizes)), dtype=np.int64)
    np.add.at(records, (later, kinds.kind), kinds.times)
    plain = (records <= 1).all(axis=0)
    holders = [np.flatnonzero(plain & (have[:, value] > 0)) for value in range(values)]
    for one, other in combinations(range(values), 2):
        there, back = holders[one], holders[other]
        start = np.concatenate((ends[0, there], ends[1, back]))
        end = np.concatenate((ends[1, there], ends[0, back]))
        edges = csr_array((np.ones(len(start)), (start, end)), shape=(groups + 1, groups + 1))
        _, part = connected_components(edges, directed=True, connection="strong")
        both = np.concatenate((there, back))
        found[both[part[start] == part[end]]] = True
    return found


def _possible(people: Memberships, kinds: _Kinds) -> tuple[Ints, Ints]:
    """Return every kind with every value that all its groups have, by kind."""
    starts = np.searchsorted(kinds.kind, np.arange(len(kinds.sizes)))
    step = max(1, MOST_ENTRIES // people.counts.shape[1])
    found = []
    for first in range(0, len(starts), step):
        some = starts[first : first + step]
        end = starts[first + step] if first + step < len(starts) else len(kinds.group)
        held = people.counts[kinds.group[some[0] : end]] > 0
        kind, value = np.nonzero(np.logical_and.reduceat(held, some - some[0], axis=0))
        found.append((first + kind, value))
    kind, value = (np.concatenate(side) for side in zip(*found, strict=True))
    return kind, value


def _most(people: Memberships, kinds: _Kinds, kind: Ints, value: Ints) -> Ints:
    """Bound how many of each kind have each value, where all have their people and counts.

    matrix · n = right in whole numbers low ≤ n ≤ high, one unknown for each kind and value; from
    every equation is drawn what its other unknowns leave, in turns, until nothing changes. Rows of
    the matrix are the kinds, then the cells group · values + value; columns are the unknowns, of
    which one with a kind in w groups has 1 + w entries. `slot` is where the group of such an entry
    stands in `kinds.group`.
    """
    from scipy.sparse import csc_array

    number, (groups, values) = len(kinds.sizes), people.counts.shape
    begin = np.searchsorted(kinds.kind, np.arange(number + 1))
    width = np.diff(begin)[kind]
    unknown = np.repeat(np.arange(len(kind)), width)
    slot = runs(begin[kind], width)
    cells = np.concatenate((kind, number + kinds.group[slot] * values + value[unknown]))
    columns = np.concatenate((np.arange(len(kind)), unknown))
    often = np.concatenate((np.ones(len(kind), dtype=np.int64), kinds.times[slot]))
    shape = (number + groups * values, len(kind))
    matrix = csc_array((often, (cells, columns)), shape=shape)
    right = np.concatenate((kinds.sizes, people.counts.ravel()))
    low, high = np.zeros_like(kind), kinds.sizes[kind]
    row, times, starts = matrix.indices, matrix.data, matrix.indptr[:-1]
    column = np.repeat(np.arange(len(low)), np.diff(matrix.indptr))
    for _ in range(MOST_ROUNDS):
        rest = (right - matrix @ low)[row] + times * low[column]
        most = np.minimum(high, np.minimum.reduceat(rest // times, starts))
        rest = (right - matrix @ most)[row] + times * most[column]
        least = np.maximum(low, np.maximum.reduceat(-(-rest // times), starts))
        if (most == high).all() and (least == low).all():
            break
        low, high = least, most
    return high
