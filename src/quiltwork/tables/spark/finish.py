"""Subtrees, finished by the local core where their records are."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from quiltwork.tables.encoding import CodedTable, code_type
from quiltwork.tables.generalization.boxes import boxes_of
from quiltwork.tables.partitioning.coded_records import CodedRecords
from quiltwork.tables.partitioning.recipe import Recipe, partition
from quiltwork.tables.spark.blocks import BlockRecords, joined
from quiltwork.tables.spark.domains import Domains

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

    from quiltwork.tables.table import Table

WIDTH = "quiltwork_width"
"""The mean normalized width of a record's box: for the report, never published."""

Counts = NDArray[np.int64]


def finished(
    table: Table,
    frame: DataFrame,
    parts: DataFrame,
    domains: Domains,
    recipe: Recipe,
) -> Any:
    """Return the published records of all subtrees, with provider and width."""
    from pyspark.sql import types

    text = [types.StructField(name, types.StringType()) for name in table.quasi_identifiers]
    owner = [] if table.provider is None else [table.provider]
    kept = [frame.schema[name] for name in (*owner, *table.sensitive)]
    schema = types.StructType([*text, *kept, types.StructField(WIDTH, types.DoubleType())])
    return parts.groupBy("subtree").applyInArrow(_finisher(table, domains, recipe), schema)


def _finisher(table: Table, domains: Domains, recipe: Recipe) -> Callable[[Any], Any]:
    owner, secrets = table.provider, table.sensitive

    def finish(blocks: Any) -> Any:
        rows = _in_order(joined(blocks.column("data").to_pylist()))
        encoded, records = local_table(domains, rows)
        labels = partition(encoded, records, recipe)
        return _published(domains, encoded, labels, owner, secrets)

    return finish


def _in_order(rows: BlockRecords) -> BlockRecords:
    """Order records by content, so that results do not depend on how they arrived."""
    return rows.take(np.lexsort((rows.sensitive, rows.provider, *rows.codes[::-1])))


def local_table(domains: Domains, rows: BlockRecords) -> tuple[CodedTable, CodedRecords]:
    """Return some records as the local core sees them, with the codes of the whole table."""
    quasi = tuple(
        replace(column, codes=np.argsort(rank)[codes].astype(np.int32))
        for column, rank, codes in zip(domains.quasi, domains.ranks, rows.codes, strict=True)
    )
    provider, sensitive = (a.astype(np.int32) for a in (rows.provider, rows.sensitive))
    kind = code_type(max(len(column.values) for column in domains.quasi))
    records = CodedRecords(
        codes=np.stack([codes.astype(kind) for codes in rows.codes]),
        provider=provider,
        providers=len(domains.providers),
        sensitive=sensitive,
        values=len(domains.sensitive_values),
        ids=np.arange(rows.rows),
        axes=domains.axes,
    )
    return domains.encoded(quasi, provider, sensitive), records


def _published(
    domains: Domains,
    encoded: CodedTable,
    labels: Counts,
    owner: str | None,
    secrets: tuple[str, ...],
) -> Any:
    """Write each record's box as texts, in an order that content alone decides."""
    import pyarrow as pa

    order = np.argsort(labels, kind="stable")
    starts = np.searchsorted(labels[order], np.arange(int(labels.max()) + 1))
    boxes = boxes_of(encoded.quasi, order, starts)
    rank = np.empty(boxes.count, dtype=np.int64)
    rank[np.lexsort(boxes.text_of.T[::-1])] = np.arange(boxes.count)
    order = np.lexsort((encoded.provider, encoded.sensitive, rank[labels]))
    group = labels[order]
    columns: dict[str, Any] = {
        column.name: pa.array(texts, pa.string()).take(pa.array(boxes.text_of[group, place]))
        for place, (column, texts) in enumerate(zip(encoded.quasi, boxes.texts, strict=True))
    }
    if owner is not None:
        labels_of = pa.array(domains.providers, domains.types[owner])
        columns[owner] = labels_of.take(pa.array(encoded.provider[order]))
    for name, column in zip(secrets, domains.secrets, strict=True):
        values = pa.array(column.values, domains.types[name])
        columns[name] = values.take(pa.array(column.codes[encoded.sensitive[order]]))
    columns[WIDTH] = pa.array(boxes.widths.mean(axis=1)[group])
    return pa.table(columns)
