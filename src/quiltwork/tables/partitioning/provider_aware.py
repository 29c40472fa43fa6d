"""Provider-aware partitioning: splits between providers where answers to counts improve.

A group with few providers needs fewer records, since at most all but one of them collude. But a
split between providers narrows no box by itself, and leaves boxes that overlap. So the baseline's
tree is compared, at its root and at a few depths, with splitting nodes between their providers
first: random range queries are answered from both (`UtilityProbe`), and a node takes the variant
that answers them better. Cost: one more descent of the tree for every depth tried, and the queries.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from functools import lru_cache
from itertools import islice

import numpy as np

from quiltwork.tables.codes.distinct import concatenated_ranges, starts_of
from quiltwork.tables.codes.encoding import Column, code_type
from quiltwork.tables.constraints.constraint import Constraint
from quiltwork.tables.generalization.boxes import column_boxes
from quiltwork.tables.generalization.range_queries import (
    LEAST_SHARE,
    Coverage,
    RangeQuery,
    answers,
    random_queries,
    small_codes,
    true_count,
)
from quiltwork.tables.partitioning.coded_records import CodedRecords, Counts, Flags, Reals
from quiltwork.tables.partitioning.guards import Guard
from quiltwork.tables.partitioning.mondrian import (
    CutRules,
    Progress,
    cut_by_provider,
    cut_level,
    leaves_of,
    no_labels,
    root_node,
)
from quiltwork.tables.partitioning.nodes import Nodes, bounds, concatenate

_PARTS = 128
"""The most parts of the table whose answers are compared separately."""
_SHARES = (1, 8, 64)
"""Nodes are compared where they have at most 1/share of the rows."""
_QUERIES, _SEED = 1000, 0x6D2D707269766163
_DOUBT = 2.0
"""The number of standard errors by which the mean error must fall."""
_CELLS = 4_000_000


def provider_splits_are_sound(constraint: Constraint) -> bool:
    """Return whether groups may be split between providers without verifying them together.

    Such groups can have the same box, and are then one group to every reader. Under EG-monotonic
    constraints the union of two private groups is private. Under others it need not be: a coalition
    with all providers of one group can remove any part of it, which no verification of that group
    alone allows.
    """
    return constraint.eg_monotonic


def provider_aware(
    records: CodedRecords,
    guard: Guard,
    rules: CutRules,
    probe: UtilityProbe,
    progress: Progress | None = None,
) -> Counts:
    """Return the group of each row.

    Without `rules.provider_splits`, groups of different providers are kept only where those with
    the same box are private together.
    """
    plain = replace(rules, provider_splits=False)
    # Groups of one provider help only if some provider has enough records for one.
    can_help = records.heaviest >= guard.smallest
    checkpoints = list(_checkpoints(records, guard, plain)) if can_help else []
    # The last checkpoint is the deepest: the baseline's tree only has to be continued from there.
    start = checkpoints[-1] if checkpoints else root_node(records)
    best = concatenate(list(leaves_of(records, start, guard, plain)))
    if rules.provider_splits:
        split_leaves = concatenate(list(leaves_of(records, start, guard, rules)))
        best = _exchange_leaves(records, start, best, split_leaves, probe)
    elif checkpoints:
        checkpoints.append(best)
    for done, nodes in enumerate(reversed(checkpoints), start=1):
        nodes, parts = _split_by_provider(records, nodes, guard)
        split_leaves = concatenate(
            [parts.select(parts.sizes < 0), *leaves_of(records, parts, guard, plain)]
        )
        if not rules.provider_splits:
            node = _node_of_rows(records, nodes)
            is_private = _private_together(records, nodes.count, node, split_leaves, guard)
            nodes = nodes.select(is_private)
        best = _exchange_leaves(records, nodes, best, split_leaves, probe)
        if progress is not None:
            progress(done * records.count // len(checkpoints), records.count)
    labels = no_labels(records)
    labels[best.rows] = best.node_of_row()
    return labels


def _node_of_rows(records: CodedRecords, nodes: Nodes) -> Counts:
    """Return the node of each row, or −1 if it is in none of them."""
    node = np.full(records.count, -1, dtype=code_type(records.count))
    node[nodes.rows] = nodes.node_of_row()
    return node


def _private_together(
    records: CodedRecords, nodes: int, node: Counts, leaves: Nodes, guard: Guard
) -> Flags:
    """Return in which nodes the leaves with the same box are private as one group."""
    accepted = np.ones(nodes, dtype=bool)
    if not leaves.count:
        return accepted
    owner = node[leaves.rows[leaves.starts]].astype(np.int64)
    low, high = bounds(records, leaves)
    box_number = np.unique(np.vstack((owner, low, high)), axis=1, return_inverse=True)[1].reshape(
        -1
    )
    order = np.argsort(box_number, kind="stable")
    sizes = leaves.sizes[order]
    rows = leaves.rows[concatenated_ranges(leaves.starts[order], sizes)]
    first = np.flatnonzero(np.diff(box_number[order], prepend=-1))
    private = guard.private(records, rows, starts_of(sizes)[first])
    accepted[owner[order[first[~private]]]] = False
    return accepted


def _exchange_leaves(
    records: CodedRecords, nodes: Nodes, best: Nodes, other: Nodes, probe: UtilityProbe
) -> Nodes:
    """Replace the leaves of nodes by the other ones where these answer counts better.

    Answers are compared for at most `_PARTS` parts of the table, each of neighbouring nodes.
    """
    if not nodes.count:
        return best
    node = _node_of_rows(records, nodes)
    parts = min(_PARTS, nodes.count)

    def part_answers(leaves: Nodes) -> tuple[Counts, Reals]:
        node_of = node[leaves.rows[leaves.starts]].astype(np.int64)
        part = np.where(
            node_of < 0, 0, 1 + node_of * parts // nodes.count
        )  # 0: outside of these nodes
        rows = Nodes(records.ids[leaves.rows].astype(np.int64), leaves.starts)
        return part, probe.answers(rows, part, parts + 1)

    part_of, current = part_answers(best)
    other_part, alternative = part_answers(other)
    alternative[0] = current[0]
    better = probe.better(current, alternative)
    return concatenate([best.select(~better[part_of]), other.select(better[other_part])])


def _checkpoints(records: CodedRecords, guard: Guard, rules: CutRules) -> Iterator[Nodes]:
    """Descend the baseline's tree; stop at 1/share of the rows, or where nothing cuts a node."""
    nodes = root_node(records)
    for share in _SHARES:
        ready, large = [], nodes
        while large.count:
            small = large.sizes <= records.count // share
            ready.append(large.select(small))
            stuck, large = cut_level(records, large.select(~small), guard, rules)
            ready.append(stuck)
        nodes = concatenate(ready)
        yield nodes


def _split_by_provider(records: CodedRecords, nodes: Nodes, guard: Guard) -> tuple[Nodes, Nodes]:
    """Split nodes between providers as long as both sides are private.

    Returns the nodes that are split, and their parts.
    """
    parts, uncut = cut_by_provider(records, nodes, guard)
    is_uncut = np.zeros(records.count, dtype=bool)
    is_uncut[uncut.rows] = True
    nodes = nodes.select(~is_uncut[nodes.rows[nodes.starts]])
    leaves = [parts.select(parts.sizes < 0)]
    while parts.count:
        parts, uncut = cut_by_provider(records, parts, guard)
        leaves.append(uncut)
    return nodes, concatenate(leaves)


@lru_cache(16)
def _drawn(domains: tuple[int, ...]) -> tuple[RangeQuery, ...]:
    return tuple(islice(random_queries(domains, _SEED), _QUERIES))


@dataclass(frozen=True, eq=False)
class UtilityProbe:
    """Random queries about a table, to estimate how groups affect counts before they are chosen.

    They are drawn like those of `query_error`, but from another seed. A variant is accepted for a
    part of the table if the mean error over all queries falls by more than its sampling error.

    Attributes:
        columns: the quasi-identifiers.
        queries: the queries that at least one row answers.
        truth: the true counts.
        scale: the denominators of relative errors.
    """

    columns: tuple[Column, ...]
    queries: tuple[RangeQuery, ...]
    truth: Reals
    scale: Reals

    @classmethod
    def of(cls, columns: tuple[Column, ...]) -> UtilityProbe:
        """Draw queries about these columns."""
        codes = small_codes(columns)
        drawn = _drawn(tuple(len(column.values) for column in columns))
        non_empty = [(query, count) for query in drawn if (count := true_count(codes, query))]
        truth = np.array([count for _, count in non_empty], dtype=np.float64)
        scale = np.maximum(truth, LEAST_SHARE * len(columns[0].codes))
        return cls(columns, tuple(query for query, _ in non_empty), truth, scale)

    def answers(self, groups: Nodes, part: Counts, parts: int) -> Reals:
        """Return part of the table × query: the answers from groups, each assigned to a part."""
        totals = np.zeros((parts, len(self.queries)))
        largest_domain = max(len(column.values) for column in self.columns)
        step = max(1, _CELLS // largest_domain)
        for first in range(0, groups.count, step):
            portion = np.arange(first, min(first + step, groups.count))
            nodes = groups.select(portion)
            boxes = (column_boxes(c, c.codes[nodes.rows], nodes.starts) for c in self.columns)
            cover = Coverage(tuple(boxes), nodes.sizes)
            totals += answers(cover, self.queries, part[portion], parts)
        return totals

    def better(self, current: Reals, alternative: Reals) -> Flags:
        """Return in which parts to take the alternative, deciding part after part."""
        error = current.sum(axis=0) - self.truth
        accepted = np.zeros(len(current), dtype=bool)
        # In sequence, as errors of several parts may cancel or add up.
        for at, change in enumerate(alternative - current):
            fall = (np.abs(error) - np.abs(error + change)) / self.scale
            # Sampling error: a smaller improvement may be due to the choice of queries.
            if fall.sum() > 0 and fall.mean() > _DOUBT * fall.std() / len(fall) ** 0.5:
                accepted[at] = True
                error = error + change
        return accepted
