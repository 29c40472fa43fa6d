"""The cut of each node that loses least: all positions of all quasi-identifiers at once.

The loss of a node is its number of records × the sum of the square roots of its normalized widths.
With roots, narrowing an already narrow box counts more than narrowing a wide one, as it does for
counts. For labels see `Axes.loss`. For each quasi-identifier the codes are counted per node (in at
most `BINS` bins); running minima and maxima from both ends give the boxes on either side of every
cut. Cost: O(quasi-identifiers² · (rows + nodes · bins)) per level.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from quiltwork.tables.partitioning.coded_records import (
    CodedRecords,
    Counts,
    Reals,
    below_common_label,
)
from quiltwork.tables.partitioning.nodes import Nodes

BINS = 128  # cuts per quasi-identifier and node; more cost time and hardly lower the loss
_NEVER = np.inf


@dataclass(frozen=True, eq=False)
class AxisCuts:
    """Every cut of each node along one quasi-identifier; tables are node × cut.

    Attributes:
        bin_of: the bin of each row; the left side of cut c has the bins 0..c.
        left: the number of rows on the left.
        loss: the loss of both sides together.
        last: the last code on the left.
    """

    bin_of: NDArray[np.int32]
    left: Counts
    loss: Reals
    last: Counts


def every_cut(records: CodedRecords, nodes: Nodes, parted: bool = False) -> Iterator[AxisCuts]:
    """Yield all cuts of the nodes, one quasi-identifier after the other."""
    codes = [column[nodes.rows] for column in records.codes]
    # Equal records have equal boxes: one of them is enough for extremes.
    representatives = slice(None) if parted else np.flatnonzero(records.first[nodes.rows])
    covered = [column[representatives] for column in codes]
    for axis, column in enumerate(codes):
        bin_of, width = _binned(records, nodes, column, axis)
        cell = np.repeat(np.arange(nodes.count) * width, nodes.sizes) + bin_of
        rows = np.bincount(cell, minlength=nodes.count * width).reshape(nodes.count, width)
        left = np.cumsum(rows, axis=1)[:, :-1]
        loss, last = _losses(records, covered, cell[representatives], left, nodes.sizes, axis)
        yield AxisCuts(bin_of, left, loss, last)


def best_cuts(
    records: CodedRecords,
    nodes: Nodes,
    least: Counts,
    values: int,
    parted: bool = False,
) -> tuple[Reals, Counts]:
    """Return the cut of each node and quasi-identifier after which the loss is smallest.

    The result is two tables quasi-identifier × node: the loss of both sides, infinite if there is
    no cut, and the last code of the left side.

    Only cuts with at least `least` rows and `values` sensitive values on either side count.
    `parted` says that records with equal values may be in different nodes; otherwise one
    representative of equal records determines what its box must cover.
    """
    sensitive = records.sensitive[nodes.rows]
    cuts_by_axis = []
    for cuts in every_cut(records, nodes, parted):
        allowed = np.minimum(cuts.left, nodes.sizes[:, None] - cuts.left) >= least[:, None]
        if values > 1:
            width = cuts.left.shape[1] + 1
            allowed &= _diverse(records, nodes, sensitive, cuts.bin_of, width, values)
        cuts.loss[~allowed] = _NEVER
        cuts_by_axis.append(_least(cuts.loss, cuts.last))
    return np.stack([loss for loss, _ in cuts_by_axis]), np.stack(
        [last for _, last in cuts_by_axis]
    )


def _least(loss: Reals, last: Counts) -> tuple[Reals, Counts]:
    """Return the smallest loss of each node, and the last code on the left of that cut."""
    if not loss.shape[1]:
        return np.full(len(loss), _NEVER), np.zeros(len(loss), dtype=np.int64)
    at = np.arange(len(loss)), loss.argmin(axis=1)
    return loss[at], last[at]


def _losses(
    records: CodedRecords,
    codes: list[NDArray[Any]],
    cell: Counts,
    left: Counts,
    sizes: Counts,
    axis: int,
) -> tuple[Reals, Counts]:
    """Return the loss of every cut of each node along one axis, and the last code on its left.

    Tables are node × cut; cut c has bins 0..c on its left. Running extremes from both ends give the
    boxes of the two sides in every quasi-identifier.
    """
    shape, axes = (len(left), left.shape[1] + 1), records.axes
    right = sizes[:, None] - left
    loss, highest = np.zeros(left.shape), np.zeros(left.shape, dtype=np.int64)
    for number, column in enumerate(codes):
        low, high = _extremes(column, cell, shape)
        # Extremes of bins 0..c: the box on the left of cut c.
        top, bottom = np.maximum.accumulate(high, axis=1), np.minimum.accumulate(low, axis=1)
        loss += left * axes.loss(number, bottom[:, :-1], top[:, :-1])
        if number == axis:
            highest = top[:, :-1].astype(np.int64)
        # The same from the other end: the box on the right.
        top = np.maximum.accumulate(high[:, ::-1], axis=1)[:, ::-1]
        bottom = np.minimum.accumulate(low[:, ::-1], axis=1)[:, ::-1]
        loss += right * axes.loss(number, bottom[:, 1:], top[:, 1:])
    return loss, highest


def _binned(
    records: CodedRecords, nodes: Nodes, codes: NDArray[Any], axis: int
) -> tuple[NDArray[np.int32], int]:
    """Return each row's bin: its code, a block of few enough, or one of `BINS` intervals."""
    positions, blocks = records.axes.positions[axis], records.axes.trees[axis]
    size = len(positions)
    if blocks is not None:
        low, high = (end.reduceat(codes, nodes.starts) for end in (np.minimum, np.maximum))
        is_few = blocks[:, high] - blocks[:, low] < BINS
        level = np.minimum(is_few.argmax(axis=0), below_common_label(blocks, low, high))
        block = blocks[np.repeat(level, nodes.sizes), codes]
        within = block - np.repeat(blocks[level, low], nodes.sizes)
        return within.astype(np.int32), int(within.max()) + 1
    # With few codes, every code is its own bin and no cut is lost.
    if size <= BINS:
        return codes.astype(np.int32), size
    position = positions[codes]
    low = np.minimum.reduceat(position, nodes.starts)
    span = np.maximum.reduceat(position, nodes.starts) - low
    scale = (BINS - 1) / np.where(span > 0, span, 1.0)
    sizes = nodes.sizes
    return ((position - np.repeat(low, sizes)) * np.repeat(scale, sizes)).astype(np.int32), BINS


def _extremes(
    column: NDArray[Any], cell: Counts, shape: tuple[int, int]
) -> tuple[NDArray[Any], NDArray[Any]]:
    """Return the least and largest code in every cell; empty cells have high = −1 < low."""
    low = np.full(shape, np.iinfo(column.dtype).max, dtype=column.dtype)
    high = np.full(shape, -1, dtype=column.dtype)
    np.minimum.at(low.reshape(-1), cell, column)  # measured faster than sorting rows by cell
    np.maximum.at(high.reshape(-1), cell, column)
    return low, high


def _diverse(
    records: CodedRecords,
    nodes: Nodes,
    sensitive: NDArray[Any],
    bin_of: NDArray[np.int32],
    width: int,
    values: int,
) -> NDArray[np.bool_]:
    """Return for which cuts both sides have enough sensitive values.

    A value is on the left from its first bin on, and on the right before its last bin.
    """
    count, classes = nodes.count, records.values
    if classes < values:
        return np.zeros((count, width - 1), dtype=bool)
    key = np.repeat(np.arange(count, dtype=np.int64) * classes, nodes.sizes) + sensitive
    if int(sensitive.max()) >= classes:  # records without a value
        has_value = sensitive < classes
        key, bin_of = key[has_value], bin_of[has_value]
    first = np.full(count * classes, width, dtype=np.int32)
    last = np.full(count * classes, -1, dtype=np.int32)
    np.minimum.at(first, key, bin_of)
    np.maximum.at(last, key, bin_of)
    first_cut = np.partition(first.reshape(count, classes), values - 1, axis=1)[:, values - 1]
    end_cut = np.partition(last.reshape(count, classes), classes - values, axis=1)[
        :, classes - values
    ]
    cut = np.arange(width - 1)
    allowed: NDArray[np.bool_] = (cut >= first_cut[:, None]) & (cut < end_cut[:, None])
    return allowed
