"""CSV files as rows of text: read with the standard library, their troubles told in sentences."""

from __future__ import annotations

import csv
import gzip
import sys
import zlib
from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager, suppress
from io import BufferedReader, TextIOWrapper
from itertools import islice
from typing import IO, TypeVar

from quiltwork import files
from quiltwork.errors import InvalidInputError

Result = TypeVar("Result")

WHOLE = r"^(0|-?[1-9][0-9]*)$"
"""A whole number in its usual spelling: `02410` and `+5` are rather codes."""
DECIMAL = (
    r"^(0|-?[1-9][0-9]*)$"
    r"|^-?((0|[1-9][0-9]*)\.[0-9]*|\.[0-9]+)$"
    r"|^-?(0|[1-9][0-9]*)(\.[0-9]*[eE][+-]?|[eE][+-])[0-9]+$"
)
"""A number likewise; an exponent has a sign, or comes after a point, as `12E4` may be a code."""

MISSING_WORDS = frozenset({"", "na", "n/a", "nan", "null", "none", "?"})
"""The usual words for a missing value, in small letters."""

_AT_ONCE = 4096
_BUFFER = 1 << 17


def with_csv(path: str, read: Callable[[Iterator[list[str]]], Result]) -> Result:
    """Call `read` with the rows of a CSV file, the header among them.

    `-` is standard input, `.gz` is decompressed within limits (`files.Unpacked`).

    Raises:
        InvalidInputError: if the file cannot be read, is not CSV in UTF-8 or not a whole gzip file,
            or unpacks to too much.
    """
    try:
        with _opened(path) as file:
            return _told(path, file, read)
    except (EOFError, gzip.BadGzipFile, zlib.error) as error:
        raise InvalidInputError(f"{path!r} is not a whole gzip file: {error}.") from None
    except OSError as error:
        raise InvalidInputError(f"Cannot read {path!r}: {error.strerror or error}.") from None


def _told(path: str, file: IO[str], read: Callable[[Iterator[list[str]]], Result]) -> Result:
    reader = csv.reader(file, strict=True)
    try:
        with suppress(UnicodeDecodeError):  # which would carry the bytes of the file
            return read(reader)
        raise InvalidInputError(
            f"{path!r} is not UTF-8 text near line {reader.line_num + 1}; convert it first."
        )
    except csv.Error as error:
        raise InvalidInputError(
            f"Line {reader.line_num} of {path!r} is not CSV: {error}."
        ) from None


def _opened(path: str) -> AbstractContextManager[IO[str]]:
    if path == "-":
        return _standard_input()
    files.refuse_device(path)
    if path.endswith(".gz"):
        packed = gzip.open(path)  # noqa: SIM115  (closed by the streams around it)
        unpacked = BufferedReader(files.Unpacked(packed, path), _BUFFER)
        return TextIOWrapper(unpacked, encoding="utf-8-sig", newline="")
    return open(path, encoding="utf-8-sig", newline="")


@contextmanager
def _standard_input() -> Iterator[IO[str]]:
    """Standard input read as a file is, whatever the terminal's encoding."""
    if not hasattr(sys.stdin, "buffer"):
        yield sys.stdin
        return
    text = TextIOWrapper(sys.stdin.buffer, encoding="utf-8-sig", newline="")
    try:
        yield text
    finally:
        text.detach()


def even_rows(reader: Iterator[list[str]], columns: int, path: str) -> Iterator[list[str]]:
    """Yield the rows that are not empty, all of which must have this many columns.

    Raises:
        InvalidInputError: for a row that has more or fewer.
    """
    rows, done = filter(None, reader), 0
    while some := list(islice(rows, _AT_ONCE)):
        if set(map(len, some)) != {columns}:
            at = next(i for i, row in enumerate(some) if len(row) != columns)
            raise InvalidInputError(
                f"Row {done + at + 1} of {path!r} has {len(some[at])} columns and the header "
                f"{columns}; put values with commas in quotes."
            )
        yield from some
        done += len(some)


def split_line(text: str) -> list[str]:
    """Split one line as CSV does: `a,b,"c,d"` has three parts.

    Raises:
        InvalidInputError: if it is several lines.
    """
    try:
        return next(csv.reader([text]), [])
    except csv.Error:
        raise InvalidInputError(f"{text!r} is no single line of CSV.") from None


def column_position(header: Sequence[str], name: str, path: str) -> int:
    """Return where a column is.

    Raises:
        InvalidInputError: if it is not there, or more than once.

    >>> column_position(["age", "zip"], "zip", "people.csv")
    1
    """
    if list(header).count(name) == 1:
        return list(header).index(name)
    problem = "appears more than once" if name in header else "is not there"
    raise InvalidInputError(
        f"Column {name!r} {problem} in {path!r}, whose columns are: {', '.join(header)}."
    )
