"""Frames of any make, and files, as Arrow columns: the one place that knows their kinds.

pandas, Polars and Arrow tables and paths of CSV (also `.gz`) and Parquet files become Arrow
columns without a copy where the types allow it. Spark frames are recognised, never collected.
"""

from __future__ import annotations

import os
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import Any, Literal, TypeAlias

import numpy as np
from numpy.typing import NDArray

from quiltwork.delimited import DialectOptions
from quiltwork.errors import InvalidInputError, UnsupportedError
from quiltwork.exact import shortened
from quiltwork.files import TABLES, Unpacked, expand_files, open_table_file, refuse_device
from quiltwork.tables.input.csv_files import ColumnType, read_texts, typed

Kind: TypeAlias = Literal["pandas", "polars", "arrow", "spark"]


_PACKED = ("gz", "bz2", "br", "lz4", "zst")
"""What Arrow unpacks of itself."""
_NULLABLE = {
    f"{sign}int{bits}": f"{'U' if sign else ''}Int{bits}"
    for sign in ("", "u")
    for bits in (8, 16, 32, 64)
}


def arrow() -> Any:
    """Import pyarrow, or say how to get it."""
    try:
        import pyarrow
    except ImportError:
        raise UnsupportedError(
            "Tables need pyarrow: install it with pip install 'quiltwork[publish]'."
        ) from None
    return pyarrow


def frame_kind(frame: object) -> Kind:
    """Tell what make a frame is."""
    module = type(frame).__module__
    name = type(frame).__name__
    if module.startswith("pandas") and name == "DataFrame":
        return "pandas"
    if module.startswith("polars") and name in ("DataFrame", "LazyFrame"):
        return "polars"
    if module.startswith("pyarrow") and name in ("Table", "RecordBatch"):
        return "arrow"
    if module.startswith("pyspark") and name == "DataFrame":
        return "spark"
    raise InvalidInputError(
        f"Cannot read a table from a {name}; give a pandas, Polars, Arrow or Spark frame, or the "
        "path of a CSV or Parquet file."
    )


@dataclass(frozen=True, eq=False)
class ArrowFrame:
    """Rows of any make, read as Arrow columns.

    Attributes:
        held: the frame as it was given; what a file held as an Arrow table.
        kind: of what make frames are that are made of it; pandas for files.
        parts: where several were stacked, the name and the number of rows of each.
    """

    held: Any
    kind: Kind
    parts: tuple[tuple[str, int], ...] = ()

    @classmethod
    def of(cls, frame: Any) -> ArrowFrame:
        """Take a frame; a lazy one is computed, and what streams as Arrow becomes a table."""
        if isinstance(frame, ArrowFrame):
            return frame
        known = type(frame).__module__.startswith(("pyarrow", "pandas", "polars", "pyspark"))
        unread = hasattr(frame, "read_next_batch")  # a stream of batches
        if hasattr(frame, "__arrow_c_stream__") and (unread or not known):
            frame = arrow().table(frame)
        kind = frame_kind(frame)
        lazy = kind == "polars" and hasattr(frame, "collect")
        return cls(frame.collect() if lazy else frame, kind)

    @cached_property
    def native(self) -> Any:
        """The rows as a frame of its kind."""
        return self.held if self._make == self.kind else like(self.held, self.kind)

    @cached_property
    def _make(self) -> Kind:
        return frame_kind(self.held)

    @cached_property
    def names(self) -> list[str]:
        """The columns, in order."""
        if self._make == "arrow":
            return list(self.held.schema.names)
        return [str(name) for name in self.held.columns]

    @property
    def rows(self) -> int:
        """The number of rows, where they are in memory."""
        return self.held.num_rows if self._make == "arrow" else len(self.held)

    def column(self, name: str) -> Any:
        """Return one column as one Arrow array."""
        pa = arrow()
        try:
            if self._make == "pandas":
                column = pa.Array.from_pandas(self.held[name])
            elif self._make == "polars":
                column = self.held[name].to_arrow()
            else:
                column = self.held.column(name)
        except (pa.ArrowInvalid, pa.ArrowTypeError, pa.ArrowNotImplementedError):
            raise InvalidInputError(
                f"Column {name!r} holds values of several types or of a type without an order; "
                "make it all numbers or all text."
            ) from None
        except UnicodeEncodeError:
            raise InvalidInputError(
                f"Column {name!r} holds text that UTF-8 cannot write (lone surrogates); replace it."
            ) from None
        except OverflowError:
            raise InvalidInputError(
                f"Column {name!r} holds whole numbers of more than 64 bits; make them text, or "
                "floats."
            ) from None
        return column.combine_chunks() if isinstance(column, pa.ChunkedArray) else column

    def where(self, row: int) -> str:
        """Say where a row is, for messages, which never show it.

        >>> ArrowFrame(None, "arrow", (("north", 300), ("east", 20))).where(303)
        " in row 4 of 'east'"
        """
        for name, rows in self.parts:
            if row < rows:
                return f" in row {row + 1:,} of {name!r}"
            row -= rows
        return f" in row {row + 1:,}"

    def arrow(self, names: Sequence[str] | None = None) -> Any:
        """Return some columns, or all, as an Arrow table."""
        chosen = self.names if names is None else names
        return arrow().table({name: self.column(name) for name in chosen})

    def only(self, names: Sequence[str]) -> ArrowFrame:
        """Return the same rows with some of the columns."""
        return ArrowFrame(self.arrow(names), self.kind)

    def written_apart(self, name: str, codes: NDArray[Any]) -> int | None:
        """Return a row whose cell is equal to an earlier one, by its code, and written otherwise.

        Such cells are objects of Python in pandas (31 and 31.0, one instant in two zones), and
        zeros with and without a sign; cells of all other columns are equal only if they are written
        alike.
        """
        if self._make == "pandas":
            cells = self.held[name]
            if str(getattr(cells.dtype, "categories", cells).dtype) == "object":
                first: dict[int, str] = {}
                rows = np.flatnonzero(cells.notna().to_numpy())
                found = zip(
                    rows.tolist(), codes[rows].tolist(), map(str, cells.iloc[rows]), strict=True
                )
                other = (row for row, c, text in found if first.setdefault(c, text) != text)
                return next(other, None)
        column = self.column(name)
        if arrow().types.is_dictionary(column.type):
            column = column.cast(column.type.value_type)
        if not arrow().types.is_floating(column.type):
            return None
        numbers = column.to_numpy(zero_copy_only=False)
        zeros = np.flatnonzero(numbers == 0)
        signs = np.signbit(numbers[zeros])
        return int(zeros[np.argmax(signs != signs[0])]) if len(np.unique(signs)) > 1 else None


@dataclass(frozen=True)
class FileReading:
    """How a file is read.

    Attributes:
        written: how a CSV file is written, and its words for missing values.
        rename: what a column is called there → what it is called here; columns that a file does not
            have are no mistake, as files of several providers may differ.
    """

    written: DialectOptions = field(default_factory=DialectOptions)
    rename: Mapping[str, str] = field(default_factory=dict)

    def renamed(self, table: Any, path: str) -> Any:
        """Return a table with the names that its columns have here."""
        names = [self.rename.get(name, name) for name in table.column_names]
        for name in self.rename.values():
            if names.count(name) > 1 and name not in self.rename:
                raise InvalidInputError(
                    f"Two columns of {path!r} would be called {name!r}; rename the other one, too."
                )
        return table.rename_columns(names)


def opened(source: Any, text: Sequence[str] = (), reading: FileReading | None = None) -> ArrowFrame:
    """Return a frame, or what the file at a path holds."""
    return opened_alike([source], text, [reading or FileReading()])[0]


def opened_alike(
    sources: Sequence[Any],
    text: Sequence[str] = (),
    readings: Sequence[FileReading] = (),
    types: Mapping[str, ColumnType] | None = None,
) -> list[ArrowFrame]:
    """Return several frames, CSV (`.csv`, `.csv.gz`) and Parquet (`.parquet`, `.pq`) files.

    Columns of CSV files have the same types in all of them (see `csv_files`); those named in
    `text` stay, or become, text, and `types` declares others. `readings` say how each is read.
    """
    paths = [Path(source) if isinstance(source, (str, Path)) else None for source in sources]
    ways = readings or [FileReading()] * len(paths)
    given = {i: path for i, path in enumerate(paths) if path is not None}
    named = [str(path) for path in given.values()]
    tables = dict(zip(given, read_files(named, [ways[i] for i in given]), strict=True))
    for name in text:
        if not any(name in table.column_names for table in tables.values()):
            raise InvalidInputError(
                f"text names {name!r}, which is no column of a file here; in a frame, make the "
                "column text yourself."
            )
    csv = [i for i in tables if not is_table_file(str(paths[i]))]
    tables |= zip(csv, typed([tables[i] for i in csv], text, types), strict=True)
    read = {i: ArrowFrame(_as_text(table, text), "pandas") for i, table in tables.items()}
    return [read[i] if i in read else ArrowFrame.of(source) for i, source in enumerate(sources)]


def read_files(paths: Sequence[str], readings: Sequence[FileReading] = ()) -> list[Any]:
    """Return files as Arrow tables; the columns of CSV files are texts yet."""
    ways = readings or [FileReading()] * len(paths)
    return [
        way.renamed(_read(Path(path), way.written), path)
        for path, way in zip(paths, ways, strict=True)
    ]


def is_table_file(path: str) -> bool:
    """Tell whether a file has columns with types, as Parquet files have."""
    return expand_files(path)[0].endswith(TABLES)


def _read(path: Path, given: DialectOptions | None) -> Any:
    """Read a file, or those of a folder or pattern, as an Arrow table; of CSV, texts yet."""
    paths = expand_files(str(path))
    parts = [_read_one(Path(one), given) for one in paths]
    for one, part in zip(paths, parts, strict=True):
        if part.column_names != parts[0].column_names:
            raise InvalidInputError(f"{one!r} has other columns than {paths[0]!r}.")
    return parts[0] if len(parts) == 1 else arrow().concat_tables(parts)


def _read_one(path: Path, given: DialectOptions | None) -> Any:
    pa = arrow()
    if str(path) == "-":
        return read_texts(path, given)
    refuse_device(path)
    if not os.path.exists(path):  # False also for names that no file can have
        raise InvalidInputError(f"There is no file {shortened(str(path))}.")
    try:
        if is_table_file(str(path)):
            return open_table_file(str(path)).to_table()
        _refuse_bomb(path)
    except (OSError, EOFError, pa.ArrowException, UnicodeError) as error:
        reason = " ".join(str(error).split())
        raise InvalidInputError(f"Cannot read {str(path)!r} as a table: {reason}") from None
    return read_texts(path, given)


def _refuse_bomb(path: Path) -> None:
    """Refuse a file that unpacks to far more than its size, before Arrow holds all of it."""
    from pyarrow import input_stream

    if path.suffix[1:] in _PACKED:
        with Unpacked(input_stream(path), path) as stream:
            while stream.read(1 << 20):
                pass


def _as_text(table: Any, names: Sequence[str]) -> Any:
    """Write the values of some columns as text."""
    for name in set(names) & set(table.column_names):
        place = table.column_names.index(name)
        try:
            column = table.column(place).cast(arrow().string())
        except arrow().ArrowException:
            raise InvalidInputError(
                f"Column {name!r} holds values of type {table.schema.field(place).type}, which are "
                "not written as text."
            ) from None
        table = table.set_column(place, name, column)
    return table


def as_pandas(table: Any) -> Any:
    """Return an Arrow table as a pandas frame."""
    try:
        import pandas
    except ImportError:
        raise UnsupportedError(
            "Reading a file as a table needs pandas: install it with pip install "
            "'quiltwork[publish]', or give a Polars or Arrow frame."
        ) from None
    frame = table.to_pandas()
    for name, column in zip(table.column_names, table.columns, strict=True):
        kind = _NULLABLE.get(str(column.type))
        if kind is not None and column.null_count:  # floats would round numbers beyond 2^53
            dtype = pandas.api.types.pandas_dtype(kind)
            frame[name] = column.to_pandas(types_mapper={column.type: dtype}.get)
    return frame


def like(table: Any, kind: Kind) -> Any:
    """Return an Arrow table as a frame of the kind asked for."""
    if kind == "arrow":
        return table
    if kind == "polars":
        import polars

        return polars.from_arrow(table)
    return as_pandas(table)


def stacked(frames: Mapping[str, ArrowFrame], provider: str) -> ArrowFrame:
    """Put the frames of several providers on top of each other, with a column that names them.

    Columns that not all of them have are left out. The result is of the kind of the first frame.
    """
    pa = arrow()
    parts = [*frames.values()]
    if any(part.kind == "spark" for part in parts):
        raise UnsupportedError(
            "Spark frames are not concatenated here: unite them in Spark, with a column that "
            "names the provider, and give the result to Table."
        )
    if any(provider in part.names for part in parts):
        raise InvalidInputError(
            f"A frame has a column {provider!r} already; name the column of providers otherwise, "
            "with provider='…'."
        )
    common = [name for name in parts[0].names if all(name in part.names for part in parts)]
    tables = _alike([part.arrow(common) for part in parts])
    try:
        stack = pa.concat_tables(tables, promote_options="permissive")
    except pa.ArrowException:
        raise InvalidInputError(
            f"The providers' columns do not have the same types: {_differing(tables, common)}."
        ) from None
    labels = pa.array(list(frames), type=pa.string())
    owner = np.repeat(np.arange(len(tables), dtype=np.int32), [part.num_rows for part in tables])
    named = tuple(zip(frames, (part.num_rows for part in tables), strict=True))
    whole = stack.append_column(provider, labels.take(pa.array(owner)))
    return ArrowFrame(whole, parts[0].kind, named)


def _differing(tables: Sequence[Any], names: Sequence[str]) -> str:
    """Name the columns whose types differ, with these types."""
    kinds = {n: sorted({str(table.schema.field(n).type) for table in tables}) for n in names}
    return ", ".join(f"{n!r} is {' and '.join(k)}" for n, k in kinds.items() if len(k) > 1)


def _alike(tables: list[Any]) -> list[Any]:
    """Unpack dictionary columns, unless they have one order, the same for all providers."""
    kept = [
        name
        for name, order in orders_of(tables[0]).items()
        if all(orders_of(table).get(name) == order for table in tables)
    ]
    return [unpacked(table, kept) for table in tables]


def unpacked(table: Any, but: Collection[str] = ()) -> Any:
    """Replace dictionary columns of an Arrow table by what they stand for."""
    pa = arrow()
    for place, (name, column) in enumerate(zip(table.column_names, table.columns, strict=True)):
        if pa.types.is_dictionary(column.type) and name not in but:
            plain = column.cast(column.type.value_type)
            table = table.set_column(place, name, plain)
    return table


def orders_of(table: Any) -> dict[str, list[Any]]:
    """Return the order of each ordered category of an Arrow table, with all its values."""
    pa = arrow()
    return {
        field.name: column.unify_dictionaries().chunk(0).dictionary.to_pylist()
        for field, column in zip(table.schema, table.columns, strict=True)
        if pa.types.is_dictionary(field.type) and field.type.ordered and column.num_chunks
    }
