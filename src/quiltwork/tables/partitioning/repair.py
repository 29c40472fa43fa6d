"""Local repair of a partition: groups just too small to be cut get records from groups with some to
spare, and are cut in two.

A group with fewer than twice the records that a group needs cannot be cut. If others that have
more than they need give it records that lie in its box, or next to it, it can. Each exchange must
pay: it is kept if what all boxes lose falls, or rises by less than `EXCHANGE` for each pair of
records that no longer look alike, as long as all boxes together lose at most `MOST_LOST` times as
much as before. Every group that changed is checked again, and an exchange that leaves a group
unprotected is taken back. Cost: (groups fed) × (records to spare) × quasi-identifiers per round,
within blocks of at most `BLOCK` rows.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from quiltwork.tables.distinct import runs, starts_of
from quiltwork.tables.partitioning.coded_records import CodedRecords, RowNumbers
from quiltwork.tables.partitioning.cut_rule import Counts
from quiltwork.tables.partitioning.guards import Guard
from quiltwork.tables.partitioning.mondrian import Progress
from quiltwork.tables.partitioning.nodes import Nodes

BLOCK = 1 << 16
EXCHANGE = 0.03
"""What one pair of records that look alike is worth, in records × normalized widths."""
MOST_LOST = 1.05
"""What all boxes may lose together, as a multiple of what they lost before."""
_ROUNDS = (0.9, 0.8, 0.7, 0.65, 0.6, 0.55)
"""From which share of twice the needed records on a group is fed, round by round."""
_CHOICE = 4  # candidates looked at for each record that is needed

Points = NDArray[np.float32]


def repair(
    records: CodedRecords, labels: Counts, guard: Guard, progress: Progress | None = None
) -> Counts:
    """Return better labels; groups are private before and after."""
    result = labels.copy()
    groups = int(labels.max()) + 1
    done = 0
    for block in _nodes(labels).portions(BLOCK):  # of groups from the same part of the tree
        rows = block.rows
        local = records.take(rows)
        found = np.unique(labels[rows], return_inverse=True)[1]
        most = np.inf
        for share in _ROUNDS:
            found, most = _round(local, found, guard, share, most)
        result[rows] = groups + found
        groups += int(found.max()) + 1
        done += len(rows)
        if progress is not None:
            progress(done, records.count)
    return np.unique(result, return_inverse=True)[1]


def _nodes(labels: Counts) -> Nodes:
    sizes = np.bincount(labels)
    return Nodes(np.argsort(labels, kind="stable"), starts_of(sizes))


@dataclass(frozen=True, eq=False)
class _Exchange:
    """One group, fed and cut.

    Attributes:
        group: its number.
        taken: rows it got.
        donors: the groups that they came from.
        left, right: its rows after the cut.
    """

    group: int
    taken: RowNumbers
    donors: Counts
    left: RowNumbers
    right: RowNumbers


class _Spares:
    """Rows that groups could give away, and how many each group still may.

    Rows of one group lie next to each other; `low` and `high` are the boxes of these groups.
    """

    def __init__(
        self, points: Points, nodes: Nodes, low: Points, high: Points, spare: Counts
    ) -> None:
        self.groups = np.flatnonzero(spare > 0)
        self.givers = nodes.select(self.groups)
        self.rows, self.owner = self.givers.rows, self.groups[self.givers.owners()]
        self.points = points[:, self.rows]
        self.low, self.high = low[:, self.groups], high[:, self.groups]
        self.bonus = (2 * EXCHANGE) * self.givers.sizes.astype(np.float32)
        self.spare = spare.copy()
        self.free = np.ones(len(self.rows), dtype=bool)

    def nearest(self, low: Points, high: Points, number: int, needed: int) -> Counts:
        """Return the best `number` of the rows for a box, or fewer if there are not as many.

        No row costs less than its group's box would, so that only groups are looked at whose boxes
        cost at most what the rows of the nearest ones do.
        """
        look = _CHOICE * number
        least = -self.bonus / np.float32(needed)
        for axis, (one, two) in enumerate(zip(self.low, self.high, strict=True)):
            least += np.maximum(low[axis] - two, 0)
            least += np.maximum(one - high[axis], 0)
        least[self.spare[self.groups] <= 0] = np.inf
        order = np.argsort(least, kind="stable")
        upto = int(np.searchsorted(np.cumsum(self.givers.sizes[order]), 2 * look)) + 1
        _, cost = self._costs(order[:upto], low, high, needed)
        most = np.partition(cost, look - 1)[look - 1] if 0 < look <= len(cost) else np.inf
        wanted = np.flatnonzero(np.isfinite(least) & (least <= most))
        index, cost = self._costs(wanted, low, high, needed)
        best = np.lexsort((index, cost))[:look]
        best = index[best[np.isfinite(cost[best])]]
        return best[self._within_spare(best)][:number]

    def _costs(
        self, groups: Counts, low: Points, high: Points, needed: int
    ) -> tuple[Counts, Points]:
        """Return the rows of some groups, and how far each is from a box, less what it is worth."""
        sizes = self.givers.sizes[groups]
        index = runs(self.givers.starts[groups], sizes)
        cost: Points = np.repeat(-self.bonus[groups] / np.float32(needed), sizes)
        for axis, column in enumerate(self.points):
            here = column[index]
            cost += np.maximum(low[axis] - here, 0)
            cost += np.maximum(here - high[axis], 0)
        cost[~self.free[index]] = np.inf
        return index, cost

    def _within_spare(self, chosen: Counts) -> NDArray[np.bool_]:
        """Tell which rows may be taken, in order, before their group has none to spare."""
        owner = self.owner[chosen]
        order = np.argsort(owner, kind="stable")
        ordered = owner[order]
        rank = np.empty(len(chosen), dtype=np.int64)
        rank[order] = np.arange(len(chosen)) - np.searchsorted(ordered, ordered)
        return rank < self.spare[owner]

    def take(self, chosen: Counts) -> None:
        """Mark rows as given away."""
        self.free[chosen] = False
        np.subtract.at(self.spare, self.owner[chosen], 1)


def _round(
    records: CodedRecords, labels: Counts, guard: Guard, share: float, most: float
) -> tuple[Counts, float]:
    """Return labels after one round, and what all boxes may lose, which the first round finds."""
    nodes = _nodes(labels)
    sizes = nodes.sizes
    least = guard.least(records, nodes)
    points = np.stack([place[c] for place, c in zip(records.places, records.codes, strict=True)])
    points = points.astype(np.float32)
    low = np.minimum.reduceat(points[:, nodes.rows], nodes.starts, axis=1)
    high = np.maximum.reduceat(points[:, nodes.rows], nodes.starts, axis=1)
    width = (high - low).sum(axis=0)
    lost = float((sizes * width).sum())
    most = min(most, lost * MOST_LOST)
    room = most - lost
    fed = (sizes >= share * 2 * least) & (width > 0)
    spares = _Spares(points, nodes, low, high, np.where(fed, 0, np.maximum(sizes - least, 0)))
    exchanges = []
    for group in np.flatnonzero(fed)[np.argsort(-sizes[fed], kind="stable")].tolist():
        short = max(0, 2 * int(least[group]) - int(sizes[group]))
        chosen = spares.nearest(low[:, group], high[:, group], short, int(least[group]))
        if len(chosen) < short:
            continue
        own = nodes.rows[nodes.starts[group] : nodes.starts[group] + sizes[group]]
        taken, donors = spares.rows[chosen], spares.owner[chosen]
        left, right, loss = _cut_in_middle(points, np.concatenate((own, taken)))
        before = float(sizes[group] * width[group] + width[donors].sum())
        apart = sizes[group] ** 2 - len(left) ** 2 - len(right) ** 2 + 2 * sizes[donors].sum()
        if loss > before + max(0.0, min(room, EXCHANGE * float(apart))):
            continue
        pair = np.array([0, len(left)])
        if guard.private(records, np.concatenate((left, right)), pair).all():
            spares.take(chosen)
            room += before - loss
            exchanges.append(_Exchange(group, taken, donors, left, right))
    return _applied(records, labels, guard, exchanges), most


def _cut_in_middle(points: Points, rows: RowNumbers) -> tuple[RowNumbers, RowNumbers, float]:
    """Cut rows into halves along the quasi-identifier where least is lost."""
    here = points[:, rows]
    half = len(rows) // 2
    order = np.argsort(here, axis=1, kind="stable")
    sides = here[:, order]  # quasi-identifier × ordered by × row
    left, right = sides[:, :, :half], sides[:, :, half:]
    lost = half * np.ptp(left, axis=2).sum(axis=0)
    lost += (len(rows) - half) * np.ptp(right, axis=2).sum(axis=0)
    best = int(lost.argmin())
    chosen = rows[order[best]]
    return chosen[:half], chosen[half:], float(lost[best])


def _applied(
    records: CodedRecords, labels: Counts, guard: Guard, exchanges: list[_Exchange]
) -> Counts:
    """Carry out the exchanges, except those after which somebody's group is not private."""
    groups = int(labels.max()) + 1
    while True:
        result = labels.copy()
        for number, exchange in enumerate(exchanges):
            result[exchange.left] = exchange.group
            result[exchange.right] = groups + number
        nodes = _nodes(result)
        bad = np.flatnonzero(~guard.private(records, nodes.rows, nodes.starts))
        if not len(bad):
            return result
        exchanges = [e for e in exchanges if not np.isin(e.donors, bad).any()]
