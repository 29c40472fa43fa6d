"""`Recipe`: every choice that decides which records make a group; `partition` follows it.

On one machine, within a subtree on Spark, and again when someone asks what the groups tell.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Literal, TypeAlias

import numpy as np
from numpy.typing import NDArray

from quiltwork.tables.codes.encoding import CodedTable
from quiltwork.tables.constraints import Constraint, KAnonymity
from quiltwork.tables.partitioning.coded_records import CodedRecords, Counts, RowNumbers
from quiltwork.tables.partitioning.guards import Guard
from quiltwork.tables.partitioning.mondrian import CutRules, Progress, mondrian
from quiltwork.tables.partitioning.provider_aware import UtilityProbe, provider_aware

Overlap: TypeAlias = Literal["overlapping", "disjoint"]
Method: TypeAlias = Literal["provider-aware", "baseline", "separate"]

UNPUBLISHED = -1
"""The group of rows that cannot be published."""


@dataclass(frozen=True)
class Recipe:
    """How groups are made.

    Attributes:
        constraint: what every group must fulfil, bound to the whole table.
        m: how many providers may collude.
        method: which algorithm.
        rules: how nodes are cut.
        blind: whether cuts ask for numbers of records alone.
        boxes: whether a row may fit several of them, as after a cut between providers.
    """

    constraint: Constraint
    m: int
    method: Method
    rules: CutRules
    blind: bool = False
    boxes: Overlap = "overlapping"


def partition(
    encoded: CodedTable, records: CodedRecords, recipe: Recipe, progress: Progress | None = None
) -> Counts:
    """Return for each record the number of its group, −1 for one that cannot be published.

    The whole must be private, except for `method="separate"`.
    """
    asked = recipe.constraint
    if recipe.blind:
        asked = KAnonymity(asked.records_needed)
    order = None
    if recipe.rules.relaxed:
        order = by_content(records, encoded)
        records = records.take(order)
    alone = recipe.method == "separate"
    guard = Guard(asked, 0 if alone else recipe.m, encoded)
    aware = recipe.method == "provider-aware" and records.providers > 1
    aware = aware and recipe.boxes == "overlapping"
    if aware:
        questions = UtilityProbe.of(encoded.quasi)
        labels = provider_aware(records, guard, recipe.rules, questions, progress)
    else:
        labels = (_each_alone if alone else mondrian)(records, guard, recipe.rules, progress)
    if order is None:
        return labels
    found = np.empty_like(labels)
    found[order] = labels
    return found


def _each_alone(
    records: CodedRecords, guard: Guard, rules: CutRules, progress: Progress | None = None
) -> Counts:
    """Partition every provider's records by themselves (Figure 1A); −1 where they are too few.

    `guard` asks about outsiders only (m = 0): within a provider's own part nobody colludes. In the
    whole, each group has one provider, whom no coalition may leave out.
    """
    labels = np.full(records.count, UNPUBLISHED, dtype=np.int64)
    order = np.argsort(records.provider, kind="stable")
    starts = np.searchsorted(records.provider[order], np.arange(records.providers))
    groups = done = 0
    for rows in np.split(order, starts[1:]):
        done += len(rows)
        if not len(rows) or not guard.private(records, rows, np.zeros(1, dtype=np.int64))[0]:
            continue
        found = mondrian(records.take(rows), guard, rules)
        labels[rows] = groups + found
        groups += int(found.max()) + 1
        if progress is not None:
            progress(done, records.count)
    return labels


def groups_within_budget(sizes: Counts, room: int) -> Counts:
    """Return which groups, in their order, are suppressed within `room` rows: each that still fits.

    >>> groups_within_budget(np.array([5, 9, 3, 4]), 12).tolist()
    [0, 2, 3]
    """
    chosen = []
    for group, size in enumerate(sizes.tolist()):
        if size <= room:
            chosen.append(group)
            room -= size
    return np.array(chosen, dtype=np.int64)


def by_content(records: CodedRecords, encoded: CodedTable) -> RowNumbers:
    """Return the row numbers in an order that content alone decides.

    Where records with equal quasi-identifiers may go to different groups, something must say which;
    if it were the order of the file, that order would show in what is published. Records that look
    alike are taken in turns instead, by sensitive value and within it by provider, each spread
    evenly over the whole: a part of a run is then about as diverse as the run. Only rows that agree
    in everything, the person included, are left as they were. Cost: a few sorts of the rows.
    """
    order = np.lexsort(records.codes[::-1])
    taken = records.codes[:, order]
    new = (taken[:, 1:] != taken[:, :-1]).any(axis=0)
    alike = np.empty(len(order), dtype=np.int64)  # numbers the combinations of quasi-identifiers
    alike[order] = np.concatenate(([0], np.cumsum(new)))
    last: tuple[NDArray[Any], ...] = (encoded.sensitive,)
    if encoded.subject is not None:
        last = (encoded.subject, *last)
    turn = _turns((alike, records.sensitive, records.provider), last)
    turn = _turns((alike, records.sensitive), (turn, records.provider, *last))
    return np.lexsort((*last, records.provider, records.sensitive, turn, alike))


def _turns(kind: Sequence[NDArray[Any]], then: Sequence[NDArray[Any]]) -> NDArray[np.float64]:
    """Return where each row stands among those of its kind, ordered by `then`, between 0 and 1."""
    order = np.lexsort((*then[::-1], *kind[::-1]))
    new = np.zeros(len(order), dtype=bool)
    new[0] = True
    for column in kind:
        taken = column[order]
        new[1:] |= taken[1:] != taken[:-1]
    start = np.flatnonzero(new)
    sizes = np.diff(np.append(start, len(order)))
    turn = np.empty(len(order))
    turn[order] = (np.arange(len(order)) - np.repeat(start, sizes) + 0.5) / np.repeat(sizes, sizes)
    return turn
