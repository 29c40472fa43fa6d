"""`Table`: the records of many providers, and the roles of their columns.

A table keeps the frame as given; everything is computed from `encoded`, made on first use.
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
    refuse_huge_numbers,
    refuse_unequal_spellings,
)
from quiltwork.tables.codes.hierarchies import Hierarchy
from quiltwork.tables.input.canonical_values import is_missing
from quiltwork.tables.input.csv_files import ColumnType
from quiltwork.tables.input.frames import (
    ArrowFrame,
    FileReading,
    Kind,
    open_frames,
    orders_of,
    stack_frames,
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
        subject: the column that names the person, if one person can have several records. Each
            person then counts once, and a coalition that holds any of their records knows them.
        ordinal: column → its values in order.
        hierarchies: column → a path or rows of a generalization hierarchy; for a sensitive column,
            `levels` is needed too.
        missing: "error" (the default), or "value": a missing value is a value of its own. A missing
            sensitive value counts as no value: the record counts for k-anonymity, and is ignored
            where values are counted or compared (l, entropy, t).
        levels: sensitive column → the level of its hierarchy at which values are counted, 1 for the
            labels next to the values: l = 2 over the chapters of diagnoses requires two chapters.
            The values themselves are published.
        count_missing: whether a missing sensitive value counts as a value.
        carried: further columns to publish as they are, such as an account of costs. They are
            neither generalized nor protected: whoever knows them recognises the record.
        text: columns of a file that are text whatever they look like. Otherwise, a column of a CSV
            file has the order of numbers, dates or times if every cell is written as one, apart
            from usual words for missing values (`n/a`, `?`); `02410` is text. Cells are always
            published as written.
        types: column of a file → "number", "date", "time" or "text"; other cells are then refused.
        na_values: further words for a missing value, in all columns of files.

    Raises:
        InvalidInputError: if a column is absent, has two roles, or has both an order and a
            hierarchy.

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
        # The class is frozen; its arguments differ from its fields.
        put = object.__setattr__
        put(self, "provider", provider)
        put(self, "quasi_identifiers", _names(quasi_identifiers, "quasi_identifiers"))
        put(self, "sensitive", _names(sensitive, "sensitive"))
        roles = [*self.quasi_identifiers, *self.sensitive]
        put(self, "data", _opened_alike([frame], text, types, na_values, roles)[0])
        put(self, "subject", subject)
        put(self, "ordinal", parse_orders(ordinal))
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
        """Make one table of several frames or paths, one per provider; for the rest see `Table`.

        Raises:
            InvalidInputError: if there is no frame, two providers have the same name as text, or
                the columns do not match.

        >>> import pandas
        >>> part = pandas.DataFrame({"age": [31], "ill": ["flu"]})
        >>> Table.concat({"A": part, "B": part}, quasi_identifiers=["age"], sensitive="ill")
        Table(2 rows, 1 group, 2 providers)
        """
        if not isinstance(provider, str) or not provider.isprintable():
            raise InvalidInputError(
                f"provider must be the name of a column, not {shortened(provider)}."
            )
        by_name = _by_provider(frames)
        quasi = _names(quasi_identifiers, "quasi_identifiers")
        secret = _names(sensitive, "sensitive")
        opened = _opened_alike([*by_name.values()], text, types, na_values, [*quasi, *secret])
        parts = dict(zip(by_name, opened, strict=True))
        subject = declarations.get("subject")
        carried = _listed(declarations.get("carried", ()), "carried")
        for name, part in parts.items():
            required = (*quasi, *secret, *carried, *([] if subject is None else [subject]))
            for column in required:
                _column(column, part.names, f"the frame of provider {name!r}", required)
        return cls(stack_frames(parts, provider), provider, quasi, secret, **declarations)

    @property
    def frame(self) -> Any:
        """The rows as given; the rows of files as a pandas frame."""
        return self.data.native

    @property
    def kind(self) -> Kind:
        """The kind of the frame: "pandas", "polars", "arrow" or "spark"."""
        return self.data.kind

    @cached_property
    def encoded(self) -> CodedTable:
        """The table as arrays of integer codes.

        Raises:
            UnsupportedError: for a Spark frame, which is never collected.
        """
        if self.kind == "spark":
            raise UnsupportedError(
                "A Spark table is never collected on one machine: use backend='spark', or pass a "
                "local frame."
            )
        return _encoded(self)

    @cached_property
    def groups(self) -> GroupIndex:
        """The equivalence groups: rows with equal quasi-identifiers."""
        return groups_of(self.encoded)

    @cached_property
    def orders(self) -> Mapping[str, Sequence[Any]]:
        """The orders of columns: those of ordered categories, and declared ones."""
        roles = [*self.quasi_identifiers, *self.sensitive]
        without_hierarchy = [name for name in roles if name not in self.hierarchies]
        # Spark frames have no ordered categories, and are not read here.
        own = {} if self.kind == "spark" else orders_of(self.data.arrow(without_hierarchy))
        return {**own, **self.ordinal}

    @property
    def secret_orders(self) -> dict[str, Sequence[Any]]:
        """The declared orders of sensitive columns; they hold for the published table too."""
        return {name: self.ordinal[name] for name in self.sensitive if name in self.ordinal}

    @property
    def secret_trees(self) -> dict[str, Any]:
        """The hierarchies of sensitive columns; their labels are never published."""
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
        words = [f"{size} {unit}{'s' if size != 1 else ''}" for unit, size in sizes.items()]
        return f"Table({', '.join(words)})"


def _encoded(table: Table) -> CodedTable:
    """Encode the frame of a table; its columns exist and have single names."""
    frame, missing, ordinal = table.data, table.missing, table.ordinal
    trees = {name: Hierarchy.read(tree, name) for name, tree in table.hierarchies.items()}
    rows = frame.rows
    if rows == 0:
        raise InvalidInputError("The table has no rows; there is nothing to check or publish.")
    quasi = tuple(
        encode_column(frame, name, missing, ordinal.get(name), trees.get(name))
        for name in table.quasi_identifiers
    )
    # Cells are published as spelled; constraints count merged spellings.
    spelled = [encode_column(frame, name, missing, ordinal.get(name)) for name in table.sensitive]
    secret = list(map(merge_spellings, spelled))
    codes, values, kind = encode_product(secret)
    class_of, labels = secret_classes(table, codes, len(values), secret)
    for column in quasi:
        refuse_huge_numbers(column, frame.where)
        refuse_unequal_spellings(frame, column)
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
    """Return the class of each sensitive value (None: each is its own class), and the labels."""
    missing = not table.count_missing and any(
        is_missing(value) for column in columns for value in column.values
    )
    if not (missing or table.levels):
        return None, ()
    counted_columns = [_at_level(table, column) for column in columns]
    return classes_of(sensitive, values, counted_columns, table.count_missing)


def _at_level(table: Table, column: Column) -> Column:
    """Return a sensitive column by the labels of its declared level, or as it is."""
    if column.name not in table.levels:
        return column
    tree = hierarchy_with_level(table, column.name)
    return classes_at(column, tree, table.levels[column.name], table.data.where)


def hierarchy_with_level(table: Table, name: str) -> Hierarchy:
    """Return the hierarchy of a sensitive column; refuse it if it lacks the declared level."""
    tree, level = Hierarchy.read(table.hierarchies[name], name), table.levels[name]
    if level >= tree.depth:
        raise InvalidInputError(
            f"The hierarchy of {name!r} has levels 1 to {tree.depth - 1} above its values; "
            f"level {level} does not exist."
        )
    return tree


def with_frame(table: Table, frame: Any, **changes: Any) -> Table:
    """Return a table of another frame with the same roles; `changes` replace declarations."""
    declared = {
        field.name: getattr(table, field.name) for field in fields(table) if field.name != "data"
    }
    return Table(frame, **{**declared, **changes})


def as_table(value: Any) -> Table:
    """Return `value` if it is a Table."""
    if not isinstance(value, Table):
        raise InvalidInputError(
            f"Pass a Table, not a {type(value).__name__}: Table(frame, provider, "
            "quasi_identifiers, sensitive) declares the roles of the columns."
        )
    return value


def check_same_roles(first: Table, second: Table) -> None:
    """Refuse two tables with different quasi-identifiers or sensitive columns."""
    if set(first.quasi_identifiers) != set(second.quasi_identifiers):
        raise InvalidInputError(
            "The two tables must have the same quasi-identifiers, not "
            f"{', '.join(first.quasi_identifiers)} and {', '.join(second.quasi_identifiers)}."
        )
    # Several sensitive columns are one combined value, so their order matters.
    if first.sensitive != second.sensitive:
        raise InvalidInputError(
            "The two tables must have the same sensitive columns in the same order, not "
            f"{', '.join(first.sensitive)} and {', '.join(second.sensitive)}."
        )
    if (first.levels, first.count_missing) != (second.levels, second.count_missing):
        raise InvalidInputError(
            "The two tables must count sensitive values alike: declare the same levels and "
            "count_missing for both."
        )


def _opened_alike(
    frames: Sequence[Any],
    text: str | Sequence[str],
    types: Mapping[str, ColumnType] | None,
    na_values: Sequence[str],
    roles: Sequence[str],
) -> list[ArrowFrame]:
    """Open frames and files; columns of CSV files get the same types in all of them."""
    declared: dict[str, ColumnType] = mapping_by_column(types, "types")
    for kind in declared.values():
        choice(kind, get_args(ColumnType), "A type")
    reading = FileReading(DialectOptions(na_values=tuple(listed(na_values, "na_values"))))
    return open_frames(frames, _listed(text, "text"), [reading] * len(frames), declared, roles)


def _by_provider(frames: Mapping[str, Any]) -> dict[str, Any]:
    """Return the frame of each provider, keyed by its name as text."""
    if not isinstance(frames, Mapping):
        raise InvalidInputError(
            f"concat takes a dict of provider name to frame, not a {type(frames).__name__}."
        )
    if not frames:
        raise InvalidInputError("There is no frame to concatenate; pass one per provider.")
    # Names are published as text in reports: 1 and "1" would be one provider.
    names = [str(name) for name in frames]
    if len(set(names)) < len(names):
        repeated = next(name for name in names if names.count(name) > 1)
        raise InvalidInputError(
            f"Two providers have the name {repeated!r} as text; rename one of them."
        )
    return dict(zip(names, frames.values(), strict=True))


def _listed(names: str | Sequence[str], option: str) -> tuple[str, ...]:
    return (names,) if isinstance(names, str) else tuple(listed(names, option))


def _names(names: str | Sequence[str], option: str) -> tuple[str, ...]:
    listed = _listed(names, option)
    if not listed:
        raise InvalidInputError(f"{option} is empty; it needs at least one column.")
    return listed


def parse_orders(value: Mapping[str, Sequence[Any]] | None) -> dict[str, list[Any]]:
    """Validate declared orders, and return them as lists."""
    orders = mapping_by_column(value, "ordinal")
    return {name: _order(order, name) for name, order in orders.items()}


def _order(order: Any, name: str) -> list[Any]:
    values = listed(order, f"The order of column {name!r}")
    # A set has no order, though it can be listed.
    if isinstance(order, Set) or not all(map(hashable, values)):
        raise InvalidInputError(
            f"The order of column {name!r} must be a list of its values, not {shortened(order)}."
        )
    return values


def _column(name: object, columns: Sequence[str], where: str, roles: Sequence[str]) -> None:
    """Refuse a name that is not exactly one of the columns."""
    if not isinstance(name, str):
        raise InvalidInputError(f"A column's name must be text, not {shortened(name)}.")
    if list(columns).count(name) != 1:
        problem = "is there more than once" if name in columns else "is not there"
        raise InvalidInputError(
            f"Column {shortened(name)} {problem} in {where}, {columns_of(columns, roles)}."
        )


def _check(table: Table, columns: Sequence[str]) -> None:
    """Validate roles and declarations against the columns of the frame."""
    single = [name for name in (table.provider, table.subject) if name is not None]
    roles = [*single, *table.quasi_identifiers, *table.sensitive]
    for name in roles:
        _column(name, columns, "the table", roles)
    repeated = [name for name in roles if roles.count(name) > 1]
    if repeated:
        raise InvalidInputError(
            f"Column {repeated[0]!r} has two roles; a column is only one of provider, subject, "
            "quasi-identifier and sensitive."
        )
    choice(table.missing, get_args(Missing), "missing")
    for option, declared in (("ordinal", table.ordinal), ("hierarchies", table.hierarchies)):
        for name in declared:
            if name not in table.quasi_identifiers and name not in table.sensitive:
                raise InvalidInputError(
                    f"{option} declares {name!r}, which is neither a quasi-identifier nor "
                    "sensitive."
                )
    for name in table.carried:
        _column(name, columns, "the table", [*roles, *table.carried])
        if name in roles or table.carried.count(name) > 1:
            raise InvalidInputError(
                f"Column {name!r} is in carried, but already has a role; remove one of the two."
            )
    flag(table.count_missing, "count_missing")
    for name, level in table.levels.items():
        integer(level, f"The level of {name!r}", 1)
        if name not in table.secret_trees:
            raise InvalidInputError(
                f"levels declares {name!r}, which is not a sensitive column with a hierarchy."
            )
    # Without a level such a hierarchy would silently change nothing.
    for name in table.secret_trees:
        if name not in table.levels:
            raise InvalidInputError(
                f"{name!r} is sensitive, so its values are published as they are. Declare the "
                f"level of its hierarchy at which values are counted, such as "
                f"levels={{{name!r}: 1}} (--level {name}=1), or remove the hierarchy."
            )
    for name in table.hierarchies:
        if name in table.ordinal:
            raise InvalidInputError(
                f"Column {name!r} has both an order and a hierarchy, which has its own order of "
                "values; declare only one of them."
            )
