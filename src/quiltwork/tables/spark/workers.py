"""What the workers of a Spark table do: rows become blocks, subtrees groups, and groups verdicts.

One Spark row of blocks holds some thousand records as a few packed arrays: encoding happens once,
and every later pass reads bytes, not values; a record takes one to four bytes per quasi-identifier,
provider and sensitive value. Subtrees are finished by the local core where their records are. To
verify, records with equal quasi-identifiers are sent to one worker, which counts them again and
runs the exact verification of the local backend; the driver receives one verdict per partition.
Nothing of the partition tree is used for that.

Theorem: docs/theory/m-privacy.md
"""

from __future__ import annotations

import pickle
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from quiltwork.exact import integer
from quiltwork.tables.constraints.constraint import Constraint, as_constraint
from quiltwork.tables.encoding import CodedTable, code_type, group_rows
from quiltwork.tables.generalization.boxes import boxes_of
from quiltwork.tables.group import count_groups
from quiltwork.tables.partitioning.coded_records import CodedRecords
from quiltwork.tables.partitioning.recipe import Recipe, partition
from quiltwork.tables.spark.domains import Domains, bound, read_domains
from quiltwork.tables.spark.session import mapped, quoted, with_this_package
from quiltwork.tables.table import Table
from quiltwork.tables.verification import Verdict, verify_counts

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

BLOCK_SCHEMA = "data binary"


class BlockRecords(NamedTuple):
    """Some records: working codes by quasi-identifier, providers, sensitive values."""

    codes: tuple[NDArray[Any], ...]
    provider: NDArray[Any]
    sensitive: NDArray[Any]

    @property
    def rows(self) -> int:
        """How many there are."""
        return len(self.provider)

    def take(self, index: NDArray[Any]) -> BlockRecords:
        """Return some of them."""
        codes = tuple(column[index] for column in self.codes)
        return BlockRecords(codes, self.provider[index], self.sensitive[index])


def packed(records: BlockRecords) -> bytes:
    """Write records as bytes."""
    return pickle.dumps(tuple(records), protocol=5)


def unpacked(data: bytes) -> BlockRecords:
    """Read records back, which workers of this very call wrote."""
    return BlockRecords(*pickle.loads(data))  # noqa: S301


def joined(parts: list[bytes]) -> BlockRecords:
    """Read several blocks as one."""
    codes, provider, sensitive = zip(*map(unpacked, parts), strict=True)
    columns = tuple(map(np.concatenate, zip(*codes, strict=True)))
    return BlockRecords(columns, np.concatenate(provider), np.concatenate(sensitive))


def _small(codes: NDArray[Any], size: int) -> NDArray[Any]:
    """Return codes in the smallest type that holds so many."""
    return codes.astype(np.min_scalar_type(max(1, size - 1)))


def encoded_blocks(table: Table, frame: DataFrame, domains: Domains) -> DataFrame:
    """Return the table as a lazy frame of blocks."""
    owner = [] if table.provider is None else [table.provider]
    names = [*table.quasi_identifiers, *table.sensitive, *owner]
    chosen = frame.select(*(frame[quoted(name)] for name in names))
    return mapped(chosen, _encoder(domains, table.provider), BLOCK_SCHEMA)


def _encoder(domains: Domains, provider: str | None) -> Callable[[Iterator[Any]], Iterator[Any]]:
    def encode(batches: Iterator[Any]) -> Iterator[Any]:
        import pyarrow as pa

        reader = CodeReader(domains)
        parts = (pa.Table.from_batches([batch]) for batch in batches if batch.num_rows)
        for part in parts:
            data = packed(_rows(reader, part, provider))
            yield pa.RecordBatch.from_pydict({"data": pa.array([data], pa.binary())})

    return encode


def _rows(reader: CodeReader, part: Any, provider: str | None) -> BlockRecords:
    domains = reader.domains

    def column(name: str) -> Any:
        return part.column(name).combine_chunks()

    codes = tuple(
        _small(rank[reader.codes(place, column(known.name))], len(rank))
        for place, (known, rank) in enumerate(zip(domains.quasi, domains.ranks, strict=True))
    )
    sensitive = reader.sensitive([column(secret.name) for secret in domains.secrets])
    owner = np.zeros(part.num_rows, dtype=np.int64)
    if provider is not None:
        owner = reader.provider(column(provider))
    secrets = _small(sensitive, len(domains.sensitive_values))
    return BlockRecords(codes, _small(owner, len(domains.providers)), secrets)


class CodeReader:
    """Looks up values of Arrow columns in the domains."""

    def __init__(self, domains: Domains) -> None:
        self.domains = domains
        self.sizes = [len(column.values) for column in domains.secrets]
        keys = self._key([column.codes for column in domains.secrets])
        self.sorting = np.argsort(keys)
        self.keys = keys[self.sorting]

    def codes(self, place: int, array: Any) -> NDArray[np.int64]:
        """Return the codes of a quasi-identifier's values."""
        return _codes(array, self.domains.quasi[place].values)

    def provider(self, array: Any) -> NDArray[np.int64]:
        """Return the codes of providers."""
        return _codes(array, self.domains.providers)

    def sensitive(self, arrays: list[Any]) -> NDArray[np.int64]:
        """Return the codes of combinations of sensitive values."""
        pairs = zip(arrays, self.domains.secrets, strict=True)
        keys = self._key([_codes(array, column.values) for array, column in pairs])
        return self.sorting[np.searchsorted(self.keys, keys)]

    def _key(self, codes: list[NDArray[Any]]) -> NDArray[np.int64]:
        key = np.zeros(len(codes[0]), dtype=np.int64)
        for column, size in zip(codes, self.sizes, strict=True):
            key = key * size + column
        return key


def _codes(array: Any, values: tuple[Any, ...]) -> NDArray[np.int64]:
    import pyarrow as pa
    import pyarrow.compute as pc

    known = [value for value in values if value is not None]
    if pa.types.is_floating(array.type):
        array = pc.add(array, pa.scalar(0.0, array.type))
        array = pc.if_else(pc.is_nan(array), None, array)
    found = pc.index_in(array, value_set=pa.array(known, type=array.type))
    codes: NDArray[np.int64] = found.fill_null(len(known)).to_numpy(zero_copy_only=False)
    return codes.astype(np.int64)


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


VERDICT_SCHEMA = "verdict binary"
ROWS_PER_PARTITION = 200_000


@dataclass(frozen=True)
class PartVerdict:
    """What one worker found.

    Attributes:
        verdict: of the exact verification.
        rows: the records it counted.
        groups: the groups they form.
        smallest: the records of the smallest of them.
        fewest_values: the fewest sensitive values of one of them.
        squares: Σ size² over its groups.
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
    asked = bound(as_constraint(constraint), domains)
    return combined(part_verdicts(table, table.frame, domains, asked, size))


def combined(parts: list[PartVerdict]) -> Verdict:
    """Return the verdict on the whole: the first breach in the order of groups, if there is one.

    A proven breach comes before a group that stays undecided; a missing value before others.
    """
    broken = sorted((p.verdict for p in parts if not p.verdict.private), key=_place)
    checks = sum(part.verdict.checks for part in parts)
    return replace(broken[0] if broken else parts[0].verdict, checks=checks)


def _place(verdict: Verdict) -> tuple[Any, ...]:
    values = [(value is not None, value) for value in verdict.group]
    return (not verdict.settled, values)


def part_verdicts(
    table: Table, frame: DataFrame, domains: Domains, constraint: Constraint, m: int
) -> list[PartVerdict]:
    """Verify every group of a Spark frame; `constraint` is bound to the whole table."""
    known = [frame[quoted(name)] for name in table.quasi_identifiers]
    owner = [] if table.provider is None else [table.provider]
    names = [*table.quasi_identifiers, *owner, *table.sensitive]
    chosen = frame.select(*(frame[quoted(name)] for name in names))
    workers = max(1, -(-domains.rows // ROWS_PER_PARTITION))
    together = chosen.repartition(workers, *known)
    found = mapped(together, _verifier(table, domains, constraint, m), VERDICT_SCHEMA)
    # Written by the workers of this very call, from aggregates of their groups.
    return [pickle.loads(row["verdict"]) for row in found.collect()]  # noqa: S301


def _verifier(
    table: Table, domains: Domains, constraint: Constraint, m: int
) -> Callable[[Iterator[Any]], Iterator[Any]]:
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
    provider, quasi, sensitive = roles
    local = Table(rows, provider, quasi, sensitive, missing="value")
    reader = CodeReader(domains)
    columns = [rows.column(name).combine_chunks() for name in sensitive]
    secrets = reader.sensitive(columns).astype(np.int32)
    owners = np.zeros(rows.num_rows, dtype=np.int32)
    if provider is not None:
        owners = reader.provider(rows.column(provider).combine_chunks()).astype(np.int32)
    own = local.encoded  # its codes of quasi-identifiers are enough to tell groups apart
    local.__dict__["encoded"] = domains.encoded(own.quasi, owners, secrets)
    groups = local.groups
    counts = count_groups(local.encoded, groups.labels, groups.count)
    sizes = np.bincount(groups.labels, minlength=groups.count)
    pairs = group_rows([groups.labels, secrets], [groups.count, len(domains.sensitive_values)])
    values = np.bincount(groups.labels[pairs.first], minlength=groups.count)
    return PartVerdict(
        verdict=verify_counts((local.encoded, local.group_values), counts, constraint, m),
        rows=rows.num_rows,
        groups=groups.count,
        smallest=int(sizes.min()),
        fewest_values=int(values.min()),
        squares=int((sizes.astype(object) ** 2).sum()),
    )
