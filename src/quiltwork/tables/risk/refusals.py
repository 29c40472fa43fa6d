"""The cuts that an algorithm refused, read off the table it published.

Whoever knows everybody's quasi-identifiers follows the tree of cuts from its root without seeing a
sensitive value: the cuts that are tried at a node, and their order, depend on quasi-identifiers
alone. A cut that leaves every published group whole was made, since unions of groups that fulfil a
generalization monotonic constraint fulfil it; one that parts a group was refused. If both its sides
have records enough, one of them fails because of its sensitive values. Under an EG monotonic
constraint a side with a whole group does not.

Theorem: docs/theory/anonymization.md
Cost: as the anonymization.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from quiltwork.tables.partitioning.best_cuts import AxisCuts, every_cut
from quiltwork.tables.partitioning.coded_records import CodedRecords, Counts, Flags
from quiltwork.tables.partitioning.mondrian import Split, root_node
from quiltwork.tables.partitioning.nodes import Nodes, bounds, halve, halved, joined

Refusal = tuple[Counts, ...]
"""The rows of the sides, one or two, of which one fails the constraint."""


class Unexplained(Exception):  # noqa: N818  (no error: an answer)
    """These groups are not made by such cuts: groups with equal texts were put together."""


@dataclass(frozen=True, eq=False)
class _Level:
    """Nodes of one depth, and the published group of each row."""

    records: CodedRecords
    nodes: Nodes
    groups: Counts
    number: int
    least: int
    monotonic: bool

    @property
    def group(self) -> Counts:
        """The published group of each row, in the order of the nodes."""
        return self.groups[self.nodes.rows]


def refusals(
    records: CodedRecords, groups: Counts, least: int, split: Split, monotonic: bool = True
) -> tuple[Refusal, ...]:
    """Return every cut of the whole tree that only sensitive values can have refused.

    `groups` is the published group of each row, `least` how many records a group needs at least;
    `monotonic` says whether more records never break the constraint.

    Raises:
        Unexplained: if no tree of such cuts has these groups.
    """
    number = int(groups.max()) + 1
    nodes, found = root_node(records), []
    while nodes.count:
        small = nodes.sizes < 2 * least
        _check_leaves(groups, nodes.select(small))
        nodes = nodes.select(~small)
        if not nodes.count:
            break
        level = _Level(records, nodes, groups.astype(np.int64), number, least, monotonic)
        refused, nodes, leaves = (_by_range if split == "range" else _by_loss)(level)
        found += refused
        _check_leaves(groups, leaves)
    return tuple(found)


def _check_leaves(groups: Counts, leaves: Nodes) -> None:
    if leaves.count:
        group = groups[leaves.rows]
        low, high = (end.reduceat(group, leaves.starts) for end in (np.minimum, np.maximum))
        if (low != high).any():
            raise Unexplained


def _sides(rows: Counts, left: Flags, whole_left: bool, whole_right: bool) -> Refusal:
    """Return the sides that may fail: those without a whole group that keeps them from it."""
    if whole_left and whole_right:
        raise Unexplained
    sides = ((rows[left], whole_left), (rows[~left], whole_right))
    return tuple(side.astype(np.int64) for side, safe in sides if not safe)


def _by_range(level: _Level) -> tuple[list[Refusal], Nodes, Nodes]:
    """Follow one depth of Mondrian's cuts: the widest quasi-identifier first."""
    records, nodes = level.records, level.nodes
    low, high = bounds(records, nodes)
    order, extent = records.axes.widest_first(low, high)
    found: list[Refusal] = []
    cut: list[Nodes] = []
    pending = np.arange(nodes.count)
    for ranked in order:
        axis = ranked[pending]
        wide = extent[axis, pending] > 0
        trying, axis = pending[wide], axis[wide]
        if not len(trying):
            break
        ends = low[axis, trying], high[axis, trying]
        halves = halved(records, nodes.select(trying), axis, *ends)
        rows, starts, sizes = halves.nodes.rows, halves.nodes.starts, halves.nodes.sizes
        owner = halves.nodes.owners()
        goes_left = np.arange(len(rows)) - starts[owner] < halves.left[owner]
        group = level.groups[rows]
        here = np.bincount(group, minlength=level.number)
        left = np.bincount(group[goes_left], minlength=level.number)
        at = np.full(level.number, -1)
        at[group] = owner
        met = here > 0
        parted, only_left, only_right = (
            np.bincount(at[met & flags], minlength=len(trying)) > 0
            for flags in ((left > 0) & (left < here), left == here, left == 0)
        )
        enough = np.minimum(halves.left, sizes - halves.left) >= level.least
        for one in np.flatnonzero(enough & parted).tolist():
            part = slice(starts[one], starts[one] + sizes[one])
            safe = (level.monotonic and bool(w[one]) for w in (only_left, only_right))
            found.append(_sides(rows[part], goes_left[part], *safe))
        good = enough & ~parted
        cut.append(halves.select(good).children())
        pending = np.setdiff1d(pending, trying[good], assume_unique=True)
    return found, joined([nodes.select(np.zeros(0, dtype=np.int64)), *cut]), nodes.select(pending)


@dataclass(frozen=True, eq=False)
class _Axis:
    """The cuts of a level along one quasi-identifier; tables are node × cut."""

    cuts: AxisCuts
    tried: Flags
    parts: Flags
    whole_left: Flags
    whole_right: Flags


def _by_loss(level: _Level) -> tuple[list[Refusal], Nodes, Nodes]:
    """Follow one depth of cuts by loss: the least first, of equal ones the first."""
    nodes = level.nodes
    every = [_axis(level, cuts) for cuts in every_cut(level.records, nodes)]
    best = np.full(nodes.count, np.inf)
    axis_of = np.full(nodes.count, len(every))
    place_of = np.zeros(nodes.count, dtype=np.int64)
    last = np.zeros(nodes.count, dtype=np.int64)
    for number, axis in enumerate(every):
        if not axis.tried.shape[1]:
            continue
        loss = np.where(axis.tried & ~axis.parts, axis.cuts.loss, np.inf)
        place = loss.argmin(axis=1)
        least = loss[np.arange(nodes.count), place]
        better = least < best
        best[better], axis_of[better], place_of[better] = least[better], number, place[better]
        last[better] = axis.cuts.last[np.arange(nodes.count), place][better]
    found: list[Refusal] = []
    for number, axis in enumerate(every):
        cut = np.arange(axis.tried.shape[1])
        before = (axis_of[:, None] > number) | (
            (axis_of[:, None] == number) & (cut < place_of[:, None])
        )
        loss = axis.cuts.loss
        earlier = (loss < best[:, None]) | ((loss == best[:, None]) & before)
        for node, c in zip(*np.nonzero(axis.tried & axis.parts & earlier), strict=True):
            part = slice(nodes.starts[node], nodes.starts[node] + nodes.sizes[node])
            goes_left = axis.cuts.bin_of[part] <= c
            safe = bool(axis.whole_left[node, c]), bool(axis.whole_right[node, c])
            found.append(_sides(nodes.rows[part], goes_left, *safe))
    chosen = np.isfinite(best)
    some = nodes.select(chosen)
    along = np.repeat(axis_of[chosen], some.sizes)
    codes = level.records.codes[along, some.rows] if some.count else np.zeros(0, dtype=np.int64)
    children = some
    if some.count:
        children = halve(some, codes <= np.repeat(last[chosen], some.sizes)).children()
    return found, children, nodes.select(~chosen)


def _axis(level: _Level, cuts: AxisCuts) -> _Axis:
    """Tell which cuts were tried, part a group, or leave a whole one on a side."""
    nodes, group, (count, number) = level.nodes, level.group, cuts.left.shape
    low = np.full(level.number, number + 1, dtype=np.int64)
    high = np.full(level.number, -1, dtype=np.int64)
    np.minimum.at(low, group, cuts.bin_of)
    np.maximum.at(high, group, cuts.bin_of)
    at = np.zeros(level.number, dtype=np.int64)
    at[group] = nodes.owners()
    here = np.flatnonzero(high >= 0)
    begun, ended = (_upto(at[here], end[here], (count, number + 1)) for end in (low, high))
    new = np.diff(cuts.left, axis=1, prepend=0) > 0
    enough = np.minimum(cuts.left, nodes.sizes[:, None] - cuts.left) >= level.least
    parts, whole_left = (begun > ended)[:, :-1], (ended > 0)[:, :-1]
    return _Axis(cuts, new & enough, parts, whole_left, begun[:, :-1] < begun[:, -1:])


def _upto(node: Counts, place: Counts, shape: tuple[int, int]) -> NDArray[Any]:
    """Count for each node how many places lie at or before each cut."""
    counted = np.bincount(node * shape[1] + place, minlength=shape[0] * shape[1])
    return np.cumsum(counted.reshape(shape), axis=1)
