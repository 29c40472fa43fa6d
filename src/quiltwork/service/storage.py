"""The curator's own tables, in the ledger's database and in its transactions.

A table is declared by the record of its rows (`TableOf`). Every part brings its tables, and what
changes them in databases of earlier releases: statements from version 1 to 2, and so on, in the SQL
that SQLite and PostgreSQL share (TEXT, BIGINT, `?` for parameters, no blobs).
Writing waits for the ledger's lock, so that what a part decides rests on the last committed state,
and may be noted in the ledger's chain in the same transaction.
"""

from __future__ import annotations

import json
import secrets
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from functools import cached_property
from itertools import count
from types import NoneType
from typing import Any, Generic, Literal, TypeVar, get_args, get_origin, get_type_hints

import msgspec

from quiltwork.budget import Ledger
from quiltwork.budget.ledger.log import Log
from quiltwork.budget.ledger.notes import noted
from quiltwork.errors import StorageError
from quiltwork.service.problems import not_found
from quiltwork.service.structs import Page, PageQuery, paged

Result = TypeVar("Result")
Row = TypeVar("Row")

_VERSIONS = """CREATE TABLE IF NOT EXISTS curator_schema (
    part TEXT NOT NULL PRIMARY KEY,
    version BIGINT NOT NULL
)"""


class Transaction:
    """The curator's tables within one transaction of the ledger's database."""

    def __init__(self, tables: Log, identity: str = "") -> None:
        """Use the ledger's transaction; its notes are known by `identity`, should it run twice."""
        self.tables = tables
        """The ledger's own tables in this transaction, for answers that are stored with others."""
        self._identities = (f"{identity}-{number}" for number in count())

    def rows(self, statement: str, *parameters: object) -> list[Any]:
        """Run one statement with `?` for parameters; return the rows of a SELECT."""
        return self.tables.execute(statement, *parameters)

    def row(self, statement: str, *parameters: object) -> Any:
        """Return the first row of a SELECT, None without any."""
        return next(iter(self.rows(statement, *parameters)), None)

    def note(self, kind: str, text: str, who: str = "", dataset: str | None = None) -> None:
        """Append to the audit log, in the ledger's chain: it is there if and only if this commits.

        Kinds are "act", "read" and "refusal"; the text never holds a value from the data.
        """
        identity = next(self._identities)
        if self.tables.with_id(identity) is None:
            self.tables.append(noted(identity, kind, text, dataset, who))


def _all(where: Mapping[str, object]) -> str:
    return " AND ".join(f"{name} = ?" for name in where)


@dataclass(frozen=True)
class TableOf(Generic[Row]):
    """A table of records: the fields of their class are its columns.

    Texts and whole numbers are kept as they are, everything else as JSON; only what may be None in
    the record is NULL.
    """

    name: str
    row: type[Row]
    key: str
    unique: tuple[str, ...] = ()

    @cached_property
    def _columns(self) -> dict[str, tuple[type, Any, bool]]:
        """By column: how it is kept (`object` is JSON), its type, and whether it may be NULL."""
        found = {}
        for name, hint in get_type_hints(self.row).items():
            parts = [part for part in get_args(hint) if part is not NoneType]
            free = len(parts) < len(get_args(hint))
            kind = parts[0] if free and len(parts) == 1 else hint
            kind = str if get_origin(kind) is Literal else kind
            found[name] = (kind if kind in (str, int, bool) else object, hint, free)
        return found

    @property
    def created(self) -> str:
        """The statement that makes it."""
        columns = [
            f"{name} {'BIGINT' if kind in (int, bool) else 'TEXT'}{'' if free else ' NOT NULL'}"
            for name, (kind, _, free) in self._columns.items()
        ]
        unique = [f"UNIQUE ({name})" for name in self.unique]
        return (
            f"CREATE TABLE {self.name} ({', '.join([*columns, *unique])}, PRIMARY KEY ({self.key}))"
        )

    def one(self, t: Transaction, **where: object) -> Row | None:
        """Return the row in which columns have these values, None without one."""
        return next(iter(self.all(t, _all(where), *where.values())), None)

    def named(self, t: Transaction, **where: object) -> Row:
        """Return the row in which columns have these values; 404 without one."""
        found = self.one(t, **where)
        if found is None:
            raise not_found()
        return found

    def all(self, t: Transaction, where: str, *parameters: object) -> list[Row]:
        """Return the rows that a condition with `?` for parameters names, perhaps in an order."""
        named = f"SELECT {', '.join(self._columns)} FROM {self.name}"  # noqa: S608
        return [self._read(row) for row in t.rows(f"{named} WHERE {where}", *parameters)]

    def page(
        self, t: Transaction, asked: PageQuery, by: str, where: str, *parameters: object
    ) -> Page[Row]:
        """Return a page of the rows that a condition names, in the order of a column of texts."""
        found = self.all(
            t,
            f"({where}) AND {by} > ? ORDER BY {by} LIMIT ?",
            *(*parameters, asked.after or "", asked.limit + 1),
        )
        return paged(found, asked.limit, lambda one: getattr(one, by))

    def add(self, t: Transaction, row: Row) -> None:
        """Add a row, unless it is there: a transaction may run twice."""
        values = [self._kept(name, getattr(row, name)) for name in self._columns]
        into = f"{self.name} ({', '.join(self._columns)}) VALUES ({', '.join('?' * len(values))})"
        t.rows(f"INSERT INTO {into} ON CONFLICT DO NOTHING", *values)

    def update(self, t: Transaction, where: Mapping[str, object], **values: Any) -> None:
        """Change some columns of the rows in which others have these values."""
        kept = [self._kept(name, value) for name, value in values.items()]
        changed = ", ".join(f"{name} = ?" for name in values)
        t.rows(
            f"UPDATE {self.name} SET {changed} WHERE {_all(where)}",  # noqa: S608
            *(*kept, *where.values()),
        )

    def delete(self, t: Transaction, **where: object) -> None:
        """Delete the rows in which columns have these values."""
        t.rows(f"DELETE FROM {self.name} WHERE {_all(where)}", *where.values())  # noqa: S608

    def _kept(self, name: str, value: Any) -> object:
        kind, _, free = self._columns[name]
        if kind is object and not (free and value is None):
            return json.dumps(msgspec.to_builtins(value))
        return int(value) if kind is bool else value

    def _read(self, row: Iterable[Any]) -> Row:
        found = {}
        for value, (name, (kind, hint, free)) in zip(row, self._columns.items(), strict=True):
            if kind is object and not (free and value is None):
                found[name] = msgspec.convert(json.loads(value), hint)
            else:
                found[name] = bool(value) if kind is bool else value
        return self.row(**found)


@dataclass(frozen=True)
class Schema:
    """The tables of one part as they are now, and what leads to them from each earlier version."""

    part: str
    tables: tuple[TableOf[Any], ...] = ()
    indexes: tuple[str, ...] = ()
    changes: tuple[tuple[str, ...], ...] = ()


class Storage:
    """Transactions on the database of a ledger."""

    def __init__(self, ledger: Ledger) -> None:
        """Use the ledger's connections."""
        self._store = ledger.store

    def prepare(self, schemas: Iterable[Schema]) -> None:
        """Create the tables of all parts, or bring them to their present version."""

        def work(tables: Log) -> None:
            transaction = Transaction(tables)
            transaction.rows(_VERSIONS)
            for schema in schemas:
                _migrate(transaction, schema)

        self._store.begin(work)

    def read(self, work: Callable[[Transaction], Result]) -> Result:
        """Do `work` on one committed state; it waits for nobody who writes."""
        return self._store.read(lambda tables: work(Transaction(tables)))

    def write(self, work: Callable[[Transaction], Result]) -> Result:
        """Do `work` alone and commit it; anything that it raises undoes it.

        It may run twice, after a lost connection whose commit is in doubt: take identifiers from
        outside, and insert with ON CONFLICT DO NOTHING or after a look. No other write may be
        begun within it: the ledger's own calls that write have their own transaction.
        """
        identity = secrets.token_hex(16)
        return self._store.write(lambda tables: work(Transaction(tables, identity)))


def _migrate(transaction: Transaction, schema: Schema) -> None:
    found = transaction.row("SELECT version FROM curator_schema WHERE part = ?", schema.part)
    version, newest = (0 if found is None else int(found[0])), 1 + len(schema.changes)
    if version > newest:
        raise StorageError(
            f"The curator's tables of {schema.part!r} have version {version}, written by a newer "
            f"quiltwork; this release knows {newest}. Upgrade quiltwork."
        )
    fresh = [(*(one.created for one in schema.tables), *schema.indexes)]
    for statements in schema.changes[version - 1 :] if version else fresh:
        for statement in statements:
            transaction.rows(statement)
    transaction.rows(
        "INSERT INTO curator_schema (part, version) VALUES (?, ?) "
        "ON CONFLICT (part) DO UPDATE SET version = excluded.version",
        *(schema.part, newest),
    )
