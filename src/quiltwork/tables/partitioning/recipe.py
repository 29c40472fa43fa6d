"""`Recipe`: every choice that determines which records form a group; `partition` executes it.

It is executed on one machine, within a subtree on Spark, and again where a table is made anew for a
check or an attack.
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
"""The label of rows that are not published."""


@dataclass(frozen=True)
class Recipe:
    """How groups are made.

    Attributes:
        constraint: what every group must fulfil, bound to the whole table.
        m: how many providers may collude.
        method: the algorithm.
        rules: how nodes are cut.
        blind: whether cuts depend on numbers of records alone.
        boxes: "overlapping" if a row may fit several boxes, as after a provider split, or
            "disjoint".
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
    """Return the group of each record, −1 for one that cannot be published.

    The whole table must be private, except for `method="separate"`.
    """
    constraint = recipe.constraint
    if recipe.blind:
        constraint = KAnonymity(constraint.records_needed)
    order = None
    if recipe.rules.relaxed:
        # Relaxed cuts split ties by position, so positions must not depend on the file.
        order = by_content(records, encoded)
        records = records.take(order)
    is_separate = recipe.method == "separate"
    guard = Guard(constraint, 0 if is_separate else recipe.m, encoded)
    is_aware = recipe.method == "provider-aware" and records.providers > 1
    is_aware = is_aware and recipe.boxes == "overlapping"
    if is_aware:
        probe = UtilityProbe.of(encoded.quasi)
        labels = provider_aware(records, guard, recipe.rules, probe, progress)
    else:
        labels = (_partition_each_provider if is_separate else mondrian)(
            records, guard, recipe.rules, progress
        )
    if order is None:
        return labels
    in_input_order = np.empty_like(labels)
    in_input_order[order] = labels
    return in_input_order


def _partition_each_provider(
    records: CodedRecords, guard: Guard, rules: CutRules, progress: Progress | None = None
) -> Counts:
    """Partition every provider's records by themselves (Figure 1A); −1 where they are too few.

    `guard` considers outsiders only (m = 0): within a provider's own part nobody colludes. In the
    whole table each group then has one provider, whom no coalition may leave out.
    """
    labels = np.full(records.count, UNPUBLISHED, dtype=np.int64)
    order = np.argsort(records.provider, kind="stable")
    starts = np.searchsorted(records.provider[order], np.arange(records.providers))
    groups = done = 0
    for rows in np.split(order, starts[1:]):
        done += len(rows)
        # The caller decides whether so many rows may be left out.
        if not len(rows) or not guard.private(records, rows, np.zeros(1, dtype=np.int64))[0]:
            continue
        local_labels = mondrian(records.take(rows), guard, rules)
        labels[rows] = groups + local_labels
        groups += int(local_labels.max()) + 1
        if progress is not None:
            progress(done, records.count)
    return labels


def groups_within_budget(sizes: Counts, budget: int) -> Counts:
    """Return which groups, in their order, are suppressed within `room` rows: each that still fits.

    >>> groups_within_budget(np.array([5, 9, 3, 4]), 12).tolist()
    [0, 2, 3]
    """
    chosen = []
    for group, size in enumerate(sizes.tolist()):
        # Not a prefix: a smaller group later may still fit the budget.
        if size <= budget:
            chosen.append(group)
            budget -= size
    return np.array(chosen, dtype=np.int64)


def by_content(records: CodedRecords, encoded: CodedTable) -> RowNumbers:
    """Return row numbers in an order that depends on content alone.

    Where records with equal quasi-identifiers may go to different groups, an order must decide
    which; the order of the file would show in what is published. Equal records are interleaved
    instead: by sensitive value, and within it by provider, each spread evenly over the whole, so
    that a part of a run is about as diverse as the run. Only rows that agree in everything, the
    person included, keep their order. Cost: a few sorts of the rows.
    """
    order = np.lexsort(records.codes[::-1])
    sorted_codes = records.codes[:, order]
    new = (sorted_codes[:, 1:] != sorted_codes[:, :-1]).any(axis=0)
    combination = np.empty(
        len(order), dtype=np.int64
    )  # numbers the combinations of quasi-identifiers
    combination[order] = np.concatenate(([0], np.cumsum(new)))
    ties: tuple[NDArray[Any], ...] = (encoded.sensitive,)
    if encoded.subject is not None:
        ties = (encoded.subject, *ties)
    rank = _spread_ranks((combination, records.sensitive, records.provider), ties)
    rank = _spread_ranks((combination, records.sensitive), (rank, records.provider, *ties))
    return np.lexsort((*ties, records.provider, records.sensitive, rank, combination))


def _spread_ranks(
    kind: Sequence[NDArray[Any]], then: Sequence[NDArray[Any]]
) -> NDArray[np.float64]:
    """Return the relative rank of each row among those of its kind, ordered by `then`, in 0..1."""
    order = np.lexsort((*then[::-1], *kind[::-1]))
    new = np.zeros(len(order), dtype=bool)
    new[0] = True
    for column in kind:
        sorted_column = column[order]
        new[1:] |= sorted_column[1:] != sorted_column[:-1]
    start = np.flatnonzero(new)
    sizes = np.diff(np.append(start, len(order)))
    rank = np.empty(len(order))
    rank[order] = (np.arange(len(order)) - np.repeat(start, sizes) + 0.5) / np.repeat(sizes, sizes)
    return rank
