"""`Recipe`: every choice that decides which records make a group; `partition` follows it.

On one machine, within a subtree on Spark, and again when someone asks what the groups tell.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal, TypeAlias

import numpy as np

from quiltwork.tables.constraints.base import Constraint
from quiltwork.tables.encoding import Encoded
from quiltwork.tables.partitioning.guards import guard_for
from quiltwork.tables.partitioning.mondrian import Progress, Rules, mondrian
from quiltwork.tables.partitioning.nodes import Counts
from quiltwork.tables.partitioning.ordering import by_content
from quiltwork.tables.partitioning.provider_aware import provider_aware
from quiltwork.tables.partitioning.records import Records
from quiltwork.tables.partitioning.repair import repair
from quiltwork.tables.partitioning.separate import separate

Method: TypeAlias = Literal["provider-aware", "baseline", "separate"]


@dataclass(frozen=True)
class Recipe:
    """How groups are made.

    Attributes:
        constraint: what every group must fulfil, bound to the whole table.
        m: how many providers may collude.
        method: which algorithm.
        rules: how nodes are cut.
        quality: whether records are exchanged between groups in the end.
    """

    constraint: Constraint
    m: int
    method: Method
    rules: Rules
    quality: bool = False

    @property
    def by_content(self) -> bool:
        """Whether records with equal values may part, in an order that content alone decides."""
        return self.rules.relaxed or self.quality


def partition(
    encoded: Encoded, records: Records, recipe: Recipe, progress: Progress | None = None
) -> Counts:
    """Return for each record the number of its group, −1 for one that cannot be published.

    The whole must be private, except for `method="separate"`.
    """
    order = np.arange(records.count)
    if recipe.by_content:
        order = by_content(records, encoded.subject)
        records = records.take(order)
    alone = recipe.method == "separate"
    guard = guard_for(encoded, recipe.constraint, 0 if alone else recipe.m)
    aware = recipe.method == "provider-aware" and recipe.rules.split != "fitness"
    if alone:
        labels = separate(records, guard, recipe.rules, progress)
    elif aware and records.providers > 1:
        labels = provider_aware(records, guard, recipe.rules, progress)
    else:
        labels = mondrian(records, guard, recipe.rules, progress)
    if recipe.quality and not alone:
        labels = repair(records, labels, guard, progress)
    found = np.empty_like(labels)
    found[order] = labels
    return found
