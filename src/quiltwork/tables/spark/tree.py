"""The top of the partition tree: cuts decided on the driver from exact counts of all rows.

`Axes` choose from counts per value, as on one machine: the widest quasi-identifier first, if
both sides are m-private. Nodes small enough for one worker, and nodes that no cut divides, become
subtrees, to which the records are sent. One distributed pass over the blocks per level of the tree,
and one more where a side was not private.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from quiltwork.tables.constraints.constraint import Constraint
from quiltwork.tables.group import SparseCounts, one_group
from quiltwork.tables.partitioning.coded_records import Axes
from quiltwork.tables.spark.domains import MOST_CELLS, Domains
from quiltwork.tables.spark.workers import BlockRecords, packed, unpacked
from quiltwork.tables.verification.all_groups import groups_withstand

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

Counts = NDArray[np.int64]
COUNT_SCHEMA = "array int, cell long, records long"
SENT_SCHEMA = "subtree long, data binary"


@dataclass(frozen=True, eq=False)
class Measure:
    """What the driver knows of a node.

    Attributes:
        values: for each quasi-identifier, records per working code.
        holdings: its records by provider and sensitive value, as the only group of a table.
    """

    values: tuple[Counts, ...]
    holdings: SparseCounts

    @property
    def size(self) -> int:
        """The records of the node."""
        return int(self.values[0].sum())


Measurer = Callable[["Router", list[int]], dict[int, Measure]]
"""Counts some nodes of a tree over all rows."""


@dataclass
class Router:
    """Where each record goes; grows while cuts are decided.

    Attributes:
        roots: how many trees there are: one, or one for each provider.
        axis: for each node, the quasi-identifier of its cut; −1 for a leaf.
        last: the last working code that goes left.
        left: the left child; the right one is next to it.
    """

    roots: int
    axis: list[int] = field(default_factory=list)
    last: list[int] = field(default_factory=list)
    left: list[int] = field(default_factory=list)

    def __post_init__(self) -> None:
        self.axis += [-1] * self.roots
        self.last += [0] * self.roots
        self.left += [0] * self.roots

    def cut(self, node: int, axis: int, last: int) -> tuple[int, int]:
        """Cut a node (or cut it otherwise than before) and return its children."""
        if self.axis[node] < 0:
            self.left[node] = len(self.axis)
            self.axis += [-1, -1]
            self.last += [0, 0]
            self.left += [0, 0]
        self.axis[node], self.last[node] = axis, last
        return self.left[node], self.left[node] + 1

    def uncut(self, node: int) -> None:
        """Make a node a leaf again; its children are never reached."""
        self.axis[node] = -1

    def route(self, rows: BlockRecords) -> Counts:
        """Return the leaf of each record. O(records · depth)."""
        node = np.zeros(rows.rows, dtype=np.int64)
        if self.roots > 1:
            node = rows.provider.astype(np.int64)
        axis, last, left = (np.array(side) for side in (self.axis, self.last, self.left))
        going = np.flatnonzero(axis[node] >= 0)
        while len(going):
            here = node[going]
            code = np.empty(len(going), dtype=np.int64)
            for place in np.unique(axis[here]).tolist():
                chosen = axis[here] == place
                code[chosen] = rows.codes[place][going[chosen]]
            node[going] = left[here] + (code > last[here])
            going = going[axis[node[going]] >= 0]
        return node


@dataclass
class _Pending:
    """A node that is being cut: the axes left to try, widest first."""

    node: int
    measure: Measure
    axes: list[int]


def grow(
    router: Router,
    roots: dict[int, Measure],
    measure: Measurer,
    axes: Axes,
    constraint: Constraint,
    m: int,
    smallest: int,
    most_rows: int,
) -> dict[int, Measure]:
    """Cut every node with more than `most_rows` records where it can be; return the leaves.

    `roots` are the roots as measured, all of them private; `smallest` is a number of records below
    which no group is private.
    """
    leaves = dict(roots)
    large = [node for node, found in leaves.items() if found.size > most_rows]
    pending = [_Pending(node, leaves[node], axes.tried(leaves[node].values)) for node in large]
    while pending:
        tried = [one for one in pending if _try_next(router, one, axes, smallest)]
        if not tried:
            break
        found = measure(router, [child for one in tried for child in _children(router, one.node)])
        pending = []
        for one in tried:
            children = _children(router, one.node)
            if all(is_private(found[child], constraint, m) for child in children):
                del leaves[one.node]
                for child in children:
                    leaves[child] = found[child]
                    if found[child].size > most_rows:
                        order = axes.tried(found[child].values)
                        pending.append(_Pending(child, found[child], order))
            else:
                router.uncut(one.node)
                pending.append(one)
    return leaves


def _children(router: Router, node: int) -> tuple[int, int]:
    return router.left[node], router.left[node] + 1


def _try_next(router: Router, one: _Pending, axes: Axes, smallest: int) -> bool:
    """Cut the node along its next axis; leave it a leaf if none is left."""
    while one.axes:
        axis = one.axes.pop(0)
        last = axes.last(axis, one.measure.values[axis])
        below = int(one.measure.values[axis][: last + 1].sum())
        if min(below, one.measure.size - below) >= smallest:
            router.cut(one.node, axis, last)
            return True
    return False


def is_private(measure: Measure, constraint: Constraint, m: int) -> bool:
    """Tell whether a node is proven to withstand every coalition of at most m providers."""
    return bool(groups_withstand(measure.holdings, constraint, m)[0])


def measurer(blocks: DataFrame, domains: Domains) -> Measurer:
    """Return the function that counts nodes: per value of each column, per provider and secret.

    Workers add up their own blocks; Spark adds up the workers; only the sums reach the driver.
    """
    together = max(1, MOST_CELLS // sum(_shapes(domains)))

    def measure(router: Router, nodes: list[int]) -> dict[int, Measure]:
        found: dict[int, Measure] = {}
        for start in range(0, len(nodes), together):
            found |= _measured(blocks, domains, router, nodes[start : start + together])
        return found

    return measure


def _shapes(domains: Domains) -> list[int]:
    """Return the sizes of the tables counted per node."""
    values = [len(column.values) for column in domains.quasi]
    return [*values, len(domains.providers) * len(domains.sensitive_values)]


def _measured(
    blocks: DataFrame, domains: Domains, router: Router, nodes: list[int]
) -> dict[int, Measure]:
    from pyspark.sql import functions

    shapes = _shapes(domains)
    partial = blocks.mapInArrow(_counter(domains, router, nodes), COUNT_SCHEMA)
    sums = partial.groupBy("array", "cell").agg(functions.sum("records").alias("records"))
    collected = sums.toArrow()
    array, cell, records = (
        collected.column(name).to_numpy() for name in ("array", "cell", "records")
    )
    tables = []
    for place, shape in enumerate(shapes):
        counts = np.zeros(len(nodes) * shape, dtype=np.int64)
        here = array == place
        counts[cell[here]] = records[here]
        tables.append(counts.reshape(len(nodes), shape))
    *known, holdings = tables
    cells = len(domains.providers), len(domains.sensitive_values)
    return {
        node: Measure(tuple(table[i] for table in known), one_group(holdings[i].reshape(cells)))
        for i, node in enumerate(nodes)
    }


def _places(router: Router, nodes: list[int]) -> Callable[[bytes], tuple[BlockRecords, Counts]]:
    """Return the function that reads the records of some nodes from a block.

    With them comes the place of each record's node among those asked.
    """
    position = np.full(len(router.axis), -1, dtype=np.int64)
    position[nodes] = np.arange(len(nodes))

    def read(data: bytes) -> tuple[BlockRecords, Counts]:
        rows = unpacked(data)
        at = position[router.route(rows)]
        wanted = np.flatnonzero(at >= 0)
        return (rows, at) if len(wanted) == rows.rows else (rows.take(wanted), at[wanted])

    return read


def _counter(
    domains: Domains, router: Router, nodes: list[int]
) -> Callable[[Iterator[Any]], Iterator[Any]]:
    read, shapes = _places(router, nodes), _shapes(domains)
    secrets = len(domains.sensitive_values)

    def count(batches: Iterator[Any]) -> Iterator[Any]:
        import pyarrow as pa

        totals = [np.zeros(len(nodes) * shape, dtype=np.int64) for shape in shapes]
        for data in _blocks(batches):
            rows, at = read(data)
            holding = rows.provider.astype(np.int64) * secrets + rows.sensitive
            for total, codes, shape in zip(totals, (*rows.codes, holding), shapes, strict=True):
                total += np.bincount(at * shape + codes, minlength=len(total))
        for place, total in enumerate(totals):
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


def sent(blocks: DataFrame, router: Router, leaves: list[int]) -> DataFrame:
    """Return blocks of records that belong to one subtree each; those of no leaf are left out."""
    return blocks.mapInArrow(_sender(router, leaves), SENT_SCHEMA)


def _sender(router: Router, leaves: list[int]) -> Callable[[Iterator[Any]], Iterator[Any]]:
    read, number = _places(router, leaves), np.array(leaves)

    def send(batches: Iterator[Any]) -> Iterator[Any]:
        import pyarrow as pa

        for data in _blocks(batches):
            rows, at = read(data)
            order = np.argsort(at, kind="stable")
            found, starts = np.unique(at[order], return_index=True)
            parts = [packed(rows.take(part)) for part in np.split(order, starts[1:])]
            yield pa.RecordBatch.from_pydict(
                {
                    "subtree": pa.array(number[found]),
                    "data": pa.array(parts[: len(found)], pa.binary()),
                }
            )

    return send


def _blocks(batches: Iterator[Any]) -> Iterator[bytes]:
    for batch in batches:
        for scalar in batch.column(0):
            yield scalar.as_py()
