"""Uploads: CSV files, streamed to the disk under limits, and read as a table only after that.

Bytes are counted as they come, so that what is too large ends early. A file may come compressed
(`Content-Encoding: gzip`) and is unpacked while it comes, up to a multiple of its size.
"""

from __future__ import annotations

import csv
import io
import zlib
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from quiltwork import delimited
from quiltwork.errors import InvalidInputError
from quiltwork.service.door import too_large
from quiltwork.service.problems import Problem
from quiltwork.service.settings import Limits
from quiltwork.service.vault import Vault

if TYPE_CHECKING:
    from quiltwork.service.routes import Service

MEDIA_TYPE = "text/csv"
_UNPACKED_FREELY = 1 << 20


@dataclass(frozen=True)
class Upload:
    """A CSV file that was sent, at rest under a name in the vault."""

    name: str
    vault: Vault
    limits: Limits

    @contextmanager
    def table(self) -> Iterator[Path]:
        """Lend a path at which the file can be read; rows, columns and cells are within limits."""
        with self.vault.plain(self.name) as path:
            self._check(path)
            yield path

    def only(self, path: Path, columns: Sequence[str]) -> bytes:
        """Return the file at a lent path with these columns alone: what is not used is not kept."""
        kept = io.BytesIO()

        def write(rows: Iterator[list[str]]) -> None:
            header = next(rows, [])
            places = [delimited.column_position(header, name, "the file") for name in columns]
            text = io.TextIOWrapper(kept, "utf-8", newline="")
            writer = csv.writer(text)
            writer.writerow(columns)
            for row in delimited.even_rows(rows, len(header), "the file"):
                writer.writerow([row[place] for place in places])
            text.detach()

        delimited.with_csv(str(path), write)
        return kept.getvalue()

    def _check(self, path: Path) -> None:
        limits = self.limits

        def read(rows: Iterator[list[str]]) -> None:
            for number, row in enumerate(rows):
                if number > limits.rows or len(row) > limits.columns:
                    raise InvalidInputError(
                        f"A file may have {limits.rows:,} rows of {limits.columns} columns."
                    )
                if any(len(cell) > limits.field for cell in row):
                    raise InvalidInputError(
                        f"A cell of row {number} has over {limits.field} letters."
                    )

        delimited.with_csv(str(path), read)


def check_media_type(said: str) -> None:
    """Refuse what is not said to be CSV, with 415."""
    if said.partition(";")[0].strip().lower() != MEDIA_TYPE:
        raise Problem(415, "unsupported-media", f"Send {MEDIA_TYPE} as Content-Type.")


@contextmanager
def received(service: Service, parts: Iterable[bytes], encoding: str = "") -> Iterator[Upload]:
    """Keep what comes, unpacked, for a block, if it is within limits; else 413, 415 or 400."""
    limits, vault = service.settings.limits, service.vault
    if encoding not in ("", "identity", "gzip"):
        raise Problem(415, "unsupported-media", "Send it as it is, or in gzip.")
    limited = _limited(parts, limits.upload)
    name = vault.write(_unpacked(limited, limits) if encoding == "gzip" else limited)
    try:
        yield Upload(name, vault, limits)
    finally:
        vault.delete(name)


def _limited(parts: Iterable[bytes], most: int) -> Iterator[bytes]:
    size = 0
    for part in parts:
        size += len(part)
        if size > most:
            raise too_large(most)
        yield part


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
                    raise Problem(
                        413, "too-large", f"It unpacks to more than {limits.bytes:,} bytes."
                    )
                yield piece
    except zlib.error:
        raise Problem(400, "bad-request", "The body is not gzip.") from None
    if not stream.eof:
        raise Problem(400, "bad-request", "The body ends before its gzip does.")
