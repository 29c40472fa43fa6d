"""k-anonymity: at least k records in every group."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from quiltwork.exact import integer
from quiltwork.tables.codes.group import Group, SparseCounts, Weights
from quiltwork.tables.codes.histogram import SecretCounts
from quiltwork.tables.constraints.coalition_bounds import (
    BROKEN,
    OPEN,
    SAFE,
    Flags,
    Status,
    known_to_one_each,
    most_known,
)
from quiltwork.tables.constraints.constraint import MAX_COUNT, CheckCounter, Constraint


@dataclass(frozen=True)
class KAnonymity(Constraint):
    """At least k records in every group. EG monotonic.

    Raises:
        InvalidInputError: unless k is an integer ≥ 1.

    >>> KAnonymity(3).holds(SecretCounts.of([0, 0, 1]))
    True
    """

    k: int
    eg_monotonic: ClassVar[bool] = True
    generalization_monotonic: ClassVar[bool] = True

    def __post_init__(self) -> None:
        object.__setattr__(self, "k", integer(self.k, "k", 1, MAX_COUNT))

    def holds(self, records: SecretCounts) -> bool:
        """Return whether there are at least k records."""
        return records.size >= self.k

    def fitness(self, records: SecretCounts) -> float:
        """Return records / k."""
        return records.size / self.k

    @property
    def records_asked(self) -> int:
        """The k."""
        return self.k

    @property
    def counts_alone(self) -> bool:
        """Whether it depends only on the numbers of records and of distinct values."""
        return True

    @property
    def records_alone(self) -> bool:
        """Whether it depends only on the number of records."""
        return True

    def bound(self, counts: SparseCounts, m: int) -> Status:
        """Remove the largest providers of each group.

        Exact where each person is known to one provider; a bound otherwise.
        """
        total = np.bincount(counts.group, weights=counts.weight, minlength=counts.groups)
        enough = total - most_known(counts, m) >= self.k
        # A person known to several providers is subtracted repeatedly: then it is only a lower
        # bound.
        broken = np.where(known_to_one_each(counts), BROKEN, OPEN)
        return np.where(enough, SAFE, broken).astype(np.int8)

    def needs_coalitions(self, group: Group) -> bool:
        """Return whether some person is known to several providers."""
        return group.people_are_shared

    def breach(self, group: Group, m: int, count: CheckCounter) -> tuple[int, ...] | None:
        """Return the fewest largest providers whose removal leaves less than k records."""
        count(1)
        records = group.weights.sum(axis=1)
        # The largest providers leave the fewest records, so no other coalition needs a look.
        order = np.argsort(-records, kind="stable")[: min(m, group.size - 1)]
        remaining = int(records.sum()) - np.concatenate([[0], np.cumsum(records[order])])
        too_few = np.flatnonzero(remaining < self.k)
        return tuple(sorted(order[: too_few[0]].tolist())) if len(too_few) else None

    def violated(self, group: Group, kept: Weights) -> Flags:
        """Return which rows of `kept`, weights by kind, have less than k records."""
        return np.asarray(kept.sum(axis=1) < self.k)

    def without(self, records: SecretCounts, removed: int) -> bool:
        """Return whether it holds whichever `removed` records are taken away."""
        return records.size - removed >= self.k

    def __str__(self) -> str:
        return f"{self.k}-anonymity"
