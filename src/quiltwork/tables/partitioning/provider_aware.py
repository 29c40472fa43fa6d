"""Provider-aware partitioning: cuts between providers where they make boxes smaller in the end.

A group with few providers needs fewer records, since at most all but one of them collude, but a cut
between providers narrows no box by itself. So the baseline's tree is compared, at its root and at a
few depths, with cutting a node between its providers first: each node keeps what loses less
(records × widths). The result is never wider than the baseline's.
Cost: one more descent of the tree for every depth tried; of large tables, whose parts are cut a
batch at a time, a node is given up once some of its providers' parts lose more than the whole does.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace

import numpy as np

from quiltwork.tables.constraints.constraint import Constraint
from quiltwork.tables.distinct import runs, starts_of
from quiltwork.tables.encoding import code_type
from quiltwork.tables.partitioning.coded_records import CodedRecords
from quiltwork.tables.partitioning.cut_rule import Counts, Flags, Reals
from quiltwork.tables.partitioning.guards import Guard
from quiltwork.tables.partitioning.mondrian import (
    BATCH,
    CutRules,
    Progress,
    cut_by_provider,
    cut_level,
    leaves_of,
    no_labels,
    whole,
)
from quiltwork.tables.partitioning.nodes import Nodes, bounds, joined

_SHARES = (1, 8, 64)
"""Nodes are compared once they hold at most 1/share of the rows."""


def parts_freely(constraint: Constraint) -> bool:
    """Tell whether groups may be cut between providers without asking about them together.

    Such groups can have the same box, and are one to every reader. Under EG-monotonic constraints
    two private groups are private together. Under others they need not be: a coalition with all
    providers of the one can take away what it likes of it, which nobody could ask of it alone.
    """
    return constraint.eg_monotonic


def provider_aware(
    records: CodedRecords, guard: Guard, rules: CutRules, progress: Progress | None = None
) -> Counts:
    """Return for each row the number of its group.

    Without `rules.provider_splits`, groups of different providers are kept only where those with
    the same box are private together.
    """
    plain = replace(rules, provider_splits=False)
    steps = list(_checkpoints(records, guard, plain)) if _can_help(records, guard) else []
    # From the last checkpoint on the baseline's tree is the same: cuts between providers come last.
    start = steps[-1] if steps else whole(records)
    best = _measured(records, leaves_of(records, start, guard, rules))
    if steps and not rules.provider_splits:
        steps.append(best.nodes)
    for done, nodes in enumerate(reversed(steps), start=1):
        node = _node_of_rows(records, nodes)
        lost = best.lost(node, nodes.count)
        other, complete = _by_providers_first(records, nodes, node, guard, plain, lost)
        pays = complete & (lost - other.lost(node, nodes.count) > 1e-9)
        if not rules.provider_splits:
            other = other.select(pays[other.within(node)])
            pays &= _private_together(records, nodes.count, node, other.nodes, guard)
        best = _exchanged(node, best, other, pays)
        if progress is not None:
            progress(done * records.count // len(steps), records.count)
    labels = no_labels(records)
    labels[best.nodes.rows] = best.nodes.owners()
    return labels


@dataclass(frozen=True, eq=False)
class _Leaves:
    """Leaves, and what each of them loses: records × widths."""

    nodes: Nodes
    loss: Reals

    def within(self, node: Counts) -> Counts:
        """Return the node of each leaf, given that of every row."""
        return node[self.nodes.rows[self.nodes.starts]].astype(np.int64)

    def lost(self, node: Counts, nodes: int) -> Reals:
        """Return what the leaves within each node lose together."""
        of = self.within(node)
        inside = of >= 0
        lost = np.bincount(of[inside], weights=self.loss[inside], minlength=nodes)
        return np.asarray(lost, dtype=np.float64)

    def select(self, wanted: Flags) -> _Leaves:
        """Return some of the leaves."""
        return _Leaves(self.nodes.select(wanted), self.loss[wanted])


def _measured(records: CodedRecords, found: Iterator[Nodes]) -> _Leaves:
    """Put leaves together, with what they lose."""
    measured = []
    for leaves in found:
        extent = records.axes.widths(*bounds(records, leaves)).sum(axis=0)
        measured.append(_Leaves(leaves, extent * leaves.sizes))
    return _together(measured)


def _together(parts: list[_Leaves]) -> _Leaves:
    loss = np.concatenate([part.loss for part in parts])
    return _Leaves(joined([part.nodes for part in parts]), loss)


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
    rows = leaves.rows[runs(leaves.starts[order], sizes)]
    first = np.flatnonzero(np.diff(alike[order], prepend=-1))
    private = guard.private(records, rows, starts_of(sizes)[first])
    good[owner[order[first[~private]]]] = False
    return good


def _exchanged(node: Counts, best: _Leaves, other: _Leaves, pays: Flags) -> _Leaves:
    """Take the other leaves in the nodes where they pay."""
    of_best = best.within(node)
    stays = (of_best < 0) | ~pays[of_best]
    return _together([best.select(stays), other.select(pays[other.within(node)])])


def _can_help(records: CodedRecords, guard: Guard) -> bool:
    """Tell whether some provider has enough records for a group of its own."""
    return bool(np.bincount(records.provider).max() >= guard.smallest)


def _checkpoints(records: CodedRecords, guard: Guard, rules: CutRules) -> Iterator[Nodes]:
    """Go down the baseline's tree; stop at 1/share of the rows, or where nothing cuts a node."""
    nodes = whole(records)
    for share in _SHARES:
        ready, large = [], nodes
        while large.count:
            small = large.sizes <= records.count // share
            ready.append(large.select(small))
            stuck, large = cut_level(records, large.select(~small), guard, rules)
            ready.append(stuck)
        nodes = joined(ready)
        yield nodes


def _by_providers_first(
    records: CodedRecords, nodes: Nodes, node: Counts, guard: Guard, rules: CutRules, lost: Reals
) -> tuple[_Leaves, Flags]:
    """Cut nodes between providers as long as both sides are private, then as Mondrian does.

    A node that is not cut, or is sure to lose more than `lost`, is given up. Returns the leaves,
    and which nodes they are complete for.
    """
    room = lost * (1 + 1e-9)  # sums in another order differ by less
    parts = _apart(records, nodes.select(room > 0), guard)
    of = node[parts.rows[parts.starts]].astype(np.int64)
    room[of[parts.sizes == nodes.sizes[of]]] = 0.0
    found = [_Leaves(nodes.select(np.zeros(nodes.count, dtype=bool)), np.zeros(0))]
    for some in parts.portions(BATCH):
        wanted = room[node[some.rows[some.starts]]] > 0
        if wanted.any():
            leaves = leaves_of(records, some.select(wanted), guard, rules)
            found.append(_measured(records, leaves))
            room -= found[-1].lost(node, nodes.count)
    return _together(found), room > 0


def _apart(records: CodedRecords, nodes: Nodes, guard: Guard) -> Nodes:
    """Cut nodes between providers as long as both sides are private."""
    apart = [nodes.select(np.zeros(nodes.count, dtype=bool))]
    while nodes.count:
        nodes, uncut = cut_by_provider(records, nodes, guard)
        apart.append(uncut)
    return joined(apart)
