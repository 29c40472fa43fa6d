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

from quiltwork.tables.distinct import starts_of
from quiltwork.tables.partitioning.best_cuts import AxisCuts, every_cut
from quiltwork.tables.partitioning.coded_records import CodedRecords, Counts, Flags
from quiltwork.tables.partitioning.mondrian import Split, root_node, widest_first
from quiltwork.tables.partitioning.nodes import Halves, Nodes, halve, joined

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
    found: list[Refusal] = []

    def made(halves: Halves) -> Flags:
        """Tell which cuts were made; note those that sensitive values refused."""
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
            np.bincount(at[met & flags], minlength=len(sizes)) > 0
            for flags in ((left > 0) & (left < here), left == here, left == 0)
        )
        enough = np.minimum(halves.left, sizes - halves.left) >= level.least
        for one in np.flatnonzero(enough & parted).tolist():
            part = slice(starts[one], starts[one] + sizes[one])
            safe = (level.monotonic and bool(w[one]) for w in (only_left, only_right))
            found.append(_sides(rows[part], goes_left[part], *safe))
        return np.asarray(enough & ~parted)

    nodes = level.nodes
    cut, pending = widest_first(level.records, nodes, made)
    return found, joined([nodes.select(pending[:0]), *cut]), nodes.select(pending)


def _by_loss(level: _Level) -> tuple[list[Refusal], Nodes, Nodes]:
    """Follow one depth of cuts by loss: the least first, of equal ones the first.

    The cuts of all quasi-identifiers stand next to each other: tables are node × cut, `axis` and
    `place` say of each cut along which quasi-identifier it lies and which one it is there.
    """
    nodes, every = level.nodes, list(every_cut(level.records, level.nodes))
    widths = [cuts.left.shape[1] for cuts in every]
    axis = np.repeat(np.arange(len(every)), widths)
    place = np.arange(len(axis)) - np.repeat(starts_of(np.array(widths)), widths)
    loss, last = (np.hstack([getattr(one, name) for one in every]) for name in ("loss", "last"))
    asked = zip(*(_asked(level, cuts) for cuts in every), strict=True)
    tried, parts, whole_left, whole_right = map(np.hstack, asked)
    made = np.hstack([np.where(tried & ~parts, loss, np.inf), np.full((nodes.count, 1), np.inf)])
    first = made.argmin(axis=1)
    best = made[np.arange(nodes.count), first][:, None]
    earlier = (loss < best) | ((loss == best) & (np.arange(len(axis)) < first[:, None]))
    node, cut = np.nonzero(tried & parts & earlier)
    found: list[Refusal] = []
    for at in np.lexsort((cut, node, axis[cut])).tolist():
        n, c = node[at], cut[at]
        part = slice(nodes.starts[n], nodes.starts[n] + nodes.sizes[n])
        goes_left = every[axis[c]].bin_of[part] <= place[c]
        safe = bool(whole_left[n, c]), bool(whole_right[n, c])
        found.append(_sides(nodes.rows[part], goes_left, *safe))
    chosen = np.isfinite(best[:, 0])
    some, first = nodes.select(chosen), first[chosen]
    if not some.count:
        return found, some, nodes
    codes = level.records.codes[np.repeat(axis[first], some.sizes), some.rows]
    goes_left = codes <= np.repeat(last[chosen, first], some.sizes)
    return found, halve(some, goes_left).children(), nodes.select(~chosen)


def _asked(level: _Level, cuts: AxisCuts) -> tuple[Flags, Flags, Flags, Flags]:
    """Tell which cuts were tried, part a group, leave a whole one on the left, and on the right."""
    nodes, group, (count, number) = level.nodes, level.groups[level.nodes.rows], cuts.left.shape
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
    return new & enough, parts, whole_left, begun[:, :-1] < begun[:, -1:]


def _upto(node: Counts, place: Counts, shape: tuple[int, int]) -> NDArray[Any]:
    """Count for each node how many places lie at or before each cut."""
    counted = np.bincount(node * shape[1] + place, minlength=shape[0] * shape[1])
    return np.cumsum(counted.reshape(shape), axis=1)
