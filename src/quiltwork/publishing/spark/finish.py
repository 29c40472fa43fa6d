"""Subtrees, finished by the local core where their records are."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from quiltwork.publishing.boxes import boxes_of
from quiltwork.publishing.constraints.base import Constraint
from quiltwork.publishing.encoding import Encoded
from quiltwork.publishing.guards import guard_for
from quiltwork.publishing.mondrian import Rules, mondrian
from quiltwork.publishing.provider_aware import provider_aware
from quiltwork.publishing.records import Records
from quiltwork.publishing.spark.blocks import Packing, Rows
from quiltwork.publishing.spark.domains import Domains

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

    from quiltwork.publishing.table import Table

WIDTH = "quiltwork_width"
"""The mean normalized width of a record's box: for the report, never published."""

Counts = NDArray[np.int64]


@dataclass(frozen=True)
class Plan:
    """What is done within a subtree; `constraint` is bound to the whole table."""

    constraint: Constraint
    m: int
    method: str
    rules: Rules


def finished(table: Table, frame: DataFrame, parts: DataFrame, domains: Domains, plan: Plan) -> Any:
    """Return the published records of all subtrees, with provider and width."""
    from pyspark.sql import types

    text = [types.StructField(name, types.StringType()) for name in table.quasi_identifiers]
    owner = [] if table.provider is None else [table.provider]
    kept = [frame.schema[name] for name in (*owner, *table.sensitive)]
    schema = types.StructType([*text, *kept, types.StructField(WIDTH, types.DoubleType())])
    return parts.groupBy("subtree").applyInArrow(_finisher(table, domains, plan), schema)


def _finisher(table: Table, domains: Domains, plan: Plan) -> Callable[[Any], Any]:
    packing = Packing.of(domains)
    provider, sensitive = table.provider, table.sensitive

    def finish(blocks: Any) -> Any:
        rows = packing.joined(blocks.column("data").to_pylist())
        encoded, records = local_table(domains, _in_order(rows))
        labels = partition(encoded, records, plan)
        return _published(domains, encoded, labels, provider, sensitive)

    return finish


def _in_order(rows: Rows) -> Rows:
    """Order records by content, so that results do not depend on how they arrived."""
    return rows.take(np.lexsort((rows.sensitive, rows.provider, *rows.codes[::-1])))


def local_table(domains: Domains, rows: Rows) -> tuple[Encoded, Records]:
    """Return some records as the local core sees them, with the codes of the whole table."""
    quasi = tuple(
        replace(column, codes=np.argsort(rank)[codes].astype(np.int32))
        for column, rank, codes in zip(domains.quasi, domains.ranks, rows.codes, strict=True)
    )
    provider, sensitive = (a.astype(np.int32) for a in (rows.provider, rows.sensitive))
    most = max(len(column.values) for column in domains.quasi)
    kind = np.int16 if most <= np.iinfo(np.int16).max else np.int32
    records = Records(
        codes=np.stack([codes.astype(kind) for codes in rows.codes]),
        places=domains.places,
        provider=provider,
        providers=len(domains.providers),
        sensitive=sensitive,
        values=len(domains.sensitive_values),
        ids=np.arange(rows.count),
    )
    return domains.encoded(quasi, provider, sensitive), records


def partition(encoded: Encoded, records: Records, plan: Plan) -> Counts:
    """Return the group of each record of a subtree whose whole is private."""
    guard = guard_for(encoded, plan.constraint, plan.m)
    aware = plan.method == "provider-aware" and plan.rules.split == "range"
    if aware and records.providers > 1:
        return provider_aware(records, guard, plan.rules)
    return mondrian(records, guard, plan.rules)


def _published(
    domains: Domains,
    encoded: Encoded,
    labels: Counts,
    provider: str | None,
    sensitive: tuple[str, ...],
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
    if provider is not None:
        labels_of = pa.array(domains.providers, domains.types[provider])
        columns[provider] = labels_of.take(pa.array(encoded.provider[order]))
    for name, column in zip(sensitive, domains.secrets, strict=True):
        values = pa.array(column.values, domains.types[name])
        columns[name] = values.take(pa.array(column.codes[encoded.sensitive[order]]))
    columns[WIDTH] = pa.array(boxes.widths.mean(axis=1)[group])
    return pa.table(columns)
