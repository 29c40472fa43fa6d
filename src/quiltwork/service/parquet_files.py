"""What a Parquet file would be in memory, found out before it is unpacked.

What the end of a file says of its sizes is what whoever made it wrote there. So the heads of all
pages are read, by which a reader takes its memory, and columns of text as their dictionaries: pages
that repeat one text are small in the file and large in memory.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any, BinaryIO

from quiltwork.errors import InvalidInputError
from quiltwork.service.settings import Limits

_CELL = 4
"""Bytes that are counted for a cell beside its text."""
_HEAD, _PAGES, _WIDEST = 1 << 16, 100_000, 32
"""Bytes of the longest head of a page, how many pages, and bytes of a cell of a fixed width."""
_BINARY, _STRUCT, _DOUBLE = 8, 12, 7
"""Kinds of Thrift's compact protocol; 1 and 2 are true and false, 3 a byte, 4 to 6 integers."""


def unpacks(limits: Limits) -> str:
    """Say that a file is too large when it is unpacked."""
    return f"The file unpacks to more than {limits.bytes:,} bytes, which is the most."


def check_parquet(path: Path, limits: Limits) -> None:
    """Refuse long texts, and many, and what is more than it says: each is looked at once."""
    import pyarrow.compute as pc
    from pyarrow import ArrowException, parquet, types

    if any(types.is_nested(field.type) for field in parquet.read_schema(path)):
        raise InvalidInputError("A column of a file holds one value in each row, no lists.")
    try:
        with parquet.ParquetFile(path) as file:
            columns = [file.schema.column(place) for place in range(len(file.schema))]
            size = _unpacked_size(path, file.metadata, limits)
        if any(column.length > _WIDEST for column in columns):
            raise InvalidInputError("A column's cells are of a fixed width; write it as text.")
        texts = [column.name for column in columns if column.physical_type == "BYTE_ARRAY"]
        with parquet.ParquetFile(path, read_dictionary=texts) as file:
            for group in range(file.num_row_groups):
                for name in texts:
                    for chunk in file.read_row_group(group, columns=[name]).column(0).chunks:
                        values = getattr(chunk, "dictionary", chunk)
                        lengths = pc.binary_length(values)
                        if (pc.max(lengths).as_py() or 0) > 4 * limits.field:  # bytes
                            raise InvalidInputError(
                                f"A cell of column {name!r} has over {limits.field} letters."
                            )
                        if values is not chunk:
                            lengths = lengths.take(chunk.indices)
                        size += pc.sum(lengths).as_py() or 0
                        if size > limits.bytes:
                            raise InvalidInputError(unpacks(limits))
    except InvalidInputError:
        raise
    except (OSError, ValueError, LookupError, RecursionError, ArrowException):
        raise InvalidInputError("The file cannot be read as Parquet.") from None


def _unpacked_size(path: Path, metadata: Any, limits: Limits) -> int:
    """Return what all cells take beside their text, if pages are within limits too."""
    cells = pages = heads = 0
    with path.open("rb") as file:
        for group in (metadata.row_group(number) for number in range(metadata.num_row_groups)):
            for column in (group.column(number) for number in range(group.num_columns)):
                cells += max(column.num_values, group.num_rows)
                at = column.data_page_offset
                if column.has_dictionary_page and 0 < column.dictionary_page_offset < at:
                    at = column.dictionary_page_offset
                end = at + column.total_compressed_size
                while at < end:
                    unpacked, packed, head = _page(file, at)
                    heads += 1
                    if min(unpacked, packed) < 0 or heads > _PAGES:
                        raise ValueError
                    pages, at = pages + unpacked, at + head + packed
                    if max(pages, _CELL * cells) > limits.bytes:
                        raise InvalidInputError(unpacks(limits))
    return _CELL * cells


def _page(file: BinaryIO, at: int) -> tuple[int, int, int]:
    """Return how large a page is, how large in the file, and how long its head is."""
    file.seek(at)
    fields, end = _struct(file.read(_HEAD), 0)
    return int(fields[2]), int(fields[3]), end


def _struct(data: bytes, at: int) -> tuple[dict[int, int], int]:
    """Read the integers of a struct in Thrift's compact protocol; return where it ends, too."""
    found: dict[int, int] = {}
    number = 0
    while data[at]:
        step, kind = divmod(data[at], 16)
        at += 1
        if step:
            number += step
        else:
            number, at = _integer(data, at)
        found[number], at = _value(data, at, kind)
    return found, at + 1


def _value(data: bytes, at: int, kind: int) -> tuple[int, int]:
    if kind in (1, 2):
        return 0, at
    if kind in (4, 5, 6):
        return _integer(data, at)
    if kind == _STRUCT:
        return 0, _struct(data, at)[1]
    if kind == _BINARY:
        length, at = _varint(data, at)
        return 0, at + length
    if kind in (3, _DOUBLE):
        return 0, at + (1 if kind == 3 else 8)
    raise ValueError  # heads of pages have no lists and maps


def _integer(data: bytes, at: int) -> tuple[int, int]:
    number, at = _varint(data, at)
    return (number >> 1) ^ -(number & 1), at


def _varint(data: bytes, at: int) -> tuple[int, int]:
    number = shift = 0
    while data[at] & 0x80:
        number, shift, at = number | (data[at] & 0x7F) << shift, shift + 7, at + 1
    return number | data[at] << shift, at + 1
