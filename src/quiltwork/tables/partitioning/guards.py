"""Which groups are m-private, for many groups at once.

`CountingGuard` decides conjunctions of k-anonymity and distinct l-diversity from counts, exactly
(`docs/theory/anonymization.md`): k by the largest providers, l by the verification of what is left.
`GeneralGuard` leaves everything to the verification, which settles nearly all groups at once.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from quiltwork.tables.constraints.base import Constraint
from quiltwork.tables.constraints.fitness import ANONYMIZATION_ALPHA, score
from quiltwork.tables.constraints.secret_counts import SecretCounts
from quiltwork.tables.constraints.sizes import KAnonymity, LDiversity
from quiltwork.tables.distinct import counted, present, tabular
from quiltwork.tables.encoding import CodedTable
from quiltwork.tables.group import Group, SparseCounts, by_value, count_groups, holders_of_values
from quiltwork.tables.partitioning.nodes import Nodes
from quiltwork.tables.partitioning.records import Records, RowNumbers
from quiltwork.tables.verification import group_breach
from quiltwork.tables.verification.all_groups import groups_withstand
from quiltwork.tables.verification.bounds import sum_of_largest
from quiltwork.tables.verification.one_group import AnyMethod

Flags = NDArray[np.bool_]
Counts = NDArray[np.int64]


class Guard(Protocol):
    """Tells which groups may be published."""

    @property
    def smallest(self) -> int:
        """No group with fewer rows is ever private."""
        ...

    @property
    def values(self) -> int:
        """No group with fewer sensitive values is ever private."""
        ...

    def private(self, records: Records, rows: RowNumbers, starts: Counts) -> Flags:
        """Tell for each run rows[starts[i]:starts[i+1]] whether it is m-private."""
        ...

    def least(self, records: Records, nodes: Nodes) -> Counts:
        """Guess how many rows a child of each node needs to be private; no promise."""
        ...

    def scores(self, records: Records, rows: RowNumbers, starts: Counts) -> NDArray[np.float64]:
        """Return the fitness score of each run (Definition 3.1)."""
        ...


@dataclass(frozen=True)
class CountingGuard:
    """k-anonymity and distinct l-diversity against up to m providers.

    Cost: O(rows) per call where counts fit in a table, else O(rows log rows), plus the search for
    the few groups that the bounds leave open.
    """

    k: int
    l: int  # noqa: E741  (the field's own letter)
    m: int
    weight: float = ANONYMIZATION_ALPHA

    @property
    def smallest(self) -> int:
        """No group with fewer rows is ever private."""
        return max(self.k, self.l)

    @property
    def values(self) -> int:
        """No group with fewer sensitive values is ever private."""
        return self.l

    def least(self, records: Records, nodes: Nodes) -> Counts:
        """Guess the rows a child needs if its providers are as in its parent."""
        if records.providers == 1 or self.m == 0:
            return np.full(nodes.count, self.smallest)
        removed = _held_by_largest(records, nodes.rows, nodes.starts, nodes.sizes, self.m)
        share = removed / nodes.sizes
        return np.maximum(self.smallest, np.ceil(self.k / (1 - share)).astype(np.int64))

    def private(self, records: Records, rows: RowNumbers, starts: Counts) -> Flags:
        """Tell for each run of rows whether it is m-private."""
        sizes = _sizes(rows, starts)
        ok = sizes >= self.smallest
        if records.providers == 1 or self.m == 0:
            if self.l > 1:
                ok &= distinct(records.sensitive[rows], records.values, starts, sizes) >= self.l
            return ok
        open_ = np.flatnonzero(ok & ~self._surely(records, rows, starts, sizes))
        if len(open_):
            some = Nodes(rows, starts).select(open_)
            ok[open_] = self._counted(records, some.rows, some.starts, some.sizes)
        return ok

    def _surely(self, records: Records, rows: RowNumbers, starts: Counts, sizes: Counts) -> Flags:
        """Tell which runs are private whoever holds what: no provider has more than a few rows."""
        most = self.m * records.heaviest  # rows that a coalition can have at most
        sure = sizes - most >= self.k
        cells = len(starts) * records.values
        if self.l == 1 or not sure.any():
            return sure
        if not tabular(cells, len(rows)):
            return np.zeros(len(starts), dtype=bool)
        base = np.repeat(np.arange(len(starts), dtype=np.int64) * records.values, sizes)
        table = np.bincount(base + records.sensitive[rows], minlength=cells)
        kept = np.count_nonzero(table.reshape(len(starts), -1) > most, axis=1)
        private: Flags = sure & (kept >= self.l)
        return private

    def _counted(self, records: Records, rows: RowNumbers, starts: Counts, sizes: Counts) -> Flags:
        ok = sizes - _held_by_largest(records, rows, starts, sizes, self.m) >= self.k
        left = np.flatnonzero(ok)
        if self.l > 1 and len(left):
            kept = rows[np.repeat(ok, sizes)]
            run = np.repeat(np.arange(len(left)), sizes[left])
            counts = holders_of_values(
                (run, records.provider[kept], records.sensitive[kept]),
                (len(left), records.providers, records.values),
            )
            ok[left] = groups_withstand(counts, LDiversity(self.l), self.m)
        return ok

    def scores(self, records: Records, rows: RowNumbers, starts: Counts) -> NDArray[np.float64]:
        """Return (1−α)·records/k + α·values/l, below 1 where the constraint fails."""
        sizes = _sizes(rows, starts)
        values = distinct(records.sensitive[rows], records.values, starts, sizes)
        plain = (1 - self.weight) * sizes / self.k + self.weight * values / self.l
        holds = (sizes >= self.k) & (values >= self.l)
        return np.where(holds, plain, np.minimum(plain, 1 - 1e-9))


@dataclass(frozen=True, eq=False)
class GeneralGuard:
    """Any constraint, bound to the table; only groups that stay in doubt are asked one at a time.

    Attributes:
        encoded: the whole table.
        constraint: bound to it.
        m: the size of coalitions.
        smallest: a bound below which no group is private.
        values: likewise for the number of sensitive values.
        weight: α of the fitness score.
        method: "exact", or one of the paper's searches, which then decide every group alone.
    """

    encoded: CodedTable
    constraint: Constraint
    m: int
    smallest: int = 1
    values: int = 1
    weight: float = ANONYMIZATION_ALPHA
    method: AnyMethod = "exact"

    def private(self, records: Records, rows: RowNumbers, starts: Counts) -> Flags:
        """Tell for each run of rows whether it is m-private; undecided counts as not."""
        counts = self._counts(records, rows, starts)
        if self.method != "exact":
            return np.array([self._searched(counts.cut(i)) for i in range(counts.groups)])
        return groups_withstand(counts, self.constraint, self.m)

    def least(self, records: Records, nodes: Nodes) -> Counts:
        """Guess nothing better than the bound."""
        return np.full(nodes.count, self.smallest)

    def scores(self, records: Records, rows: RowNumbers, starts: Counts) -> NDArray[np.float64]:
        """Return the fitness score of each run."""
        counts = self._counts(records, rows, starts)
        sizes = np.bincount(counts.group, weights=counts.weight, minlength=counts.groups)
        held = zip(sizes.astype(np.int64).tolist(), by_value(counts), strict=True)
        whole = (SecretCounts(size, np.flatnonzero(row), row[row > 0]) for size, row in held)
        return np.array([score(self.constraint, one, self.weight) for one in whole])

    def _counts(self, records: Records, rows: RowNumbers, starts: Counts) -> SparseCounts:
        labels = np.repeat(np.arange(len(starts)), _sizes(rows, starts))
        return count_groups(self.encoded, labels, len(starts), records.ids[rows])

    def _searched(self, group: Group) -> bool:
        found = group_breach(group, self.constraint, self.m, self.method)
        return found.breach is None and found.settled


def distinct(codes: NDArray[np.integer[Any]], values: int, starts: Counts, sizes: Counts) -> Counts:
    """Count the distinct codes 0..values−1 in each run."""
    runs = len(starts)
    key = np.repeat(np.arange(runs, dtype=np.int64) * values, sizes) + codes
    return np.bincount(present(key, runs * values) // values, minlength=runs)


def _sizes(rows: RowNumbers, starts: Counts) -> Counts:
    return np.diff(starts, append=len(rows))


def _held_by_largest(
    records: Records, rows: RowNumbers, starts: Counts, sizes: Counts, m: int
) -> Counts:
    """Return for each run the rows of its min(m, providers − 1) largest providers."""
    runs, providers = len(starts), records.providers
    key = np.repeat(np.arange(runs, dtype=np.int64) * providers, sizes) + records.provider[rows]
    if tabular(runs * providers, len(rows)):
        table = np.bincount(key, minlength=runs * providers).reshape(runs, providers)
        coalition = np.minimum(m, np.count_nonzero(table, axis=1) - 1)
        table = -np.sort(-table, axis=1)[:, : min(m, providers)]
        total = np.concatenate((np.zeros((runs, 1), np.int64), np.cumsum(table, axis=1)), axis=1)
        held: Counts = total[np.arange(runs), coalition]
        return held
    found, counts = counted(key, runs * providers)
    owner = found // providers
    coalition = np.minimum(m, np.bincount(owner, minlength=runs) - 1)
    return sum_of_largest(owner, counts, coalition)


def guard_for(encoded: CodedTable, constraint: Constraint, m: int) -> Guard:
    """Return the fast guard where counts decide, else the general one. `constraint` is bound."""
    k = max((part.k for part in constraint.parts if isinstance(part, KAnonymity)), default=1)
    l_ = max((part.l for part in constraint.parts if isinstance(part, LDiversity)), default=1)
    plain = all(isinstance(part, KAnonymity | LDiversity) for part in constraint.parts)
    if plain and encoded.subject is None:
        return CountingGuard(k, l_, m)
    return GeneralGuard(encoded, constraint, m, smallest=k, values=l_)
