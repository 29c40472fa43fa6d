"""The distributed passes over blocks: counting nodes, and sending records to their subtrees."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from quiltwork.publishing.spark.blocks import Packing
from quiltwork.publishing.spark.domains import MOST_CELLS, Domains
from quiltwork.publishing.spark.tree import Measure, Measurer, Router

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

COUNT_SCHEMA = "array int, cell long, records long"
SENT_SCHEMA = "subtree long, data binary"

Counts = NDArray[np.int64]


def measurer(blocks: DataFrame, domains: Domains) -> Measurer:
    """Return the function that counts nodes: per value of each column, per provider and secret.

    Workers add up their own blocks; Spark adds up the workers; only the sums reach the driver.
    """
    shapes = _shapes(domains)
    together = max(1, MOST_CELLS // sum(shapes))

    def measure(router: Router, nodes: list[int]) -> dict[int, Measure]:
        found: dict[int, Measure] = {}
        for start in range(0, len(nodes), together):
            found |= _measured(blocks, domains, router, nodes[start : start + together])
        return found

    return measure


def _shapes(domains: Domains) -> list[int]:
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
    cells = len(domains.providers), len(domains.sensitive_values)
    return {
        node: Measure(tuple(table[i] for table in tables[:-1]), tables[-1][i].reshape(cells))
        for i, node in enumerate(nodes)
    }


def _counter(
    domains: Domains, router: Router, nodes: list[int]
) -> Callable[[Iterator[Any]], Iterator[Any]]:
    packing, shapes = Packing.of(domains), _shapes(domains)
    secrets = len(domains.sensitive_values)

    def count(batches: Iterator[Any]) -> Iterator[Any]:
        import pyarrow as pa

        position = np.full(len(router.axis), -1, dtype=np.int64)
        position[nodes] = np.arange(len(nodes))
        totals = [np.zeros(len(nodes) * shape, dtype=np.int64) for shape in shapes]
        for data in _blocks(batches):
            rows = packing.unpacked(data)
            at = position[router.route(rows)]
            wanted = np.flatnonzero(at >= 0)
            if len(wanted) < rows.count:
                rows, at = rows.take(wanted), at[wanted]
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


def sent(blocks: DataFrame, domains: Domains, router: Router) -> DataFrame:
    """Return blocks of records that belong to one subtree each."""
    return blocks.mapInArrow(_sender(domains, router), SENT_SCHEMA)


def _sender(domains: Domains, router: Router) -> Callable[[Iterator[Any]], Iterator[Any]]:
    packing = Packing.of(domains)

    def send(batches: Iterator[Any]) -> Iterator[Any]:
        import pyarrow as pa

        for data in _blocks(batches):
            rows = packing.unpacked(data)
            node = router.route(rows)
            order = np.argsort(node, kind="stable")
            found, starts = np.unique(node[order], return_index=True)
            parts = [packing.packed(rows.take(part)) for part in np.split(order, starts[1:])]
            yield pa.RecordBatch.from_pydict(
                {"subtree": pa.array(found), "data": pa.array(parts, pa.binary())}
            )

    return send


def _blocks(batches: Iterator[Any]) -> Iterator[bytes]:
    for batch in batches:
        for scalar in batch.column(0):
            yield scalar.as_py()
