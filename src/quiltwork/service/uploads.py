"""Uploads: streamed to disk under limits, and only then read as a table.

Bytes are counted as they arrive (`request_limits.limited_body`), so an oversized body is refused
early. A CSV file may be compressed (`Content-Encoding: gzip`); it is unpacked while it arrives, up
to a multiple of its size. Parquet files are first read by a child process (`parquet.py`).
"""

from __future__ import annotations

import csv
import io
import zlib
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from quiltwork import delimited
from quiltwork.errors import InvalidInputError
from quiltwork.service import parquet
from quiltwork.service.problems import Problem
from quiltwork.service.settings import Limits
from quiltwork.service.vault import Vault

MEDIA_TYPES = {"text/csv": ".csv", "application/vnd.apache.parquet": ".parquet"}
_ALWAYS_UNPACKED = 1 << 20
"""Bytes that a body may unpack to whatever its packed size."""


@dataclass(frozen=True)
class Upload:
    """An uploaded CSV or Parquet file, stored in the vault while the request runs."""

    name: str
    suffix: str
    vault: Vault
    limits: Limits

    @contextmanager
    def table(self) -> Iterator[Path]:
        """Lend a path to the file, after checking rows, columns and cells against the limits."""
        with self.vault.plain(self.name, self.suffix) as path:
            if self.suffix == ".csv":
                self._check(path)
                yield path
                return
            content = parquet.rewritten(path, self.limits)
        with self.vault.lent([content], self.suffix) as path:
            yield path

    def with_columns(self, path: Path, columns: Sequence[str]) -> bytes:
        """Return the file at a lent path reduced to some columns, the only ones to be stored."""
        reduced = io.BytesIO()
        if self.suffix == ".parquet":
            from pyarrow import parquet as arrow

            arrow.write_table(arrow.read_table(path, columns=list(columns)), reduced)
            return reduced.getvalue()

        def write(rows: Iterator[list[str]]) -> None:
            header = next(rows, [])
            used = [delimited.column_position(header, n, "the file", columns) for n in columns]
            text = io.TextIOWrapper(reduced, "utf-8", newline="")
            writer = csv.writer(text)
            writer.writerow(columns)
            for row in delimited.rows_of_width(rows, len(header), "the file"):
                writer.writerow([row[position] for position in used])
            text.detach()

        delimited.with_csv(str(path), write)
        return reduced.getvalue()

    def _check(self, path: Path) -> None:
        longest = self.limits.field

        def read(rows: Iterator[list[str]]) -> None:
            for number, row in enumerate(rows):
                self._check_size(number, len(row))
                if any(len(cell) > longest for cell in row):
                    raise InvalidInputError(
                        f"A cell of row {number} has more than {longest:,} characters."
                    )

        delimited.with_csv(str(path), read)

    def _check_size(self, rows: int, columns: int) -> None:
        if rows > self.limits.rows or columns > self.limits.columns:
            raise InvalidInputError(
                f"The file is too large: at most {self.limits.rows:,} rows of "
                f"{self.limits.columns} columns are allowed."
            )


def suffix_of(media_type: str) -> str:
    """Return the file name suffix of a media type; 415 for an unsupported one."""
    suffix = MEDIA_TYPES.get(media_type)
    if suffix is None:
        raise Problem(415, "unsupported-media", f"Send Content-Type {' or '.join(MEDIA_TYPES)}.")
    return suffix


@contextmanager
def received(
    vault: Vault, limits: Limits, parts: Iterable[bytes], suffix: str, encoding: str = ""
) -> Iterator[Upload]:
    """Store an unpacked upload during a block; 400, 413 or 415 if it cannot be unpacked."""
    if encoding not in ("", "identity", "gzip"):
        raise Problem(415, "unsupported-media", "Content-Encoding must be gzip, or be left out.")
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
                if size > max(_ALWAYS_UNPACKED, limits.unpacked * packed):
                    raise Problem(
                        413,
                        "too-large",
                        f"The body unpacks to more than {limits.unpacked} times its size.",
                    )
                if size > limits.bytes:
                    raise Problem(413, "too-large", parquet.unpacks_to_too_much(limits))
                yield piece
    except zlib.error:
        raise Problem(400, "bad-request", "The body is not valid gzip.") from None
    if not stream.eof:
        raise Problem(400, "bad-request", "The gzip body is incomplete.")
