"""Provider-aware partitioning: cuts between providers where they make boxes smaller in the end.

A group with few providers needs fewer records, since at most all but one of them collude, but a cut
between providers narrows no box by itself. So the baseline's tree is compared, at its root and at a
few depths, with cutting a node between its providers first: each node keeps what loses less
(records × widths). The result is never wider than the baseline's.
Cost: one more descent of the tree for every depth tried.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from quiltwork.publishing.cuts import halved_by_provider
from quiltwork.publishing.guards import Guard
from quiltwork.publishing.mondrian import (
    Progress,
    Rules,
    both_private,
    cut_level,
    leaves_of,
    several_providers,
)
from quiltwork.publishing.nodes import Counts, Nodes, bounds, joined, widths
from quiltwork.publishing.records import Records

_SHARES = (1, 8, 64)
"""Nodes are compared once they hold at most 1/share of the rows."""


def provider_aware(
    records: Records, guard: Guard, rules: Rules, progress: Progress | None = None
) -> Counts:
    """Return for each row the number of its group."""
    plain = replace(rules, provider_splits=False)
    everything = Nodes(np.arange(records.count), np.zeros(1, dtype=np.int64))
    best = joined(list(leaves_of(records, everything, guard, rules)))
    labels, loss = _labels(records, best), _row_loss(records, best)
    if not _can_help(records, guard):
        return labels
    steps = list(_checkpoints(records, everything, guard, plain))
    for done, nodes in enumerate(reversed(steps), start=1):
        pure = joined(list(_by_providers_first(records, nodes, guard, plain)))
        other, other_loss = _labels(records, pure), _row_loss(records, pure)
        owner = np.full(records.count, -1, dtype=np.int64)
        owner[nodes.rows] = nodes.owners()
        gain = np.bincount(
            owner[nodes.rows], weights=(loss - other_loss)[nodes.rows], minlength=nodes.count
        )
        better = (owner >= 0) & (gain > 1e-9)[owner]
        labels = np.where(better, other + int(labels.max()) + 1, labels)
        loss = np.where(better, other_loss, loss)
        if progress is not None:
            progress(done * records.count // len(steps), records.count)
    return np.unique(labels, return_inverse=True)[1]


def _can_help(records: Records, guard: Guard) -> bool:
    """Tell whether some provider has enough records for a group of its own."""
    return bool(np.bincount(records.provider).max() >= guard.smallest)


def _checkpoints(records: Records, nodes: Nodes, guard: Guard, rules: Rules) -> Iterator[Nodes]:
    """Go down the baseline's tree and stop at nodes with at most 1/share of the rows."""
    for share in _SHARES:
        ready, large = [], nodes
        while large.count:
            small = large.sizes * share <= records.count
            ready.append(large.select(small))
            _, large = cut_level(records, large.select(~small), guard, rules)
        nodes = joined(ready)
        if not nodes.count:
            return
        yield nodes


def _by_providers_first(
    records: Records, nodes: Nodes, guard: Guard, rules: Rules
) -> Iterator[Nodes]:
    """Cut nodes between providers as long as both sides are private, then as Mondrian does."""
    apart = []
    while nodes.count:
        cut = np.zeros(nodes.count, dtype=bool)
        several = several_providers(records, nodes)
        halves = halved_by_provider(records, nodes.select(several))
        good = both_private(records, halves, guard)
        cut[np.flatnonzero(several)[good]] = True
        apart.append(nodes.select(~cut))
        nodes = halves.select(good).children()
    yield from leaves_of(records, joined(apart), guard, rules)


def _labels(records: Records, leaves: Nodes) -> Counts:
    labels = np.full(records.count, -1, dtype=np.int64)
    labels[leaves.rows] = leaves.owners()
    return labels


def _row_loss(records: Records, leaves: Nodes) -> NDArray[np.float64]:
    loss = np.zeros(records.count)
    extent = widths(records, *bounds(records, leaves)).sum(axis=0)
    loss[leaves.rows] = np.repeat(extent, leaves.sizes)
    return loss
