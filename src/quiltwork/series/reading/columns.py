"""Named columns of files and frames, a batch of rows at a time.

Arrow reads CSV and Parquet files where it is installed (`pip install 'quiltwork[data]'`), and
frames of all libraries. Without it the standard library reads CSV, more slowly and with the same
result; it also rereads a file that Arrow refuses, since Arrow's errors show cells. Collectors
(`collectors`) keep what is needed of each row, so rows themselves are not held. Cost: one pass.
"""

from __future__ import annotations

import os
import re
from collections.abc import Collection, Iterator, Sequence
from dataclasses import replace
from importlib.util import find_spec
from itertools import islice
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from quiltwork import files
from quiltwork.delimited import (
    CsvSource,
    Dialect,
    DialectOptions,
    column_position,
    rows_of_width,
)
from quiltwork.errors import InvalidInputError, UnsupportedError
from quiltwork.series.reading.times import AmbiguousTimesError, AwareMoments

if TYPE_CHECKING:
    from quiltwork.series.reading.collectors import Collector

FILE_NAME = "filename"
"""A column that every file has: its own name, without folder and ending."""

_BLOCK = 1 << 22
_ROWS = 1 << 16
_SAMPLE_ROWS, _MOST_SAMPLE_ROWS = 200, 1 << 17


_WORDS = ("-", "--", "k.A.", "n.d.", "#N/A")
"""Further words for missing in columns of numbers, where a cell without a digit is missing."""


def read_columns(
    source: Any,
    collectors: Sequence[Collector],
    options: DialectOptions | None = None,
    begins: dict[str, int] | None = None,
) -> str:
    """Pass every row to the collectors, and return a sentence on the detected format.

    Args:
        source: a path (`-` is standard input, `.gz` is decompressed, `.parquet` and `.arrow` are
            read as such), a folder or pattern of files, an opened `CsvSource`, a pandas, Polars
            (also lazy) or Arrow table, or what can be read as one, such as a relation of DuckDB.
        collectors: one for each column to read.
        options: the parts of the dialect that the caller gives.
        begins: filled with the number of rows before each of several files.

    Returns:
        Empty if the format is plain.
    """
    options = options or DialectOptions()
    if not isinstance(source, (str, os.PathLike, CsvSource)):
        _read_frame(source, collectors)
        return ""
    paths = [source] if isinstance(source, CsvSource) else files.expand_files(os.fspath(source))
    notes: dict[str, str] = {}
    for path in paths:
        for one in collectors:
            one.mark()
        if begins is not None and len(paths) > 1:
            begins[str(path)] = collectors[0].rows
        if isinstance(path, str) and path.endswith(files.TABLES):
            _read_table_file(path, collectors)
            continue
        opened = CsvSource(path, options) if isinstance(path, str) else path
        if not _has_arrow():
            _read_rows(opened, collectors)
        else:
            done = _read_arrow(opened, collectors)
            if not done and options.by_rows and opened.fall_back_to_cp1252():
                _undo(collectors)
                done = _read_arrow(opened, collectors)
            if not done:
                _undo(collectors)
                _read_rows(opened, collectors)
        if opened.parts and collectors[0].rows != sum(count for _, count in opened.parts):
            raise InvalidInputError(
                "Some lines are not one row each."
            )  # the files are then read alone
        notes.setdefault(_written(opened.dialect, collectors), opened.path)
    return " ".join(f"{path} is read with {words}." for words, path in notes.items() if words)


def _undo(collectors: Sequence[Collector]) -> None:
    for one in collectors:
        one.undo()


def _written(dialect: Dialect, collectors: Sequence[Collector]) -> str:
    date_format = next((one for one in _formats(collectors) if one is not None), None)
    return replace(dialect, date_format=date_format).words


def _formats(collectors: Sequence[Collector]) -> list[str | None]:
    return [getattr(one, "date_format", None) for one in collectors]


def _has_arrow() -> bool:
    return find_spec("pyarrow") is not None


def _read_arrow(opened: CsvSource, collectors: Sequence[Collector]) -> bool:
    """Read a CSV file with Arrow; False if Arrow refuses it, for example a cell of a number column.

    Arrow's errors show cells, so none of them is raised or chained.
    """
    import pyarrow as pa
    from pyarrow import csv

    dialect = opened.dialect
    header, own, types = _begun(opened, collectors)
    missing = _spellings(dialect)
    try:
        with opened.stream() as stream:
            batches = csv.open_csv(
                stream,
                read_options=csv.ReadOptions(block_size=_BLOCK, encoding=dialect.encoding),
                parse_options=csv.ParseOptions(
                    delimiter=dialect.delimiter,
                    newlines_in_values=True,
                    ignore_empty_lines=len(header) > 1,
                ),
                convert_options=csv.ConvertOptions(
                    column_types=types,
                    include_columns=list(types),
                    null_values=missing,
                    decimal_point=dialect.decimal,
                    timestamp_parsers=_parsers(own, csv.ISO8601),
                ),
            )
            for batch in batches:
                _give(
                    collectors,
                    {one.name: batch.column(one.name) for one in own},
                    opened.parts or [(opened.path, batch.num_rows)],
                    batch.num_rows,
                )
    except InvalidInputError:
        raise
    except (pa.ArrowException, UnicodeError, ValueError, KeyError, OSError, EOFError):
        return False
    return True


def _parsers(collectors: Sequence[Collector], iso: Any) -> list[Any]:
    return [iso, *dict.fromkeys(one for one in _formats(collectors) if one is not None)]


def _spellings(dialect: Dialect) -> list[str]:
    """Return the usual spellings of the words for a missing value; collectors handle the others."""
    words = [*sorted(dialect.missing_words), *(() if dialect.declared else _WORDS)]
    return list(
        dict.fromkeys(
            [spell(word) for word in words for spell in (str, str.upper, str.capitalize)]
            + ["NaN", *sorted(dialect.na_values)]
        )
    )


def _begun(
    opened: CsvSource, collectors: Sequence[Collector], sampled: int = _SAMPLE_ROWS
) -> tuple[list[str], list[Collector], dict[str, Any]]:
    """Pass the first cells to the collectors; return header, collectors with a column, and types.

    Where the first rows leave open which part of a date is the day, more rows are inspected.
    """

    def read(reader: Iterator[list[str]]) -> tuple[list[str], list[list[str]]]:
        header = next(reader, [])
        rows = islice(reader, sampled)
        return header, [row for row in rows if len(row) == len(header)]

    header, sample = opened.rows(read)
    own = [one for one in collectors if not _is_file_name(one, header)]
    names = [collector.name for collector in own]
    places = {name: column_position(header, name, opened.path, names) for name in names}
    try:
        types = {
            one.name: one.begin(opened.dialect, [row[places[one.name]] for row in sample])
            for one in own
        }
    except AmbiguousTimesError:
        if sampled == _MOST_SAMPLE_ROWS:
            raise
        return _begun(opened, collectors, _MOST_SAMPLE_ROWS)
    return header, own, types


def _is_file_name(collector: Collector, header: Sequence[str]) -> bool:
    return collector.name == FILE_NAME and FILE_NAME not in header


def file_name(path: str) -> str:
    """Return the subject name of a file: its name without folder and ending."""
    return os.path.basename(path).split(".")[0]


def _give(
    collectors: Sequence[Collector],
    columns: dict[str, Any],
    parts: Sequence[tuple[str, int]],
    rows: int,
) -> None:
    """Pass a batch of cells to the collectors; file names to a collector of `filename`.

    `parts` are the files with their rows: of this batch, or of all batches of joined files.
    """
    for one in collectors:
        if one.name in columns:
            one.add(columns[one.name])
            continue
        names = [file_name(path) for path, _ in parts]
        codes = np.repeat(np.arange(len(parts)), [count for _, count in parts])
        if len(codes) > rows:
            codes = codes[one.rows : one.rows + rows]
        one.add((codes, names))


def _read_rows(opened: CsvSource, collectors: Sequence[Collector]) -> None:
    """Read a CSV file by the standard library.

    An empty line is a row with a missing value in a file with one column, else it is skipped.
    """
    header, own, _ = _begun(opened, collectors)
    places = [header.index(one.name) for one in own]

    def read(reader: Iterator[list[str]]) -> None:
        next(reader, None)
        lines = (row or [""] for row in reader) if len(header) == 1 else reader
        rows = rows_of_width(lines, len(header), opened.path)
        while batch := list(islice(rows, _ROWS)):
            columns = {o.name: [row[p] for row in batch] for o, p in zip(own, places, strict=True)}
            _give(collectors, columns, opened.parts or [(opened.path, len(batch))], len(batch))

    opened.rows(read)


def _read_table_file(path: str, collectors: Sequence[Collector]) -> None:
    """Read a Parquet or Arrow file."""
    data = files.open_table_file(path, len(collectors))
    names = data.schema.names
    own = [one for one in collectors if not _is_file_name(one, names)]
    for one in own:
        column_position(names, one.name, path, [other.name for other in own])
    for batch in data.to_batches(columns=[one.name for one in own]):
        columns = {o.name: batch.column(o.name) for o in own}
        _give(collectors, columns, [(path, batch.num_rows)], batch.num_rows)


def _read_frame(table: Any, collectors: Sequence[Collector]) -> None:
    what = f"the {type(table).__name__}"
    names = [one.name for one in collectors]
    if type(table).__module__.split(".")[0] not in ("pandas", "polars"):
        _read_batches(table, collectors, what)
        return
    known = _columns_of(table)
    for name in names:
        column_position(known, name, what, names)
    if hasattr(table, "collect"):  # lazy, of Polars
        table = table.select(names).collect()
    for one in collectors:
        one.add(_cells(table[one.name]))


def _read_batches(table: Any, collectors: Sequence[Collector], what: str) -> None:
    """Read an Arrow table, data set or stream, a batch of rows at a time."""
    scanned = hasattr(table, "scanner")  # a data set
    if not scanned and not hasattr(table, "__arrow_c_stream__"):
        raise InvalidInputError(
            f"Cannot find columns in {what}; give a path or a pandas, Polars or Arrow table."
        )
    pa = _arrow(what)
    rows = table if scanned else pa.RecordBatchReader.from_stream(table)
    names = [one.name for one in collectors]
    for name in names:
        column_position(rows.schema.names, name, what, names)
    for batch in rows.to_batches(columns=names) if scanned else rows:
        for one in collectors:
            one.add(batch.column(one.name))


def _columns_of(table: Any) -> list[str]:
    if hasattr(table, "collect_schema"):
        return list(table.collect_schema().names())
    if hasattr(table, "column_names"):
        return list(table.column_names)
    if hasattr(table, "schema") and hasattr(table.schema, "names"):
        return list(table.schema.names)
    return [str(name) for name in getattr(table, "columns", [])]


def _arrow(what: str) -> Any:
    try:
        import pyarrow
    except ImportError:
        raise UnsupportedError(
            f"Reading {what} needs pyarrow: install it with pip install 'quiltwork[data]'."
        ) from None
    return pyarrow


def _cells(column: Any) -> Any:
    """Return a column of a frame as an array; times with a zone become `AwareMoments`."""
    if hasattr(column, "to_pylist"):
        return column
    zone = getattr(getattr(column, "dtype", None), "tz", None)  # pandas
    if zone is not None:
        return AwareMoments(column.dt.tz_convert("UTC").dt.tz_localize(None).to_numpy())
    if getattr(getattr(column, "dtype", None), "time_zone", None) is not None:  # Polars
        return AwareMoments(column.to_numpy())
    return np.asarray(column.to_numpy())


def header_of(source: Any, given: DialectOptions | None = None) -> list[str]:
    """Return the names of the columns of a file or frame."""
    if not isinstance(source, (str, os.PathLike)):
        return _columns_of(source)
    path = files.expand_files(os.fspath(source))[0]
    if path.endswith(files.TABLES):
        return list(files.open_table_file(path, 1).schema.names)
    return CsvSource(path, given).rows(lambda reader: next(reader, []))


def only_column(path: Any, beside: Collection[str] = (), states: Collection[object] = ()) -> str:
    """Return the name of the only column of a file.

    Raises:
        InvalidInputError: if there are several columns, if others are wanted `beside` it, or if its
            name is one of the `states` or a number: then the file has no header, and its first row
            would be lost.
    """
    if not isinstance(path, (str, Path)) or path == "-":
        raise InvalidInputError("Say which column to read, with --value or value=….")
    header = header_of(path)
    if len(header) != 1:
        raise InvalidInputError(
            f"{str(path)!r} has {len(header)} columns; say which one to read, by its name in the "
            "first line."
        )
    if beside:
        raise InvalidInputError(
            f"{str(path)!r} has 1 column, and {' and '.join(map(repr, beside))} would be beside "
            "it; its first line must name them all."
        )
    refuse_headerless(path, header[0], states)
    return header[0]


def refuse_headerless(path: Any, name: str, states: Collection[object]) -> None:
    """Refuse a column name that is one of the states or a number: the header is missing."""
    text = name.strip()
    if text in map(str, states) or re.fullmatch(r"[+-]?[0-9.,]*[0-9][0-9.,]*", text):
        raise InvalidInputError(
            f"The first line of {str(path)!r} is a state or a number and would be taken for the "
            "name of the column; put a line before it that names the column."
        )
