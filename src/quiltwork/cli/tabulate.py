"""Counts of declared cells of a CSV file, with the standard library only.

The set of categories that occur is private, so cells come from a public list and never from the
rows. Conditions are data (`column=value`), never code. Cost: one pass over the file.
"""

from __future__ import annotations

import math
import operator
import re
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from decimal import Decimal, InvalidOperation
from itertools import count, product
from operator import itemgetter
from typing import NamedTuple, TypeAlias, cast

from quiltwork import files
from quiltwork.counts.contributors import first_rows
from quiltwork.delimited import (
    DialectOptions,
    column_position,
    rows_of_width,
    split_line,
    with_csv,
)
from quiltwork.errors import InvalidInputError

MOST_CELLS = 1_000_000

_CONDITION = re.compile(r"(?P<column>[^=!<>]+)(?P<sign>!=|<=|>=|=|<|>)(?P<value>.*)", re.DOTALL)
Test: TypeAlias = tuple[int, Callable[[str], bool]]

_ORDER: dict[str, Callable[[Decimal, Decimal], bool]] = {
    "<": operator.lt,
    "<=": operator.le,
    ">": operator.gt,
    ">=": operator.ge,
}


@dataclass(frozen=True)
class Condition:
    """A condition `column sign value`; <, <=, > and >= compare numbers, and are false for text."""

    column: str
    sign: str
    value: str

    def test(self) -> Callable[[str], bool]:
        """Return the predicate of one cell."""
        if self.sign == "=":
            return self.value.__eq__
        if self.sign == "!=":
            return self.value.__ne__
        compare, bound = _ORDER[self.sign], Decimal(self.value)
        return lambda cell: (number := _number(cell)) is not None and compare(number, bound)


def read_condition(text: str) -> Condition:
    """Parse `column=value`, `column!=value` or a comparison of numbers such as `age>=65`.

    >>> read_condition("age>=65")
    Condition(column='age', sign='>=', value='65')
    """
    parts = _CONDITION.fullmatch(text)
    if not parts:
        raise InvalidInputError(
            f"Cannot read the condition {text!r}; write column=value, column!=value, or a "
            "comparison with a number such as 'age>=65'."
        )
    condition = Condition(parts["column"].strip(), parts["sign"], parts["value"].strip())
    if condition.sign in _ORDER and _number(condition.value) is None:
        raise InvalidInputError(
            f"The condition {text!r} compares with {condition.value!r}, which is not a number."
        )
    return condition


def read_categories(texts: Sequence[str], columns: Sequence[str]) -> list[tuple[str, ...]]:
    """Parse the public categories of each column, in the order of `columns`.

    A text is `a,b,c`, or `@FILE` with one category per line; with several columns it starts with
    `COLUMN=`.
    """
    declared: dict[str, tuple[str, ...]] = {}
    for text in texts:
        column, values = _addressed(text, columns)
        if column in declared:
            raise InvalidInputError(f"Categories of {column!r} are given twice; keep one list.")
        declared[column] = _listed(values, column)
    missing = [column for column in columns if column not in declared]
    if missing:
        raise InvalidInputError(
            f"No categories for column {missing[0]!r}. The set of categories that occur is "
            f"private: declare a public list with --categories {missing[0]}=a,b,c (or =@FILE), or "
            "accept that rare ones are revealed with --categories-from-data."
        )
    cells = math.prod(len(values) for values in declared.values())
    if cells > MOST_CELLS:
        raise InvalidInputError(
            f"The columns have {cells:,} cells together, more than {MOST_CELLS:,}; count by fewer "
            "columns or fewer categories."
        )
    return [declared[column] for column in columns]


def observed_categories(tallied: Iterable[tuple[str, ...]], columns: int) -> list[tuple[str, ...]]:
    """Return the categories that occur, sorted. This reveals them, so it is never the default."""
    values = list(zip(*tallied, strict=True)) or [()] * columns
    return [tuple(sorted(set(column))) for column in values]


def cells_of(categories: Sequence[tuple[str, ...]]) -> list[tuple[str, ...]]:
    """Return every combination of categories; a single empty one without columns."""
    return list(product(*categories))


class Contributor(NamedTuple):
    """The column that identifies people, and the most rows of one person that are counted."""

    column: str
    at_most: int


class CellCounts(NamedTuple):
    """The number of matching rows by cell, and the number of people in all rows."""

    cells: Counter[tuple[str, ...]]
    people: int


def tally(
    path: str,
    by: Sequence[str],
    conditions: Sequence[Condition],
    subject: Contributor | None = None,
    among: Iterable[tuple[str, ...]] | None = None,
    given: DialectOptions | None = None,
) -> CellCounts:
    """Count the rows of a CSV file that satisfy all conditions, by the values of `by`.

    With a subject, only the first rows of each person in a cell of `among` count (in any cell
    without it); without one, each row is assumed to be a different person. Reads `-` as standard
    input and `.gz` as compressed.
    """

    def read(reader: Iterator[list[str]]) -> CellCounts:
        header = header_of(reader, path)
        columns = [*by, *(condition.column for condition in conditions)]
        columns += [] if subject is None else [subject.column]
        wanted = [column_position(header, column, path, columns) for column in by]
        tests = [(column_position(header, c.column, path, columns), c.test()) for c in conditions]
        rows = rows_of_width(reader, len(header), path)
        if subject is not None:
            owner = column_position(header, subject.column, path, columns)
            people: set[str] = set()

            def note_person(row: list[str]) -> list[str]:
                people.add(row[owner])
                return row

            matching = _matching(map(note_person, rows), tests)
            cells = ((row[owner], tuple(row[at] for at in wanted)) for row in matching)
            public = None if among is None else set(among)
            inside = (pair for pair in cells if public is None or pair[1] in public)
            return CellCounts(Counter(first_rows(inside, subject.at_most)), len(people))
        numbers = count()
        numbered = zip(rows, numbers, strict=False)
        matching = _matching(map(itemgetter(0), numbered), tests)
        return CellCounts(_tallied(matching, wanted), next(numbers))

    return with_csv(path, read, given)


def header_of(reader: Iterator[list[str]], path: str) -> list[str]:
    """Return the header, the line of column names."""
    header = next(reader, None)
    if not header:
        raise InvalidInputError(
            f"{path!r} does not begin with a line of column names; give CSV with a header."
        )
    return header


def _matching(rows: Iterable[list[str]], tests: list[Test]) -> Iterable[list[str]]:
    if not tests:
        return rows
    return (row for row in rows if all(test(row[place]) for place, test in tests))


def _tallied(rows: Iterable[list[str]], wanted: list[int]) -> Counter[tuple[str, ...]]:
    if not wanted:
        return Counter({(): sum(1 for _ in rows)})
    tallied = Counter(map(itemgetter(*wanted), rows))
    if len(wanted) > 1:
        return cast("Counter[tuple[str, ...]]", tallied)
    return Counter({(cast(str, value),): times for value, times in tallied.items()})


def _addressed(text: str, columns: Sequence[str]) -> tuple[str, str]:
    column, sign, values = text.partition("=")
    if sign and column in columns:
        return column, values
    if len(columns) == 1:
        return columns[0], text
    raise InvalidInputError(
        f"Cannot tell which column the categories {text!r} belong to; write COLUMN=a,b,c with "
        f"one of: {', '.join(columns)}."
    )


def _listed(values: str, column: str) -> tuple[str, ...]:
    if values.startswith("@"):
        categories = [line for line in files.read_text(values[1:]).splitlines() if line]
    else:
        categories = split_line(values)
    if not categories or len(set(categories)) < len(categories):
        raise InvalidInputError(
            f"The categories of {column!r} are {'given twice' if categories else 'empty'}: "
            f"{values!r}; list each of them once."
        )
    return tuple(categories)


def _number(cell: str) -> Decimal | None:
    """Parse a number exactly; None for other text."""
    try:
        number = Decimal(cell)
    except InvalidOperation:
        return None
    return number if number.is_finite() else None
