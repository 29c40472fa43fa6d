"""Rows as compact blocks: one Spark row holds some thousand records as a few packed arrays.

Encoding happens once; every later pass reads bytes, not values. A record takes one to four bytes
per quasi-identifier, provider and sensitive value.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from quiltwork.publishing.spark.domains import Domains, quoted

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

    from quiltwork.publishing.table import Table

BLOCK_SCHEMA = "data binary"


@dataclass(frozen=True, eq=False)
class Rows:
    """Some records: working codes by quasi-identifier, providers, sensitive values."""

    codes: tuple[NDArray[Any], ...]
    provider: NDArray[Any]
    sensitive: NDArray[Any]

    @property
    def count(self) -> int:
        """How many there are."""
        return len(self.provider)

    def take(self, index: NDArray[Any]) -> Rows:
        """Return some of them."""
        return Rows(
            tuple(column[index] for column in self.codes),
            self.provider[index],
            self.sensitive[index],
        )


@dataclass(frozen=True)
class Packing:
    """How records become bytes: the types of the arrays, in order."""

    types: tuple[str, ...]

    @classmethod
    def of(cls, domains: Domains) -> Packing:
        """Choose the smallest types that hold the codes."""
        sizes = [len(column.values) for column in domains.quasi]
        sizes += [len(domains.providers), len(domains.sensitive_values)]
        return cls(tuple(np.dtype(np.min_scalar_type(max(1, size - 1))).str for size in sizes))

    @cached_property
    def width(self) -> int:
        """Bytes per record."""
        return sum(np.dtype(kind).itemsize for kind in self.types)

    def packed(self, rows: Rows) -> bytes:
        """Write records as bytes."""
        arrays = (*rows.codes, rows.provider, rows.sensitive)
        return b"".join(
            array.astype(kind, copy=False).tobytes()
            for array, kind in zip(arrays, self.types, strict=True)
        )

    def unpacked(self, data: bytes) -> Rows:
        """Read records back."""
        count, place, arrays = len(data) // self.width, 0, []
        for kind in self.types:
            arrays.append(np.frombuffer(data, dtype=kind, count=count, offset=place))
            place += arrays[-1].nbytes
        return Rows(tuple(arrays[:-2]), arrays[-2], arrays[-1])

    def joined(self, parts: list[bytes]) -> Rows:
        """Read several blocks as one."""
        read = [self.unpacked(part) for part in parts]
        columns = zip(*((*rows.codes, rows.provider, rows.sensitive) for rows in read), strict=True)
        arrays = [np.concatenate(column) for column in columns]
        return Rows(tuple(arrays[:-2]), arrays[-2], arrays[-1])


def encoded_blocks(table: Table, frame: DataFrame, domains: Domains) -> DataFrame:
    """Return the table as a lazy frame of blocks."""
    provider = [] if table.provider is None else [table.provider]
    names = [*table.quasi_identifiers, *provider, *table.sensitive]
    chosen = frame.select(*(frame[quoted(name)] for name in names))
    return chosen.mapInArrow(_encoder(domains, bool(provider)), BLOCK_SCHEMA)


def _encoder(domains: Domains, named: bool) -> Callable[[Iterator[Any]], Iterator[Any]]:
    packing = Packing.of(domains)
    quasi, secrets = len(domains.quasi), len(domains.secrets)

    def encode(batches: Iterator[Any]) -> Iterator[Any]:
        import pyarrow as pa

        reader = CodeReader(domains)
        for batch in batches:
            if not batch.num_rows:
                continue
            columns = batch.columns
            codes = tuple(
                rank[reader.codes(place, columns[place])]
                for place, rank in enumerate(domains.ranks)
            )
            provider = np.zeros(batch.num_rows, dtype=np.int64)
            if named:
                provider = reader.provider(columns[quasi])
            sensitive = reader.sensitive(columns[len(columns) - secrets :])
            data = packing.packed(Rows(codes, provider, sensitive))
            yield pa.RecordBatch.from_pydict({"data": pa.array([data], pa.binary())})

    return encode


class CodeReader:
    """Looks up values of Arrow columns in the domains."""

    def __init__(self, domains: Domains) -> None:
        """Prepare the lookup of combinations of sensitive values."""
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
