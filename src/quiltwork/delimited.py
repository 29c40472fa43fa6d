"""CSV files as rows of text: how they are written, and their troubles told in sentences.

The standard library reads them here; `series.reading` lets Arrow do it where that is installed, and
comes back to these rows to say what is wrong. How a file is written is found in its first line, and
in its first rows where these may be looked at (`detect_dialect`), unless the caller says it.
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
"""A whole number in its usual spelling: `02410` and `+5` are rather codes."""
DECIMAL = (
    r"^(0|-?[1-9][0-9]*)$"
    r"|^-?((0|[1-9][0-9]*)\.[0-9]*|\.[0-9]+)$"
    r"|^-?(0|[1-9][0-9]*)(\.[0-9]*[eE][+-]?|[eE][+-])[0-9]+$"
)
"""A number likewise; an exponent has a sign, or comes after a point, as `12E4` may be a code."""

NO_VALUE = frozenset({"", "nan"})
MISSING_WORDS = frozenset({"", "na", "n/a", "nan", "null", "none", "?"})
"""The usual words for a missing value, in small letters."""

_AT_ONCE = 4096
_BUFFER = 1 << 17
_SAMPLE = 1 << 16
_DELIMITERS = "\t;|,"  # in this order where a header has as many of each
_BOMS = (
    (codecs.BOM_UTF8, "utf-8"),
    (codecs.BOM_UTF16_LE, "utf-16"),
    (codecs.BOM_UTF16_BE, "utf-16"),
)
_BY_LETTER = "utf-8-or-cp1252"
"""Reads as Windows does what is no UTF-8, so that one row has no say in how others are read."""
_WORKBOOKS = (b"PK\x03\x04", b"\xd0\xcf\x11\xe0")
_EMPTY_LINES = re.compile(rb"(?:\xef\xbb\xbf)?(?:\r?\n)+")
_SEPARATOR = re.compile(rb"(?:\xef\xbb\xbf)?sep=([^\r\n\"])\r?\n", re.IGNORECASE)
_COMMA_NUMBER = re.compile(r"[+-]?\d+,\d+")
_POINT_NUMBER = re.compile(r"[+-]?\d+\.\d+")


def _as_windows_does(error: UnicodeError) -> tuple[str, int]:
    assert isinstance(error, UnicodeDecodeError)  # noqa: S101  (a reader asks)
    some = error.object[error.start : error.end]
    return some.decode("cp1252" if some.decode("cp1252", "ignore") else "latin-1"), error.end


class _LetterByLetter(codecs.getincrementaldecoder("utf-8-sig")):  # type: ignore[misc]
    def __init__(self, errors: str = "strict") -> None:
        super().__init__(_BY_LETTER)


def _found_codec(name: str) -> codecs.CodecInfo | None:
    if name.replace("_", "-") != _BY_LETTER:
        return None
    plain = codecs.lookup("utf-8")
    return codecs.CodecInfo(
        plain.encode,
        lambda text, errors="strict": (_LetterByLetter().decode(text, True), len(text)),
        incrementalencoder=plain.incrementalencoder,
        incrementaldecoder=_LetterByLetter,
        name=_BY_LETTER,
    )


codecs.register_error(_BY_LETTER, _as_windows_does)
codecs.register(_found_codec)


@dataclass(frozen=True)
class Dialect:
    """How a CSV file is written.

    Attributes:
        delimiter: what stands between two cells.
        decimal: the decimal point of numbers.
        encoding: of the text; a byte order mark is left out.
        na_values: words for a missing value, beside `MISSING_WORDS`; beside empty cells and NaN
            where they must be `declared`.
        date_format: how times are written, as in `strptime`; None is ISO 8601 or whole numbers.
    """

    delimiter: str = ","
    decimal: str = "."
    encoding: str = "utf-8"
    na_values: frozenset[str] = frozenset()
    date_format: str | None = None
    declared: bool = False

    @property
    def words(self) -> str:
        """What is not as in a plain file: comma, decimal point, UTF-8, ISO 8601; else nothing."""
        parts = []
        if self.delimiter != ",":
            parts.append(
                "delimiter tab" if self.delimiter == "\t" else f"delimiter {self.delimiter}"
            )
        if self.decimal == ",":
            parts.append("decimal comma")
        if self.encoding == _BY_LETTER:
            parts.append("encoding cp1252 where letters are no UTF-8")
        elif self.encoding != "utf-8":
            parts.append(f"encoding {self.encoding}")
        if self.na_values:
            parts.append(f"missing {', '.join(sorted(self.na_values))}")
        if self.date_format is not None:
            parts.append(f"times {self.date_format}")
        return ", ".join(parts)

    def is_missing(self, text: str) -> bool:
        """Whether a cell stands for a missing value."""
        cell = text.strip()
        return cell.lower() in self.missing_words or cell in self.na_values

    @property
    def missing_words(self) -> frozenset[str]:
        """The words, in small letters, that stand for a missing value in any file."""
        return NO_VALUE if self.declared else MISSING_WORDS


@dataclass(frozen=True)
class DialectOptions:
    """What a caller says about how a file is written; None is to be found.

    Raises:
        InvalidInputError: for what no file has.
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


def detect_dialect(sample: bytes, given: DialectOptions | None = None) -> Dialect:
    """Return how a file is written that begins with these bytes.

    The delimiter is found in the first line, which is public, and the decimal point in the rows
    after it, unless `given.by_rows` is off: then a file with semicolons has decimal commas,
    whatever its rows hold. Letters of UTF-8 files that are none are read as in cp1252, each on its
    own, be they found here or later.

    >>> detect_dialect(b"time;kw\\n1;0,5\\n").words
    'delimiter ;, decimal comma'
    """
    given = given or DialectOptions()
    encoding = given.encoding or next((n for b, n in _BOMS if sample.startswith(b)), None)
    encoding = encoding or _guessed_encoding(sample, by_rows=given.by_rows)
    lines = sample.decode(encoding, "replace").lstrip("\ufeff").splitlines()[:200]
    header = lines[0] if lines else ""
    bare = re.sub(r'"[^"]*"', "", header)
    most = max(_DELIMITERS, key=bare.count)
    delimiter = given.delimiter or (most if most in bare else ",")
    cells = [cell.strip() for row in csv.reader(lines[1:-1], delimiter=delimiter) for cell in row]
    decimal = "," if delimiter == ";" else "."
    if given.by_rows and delimiter == ";":
        points = any(map(_POINT_NUMBER.fullmatch, cells))
        decimal = "." if points and not any(map(_COMMA_NUMBER.fullmatch, cells)) else ","
    words = frozenset(word.strip() for word in given.na_values)
    mark = given.decimal or decimal
    return Dialect(delimiter, mark, encoding, words, given.date_format, given.declared)


def _guessed_encoding(sample: bytes, *, by_rows: bool) -> str:
    if b"\0" in sample[:2]:  # UTF-16 without a mark, as it begins with a letter of ASCII
        return "utf-16-be" if sample[:1] == b"\0" else "utf-16-le"
    looked = sample if by_rows else sample.partition(b"\n")[0]
    try:
        codecs.getincrementaldecoder("utf-8")().decode(looked)
    except UnicodeDecodeError:
        return _BY_LETTER
    return "utf-8"


class CsvSource:
    """A file, or standard input (`-`), that can be read from its beginning as often as needed.

    `.gz` is decompressed within limits (`files.Unpacked`). A pipe is kept in memory. `parts` are
    the files, with their numbers of rows, that were joined to one (`joined`), `skipped` the bytes
    before the header.
    """

    def __init__(
        self, path: str, given: DialectOptions | None = None, whole: bytes | None = None
    ) -> None:
        """Find out how the file at `path`, or what it holds in `whole`, is written.

        Raises:
            InvalidInputError: if it cannot be read.
        """
        self.path = path
        self.parts: Sequence[tuple[str, int]] = ()
        self.skipped = 0
        self._whole = whole
        self._told_encoding = given is not None and given.encoding is not None
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
        given = given or DialectOptions()
        if empty := _EMPTY_LINES.match(sample):
            self.skipped = empty.end()
        if said := _SEPARATOR.match(sample, self.skipped):  # as Excel writes it before the header
            self.skipped = said.end()
            given = replace(given, delimiter=given.delimiter or said[1].decode("latin-1"))
        self.dialect = detect_dialect(sample[self.skipped :], given)
        found = self.dialect.encoding
        letters = sample.decode(found) if given.by_rows and found == _BY_LETTER else ""
        if re.search("[\x80-\x9f]", letters):  # bytes that cp1252 has no letters for
            raise InvalidInputError(
                f"{path!r} is neither UTF-8 nor Windows' text (cp1252); say its encoding, for "
                f"example {argument('encoding', 'shift_jis')}."
            )

    def fall_back_to_cp1252(self) -> bool:
        """Whether a file that begins as UTF-8 has other letters later, which is said from now."""
        if self._told_encoding or self.dialect.encoding != "utf-8":
            return False
        with self.stream() as stream, suppress(UnicodeDecodeError):
            for _ in codecs.iterdecode(iter(lambda: stream.read(_BUFFER), b""), "utf-8"):
                pass
            return False
        self.dialect = replace(self.dialect, encoding=_BY_LETTER)
        return True

    def stream(self) -> BinaryIO:
        """Open the bytes, unpacked."""
        stream: BinaryIO
        if self._whole is not None:
            stream = io.BytesIO(self._whole)
        elif self.path.endswith(".gz"):
            packed = gzip.open(self.path)  # noqa: SIM115  (closed by the stream around it)
            stream = io.BufferedReader(files.Unpacked(packed, self.path), _BUFFER)
        else:
            stream = open(self.path, "rb")  # noqa: SIM115  (closed by who asks)
        stream.read(self.skipped)
        return stream

    def rows(self, read: Callable[[Iterator[list[str]]], Result]) -> Result:
        """Call `read` with the rows, the header among them.

        Raises:
            InvalidInputError: if the file cannot be read, is not CSV in its encoding or not a whole
                gzip file, or unpacks to too much.
        """
        codec = self.dialect.encoding
        if codec == "utf-8":
            codec = "utf-8-sig" if self._told_encoding else _BY_LETTER
        with _ReadErrors(self.path), io.TextIOWrapper(self.stream(), codec, newline="") as file:
            reader = csv.reader(file, strict=True, delimiter=self.dialect.delimiter)
            try:
                with suppress(UnicodeError):  # which would carry the bytes of the file
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


def joined(paths: Sequence[str], given: DialectOptions) -> CsvSource | None:
    """Return plain small files of one header as one; None if they are others.

    One line is one row in them: nothing is quoted, no line is empty, and all of it is UTF-8.
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
    if len(bodies) < len(texts) or any(one in whole for one in odd):
        return None
    if whole.count(b"\r") not in (0, lines) or not _is_utf8(whole):
        return None
    opened = CsvSource(paths[0], given, whole)
    opened.parts = [(p, body.count(b"\n")) for p, body in zip(paths, bodies, strict=True)]
    return opened


def _is_utf8(whole: bytes) -> bool:
    with suppress(UnicodeDecodeError):
        return whole.isascii() or bool(whole.decode())
    return False


class _ReadErrors:
    """Tells the troubles of reading a file in a sentence."""

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
    given: DialectOptions | None = None,
) -> Result:
    """Call `read` with the rows of a file, the header among them.

    A Parquet or Arrow file has the rows that its values are written as; the files of a folder or a
    pattern, which must have one header, have their rows one after the other. How a CSV file is
    written is told by its first line alone, unless it is given: no row of a person has a say in how
    the others are read.

    Raises:
        InvalidInputError: as `CsvSource` does.
    """
    asked = given or DialectOptions(by_rows=False)
    paths = [path] if path == "-" else files.expand_files(path)

    def one(place: int, reader: Callable[[Iterator[list[str]]], Any]) -> Any:
        if paths[place].endswith(files.TABLES):
            return reader(_table_rows(paths[place]))
        return CsvSource(paths[place], asked).rows(reader)

    if len(paths) == 1:
        return one(0, read)  # type: ignore[no-any-return]
    header: list[str] = one(0, lambda rows: next(rows, []))

    def rows() -> Iterator[list[str]]:
        yield header
        for place, name in enumerate(paths):
            found = one(place, list)
            if found[:1] != [header]:
                raise InvalidInputError(f"{name!r} has other columns than {paths[0]!r}.")
            yield from found[1:]

    return read(rows())


def _table_rows(path: str) -> Iterator[list[str]]:
    data = files.open_table_file(path)
    yield list(data.schema.names)
    for batch in data.to_batches():
        columns = [column.cast("string").fill_null("").to_pylist() for column in batch.columns]
        yield from map(list, zip(*columns, strict=True))


def rows_of_width(reader: Iterator[list[str]], columns: int, path: str) -> Iterator[list[str]]:
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


def column_position(header: Sequence[str], name: str, path: str, asked: Iterable[str] = ()) -> int:
    """Return where a column is; `asked` are all columns that are read.

    Raises:
        InvalidInputError: if it is not there, or more than once.

    >>> column_position(["age", "zip"], "zip", "people.csv")
    1
    """
    if list(header).count(name) == 1:
        return list(header).index(name)
    problem = "appears more than once" if name in header else "is not there"
    alike = next((one for one in header if one != name and one.strip() == name.strip()), None)
    hint = "" if alike is None else f" Take the spaces around {alike!r} out of the header."
    raise InvalidInputError(
        f"Column {name!r} {problem} in {path!r}, {columns_of(header, (name, *asked))}.{hint}"
    )


def columns_of(header: Sequence[str], asked: Iterable[str]) -> str:
    """Name the columns of a file in an error, or say how many there are.

    A file without a header begins with a row of somebody, so its first line is quoted only if a
    column that was asked for is among them.

    >>> columns_of(["age", "zip"], ["zip", "ill"])
    'whose columns are: age, zip'
    >>> columns_of(["34", "flu"], ["zip", "ill"])
    'which has 2 columns, none of them asked for; its first line must name them'
    """
    if set(asked) & set(header):
        return f"whose columns are: {', '.join(header)}"
    number = f"{len(header)} column{'' if len(header) == 1 else 's'}"
    return f"which has {number}, none of them asked for; its first line must name them"


_NUMBER = r"-?[0-9]+(?:\.[0-9]+)?(?:e[+-]?[0-9]+)?"
FORMULA = r"^[=+\-@\t\r\n＝＋－＠]"
NO_FORMULA = rf"^{_NUMBER}(?:\.\.{_NUMBER})?$"
"""Negative numbers and ranges of them: what they say is read, nothing is computed."""


def escape_formula(text: str) -> str:
    """Return a text that a spreadsheet shows and does not compute: with an apostrophe before it.

    >>> escape_formula("=1+1"), escape_formula("flu"), escape_formula("-5..3")
    ("'=1+1", 'flu', '-5..3')
    """
    formula = re.search(FORMULA, text) and not re.search(NO_FORMULA, text)
    return f"'{text}" if formula else text


def unescape_formula(text: str) -> str:
    """Return a text without the apostrophe that `escape_formula` put before it.

    >>> unescape_formula("'=1+1"), unescape_formula("'tis"), unescape_formula("=1")
    ('=1+1', "'tis", '=1')
    """
    rest = text[1:]
    return rest if text[:1] == "'" and escape_formula(rest) != rest else text


def csv_text(rows: Iterable[Iterable[object]]) -> str:
    """Write rows for others as CSV; texts that a spreadsheet would compute are escaped.

    >>> csv_text([("name", "score"), ("=cmd()", -0.5)])
    "name,score\\n'=cmd(),-0.5\\n"
    """
    text = io.StringIO()
    csv.writer(text, lineterminator="\n").writerows(
        [escape_formula(cell) if isinstance(cell, str) else cell for cell in row] for row in rows
    )
    return text.getvalue()
