"""Provider-aware partitioning: cuts between providers where counts get better.

A group with few providers needs fewer records, since at most all but one of them collude, but a cut
between providers narrows no box by itself, and leaves boxes that lie over each other. So the
baseline's tree is compared, at its root and at a few depths, with cutting a node between its
providers first: random range queries are answered from either (`UtilityProbe`), and a node
takes what answers them better.
Cost: one more descent of the tree for every depth tried, and the queries.
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
from quiltwork.tables.partitioning.nodes import Nodes, bounds, joined

_PARTS = 128
"""Parts of the table for which counts are compared at a time."""
_SHARES = (1, 8, 64)
"""Nodes are compared once they hold at most 1/share of the rows."""
_QUERIES, _SEED = 1000, 0x6D2D707269766163
_DOUBT = 2.0
"""Standard errors by which the error must fall."""
_CELLS = 4_000_000


def parts_freely(constraint: Constraint) -> bool:
    """Tell whether groups may be cut between providers without asking about them together.

    Such groups can have the same box, and are one to every reader. Under EG-monotonic constraints
    two private groups are private together. Under others they need not be: a coalition with all
    providers of the one can take away what it likes of it, which nobody could ask of it alone.
    """
    return constraint.eg_monotonic


def provider_aware(
    records: CodedRecords,
    guard: Guard,
    rules: CutRules,
    questions: UtilityProbe,
    progress: Progress | None = None,
) -> Counts:
    """Return for each row the number of its group.

    Without `rules.provider_splits`, groups of different providers are kept only where those with
    the same box are private together.
    """
    plain = replace(rules, provider_splits=False)
    # A group of one provider's own helps only if some provider has records enough for it.
    can_help = records.heaviest >= guard.smallest
    steps = list(_checkpoints(records, guard, plain)) if can_help else []
    start = steps[-1] if steps else root_node(records)
    best = joined(list(leaves_of(records, start, guard, plain)))
    if rules.provider_splits:
        other = joined(list(leaves_of(records, start, guard, rules)))
        best = _exchanged(records, start, best, other, questions)
    elif steps:
        steps.append(best)
    for done, nodes in enumerate(reversed(steps), start=1):
        nodes, parts = _apart(records, nodes, guard)
        other = joined([parts.select(parts.sizes < 0), *leaves_of(records, parts, guard, plain)])
        if not rules.provider_splits:
            node = _node_of_rows(records, nodes)
            good = _private_together(records, nodes.count, node, other, guard)
            nodes = nodes.select(good)
        best = _exchanged(records, nodes, best, other, questions)
        if progress is not None:
            progress(done * records.count // len(steps), records.count)
    labels = no_labels(records)
    labels[best.rows] = best.owners()
    return labels


def _node_of_rows(records: CodedRecords, nodes: Nodes) -> Counts:
    """Return the node of each row, or −1 if it is in none of them."""
    node = np.full(records.count, -1, dtype=code_type(records.count))
    node[nodes.rows] = nodes.owners()
    return node


def _private_together(
    records: CodedRecords, nodes: int, node: Counts, leaves: Nodes, guard: Guard
) -> Flags:
    """Tell in which nodes leaves with the same box are private as one."""
    good = np.ones(nodes, dtype=bool)
    if not leaves.count:
        return good
    owner = node[leaves.rows[leaves.starts]].astype(np.int64)
    low, high = bounds(records, leaves)
    alike = np.unique(np.vstack((owner, low, high)), axis=1, return_inverse=True)[1].reshape(-1)
    order = np.argsort(alike, kind="stable")
    sizes = leaves.sizes[order]
    rows = leaves.rows[concatenated_ranges(leaves.starts[order], sizes)]
    first = np.flatnonzero(np.diff(alike[order], prepend=-1))
    private = guard.private(records, rows, starts_of(sizes)[first])
    good[owner[order[first[~private]]]] = False
    return good


def _exchanged(
    records: CodedRecords, nodes: Nodes, best: Nodes, other: Nodes, questions: UtilityProbe
) -> Nodes:
    """Take the other leaves within nodes where counts from them are better.

    Counts are compared for at most `_PARTS` parts of the table, of neighbouring nodes.
    """
    if not nodes.count:
        return best
    node = _node_of_rows(records, nodes)
    parts = min(_PARTS, nodes.count)

    def answered(leaves: Nodes) -> tuple[Counts, Reals]:
        of = node[leaves.rows[leaves.starts]].astype(np.int64)
        part = np.where(of < 0, 0, 1 + of * parts // nodes.count)  # 0: in none of them
        rows = Nodes(records.ids[leaves.rows].astype(np.int64), leaves.starts)
        return part, questions.answers(rows, part, parts + 1)

    here, now = answered(best)
    there, instead = answered(other)
    instead[0] = now[0]
    better = questions.better(now, instead)
    return joined([best.select(~better[here]), other.select(better[there])])


def _checkpoints(records: CodedRecords, guard: Guard, rules: CutRules) -> Iterator[Nodes]:
    """Go down the baseline's tree; stop at 1/share of the rows, or where nothing cuts a node."""
    nodes = root_node(records)
    for share in _SHARES:
        ready, large = [], nodes
        while large.count:
            small = large.sizes <= records.count // share
            ready.append(large.select(small))
            stuck, large = cut_level(records, large.select(~small), guard, rules)
            ready.append(stuck)
        nodes = joined(ready)
        yield nodes


def _apart(records: CodedRecords, nodes: Nodes, guard: Guard) -> tuple[Nodes, Nodes]:
    """Cut nodes between providers as long as both sides are private.

    Returns the nodes that are cut, and their parts.
    """
    parts, uncut = cut_by_provider(records, nodes, guard)
    kept = np.zeros(records.count, dtype=bool)
    kept[uncut.rows] = True
    nodes = nodes.select(~kept[nodes.rows[nodes.starts]])
    apart = [parts.select(parts.sizes < 0)]
    while parts.count:
        parts, uncut = cut_by_provider(records, parts, guard)
        apart.append(uncut)
    return nodes, joined(apart)


@lru_cache(16)
def _drawn(domains: tuple[int, ...]) -> tuple[RangeQuery, ...]:
    return tuple(islice(random_queries(domains, _SEED), _QUERIES))


@dataclass(frozen=True, eq=False)
class UtilityProbe:
    """What groups do to counts, asked before they are chosen: queries about a table.

    Drawn as `query_error` draws them, but from a seed of their own. Other groups in a part of the
    table pay if the mean error over all queries falls by more than the sample leaves in doubt.

    Attributes:
        columns: its quasi-identifiers.
        queries: those that some rows answer.
        truth: how many rows.
        scale: what their errors are relative to.
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
        asked = [(query, count) for query in drawn if (count := true_count(codes, query))]
        truth = np.array([count for _, count in asked], dtype=np.float64)
        scale = np.maximum(truth, LEAST_SHARE * len(columns[0].codes))
        return cls(columns, tuple(query for query, _ in asked), truth, scale)

    def answers(self, groups: Nodes, part: Counts, parts: int) -> Reals:
        """Return part of the table × query: the counts that groups, each in its part, make."""
        found = np.zeros((parts, len(self.queries)))
        most = max(len(column.values) for column in self.columns)
        step = max(1, _CELLS // most)
        for first in range(0, groups.count, step):
            some = np.arange(first, min(first + step, groups.count))
            nodes = groups.select(some)
            sides = (column_boxes(c, c.codes[nodes.rows], nodes.starts) for c in self.columns)
            cover = Coverage(tuple(sides), nodes.sizes)
            found += answers(cover, self.queries, part[some], parts)
        return found

    def better(self, now: Reals, instead: Reals) -> Flags:
        """Tell in which parts to take the other answers; part after part, with those taken."""
        error = now.sum(axis=0) - self.truth
        taken = np.zeros(len(now), dtype=bool)
        for at, change in enumerate(instead - now):
            fall = (np.abs(error) - np.abs(error + change)) / self.scale
            if fall.sum() > 0 and fall.mean() > _DOUBT * fall.std() / len(fall) ** 0.5:
                taken[at] = True
                error = error + change
        return taken
