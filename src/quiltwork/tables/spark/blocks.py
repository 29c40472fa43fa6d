"""Rows as compact blocks: one Spark row holds some thousand records as a few packed arrays.

Encoding happens once; every later pass reads bytes, not values. A record takes one to four bytes
per quasi-identifier, provider and sensitive value. With a subject column there are the number of
its person (8 bytes) and who knows them too, and no person's records are in two blocks.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from quiltwork.tables.spark.domains import Domains
from quiltwork.tables.spark.people import by_person, people_of
from quiltwork.tables.spark.session import mapped, quoted

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

    from quiltwork.tables.table import Table

BLOCK_SCHEMA = "data binary"


@dataclass(frozen=True, eq=False)
class BlockRecords:
    """Some records: working codes by quasi-identifier, providers, sensitive values.

    With a subject column also the number of each record's person and their circle.
    """

    codes: tuple[NDArray[Any], ...]
    provider: NDArray[Any]
    sensitive: NDArray[Any]
    person: NDArray[Any] | None = None
    circle: NDArray[Any] | None = None

    @property
    def count(self) -> int:
        """How many there are."""
        return len(self.provider)

    @property
    def arrays(self) -> list[NDArray[Any]]:
        """All arrays, in the order in which they are packed."""
        people = [] if self.person is None or self.circle is None else [self.person, self.circle]
        return [self.provider, self.sensitive, *people, *self.codes]

    @classmethod
    def of(cls, arrays: list[NDArray[Any]], quasi: int) -> BlockRecords:
        """Take the arrays back; `quasi` is the number of quasi-identifiers."""
        others = len(arrays) - quasi
        return cls(tuple(arrays[others:]), *arrays[:others])

    def take(self, index: NDArray[Any]) -> BlockRecords:
        """Return some of them."""
        return BlockRecords.of([array[index] for array in self.arrays], len(self.codes))


@dataclass(frozen=True)
class Packing:
    """How records become bytes: the types of the arrays, in order.

    Attributes:
        types: of provider, sensitive value, with subjects of person and circle, and of the
            quasi-identifiers.
        quasi: how many of these there are.
    """

    types: tuple[str, ...]
    quasi: int

    @classmethod
    def of(cls, domains: Domains) -> Packing:
        """Choose the smallest types that hold the codes."""
        people = []
        if domains.circles is not None:
            people = ["<i8", _kind(len(domains.providers) + len(domains.circles))]
        known = [_kind(len(column.values)) for column in domains.quasi]
        owner, secret = _kind(len(domains.providers)), _kind(len(domains.sensitive_values))
        return cls((owner, secret, *people, *known), len(known))

    @cached_property
    def width(self) -> int:
        """Bytes per record."""
        return sum(np.dtype(kind).itemsize for kind in self.types)

    def packed(self, rows: BlockRecords) -> bytes:
        """Write records as bytes."""
        return b"".join(
            array.astype(kind, copy=False).tobytes()
            for array, kind in zip(rows.arrays, self.types, strict=True)
        )

    def unpacked(self, data: bytes) -> BlockRecords:
        """Read records back."""
        count, place, arrays = len(data) // self.width, 0, []
        for kind in self.types:
            arrays.append(np.frombuffer(data, dtype=kind, count=count, offset=place))
            place += arrays[-1].nbytes
        return BlockRecords.of(arrays, self.quasi)

    def joined(self, parts: list[bytes]) -> BlockRecords:
        """Read several blocks as one."""
        columns = zip(*(self.unpacked(part).arrays for part in parts), strict=True)
        return BlockRecords.of([np.concatenate(column) for column in columns], self.quasi)


def _kind(size: int) -> str:
    return np.dtype(np.min_scalar_type(max(1, size - 1))).str


def encoded_blocks(table: Table, frame: DataFrame, domains: Domains) -> DataFrame:
    """Return the table as a lazy frame of blocks."""
    single = [name for name in (table.provider, table.subject) if name is not None]
    names = [*table.quasi_identifiers, *table.sensitive, *single]
    chosen = frame.select(*(frame[quoted(name)] for name in names))
    if table.subject is not None:
        chosen = by_person(table, chosen, domains.rows)
    return mapped(chosen, _encoder(domains, table.provider, table.subject), BLOCK_SCHEMA)


def _encoder(
    domains: Domains, provider: str | None, subject: str | None
) -> Callable[[Iterator[Any]], Iterator[Any]]:
    packing = Packing.of(domains)

    def encode(batches: Iterator[Any]) -> Iterator[Any]:
        import pyarrow as pa

        reader = CodeReader(domains)
        parts = (pa.Table.from_batches([batch]) for batch in batches if batch.num_rows)
        for part in parts if subject is None else _as_one(parts):
            data = packing.packed(_rows(reader, part, provider, subject))
            yield pa.RecordBatch.from_pydict({"data": pa.array([data], pa.binary())})

    return encode


def _as_one(parts: Iterator[Any]) -> Iterator[Any]:
    """Put tables on top of each other; nothing stays nothing."""
    import pyarrow as pa

    whole = list(parts)
    if whole:
        yield pa.concat_tables(whole)


def _rows(reader: CodeReader, part: Any, provider: str | None, subject: str | None) -> BlockRecords:
    domains = reader.domains

    def column(name: str) -> Any:
        return part.column(name).combine_chunks()

    codes = tuple(
        rank[reader.codes(place, column(known.name))]
        for place, (known, rank) in enumerate(zip(domains.quasi, domains.ranks, strict=True))
    )
    sensitive = reader.sensitive([column(secret.name) for secret in domains.secrets])
    owner = np.zeros(part.num_rows, dtype=np.int64)
    if provider is not None:
        owner = reader.provider(column(provider))
    if subject is None:
        return BlockRecords(codes, owner, sensitive)
    return BlockRecords(codes, owner, sensitive, *people_of(part, subject, owner, domains))


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
