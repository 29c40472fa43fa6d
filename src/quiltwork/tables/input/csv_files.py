"""CSV files as columns: texts as a person wrote them, with the order that they have.

Whole numbers in their usual spelling, which they are written back in, are numbers. A column whose
cells are all other numbers, or all dates or times, is an ordered category of its texts (`meanings`
says where they lie), so that `1.5` and `1.50` keep their order and their spelling. Everything else
is text without an order: `02410`, `+5`, `0x10`, `12E4`, `true`. A column of numbers, dates or times
with some of the usual words for a missing value (`n/a`, `?`) in it keeps its order: these cells are
missing then, which is said. Files of several providers are read alike: a column is text in all if
it is in one, unless its type is declared; then a cell that does not fit is refused.
Cost: one pass over the file, and a sort of the distinct texts of each column.
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
from quiltwork.tables.input.canonical_values import number, ordered_key
from quiltwork.wording import argument

ColumnType: TypeAlias = Literal["number", "date", "time", "text"]


def read_texts(path: Path, given: DialectOptions | None = None) -> Any:
    """Read a CSV file as an Arrow table of texts.

    The empty cell is missing, and what `given.na_values` names.
    """
    given = given or DialectOptions()
    opened = CsvSource(str(path), given)
    header: list[str] = opened.rows(lambda reader: next(reader, []))
    found = _by_arrow(opened, header)
    if found is None and opened.fall_back_to_cp1252():
        found = _by_arrow(opened, header)
    if found is None:
        _say_where(opened, header)
    if given.encoding is None and opened.dialect.encoding not in ("utf-8", "utf-16"):
        words = replace(opened.dialect, delimiter=",", decimal=".").words
        said = f"{path} is read with {words}; {argument('encoding')} says another."
        warnings.warn(said, QuiltworkWarning, stacklevel=4)
    return _without(found, opened.dialect.na_values)


def _without(table: Any, words: Collection[str]) -> Any:
    """Let the cells that are one of some words be missing."""
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


def _by_arrow(opened: CsvSource, header: Sequence[str]) -> Any:
    import pyarrow as pa
    from pyarrow import csv

    as_text = csv.ConvertOptions(
        null_values=[""],
        strings_can_be_null=True,
        column_types=dict.fromkeys(header, pa.string()),
    )
    whole = not opened.skipped and opened.path != "-"
    with (
        suppress(pa.ArrowException, UnicodeDecodeError),  # whose words show the row
        nullcontext(opened.path) if whole else opened.stream() as source,
    ):
        return csv.read_csv(
            source,
            read_options=csv.ReadOptions(encoding=opened.dialect.encoding),
            parse_options=csv.ParseOptions(delimiter=opened.dialect.delimiter),
            convert_options=as_text,
        )


def _say_where(opened: CsvSource, header: Sequence[str]) -> NoReturn:
    """Find what is wrong with a file that Arrow refused."""

    def every_row(reader: Iterator[list[str]]) -> None:
        next(reader, None)
        deque(rows_of_width(reader, len(header), opened.path), maxlen=0)

    opened.rows(every_row)
    raise InvalidInputError(
        f"Cannot read {opened.path!r} as a table; give CSV in UTF-8 that begins with a line of "
        "column names."
    )


def typed(
    tables: Sequence[Any],
    text: Collection[str] = (),
    types: Mapping[str, ColumnType] | None = None,
) -> list[Any]:
    """Give the columns of text tables the order that they are written in, alike in all tables.

    Columns named in `text`, and those that a table has twice, stay text. `types` declares others.

    Raises:
        InvalidInputError: for a cell that is not of the type that was declared.

    >>> import pyarrow
    >>> table = pyarrow.table({"age": ["31", None], "zip": ["02410", "12399"]})
    >>> typed([table])[0].to_pylist()
    [{'age': 31, 'zip': '02410'}, {'age': None, 'zip': '12399'}]
    """
    made, declared = list(tables), dict(types or {})
    as_text: ColumnType = "text"
    declared |= dict.fromkeys(text, as_text)
    names = dict.fromkeys(name for table in tables for name in table.column_names)
    for name in names:
        having = [i for i, table in enumerate(made) if table.column_names.count(name) == 1]
        if declared.get(name) == "text" or not having:
            continue
        found = ColumnReading.of([made[i].column(name) for i in having])
        if name in declared:
            found.refuse_others(name, declared[name])
        elif found.words:
            warnings.warn(found.said(name), QuiltworkWarning, stacklevel=6)
        for i, column in zip(having, found.columns, strict=True):
            made[i] = made[i].set_column(made[i].column_names.index(name), name, column)
    return made


@dataclass(frozen=True, eq=False)
class ColumnReading:
    """How a column of texts is read, alike in all files that have it.

    Attributes:
        type: what its cells are; "text" where they are not all of one kind.
        columns: the column of each file as it is read.
        words: words for missing values beside numbers, dates or times, as they are in
            `MISSING_WORDS`.
        worded: how many cells are such words.
        strays: where it is text and most of its distinct cells are of one kind: this kind, and the
            others.
    """

    type: ColumnType
    columns: list[Any]
    words: tuple[str, ...] = ()
    worded: int = 0
    strays: tuple[ColumnType, tuple[str, ...]] | None = None

    @classmethod
    def of(cls, texts: Sequence[Any]) -> ColumnReading:
        """Find out what the cells are."""
        import pyarrow as pa
        import pyarrow.compute as pc

        chunks = [chunk for column in texts for chunk in column.chunks]
        counted = pc.value_counts(pa.chunked_array(chunks, pa.string()).drop_null())
        cells, number_of = counted.field("values"), counted.field("counts").to_numpy()
        if not len(cells):
            return cls("text", [pa.nulls(len(column)) for column in texts])
        lowered = pc.utf8_lower(pc.utf8_trim_whitespace(cells))
        absent = pc.is_in(lowered, pa.array(sorted(MISSING_WORDS)))
        missing = absent.to_numpy(zero_copy_only=False)
        seen, words, worded = cells, (), 0
        if 0 < int(number_of[missing].sum()) <= int(number_of[~missing].sum()):
            seen, worded = cells.filter(pc.invert(absent)), int(number_of[missing].sum())
            words = tuple(sorted(pc.unique(lowered.filter(absent)).to_pylist()))
        read = _whole(texts, seen, bool(worded)) or _in_order(texts, seen)
        if read is not None:
            return cls(*read, words, worded)
        return cls("text", list(texts), strays=_strays(cells.to_pylist()))

    def refuse_others(self, name: str, declared: ColumnType) -> None:
        """Refuse cells that are not of the type that was declared."""
        if self.type == declared or all(len(c) == c.null_count for c in self.columns):
            return
        raise InvalidInputError(
            f"Column {name!r} is declared as {_PLURAL[declared]}, and some of its cells are "
            f"{'neither that nor missing' if self.type == 'text' else _PLURAL[self.type]}. Mend "
            "them, or name a word that stands for what is missing."
        )

    def said(self, name: str) -> str:
        """Say that words are taken for missing values."""
        cells = "1 cell is" if self.worded == 1 else f"{self.worded:,} cells are"
        return (
            f"Column {name!r} is read as {_PLURAL[self.type]}: {cells} missing, with a word for "
            f"that ({', '.join(word or 'blanks' for word in self.words)}). text={name!r} (--text) "
            "keeps the words."
        )


_PLURAL = {"number": "numbers", "date": "dates", "time": "times of day", "text": "text"}

Read: TypeAlias = "tuple[ColumnType, list[Any]] | None"


def _whole(texts: Sequence[Any], seen: Any, words: bool) -> Read:
    """Read columns as whole numbers, but for cells that are not in `seen`."""
    import pyarrow as pa
    import pyarrow.compute as pc

    if not pc.all(pc.match_substring_regex(seen, WHOLE)).as_py():
        return None
    kept = list(texts)
    if words:
        kept = [pc.if_else(pc.is_in(column, seen), column, None) for column in texts]
    with suppress(pa.ArrowInvalid):  # beyond 64 bits
        return "number", [pc.cast(column, pa.int64()) for column in kept]
    return None


def _in_order(texts: Sequence[Any], seen: Any) -> Read:
    """Read columns as categories of texts in their order; those not in `seen` are missing."""
    import pyarrow as pa
    import pyarrow.compute as pc

    cells = seen.to_pylist()
    lines = [_line(text) for text in cells]
    if None in lines or len({one[0] for one in lines if one is not None}) > 1:
        return None
    placed = [(*one, text) for one, text in zip(lines, cells, strict=True) if one is not None]
    found = pa.array([text for *_, text in sorted(placed)])
    return placed[0][0], [
        pa.DictionaryArray.from_arrays(
            pc.index_in(column.combine_chunks(), found), found, ordered=True
        )
        for column in texts
    ]


def _line(text: str) -> tuple[ColumnType, Any] | None:
    """Return what a cell is and where it lies; None for words and codes."""
    found = ordered_key(text)
    if found is None or (found[0] == "number" and number(text) is None):
        return None
    kinds: dict[str, ColumnType] = {"number": "number", "date": "date", "time": "time"}
    return kinds[found[0]], found[1]


def _strays(cells: list[str]) -> tuple[ColumnType, tuple[str, ...]] | None:
    """Return the kind of most distinct cells, and those that are of another."""
    kinds = [None if (one := _line(text)) is None else one[0] for text in cells]
    for kind in ("number", "date", "time"):
        others = tuple(text for text, one in zip(cells, kinds, strict=True) if one != kind)
        if 2 * len(others) < len(cells):
            return kind, others
    return None
