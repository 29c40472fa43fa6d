"""The distributed passes over blocks: counting nodes, and sending records to their subtrees."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from quiltwork.tables.group import one_group
from quiltwork.tables.spark.blocks import BlockRecords, Packing
from quiltwork.tables.spark.domains import MOST_CELLS, Domains
from quiltwork.tables.spark.people import Places, people_of_nodes
from quiltwork.tables.spark.tree import Measure, Measurer, Router

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

COUNT_SCHEMA = "array int, cell long, records long"
SENT_SCHEMA = "subtree long, data binary"

Counts = NDArray[np.int64]


def measurer(blocks: DataFrame, domains: Domains) -> Measurer:
    """Return the function that counts nodes: per value of each column, per provider and secret.

    Workers add up their own blocks; Spark adds up the workers; only the sums reach the driver. With
    a subject column a second pass counts people.
    """
    people = len(domains.providers) + len(domains.circles or ())
    cells = sum(_shapes(domains)) + people * (len(domains.sensitive_values) + 1)
    together = max(1, MOST_CELLS // cells)

    def measure(router: Router, nodes: list[int]) -> dict[int, Measure]:
        found: dict[int, Measure] = {}
        for start in range(0, len(nodes), together):
            found |= _measured(blocks, domains, router, nodes[start : start + together])
        return found

    return measure


def _shapes(domains: Domains) -> list[int]:
    """Return the sizes of the tables counted per node; the last one without subjects only."""
    values = [len(column.values) for column in domains.quasi]
    if domains.circles is not None:
        return values
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
    known, holdings = tables[: len(domains.quasi)], tables[len(domains.quasi) :]
    if holdings:
        cells = len(domains.providers), len(domains.sensitive_values)
        held = {node: one_group(holdings[0][i].reshape(cells)) for i, node in enumerate(nodes)}
    else:
        held = people_of_nodes(blocks, domains, _places(domains, router, nodes), nodes)
    return {
        node: Measure(tuple(table[i] for table in known), held[node])
        for i, node in enumerate(nodes)
    }


def _places(domains: Domains, router: Router, nodes: list[int]) -> Places:
    """Return the function that reads the records of some nodes from a block."""
    packing = Packing.of(domains)
    position = np.full(len(router.axis), -1, dtype=np.int64)
    position[nodes] = np.arange(len(nodes))

    def read(data: bytes) -> tuple[BlockRecords, Counts]:
        rows = packing.unpacked(data)
        at = position[router.route(rows)]
        wanted = np.flatnonzero(at >= 0)
        return (rows, at) if len(wanted) == rows.count else (rows.take(wanted), at[wanted])

    return read


def _counter(
    domains: Domains, router: Router, nodes: list[int]
) -> Callable[[Iterator[Any]], Iterator[Any]]:
    read, shapes = _places(domains, router, nodes), _shapes(domains)
    secrets = len(domains.sensitive_values)

    def count(batches: Iterator[Any]) -> Iterator[Any]:
        import pyarrow as pa

        totals = [np.zeros(len(nodes) * shape, dtype=np.int64) for shape in shapes]
        for data in _blocks(batches):
            rows, at = read(data)
            holding = rows.provider.astype(np.int64) * secrets + rows.sensitive
            for total, codes, shape in zip(totals, (*rows.codes, holding), shapes, strict=False):
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


def sent(blocks: DataFrame, domains: Domains, router: Router, leaves: list[int]) -> DataFrame:
    """Return blocks of records that belong to one subtree each; those of no leaf are left out."""
    return blocks.mapInArrow(_sender(domains, router, leaves), SENT_SCHEMA)


def _sender(
    domains: Domains, router: Router, leaves: list[int]
) -> Callable[[Iterator[Any]], Iterator[Any]]:
    packing, read = Packing.of(domains), _places(domains, router, leaves)
    number = np.array(leaves)

    def send(batches: Iterator[Any]) -> Iterator[Any]:
        import pyarrow as pa

        for data in _blocks(batches):
            rows, at = read(data)
            order = np.argsort(at, kind="stable")
            found, starts = np.unique(at[order], return_index=True)
            parts = [packing.packed(rows.take(part)) for part in np.split(order, starts[1:])]
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
