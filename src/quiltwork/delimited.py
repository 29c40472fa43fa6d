"""CSV files as rows of text: detecting their dialect, reading and writing rows, parse errors.

The standard library reads them here; `series.reading` uses Arrow where that is installed, and falls
back to these rows for readable messages. The dialect is detected from the header, and from the
first rows where these may have a say (`detect_dialect`), unless the caller gives it.
"""

from __future__ import annotations

import codecs
import csv
import gzip
import io
import re
import stat
import sys
import zlib
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace
from itertools import islice
from pathlib import Path
from typing import Any, BinaryIO, TypeVar

from quiltwork import files
from quiltwork.errors import InvalidInputError
from quiltwork.exact import shortened
from quiltwork.wording import argument

Result = TypeVar("Result")

WHOLE = r"^(0|-?[1-9][0-9]*)$"
"""A whole number in its usual spelling; `02410` and `+5` are probably codes."""
DECIMAL = (
    r"^(0|-?[1-9][0-9]*)$"
    r"|^-?((0|[1-9][0-9]*)\.[0-9]*|\.[0-9]+)$"
    r"|^-?(0|[1-9][0-9]*)(\.[0-9]*[eE][+-]?|[eE][+-])[0-9]+$"
)
"""A number in its usual spelling; `12E4` may be a code, so an exponent needs a sign or a point."""

NO_VALUE = frozenset({"", "nan"})
MISSING_WORDS = frozenset({"", "na", "n/a", "nan", "null", "none", "?"})
"""The usual words for a missing value, in lower case."""

_BATCH = 4096
_BUFFER = 1 << 17
_SAMPLE = 1 << 16
_DELIMITERS = "\t;|,"  # the first one wins where a header has equally many
_BOMS = (
    (codecs.BOM_UTF8, "utf-8"),
    (codecs.BOM_UTF16_LE, "utf-16"),
    (codecs.BOM_UTF16_BE, "utf-16"),
)
_UTF8_OR_CP1252 = "utf-8-or-cp1252"
"""A codec that decodes bytes that are not UTF-8 as cp1252, each on its own: one row does not change
how others are read."""
_WORKBOOKS = (b"PK\x03\x04", b"\xd0\xcf\x11\xe0")
_EMPTY_LINES = re.compile(rb"(?:\xef\xbb\xbf)?(?:\r?\n)+")
_SEPARATOR = re.compile(rb"(?:\xef\xbb\xbf)?sep=([^\r\n\"])\r?\n", re.IGNORECASE)
_COMMA_NUMBER = re.compile(r"[+-]?\d+,\d+")
_POINT_NUMBER = re.compile(r"[+-]?\d+\.\d+")


def _decode_as_cp1252(error: UnicodeError) -> tuple[str, int]:
    assert isinstance(error, UnicodeDecodeError)  # noqa: S101  (only decoders call this)
    data = error.object[error.start : error.end]
    return data.decode("cp1252" if data.decode("cp1252", "ignore") else "latin-1"), error.end


class _MixedDecoder(codecs.getincrementaldecoder("utf-8-sig")):  # type: ignore[misc]
    def __init__(self, errors: str = "strict") -> None:
        super().__init__(_UTF8_OR_CP1252)


def _find_codec(name: str) -> codecs.CodecInfo | None:
    if name.replace("_", "-") != _UTF8_OR_CP1252:
        return None
    plain = codecs.lookup("utf-8")
    return codecs.CodecInfo(
        plain.encode,
        lambda text, errors="strict": (_MixedDecoder().decode(text, True), len(text)),
        incrementalencoder=plain.incrementalencoder,
        incrementaldecoder=_MixedDecoder,
        name=_UTF8_OR_CP1252,
    )


codecs.register_error(_UTF8_OR_CP1252, _decode_as_cp1252)
codecs.register(_find_codec)


@dataclass(frozen=True)
class Dialect:
    """How a CSV file is written.

    Attributes:
        delimiter: the character between two cells.
        decimal: the decimal point of numbers.
        encoding: of the text; a byte order mark is left out.
        na_values: further words for a missing value, beside `MISSING_WORDS`.
        date_format: the format of times, as in `strptime`; None is ISO 8601 or whole numbers.
        declared: whether only empty cells, NaN and `na_values` are missing.
    """

    delimiter: str = ","
    decimal: str = "."
    encoding: str = "utf-8"
    na_values: frozenset[str] = frozenset()
    date_format: str | None = None
    declared: bool = False

    @property
    def words(self) -> str:
        """How it differs from a plain file: comma, decimal point, UTF-8, ISO 8601; else empty."""
        parts = []
        if self.delimiter != ",":
            parts.append(
                "delimiter tab" if self.delimiter == "\t" else f"delimiter {self.delimiter}"
            )
        if self.decimal == ",":
            parts.append("decimal comma")
        if self.encoding == _UTF8_OR_CP1252:
            parts.append("encoding cp1252 where letters are not UTF-8")
        elif self.encoding != "utf-8":
            parts.append(f"encoding {self.encoding}")
        if self.na_values:
            parts.append(f"missing {', '.join(sorted(self.na_values))}")
        if self.date_format is not None:
            parts.append(f"times {self.date_format}")
        return ", ".join(parts)

    def is_missing(self, text: str) -> bool:
        """Return whether a cell stands for a missing value."""
        cell = text.strip()
        return cell.lower() in self.missing_words or cell in self.na_values

    @property
    def missing_words(self) -> frozenset[str]:
        """The words, in lower case, that always stand for a missing value."""
        return NO_VALUE if self.declared else MISSING_WORDS


@dataclass(frozen=True)
class DialectOptions:
    """The parts of a dialect that the caller gives; None is detected.

    Attributes:
        delimiter: as in `Dialect`; also "tab", "semicolon" and "comma".
        decimal: as in `Dialect`.
        encoding: as in `Dialect`.
        na_values: as in `Dialect`.
        date_format: as in `Dialect`.
        by_rows: whether the first rows may be used for detection, not only the header.
        declared: as in `Dialect`.

    Raises:
        InvalidInputError: for values that no file has.
    """

    delimiter: str | None = None
    decimal: str | None = None
    encoding: str | None = None
    na_values: Sequence[str] = ()
    date_format: str | None = None
    by_rows: bool = field(default=True, kw_only=True)
    declared: bool = field(default=False, kw_only=True)

    def __post_init__(self) -> None:
        """Check the parts."""
        spelled = {"tab": "\t", "\\t": "\t", "semicolon": ";", "comma": ","}
        mark = spelled.get(str(self.delimiter), self.delimiter)
        object.__setattr__(self, "delimiter", mark)
        if mark is not None and not (
            isinstance(mark, str) and re.fullmatch(r'[^"\r\n\x80-\U0010ffff]', mark)
        ):
            raise InvalidInputError(
                f"A delimiter is one ASCII character, not {shortened(mark)}; write tab for one."
            )
        if self.decimal not in (None, ".", ",") or (mark == self.decimal is not None):
            raise InvalidInputError(
                "decimal is '.' or ',', and another character than the delimiter."
            )
        try:
            codecs.lookup(self.encoding or "utf-8")
        except (LookupError, TypeError, ValueError):
            raise InvalidInputError(
                f"There is no encoding {shortened(self.encoding)}; write utf-8, latin-1 or utf-16."
            ) from None


def detect_dialect(sample: bytes, options: DialectOptions | None = None) -> Dialect:
    """Detect the dialect of a file from its first bytes.

    The delimiter is that of the header, which is public, and the decimal point that of the rows
    after it, unless `options.by_rows` is off: then a file with semicolons has decimal commas,
    whatever its rows hold. Bytes that are not UTF-8 are decoded as cp1252, each on its own.

    >>> detect_dialect(b"time;kw\\n1;0,5\\n").words
    'delimiter ;, decimal comma'
    """
    options = options or DialectOptions()
    encoding = options.encoding or next((n for b, n in _BOMS if sample.startswith(b)), None)
    encoding = encoding or _detect_encoding(sample, by_rows=options.by_rows)
    lines = sample.decode(encoding, "replace").lstrip("\ufeff").splitlines()[:200]
    header = lines[0] if lines else ""
    bare = re.sub(r'"[^"]*"', "", header)
    most = max(_DELIMITERS, key=bare.count)
    delimiter = options.delimiter or (most if most in bare else ",")
    cells = [cell.strip() for row in csv.reader(lines[1:-1], delimiter=delimiter) for cell in row]
    decimal = "," if delimiter == ";" else "."
    if options.by_rows and delimiter == ";":
        points = any(map(_POINT_NUMBER.fullmatch, cells))
        decimal = "." if points and not any(map(_COMMA_NUMBER.fullmatch, cells)) else ","
    words = frozenset(word.strip() for word in options.na_values)
    mark = options.decimal or decimal
    return Dialect(delimiter, mark, encoding, words, options.date_format, options.declared)


def _detect_encoding(sample: bytes, *, by_rows: bool) -> str:
    if b"\0" in sample[:2]:  # UTF-16 without a byte order mark, beginning with an ASCII letter
        return "utf-16-be" if sample[:1] == b"\0" else "utf-16-le"
    inspected = sample if by_rows else sample.partition(b"\n")[0]
    try:
        codecs.getincrementaldecoder("utf-8")().decode(inspected)
    except UnicodeDecodeError:
        return _UTF8_OR_CP1252
    return "utf-8"


class CsvSource:
    """A CSV file, or standard input (`-`), that can be read from its beginning repeatedly.

    `.gz` is decompressed within limits (`files.Unpacked`). A pipe is kept in memory.

    Attributes:
        path: the file.
        parts: the files that were joined to one (`joined`), with their numbers of rows.
        skipped: the number of bytes before the header.
        dialect: how the file is written.
    """

    def __init__(
        self, path: str, options: DialectOptions | None = None, whole: bytes | None = None
    ) -> None:
        """Detect the dialect of the file at `path`, whose content is `whole` if that is known.

        Raises:
            InvalidInputError: if it cannot be read.
        """
        self.path = path
        self.parts: Sequence[tuple[str, int]] = ()
        self.skipped = 0
        self._whole = whole
        self._has_encoding = options is not None and options.encoding is not None
        if path != "-" and whole is None:
            files.refuse_device(path)
        with _ReadErrors(path):
            if whole is not None:
                pass
            elif path == "-":
                text = sys.stdin
                self._whole = (
                    text.buffer.read() if hasattr(text, "buffer") else text.read().encode()
                )
            elif not stat.S_ISREG(Path(path).stat().st_mode):
                self._whole = Path(path).read_bytes()
            with self.stream() as stream:
                sample = stream.read(_SAMPLE)
        if sample.startswith(_WORKBOOKS):
            raise InvalidInputError(f"{path!r} is an Excel workbook; save it as CSV first.")
        options = options or DialectOptions()
        if empty := _EMPTY_LINES.match(sample):
            self.skipped = empty.end()
        if separator := _SEPARATOR.match(sample, self.skipped):  # as Excel writes above the header
            self.skipped = separator.end()
            mark = options.delimiter or separator[1].decode("latin-1")
            options = replace(options, delimiter=mark)
        self.dialect = detect_dialect(sample[self.skipped :], options)
        encoding = self.dialect.encoding
        letters = sample.decode(encoding) if options.by_rows and encoding == _UTF8_OR_CP1252 else ""
        if re.search("[\x80-\x9f]", letters):  # bytes for which cp1252 has no letters
            raise InvalidInputError(
                f"{path!r} is neither UTF-8 nor Windows' text (cp1252); say its encoding, for "
                f"example {argument('encoding', 'shift_jis')}."
            )

    def fall_back_to_cp1252(self) -> bool:
        """Switch to the mixed codec if a file that begins as UTF-8 is not UTF-8 throughout."""
        if self._has_encoding or self.dialect.encoding != "utf-8":
            return False
        with self.stream() as stream, suppress(UnicodeDecodeError):
            for _ in codecs.iterdecode(iter(lambda: stream.read(_BUFFER), b""), "utf-8"):
                pass
            return False
        self.dialect = replace(self.dialect, encoding=_UTF8_OR_CP1252)
        return True

    def stream(self) -> BinaryIO:
        """Open the bytes, decompressed."""
        stream: BinaryIO
        if self._whole is not None:
            stream = io.BytesIO(self._whole)
        elif self.path.endswith(".gz"):
            packed = gzip.open(self.path)  # noqa: SIM115  (closed by the stream around it)
            stream = io.BufferedReader(files.Unpacked(packed, self.path), _BUFFER)
        else:
            stream = open(self.path, "rb")  # noqa: SIM115  (closed by the caller)
        stream.read(self.skipped)
        return stream

    def rows(self, read: Callable[[Iterator[list[str]]], Result]) -> Result:
        """Call `read` with the rows, the header first, and return its result.

        Raises:
            InvalidInputError: if the file cannot be read, is not CSV in its encoding, is a damaged
                gzip file, or unpacks to too much.
        """
        codec = self.dialect.encoding
        if codec == "utf-8":
            codec = "utf-8-sig" if self._has_encoding else _UTF8_OR_CP1252
        with _ReadErrors(self.path), io.TextIOWrapper(self.stream(), codec, newline="") as file:
            reader = csv.reader(file, strict=True, delimiter=self.dialect.delimiter)
            try:
                with suppress(UnicodeError):  # its message would show bytes of the file
                    return read(reader)
            except csv.Error as error:
                raise InvalidInputError(
                    f"Line {reader.line_num} of {self.path!r} is not CSV: {error}."
                ) from None
        name = self.dialect.encoding.upper()
        raise InvalidInputError(
            f"{self.path!r} is not {name} text near line {reader.line_num + 1}; say its encoding, "
            f"for example {argument('encoding', 'latin-1')}, or convert it first."
        )


def joined(paths: Sequence[str], options: DialectOptions) -> CsvSource | None:
    """Join small plain files with the same header to one source; None if they are not plain.

    Plain: one line is one row, nothing is quoted, no line is empty, and the text is UTF-8.
    """
    texts = []
    with _ReadErrors(paths[0]):
        for path in paths:
            with open(path, "rb") as file:
                texts.append(file.read())
    header = texts[0].partition(b"\n")[0] + b"\n"
    bodies = [text[len(header) :] for text in texts if text.startswith(header)]
    ends = b"\r\n" if header.endswith(b"\r\n") else b"\n"
    bodies = [body + ends if body[-1:] != b"\n" else body for body in bodies]
    whole = header + b"".join(bodies)
    odd = (b'"', b"\n\n", b"\n\r", b"sep=", codecs.BOM_UTF8)
    lines = whole.count(b"\n")
    if len(bodies) < len(texts) or any(mark in whole for mark in odd):
        return None
    if whole.count(b"\r") not in (0, lines) or not _is_utf8(whole):
        return None
    source = CsvSource(paths[0], options, whole)
    source.parts = [(p, body.count(b"\n")) for p, body in zip(paths, bodies, strict=True)]
    return source


def _is_utf8(whole: bytes) -> bool:
    with suppress(UnicodeDecodeError):
        return whole.isascii() or bool(whole.decode())
    return False


class _ReadErrors:
    """Turns errors of reading a file into readable messages."""

    def __init__(self, path: str) -> None:
        self._path = path

    def __enter__(self) -> None:
        return None

    def __exit__(self, kind: Any, error: BaseException | None, trace: Any) -> None:
        if isinstance(error, (EOFError, gzip.BadGzipFile, zlib.error)):
            raise InvalidInputError(f"{self._path!r} is not a whole gzip file: {error}.") from None
        if isinstance(error, OSError):
            reason = error.strerror or error
            raise InvalidInputError(f"Cannot read {self._path!r}: {reason}.") from None


def with_csv(
    path: str,
    read: Callable[[Iterator[list[str]]], Result],
    options: DialectOptions | None = None,
) -> Result:
    """Call `read` with the rows of a file, the header first, and return its result.

    The values of a Parquet or Arrow file are written as text. The files of a folder or a pattern
    must have the same header; their rows follow each other. The dialect of a CSV file is detected
    from its header alone, unless it is given: no person's row changes how the others are read.

    Raises:
        InvalidInputError: as `CsvSource` does.
    """
    dialect = options or DialectOptions(by_rows=False)
    paths = [path] if path == "-" else files.expand_files(path)

    def read_one(name: str, reader: Callable[[Iterator[list[str]]], Any]) -> Any:
        if name.endswith(files.TABLES):
            return reader(_table_rows(name))
        return CsvSource(name, dialect).rows(reader)

    if len(paths) == 1:
        return read_one(paths[0], read)  # type: ignore[no-any-return]
    header: list[str] = read_one(paths[0], lambda rows: next(rows, []))

    def rows() -> Iterator[list[str]]:
        yield header
        for name in paths:
            own = read_one(name, list)
            if own[:1] != [header]:
                raise InvalidInputError(f"{name!r} has other columns than {paths[0]!r}.")
            yield from own[1:]

    return read(rows())


def _table_rows(path: str) -> Iterator[list[str]]:
    data = files.open_table_file(path)
    yield list(data.schema.names)
    for batch in data.to_batches():
        columns = [column.cast("string").fill_null("").to_pylist() for column in batch.columns]
        yield from map(list, zip(*columns, strict=True))


def rows_of_width(reader: Iterator[list[str]], columns: int, path: str) -> Iterator[list[str]]:
    """Yield the non-empty rows, all of which must have this many columns.

    Raises:
        InvalidInputError: for a row with more or fewer.
    """
    rows, before = filter(None, reader), 0
    while batch := list(islice(rows, _BATCH)):
        if set(map(len, batch)) != {columns}:
            at = next(i for i, row in enumerate(batch) if len(row) != columns)
            raise InvalidInputError(
                f"Row {before + at + 1} of {path!r} has {len(batch[at])} columns and the header "
                f"{columns}; put values with commas in quotes."
            )
        yield from batch
        before += len(batch)


def split_line(text: str) -> list[str]:
    """Split one line of CSV: `a,b,"c,d"` has three parts.

    Raises:
        InvalidInputError: if the text is several lines.
    """
    try:
        return next(csv.reader([text]), [])
    except csv.Error:
        raise InvalidInputError(f"{text!r} is no single line of CSV.") from None


def column_position(
    header: Sequence[str], name: str, path: str, requested: Iterable[str] = ()
) -> int:
    """Return the index of a column in the header; `requested` are all columns to read.

    Raises:
        InvalidInputError: if the column is missing, or there more than once.

    >>> column_position(["age", "zip"], "zip", "people.csv")
    1
    """
    if list(header).count(name) == 1:
        return list(header).index(name)
    problem = "appears more than once" if name in header else "is not there"
    similar = next((n for n in header if n != name and n.strip() == name.strip()), None)
    hint = "" if similar is None else f" Take the spaces around {similar!r} out of the header."
    raise InvalidInputError(
        f"Column {name!r} {problem} in {path!r}, {columns_of(header, (name, *requested))}.{hint}"
    )


def columns_of(header: Sequence[str], requested: Iterable[str]) -> str:
    """Name the columns of a file for a message, or give their number.

    The first line of a file without a header is somebody's row, so it is quoted only if one of the
    requested columns is in it.

    >>> columns_of(["age", "zip"], ["zip", "ill"])
    'whose columns are: age, zip'
    >>> columns_of(["34", "flu"], ["zip", "ill"])
    'which has 2 columns, none of them asked for; its first line must name them'
    """
    if set(requested) & set(header):
        return f"whose columns are: {', '.join(header)}"
    number = f"{len(header)} column{'' if len(header) == 1 else 's'}"
    return f"which has {number}, none of them asked for; its first line must name them"


_NUMBER = r"-?[0-9]+(?:\.[0-9]+)?(?:e[+-]?[0-9]+)?"
FORMULA = r"^[=+\-@\t\r\n＝＋－＠]"
NO_FORMULA = rf"^{_NUMBER}(?:\.\.{_NUMBER})?$"
"""Negative numbers and ranges of them, which a spreadsheet reads as text or as a number."""


def escape_formula(text: str) -> str:
    """Put an apostrophe before text that a spreadsheet would compute as a formula.

    >>> escape_formula("=1+1"), escape_formula("flu"), escape_formula("-5..3")
    ("'=1+1", 'flu', '-5..3')
    """
    formula = re.search(FORMULA, text) and not re.search(NO_FORMULA, text)
    return f"'{text}" if formula else text


def unescape_formula(text: str) -> str:
    """Remove the apostrophe that `escape_formula` put before a text.

    >>> unescape_formula("'=1+1"), unescape_formula("'tis"), unescape_formula("=1")
    ('=1+1', "'tis", '=1')
    """
    rest = text[1:]
    return rest if text[:1] == "'" and escape_formula(rest) != rest else text


def csv_text(rows: Iterable[Iterable[object]]) -> str:
    """Write rows as CSV for others; texts that a spreadsheet would compute are escaped.

    >>> csv_text([("name", "score"), ("=cmd()", -0.5)])
    "name,score\\n'=cmd(),-0.5\\n"
    """
    text = io.StringIO()
    csv.writer(text, lineterminator="\n").writerows(
        [escape_formula(cell) if isinstance(cell, str) else cell for cell in row] for row in rows
    )
    return text.getvalue()
