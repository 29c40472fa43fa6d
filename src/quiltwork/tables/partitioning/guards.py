"""`Guard`: which groups are m-private, for many groups at once; and which are whoever has what.

It counts who holds what and leaves the answer to the verification, which settles nearly all groups
together. Under k-anonymity and distinct l-diversity groups that are safe whoever holds what are not
even counted by provider (`docs/theory/anonymization.md`).

Blind groups are made and kept without looking at who has which sensitive value. The cuts ask for
numbers of records alone. Whether a finished group may be published is asked of what it publishes:
its sensitive values with how often each occurs, and how many records each provider has there. So
every other way to give the group's people these values has the same answer, and the table says
nothing beyond what is written in it.

Theorem: docs/theory/anonymization.md
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np

from quiltwork.errors import UnsupportedError
from quiltwork.tables.codes.distinct import bincount_is_cheaper
from quiltwork.tables.codes.encoding import CodedTable
from quiltwork.tables.codes.group import SparseCounts, by_value, count_groups, count_records
from quiltwork.tables.codes.histogram import SecretCounts
from quiltwork.tables.constraints.coalition_bounds import most_known
from quiltwork.tables.constraints.constraint import Constraint, score
from quiltwork.tables.partitioning.coded_records import (
    CodedRecords,
    Counts,
    Flags,
    Reals,
    RowNumbers,
)
from quiltwork.tables.partitioning.nodes import Nodes
from quiltwork.tables.verification.group_verification import groups_withstand

ANONYMIZATION_ALPHA = 0.8
"""Table II: the weight of diversity when splits are chosen."""


@dataclass(frozen=True, eq=False)
class Guard:
    """Tells which groups may be published.

    Attributes:
        constraint: bound to the whole table.
        m: the size of coalitions.
        encoded: the whole table; needed if it names its subjects, who are counted instead of rows.
    """

    constraint: Constraint
    m: int
    encoded: CodedTable | None = None

    @cached_property
    def k(self) -> int:
        """The records that k-anonymity asks for."""
        return self.constraint.records_asked

    @cached_property
    def values(self) -> int:
        """No group with fewer sensitive values is ever private: l of distinct l-diversity."""
        return self.constraint.values_asked

    @cached_property
    def smallest(self) -> int:
        """No group with fewer rows is ever private; one person may have several values."""
        return self.k if self._people else max(self.k, self.values)

    @cached_property
    def plain(self) -> bool:
        """Whether the constraint asks for numbers of records and values alone."""
        return not self._people and self.constraint.counts_alone

    @property
    def _people(self) -> bool:
        return self.encoded is not None and self.encoded.subject is not None

    def private(self, records: CodedRecords, rows: RowNumbers, starts: Counts) -> Flags:
        """Tell for each run rows[starts[i]:starts[i+1]] whether it is m-private.

        Undecided counts as not. Cost: O(rows) where counts fit in a table, else O(rows log rows),
        plus the search for the few groups that bounds leave open.
        """
        nodes = Nodes(rows, starts)
        ok = self._surely(records, nodes)
        open_ = np.flatnonzero(~ok & (nodes.sizes >= self.smallest))
        if len(open_):
            numbers = self.plain and self.values == 1
            counts = (_sizes if numbers else self._counts)(records, nodes.select(open_))
            ok[open_] = self.withstand(counts)
        return ok

    def withstand(self, counts: SparseCounts) -> Flags:
        """Tell which counted groups are m-private."""
        return groups_withstand(counts, self.constraint, self.m)

    def least(self, records: CodedRecords, nodes: Nodes) -> Counts:
        """Guess the rows a child needs if its providers are as in its parent; no promise."""
        least = np.full(nodes.count, self.smallest)
        if not self.plain or records.providers == 1 or self.m == 0:
            return least
        share = most_known(_sizes(records, nodes), self.m) / nodes.sizes
        guess: Counts = np.maximum(least, np.ceil(self.k / (1 - share)).astype(np.int64))
        return guess

    def scores(self, records: CodedRecords, rows: RowNumbers, starts: Counts) -> Reals:
        """Return the fitness score of each run (Definition 3.1), below 1 where it is violated."""
        counts = self._counts(records, Nodes(rows, starts))
        table = by_value(counts)
        sizes = np.bincount(counts.group, weights=counts.weight, minlength=counts.groups)
        if self.plain:
            values = np.count_nonzero(table, axis=1)
            weight = ANONYMIZATION_ALPHA
            mean = (1 - weight) * sizes / self.k + weight * values / self.values
            holds = (sizes >= self.k) & (values >= self.values)
            found: Reals = np.where(holds, mean, np.minimum(mean, 1 - 1e-9))
            return found
        held = zip(sizes.astype(np.int64).tolist(), table, strict=True)
        whole = (SecretCounts.from_histogram(row, size) for size, row in held)
        return np.array([score(self.constraint, one, ANONYMIZATION_ALPHA) for one in whole])

    def _surely(self, records: CodedRecords, nodes: Nodes) -> Flags:
        """Tell which runs are private whoever holds what: no provider has more than a few rows."""
        most = 0 if records.providers == 1 else self.m * records.heaviest  # of any coalition
        sure: Flags = nodes.sizes - most >= self.k
        cells = nodes.count * records.values
        if self.plain and self.values == 1:
            return sure
        if not self.plain or not sure.any() or not bincount_is_cheaper(cells, len(nodes.rows)):
            return np.zeros(nodes.count, dtype=bool)
        secret = records.sensitive[nodes.rows]
        cell = (nodes.owners() * records.values + secret)[secret < records.values]
        table = np.bincount(cell, minlength=cells).reshape(nodes.count, -1)
        sure &= np.count_nonzero(table > most, axis=1) >= self.values
        return sure

    def _counts(self, records: CodedRecords, nodes: Nodes) -> SparseCounts:
        if self.encoded is not None and self._people:
            return count_groups(self.encoded, nodes.owners(), nodes.count, records.ids[nodes.rows])
        columns = nodes.owners(), records.provider[nodes.rows], records.sensitive[nodes.rows]
        return count_records(columns, (nodes.count, records.providers, records.values))


def _sizes(records: CodedRecords, nodes: Nodes) -> SparseCounts:
    """Count by provider alone, as if all records had one sensitive value."""
    owners = records.provider[nodes.rows]
    columns = nodes.owners(), owners, np.zeros(len(owners), dtype=np.int8)
    return count_records(columns, (nodes.count, records.providers, 1))


def held_anyhow(
    encoded: CodedTable, labels: Counts, groups: int, constraint: Constraint, m: int
) -> Flags:
    """Tell which groups withstand m providers whoever of their people has which of their values.

    Of a group's n providers the min(m, n − 1) with most records know so many records there, and may
    know the rarest values. Cost: O(rows log rows), and a few steps for each group.

    Raises:
        UnsupportedError: with colluding providers, for constraints other than k and distinct l.
    """
    if m and not constraint.counts_alone:
        raise UnsupportedError(
            f"With colluding providers, only k-anonymity and distinct l-diversity can be judged "
            f"without looking at who has which value, not {constraint}; leave out blind, or ask "
            "with m=0."
        )
    order = np.argsort(labels, kind="stable")
    starts = np.searchsorted(labels[order], np.arange(groups + 1))
    found = np.zeros(groups, dtype=bool)
    for group in range(groups):
        rows = order[starts[group] : starts[group + 1]]
        known = 0
        if m:
            owned = np.sort(np.bincount(encoded.provider[rows]))[::-1]
            known = int(owned[: min(m, np.count_nonzero(owned) - 1)].sum())
        counts = np.bincount(encoded.row_classes[rows], minlength=len(encoded.classes))
        left = SecretCounts.from_histogram(counts[: len(encoded.classes)], len(rows))
        found[group] = constraint.without(left, known)
    return found
