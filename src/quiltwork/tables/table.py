"""`Table`: records of many providers, and which columns are what.

A table keeps the frame as it was given; everything is computed on `encoded`, made on first use.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence, Set
from dataclasses import dataclass, fields
from functools import cached_property
from typing import Any, get_args

import numpy as np
from numpy.typing import NDArray

from quiltwork.arguments import choice, flag, hashable, listed, mapping_by_column
from quiltwork.delimited import DialectOptions, columns_of
from quiltwork.errors import InvalidInputError, UnsupportedError
from quiltwork.exact import integer, shortened
from quiltwork.tables.codes.encoding import (
    CodedTable,
    Codes,
    Column,
    GroupIndex,
    Missing,
    classes_at,
    classes_of,
    encode_column,
    encode_names,
    encode_product,
    groups_of,
    merge_spellings,
    refuse_endless,
    refuse_written_apart,
)
from quiltwork.tables.codes.hierarchies import Hierarchy
from quiltwork.tables.input.canonical_values import is_missing
from quiltwork.tables.input.csv_files import ColumnType
from quiltwork.tables.input.frames import (
    ArrowFrame,
    FileReading,
    Kind,
    opened_alike,
    orders_of,
    stacked,
)


@dataclass(frozen=True, eq=False, repr=False, init=False)
class Table:
    """Records with quasi-identifiers and sensitive values, each from one provider.

    Args:
        frame: a pandas, Polars, Arrow or Spark frame, or the path of a CSV (also `.gz`) or Parquet
            file.
        provider: the column that names each record's provider; None if there is only one.
        quasi_identifiers: the columns by which a person could be recognised.
        sensitive: the column, or several, that must not be inferred; several count as their
            combination.
        subject: the column that names the person, if one person can have several records. Such a
            person counts once, and a coalition that holds any of their records knows them.
        ordinal: column → its values in order.
        hierarchies: column → a path or rows of a generalization hierarchy; of a sensitive column
            it goes with `levels`.
        missing: "error" (the default) or "value": a missing value is a value of its own. Of a
            sensitive column it counts as no value: a record without one is a record for
            k-anonymity, and is left aside where values are counted or compared (l, entropy, t).
        levels: sensitive column → at which level of its hierarchy values count as one, 1 for the
            labels next to the values: l = 2 with the chapters of diagnoses asks for two chapters.
            What is published are the values.
        count_missing: count a missing sensitive value as a value, too.
        carried: further columns to be published as they are, such as an account of costs. They are
            neither generalized nor protected: who knows them recognises the record.
        text: columns of a file that are text whatever they look like. Without it, columns of CSV
            files have the order of numbers, dates or times if every cell is written as one, but for
            the usual words for missing values (`n/a`, `?`); `02410` is not. In any case cells stay
            as they are written.
        types: column → "number", "date", "time" or "text", of files; other cells are refused then.
        na_values: further words of files for a missing value, in all columns.

    Raises:
        InvalidInputError: if a column is absent, has two roles, or an order and a hierarchy.

    >>> import pandas
    >>> frame = pandas.DataFrame({"hospital": ["A", "B"], "age": [31, 31], "ill": ["flu", "cold"]})
    >>> Table(frame, provider="hospital", quasi_identifiers=["age"], sensitive="ill")
    Table(2 rows, 1 group, 2 providers)
    """

    data: ArrowFrame
    provider: str | None
    quasi_identifiers: tuple[str, ...]
    sensitive: tuple[str, ...]
    subject: str | None
    ordinal: Mapping[str, Sequence[Any]]
    hierarchies: Mapping[str, Any]
    missing: Missing
    levels: Mapping[str, int]
    count_missing: bool
    carried: tuple[str, ...]

    def __init__(
        self,
        frame: Any,
        provider: str | None,
        quasi_identifiers: Sequence[str],
        sensitive: str | Sequence[str],
        subject: str | None = None,
        ordinal: Mapping[str, Sequence[Any]] | None = None,
        hierarchies: Mapping[str, Any] | None = None,
        missing: Missing = "error",
        text: str | Sequence[str] = (),
        types: Mapping[str, ColumnType] | None = None,
        na_values: Sequence[str] = (),
        levels: Mapping[str, int] | None = None,
        count_missing: bool = False,
        carried: str | Sequence[str] = (),
    ) -> None:
        put = object.__setattr__
        put(self, "data", _opened_alike([frame], text, types, na_values)[0])
        put(self, "provider", provider)
        put(self, "quasi_identifiers", _names(quasi_identifiers, "quasi_identifiers"))
        put(self, "sensitive", _names(sensitive, "sensitive"))
        put(self, "subject", subject)
        put(self, "ordinal", read_orders(ordinal))
        put(self, "hierarchies", mapping_by_column(hierarchies, "hierarchies"))
        put(self, "missing", missing)
        put(self, "levels", mapping_by_column(levels, "levels"))
        put(self, "count_missing", count_missing)
        put(self, "carried", _listed(carried, "carried"))
        _check(self, self.data.names)

    @classmethod
    def concat(
        cls,
        frames: Mapping[str, Any],
        quasi_identifiers: Sequence[str],
        sensitive: str | Sequence[str],
        provider: str = "provider",
        text: str | Sequence[str] = (),
        types: Mapping[str, ColumnType] | None = None,
        na_values: Sequence[str] = (),
        **declarations: Any,
    ) -> Table:
        """Make one table of several frames or paths, one per provider; see `Table` for the rest.

        Raises:
            InvalidInputError: if there is no frame, two providers have one name as text, or the
                columns do not match.

        >>> import pandas
        >>> part = pandas.DataFrame({"age": [31], "ill": ["flu"]})
        >>> Table.concat({"A": part, "B": part}, quasi_identifiers=["age"], sensitive="ill")
        Table(2 rows, 1 group, 2 providers)
        """
        if not isinstance(provider, str) or not provider.isprintable():
            raise InvalidInputError(
                f"provider must be a name of a column, not {shortened(provider)}."
            )
        named = _by_provider(frames)
        opened = _opened_alike([*named.values()], text, types, na_values)
        parts = dict(zip(named, opened, strict=True))
        quasi = _names(quasi_identifiers, "quasi_identifiers")
        secret = _names(sensitive, "sensitive")
        subject = declarations.get("subject")
        more = _listed(declarations.get("carried", ()), "carried")
        for name, part in parts.items():
            asked = (*quasi, *secret, *more, *([] if subject is None else [subject]))
            for column in asked:
                _column(column, part.names, f"the frame of provider {name!r}", asked)
        return cls(stacked(parts, provider), provider, quasi, secret, **declarations)

    @property
    def frame(self) -> Any:
        """The rows as they were given; those of files as a pandas frame."""
        return self.data.native

    @property
    def kind(self) -> Kind:
        """What the frame is: "pandas", "polars", "arrow" or "spark"."""
        return self.data.kind

    @cached_property
    def encoded(self) -> CodedTable:
        """The table as arrays of integer codes.

        Raises:
            UnsupportedError: for a Spark frame, which is never collected.
        """
        if self.kind == "spark":
            raise UnsupportedError(
                "A Spark table is not brought to one machine: use backend='spark', or give a "
                "local frame."
            )
        return _encoded(self)

    @cached_property
    def groups(self) -> GroupIndex:
        """The equivalence groups: rows with equal quasi-identifiers."""
        return groups_of(self.encoded)

    @cached_property
    def orders(self) -> Mapping[str, Sequence[Any]]:
        """The orders of columns: those of ordered categories, and those that are declared."""
        roles = [*self.quasi_identifiers, *self.sensitive]
        named = [name for name in roles if name not in self.hierarchies]
        own = {} if self.kind == "spark" else orders_of(self.data.arrow(named))
        return {**own, **self.ordinal}

    @property
    def secret_orders(self) -> dict[str, Sequence[Any]]:
        """The declared orders of sensitive columns, which are published as they are."""
        return {name: self.ordinal[name] for name in self.sensitive if name in self.ordinal}

    @property
    def secret_trees(self) -> dict[str, Any]:
        """The hierarchies of sensitive columns, whose labels are never published."""
        return {name: tree for name, tree in self.hierarchies.items() if name in self.sensitive}

    def group_values(self, group: int) -> tuple[Any, ...]:
        """Return the quasi-identifier values of a group."""
        row = self.groups.first[integer(group, "group", 0, len(self.groups.first) - 1)]
        return tuple(column.values[column.codes[row]] for column in self.encoded.quasi)

    def __repr__(self) -> str:
        if self.kind == "spark":
            return f"Table(Spark frame, {len(self.quasi_identifiers)} quasi-identifiers)"
        encoded = self.encoded
        sizes = {"row": encoded.rows, "group": self.groups.count}
        sizes["provider"] = len(encoded.providers)
        words = [f"{size} {what}{'s' if size != 1 else ''}" for what, size in sizes.items()]
        return f"Table({', '.join(words)})"


def _encoded(table: Table) -> CodedTable:
    """Encode the frame of a table; the columns exist and are named once."""
    frame, missing, ordinal = table.data, table.missing, table.ordinal
    trees = {name: Hierarchy.read(tree, name) for name, tree in table.hierarchies.items()}
    rows = frame.rows
    if rows == 0:
        raise InvalidInputError("The table has no rows; there is nothing to check or publish.")
    quasi = tuple(
        encode_column(frame, name, missing, ordinal.get(name), trees.get(name))
        for name in table.quasi_identifiers
    )
    spelled = [encode_column(frame, name, missing, ordinal.get(name)) for name in table.sensitive]
    secret = list(map(merge_spellings, spelled))
    codes, values, kind = encode_product(secret)
    class_of, labels = secret_classes(table, codes, len(values), secret)
    for column in quasi:
        refuse_endless(column, frame.where)
        refuse_written_apart(frame, column)
    owner = None if table.provider is None else encode_names(frame, table.provider, "provider")
    person = None
    if table.subject is not None:
        person = encode_names(frame, table.subject, "subject").codes.astype(np.int64)
    return CodedTable(
        quasi=quasi,
        provider=np.zeros(rows, dtype=np.int8) if owner is None else owner.codes,
        providers=("",) if owner is None else owner.values,
        sensitive=codes,
        sensitive_values=values,
        sensitive_kind=kind,
        subject=person,
        rows=rows,
        secrets=tuple(spelled),
        class_of=class_of,
        class_labels=labels,
    )


def secret_classes(
    table: Table, sensitive: Codes, values: int, columns: Sequence[Column]
) -> tuple[NDArray[np.int64] | None, tuple[Any, ...]]:
    """Return the class of each sensitive value, None if each is its own, and their labels."""
    missing = not table.count_missing and any(
        is_missing(value) for one in columns for value in one.values
    )
    if not (missing or table.levels):
        return None, ()
    judged = [_at_level(table, one) for one in columns]
    return classes_of(sensitive, values, judged, table.count_missing)


def _at_level(table: Table, column: Column) -> Column:
    """Return a sensitive column with what its values count as: labels where a level is declared."""
    level = table.levels.get(column.name)
    if level is None:
        return column
    tree = Hierarchy.read(table.hierarchies[column.name], column.name)
    if level >= tree.depth:
        raise InvalidInputError(
            f"The hierarchy of {column.name!r} has the levels 1 to {tree.depth - 1} above its "
            f"values, not {level}."
        )
    return classes_at(column, tree, level, table.data.where)


def with_frame(table: Table, frame: Any, **changes: Any) -> Table:
    """Return another frame with the same roles; `changes` are what is declared otherwise."""
    kept = {one.name: getattr(table, one.name) for one in fields(table) if one.name != "data"}
    return Table(frame, **{**kept, **changes})


def read_table(value: Any) -> Table:
    """Return the table."""
    if not isinstance(value, Table):
        raise InvalidInputError(
            f"Give a Table, not a {type(value).__name__}: Table(frame, provider, "
            "quasi_identifiers, sensitive) says which column is what."
        )
    return value


def check_alike(one: Table, other: Table) -> None:
    """Refuse tables that do not have the same quasi-identifiers and sensitive columns."""
    if set(one.quasi_identifiers) != set(other.quasi_identifiers):
        raise InvalidInputError(
            "The two tables must have the same quasi-identifiers, not "
            f"{', '.join(one.quasi_identifiers)} and {', '.join(other.quasi_identifiers)}."
        )
    if one.sensitive != other.sensitive:
        raise InvalidInputError(
            "The two tables must have the same sensitive columns in the same order, not "
            f"{', '.join(one.sensitive)} and {', '.join(other.sensitive)}."
        )
    if (one.levels, one.count_missing) != (other.levels, other.count_missing):
        raise InvalidInputError(
            "What counts as a sensitive value must be the same for the two tables: declare the "
            "same levels and count_missing for both."
        )


def _opened_alike(
    frames: Sequence[Any],
    text: str | Sequence[str],
    types: Mapping[str, ColumnType] | None,
    na_values: Sequence[str],
) -> list[ArrowFrame]:
    """Open frames and files, those of one kind alike."""
    declared: dict[str, ColumnType] = mapping_by_column(types, "types")
    for kind in declared.values():
        choice(kind, get_args(ColumnType), "A type")
    reading = FileReading(DialectOptions(na_values=tuple(listed(na_values, "na_values"))))
    return opened_alike(frames, _listed(text, "text"), [reading] * len(frames), declared)


def _by_provider(frames: Mapping[str, Any]) -> dict[str, Any]:
    """Return the frame of each provider, by its name as text."""
    if not isinstance(frames, Mapping):
        raise InvalidInputError(
            f"concat takes a dict from each provider's name to its frame, not a "
            f"{type(frames).__name__}."
        )
    if not frames:
        raise InvalidInputError("There is no frame to concatenate; give one per provider.")
    names = [str(name) for name in frames]
    if len(set(names)) < len(names):
        twice = next(name for name in names if names.count(name) > 1)
        raise InvalidInputError(
            f"Two providers are called {twice!r} once their names are text; rename one of them."
        )
    return dict(zip(names, frames.values(), strict=True))


def _listed(names: str | Sequence[str], what: str) -> tuple[str, ...]:
    return (names,) if isinstance(names, str) else tuple(listed(names, what))


def _names(names: str | Sequence[str], what: str) -> tuple[str, ...]:
    listed = _listed(names, what)
    if not listed:
        raise InvalidInputError(f"{what} is empty; name at least one column.")
    return listed


def read_orders(value: Mapping[str, Sequence[Any]] | None) -> dict[str, list[Any]]:
    """Return declared orders as lists."""
    return {
        name: _order(order, name) for name, order in mapping_by_column(value, "ordinal").items()
    }


def _order(order: Any, name: str) -> list[Any]:
    values = listed(order, f"The order of column {name!r}")
    if isinstance(order, Set) or not all(map(hashable, values)):
        raise InvalidInputError(
            f"The order of column {name!r} must be a list of its values, not {shortened(order)}."
        )
    return values


def _column(name: object, known: Sequence[str], where: str, asked: Sequence[str]) -> None:
    if not isinstance(name, str):
        raise InvalidInputError(f"Columns are named by text, not by {shortened(name)}.")
    if list(known).count(name) != 1:
        problem = "is there more than once" if name in known else "is not there"
        raise InvalidInputError(
            f"Column {shortened(name)} {problem} in {where}, {columns_of(known, asked)}."
        )


def _check(table: Table, known: Sequence[str]) -> None:
    single = [name for name in (table.provider, table.subject) if name is not None]
    roles = [*single, *table.quasi_identifiers, *table.sensitive]
    for name in roles:
        _column(name, known, "the table", roles)
    twice = [name for name in roles if roles.count(name) > 1]
    if twice:
        raise InvalidInputError(
            f"Column {twice[0]!r} has two roles; it can be only one of provider, subject, "
            "quasi-identifier and sensitive."
        )
    choice(table.missing, get_args(Missing), "missing")
    for what, declared in (("ordinal", table.ordinal), ("hierarchies", table.hierarchies)):
        for name in declared:
            if name not in table.quasi_identifiers and name not in table.sensitive:
                raise InvalidInputError(
                    f"{what} names {name!r}, which is neither a quasi-identifier nor sensitive."
                )
    for name in table.carried:
        _column(name, known, "the table", [*roles, *table.carried])
        if name in roles or table.carried.count(name) > 1:
            raise InvalidInputError(f"Column {name!r} is carried along, and has a role already.")
    flag(table.count_missing, "count_missing")
    for name, level in table.levels.items():
        integer(level, f"The level of {name!r}", 1)
        if name not in table.secret_trees:
            raise InvalidInputError(
                f"levels names {name!r}, which is no sensitive column with a hierarchy."
            )
    for name in table.secret_trees:
        if name not in table.levels:
            raise InvalidInputError(
                f"{name!r} is sensitive, so its values are published as they are: say at which "
                f"level of its hierarchy they count as one for l, with levels={{{name!r}: 1}}, or "
                "leave the hierarchy out."
            )
    for name in table.hierarchies:
        if name in table.ordinal:
            raise InvalidInputError(
                f"Column {name!r} has both an order and a hierarchy, whose values have an order of "
                "their own; declare one of them."
            )
