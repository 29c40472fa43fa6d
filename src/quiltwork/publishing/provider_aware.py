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
from quiltwork.publishing.encoding import code_type
from quiltwork.publishing.guards import Guard
from quiltwork.publishing.mondrian import (
    BATCH,
    Progress,
    Rules,
    both_private,
    counts_decide,
    cut_level,
    leaves_of,
    several_providers,
    whole,
)
from quiltwork.publishing.nodes import Counts, Nodes, bounds, joined, widths
from quiltwork.publishing.records import Records
from quiltwork.publishing.sweeps import (
    halves,
    halves_by_provider,
    pieces,
    portions,
    side_by_side,
)

_SHARES = (1, 8, 64)
"""Nodes are compared once they hold at most 1/share of the rows."""


def provider_aware(
    records: Records, guard: Guard, rules: Rules, progress: Progress | None = None
) -> Counts:
    """Return for each row the number of its group."""
    plain = replace(rules, provider_splits=False)
    best = joined(list(leaves_of(records, whole(records), guard, rules)))
    if _can_help(records, guard):
        steps = list(_checkpoints(records, whole(records), guard, plain))
        for done, nodes in enumerate(reversed(steps), start=1):
            other = joined(list(_by_providers_first(records, nodes, guard, plain)))
            best = _better(records, nodes, best, other)
            if progress is not None:
                progress(done * records.count // len(steps), records.count)
    labels = np.empty(records.count, dtype=np.int64)
    labels[best.rows] = best.owners()
    return labels


def _better(records: Records, nodes: Nodes, best: Nodes, other: Nodes) -> Nodes:
    """Take for each node the leaves that lose less; leaves lie within one node or outside all."""
    owner = np.full(records.count, -1, dtype=code_type(records.count))
    owner[nodes.rows] = nodes.owners()
    of_best, of_other = owner[best.rows[best.starts]], owner[other.rows[other.starts]]
    inside = of_best >= 0
    gain = np.bincount(
        of_best[inside], weights=_loss(records, best)[inside], minlength=nodes.count
    ) - np.bincount(of_other, weights=_loss(records, other), minlength=nodes.count)
    pays = gain > 1e-9
    return joined([best.select(~(inside & pays[of_best])), other.select(pays[of_other])])


def _can_help(records: Records, guard: Guard) -> bool:
    """Tell whether some provider has enough records for a group of its own."""
    return bool(np.bincount(records.provider).max() >= guard.smallest)


def _checkpoints(records: Records, nodes: Nodes, guard: Guard, rules: Rules) -> Iterator[Nodes]:
    """Go down the baseline's tree; stop at 1/share of the rows, or where nothing cuts a node."""
    for share in _SHARES:
        most = records.count // share
        if counts_decide(guard, records, rules):
            nodes = side_by_side(list(pieces(records, nodes, guard, most, halves)))
        else:
            ready, large = [], nodes
            while large.count:
                small = large.sizes <= most
                ready.append(large.select(small))
                stuck, large = cut_level(records, large.select(~small), guard, rules)
                ready.append(stuck)
            nodes = joined(ready)
        yield nodes


def _by_providers_first(
    records: Records, nodes: Nodes, guard: Guard, rules: Rules
) -> Iterator[Nodes]:
    """Cut nodes between providers as long as both sides are private, then as Mondrian does."""
    if len(nodes.rows) <= BATCH or not counts_decide(guard, records, rules):
        yield from leaves_of(records, _apart(records, nodes, guard), guard, rules)
        return
    parts = pieces(records, nodes, guard, BATCH, halves_by_provider)
    for batch in portions(parts, BATCH):
        local = records.take(batch.rows)
        apart = _apart(local, Nodes(np.arange(local.count), batch.starts), guard)
        for leaves in leaves_of(local, apart, guard, rules):
            yield Nodes(batch.rows[leaves.rows], leaves.starts)


def _apart(records: Records, nodes: Nodes, guard: Guard) -> Nodes:
    """Cut nodes between providers as long as both sides are private."""
    apart = []
    while nodes.count:
        cut = np.zeros(nodes.count, dtype=bool)
        several = several_providers(records, nodes)
        halves = halved_by_provider(records, nodes.select(several))
        good = both_private(records, halves, guard)
        cut[np.flatnonzero(several)[good]] = True
        apart.append(nodes.select(~cut))
        nodes = halves.select(good).children()
    return joined(apart)


def _loss(records: Records, leaves: Nodes) -> NDArray[np.float64]:
    extent = widths(records, *bounds(records, leaves)).sum(axis=0)
    loss: NDArray[np.float64] = extent * leaves.sizes
    return loss
