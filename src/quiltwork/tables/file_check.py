"""`quiltwork check`: how the columns of files will be read, and what looks wrong in them.

The result shows cells, so it is for the owner of the rows only. It is never combined with a ledger,
and the curator does not offer it for other people's rows. Nothing is spent. Cost: one pass over the
files, and a sort of the distinct cells of each column.
"""

from __future__ import annotations

import re
from collections import Counter, defaultdict
from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from quiltwork.errors import InvalidInputError
from quiltwork.exact import counted, percent
from quiltwork.results import ResultBase
from quiltwork.tables.codes.encoding import group_rows
from quiltwork.tables.input.canonical_values import canonical_value, ordered_key
from quiltwork.tables.input.csv_files import ColumnReading
from quiltwork.tables.input.frames import FileReading, arrow, is_table_file, read_files

_SHOWN = 5
"""The most cells, spellings or names of one kind that the report prints; JSON has all."""


@dataclass(frozen=True)
class StrayCell(ResultBase):
    """A cell that decided the type of its column.

    Attributes:
        file, row: its first position; rows are counted from 1 without the header.
        cell: its text.
        number: the number of cells with this text.
    """

    file: str
    row: int
    cell: str
    number: int


@dataclass(frozen=True)
class ColumnCheck(ResultBase):
    """One column of the files.

    Attributes:
        name: of the column.
        files: the number of files that have it.
        rows: the number of rows of these files.
        type: the type as which it is read, the same in all files.
        distinct: the number of distinct values.
        missing: the number of cells that are empty, or a word for a missing value.
        words: words for missing values in a column of numbers, dates or times.
        ends: the first and the last value, if they are ordered.
        mostly: for a column of text, the type of most of its cells; empty if there is none.
        strays: the other cells then: without them the column would have an order.
        spellings: values in several spellings, with their cells.
        foreign: numbers or dates in a notation that is read as text, if that is all it has.
    """

    name: str
    files: int
    rows: int
    type: str
    distinct: int
    missing: int
    words: tuple[str, ...] = ()
    ends: tuple[str, ...] = ()
    mostly: str = ""
    strays: tuple[StrayCell, ...] = ()
    spellings: tuple[tuple[str, ...], ...] = ()
    foreign: str = ""

    def lines(self, files: int) -> list[str]:
        """Return the lines to print about the column."""
        summary = f"{self.name}: {self.type}, {counted(self.distinct, 'value')}"
        if self.ends:
            summary += f" from {self.ends[0]} to {self.ends[1]}"
        lines = [f"{summary}."]
        if self.files < files:
            lines.append(
                f"It is in {self.files:,} of {files:,} files; others may use another name for it."
            )
        if self.words and self.type == "text":
            words = _first(map(repr, self.words))
            lines.append(f"{words} are read as values; --na makes such cells missing.")
        if self.missing:
            words = _first(filter(None, self.words))
            words = f", {words} among them" if words and self.type != "text" else ""
            share = percent(self.missing / self.rows)
            lines.append(f"{counted(self.missing, 'cell')} missing ({share}){words}.")
        if self.foreign:
            lines.append(_FOREIGN[self.foreign])
        if self.strays:
            shown = (
                f"{stray.cell!r} (row {stray.row:,} of {stray.file}"
                + (f", {stray.number:,} times)" if stray.number > 1 else ")")
                for stray in self.strays
            )
            cells = _first(shown, "; ")
            lines.append(
                f"It is text because some cells are not {self.mostly}: {cells}. Correct them, or "
                "declare them as missing (--na)."
            )
        lines += [
            f"Several spellings of one value: {_first(map(repr, cells_of_value))}."
            for cells_of_value in self.spellings[:_SHOWN]
        ]
        if (more := len(self.spellings) - _SHOWN) > 0:
            lines.append(f"… and {more:,} more in several spellings; --json lists all.")
        return [lines[0], *(f"  {line}" for line in lines[1:])]


def _first(texts: Iterable[str], separator: str = ", ") -> str:
    """Join the first few texts, and say how many more there are."""
    listed = list(texts)
    if len(listed) > _SHOWN:
        listed[_SHOWN:] = [f"… and {len(listed) - _SHOWN:,} more (--json lists all)"]
    return separator.join(listed)


@dataclass(frozen=True)
class FileCheck(ResultBase):
    """The result of checking files: how they will be read, and what looks wrong.

    Attributes:
        rows: file → number of rows.
        columns: the columns, in order.
        repeated: the number of rows equal to an earlier one of their file in every column.
        shared: the number of rows equal to one of another file in every column.
        alike: names of columns that differ in spelling only, and may be one column.
        headless: CSV files whose first line looks like a row: names that are numbers or dates.
    """

    schema = ("check", 1)

    rows: dict[str, int]
    columns: tuple[ColumnCheck, ...]
    repeated: int
    shared: int
    alike: tuple[tuple[str, ...], ...]
    headless: tuple[str, ...] = ()

    def explain(self) -> str:
        """Return the report: how each column is read, and what looks wrong."""
        lines = [f"{name}: {counted(number, 'row')}." for name, number in self.rows.items()]
        lines += [
            f"{name} may have no header: its first line has numbers or dates where names are "
            "expected, and is not counted as a row. Add a line of column names."
            for name in self.headless
        ]
        for column in self.columns:
            lines += column.lines(len(self.rows))
        for names in self.alike:
            listed = ", ".join(map(repr, names))
            lines.append(
                f"These may be one column: {listed}. --rename OLD=NEW gives them one name."
            )
        if self.repeated:
            lines.append(
                f"{counted(self.repeated, 'row')} equal to an earlier one of the file in every "
                "column. If a person can have several rows, name the column of persons (--subject)."
            )
        if self.shared:
            lines.append(
                f"{counted(self.shared, 'row')} equal to one of another file in every column."
            )
        return "\n".join(lines)

    def records(self) -> list[dict[str, Any]]:
        """Return a row for each column."""
        return [column.body() for column in self.columns]


def check_files(
    files: Sequence[str], text: Collection[str] = (), readings: Sequence[FileReading] = ()
) -> FileCheck:
    """Check CSV and Parquet files as the files of one table.

    Raises:
        InvalidInputError: if a file cannot be read, or has no rows.

    >>> import pathlib, tempfile
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     path = pathlib.Path(folder, "a.csv")
    ...     _ = path.write_text("age,ill\\n31,flu\\nold,Flu\\n45,cold\\n")
    ...     result = check_files([str(path)])
    >>> [(column.name, column.type, column.mostly) for column in result.columns]
    [('age', 'text', 'numbers'), ('ill', 'text', '')]
    >>> result.columns[0].strays[0].row, result.columns[1].spellings
    (2, (('flu', 'Flu'),))
    """
    if repeated_file := next((file for file in files if list(files).count(file) > 1), None):
        raise InvalidInputError(f"{repeated_file!r} is given twice; give every file once.")
    tables = dict(zip(files, read_files(files, readings), strict=True))
    names = list(dict.fromkeys(name for table in tables.values() for name in table.column_names))
    if not any(table.num_rows for table in tables.values()):
        raise InvalidInputError("The files have no rows, so there is nothing to check.")
    for table, file in zip(tables.values(), files, strict=True):
        if len(set(table.column_names)) < len(table.column_names):
            raise InvalidInputError(
                f"Two columns of {file!r} have the same name; rename one of them."
            )
    columns = tuple(
        _check_column(
            name, {f: t.column(name) for f, t in tables.items() if name in t.column_names}, text
        )
        for name in names
    )
    by_name = defaultdict(list)
    for name in names:
        # Names that differ in case, blanks or punctuation are probably one column.
        by_name["".join(c for c in name.casefold() if c.isalnum())].append(name)
    repeated, shared = _duplicates(list(tables.values()))
    return FileCheck(
        rows={file: table.num_rows for file, table in tables.items()},
        columns=columns,
        repeated=repeated,
        shared=shared,
        alike=tuple(tuple(spellings) for spellings in by_name.values() if len(spellings) > 1),
        headless=tuple(
            file
            for file, table in tables.items()
            if not is_table_file(file) and any(map(ordered_key, table.column_names))
        ),
    )


_PLURAL = {"number": "numbers", "date": "dates", "time": "times", "text": "text"}


def _check_column(name: str, columns: dict[str, Any], text: Collection[str]) -> ColumnCheck:
    """Check one column in the files that have it."""
    pa = arrow()
    texts = {file: column for file, column in columns.items() if not is_table_file(file)}
    nulls = sum(column.null_count for column in columns.values())
    cells: Counter[str] = Counter()
    for column in columns.values():
        # Counting in Arrow first: Python sees each distinct cell once.
        for entry in column.cast(pa.string()).value_counts().to_pylist():
            if entry["values"] is not None:
                cells[entry["values"]] += entry["counts"]
    by_value = defaultdict(list)
    for cell in cells:
        by_value[canonical_value(cell)].append(cell)
    by_value.pop(None, None)  # words for missing values are not spellings of one value
    respelled = [
        sorted(cells_of_value, key=lambda cell: -cells[cell])
        for cells_of_value in by_value.values()
        if len(cells_of_value) > 1
    ]
    check = ColumnCheck(
        name=name,
        files=len(columns),
        rows=sum(map(len, columns.values())),
        type=" and ".join(sorted({str(column.type) for column in columns.values()})),
        distinct=len(cells),
        missing=nulls,
        spellings=tuple(map(tuple, respelled)),
    )
    if not texts or name in text:
        return check if not texts else replace(check, type="text, as requested")
    reading = ColumnReading.of(list(texts.values()))
    if reading.type == "text":
        strays = reading.strays
        words = tuple(sorted({cell for cell in cells if canonical_value(cell) is None} - {""}))
        check = replace(check, type="text", words=words)
        if strays is None:
            return replace(check, foreign=_foreign_notation(set(cells) - set(words)))
        positions = _positions(texts)
        shown = [StrayCell(*positions[cell], cell, cells[cell]) for cell in strays[1]]
        return replace(check, mostly=_PLURAL[strays[0]], strays=tuple(shown))
    order = [value for column in reading.columns for value in _ends(column)]
    ends = sorted(order, key=lambda end: end[0])
    return replace(
        check,
        type=_PLURAL[reading.type],
        missing=nulls + reading.worded,
        distinct=len(cells) - len([cell for cell in cells if canonical_value(cell) is None]),
        words=reading.words,
        ends=(ends[0][1], ends[-1][1]) if ends else (),
    )


def _ends(column: Any) -> list[tuple[Any, str]]:
    """Return the first and the last value of an ordered column, with their positions."""
    pa = arrow()
    import pyarrow.compute as pc

    if pa.types.is_dictionary(column.type):
        chunk = column.combine_chunks() if hasattr(column, "chunks") else column
        codes = pc.min_max(chunk.indices).as_py()
        if codes["min"] is None:
            return []
        return [(codes[end], str(chunk.dictionary[codes[end]])) for end in ("min", "max")]
    extremes = pc.min_max(column).as_py()
    return (
        [] if extremes["min"] is None else [(extremes[end], str(extremes[end])) for end in extremes]
    )


def _positions(columns: dict[str, Any]) -> dict[str, tuple[str, int]]:
    """Return the file and the row, counted from 1, in which each cell occurs first."""
    positions: dict[str, tuple[str, int]] = {}
    for file, column in columns.items():
        encoded = column.combine_chunks().dictionary_encode()
        codes = encoded.indices.fill_null(-1).to_numpy(zero_copy_only=False)
        for code, row in zip(*np.unique(codes, return_index=True), strict=True):
            if code >= 0:
                positions.setdefault(encoded.dictionary[int(code)].as_py(), (file, int(row) + 1))
    return positions


_FOREIGN = {
    "decimal commas": "It is text, and looks like numbers with decimal commas. Write 5.5 for 5,5 "
    "if the column should have an order.",
    "dates": "It is text, and looks like dates that are not written as 2024-03-12. Write them so "
    "if the column should have an order.",
}
_DECIMAL_COMMA = re.compile(r"\s*[+-]?(\d+|\d{1,3}(\.\d{3})+),\d+\s*")
_OTHER_DATE = re.compile(
    r"\s*(\d{1,2}[./-]\d{1,2}[./-](\d{4}|\d{2})|\d{4}[./]\d{1,2}[./]\d{1,2})\s*"
)


def _foreign_notation(cells: Collection[str]) -> str:
    """Return the notation of cells that are all numbers with decimal commas, or dates; else ""."""
    commas = [cell for cell in cells if _DECIMAL_COMMA.fullmatch(cell)]
    # Beside decimal commas, whole numbers are usual.
    if commas and all(ordered_key(cell) for cell in set(cells) - set(commas)):
        return "decimal commas"
    return "dates" if cells and all(map(_OTHER_DATE.fullmatch, cells)) else ""


def _duplicates(tables: Sequence[Any]) -> tuple[int, int]:
    """Count rows that are equal to an earlier one of their file, and to one of another file.

    Files with other columns have no rows in common.
    """
    pa = arrow()
    columns = tables[0].column_names
    # Rows of files with different columns cannot be equal.
    if any(set(table.column_names) != set(columns) for table in tables):
        return sum(_duplicates([table])[0] for table in tables), 0
    codes, sizes = [], []
    for name in columns:
        chunks = [chunk for t in tables for chunk in t.column(name).cast(pa.string()).chunks]
        encoded = pa.chunked_array(chunks, pa.string()).combine_chunks().dictionary_encode("encode")
        codes.append(encoded.indices.to_numpy(zero_copy_only=False))
        sizes.append(len(encoded.dictionary))
    labels = group_rows(codes, sizes).labels
    file = np.repeat(np.arange(len(tables)), [table.num_rows for table in tables])
    pairs = np.unique(np.stack((labels, file), axis=1), axis=0)[:, 0]
    in_files = np.bincount(pairs)
    return len(labels) - len(pairs), int(np.count_nonzero(in_files[labels] > 1))
