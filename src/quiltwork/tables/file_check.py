"""A look at files before anything else: how each column is read, and what is odd in it.

This is for the screen of whoever owns the rows: it shows cells. It goes with no ledger, spends
nothing, and no curator does it for another's rows. Cost: one pass over the files, and a sort of the
distinct cells of each column.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Collection, Sequence
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
"""Cells, spellings or names that are shown of as many as there are."""


@dataclass(frozen=True)
class Stray(ResultBase):
    """A cell that decided how its column is read.

    Attributes:
        file, row: where it is; rows are counted from 1 without the header.
        cell: what it says.
        number: how many cells say that.
    """

    file: str
    row: int
    cell: str
    number: int


@dataclass(frozen=True)
class ColumnLook(ResultBase):
    """One column of some files.

    Attributes:
        name: of the column.
        files: in how many of the files it is.
        type: as what it is read, alike in all of them.
        distinct: how many different values it has.
        missing: how many cells are empty, or a word for that.
        words: the words for a missing value in a column of numbers, dates or times.
        ends: the first and the last value, where there is an order.
        mostly: of a column of text, of what kind most of its cells are; empty if of none.
        strays: the other cells then, a few of them: without them it would have an order.
        spellings: values that are spelled in several ways, a few of them, with their cells.
    """

    name: str
    files: int
    type: str
    distinct: int
    missing: int
    words: tuple[str, ...] = ()
    ends: tuple[str, ...] = ()
    mostly: str = ""
    strays: tuple[Stray, ...] = ()
    spellings: tuple[tuple[str, ...], ...] = ()

    def lines(self, rows: int, files: int) -> list[str]:
        """Say what is to be known of it."""
        said = f"{self.name}: {self.type}, {counted(self.distinct, 'value')}"
        if self.ends:
            said += f" from {self.ends[0]} to {self.ends[1]}"
        found = [f"{said}."]
        if self.files < files:
            found.append(
                f"It is in {self.files:,} of {files:,} files; the others may call it else."
            )
        if self.words and self.type == "text":
            listed = ", ".join(map(repr, self.words))
            found.append(f"{listed} would be values: --na makes such cells missing.")
        if self.missing:
            listed = ", ".join(filter(None, self.words))
            words = f", {listed} among them" if listed and self.type != "text" else ""
            found.append(
                f"{counted(self.missing, 'cell')} missing ({percent(self.missing / rows)}){words}."
            )
        if self.strays:
            cells = "; ".join(
                f"{one.cell!r} (row {one.row:,} of {one.file}"
                + (f", {one.number:,} times)" if one.number > 1 else ")")
                for one in self.strays
            )
            found.append(
                f"It is text because of cells that are no {self.mostly}: {cells}. Mend them, or "
                "let them be missing (--na)."
            )
        found += [
            f"One value in several spellings: {', '.join(map(repr, ways))}."
            for ways in self.spellings
        ]
        return [found[0], *(f"  {line}" for line in found[1:])]


@dataclass(frozen=True)
class FilesLook(ResultBase):
    """What is in some files, as they will be read.

    Attributes:
        rows: file → how many rows it has.
        columns: what is to be known of each column.
        repeated: rows that are equal to an earlier one of their file in every column.
        shared: rows that are equal to one of another file in every column.
        alike: names of columns that may be one: what they are called, in which spellings.
        headless: CSV files whose first line looks like a row: names that are numbers or dates.
    """

    schema = ("check", 1)

    rows: dict[str, int]
    columns: tuple[ColumnLook, ...]
    repeated: int
    shared: int
    alike: tuple[tuple[str, ...], ...]
    headless: tuple[str, ...] = ()

    def explain(self) -> str:
        """Say how each column is read, and what is odd."""
        total = sum(self.rows.values())
        lines = [f"{name}: {counted(number, 'row')}." for name, number in self.rows.items()]
        lines += [
            f"{name} may have no header: its first line has numbers or dates where names "
            "belong, and counts as no row. Add a line of names."
            for name in self.headless
        ]
        for one in self.columns:
            lines += one.lines(total, len(self.rows))
        for names in self.alike:
            listed = ", ".join(map(repr, names))
            lines.append(f"May be one column: {listed}. --rename OLD=NEW makes them one.")
        if self.repeated:
            lines.append(
                f"{counted(self.repeated, 'row')} the same as an earlier one of the file in every "
                "column: if a person can have several rows, name them with --subject."
            )
        if self.shared:
            lines.append(
                f"{counted(self.shared, 'row')} the same as one of another file in every column."
            )
        return "\n".join(lines)

    def records(self) -> list[dict[str, Any]]:
        """Return a row for each column."""
        return [one.body() for one in self.columns]


def look_at(
    files: Sequence[str], text: Collection[str] = (), readings: Sequence[FileReading] = ()
) -> FilesLook:
    """Look at CSV and Parquet files as those of one table.

    Raises:
        InvalidInputError: if a file cannot be read, or has no rows.

    >>> import pathlib, tempfile
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     path = pathlib.Path(folder, "a.csv")
    ...     _ = path.write_text("age,ill\\n31,flu\\nold,Flu\\n45,cold\\n")
    ...     found = look_at([str(path)])
    >>> [(one.name, one.type, one.mostly) for one in found.columns]
    [('age', 'text', 'numbers'), ('ill', 'text', '')]
    >>> found.columns[0].strays[0].row, found.columns[1].spellings
    (2, (('flu', 'Flu'),))
    """
    if twice := next((file for file in files if list(files).count(file) > 1), None):
        raise InvalidInputError(f"{twice!r} is named twice; name every file once.")
    tables = dict(zip(files, read_files(files, readings), strict=True))
    names = list(dict.fromkeys(name for table in tables.values() for name in table.column_names))
    if not any(table.num_rows for table in tables.values()):
        raise InvalidInputError("The files have no rows; there is nothing to look at.")
    for table, file in zip(tables.values(), files, strict=True):
        if len(set(table.column_names)) < len(table.column_names):
            raise InvalidInputError(f"Two columns of {file!r} have one name; rename one of them.")
    columns = tuple(
        _look(name, {f: t.column(name) for f, t in tables.items() if name in t.column_names}, text)
        for name in names
    )
    by_name = defaultdict(list)
    for name in names:
        by_name["".join(c for c in name.casefold() if c.isalnum())].append(name)
    repeated, shared = _duplicates(list(tables.values()))
    return FilesLook(
        rows={file: table.num_rows for file, table in tables.items()},
        columns=columns,
        repeated=repeated,
        shared=shared,
        alike=tuple(tuple(alike) for alike in by_name.values() if len(alike) > 1),
        headless=tuple(
            file
            for file, table in tables.items()
            if not is_table_file(file) and any(map(ordered_key, table.column_names))
        ),
    )


_PLURAL = {"number": "numbers", "date": "dates", "time": "times", "text": "text"}


def _look(name: str, columns: dict[str, Any], text: Collection[str]) -> ColumnLook:
    """Look at one column, in the files that have it."""
    pa = arrow()
    texts = {file: column for file, column in columns.items() if not is_table_file(file)}
    absent = sum(column.null_count for column in columns.values())
    cells: Counter[str] = Counter()
    for column in columns.values():
        for entry in column.cast(pa.string()).value_counts().to_pylist():
            if entry["values"] is not None:
                cells[entry["values"]] += entry["counts"]
    ways = defaultdict(list)
    for cell in cells:
        ways[canonical_value(cell)].append(cell)
    ways.pop(None, None)  # words for missing values are no value in several spellings
    several = [sorted(one, key=lambda cell: -cells[cell]) for one in ways.values() if len(one) > 1]
    look = ColumnLook(
        name=name,
        files=len(columns),
        type=" and ".join(sorted({str(column.type) for column in columns.values()})),
        distinct=len(cells),
        missing=absent,
        spellings=tuple(tuple(one[:_SHOWN]) for one in several[:_SHOWN]),
    )
    if not texts or name in text:
        return look if not texts else replace(look, type="text, as was asked")
    found = ColumnReading.of(list(texts.values()))
    if found.type == "text":
        strays = found.strays
        words = tuple(sorted({cell for cell in cells if canonical_value(cell) is None} - {""}))
        look = replace(look, words=words[:_SHOWN])
        if strays is None:
            return replace(look, type="text")
        first = [_where(texts, cell, cells[cell]) for cell in strays[1][:_SHOWN]]
        return replace(look, type="text", mostly=_PLURAL[strays[0]], strays=tuple(first))
    order = [value for column in found.columns for value in _ends(column)]
    ends = sorted(order, key=lambda end: end[0])
    return replace(
        look,
        type=_PLURAL[found.type],
        missing=absent + found.worded,
        distinct=len(cells) - len([cell for cell in cells if canonical_value(cell) is None]),
        words=found.words,
        ends=(ends[0][1], ends[-1][1]) if ends else (),
    )


def _ends(column: Any) -> list[tuple[Any, str]]:
    """Return the first and last value of a column that has an order, and where they lie."""
    pa = arrow()
    import pyarrow.compute as pc

    if pa.types.is_dictionary(column.type):
        chunk = column.combine_chunks() if hasattr(column, "chunks") else column
        codes = pc.min_max(chunk.indices).as_py()
        if codes["min"] is None:
            return []
        return [(codes[end], str(chunk.dictionary[codes[end]])) for end in ("min", "max")]
    found = pc.min_max(column).as_py()
    return [] if found["min"] is None else [(found[end], str(found[end])) for end in found]


def _where(columns: dict[str, Any], cell: str, number: int) -> Stray:
    """Say where a cell is first."""
    import pyarrow.compute as pc

    for file, column in columns.items():
        row = pc.index(column, cell).as_py()
        if row >= 0:
            return Stray(file, row + 1, cell, number)
    raise LookupError("the cell is in one of the columns")


def _duplicates(tables: Sequence[Any]) -> tuple[int, int]:
    """Count rows that are equal to an earlier one of their file, and to one of another file.

    Files with other columns have no rows in common.
    """
    pa = arrow()
    columns = tables[0].column_names
    if any(set(table.column_names) != set(columns) for table in tables):
        return sum(_duplicates([table])[0] for table in tables), 0
    codes, sizes = [], []
    for name in columns:
        chunks = [one for t in tables for one in t.column(name).cast(pa.string()).chunks]
        found = pa.chunked_array(chunks, pa.string()).combine_chunks().dictionary_encode("encode")
        codes.append(found.indices.to_numpy(zero_copy_only=False))
        sizes.append(len(found.dictionary))
    labels = group_rows(codes, sizes).labels
    file = np.repeat(np.arange(len(tables)), [table.num_rows for table in tables])
    pairs = np.unique(np.stack((labels, file), axis=1), axis=0)[:, 0]
    in_files = np.bincount(pairs)
    return len(labels) - len(pairs), int(np.count_nonzero(in_files[labels] > 1))
