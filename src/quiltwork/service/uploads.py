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
            if self.suffix == ".csv":
                self._check(path)
                yield path
                return
            content = parquet.rewritten(path, self.limits)
        with self.vault.lent([content], self.suffix) as path:
            yield path

    def only(self, path: Path, columns: Sequence[str]) -> bytes:
        """Return the file at a lent path with these columns alone: what is not used is not kept."""
        kept = io.BytesIO()
        if self.suffix == ".parquet":
            from pyarrow import parquet as arrow

            arrow.write_table(arrow.read_table(path, columns=list(columns)), kept)
            return kept.getvalue()

        def write(rows: Iterator[list[str]]) -> None:
            header = next(rows, [])
            places = [delimited.column_position(header, n, "the file", columns) for n in columns]
            text = io.TextIOWrapper(kept, "utf-8", newline="")
            writer = csv.writer(text)
            writer.writerow(columns)
            for row in delimited.rows_of_width(rows, len(header), "the file"):
                writer.writerow([row[place] for place in places])
            text.detach()

        delimited.with_csv(str(path), write)
        return kept.getvalue()

    def _check(self, path: Path) -> None:
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
    vault: Vault, limits: Limits, parts: Iterable[bytes], suffix: str, encoding: str = ""
) -> Iterator[Upload]:
    """Keep what comes, unpacked, for a block; 413, 415 or 400 for what cannot be unpacked."""
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
                    raise Problem(413, "too-large", parquet.unpacks(limits))
                yield piece
    except zlib.error:
        raise Problem(400, "bad-request", "The body is not gzip.") from None
    if not stream.eof:
        raise Problem(400, "bad-request", "The body ends before its gzip does.")
