"""Mondrian, level by level: all nodes of a level are cut at once, in passes over arrays.

A node is cut along its widest quasi-identifier (normalized range) if both sides are m-private, else
along the next widest, and so on. A provider split, where allowed, is tried last: it permits finer
cuts later but narrows nothing itself. Large tables are processed in batches that fit a processor's
cache. Cost: O(rows · quasi-identifiers) per level, about log2(rows/k) levels.
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
    concatenate,
    halve,
    halve_along_axis,
    halve_by_provider,
)

Progress: TypeAlias = Callable[[int, int], None]
"""Called with the number of rows done and of all rows."""
Split: TypeAlias = Literal["range", "loss", "fitness"]

BATCH = 1 << 17
"""Rows that are partitioned together, so that they stay in a processor's cache."""


@dataclass(frozen=True)
class CutRules:
    """The rules by which nodes are cut.

    Attributes:
        provider_splits: whether a node may also be split between providers.
        split: "range" (the widest quasi-identifier first), "fitness" (the best fitness score, as in
            the paper) or "loss" (the cut after which the two boxes lose least).
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
    """Return the group of each row; the whole table must be m-private."""
    labels = no_labels(records)
    groups = done = 0
    for leaves in leaves_of(records, root_node(records), guard, rules, batch):
        labels[leaves.rows] = groups + leaves.node_of_row()
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
    """Cut private nodes as far as possible; yield the leaves in portions.

    Nodes that fit a batch are copied first, so that their records are contiguous in memory.
    """
    while nodes.count:
        fits_batch = nodes.sizes <= batch
        for portion in nodes.select(fits_batch).portions(batch):
            # Copies of a batch fit the cache, which makes the later levels faster.
            local = records.take(portion.rows)
            start = Nodes(np.arange(local.count), portion.starts)
            for leaves in _descend(local, start, guard, rules):
                yield Nodes(portion.rows[leaves.rows], leaves.starts)
        leaves, nodes = cut_level(records, nodes.select(~fits_batch), guard, rules)
        if leaves.count:
            yield leaves


def _descend(records: CodedRecords, nodes: Nodes, guard: Guard, rules: CutRules) -> Iterator[Nodes]:
    """Cut nodes of one batch, level by level; yield the leaves."""
    while nodes.count:
        leaves, nodes = cut_level(records, nodes, guard, rules)
        if leaves.count:
            yield leaves


def cut_level(
    records: CodedRecords, nodes: Nodes, guard: Guard, rules: CutRules
) -> tuple[Nodes, Nodes]:
    """Cut every node that can be cut; return the leaves, and the children of the others.

    The cut of a node does not depend on the other nodes.
    """
    # Smaller nodes cannot have two private children.
    large = nodes.sizes >= 2 * guard.smallest
    leaves, nodes = nodes.select(~large), nodes.select(large)
    if not nodes.count:
        return leaves, nodes
    choose = {"range": _by_range, "fitness": _by_fitness, "loss": _by_loss}[rules.split]
    children, stuck = choose(records, nodes, guard, rules)
    return concatenate([leaves, stuck]), concatenate([nodes.select(large[:0]), *children])


Along: TypeAlias = Callable[[Counts, Counts], Halves]
"""Halves the nodes with the given indices, each along its own quasi-identifier."""
Good: TypeAlias = Callable[[Halves], Flags]
"""Returns which of the halved nodes may be cut so."""


def _first_good(
    nodes: Nodes, order: Counts, possible: Flags, along: Along, good_of: Good
) -> tuple[list[Nodes], Counts]:
    """Try the cuts of each node in its order until one is accepted.

    `order` is rank × node, `possible` quasi-identifier × node. Returns the children, and the
    indices of the nodes without an accepted cut.
    """
    cut: list[Nodes] = []
    pending = np.arange(nodes.count)
    for ranked in order:
        axis = ranked[pending]
        is_possible = possible[axis, pending]
        trying, axis = pending[is_possible], axis[is_possible]
        # Impossible cuts are sorted last, so all later ones are impossible too.
        if not len(trying):
            break
        halves = along(trying, axis)
        accepted = good_of(halves)
        cut.append(halves.select(accepted).children())
        pending = np.setdiff1d(pending, trying[accepted], assume_unique=True)
    return cut, pending


def widest_first(
    records: CodedRecords, nodes: Nodes, good_of: Good, relaxed: bool = False
) -> tuple[list[Nodes], Counts]:
    """Try the most balanced cut of every quasi-identifier, the widest first; see `_first_good`."""
    low, high = bounds(records, nodes)
    order, extent = records.axes.widest_first(low, high)

    def along(chosen: Counts, axis: Counts) -> Halves:
        ends = low[axis, chosen], high[axis, chosen]
        return halve_along_axis(records, nodes.select(chosen), axis, *ends, relaxed)

    return _first_good(nodes, order, extent > 0, along, good_of)


def _by_range(
    records: CodedRecords, nodes: Nodes, guard: Guard, rules: CutRules
) -> tuple[list[Nodes], Nodes]:
    """Cut along the widest quasi-identifier first, then between providers."""
    accepts = partial(both_private, records, guard)
    cut, pending = widest_first(records, nodes, accepts, rules.relaxed)
    uncut = nodes.select(pending)
    if rules.provider_splits and uncut.count:
        children, uncut = cut_by_provider(records, uncut, guard)
        cut.append(children)
    return cut, uncut


def cut_by_provider(records: CodedRecords, nodes: Nodes, guard: Guard) -> tuple[Nodes, Nodes]:
    """Split nodes between providers if both sides are private; return children and uncut nodes."""
    has_several, halves = halve_by_provider(records, nodes)
    accepted = both_private(records, guard, halves)
    uncut = np.ones(nodes.count, dtype=bool)
    uncut[np.flatnonzero(has_several)[accepted]] = False
    return halves.select(accepted).children(), nodes.select(uncut)


def _by_loss(
    records: CodedRecords, nodes: Nodes, guard: Guard, rules: CutRules
) -> tuple[list[Nodes], Nodes]:
    """Try the best cut of every quasi-identifier, the one with the smallest loss first."""
    least = guard.least(records, nodes)
    loss, last = best_cuts(records, nodes, least, guard.values, rules.relaxed)
    order = np.argsort(loss, axis=0, kind="stable")

    def along(selected: Counts, axis: Counts) -> Halves:
        chosen = nodes.select(selected)
        codes = records.codes[np.repeat(axis, chosen.sizes), chosen.rows]
        return halve(chosen, codes <= np.repeat(last[axis, selected], chosen.sizes))

    accepts = partial(both_private, records, guard)
    cut, pending = _first_good(nodes, order, np.isfinite(loss), along, accepts)
    uncut = nodes.select(pending)
    if uncut.count:  # the most balanced cut may be private where no best cut is
        # Only where the estimate, not the constraint, may have excluded balanced cuts.
        hopeful = guard.least(records, uncut) > guard.smallest
        children, stuck = _by_range(records, uncut.select(hopeful), guard, rules)
        cut += children
        uncut = concatenate([uncut.select(~hopeful), stuck])
    return cut, uncut


def _by_fitness(
    records: CodedRecords, nodes: Nodes, guard: Guard, rules: CutRules
) -> tuple[list[Nodes], Nodes]:
    """Of the cuts with two private sides, take the one whose worse side has the best score."""
    low, high = bounds(records, nodes)
    best = np.zeros(nodes.count)
    # −2: no cut; −1 stands for a split between providers.
    chosen = np.full(nodes.count, -2)
    cut_along: dict[int, tuple[Counts, Nodes]] = {}  # axis (−1: providers) → indices and children
    for axis in [*range(len(low)), *([-1] if rules.provider_splits else [])]:
        if axis < 0:
            has_several, halves = halve_by_provider(records, nodes)
            index = np.flatnonzero(has_several)
        else:
            index = np.flatnonzero(low[axis] < high[axis])
            ends = low[axis, index], high[axis, index]
            along = np.full(len(index), axis)
            halves = halve_along_axis(records, nodes.select(index), along, *ends, rules.relaxed)
        accepted = both_private(records, guard, halves)
        index, children = index[accepted], halves.select(accepted).children()
        if not len(index):
            continue
        score = guard.scores(records, children.rows, children.starts).reshape(-1, 2).min(axis=1)
        better = score > best[index]
        best[index[better]], chosen[index[better]] = score[better], axis
        cut_along[axis] = index, children
    cut = [
        children.select(np.repeat(chosen[index] == axis, 2))
        for axis, (index, children) in cut_along.items()
    ]
    return cut, nodes.select(chosen == -2)


def both_private(records: CodedRecords, guard: Guard, halves: Halves) -> Flags:
    """Return for which nodes both children are private; too small sides are not verified."""
    sizes = halves.nodes.sizes
    accepted = (halves.left >= guard.smallest) & (sizes - halves.left >= guard.smallest)
    if accepted.any():
        children = halves.select(accepted).children()
        private = guard.private(records, children.rows, children.starts)
        accepted[accepted] = private.reshape(-1, 2).all(axis=1)
    return accepted
