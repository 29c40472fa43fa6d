"""CSV files as columns: texts as a person wrote them, with the order that they have.

Whole numbers in their usual spelling, which they are written back in, are numbers. A column whose
cells are all other numbers, or all dates or times, is an ordered category of its texts (`meanings`
says where they lie), so that `1.5` and `1.50` keep their order and their spelling. Everything else
is text without an order: `02410`, `+5`, `0x10`, `12E4`, `nan`, `true`. Files of several providers
are read alike: a column is text in all if it is in one.
Cost: one pass over the file, and a sort of the distinct texts of each column.
"""

from __future__ import annotations

import warnings
from collections import deque
from collections.abc import Collection, Iterator, Sequence
from contextlib import nullcontext, suppress
from dataclasses import replace
from pathlib import Path
from typing import Any, NoReturn

from quiltwork.delimited import WHOLE, GivenDialect, Opened, even_rows
from quiltwork.errors import InvalidInputError, QuiltworkWarning
from quiltwork.tables.meanings import number, place


def read_texts(path: Path, given: GivenDialect | None = None) -> Any:
    """Read a CSV file as an Arrow table of texts; only the empty cell is missing."""
    given = given or GivenDialect()
    opened = Opened(str(path), given)
    header: list[str] = opened.rows(lambda reader: next(reader, []))
    found = _by_arrow(opened, header)
    if found is None and opened.turns_out_as_windows():
        found = _by_arrow(opened, header)
    if found is None:
        _say_where(opened, header)
    if given.encoding is None and opened.dialect.encoding not in ("utf-8", "utf-16"):
        words = replace(opened.dialect, delimiter=",", decimal=".").words
        said = f"{path} is read with {words}; encoding='…' says another."
        warnings.warn(said, QuiltworkWarning, stacklevel=4)
    return found


def _by_arrow(opened: Opened, header: Sequence[str]) -> Any:
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


def _say_where(opened: Opened, header: Sequence[str]) -> NoReturn:
    """Find what is wrong with a file that Arrow refused."""

    def every_row(reader: Iterator[list[str]]) -> None:
        next(reader, None)
        deque(even_rows(reader, len(header), opened.path), maxlen=0)

    opened.rows(every_row)
    raise InvalidInputError(
        f"Cannot read {opened.path!r} as a table; give CSV in UTF-8 that begins with a line of "
        "column names."
    )


def typed(tables: Sequence[Any], text: Collection[str] = ()) -> list[Any]:
    """Give the columns of text tables the order that they are written in, alike in all tables.

    Columns named in `text`, and those that a table has twice, stay text.

    >>> import pyarrow
    >>> table = pyarrow.table({"age": ["31", None], "zip": ["02410", "12399"]})
    >>> typed([table])[0].to_pylist()
    [{'age': 31, 'zip': '02410'}, {'age': None, 'zip': '12399'}]
    """
    made = list(tables)
    names = dict.fromkeys(name for table in tables for name in table.column_names)
    for name in names:
        having = [i for i, table in enumerate(made) if table.column_names.count(name) == 1]
        if name in text or not having:
            continue
        columns = [made[i].column(name) for i in having]
        for i, column in zip(having, _converted(columns), strict=True):
            made[i] = made[i].set_column(made[i].column_names.index(name), name, column)
    return made


def _converted(columns: Sequence[Any]) -> list[Any]:
    """Return columns of text as whole numbers or as ordered texts; as they are if they are none."""
    import pyarrow as pa
    import pyarrow.compute as pc

    chunks = [chunk for column in columns for chunk in column.chunks]
    seen = pc.unique(pa.chunked_array(chunks, pa.string())).drop_null()
    if not len(seen):
        return [pa.nulls(len(column)) for column in columns]
    if pc.all(pc.match_substring_regex(seen, WHOLE)).as_py():
        with suppress(pa.ArrowInvalid):  # beyond 64 bits
            return [pc.cast(column, pa.int64()) for column in columns]
    ordered = _ordered(seen.to_pylist())
    if not ordered:
        return list(columns)
    found = pa.array(ordered)
    return [
        pa.DictionaryArray.from_arrays(
            pc.index_in(column.combine_chunks(), found), found, ordered=True
        )
        for column in columns
    ]


def _ordered(texts: list[str]) -> list[str]:
    """Put texts in order that are all numbers, dates or times; none if they are not."""
    places = {}
    for text in texts:
        found = place(text)
        if found is None or (found[0] == "number" and number(text) is None):
            return []
        places[text] = (*found, text)
    if len({line for line, *_ in places.values()}) > 1:
        return []
    return sorted(texts, key=places.__getitem__)
