"""`Guard`: decides which of many groups are m-private; and groups private for any assignment.

`Guard` counts who holds what and leaves the decision to the verification, which settles nearly all
groups together. Under k-anonymity and distinct l-diversity, groups that are safe whoever holds what
are not even counted by provider (`docs/theory/anonymization.md`).

Blind groups are made and selected without looking at who has which sensitive value. Their cuts
depend on numbers of records alone. Whether a finished group may be published depends only on what
it publishes, its sensitive values with their frequencies, and on how many records each provider has
in it. Every other assignment of these values to the group's people gives the same answer, so the
selection reveals nothing beyond the published table.

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
    """Decides which groups may be published.

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
        """The k of k-anonymity."""
        return self.constraint.records_asked

    @cached_property
    def values(self) -> int:
        """The l of distinct l-diversity: no group with fewer sensitive values is ever private."""
        return self.constraint.values_asked

    @cached_property
    def smallest(self) -> int:
        """The fewest rows that a private group can have; one person may have several values."""
        # With subjects, one person can have several values, so l does not bound the size.
        return self.k if self._people else max(self.k, self.values)

    @cached_property
    def plain(self) -> bool:
        """Whether the constraint depends on numbers of records and of values alone."""
        return not self._people and self.constraint.counts_alone

    @property
    def _people(self) -> bool:
        return self.encoded is not None and self.encoded.subject is not None

    def private(self, records: CodedRecords, rows: RowNumbers, starts: Counts) -> Flags:
        """Return for each run rows[starts[i]:starts[i+1]] whether it is m-private.

        Undecided runs count as not private. Cost: O(rows) where counts fit in a table, else O(rows
        log rows), plus the search for the few groups that bounds leave open.
        """
        nodes = Nodes(rows, starts)
        private = self._surely(records, nodes)
        undecided = np.flatnonzero(~private & (nodes.sizes >= self.smallest))
        if len(undecided):
            only_sizes = self.plain and self.values == 1
            counts = (_sizes if only_sizes else self._counts)(records, nodes.select(undecided))
            private[undecided] = self.withstand(counts)
        return private

    def withstand(self, counts: SparseCounts) -> Flags:
        """Return which counted groups are m-private."""
        return groups_withstand(counts, self.constraint, self.m)

    def least(self, records: CodedRecords, nodes: Nodes) -> Counts:
        """Estimate the rows that a child needs if its providers are as in its parent."""
        least = np.full(nodes.count, self.smallest)
        # With one provider or m = 0 the minimum is exact; other constraints have no such estimate.
        if not self.plain or records.providers == 1 or self.m == 0:
            return least
        known_share = most_known(_sizes(records, nodes), self.m) / nodes.sizes
        estimate: Counts = np.maximum(least, np.ceil(self.k / (1 - known_share)).astype(np.int64))
        return estimate

    def scores(self, records: CodedRecords, rows: RowNumbers, starts: Counts) -> Reals:
        """Return the fitness score of each run (Definition 3.1), below 1 where it fails."""
        counts = self._counts(records, Nodes(rows, starts))
        table = by_value(counts)
        sizes = np.bincount(counts.group, weights=counts.weight, minlength=counts.groups)
        if self.plain:
            values = np.count_nonzero(table, axis=1)
            weight = ANONYMIZATION_ALPHA
            mean = (1 - weight) * sizes / self.k + weight * values / self.values
            holds = (sizes >= self.k) & (values >= self.values)
            scores: Reals = np.where(holds, mean, np.minimum(mean, 1 - 1e-9))
            return scores
        histograms = zip(sizes.astype(np.int64).tolist(), table, strict=True)
        counts_of = (SecretCounts.from_histogram(row, size) for size, row in histograms)
        return np.array(
            [score(self.constraint, histogram, ANONYMIZATION_ALPHA) for histogram in counts_of]
        )

    def _surely(self, records: CodedRecords, nodes: Nodes) -> Flags:
        """Return which runs are private for any assignment, from the largest provider's size."""
        # No coalition has more than this in any node, however rows are distributed.
        known_at_most = 0 if records.providers == 1 else self.m * records.heaviest  # by a coalition
        certain: Flags = nodes.sizes - known_at_most >= self.k
        cells = nodes.count * records.values
        if self.plain and self.values == 1:
            return certain
        if not self.plain or not certain.any() or not bincount_is_cheaper(cells, len(nodes.rows)):
            return np.zeros(nodes.count, dtype=bool)
        secret = records.sensitive[nodes.rows]
        cell = (nodes.node_of_row() * records.values + secret)[secret < records.values]
        table = np.bincount(cell, minlength=cells).reshape(nodes.count, -1)
        certain &= np.count_nonzero(table > known_at_most, axis=1) >= self.values
        return certain

    def _counts(self, records: CodedRecords, nodes: Nodes) -> SparseCounts:
        """Count the nodes by provider and sensitive value."""
        if self.encoded is not None and self._people:
            return count_groups(
                self.encoded, nodes.node_of_row(), nodes.count, records.ids[nodes.rows]
            )
        columns = nodes.node_of_row(), records.provider[nodes.rows], records.sensitive[nodes.rows]
        return count_records(columns, (nodes.count, records.providers, records.values))


def _sizes(records: CodedRecords, nodes: Nodes) -> SparseCounts:
    """Count the nodes by provider alone, as if all records had one sensitive value."""
    owners = records.provider[nodes.rows]
    columns = nodes.node_of_row(), owners, np.zeros(len(owners), dtype=np.int8)
    return count_records(columns, (nodes.count, records.providers, 1))


def private_for_any_assignment(
    encoded: CodedTable, labels: Counts, groups: int, constraint: Constraint, m: int
) -> Flags:
    """Return which groups withstand m providers for any assignment of their values to their people.

    Of a group's n providers, the min(m, n − 1) with most records know that many records, and these
    may have the rarest values. Cost: O(rows log rows), and a few steps for each group.

    Raises:
        UnsupportedError: with colluding providers, for constraints other than k and distinct l.
    """
    if m and not constraint.counts_alone:
        raise UnsupportedError(
            f"With colluding providers, only k-anonymity and distinct l-diversity can be decided "
            f"without looking at who has which value, not {constraint}. Leave out blind, or use "
            "m=0."
        )
    order = np.argsort(labels, kind="stable")
    starts = np.searchsorted(labels[order], np.arange(groups + 1))
    private = np.zeros(groups, dtype=bool)
    for group in range(groups):
        rows = order[starts[group] : starts[group + 1]]
        known = 0
        if m:
            owned = np.sort(np.bincount(encoded.provider[rows]))[::-1]
            # One provider must be left, so at most all but one collude.
            known = int(owned[: min(m, np.count_nonzero(owned) - 1)].sum())
        counts = np.bincount(encoded.row_classes[rows], minlength=len(encoded.classes))
        histogram = SecretCounts.from_histogram(counts[: len(encoded.classes)], len(rows))
        private[group] = constraint.without(histogram, known)
    return private
