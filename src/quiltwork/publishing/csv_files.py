"""CSV files as columns: numbers, dates and times where a person wrote some, else the text itself.

A column is numbers only if every cell is one in its usual spelling. `02410`, `+5`, `0x10`, `12E4`,
`nan` and whole numbers beyond 64 bits are not, nor are `250.00` and `250.1` side by side, so such a
column stays text, as does one of `true` and `false`. Files of several providers are read alike: a
column is text in all if it is in one.
Cost: one pass over the file, and one over the distinct texts of each column.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Collection, Iterator, Sequence
from pathlib import Path
from typing import Any, NoReturn

from quiltwork.delimited import DECIMAL, WHOLE, even_rows, with_csv
from quiltwork.errors import InvalidInputError

_FILLED_UP = r"\.[0-9]+0$"
_DATE = r"^[0-9]{4}-[0-9]{2}-[0-9]{2}$"
_MOMENT = r"^[0-9]{4}-[0-9]{2}-[0-9]{2}([ T][0-9]{2}:[0-9]{2}(:[0-9]{2}(\.[0-9]+)?)?)?"
_ZONE = r"(Z|[+-][0-9]{2}(:?[0-9]{2})?)$"
_CLOCK = r"^[0-9]{2}:[0-9]{2}(:[0-9]{2})?$"


def read_texts(path: Path) -> Any:
    """Read a CSV file as an Arrow table of texts; only the empty cell is missing.

    Raises:
        InvalidInputError: if it is no CSV file in UTF-8. The message names the place, never a cell.
    """
    import pyarrow as pa
    from pyarrow import csv

    header: list[str] = with_csv(str(path), lambda reader: next(reader, []))
    as_text = csv.ConvertOptions(
        null_values=[""],
        strings_can_be_null=True,
        column_types=dict.fromkeys(header, pa.string()),
    )
    try:
        return csv.read_csv(path, convert_options=as_text)
    except (pa.ArrowException, UnicodeDecodeError):  # whose words show the row
        _say_where(str(path), header)


def _say_where(path: str, header: Sequence[str]) -> NoReturn:
    """Find what is wrong with a file that Arrow refused."""

    def every_row(reader: Iterator[list[str]]) -> None:
        next(reader, None)
        deque(even_rows(reader, len(header), path), maxlen=0)

    with_csv(path, every_row)
    raise InvalidInputError(
        f"Cannot read {path!r} as a table; give CSV in UTF-8 that begins with a line of column "
        "names."
    )


def typed(tables: Sequence[Any], text: Collection[str] = ()) -> list[Any]:
    """Give the columns of text tables the types that they are written in, alike in all tables.

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
    """Return columns of text as what all their cells are; as they are if that is text."""
    import pyarrow as pa
    import pyarrow.compute as pc

    chunks = [chunk for column in columns for chunk in column.chunks]
    seen = pc.unique(pa.chunked_array(chunks, pa.string())).drop_null()
    if not len(seen):
        return [pa.nulls(len(column)) for column in columns]
    for pattern, convert in _KINDS:
        numbers = pattern in (WHOLE, DECIMAL)
        cells = pc.utf8_trim_whitespace(seen) if numbers else seen
        if pc.all(pc.match_substring_regex(cells, pattern)).as_py():
            if pattern == DECIMAL and not _evenly_written(cells):
                break
            try:
                return [convert(column) for column in columns]
            except pa.ArrowInvalid:  # beyond 64 bits, or no day of the calendar
                break
    return list(columns)


def _evenly_written(cells: Any) -> bool:
    """Tell whether zeros at the end say nothing: none (but for `2.0`), or all to one length."""
    import pyarrow.compute as pc

    if not pc.any(pc.match_substring_regex(cells, _FILLED_UP)).as_py():
        return True
    decimals = pc.utf8_length(pc.replace_substring_regex(cells, r"^[^.]*\.?", ""))
    return len(pc.unique(decimals)) == 1


def _cast(kind: str) -> Callable[[Any], Any]:
    def convert(column: Any) -> Any:
        import pyarrow as pa
        import pyarrow.compute as pc

        return pc.cast(pc.utf8_trim_whitespace(column), pa.type_for_alias(kind))

    return convert


def _moments(zone: str | None) -> Callable[[Any], Any]:
    def convert(column: Any) -> Any:
        import pyarrow as pa
        import pyarrow.compute as pc

        fine = pc.any(pc.match_substring(column, ".")).as_py()
        return pc.cast(column, pa.timestamp("ns" if fine else "s", tz=zone))

    return convert


def _clock(column: Any) -> Any:
    import pyarrow as pa
    import pyarrow.compute as pc

    moments = pc.binary_join_element_wise("1970-01-01", column, " ")
    return pc.cast(pc.cast(moments, pa.timestamp("s")), pa.time32("s"))


_KINDS: tuple[tuple[str, Callable[[Any], Any]], ...] = (
    (WHOLE, _cast("int64")),
    (DECIMAL, _cast("double")),
    (_DATE, _cast("date32")),
    (f"{_MOMENT}$", _moments(None)),
    (f"{_MOMENT}{_ZONE}", _moments("UTC")),
    (_CLOCK, _clock),
)
