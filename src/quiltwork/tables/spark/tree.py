"""The top of the partition tree: cuts decided on the driver from exact counts of all rows.

`Axes` choose cuts from counts per value, as on one machine: along the widest quasi-identifier
first, if both sides are m-private. Nodes small enough for one worker, and nodes without a cut,
become subtrees, to which the records are sent. Each level of the tree is one distributed pass over
the blocks, and one more if a side was not private.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from quiltwork.tables.codes.group import SparseCounts
from quiltwork.tables.partitioning.coded_records import Axes, CodedRecords
from quiltwork.tables.partitioning.guards import Guard
from quiltwork.tables.spark.domains import MOST_CELLS, Domains
from quiltwork.tables.spark.workers import packed, unpacked

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

Counts = NDArray[np.int64]
_LEAF = (-1, 0, 0)
COUNT_SCHEMA = "array int, cell long, records long"
SENT_SCHEMA = "subtree long, data binary"


@dataclass(frozen=True, eq=False)
class Measure:
    """The counts of a node.

    Attributes:
        values: for each quasi-identifier, records per working code.
        holdings: its records by provider and sensitive value, as the counts of a single group.
    """

    values: tuple[Counts, ...]
    holdings: SparseCounts

    @property
    def size(self) -> int:
        """The number of records of the node."""
        return int(self.values[0].sum())


Measurer = Callable[["Router", list[int]], dict[int, Measure]]
"""Returns the counts of some nodes of a tree over all rows."""


@dataclass
class Router:
    """The cuts so far, which assign each record to a leaf; it grows with the tree.

    Attributes:
        roots: the number of trees: one, or one for each provider.
        cuts: for each node, the quasi-identifier of its cut (−1 for a leaf), the last working code
            on the left, and the left child; the right child is the next node.
    """

    roots: int
    cuts: list[tuple[int, int, int]] = field(init=False)

    def __post_init__(self) -> None:
        self.cuts = [_LEAF] * self.roots

    def cut(self, node: int, axis: int, last: int) -> tuple[int, int]:
        """Cut a leaf and return its children."""
        left = len(self.cuts)
        self.cuts[node] = axis, last, left
        self.cuts += [_LEAF, _LEAF]
        return left, left + 1

    def uncut(self, node: int) -> None:
        """Make a node a leaf again; its children become unreachable."""
        self.cuts[node] = _LEAF

    def route(self, rows: CodedRecords) -> Counts:
        """Return the leaf of each record. O(records · depth)."""
        node = np.zeros(rows.count, dtype=np.int64)
        if self.roots > 1:
            node = rows.provider.astype(np.int64)
        axis, last, left = np.array(self.cuts).T
        going = np.flatnonzero(axis[node] >= 0)
        while len(going):
            node_of = node[going]
            code = np.empty(len(going), dtype=np.int64)
            for axis_of in np.unique(axis[node_of]).tolist():
                chosen = axis[node_of] == axis_of
                code[chosen] = rows.codes[axis_of][going[chosen]]
            node[going] = left[node_of] + (code > last[node_of])
            going = going[axis[node[going]] >= 0]
        return node


def grow(
    router: Router,
    roots: dict[int, Measure],
    measure: Measurer,
    axes: Axes,
    guard: Guard,
    most_rows: int,
) -> dict[int, Measure]:
    """Cut every node with more than `most_rows` records if possible; return the leaves.

    `roots` are the measured roots, all of them private.
    """
    leaves, pending = dict(roots), {}

    def enqueue(node: int) -> None:
        if leaves[node].size > most_rows:
            pending[node] = axes.axes_by_width(
                leaves[node].values
            )  # axes still to try, the widest first

    for root in roots:
        enqueue(root)
    while pending:
        children_of = {}
        for node, order in pending.items():
            cut = _next_cut(leaves[node], order, axes, guard.smallest)
            if cut is not None:
                children_of[node] = router.cut(node, *cut)
        if not children_of:
            break
        measured = measure(
            router, [child for children in children_of.values() for child in children]
        )
        pending = {node: pending[node] for node in children_of}
        for node, children in children_of.items():
            if not all(guard.withstand(measured[child].holdings)[0] for child in children):
                # Not private: try the node's next axis in the next pass.
                router.uncut(node)
                continue
            del leaves[node], pending[node]
            for child in children:
                leaves[child] = measured[child]
                enqueue(child)
    return leaves


def _next_cut(node: Measure, order: list[int], axes: Axes, smallest: int) -> tuple[int, int] | None:
    """Return the next axis along which both sides are large enough, and the last code on the left.

    Axes that were tried are removed from `order`.
    """
    while order:
        axis = order.pop(0)
        last = axes.balanced_cut(axis, node.values[axis])
        below = int(node.values[axis][: last + 1].sum())
        if min(below, node.size - below) >= smallest:
            return axis, last
    return None


def measurer(blocks: DataFrame, domains: Domains) -> Measurer:
    """Return a function that counts nodes by value of each column, and by provider and secret.

    Workers count their own blocks; Spark adds up the counts; only the sums reach the driver.
    """
    # As many nodes per pass as the driver can hold counts for.
    together = max(1, MOST_CELLS // sum(_shapes(domains)))

    def measure(router: Router, nodes: list[int]) -> dict[int, Measure]:
        measured: dict[int, Measure] = {}
        for start in range(0, len(nodes), together):
            measured |= _measured(blocks, domains, router, nodes[start : start + together])
        return measured

    return measure


def _shapes(domains: Domains) -> list[int]:
    """Return the sizes of the tables counted per node."""
    values = [len(column.values) for column in domains.table.quasi]
    return [*values, len(domains.table.providers) * len(domains.table.sensitive_values)]


def _measured(
    blocks: DataFrame, domains: Domains, router: Router, nodes: list[int]
) -> dict[int, Measure]:
    """Count some nodes in one distributed pass."""
    from pyspark.sql import functions

    shapes = _shapes(domains)
    partial = blocks.mapInArrow(_counter(domains, router, nodes), COUNT_SCHEMA)
    sums = partial.groupBy("array", "cell").agg(functions.sum("records").alias("records"))
    collected = sums.toArrow()
    array, cell, records = (
        collected.column(name).to_numpy() for name in ("array", "cell", "records")
    )
    tables = []
    for index, shape in enumerate(shapes):
        counts = np.zeros(len(nodes) * shape, dtype=np.int64)
        of_array = array == index
        counts[cell[of_array]] = records[of_array]
        tables.append(counts.reshape(len(nodes), shape))
    *by_axis, holdings = tables
    cells = len(domains.table.providers), len(domains.table.sensitive_values)
    return {
        node: Measure(
            tuple(table[i] for table in by_axis), domains.holdings(holdings[i].reshape(cells))
        )
        for i, node in enumerate(nodes)
    }


def _records_of_nodes(
    domains: Domains, router: Router, nodes: list[int], batches: Iterator[Any]
) -> Iterator[tuple[CodedRecords, Counts]]:
    """Yield the records of some nodes, and the index of each record's node among them."""
    position = np.full(len(router.cuts), -1, dtype=np.int64)
    position[nodes] = np.arange(len(nodes))
    for batch in batches:
        for data in batch.column(0).to_pylist():
            rows = unpacked(domains, [data])
            at = position[router.route(rows)]
            selected = np.flatnonzero(at >= 0)
            yield (rows, at) if len(selected) == rows.count else (rows.take(selected), at[selected])


def _counter(
    domains: Domains, router: Router, nodes: list[int]
) -> Callable[[Iterator[Any]], Iterator[Any]]:
    """Return the worker function that counts its blocks by node."""
    shapes, secrets = _shapes(domains), len(domains.table.sensitive_values)

    def count(batches: Iterator[Any]) -> Iterator[Any]:
        import pyarrow as pa

        totals = [np.zeros(len(nodes) * shape, dtype=np.int64) for shape in shapes]
        for rows, at in _records_of_nodes(domains, router, nodes, batches):
            holding = rows.provider.astype(np.int64) * secrets + rows.sensitive
            for total, codes, shape in zip(totals, (*rows.codes, holding), shapes, strict=True):
                total += np.bincount(at * shape + codes, minlength=len(total))
        for place, total in enumerate(totals):
            # Only non-zero counts are sent.
            cells = np.flatnonzero(total)
            if len(cells):
                yield pa.RecordBatch.from_pydict(
                    {
                        "array": pa.array(np.full(len(cells), place, dtype=np.int32)),
                        "cell": pa.array(cells),
                        "records": pa.array(total[cells]),
                    }
                )

    return count


def send_to_subtrees(
    blocks: DataFrame, domains: Domains, router: Router, leaves: list[int]
) -> DataFrame:
    """Return blocks of records that belong to one subtree each; records of no leaf are dropped."""
    return blocks.mapInArrow(_sender(domains, router, leaves), SENT_SCHEMA)


def _sender(
    domains: Domains, router: Router, leaves: list[int]
) -> Callable[[Iterator[Any]], Iterator[Any]]:
    """Return the worker function that splits its blocks by subtree."""
    number = np.array(leaves)

    def send(batches: Iterator[Any]) -> Iterator[Any]:
        import pyarrow as pa

        for rows, at in _records_of_nodes(domains, router, leaves, batches):
            # One block per subtree, so that Spark can group blocks by subtree.
            order = np.argsort(at, kind="stable")
            present, starts = np.unique(at[order], return_index=True)
            parts = [packed(rows.take(part)) for part in np.split(order, starts[1:])]
            yield pa.RecordBatch.from_pydict(
                {
                    "subtree": pa.array(number[present]),
                    "data": pa.array(parts[: len(present)], pa.binary()),
                }
            )

    return send
