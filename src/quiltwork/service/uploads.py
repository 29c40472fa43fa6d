"""Uploads: streamed to the disk under limits, and read as a table only after that.

Bytes are counted as they come (`door.paced`), so that what is too large ends early. A CSV file may
come compressed (`Content-Encoding: gzip`) and is unpacked while it comes, up to a multiple of its
size.
What the end of a Parquet file says of its sizes is what whoever made it wrote there. So the heads
of all pages are read, by which a reader takes its memory, and columns of text as their
dictionaries: pages that repeat one text are small in the file and large in memory.
"""

from __future__ import annotations

import csv
import io
import zlib
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from quiltwork import delimited, files
from quiltwork.errors import InvalidInputError
from quiltwork.service.problems import Problem
from quiltwork.service.settings import Limits
from quiltwork.service.vault import Vault

if TYPE_CHECKING:
    from quiltwork.service.routes import Service

MEDIA_TYPES = {"text/csv": ".csv", "application/vnd.apache.parquet": ".parquet"}
_UNPACKED_FREELY = 1 << 20


@dataclass(frozen=True)
class Upload:
    """A file that was sent, ".csv" or ".parquet", at rest under a name in the vault."""

    name: str
    suffix: str
    vault: Vault
    limits: Limits

    @contextmanager
    def table(self) -> Iterator[Path]:
        """Lend a path at which the file can be read; rows, columns and cells are within limits."""
        with self.vault.plain(self.name, self.suffix) as path:
            self._check(path)
            yield path

    def only(self, path: Path, columns: Sequence[str]) -> bytes:
        """Return the file at a lent path with these columns alone: what is not used is not kept."""
        kept = io.BytesIO()
        if self.suffix == ".parquet":
            from pyarrow import parquet

            parquet.write_table(parquet.read_table(path, columns=list(columns)), kept)
            return kept.getvalue()

        def write(rows: Iterator[list[str]]) -> None:
            header = next(rows, [])
            places = [delimited.column_position(header, n, "the file", columns) for n in columns]
            text = io.TextIOWrapper(kept, "utf-8", newline="")
            writer = csv.writer(text)
            writer.writerow(columns)
            for row in delimited.even_rows(rows, len(header), "the file"):
                writer.writerow([row[place] for place in places])
            text.detach()

        delimited.with_csv(str(path), write)
        return kept.getvalue()

    def _check(self, path: Path) -> None:
        if self.suffix == ".parquet":
            try:
                found = files.table_file(str(path))
                self._check_size(found.count_rows(), len(found.schema.names))
                check_parquet(path, self.limits)
            except UnicodeDecodeError:
                raise InvalidInputError("A column's name, or a text, is not UTF-8.") from None
            return
        longest = self.limits.field

        def read(rows: Iterator[list[str]]) -> None:
            for number, row in enumerate(rows):
                self._check_size(number, len(row))
                if any(len(cell) > longest for cell in row):
                    raise InvalidInputError(f"A cell of row {number} has over {longest} letters.")

        delimited.with_csv(str(path), read)

    def _check_size(self, rows: int, columns: int) -> None:
        if rows > self.limits.rows or columns > self.limits.columns:
            raise InvalidInputError(
                f"A file may have {self.limits.rows:,} rows of {self.limits.columns} columns."
            )


def suffix_of(media_type: str) -> str:
    """Return how the name of such a file ends; 415 for other media types."""
    found = MEDIA_TYPES.get(media_type)
    if found is None:
        raise Problem(
            415, "unsupported-media", f"Send one of {', '.join(MEDIA_TYPES)} as Content-Type."
        )
    return found


@contextmanager
def received(
    service: Service, parts: Iterable[bytes], suffix: str, encoding: str = ""
) -> Iterator[Upload]:
    """Keep what comes, unpacked, for a block; 413, 415 or 400 for what cannot be unpacked."""
    limits, vault = service.settings.limits, service.vault
    if encoding not in ("", "identity", "gzip"):
        raise Problem(415, "unsupported-media", "Send it as it is, or in gzip.")
    name = vault.write(_unpacked(parts, limits) if encoding == "gzip" else parts)
    try:
        yield Upload(name, suffix, vault, limits)
    finally:
        vault.delete(name)


def _unpacked(parts: Iterable[bytes], limits: Limits) -> Iterator[bytes]:
    stream = zlib.decompressobj(wbits=31)
    packed = size = 0
    try:
        for part in parts:
            packed += len(part)
            while part:
                piece = stream.decompress(part, 1 << 20)
                part, size = stream.unconsumed_tail, size + len(piece)
                if size > max(_UNPACKED_FREELY, limits.unpacked * packed):
                    raise Problem(413, "too-large", "It unpacks to too many times its size.")
                if size > limits.bytes:
                    raise Problem(413, "too-large", unpacks(limits))
                yield piece
    except zlib.error:
        raise Problem(400, "bad-request", "The body is not gzip.") from None
    if not stream.eof:
        raise Problem(400, "bad-request", "The body ends before its gzip does.")


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
                    file.seek(at)
                    fields, head = _struct(file.read(_HEAD), 0)
                    unpacked, packed = fields[2], fields[3]
                    heads += 1
                    if min(unpacked, packed) < 0 or heads > _PAGES:
                        raise ValueError
                    pages, at = pages + unpacked, at + head + packed
                    if max(pages, _CELL * cells) > limits.bytes:
                        raise InvalidInputError(unpacks(limits))
    return _CELL * cells


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
