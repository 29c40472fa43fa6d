"""Frames of any kind, and files, as Arrow columns: the only module that distinguishes their kinds.

pandas, Polars and Arrow tables, and paths of CSV (also `.gz`) and Parquet files, become Arrow
columns, without a copy if the types allow it. Spark frames are recognised but never collected.
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

from quiltwork.delimited import DialectOptions, columns_of
from quiltwork.errors import InvalidInputError, UnsupportedError
from quiltwork.exact import shortened
from quiltwork.files import TABLES, Unpacked, expand_files, open_table_file, refuse_device
from quiltwork.tables.input.csv_files import ColumnType, infer_types, read_texts

Kind: TypeAlias = Literal["pandas", "polars", "arrow", "spark"]


_PACKED = ("gz", "bz2", "br", "lz4", "zst")
"""Endings of compressed files that Arrow decompresses by itself."""
_NULLABLE = {
    f"{sign}int{bits}": f"{'U' if sign else ''}Int{bits}"
    for sign in ("", "u")
    for bits in (8, 16, 32, 64)
}


def arrow() -> Any:
    """Import pyarrow, or raise an error that says how to install it."""
    try:
        import pyarrow
    except ImportError:
        raise UnsupportedError(
            "Tables need pyarrow: install it with pip install 'quiltwork[publish]'."
        ) from None
    return pyarrow


def frame_kind(frame: object) -> Kind:
    """Return the kind of a frame."""
    # By name, so that none of these libraries has to be imported.
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
        f"Cannot read a table from a {name}. Pass a pandas, Polars, Arrow or Spark frame, or the "
        "path of a CSV or Parquet file."
    )


@dataclass(frozen=True, eq=False)
class ArrowFrame:
    """Rows of any kind of frame, as Arrow columns.

    Attributes:
        held: the frame as given; the content of a file is an Arrow table.
        kind: the kind of frames to return; pandas for files.
        parts: for stacked frames, the name and the number of rows of each.
    """

    held: Any
    kind: Kind
    parts: tuple[tuple[str, int], ...] = ()

    @classmethod
    def of(cls, frame: Any) -> ArrowFrame:
        """Wrap a frame; a lazy one is computed, and an Arrow stream becomes a table."""
        if isinstance(frame, ArrowFrame):
            return frame
        is_known = type(frame).__module__.startswith(("pyarrow", "pandas", "polars", "pyspark"))
        is_stream = hasattr(frame, "read_next_batch")
        # DuckDB results and others offer Arrow without being one of the known kinds.
        if hasattr(frame, "__arrow_c_stream__") and (is_stream or not is_known):
            frame = arrow().table(frame)
        kind = frame_kind(frame)
        lazy = kind == "polars" and hasattr(frame, "collect")
        return cls(frame.collect() if lazy else frame, kind)

    @cached_property
    def native(self) -> Any:
        """The rows as a frame of its kind."""
        return self.held if self._make == self.kind else to_kind(self.held, self.kind)

    @cached_property
    def _make(self) -> Kind:
        return frame_kind(self.held)

    @cached_property
    def names(self) -> list[str]:
        """The names of the columns, in order."""
        if self._make == "arrow":
            return list(self.held.schema.names)
        return [str(name) for name in self.held.columns]

    @property
    def rows(self) -> int:
        """The number of rows of a frame in memory."""
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
        # Arrow's messages quote cells, so they are replaced.
        except (pa.ArrowInvalid, pa.ArrowTypeError, pa.ArrowNotImplementedError):
            raise InvalidInputError(
                f"Column {name!r} has values of several types, or of a type that cannot be "
                "ordered. Make it all numbers or all text."
            ) from None
        except UnicodeEncodeError:
            raise InvalidInputError(
                f"Column {name!r} has text that UTF-8 cannot encode (lone surrogates); replace it."
            ) from None
        except OverflowError:
            raise InvalidInputError(
                f"Column {name!r} has whole numbers of more than 64 bits. Make them text or floats."
            ) from None
        return column.combine_chunks() if isinstance(column, pa.ChunkedArray) else column

    def where(self, row: int) -> str:
        """Return the position of a row as text for messages, which never show its values.

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
        """Return the first row whose cell equals an earlier one but is spelled differently.

        Only Python objects in pandas (31 and 31.0, one instant in two time zones) and zeros with
        different signs can differ so; in all other columns, equal cells are spelled alike.
        """
        if self._make == "pandas":
            cells = self.held[name]
            # Only columns of Python objects can hold equal values of different types.
            if str(getattr(cells.dtype, "categories", cells).dtype) == "object":
                first: dict[int, str] = {}
                rows = np.flatnonzero(cells.notna().to_numpy())
                spelled = zip(
                    rows.tolist(), codes[rows].tolist(), map(str, cells.iloc[rows]), strict=True
                )
                different = (
                    row for row, code, text in spelled if first.setdefault(code, text) != text
                )
                return next(different, None)
        column = self.column(name)
        if arrow().types.is_dictionary(column.type):
            column = column.cast(column.type.value_type)
        if not arrow().types.is_floating(column.type):
            return None
        numbers = column.to_numpy(zero_copy_only=False)
        # Of floats, only 0.0 and -0.0 are equal and written differently.
        zeros = np.flatnonzero(numbers == 0)
        signs = np.signbit(numbers[zeros])
        return int(zeros[np.argmax(signs != signs[0])]) if len(np.unique(signs)) > 1 else None


@dataclass(frozen=True)
class FileReading:
    """Options for reading a file.

    Attributes:
        dialect: how a CSV file is written, and its words for missing values.
        rename: old → new column names. Columns that a file does not have are ignored, as the files
            of several providers may differ.
    """

    dialect: DialectOptions = field(default_factory=DialectOptions)
    rename: Mapping[str, str] = field(default_factory=dict)

    def with_names(self, table: Any, path: str) -> Any:
        """Return a table with its columns renamed."""
        names = [self.rename.get(name, name) for name in table.column_names]
        for name in self.rename.values():
            if names.count(name) > 1 and name not in self.rename:
                raise InvalidInputError(
                    f"Two columns of {path!r} would be called {name!r}. Rename the other one too."
                )
        return table.rename_columns(names)


def open_frame(
    source: Any,
    text: Sequence[str] = (),
    reading: FileReading | None = None,
    roles: Sequence[str] = (),
) -> ArrowFrame:
    """Return a frame, or the content of the file at a path."""
    return open_frames([source], text, [reading or FileReading()], roles=roles)[0]


def open_frames(
    sources: Sequence[Any],
    text: Sequence[str] = (),
    readings: Sequence[FileReading] = (),
    types: Mapping[str, ColumnType] | None = None,
    roles: Sequence[str] = (),
) -> list[ArrowFrame]:
    """Open several frames, CSV (`.csv`, `.csv.gz`) and Parquet (`.parquet`, `.pq`) files.

    Columns of CSV files get the same types in all of them (see `csv_files`); those named in `text`
    stay, or become, text, and `types` declares types. `readings` are the options for each file.
    `roles` are the columns that the caller uses: a file without any of them may lack a header, so
    that a refusal does not quote its first line.
    """
    paths = [Path(source) if isinstance(source, (str, Path)) else None for source in sources]
    options = readings or [FileReading()] * len(paths)
    files = {i: path for i, path in enumerate(paths) if path is not None}
    names = [str(path) for path in files.values()]
    tables = dict(zip(files, read_files(names, [options[i] for i in files]), strict=True))
    for name in text:
        if any(name in table.column_names for table in tables.values()):
            continue
        if not tables:
            raise InvalidInputError(
                f"text names {name!r}, but text is for columns of files. In a frame, convert the "
                "column to text yourself."
            )
        place = "not there in the file"
        if len(tables) > 1:
            place = "in none of the files; see the first"
        header = next(iter(tables.values())).column_names
        raise InvalidInputError(
            f"Column {name!r}, to be read as text, is {place}, "
            f"{columns_of(header, [n for n in (*text, *roles) if isinstance(n, str)])}."
        )
    # Types are inferred over all CSV files together; Parquet files declare theirs.
    csv = [i for i in tables if not is_table_file(str(paths[i]))]
    tables |= zip(csv, infer_types([tables[i] for i in csv], text, types), strict=True)
    frames = {i: ArrowFrame(_as_text(table, text), "pandas") for i, table in tables.items()}
    return [frames[i] if i in frames else ArrowFrame.of(source) for i, source in enumerate(sources)]


def read_files(paths: Sequence[str], readings: Sequence[FileReading] = ()) -> list[Any]:
    """Return files as Arrow tables; the columns of CSV files are still texts."""
    options = readings or [FileReading()] * len(paths)
    return [
        reading.with_names(_read(Path(path), reading.dialect), path)
        for path, reading in zip(paths, options, strict=True)
    ]


def is_table_file(path: str) -> bool:
    """Return whether a file has typed columns, as Parquet files have."""
    return expand_files(path)[0].endswith(TABLES)


def _read(path: Path, dialect: DialectOptions | None) -> Any:
    """Read a file, or the files of a folder or pattern, as one Arrow table; CSV as texts."""
    paths = expand_files(str(path))
    parts = [_read_one(Path(file), dialect) for file in paths]
    for file, part in zip(paths, parts, strict=True):
        if part.column_names != parts[0].column_names:
            raise InvalidInputError(
                f"{file!r} and {paths[0]!r} have different columns; files of a folder must agree."
            )
    return parts[0] if len(parts) == 1 else arrow().concat_tables(parts)


def _read_one(path: Path, dialect: DialectOptions | None) -> Any:
    pa = arrow()
    if str(path) == "-":
        return read_texts(path, dialect)
    # Reading a device such as /dev/zero would never end.
    refuse_device(path)
    if not os.path.exists(path):  # also False for names that are not valid paths
        raise InvalidInputError(f"There is no file {shortened(str(path))}.")
    try:
        if is_table_file(str(path)):
            return open_table_file(str(path)).to_table()
        _refuse_bomb(path)
    except (OSError, EOFError, pa.ArrowException, UnicodeError) as error:
        reason = " ".join(str(error).split())
        raise InvalidInputError(f"Cannot read {str(path)!r} as a table: {reason}") from None
    return read_texts(path, dialect)


def _refuse_bomb(path: Path) -> None:
    """Refuse a file that decompresses to far more than its size, before Arrow holds all of it."""
    from pyarrow import input_stream

    # `Unpacked` raises once the ratio of sizes is implausible.
    if path.suffix[1:] in _PACKED:
        with Unpacked(input_stream(path), path) as stream:
            while stream.read(1 << 20):
                pass


def _as_text(table: Any, names: Sequence[str]) -> Any:
    """Convert some columns to text."""
    for name in set(names) & set(table.column_names):
        index = table.column_names.index(name)
        try:
            column = table.column(index).cast(arrow().string())
        except arrow().ArrowException:
            raise InvalidInputError(
                f"Column {name!r} has values of type {table.schema.field(index).type}, which "
                "cannot be converted to text."
            ) from None
        table = table.set_column(index, name, column)
    return table


def as_pandas(table: Any) -> Any:
    """Return an Arrow table as a pandas frame."""
    try:
        import pandas
    except ImportError:
        raise UnsupportedError(
            "Reading a file as a table needs pandas: install it with pip install "
            "'quiltwork[publish]', or pass a Polars or Arrow frame."
        ) from None
    frame = table.to_pandas()
    for name, column in zip(table.column_names, table.columns, strict=True):
        kind = _NULLABLE.get(str(column.type))
        if kind is not None and column.null_count:  # floats would round numbers beyond 2^53
            dtype = pandas.api.types.pandas_dtype(kind)
            frame[name] = column.to_pandas(types_mapper={column.type: dtype}.get)
    return frame


def to_kind(table: Any, kind: Kind) -> Any:
    """Return an Arrow table as a frame of the requested kind."""
    if kind == "arrow":
        return table
    if kind == "polars":
        import polars

        return polars.from_arrow(table)
    return as_pandas(table)


def stack_frames(frames: Mapping[str, ArrowFrame], provider: str) -> ArrowFrame:
    """Stack the frames of several providers, with a column that names the provider.

    Columns that not all of them have are dropped. The result has the kind of the first frame.
    """
    pa = arrow()
    parts = [*frames.values()]
    if any(part.kind == "spark" for part in parts):
        raise UnsupportedError(
            "Spark frames are not concatenated here: use union in Spark, with a column that "
            "names the provider, and pass the result to Table."
        )
    if any(provider in part.names for part in parts):
        raise InvalidInputError(
            f"A frame already has a column {provider!r}. Choose another name for the column of "
            "providers with provider='…'."
        )
    common = [name for name in parts[0].names if all(name in part.names for part in parts)]
    tables = _alike([part.arrow(common) for part in parts])
    try:
        # Permissive: integers of one provider and floats of another become floats.
        stack = pa.concat_tables(tables, promote_options="permissive")
    except pa.ArrowException:
        raise InvalidInputError(
            f"The columns of the providers have different types: {_differing(tables, common)}."
        ) from None
    labels = pa.array(list(frames), type=pa.string())
    owner = np.repeat(np.arange(len(tables), dtype=np.int32), [part.num_rows for part in tables])
    sizes = tuple(zip(frames, (part.num_rows for part in tables), strict=True))
    stacked = stack.append_column(provider, labels.take(pa.array(owner)))
    return ArrowFrame(stacked, parts[0].kind, sizes)


def _differing(tables: Sequence[Any], names: Sequence[str]) -> str:
    """Return the columns whose types differ, with these types, as text."""
    kinds = {n: sorted({str(table.schema.field(n).type) for table in tables}) for n in names}
    return ", ".join(f"{n!r} is {' and '.join(k)}" for n, k in kinds.items() if len(k) > 1)


def _alike(tables: list[Any]) -> list[Any]:
    """Decode dictionary columns, unless they have one order, the same for all providers."""
    same_order = [
        name
        for name, order in orders_of(tables[0]).items()
        if all(orders_of(table).get(name) == order for table in tables)
    ]
    return [decode_dictionaries(table, same_order) for table in tables]


def decode_dictionaries(table: Any, keep: Collection[str] = ()) -> Any:
    """Replace the dictionary columns of an Arrow table by their values."""
    pa = arrow()
    for index, (name, column) in enumerate(zip(table.column_names, table.columns, strict=True)):
        if pa.types.is_dictionary(column.type) and name not in keep:
            plain = column.cast(column.type.value_type)
            table = table.set_column(index, name, plain)
    return table


def orders_of(table: Any) -> dict[str, list[Any]]:
    """Return the order of each ordered category of an Arrow table, with all its values."""
    pa = arrow()
    return {
        field.name: column.unify_dictionaries().chunk(0).dictionary.to_pylist()
        for field, column in zip(table.schema, table.columns, strict=True)
        if pa.types.is_dictionary(field.type) and field.type.ordered and column.num_chunks
    }
