"""Nodes cut in two by `cut_rule`, many at once: along quasi-identifiers, or between providers.

Counts of many nodes are one histogram over (node, code), or sorted keys where codes are too many
for that. Cost: a few passes over the rows.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from quiltwork.tables.partitioning.cut_rule import (
    Counts,
    Flags,
    belongs_left,
    below_common_label,
    last_on_left,
)
from quiltwork.tables.partitioning.nodes import Halves, Nodes, halve, starts_of
from quiltwork.tables.partitioning.records import Records

_BINS_PER_ROW = 4


def halved(
    records: Records,
    nodes: Nodes,
    axis: Counts,
    low: NDArray[Any],
    high: NDArray[Any],
    relaxed: bool = False,
) -> Halves:
    """Cut each node along its own quasi-identifier `axis`, whose codes go from low to high.

    Relaxed: exactly in the middle, records with the middle code going to both sides in their order.
    """
    sizes = nodes.sizes
    codes = records.codes[np.repeat(axis, sizes), nodes.rows]
    if relaxed:
        order = np.lexsort((codes, nodes.owners()))
        return Halves(Nodes(nodes.rows[order], nodes.starts), sizes // 2)
    for number, blocks in enumerate(records.axes.trees):
        if blocks is not None and (axis == number).any():
            codes, low, high = _in_blocks(blocks, axis == number, sizes, codes, low, high)
    cut = _balanced_cut(codes, nodes, low, high)
    return halve(nodes, codes <= np.repeat(cut, sizes))


def halved_by_provider(records: Records, nodes: Nodes) -> tuple[Flags, Halves]:
    """Tell which nodes have several providers; cut these between two, in their order, in halves."""
    codes = records.provider[nodes.rows]
    low = np.minimum.reduceat(codes, nodes.starts)
    high = np.maximum.reduceat(codes, nodes.starts)
    several = low < high
    some, codes = nodes.select(several), codes[np.repeat(several, nodes.sizes)]
    cut = _balanced_cut(codes, some, low[several], high[several])
    return several, halve(some, codes <= np.repeat(cut, some.sizes))


def _in_blocks(
    blocks: Counts,
    here: Flags,
    sizes: Counts,
    codes: NDArray[Any],
    low: NDArray[Any],
    high: NDArray[Any],
) -> tuple[NDArray[Any], NDArray[Any], NDArray[Any]]:
    """Replace the codes of the nodes `here` by the blocks that their common label is made of.

    `codes` has one entry for each row, nodes after one another; low and high one for each node.
    """
    level = np.zeros(len(low), dtype=np.int64)
    level[here] = below_common_label(blocks, low[here], high[here])
    rows = np.repeat(here, sizes)
    codes, low, high = (array.astype(np.int64) for array in (codes, low, high))
    codes[rows] = blocks[np.repeat(level, sizes)[rows], codes[rows]]
    low[here], high[here] = blocks[level[here], low[here]], blocks[level[here], high[here]]
    return codes, low, high


def _balanced_cut(
    codes: NDArray[Any], nodes: Nodes, low: NDArray[Any], high: NDArray[Any]
) -> Counts:
    """Return the last code of the left side of the most balanced cut, per node (low < high)."""
    sizes = nodes.sizes
    first = low.astype(np.int64)
    spans = high.astype(np.int64) - first + 1
    if int(spans.sum()) > _BINS_PER_ROW * len(codes) + 1024:
        return _cut_by_sorting(codes, nodes)
    begin = starts_of(spans)  # code c of node i is in bin begin[i] − first[i] + c
    histogram = np.bincount(np.repeat(begin - first, sizes) + codes, minlength=int(spans.sum()))
    return first + last_on_left(histogram, nodes.starts, sizes) - begin


def _cut_by_sorting(codes: NDArray[Any], nodes: Nodes) -> Counts:
    """Return the same; keys are node · span + code, so that sorted ones keep nodes apart."""
    span = np.int64(codes.max()) + 1
    base = np.arange(nodes.count, dtype=np.int64) * span
    keys = np.repeat(base, nodes.sizes) + codes
    keys.sort()
    sizes = nodes.sizes
    middle = keys[nodes.starts + (sizes - 1) // 2]
    up_to = np.searchsorted(keys, middle, side="right") - nodes.starts
    without = np.searchsorted(keys, middle, side="left") - nodes.starts
    cut: Counts = middle - base - ~belongs_left(up_to, without, sizes)
    return cut
