"""Published tables as files: CSV or Parquet, whole or not at all."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from quiltwork.errors import InvalidInputError
from quiltwork.files import replacing
from quiltwork.publishing.arguments import shown
from quiltwork.publishing.frames import arrow

ENDINGS = (".csv", ".parquet")


def check_ending(path: Any) -> Path:
    """Return the path of a published table.

    Raises:
        InvalidInputError: if it is no path, or its name says no format that is written.
    """
    if not isinstance(path, (str, Path)):
        raise InvalidInputError(f"The path must be a text or a Path, not {shown(path)}.")
    target = Path(path)
    if target.suffix not in ENDINGS:
        raise InvalidInputError(
            f"Cannot write {str(path)!r}: the name must end in .csv or .parquet."
        )
    return target


def write_table(table: Any, path: Any) -> Path:
    """Write an Arrow table to a `.csv` or `.parquet` file, which then holds all of it.

    Raises:
        InvalidInputError: for another ending, or a path at which no file can be.
        StorageError: if it cannot be written; then the path holds what it held before.
    """
    target = check_ending(path)
    with replacing(target) as file:
        if target.suffix == ".parquet":
            from pyarrow import parquet

            parquet.write_table(table, file)
        else:
            from pyarrow import csv

            csv.write_csv(_without_dictionaries(table), file)
    return target


def _without_dictionaries(table: Any) -> Any:
    pa = arrow()
    plain = [
        column.cast(column.type.value_type) if pa.types.is_dictionary(column.type) else column
        for column in table.columns
    ]
    return pa.table(plain, names=table.column_names)
