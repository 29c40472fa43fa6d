"""Rows as compact blocks: one Spark row holds some thousand records as a few packed arrays.

Encoding happens once; every later pass reads bytes, not values. A record takes one to four bytes
per quasi-identifier, provider and sensitive value.
"""

from __future__ import annotations

import pickle
from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from quiltwork.tables.spark.domains import Domains
from quiltwork.tables.spark.session import mapped, quoted

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

    from quiltwork.tables.table import Table

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
