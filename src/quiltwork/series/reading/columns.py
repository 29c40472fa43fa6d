"""Named columns of a CSV or Parquet file, or of a pandas, Polars or Arrow table.

CSV needs nothing but the standard library; Parquet needs pyarrow (`pip install quiltwork[data]`).
Cost: one pass over the file; only the wanted columns are kept.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from operator import itemgetter
from pathlib import Path
from typing import Any, TypeAlias, cast

import numpy as np
from numpy.typing import NDArray

from quiltwork import files
from quiltwork.delimited import column_position, even_rows, with_csv
from quiltwork.errors import InvalidInputError, UnsupportedError

Column: TypeAlias = "list[str] | NDArray[Any]"
"""Text as read from CSV, or an array of whatever type a table holds."""


def read_columns(source: Any, names: Sequence[str]) -> list[Column]:
    """Read columns by name, in the order of `names`, all of one length.

    `source` is a path (`-` is standard input, `.gz` is decompressed, `.parquet` and `.pq` are
    Parquet) or a table with columns.

    Raises:
        InvalidInputError: if a column or file is missing, or the file is not what it seems.
    """
    if isinstance(source, (str, Path)):
        path = str(source)
        if path.endswith((".parquet", ".pq")):
            return _from_table(_read_parquet(path, names), names, path)
        return read_csv(path, names)
    return _from_table(source, names, f"the {type(source).__name__}")


def read_csv(path: str, names: Sequence[str]) -> list[Column]:
    """Read columns of a CSV file as text.

    An empty line of a file with one column is a row whose value is missing; among several columns
    it is no row.
    """

    def read(reader: Iterator[list[str]]) -> list[Column]:
        header = next(reader, [])
        wanted = [column_position(header, name, path) for name in names]
        if len(header) == 1:
            return [[row[0] for row in even_rows((row or [""] for row in reader), 1, path)]]
        rows = even_rows(reader, len(header), path)
        if len(wanted) == 1:
            return [list(map(itemgetter(wanted[0]), rows))]
        picked = list(map(itemgetter(*wanted), rows))
        return [list(column) for column in zip(*picked, strict=True)] or [[] for _ in wanted]

    return with_csv(path, read)


def _read_parquet(path: str, names: Sequence[str]) -> Any:
    try:
        from pyarrow import ArrowException, parquet
    except ImportError:
        raise UnsupportedError(
            "Parquet needs pyarrow: install it with pip install 'quiltwork[data]'."
        ) from None
    try:
        found = parquet.read_metadata(path)
        for name in names:
            column_position(found.schema.to_arrow_schema().names, name, path)
        files.check_unpacked(path, files.parquet_size(found, len(names)))
        return parquet.read_table(path, columns=list(names))
    except (OSError, ArrowException) as error:
        raise InvalidInputError(f"Cannot read {path!r} as Parquet: {error}.") from None


def _from_table(table: Any, names: Sequence[str], what: str) -> list[Column]:
    known = list(getattr(table, "column_names", None) or getattr(table, "columns", []))
    if not known:
        raise InvalidInputError(
            f"Cannot find columns in {what}; give a path or a pandas, Polars or Arrow table."
        )
    for name in names:
        column_position([str(column) for column in known], name, what)
    return [_array(table[name]) for name in names]


def _array(column: Any) -> Column:
    if hasattr(column, "to_pylist"):  # Arrow
        values = column.to_numpy() if column.null_count == 0 else None
        if values is not None and values.dtype.kind in "biufM":
            return cast("NDArray[Any]", values)
        return np.fromiter(column.to_pylist(), dtype=object, count=len(column))
    values = column.to_numpy()
    return np.asarray(values)


def only_column(path: str | Path) -> str:
    """Return the name of the only column of a CSV file, or ask which one.

    Raises:
        InvalidInputError: if there are several, or the file is Parquet.
    """
    if not isinstance(path, (str, Path)) or str(path).endswith((".parquet", ".pq")) or path == "-":
        raise InvalidInputError("Say which column to read, with --value or value=….")
    source = str(path)
    header: list[str] = with_csv(source, lambda reader: next(reader, []))
    if len(header) != 1:
        raise InvalidInputError(
            f"{source!r} has the columns {', '.join(header)}; say which one to read."
        )
    return header[0]
