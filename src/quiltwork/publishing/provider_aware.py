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

from quiltwork.publishing.constraints.base import Constraint
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
from quiltwork.publishing.nodes import (
    Counts,
    Flags,
    Nodes,
    bounds,
    joined,
    runs,
    starts_of,
    widths,
)
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


def parts_freely(constraint: Constraint) -> bool:
    """Tell whether groups may be cut between providers without asking about them together.

    Such groups can have the same box, and are one to every reader. Under EG-monotonic constraints
    two private groups are private together. Under others they need not be: a coalition with all
    providers of the one can take away what it likes of it, which nobody could ask of it alone.
    """
    return constraint.eg_monotonic


def provider_aware(
    records: Records, guard: Guard, rules: Rules, progress: Progress | None = None
) -> Counts:
    """Return for each row the number of its group.

    Without `rules.provider_splits`, groups of different providers are kept only where those with
    the same box are private together.
    """
    plain = replace(rules, provider_splits=False)
    best = joined(list(leaves_of(records, whole(records), guard, rules)))
    if _can_help(records, guard):
        steps = list(_checkpoints(records, whole(records), guard, plain))
        if not rules.provider_splits:
            steps.append(best)
        for done, nodes in enumerate(reversed(steps), start=1):
            other = joined(list(_by_providers_first(records, nodes, guard, plain)))
            pays = _gains(records, nodes, best, other) > 1e-9
            if not rules.provider_splits:
                pays &= _private_together(records, nodes, other, guard)
            best = _exchanged(records, nodes, best, other, pays)
            if progress is not None:
                progress(done * records.count // len(steps), records.count)
    labels = np.full(records.count, -1, dtype=np.int64)
    labels[best.rows] = best.owners()
    return labels


def _owner(records: Records, nodes: Nodes, leaves: Nodes) -> Counts:
    """Return the node of each leaf, which lies within one of them, or −1 if it is outside all."""
    owner = np.full(records.count, -1, dtype=code_type(records.count))
    owner[nodes.rows] = nodes.owners()
    return owner[leaves.rows[leaves.starts]].astype(np.int64)


def _gains(records: Records, nodes: Nodes, best: Nodes, other: Nodes) -> NDArray[np.float64]:
    """Return what each node loses less with the other leaves."""
    lost = []
    for leaves in (best, other):
        owner = _owner(records, nodes, leaves)
        inside = owner >= 0
        weights = _loss(records, leaves)[inside]
        lost.append(np.bincount(owner[inside], weights=weights, minlength=nodes.count))
    return np.asarray(lost[0] - lost[1], dtype=np.float64)


def _private_together(records: Records, nodes: Nodes, leaves: Nodes, guard: Guard) -> Flags:
    """Tell in which nodes leaves with the same box are private as one."""
    owner = _owner(records, nodes, leaves)
    low, high = bounds(records, leaves)
    alike = np.unique(np.vstack((owner, low, high)), axis=1, return_inverse=True)[1].reshape(-1)
    order = np.argsort(alike, kind="stable")
    sizes = leaves.sizes[order]
    rows = leaves.rows[runs(leaves.starts[order], sizes)]
    first = np.flatnonzero(np.diff(alike[order], prepend=-1))
    private = guard.private(records, rows, starts_of(sizes)[first])
    good = np.ones(nodes.count, dtype=bool)
    good[owner[order[first[~private]]]] = False
    return good


def _exchanged(records: Records, nodes: Nodes, best: Nodes, other: Nodes, pays: Flags) -> Nodes:
    """Take the other leaves in the nodes where they pay."""
    of_best, of_other = (_owner(records, nodes, leaves) for leaves in (best, other))
    stays = (of_best < 0) | ~pays[of_best]
    return joined([best.select(stays), other.select(pays[of_other])])


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
