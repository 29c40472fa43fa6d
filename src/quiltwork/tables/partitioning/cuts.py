"""Where Mondrian cuts: the most balanced cut of one quasi-identifier, or of the providers.

Medians of many nodes come from one histogram over (node, code), or from sorted keys where codes are
too many for that. Cost: a few passes over the rows.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from quiltwork.tables.partitioning.nodes import Counts, Flags, Halves, Nodes, halve, starts_of
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

    Of all cuts between two codes the one with the most equal sides; of two such, the one with more
    rows on the left. Relaxed: exactly in the middle, records with the middle code going to both
    sides in their order.
    """
    sizes = nodes.sizes
    codes = records.codes[np.repeat(axis, sizes), nodes.rows]
    if relaxed:
        return _halved_relaxed(nodes, codes)
    for number, blocks in enumerate(records.trees):
        if blocks is not None and (axis == number).any():
            codes, low, high = _in_blocks(blocks, axis == number, sizes, codes, low, high)
    cut = balanced_cut(codes, nodes, low, high)
    return halve(nodes, codes <= np.repeat(cut, sizes))


def below_common_label(
    blocks: NDArray[np.int64], low: NDArray[Any], high: NDArray[Any]
) -> NDArray[np.int64]:
    """Return the level below the lowest label that covers low..high; the leaves' at least."""
    common = (blocks[:, low] == blocks[:, high]).argmax(axis=0)
    level: NDArray[np.int64] = np.maximum(common - 1, 0)
    return level


def _in_blocks(
    blocks: NDArray[np.int64],
    here: Flags,
    sizes: Counts,
    codes: NDArray[Any],
    low: NDArray[Any],
    high: NDArray[Any],
) -> tuple[NDArray[Any], NDArray[Any], NDArray[Any]]:
    """Replace the codes of some nodes by the blocks that their common label is made of."""
    level = np.zeros(len(low), dtype=np.int64)
    level[here] = below_common_label(blocks, low[here], high[here])
    rows = np.repeat(here, sizes)
    codes, low, high = (array.astype(np.int64) for array in (codes, low, high))
    codes[rows] = blocks[np.repeat(level, sizes)[rows], codes[rows]]
    low[here], high[here] = blocks[level[here], low[here]], blocks[level[here], high[here]]
    return codes, low, high


def balanced_cut(
    codes: NDArray[Any], nodes: Nodes, low: NDArray[Any], high: NDArray[Any]
) -> NDArray[np.int64]:
    """Return the last code of the left side of the most balanced cut, per node (low < high)."""
    sizes = nodes.sizes
    low64 = low.astype(np.int64)
    spans = high.astype(np.int64) - low64 + 1
    if int(spans.sum()) > _BINS_PER_ROW * len(codes) + 1024:
        return _cut_by_sorting(codes, nodes)
    begin = starts_of(spans)
    histogram = np.bincount(np.repeat(begin - low64, sizes) + codes, minlength=int(spans.sum()))
    return low64 + _last_on_left(histogram, nodes.starts, sizes) - begin


def balanced_last(counts: Counts) -> int:
    """Return the last code of the left side of the most balanced cut of one node, by its counts.

    Of two cuts that are equally balanced, the one with more records on the left.

    >>> balanced_last(np.array([2, 3, 1])), balanced_last(np.array([1, 1, 1, 1]))
    (0, 1)
    """
    nothing, size = np.zeros(1, dtype=np.int64), counts.sum(keepdims=True)
    return int(_last_on_left(counts, nothing, size)[0])


def _last_on_left(histogram: Counts, starts: Counts, sizes: Counts) -> Counts:
    """Return the last bin of each node's left side; the histograms of all nodes are one."""
    below = np.cumsum(histogram)
    # The first bin at which the left side holds at least half of the node.
    middle = np.searchsorted(2 * below, 2 * starts + sizes, side="left")
    up_to = below[middle] - starts
    without = up_to - histogram[middle]
    last: Counts = middle - (~_more_balanced(up_to, without, sizes))
    return last


def _cut_by_sorting(codes: NDArray[Any], nodes: Nodes) -> NDArray[np.int64]:
    span = np.int64(codes.max()) + 1
    base = np.arange(nodes.count, dtype=np.int64) * span
    keys = np.repeat(base, nodes.sizes) + codes
    keys.sort()
    sizes = nodes.sizes
    middle = keys[nodes.starts + (sizes - 1) // 2]
    up_to = np.searchsorted(keys, middle, side="right") - nodes.starts
    without = np.searchsorted(keys, middle, side="left") - nodes.starts
    cut: Counts = middle - base - (~_more_balanced(up_to, without, sizes))
    return cut


def _more_balanced(up_to: Counts, without: Counts, sizes: Counts) -> Flags:
    """Tell whether the middle code belongs to the left side."""
    possible = up_to < sizes
    nearer = (2 * up_to - sizes <= sizes - 2 * without) | (without == 0)
    left: Flags = possible & nearer
    return left


def _halved_relaxed(nodes: Nodes, codes: NDArray[Any]) -> Halves:
    order = np.lexsort((codes, nodes.owners()))
    return Halves(Nodes(nodes.rows[order], nodes.starts), nodes.sizes // 2)


def halved_by_provider(records: Records, nodes: Nodes) -> Halves:
    """Cut each node between two providers, in their order, into sides as equal as possible."""
    codes = records.provider[nodes.rows]
    low = np.minimum.reduceat(codes, nodes.starts)
    high = np.maximum.reduceat(codes, nodes.starts)
    cut = balanced_cut(codes, nodes, low, high)
    return halve(nodes, codes <= np.repeat(cut, nodes.sizes))
