"""Where to cut so that least is lost: every position of every quasi-identifier at once.

The loss of a node is records × the sum of its normalized widths. For each quasi-identifier the
codes are counted per node (in at most `BINS` bins), and running minima and maxima from both ends
give the box on either side of every cut. Cost: O(quasi-identifiers² · (rows + nodes · bins)) per
level.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from quiltwork.tables.partitioning.coded_records import CodedRecords
from quiltwork.tables.partitioning.cut_rule import Counts, Reals, below_common_label
from quiltwork.tables.partitioning.nodes import Nodes

BINS = 128
_NEVER = np.inf


@dataclass(frozen=True, eq=False)
class BestCuts:
    """The best cut of each node along each quasi-identifier.

    Attributes:
        loss: quasi-identifier × node, what both sides lose together; infinite if there is no cut.
        last: likewise, the last code of the left side.
    """

    loss: Reals
    last: Counts


@dataclass(frozen=True, eq=False)
class _Bins:
    """The rows of all nodes, gathered by (node, bin of one quasi-identifier).

    Attributes:
        order: puts rows of one cell next to each other.
        first: where each occupied cell begins in that order.
        cells: the occupied cells, node · width + bin.
        width: bins per node.
    """

    order: Counts
    first: Counts
    cells: Counts
    width: int


def best_cuts(records: CodedRecords, nodes: Nodes, least: Counts, values: int) -> BestCuts:
    """Find for each node and quasi-identifier the cut after which least is lost.

    Only cuts with at least `least` rows and `values` sensitive values on either side count.
    """
    codes = [column[nodes.rows] for column in records.codes]
    sensitive = records.sensitive[nodes.rows]
    found = [
        _along(records, nodes, codes, sensitive, axis, least, values) for axis in range(len(codes))
    ]
    return BestCuts(np.stack([loss for loss, _ in found]), np.stack([last for _, last in found]))


def _along(
    records: CodedRecords,
    nodes: Nodes,
    codes: list[NDArray[Any]],
    sensitive: NDArray[Any],
    axis: int,
    least: Counts,
    values: int,
) -> tuple[Reals, Counts]:
    """Return what the best cut of each node along one axis loses, and the last code on its left.

    Tables are node × cut, where cut c lies after bin c: bins 0..c are left, the others right.
    Running extremes from both ends give the boxes of the two sides in every quasi-identifier.
    """
    count, sizes = nodes.count, nodes.sizes
    bin_of, width = _binned(records, nodes, codes[axis], axis)
    bins = _gathered(nodes, bin_of, width)
    rows_in = np.zeros(count * width, dtype=np.int64)
    rows_in[bins.cells] = np.diff(bins.first, append=len(bins.order))
    left = np.cumsum(rows_in.reshape(count, width), axis=1)[:, :-1]
    right = sizes[:, None] - left
    loss = np.zeros((count, width - 1))
    highest = np.zeros((count, width - 1), dtype=np.int64)
    for place, column in zip(records.places, codes, strict=True):
        low, high = _extremes(column, bins, count)
        top, bottom = np.maximum.accumulate(high, axis=1), np.minimum.accumulate(low, axis=1)
        loss += left * _extent(place, bottom[:, :-1], top[:, :-1])
        if column is codes[axis]:
            highest = top[:, :-1].astype(np.int64)
        top = np.maximum.accumulate(high[:, ::-1], axis=1)[:, ::-1]
        bottom = np.minimum.accumulate(low[:, ::-1], axis=1)[:, ::-1]
        loss += right * _extent(place, bottom[:, 1:], top[:, 1:])
    allowed = (left >= least[:, None]) & (right >= least[:, None])
    if values > 1:
        allowed &= _diverse(records, nodes, sensitive, bin_of, width, values)
    loss[~allowed] = _NEVER
    best = loss.argmin(axis=1) if width > 1 else np.zeros(count, dtype=np.int64)
    at = np.arange(count)
    if width == 1:
        return np.full(count, _NEVER), best
    return loss[at, best], highest[at, best]


def _binned(
    records: CodedRecords, nodes: Nodes, codes: NDArray[Any], axis: int
) -> tuple[NDArray[np.int32], int]:
    """Return each row's bin: its code, the block of its hierarchy, or one of `BINS` equal parts."""
    size = len(records.places[axis])
    blocks = records.trees[axis]
    if blocks is not None:
        low = np.minimum.reduceat(codes, nodes.starts)
        level = below_common_label(blocks, low, np.maximum.reduceat(codes, nodes.starts))
        block = blocks[np.repeat(level, nodes.sizes), codes]
        within = block - np.repeat(blocks[level, low], nodes.sizes)
        return within.astype(np.int32), int(within.max()) + 1
    if size <= BINS:
        return codes.astype(np.int32), size
    where = records.places[axis][codes]
    low = np.minimum.reduceat(where, nodes.starts)
    span = np.maximum.reduceat(where, nodes.starts) - low
    scale = (BINS - 1) / np.where(span > 0, span, 1.0)
    sizes = nodes.sizes
    return ((where - np.repeat(low, sizes)) * np.repeat(scale, sizes)).astype(np.int32), BINS


def _gathered(nodes: Nodes, bin_of: NDArray[np.int32], width: int) -> _Bins:
    base = np.repeat(np.arange(nodes.count) * width, nodes.sizes)
    bits = len(bin_of).bit_length()
    both = ((base + bin_of) << bits) | np.arange(len(bin_of))  # one sort of both is fastest
    both.sort()
    order, key = both & ((1 << bits) - 1), both >> bits
    first = np.flatnonzero(np.concatenate(([True], key[1:] != key[:-1])))
    return _Bins(order, first, key[first], width)


def _extremes(column: NDArray[Any], bins: _Bins, count: int) -> tuple[NDArray[Any], NDArray[Any]]:
    """Return the least and largest code in every cell; empty cells have high = −1 < low."""
    taken = column[bins.order]
    low = np.full(count * bins.width, np.iinfo(column.dtype).max, dtype=column.dtype)
    high = np.full(count * bins.width, -1, dtype=column.dtype)
    low[bins.cells] = np.minimum.reduceat(taken, bins.first)
    high[bins.cells] = np.maximum.reduceat(taken, bins.first)
    return low.reshape(count, -1), high.reshape(count, -1)


def _extent(place: Reals, low: NDArray[Any], high: NDArray[Any]) -> Reals:
    """Return the width between two codes; sides without rows count 0 rows, so any width will do."""
    extent: Reals = place[high] - place[np.minimum(low, len(place) - 1)]
    return extent


def _diverse(
    records: CodedRecords,
    nodes: Nodes,
    sensitive: NDArray[Any],
    bin_of: NDArray[np.int32],
    width: int,
    values: int,
) -> NDArray[np.bool_]:
    """Tell for which cuts both sides have enough sensitive values.

    A value is on the left from its first bin on, and on the right up to before its last.
    """
    count, many = nodes.count, records.values
    if many < values:
        return np.zeros((count, width - 1), dtype=bool)
    key = np.repeat(np.arange(count, dtype=np.int64) * many, nodes.sizes) + sensitive
    first = np.full(count * many, width, dtype=np.int32)
    last = np.full(count * many, -1, dtype=np.int32)
    np.minimum.at(first, key, bin_of)
    np.maximum.at(last, key, bin_of)
    enough = np.partition(first.reshape(count, many), values - 1, axis=1)[:, values - 1]
    until = np.partition(last.reshape(count, many), many - values, axis=1)[:, many - values]
    cut = np.arange(width - 1)
    allowed: NDArray[np.bool_] = (cut >= enough[:, None]) & (cut < until[:, None])
    return allowed
