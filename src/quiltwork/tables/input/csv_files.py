"""CSV files as Arrow columns: texts as written, with the order that they have.

Whole numbers in their usual spelling, in which they are also written back, become numbers. A column
whose cells are all other numbers, all dates or all times becomes an ordered category of its texts
(positions are those of `canonical_values`), so that `1.5` and `1.50` keep their order and their
spelling. Everything else is text without an order: `02410`, `+5`, `0x10`, `12E4`, `true`. If some
cells of a column of numbers, dates or times are usual words for a missing value (`n/a`, `?`), the
column keeps its order, these cells are missing, and a warning says so. Files of several providers
are read alike: a column is text in all of them if it is in one, unless its type is declared; then a
cell of another type is refused. Cost: one pass over the file, and a sort of the distinct texts of
each column.
"""

from __future__ import annotations

import warnings
from collections import deque
from collections.abc import Collection, Iterator, Mapping, Sequence
from contextlib import nullcontext, suppress
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Literal, NoReturn, TypeAlias

from quiltwork.delimited import MISSING_WORDS, WHOLE, CsvSource, DialectOptions, rows_of_width
from quiltwork.errors import InvalidInputError, QuiltworkWarning
from quiltwork.exact import counted
from quiltwork.tables.input.canonical_values import number, ordered_key
from quiltwork.wording import argument

ColumnType: TypeAlias = Literal["number", "date", "time", "text"]


def read_texts(path: Path, given: DialectOptions | None = None) -> Any:
    """Read a CSV file as an Arrow table of texts.

    Empty cells are missing, and so are the words in `given.na_values`.
    """
    given = given or DialectOptions()
    source = CsvSource(str(path), given)
    header: list[str] = source.rows(lambda reader: next(reader, []))
    texts = _by_arrow(source, header)
    # Files from spreadsheets are often in the code page of Windows.
    if texts is None and source.fall_back_to_cp1252():
        texts = _by_arrow(source, header)
    if texts is None:
        _refuse_file(source, header)
    if given.encoding is None and source.dialect.encoding not in ("utf-8", "utf-16"):
        words = replace(source.dialect, delimiter=",", decimal=".").words
        message = f"{path} is read with {words}; change that with {argument('encoding')}."
        warnings.warn(message, QuiltworkWarning, stacklevel=4)
    return _words_as_missing(texts, source.dialect.na_values)


def _words_as_missing(table: Any, words: Collection[str]) -> Any:
    """Replace cells that are one of some words by missing ones."""
    import pyarrow as pa
    import pyarrow.compute as pc

    if not words:
        return table
    listed = pa.array(sorted(words))
    columns = [
        pc.if_else(pc.is_in(pc.utf8_trim_whitespace(column), listed), None, column)
        for column in table.columns
    ]
    return pa.table(columns, names=table.column_names)


def _by_arrow(source: CsvSource, header: Sequence[str]) -> Any:
    """Return the file as Arrow reads it, or None if Arrow refuses it."""
    import pyarrow as pa
    from pyarrow import csv

    as_text = csv.ConvertOptions(
        null_values=[""],
        strings_can_be_null=True,
        column_types=dict.fromkeys(header, pa.string()),
    )
    is_plain_file = not source.skipped and source.path != "-"
    with (
        suppress(pa.ArrowException, UnicodeDecodeError),  # their messages contain the row
        nullcontext(source.path) if is_plain_file else source.stream() as data,
    ):
        return csv.read_csv(
            data,
            read_options=csv.ReadOptions(encoding=source.dialect.encoding),
            parse_options=csv.ParseOptions(delimiter=source.dialect.delimiter),
            convert_options=as_text,
        )


def _refuse_file(source: CsvSource, header: Sequence[str]) -> NoReturn:
    """Refuse a file that Arrow could not read, naming the row if it is found."""

    def every_row(reader: Iterator[list[str]]) -> None:
        next(reader, None)
        deque(rows_of_width(reader, len(header), source.path), maxlen=0)

    source.rows(every_row)
    raise InvalidInputError(
        f"Cannot read {source.path!r} as a table. It must be CSV in UTF-8 that begins with a "
        "line of column names."
    )


def infer_types(
    tables: Sequence[Any],
    text: Collection[str] = (),
    types: Mapping[str, ColumnType] | None = None,
) -> list[Any]:
    """Convert the columns of text tables to the types that their cells have, alike in all tables.

    Columns named in `text`, and those that a table has twice, stay text. `types` declares types.

    Raises:
        InvalidInputError: if a cell is not of the declared type.

    >>> import pyarrow
    >>> table = pyarrow.table({"age": ["31", None], "zip": ["02410", "12399"]})
    >>> infer_types([table])[0].to_pylist()
    [{'age': 31, 'zip': '02410'}, {'age': None, 'zip': '12399'}]
    """
    typed, declared = list(tables), dict(types or {})
    as_text: ColumnType = "text"
    declared |= dict.fromkeys(text, as_text)
    names = dict.fromkeys(name for table in tables for name in table.column_names)
    for name in names:
        tables_with = [i for i, table in enumerate(typed) if table.column_names.count(name) == 1]
        if declared.get(name) == "text" or not tables_with:
            continue
        reading = ColumnReading.of([typed[i].column(name) for i in tables_with])
        if name in declared:
            reading.refuse_others(name, declared[name])
        elif reading.words:
            warnings.warn(reading.warning(name), QuiltworkWarning, stacklevel=6)
        for i, column in zip(tables_with, reading.columns, strict=True):
            typed[i] = typed[i].set_column(typed[i].column_names.index(name), name, column)
    return typed


@dataclass(frozen=True, eq=False)
class ColumnReading:
    """The type of a column of texts, the same in all files that have it.

    Attributes:
        type: the type of its cells; "text" if they are not all of one type.
        columns: the typed column of each file.
        words: words for missing values among numbers, dates or times, in lower case.
        worded: the number of cells with such a word.
        strays: for text of which most distinct cells are of one type: this type, and the other
            cells.
    """

    type: ColumnType
    columns: list[Any]
    words: tuple[str, ...] = ()
    worded: int = 0
    strays: tuple[ColumnType, tuple[str, ...]] | None = None

    @classmethod
    def of(cls, texts: Sequence[Any]) -> ColumnReading:
        """Determine the type from all cells."""
        import pyarrow as pa
        import pyarrow.compute as pc

        chunks = [chunk for column in texts for chunk in column.chunks]
        counts = pc.value_counts(pa.chunked_array(chunks, pa.string()).drop_null())
        cells, number_of = counts.field("values"), counts.field("counts").to_numpy()
        # A column without any cell has no type; nulls fit every column beside it.
        if not len(cells):
            return cls("text", [pa.nulls(len(column)) for column in texts])
        lowered = pc.utf8_lower(pc.utf8_trim_whitespace(cells))
        absent = pc.is_in(lowered, pa.array(sorted(MISSING_WORDS)))
        missing = absent.to_numpy(zero_copy_only=False)  # words for missing values
        typed_cells, words, worded = cells, (), 0
        # If words for missing values are the majority, they are probably values.
        if 0 < int(number_of[missing].sum()) <= int(number_of[~missing].sum()):
            typed_cells, worded = cells.filter(pc.invert(absent)), int(number_of[missing].sum())
            words = tuple(sorted(pc.unique(lowered.filter(absent)).to_pylist()))
        ordered = _whole(texts, typed_cells, bool(worded)) or _in_order(texts, typed_cells)
        if ordered is not None:
            return cls(*ordered, words, worded)
        return cls("text", list(texts), strays=_strays(cells.to_pylist()))

    def refuse_others(self, name: str, declared: ColumnType) -> None:
        """Refuse cells that are not of the declared type."""
        if self.type == declared or all(len(c) == c.null_count for c in self.columns):
            return
        raise InvalidInputError(
            f"Column {name!r} is declared as {_PLURAL[declared]}, but some of its cells are "
            f"{'neither that nor missing' if self.type == 'text' else _PLURAL[self.type]}. Correct "
            "them, or declare a further word for missing values (na_values, --na)."
        )

    def warning(self, name: str) -> str:
        """Return the warning that words are read as missing values."""
        return (
            f"Column {name!r} is read as {_PLURAL[self.type]}, with {counted(self.worded, 'cell')} "
            f"as missing ({', '.join(word or 'blanks' for word in self.words)}). To keep these "
            f"words as values, pass text={name!r} (--text)."
        )


_PLURAL = {"number": "numbers", "date": "dates", "time": "times of day", "text": "text"}

Read: TypeAlias = "tuple[ColumnType, list[Any]] | None"


def _whole(texts: Sequence[Any], typed_cells: Any, has_words: bool) -> Read:
    """Read columns as whole numbers, cells outside `typed_cells` as missing; None if that fails."""
    import pyarrow as pa
    import pyarrow.compute as pc

    if not pc.all(pc.match_substring_regex(typed_cells, WHOLE)).as_py():
        return None
    kept = list(texts)
    if has_words:
        kept = [pc.if_else(pc.is_in(column, typed_cells), column, None) for column in texts]
    with suppress(pa.ArrowInvalid):  # beyond 64 bits
        return "number", [pc.cast(column, pa.int64()) for column in kept]
    return None


def _in_order(texts: Sequence[Any], typed_cells: Any) -> Read:
    """Read columns as ordered texts, cells outside `typed_cells` as missing; None if that fails."""
    import pyarrow as pa
    import pyarrow.compute as pc

    cells = typed_cells.to_pylist()
    keys = [_ordered_cell(text) for text in cells]
    if None in keys or len({key[0] for key in keys if key is not None}) > 1:
        return None
    sortable = [(*key, text) for key, text in zip(keys, cells, strict=True) if key is not None]
    ordered_texts = pa.array([text for *_, text in sorted(sortable)])
    return sortable[0][0], [
        pa.DictionaryArray.from_arrays(
            pc.index_in(column.combine_chunks(), ordered_texts), ordered_texts, ordered=True
        )
        for column in texts
    ]


def _ordered_cell(text: str) -> tuple[ColumnType, Any] | None:
    """Return the type of a cell and its position; None for words and codes."""
    key = ordered_key(text)
    if key is None or (key[0] == "number" and number(text) is None):
        return None
    kinds: dict[str, ColumnType] = {"number": "number", "date": "date", "time": "time"}
    return kinds[key[0]], key[1]


def _strays(cells: list[str]) -> tuple[ColumnType, tuple[str, ...]] | None:
    """Return the type of most distinct cells, and the cells of other types."""
    types = [None if (key := _ordered_cell(text)) is None else key[0] for text in cells]
    for majority in ("number", "date", "time"):
        others = tuple(text for text, key in zip(cells, types, strict=True) if key != majority)
        # At most one type can have the majority of distinct cells.
        if 2 * len(others) < len(cells):
            return majority, others
    return None
