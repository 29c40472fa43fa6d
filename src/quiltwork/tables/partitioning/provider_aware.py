"""Provider-aware partitioning: cuts between providers where they make boxes smaller in the end.

A group with few providers needs fewer records, since at most all but one of them collude, but a cut
between providers narrows no box by itself. So the baseline's tree is compared, at its root and at a
few depths, with cutting a node between its providers first: each node keeps what loses less
(records × widths). The result is never wider than the baseline's.
Cost: one more descent of the tree for every depth tried, but a node is given up as soon as some of
its providers' parts lose more than the whole does already: about 1/c of a descent where cutting
between providers loses c times as much.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from functools import partial

import numpy as np
from numpy.typing import NDArray

from quiltwork.tables.constraints.base import Constraint
from quiltwork.tables.encoding import code_type
from quiltwork.tables.partitioning.cuts import halved_by_provider
from quiltwork.tables.partitioning.guards import Guard
from quiltwork.tables.partitioning.mondrian import (
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
from quiltwork.tables.partitioning.nodes import (
    Counts,
    Flags,
    Nodes,
    bounds,
    joined,
    runs,
    starts_of,
    widths,
)
from quiltwork.tables.partitioning.records import Records, Rows
from quiltwork.tables.partitioning.sweeps import (
    halves,
    halves_by_provider,
    pieces,
    portions,
    side_by_side,
)

_SHARES = (1, 8, 64)
"""Nodes are compared once they hold at most 1/share of the rows."""
_CHUNK = 4 * BATCH
"""Rows from which parts are tried ahead together."""
_FIRST = 0.3
_MOST = 0.6
"""Shares of a node that its first part, and all parts tried ahead, may have at most."""

Reals = NDArray[np.float64]


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
    steps = list(_checkpoints(records, guard, plain)) if _can_help(records, guard) else []
    best = _baseline(records, guard, rules, steps)
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
    labels = np.full(records.count, -1, dtype=np.int64)
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


def _measured(records: Records, leaves: Nodes) -> _Leaves:
    return _Leaves(leaves, widths(records, *bounds(records, leaves)).sum(axis=0) * leaves.sizes)


def _together(parts: list[_Leaves]) -> _Leaves:
    loss = np.concatenate([part.loss for part in parts])
    return _Leaves(joined([part.nodes for part in parts]), loss)


def _node_of_rows(records: Records, nodes: Nodes) -> Counts:
    """Return the node of each row, or −1 if it is in none of them."""
    node = np.full(records.count, -1, dtype=code_type(records.count))
    node[nodes.rows] = nodes.owners()
    return node


def _private_together(
    records: Records, nodes: int, node: Counts, leaves: Nodes, guard: Guard
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


def _can_help(records: Records, guard: Guard) -> bool:
    """Tell whether some provider has enough records for a group of its own."""
    return bool(np.bincount(records.provider).max() >= guard.smallest)


def _checkpoints(records: Records, guard: Guard, rules: Rules) -> Iterator[Nodes]:
    """Go down the baseline's tree; stop at 1/share of the rows, or where nothing cuts a node."""
    nodes = whole(records)
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


def _baseline(records: Records, guard: Guard, rules: Rules, steps: list[Nodes]) -> _Leaves:
    """Finish the baseline's tree, from a checkpoint if its nodes are still larger than a batch."""
    start = whole(records)
    if counts_decide(guard, records, rules):
        for share, nodes in zip(_SHARES, steps, strict=False):
            start = nodes if records.count // share >= BATCH else start
    found = leaves_of(records, start, guard, rules)
    return _together([_measured(records, leaves) for leaves in found])


def _by_providers_first(
    records: Records, nodes: Nodes, node: Counts, guard: Guard, rules: Rules, lost: Reals
) -> tuple[_Leaves, Flags]:
    """Cut nodes between providers as long as both sides are private, then as Mondrian does.

    A node that is not cut, or is sure to lose more than `lost`, is given up. Returns the leaves,
    and which nodes they are complete for.
    """
    room = lost * (1 + 1e-9)  # sums in another order differ by less
    # Then leaves come in batches that nodes fill together, so none can be missing but all.
    all_ = len(nodes.rows) > BATCH and not counts_decide(guard, records, rules)
    found = [_Leaves(nodes.select(np.zeros(nodes.count, dtype=bool)), np.zeros(0))]
    for batches in _chunks(records, nodes, guard, rules):
        if not all_:
            batches = [batch.select(room[node[batch.rows[batch.starts]]] > 0) for batch in batches]
        chunk = joined(batches)
        if not chunk.count:
            continue
        local = records.take(chunk.rows)
        parts = _apart(local, Nodes(np.arange(local.count), chunk.starts), guard)
        grow = partial(_grown, local, chunk.rows, guard, rules)
        first = parts.rows[parts.starts]
        of = node[chunk.rows[first]].astype(np.int64)
        room[of[parts.sizes == nodes.sizes[of]]] = 0.0
        room[_probed(parts, of, node, room, grow) >= room] = 0.0
        batch = np.searchsorted(np.cumsum([len(b.rows) for b in batches]), first, side="right")
        for number in range(len(batches)):
            wanted = (batch == number) & (room[of] > 0)
            if wanted.any():
                wanted |= all_
                found.append(grow(parts.select(wanted)))
                room -= found[-1].lost(node, nodes.count)
    return _together(found), room > 0


def _chunks(records: Records, nodes: Nodes, guard: Guard, rules: Rules) -> Iterator[list[Nodes]]:
    """Give nodes in batches, several batches together; large ones are cut between providers."""
    if len(nodes.rows) <= BATCH or not counts_decide(guard, records, rules):
        yield [nodes]
        return
    taken: list[Nodes] = []
    for batch in portions(pieces(records, nodes, guard, BATCH, halves_by_provider), BATCH):
        taken.append(batch)
        if sum(len(batch.rows) for batch in taken) >= _CHUNK:
            yield taken
            taken = []
    if taken:
        yield taken


def _grown(records: Records, rows: Rows, guard: Guard, rules: Rules, parts: Nodes) -> _Leaves:
    """Cut parts as far as it goes; `rows` are the numbers of the records in the whole table."""
    leaves = _together(
        [_measured(records, some) for some in leaves_of(records, parts, guard, rules)]
    )
    return _Leaves(Nodes(rows[leaves.nodes.rows], leaves.nodes.starts), leaves.loss)


def _probed(
    parts: Nodes, of: Counts, node: Counts, room: Reals, grow: Callable[[Nodes], _Leaves]
) -> Reals:
    """Return what some parts lose, for each node; `of` says whose part each is.

    Parts of one node lose about alike. So the first one tells how many it takes to use up the
    node's room, and these are cut to the end if they are much fewer than all.
    """
    nodes, sizes = len(room), parts.sizes
    total = np.bincount(of, weights=sizes, minlength=nodes)
    order = np.argsort(of, kind="stable")
    before, owner = starts_of(sizes[order]), of[order]
    begin = np.empty(parts.count)
    begin[order] = (before - before[np.searchsorted(owner, owner)]) / total[owner]
    asked = (begin == 0) & (sizes <= _FIRST * total[of]) & (room[of] > 0)
    if not asked.any():
        return np.zeros(nodes)
    spent = grow(parts.select(asked)).lost(node, nodes)
    share = np.zeros(nodes)
    share[of[asked]] = sizes[asked] / total[of[asked]]
    needed = np.divide(1.05 * share * room, spent, out=np.zeros(nodes), where=spent > 0)
    more = (begin > 0) & (begin < needed[of]) & (needed[of] <= _MOST) & (spent < room)[of]
    return spent + grow(parts.select(more)).lost(node, nodes) if more.any() else spent


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
