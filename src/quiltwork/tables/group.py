"""`Group`: who holds what in one equivalence group.

Records are gathered by who knows them and which sensitive values they carry: a matrix of weights.
Without a subject column a row is a provider and a column is a value. With one, the weights count
people: a row is a set of providers of whom each knows the person (holds any of their records,
also in other groups), a column is a set of values that one person has in this group.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from quiltwork.tables.constraints.secret_counts import SecretCounts

Weights = NDArray[np.int64]


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
    def is_plain(self) -> bool:
        """Whether each record is known to one provider and has one value."""
        return self.held is None and self.kinds is None

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
