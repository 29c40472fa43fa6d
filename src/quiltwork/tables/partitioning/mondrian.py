"""Mondrian, level by level: all nodes of a level are cut at once, in passes over arrays.

A node is cut along its widest quasi-identifier (normalized range) where both sides are m-private,
else along the next widest, and so on; a provider split, where allowed, comes last: it makes room
for finer cuts but narrows nothing itself. Large tables go down the tree in batches that fit a
processor's cache. Cost: O(rows · quasi-identifiers) per level, about log2(rows/k) levels.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import partial
from typing import Literal, TypeAlias

import numpy as np

from quiltwork.tables.codes.encoding import code_type
from quiltwork.tables.partitioning.best_cuts import best_cuts
from quiltwork.tables.partitioning.coded_records import CodedRecords, Counts, Flags
from quiltwork.tables.partitioning.guards import Guard
from quiltwork.tables.partitioning.nodes import (
    Halves,
    Nodes,
    bounds,
    halve,
    halved,
    halved_by_provider,
    joined,
)

Progress: TypeAlias = Callable[[int, int], None]
"""Called with rows done and rows in all."""
Split: TypeAlias = Literal["range", "loss", "fitness"]

BATCH = 1 << 17
"""Rows that go down the tree together."""


@dataclass(frozen=True)
class CutRules:
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
    records: CodedRecords,
    guard: Guard,
    rules: CutRules,
    progress: Progress | None = None,
    batch: int = BATCH,
) -> Counts:
    """Return for each row the number of its group; the whole table must be m-private."""
    labels = no_labels(records)
    groups = done = 0
    for leaves in leaves_of(records, root_node(records), guard, rules, batch):
        labels[leaves.rows] = groups + leaves.owners()
        groups += leaves.count
        done += len(leaves.rows)
        if progress is not None:
            progress(done, records.count)
    return labels


def no_labels(records: CodedRecords) -> Counts:
    """Return −1 for each row, in a type that holds twice as many groups as there are rows."""
    return np.full(records.count, -1, dtype=code_type(max(2 * records.count, 1 << 16)))


def root_node(records: CodedRecords) -> Nodes:
    """Return all rows as one node."""
    rows = np.arange(records.count, dtype=code_type(records.count))
    return Nodes(rows, np.zeros(1, dtype=np.int64))


def leaves_of(
    records: CodedRecords, nodes: Nodes, guard: Guard, rules: CutRules, batch: int = BATCH
) -> Iterator[Nodes]:
    """Cut private nodes as far as it goes; give the leaves in portions.

    What fits a batch, so many rows, is copied first, so that its records lie next to each other.
    """
    while nodes.count:
        small = nodes.sizes <= batch
        for some in nodes.select(small).portions(batch):
            local = records.take(some.rows)
            start = Nodes(np.arange(local.count), some.starts)
            for leaves in _descend(local, start, guard, rules):
                yield Nodes(some.rows[leaves.rows], leaves.starts)
        leaves, nodes = cut_level(records, nodes.select(~small), guard, rules)
        if leaves.count:
            yield leaves


def _descend(records: CodedRecords, nodes: Nodes, guard: Guard, rules: CutRules) -> Iterator[Nodes]:
    while nodes.count:
        leaves, nodes = cut_level(records, nodes, guard, rules)
        if leaves.count:
            yield leaves


def cut_level(
    records: CodedRecords, nodes: Nodes, guard: Guard, rules: CutRules
) -> tuple[Nodes, Nodes]:
    """Cut every node that can be; return the leaves and the children of the others.

    Each node is asked for itself: its cut does not depend on which others there are.
    """
    large = nodes.sizes >= 2 * guard.smallest
    leaves, nodes = nodes.select(~large), nodes.select(large)
    if not nodes.count:
        return leaves, nodes
    choose = {"range": _by_range, "fitness": _by_fitness, "loss": _by_loss}[rules.split]
    children, stuck = choose(records, nodes, guard, rules)
    return joined([leaves, stuck]), joined([nodes.select(large[:0]), *children])


Along: TypeAlias = Callable[[Counts, Counts], Halves]
"""Cuts some nodes, given by index, each along its own quasi-identifier."""
Good: TypeAlias = Callable[[Halves], Flags]
"""Tells which nodes may be cut so."""


def _first_good(
    nodes: Nodes, order: Counts, possible: Flags, along: Along, good_of: Good
) -> tuple[list[Nodes], Counts]:
    """Try the cuts of each node in its order until one is good.

    `order` is rank × node, `possible` quasi-identifier × node. Returns the children, and the index
    of the nodes that nothing cuts.
    """
    cut: list[Nodes] = []
    pending = np.arange(nodes.count)
    for ranked in order:
        axis = ranked[pending]
        asked = possible[axis, pending]
        trying, axis = pending[asked], axis[asked]
        if not len(trying):
            break
        halves = along(trying, axis)
        good = good_of(halves)
        cut.append(halves.select(good).children())
        pending = np.setdiff1d(pending, trying[good], assume_unique=True)
    return cut, pending


def widest_first(
    records: CodedRecords, nodes: Nodes, good_of: Good, relaxed: bool = False
) -> tuple[list[Nodes], Counts]:
    """Try the most balanced cut of every quasi-identifier, the widest first; see `_first_good`."""
    low, high = bounds(records, nodes)
    order, extent = records.axes.widest_first(low, high)

    def along(some: Counts, axis: Counts) -> Halves:
        ends = low[axis, some], high[axis, some]
        return halved(records, nodes.select(some), axis, *ends, relaxed)

    return _first_good(nodes, order, extent > 0, along, good_of)


def _by_range(
    records: CodedRecords, nodes: Nodes, guard: Guard, rules: CutRules
) -> tuple[list[Nodes], Nodes]:
    """Cut the widest quasi-identifier first, then between providers."""
    good = partial(both_private, records, guard)
    cut, pending = widest_first(records, nodes, good, rules.relaxed)
    rest = nodes.select(pending)
    if rules.provider_splits and rest.count:
        children, rest = cut_by_provider(records, rest, guard)
        cut.append(children)
    return cut, rest


def cut_by_provider(records: CodedRecords, nodes: Nodes, guard: Guard) -> tuple[Nodes, Nodes]:
    """Cut nodes between providers where both sides are private; return children and the others."""
    several, halves = halved_by_provider(records, nodes)
    fine = both_private(records, guard, halves)
    uncut = np.ones(nodes.count, dtype=bool)
    uncut[np.flatnonzero(several)[fine]] = False
    return halves.select(fine).children(), nodes.select(uncut)


def _by_loss(
    records: CodedRecords, nodes: Nodes, guard: Guard, rules: CutRules
) -> tuple[list[Nodes], Nodes]:
    """Try the best cut of every quasi-identifier, the least loss first."""
    least = guard.least(records, nodes)
    loss, last = best_cuts(records, nodes, least, guard.values, rules.relaxed)
    order = np.argsort(loss, axis=0, kind="stable")

    def along(some: Counts, axis: Counts) -> Halves:
        chosen = nodes.select(some)
        codes = records.codes[np.repeat(axis, chosen.sizes), chosen.rows]
        return halve(chosen, codes <= np.repeat(last[axis, some], chosen.sizes))

    good = partial(both_private, records, guard)
    cut, pending = _first_good(nodes, order, np.isfinite(loss), along, good)
    rest = nodes.select(pending)
    if rest.count:  # where no best cut is private, the most balanced one may be
        hopeful = guard.least(records, rest) > guard.smallest
        children, stuck = _by_range(records, rest.select(hopeful), guard, rules)
        cut += children
        rest = joined([rest.select(~hopeful), stuck])
    return cut, rest


def _by_fitness(
    records: CodedRecords, nodes: Nodes, guard: Guard, rules: CutRules
) -> tuple[list[Nodes], Nodes]:
    """Of the cuts with two private sides take the one whose worse side has the best score."""
    low, high = bounds(records, nodes)
    best = np.zeros(nodes.count)
    chosen = np.full(nodes.count, -2)
    found: dict[int, tuple[Counts, Nodes]] = {}  # by axis (−1: providers), index and children
    for axis in [*range(len(low)), *([-1] if rules.provider_splits else [])]:
        if axis < 0:
            several, halves = halved_by_provider(records, nodes)
            index = np.flatnonzero(several)
        else:
            index = np.flatnonzero(low[axis] < high[axis])
            ends = low[axis, index], high[axis, index]
            along = np.full(len(index), axis)
            halves = halved(records, nodes.select(index), along, *ends, rules.relaxed)
        good = both_private(records, guard, halves)
        index, children = index[good], halves.select(good).children()
        if not len(index):
            continue
        score = guard.scores(records, children.rows, children.starts).reshape(-1, 2).min(axis=1)
        better = score > best[index]
        best[index[better]], chosen[index[better]] = score[better], axis
        found[axis] = index, children
    cut = [
        children.select(np.repeat(chosen[index] == axis, 2))
        for axis, (index, children) in found.items()
    ]
    return cut, nodes.select(chosen == -2)


def both_private(records: CodedRecords, guard: Guard, halves: Halves) -> Flags:
    """Tell for which nodes both children are private; sides that are too small are not asked."""
    sizes = halves.nodes.sizes
    good = (halves.left >= guard.smallest) & (sizes - halves.left >= guard.smallest)
    if good.any():
        children = halves.select(good).children()
        private = guard.private(records, children.rows, children.starts)
        good[good] = private.reshape(-1, 2).all(axis=1)
    return good
