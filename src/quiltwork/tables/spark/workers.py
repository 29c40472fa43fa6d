"""Worker functions on a Spark table: rows to blocks, subtrees to groups, groups to verdicts.

One Spark row of blocks contains some thousand records as a few packed arrays: rows are encoded
once, and every later pass reads bytes, not values; a record takes one to four bytes per
quasi-identifier, provider and sensitive value. Subtrees are finished by the local algorithms where
their records are. To verify, records with equal quasi-identifiers are sent to one worker, which
counts them again and runs the exact verification of the local backend; the driver receives one
verdict per partition. The verification uses nothing of the partition tree.

Theorem: docs/theory/m-privacy.md
"""

from __future__ import annotations

import pickle
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from quiltwork.exact import integer
from quiltwork.tables.codes.distinct import distinct_rows
from quiltwork.tables.codes.encoding import CodedTable, code_type
from quiltwork.tables.codes.group import count_groups
from quiltwork.tables.constraints.constraint import Constraint, as_constraint
from quiltwork.tables.generalization.boxes import boxes_of
from quiltwork.tables.partitioning.coded_records import CodedRecords
from quiltwork.tables.partitioning.recipe import Recipe, partition
from quiltwork.tables.spark.domains import Codes, Domains, bind_constraint, read_domains
from quiltwork.tables.spark.session import map_batches, quote_name, with_this_package
from quiltwork.tables.table import Table
from quiltwork.tables.verification.group_verification import verify_counts
from quiltwork.tables.verification.verdict import Verdict

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

BLOCK_SCHEMA = "data binary"


def packed(records: CodedRecords) -> bytes:
    """Serialize records to bytes."""
    # Protocol 5 stores arrays without copying them.
    return pickle.dumps((records.codes, records.provider, records.sensitive), protocol=5)


def unpacked(domains: Domains, blocks: Iterable[bytes]) -> CodedRecords:
    """Deserialize several blocks as one; they come only from workers of this very call."""
    codes, *others = zip(*map(pickle.loads, blocks), strict=True)
    return domains.records(np.hstack(codes), *map(np.concatenate, others))


def encoded_blocks(table: Table, frame: DataFrame, domains: Domains) -> DataFrame:
    """Return the table as a lazy frame of blocks."""
    owner = [] if table.provider is None else [table.provider]
    names = [*table.quasi_identifiers, *table.sensitive, *owner]
    chosen = frame.select(*(frame[quote_name(name)] for name in names))
    return map_batches(chosen, _encoder(domains, table.provider), BLOCK_SCHEMA)


def _encoder(domains: Domains, provider: str | None) -> Callable[[Iterator[Any]], Iterator[Any]]:
    """Return the worker function that encodes rows to blocks."""

    def encode(batches: Iterator[Any]) -> Iterator[Any]:
        import pyarrow as pa

        for part in (pa.Table.from_batches([batch]) for batch in batches if batch.num_rows):
            owners, secrets = _owners_and_secrets(domains, part, provider)
            kind = code_type(max(map(len, domains.ranks)))
            codes = [
                rank.astype(kind)[_codes(part, column.name, column.values)]
                for column, rank in zip(domains.table.quasi, domains.ranks, strict=True)
            ]
            data = packed(domains.records(np.stack(codes), owners, secrets))
            yield pa.RecordBatch.from_pydict({"data": pa.array([data], pa.binary())})

    return encode


def _owners_and_secrets(domains: Domains, part: Any, provider: str | None) -> tuple[Codes, Codes]:
    """Return the codes of providers, and of combinations of sensitive values, of some rows."""
    providers, values = domains.table.providers, domains.table.sensitive_values
    owners = np.zeros(part.num_rows, dtype=np.int64)
    if provider is not None:
        owners = _codes(part, provider, providers)
    keys = np.zeros(len(values), dtype=np.int64)
    row_keys = np.zeros(part.num_rows, dtype=np.int64)
    for column in domains.secrets:
        keys = keys * len(column.values) + column.codes
        row_keys = row_keys * len(column.values) + _codes(part, column.name, column.values)
    order = np.argsort(keys)
    secrets = order[np.searchsorted(keys, row_keys, sorter=order)]
    return owners.astype(code_type(len(providers))), secrets.astype(code_type(len(values)))


def _codes(part: Any, name: str, values: tuple[Any, ...]) -> NDArray[np.int64]:
    """Return the index of each cell of a column among the known values."""
    import pyarrow as pa
    import pyarrow.compute as pc

    array = part.column(name).combine_chunks()
    present = [value for value in values if value is not None]
    # As in local encoding: −0.0 becomes 0.0, NaN is missing.
    if pa.types.is_floating(array.type):
        array = pc.add(array, pa.scalar(0.0, array.type))
        array = pc.if_else(pc.is_nan(array), None, array)
    indices = pc.index_in(array, value_set=pa.array(present, type=array.type))
    codes: NDArray[np.int64] = indices.fill_null(len(present)).to_numpy(zero_copy_only=False)
    return codes.astype(np.int64)


WIDTH = "quiltwork_width"
"""The column of the mean normalized width of a record's box; for the report, never published."""

Counts = NDArray[np.int64]


def publish_subtrees(
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
    fields = [frame.schema[name] for name in (*owner, *table.sensitive)]
    schema = types.StructType([*text, *fields, types.StructField(WIDTH, types.DoubleType())])
    return parts.groupBy("subtree").applyInArrow(_finisher(table, domains, recipe), schema)


def _finisher(table: Table, domains: Domains, recipe: Recipe) -> Callable[[Any], Any]:
    """Return the worker function that partitions one subtree."""
    owner, secrets = table.provider, table.sensitive

    def finish(blocks: Any) -> Any:
        rows = unpacked(domains, blocks.column("data").to_pylist())
        # Sorted by content, so that results do not depend on the order of arrival.
        order = np.lexsort((rows.sensitive, rows.provider, *rows.codes[::-1]))
        rows = domains.records(rows.codes[:, order], rows.provider[order], rows.sensitive[order])
        quasi = tuple(
            replace(column, codes=np.argsort(rank)[codes].astype(np.int32))
            for column, rank, codes in zip(
                domains.table.quasi, domains.ranks, rows.codes, strict=True
            )
        )
        encoded = domains.encoded(quasi, rows.provider, rows.sensitive)
        by_class = replace(rows, sensitive=encoded.row_classes, values=len(encoded.classes))
        # The same function as on one machine.
        labels = partition(encoded, by_class, recipe)
        return _published(domains, encoded, labels, owner, secrets)

    return finish


def _published(
    domains: Domains,
    encoded: CodedTable,
    labels: Counts,
    owner: str | None,
    secrets: tuple[str, ...],
) -> Any:
    """Return records with the texts of their boxes, in an order by content alone."""
    import pyarrow as pa

    order = np.argsort(labels, kind="stable")
    starts = np.searchsorted(labels[order], np.arange(int(labels.max()) + 1))
    boxes = boxes_of(encoded.quasi, order, starts)
    rank = np.argsort(np.lexsort(boxes.text_of.T[::-1]))
    order = np.lexsort((encoded.provider, encoded.sensitive, rank[labels]))
    group = labels[order]
    columns: dict[str, Any] = {
        column.name: pa.array(texts, pa.string()).take(pa.array(boxes.text_of[group, place]))
        for place, (column, texts) in enumerate(zip(encoded.quasi, boxes.texts, strict=True))
    }
    if owner is not None:
        labels_of = pa.array(domains.table.providers, domains.types[owner])
        columns[owner] = labels_of.take(pa.array(encoded.provider[order]))
    for name, column in zip(secrets, domains.secrets, strict=True):
        values = pa.array(column.values, domains.types[name])
        columns[name] = values.take(pa.array(column.codes[encoded.sensitive[order]]))
    columns[WIDTH] = pa.array(boxes.widths.mean(axis=1)[group])
    return pa.table(columns)


VERDICT_SCHEMA = "verdict binary"
ROWS_PER_PARTITION = 200_000


@dataclass(frozen=True)
class PartVerdict:
    """The result of one worker's verification.

    Attributes:
        verdict: of the exact verification.
        rows: the number of records counted.
        groups: the number of groups.
        smallest: the number of records of the smallest group.
        fewest_values: the fewest sensitive values of a group.
        squares: Σ size² over the groups.
    """

    verdict: Verdict
    rows: int
    groups: int
    smallest: int
    fewest_values: int
    squares: int


@with_this_package()
def verify_spark(table: Table, constraint: Constraint | Callable[..., bool], m: int) -> Verdict:
    """Verify a Spark table against every coalition of at most m providers.

    Theorem: docs/theory/m-privacy.md
    """
    size = integer(m, "m", 0)
    domains = read_domains(table, table.frame)
    bound_constraint = bind_constraint(as_constraint(constraint), domains)
    return combine_verdicts(part_verdicts(table, table.frame, domains, bound_constraint, size))


def combine_verdicts(parts: list[PartVerdict]) -> Verdict:
    """Return the verdict on the whole table: the first breach in the order of groups, if any.

    A proven breach precedes a group that stays undecided; a missing value precedes others.
    """
    failing = sorted((p.verdict for p in parts if not p.verdict.private), key=_verdict_order)
    checks = sum(part.verdict.checks for part in parts)
    return replace(failing[0] if failing else parts[0].verdict, checks=checks)


def _verdict_order(verdict: Verdict) -> tuple[Any, ...]:
    """Return the sort key of a failing verdict."""
    values = [(value is not None, value) for value in verdict.group]
    return (not verdict.settled, values)


def part_verdicts(
    table: Table, frame: DataFrame, domains: Domains, constraint: Constraint, m: int
) -> list[PartVerdict]:
    """Verify every group of a Spark frame; `constraint` is bound to the whole table."""
    group_columns = [frame[quote_name(name)] for name in table.quasi_identifiers]
    owner = [] if table.provider is None else [table.provider]
    names = [*table.quasi_identifiers, *owner, *table.sensitive]
    chosen = frame.select(*(frame[quote_name(name)] for name in names))
    workers = max(1, -(-domains.rows // ROWS_PER_PARTITION))
    by_group = chosen.repartition(workers, *group_columns)
    verdicts = map_batches(by_group, _verifier(table, domains, constraint, m), VERDICT_SCHEMA)
    # Safe to unpickle: written by the workers of this very call.
    return [pickle.loads(row["verdict"]) for row in verdicts.collect()]  # noqa: S301


def _verifier(
    table: Table, domains: Domains, constraint: Constraint, m: int
) -> Callable[[Iterator[Any]], Iterator[Any]]:
    """Return the worker function that verifies its groups."""
    roles = (table.provider, table.quasi_identifiers, table.sensitive)

    def verify(batches: Iterator[Any]) -> Iterator[Any]:
        import pyarrow as pa

        received = list(batches)
        if any(batch.num_rows for batch in received):
            verdict = _verified(pa.Table.from_batches(received), roles, domains, constraint, m)
            yield pa.RecordBatch.from_pydict({"verdict": pa.array([pickle.dumps(verdict)])})

    return verify


def _verified(
    rows: Any,
    roles: tuple[str | None, tuple[str, ...], tuple[str, ...]],
    domains: Domains,
    constraint: Constraint,
    m: int,
) -> PartVerdict:
    """Verify the groups of some rows."""
    provider, quasi, sensitive = roles
    local = Table(rows, provider, quasi, sensitive, missing="value")
    owners, secrets = _owners_and_secrets(domains, rows, provider)
    local_codes = local.encoded  # its codes of quasi-identifiers define the groups
    # Codes of the whole table: a worker sees only some values and providers.
    local.__dict__["encoded"] = domains.encoded(local_codes.quasi, owners, secrets)
    groups = local.groups
    counts = count_groups(local.encoded, groups.labels, groups.count)
    sizes = np.bincount(groups.labels, minlength=groups.count)
    valued = counts.kind < counts.values
    (group_of, _), _ = distinct_rows(
        [counts.group[valued], counts.kind[valued]], [counts.groups, counts.values]
    )
    return PartVerdict(
        verdict=verify_counts((local.encoded, local.group_values), counts, constraint, m),
        rows=rows.num_rows,
        groups=groups.count,
        smallest=int(sizes.min()),
        fewest_values=int(np.bincount(group_of, minlength=counts.groups).min()),
        squares=int((sizes.astype(object) ** 2).sum()),
    )
