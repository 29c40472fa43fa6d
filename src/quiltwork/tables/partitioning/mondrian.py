"""Mondrian, level by level: all nodes of a level are cut at once, in passes over arrays.

A node is cut along its widest quasi-identifier (normalized range) where both sides are m-private,
else along the next widest, and so on; a provider split, where allowed, comes last: it makes room
for finer cuts but narrows nothing itself. Large tables go down the tree in batches that fit a
processor's cache. Cost: O(rows · quasi-identifiers) per level, about log2(rows/k) levels.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any, Literal, TypeAlias, TypeGuard

import numpy as np
from numpy.typing import NDArray

from quiltwork.tables.encoding import code_type
from quiltwork.tables.partitioning.cuts import halved, halved_by_provider
from quiltwork.tables.partitioning.guards import CountingGuard, Guard
from quiltwork.tables.partitioning.losses import best_cuts
from quiltwork.tables.partitioning.nodes import (
    Counts,
    Flags,
    Halves,
    Nodes,
    bounds,
    halve,
    joined,
    widths,
)
from quiltwork.tables.partitioning.records import Records
from quiltwork.tables.partitioning.sweeps import countable, halves, pieces, portions

Progress: TypeAlias = Callable[[int, int], None]
"""Called with rows done and rows in all."""
Split: TypeAlias = Literal["range", "loss", "fitness"]

BATCH = 1 << 17
"""Rows that go down the tree together."""


@dataclass(frozen=True)
class Rules:
    """How nodes are cut.

    Attributes:
        provider_splits: whether a node may be cut between providers too.
        split: "range" (the widest first), "fitness" (the best fitness score, as in the paper) or
            "loss" (the cut after which the two boxes lose least).
        relaxed: whether records with equal values may go to both sides.
    """

    provider_splits: bool = False
    split: Split = "range"
    relaxed: bool = False


def mondrian(
    records: Records, guard: Guard, rules: Rules, progress: Progress | None = None
) -> Counts:
    """Return for each row the number of its group; the whole table must be m-private."""
    labels = np.full(records.count, -1, dtype=np.int64)
    groups = done = 0
    for leaves in leaves_of(records, whole(records), guard, rules):
        labels[leaves.rows] = groups + leaves.owners()
        groups += leaves.count
        done += len(leaves.rows)
        if progress is not None:
            progress(done, records.count)
    return labels


def whole(records: Records) -> Nodes:
    """Return all rows as one node."""
    rows = np.arange(records.count, dtype=code_type(records.count))
    return Nodes(rows, np.zeros(1, dtype=np.int64))


def leaves_of(records: Records, nodes: Nodes, guard: Guard, rules: Rules) -> Iterator[Nodes]:
    """Cut private nodes as far as it goes; give the leaves in portions."""
    if len(nodes.rows) <= BATCH:
        yield from _descend(records, nodes, guard, rules)
        return
    batches: Iterator[Nodes | _Finished] = _batches(records, nodes, guard, rules)
    if counts_decide(guard, records, rules):
        batches = portions(pieces(records, nodes, guard, BATCH, halves), BATCH)
    for batch in batches:
        if isinstance(batch, Nodes):
            local = records.take(batch.rows)
            start = Nodes(np.arange(len(batch.rows)), batch.starts)
            for leaves in _descend(local, start, guard, rules):
                yield Nodes(batch.rows[leaves.rows], leaves.starts)
        else:
            yield batch.leaves


def counts_decide(guard: Guard, records: Records, rules: Rules) -> TypeGuard[CountingGuard]:
    """Tell whether sweeps cut large nodes just as whole levels are cut, and take less memory.

    The order of records, which decides relaxed cuts, is not in the counts.
    """
    strict = rules.split == "range" and not rules.relaxed
    return strict and isinstance(guard, CountingGuard) and countable(records)


@dataclass(frozen=True, eq=False)
class _Finished:
    leaves: Nodes


def _batches(
    records: Records, nodes: Nodes, guard: Guard, rules: Rules
) -> Iterator[Nodes | _Finished]:
    """Cut large nodes, and hand on what fits a batch, several small nodes together."""
    while nodes.count:
        small = nodes.sizes <= BATCH
        if small.any():
            chosen = nodes.select(small)
            place = np.cumsum(chosen.sizes) // BATCH
            for number in range(int(place[-1]) + 1):
                part = place == number
                if part.any():
                    yield chosen.select(part)
            nodes = nodes.select(~small)
        if nodes.count:
            leaves, nodes = cut_level(records, nodes, guard, rules)
            if leaves.count:
                yield _Finished(leaves)


def _descend(records: Records, nodes: Nodes, guard: Guard, rules: Rules) -> Iterator[Nodes]:
    while nodes.count:
        leaves, nodes = cut_level(records, nodes, guard, rules)
        if leaves.count:
            yield leaves


def cut_level(records: Records, nodes: Nodes, guard: Guard, rules: Rules) -> tuple[Nodes, Nodes]:
    """Cut every node that can be; return the leaves and the children of the others."""
    large = nodes.sizes >= 2 * guard.smallest
    leaves, nodes = [nodes.select(~large)], nodes.select(large)
    if not nodes.count:
        return leaves[0], nodes
    choose = {"range": _by_range, "fitness": _by_fitness, "loss": _by_loss}[rules.split]
    children, stuck = choose(records, nodes, guard, rules)
    leaves.append(stuck)
    return joined(leaves), children


def _by_range(records: Records, nodes: Nodes, guard: Guard, rules: Rules) -> tuple[Nodes, Nodes]:
    low, high = bounds(records, nodes)
    extent = widths(records, low, high)
    order = np.argsort(-extent, axis=0, kind="stable")
    cut: list[Nodes] = []
    pending = np.arange(nodes.count)
    for rank in range(len(order)):
        axis = order[rank, pending]
        wide = extent[axis, pending] > 0
        trying, axis = pending[wide], axis[wide]
        if not len(trying):
            break
        halves = halved(
            records,
            nodes.select(trying),
            axis,
            low[axis, trying],
            high[axis, trying],
            rules.relaxed,
        )
        good = both_private(records, halves, guard)
        cut.append(halves.select(good).children())
        pending = np.setdiff1d(pending, trying[good], assume_unique=True)
        if not len(pending):
            break
    rest = nodes.select(pending)
    if rules.provider_splits and rest.count:
        children, rest = _by_provider(records, rest, guard)
        cut.append(children)
    return joined(cut) if cut else rest.select(np.zeros(rest.count, dtype=bool)), rest


def _by_provider(records: Records, nodes: Nodes, guard: Guard) -> tuple[Nodes, Nodes]:
    several = several_providers(records, nodes)
    halves = halved_by_provider(records, nodes.select(several))
    good = np.zeros(nodes.count, dtype=bool)
    fine = both_private(records, halves, guard)
    good[np.flatnonzero(several)[fine]] = True
    return halves.select(fine).children(), nodes.select(~good)


def _by_loss(records: Records, nodes: Nodes, guard: Guard, rules: Rules) -> tuple[Nodes, Nodes]:
    """Try the best cut of every quasi-identifier, the least loss first."""
    cuts = best_cuts(records, nodes, guard.least(records, nodes), guard.values)
    order = np.argsort(cuts.loss, axis=0, kind="stable")
    cut: list[Nodes] = []
    pending = np.arange(nodes.count)
    for rank in range(len(order)):
        axis = order[rank, pending]
        possible = np.isfinite(cuts.loss[axis, pending])
        trying, axis = pending[possible], axis[possible]
        if not len(trying):
            break
        some = nodes.select(trying)
        codes = records.codes[np.repeat(axis, some.sizes), some.rows]
        halves = halve(some, codes <= np.repeat(cuts.last[axis, trying], some.sizes))
        good = both_private(records, halves, guard)
        cut.append(halves.select(good).children())
        pending = np.setdiff1d(pending, trying[good], assume_unique=True)
    # Where no best cut is private, the most balanced one may be. Each node is asked for itself:
    # its cut must not depend on which others there are.
    rest = nodes.select(pending)
    if rest.count:
        hopeful = guard.least(records, rest) > guard.smallest
        children, stuck = _by_range(records, rest.select(hopeful), guard, rules)
        cut.append(children)
        rest = joined([rest.select(~hopeful), stuck])
    return joined(cut) if cut else rest.select(np.zeros(rest.count, dtype=bool)), rest


def _by_fitness(records: Records, nodes: Nodes, guard: Guard, rules: Rules) -> tuple[Nodes, Nodes]:
    """Of the cuts with two private sides take the one whose worse side has the best score."""
    low, high = bounds(records, nodes)
    axes = [*range(len(low))] + ([-1] if rules.provider_splits else [])
    best = np.zeros(nodes.count)
    chosen = np.full(nodes.count, -2)
    for axis in axes:
        usable = several_providers(records, nodes) if axis < 0 else low[axis] < high[axis]
        index = np.flatnonzero(usable)
        if not len(index):
            continue
        halves = _halves_along(records, nodes, index, axis, low, high, rules)
        good = both_private(records, halves, guard)
        index, halves = index[good], halves.select(good)
        if not len(index):
            continue
        children = halves.children()
        score = guard.scores(records, children.rows, children.starts).reshape(-1, 2).min(axis=1)
        better = score > best[index]
        best[index[better]], chosen[index[better]] = score[better], axis
    cut = [
        _halves_along(records, nodes, np.flatnonzero(chosen == axis), axis, low, high, rules)
        for axis in axes
        if (chosen == axis).any()
    ]
    stuck = nodes.select(chosen == -2)
    nothing = nodes.select(np.zeros(nodes.count, dtype=bool))
    return joined([halves.children() for halves in cut]) if cut else nothing, stuck


def _halves_along(
    records: Records,
    nodes: Nodes,
    index: Counts,
    axis: int,
    low: NDArray[Any],
    high: NDArray[Any],
    rules: Rules,
) -> Halves:
    if axis < 0:
        return halved_by_provider(records, nodes.select(index))
    axes = np.full(len(index), axis)
    return halved(
        records, nodes.select(index), axes, low[axis, index], high[axis, index], rules.relaxed
    )


def both_private(records: Records, halves: Halves, guard: Guard) -> Flags:
    """Tell for which nodes both children are private; sides that are too small are not asked."""
    sizes = halves.nodes.sizes
    good = (halves.left >= guard.smallest) & (sizes - halves.left >= guard.smallest)
    if good.any():
        children = halves.select(good).children()
        private = guard.private(records, children.rows, children.starts)
        good[good] = private.reshape(-1, 2).all(axis=1)
    return good


def several_providers(records: Records, nodes: Nodes) -> Flags:
    """Tell which nodes have records of more than one provider."""
    taken = records.provider[nodes.rows]
    return np.minimum.reduceat(taken, nodes.starts) < np.maximum.reduceat(taken, nodes.starts)
