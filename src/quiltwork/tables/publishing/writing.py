"""Writing published tables as CSV or Parquet; a file is written completely or not at all.

A spreadsheet evaluates texts in CSV files that look like formulas. Escaped texts begin with an
apostrophe, and are displayed instead.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any, Literal, TypeAlias, get_args

from quiltwork.arguments import choice
from quiltwork.delimited import FORMULA, NO_FORMULA, escape_formula
from quiltwork.errors import InvalidInputError
from quiltwork.files import as_path, replacing
from quiltwork.tables.input.frames import arrow, decode_dictionaries

ENDINGS = (".csv", ".parquet")
Formulas: TypeAlias = Literal["keep", "escape"]


def check_ending(path: Any) -> Path:
    """Validate the path of a published table: `.csv` or `.parquet`."""
    target = as_path(path)
    if target.suffix not in ENDINGS:
        raise InvalidInputError(
            f"Cannot write {str(path)!r}: the name must end in .csv or .parquet."
        )
    return target


def check_formulas(formulas: Any, path: Path) -> None:
    """Refuse an unknown choice, and escaping in Parquet files, which no spreadsheet evaluates."""
    choice(formulas, get_args(Formulas), "formulas")
    if formulas == "escape" and path.suffix != ".csv":
        raise InvalidInputError(
            f"Formulas are escaped in CSV files only, and {str(path)!r} is not one. Write a .csv "
            "file, or leave formulas out (--escape-formulas)."
        )


def write_table(table: Any, path: Any, formulas: Formulas = "keep") -> Path:
    """Write an Arrow table to a `.csv` or `.parquet` file, completely or not at all."""
    target = check_ending(path)
    check_formulas(formulas, target)
    # Written to a temporary file first, so that readers never see half a table.
    with replacing(target) as file:
        if target.suffix == ".parquet":
            from pyarrow import parquet

            parquet.write_table(table, file)
        else:
            from pyarrow import csv

            plain = decode_dictionaries(table)
            csv.write_csv(_escaped(plain) if formulas == "escape" else plain, file)
    return target


def _escaped(table: Any) -> Any:
    """Escape the column names and texts that look like formulas."""
    import pyarrow.compute as pc

    types = arrow().types
    columns = []
    for column in table.columns:
        if types.is_string(column.type) or types.is_large_string(column.type):
            looks = pc.match_substring_regex(column, FORMULA)
            # Negative numbers and ranges such as -5..3 begin with a sign and are no formulas.
            formula = pc.and_not(looks, pc.match_substring_regex(column, NO_FORMULA))
            column = pc.if_else(formula, pc.utf8_replace_slice(column, 0, 0, "'"), column)
        columns.append(column)
    return arrow().table(columns, names=[escape_formula(name) for name in table.column_names])
