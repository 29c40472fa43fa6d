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
from quiltwork.tables.constraints.constraint import MOST, Constraint, Counter


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
        object.__setattr__(self, "k", integer(self.k, "k", 1, MOST))

    def holds(self, left: SecretCounts) -> bool:
        """Tell whether there are at least k records."""
        return left.size >= self.k

    def fitness(self, left: SecretCounts) -> float:
        """Return records / k."""
        return left.size / self.k

    @property
    def records_asked(self) -> int:
        """The k."""
        return self.k

    @property
    def counts_alone(self) -> bool:
        """Whether it asks for numbers of records and of values, and nothing else."""
        return True

    @property
    def records_alone(self) -> bool:
        """Whether it asks for a number of records, and nothing else."""
        return True

    def bound(self, counts: SparseCounts, m: int) -> Status:
        """Take the largest providers away.

        Exact where each person is known to one provider; a bound otherwise.
        """
        total = np.bincount(counts.group, weights=counts.weight, minlength=counts.groups)
        enough = total - most_known(counts, m) >= self.k
        broken = np.where(known_to_one_each(counts), BROKEN, OPEN)
        return np.where(enough, SAFE, broken).astype(np.int8)

    def needs_coalitions(self, group: Group) -> bool:
        """Tell whether coalitions have to be tried: not where each person is known to one."""
        return group.people_are_shared

    def breach(self, group: Group, m: int, count: Counter) -> tuple[int, ...] | None:
        """Return the fewest of the largest providers without whom less than k are left."""
        count(1)
        records = group.weights.sum(axis=1)
        order = np.argsort(-records, kind="stable")[: min(m, group.size - 1)]
        left = int(records.sum()) - np.concatenate([[0], np.cumsum(records[order])])
        short = np.flatnonzero(left < self.k)
        return tuple(sorted(order[: short[0]].tolist())) if len(short) else None

    def violated(self, group: Group, kept: Weights) -> Flags:
        """Tell which rows, weights by kind, have too few records."""
        return np.asarray(kept.sum(axis=1) < self.k)

    def without(self, left: SecretCounts, known: int) -> bool:
        """Tell whether it holds whichever `known` records are taken away."""
        return left.size - known >= self.k

    def __str__(self) -> str:
        return f"{self.k}-anonymity"
