"""The curator's own tables, in the ledger's database and in its transactions.

A table is declared by the record class of its rows (`TableOf`). Every feature brings its tables,
in the SQL that SQLite and PostgreSQL share (TEXT, BIGINT, `?` for parameters, no blobs). A write
takes the ledger's lock, so decisions rest on the last committed state and can be noted in the
ledger's chain in the same transaction.
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
from quiltwork.budget.ledger.notes import note_draft
from quiltwork.errors import StorageError
from quiltwork.service.problems import not_found
from quiltwork.service.structs import Page, PageQuery, paged

Result = TypeVar("Result")
Row = TypeVar("Row")

VERSION = 2
"""The version of the curator's tables in the first release; earlier checkouts wrote 1."""
_VERSIONS = """CREATE TABLE IF NOT EXISTS curator_schema (
    part TEXT NOT NULL PRIMARY KEY,
    version BIGINT NOT NULL
)"""


class Transaction:
    """One transaction on the ledger's database, for the curator's tables and the audit log."""

    def __init__(self, tables: Log, identity: str = "") -> None:
        """Use the ledger's transaction; `identity` prevents double notes if it runs twice."""
        self.tables = tables
        """The ledger's own tables in this transaction."""
        self._identities = (f"{identity}-{number}" for number in count())

    def rows(self, statement: str, *parameters: object) -> list[Any]:
        """Run one statement with `?` for parameters; return the rows of a SELECT."""
        return self.tables.execute(statement, *parameters)

    def row(self, statement: str, *parameters: object) -> Any:
        """Return the first row of a SELECT; None if there is none."""
        return next(iter(self.rows(statement, *parameters)), None)

    def note(self, kind: str, text: str, who: str = "", dataset: str | None = None) -> None:
        """Append to the audit log; the entry exists if and only if this transaction commits.

        Kinds are "act", "read" and "refusal"; the text never holds a value of the data.
        """
        identity = next(self._identities)
        if self.tables.with_id(identity) is None:
            self.tables.append(note_draft(identity, kind, text, dataset, who))


def _equalities(where: Mapping[str, object]) -> str:
    return " AND ".join(f"{name} = ?" for name in where)


@dataclass(frozen=True)
class TableOf(Generic[Row]):
    """A database table whose columns are the fields of a record class.

    Texts and whole numbers are stored as they are, everything else as JSON. A column may be NULL
    if its field may be None.
    """

    name: str
    row: type[Row]
    key: str
    unique: tuple[str, ...] = ()

    @cached_property
    def _columns(self) -> dict[str, tuple[type, Any, bool]]:
        """By column: its stored type (`object` is JSON), the field's type, if it may be NULL."""
        columns = {}
        for name, hint in get_type_hints(self.row).items():
            parts = [part for part in get_args(hint) if part is not NoneType]
            nullable = len(parts) < len(get_args(hint))
            kind = parts[0] if nullable and len(parts) == 1 else hint
            kind = str if get_origin(kind) is Literal else kind
            columns[name] = (kind if kind in (str, int, bool) else object, hint, nullable)
        return columns

    @property
    def created(self) -> str:
        """The statement that creates the table."""
        columns = [
            f"{name} {'BIGINT' if kind in (int, bool) else 'TEXT'}{'' if nullable else ' NOT NULL'}"
            for name, (kind, _, nullable) in self._columns.items()
        ]
        unique = [f"UNIQUE ({name})" for name in self.unique]
        return (
            f"CREATE TABLE {self.name} ({', '.join([*columns, *unique])}, PRIMARY KEY ({self.key}))"
        )

    def find(self, t: Transaction, **where: object) -> Row | None:
        """Return the row in which columns have these values; None if there is none."""
        return next(iter(self.select(t, _equalities(where), *where.values())), None)

    def get(self, t: Transaction, **where: object) -> Row:
        """Return the row in which columns have these values; 404 if there is none."""
        row = self.find(t, **where)
        if row is None:
            raise not_found()
        return row

    def select(self, t: Transaction, where: str, *parameters: object) -> list[Row]:
        """Return the rows that meet a condition, which may end with ORDER BY and LIMIT."""
        columns = f"SELECT {', '.join(self._columns)} FROM {self.name}"  # noqa: S608
        return [self._from_sql(row) for row in t.rows(f"{columns} WHERE {where}", *parameters)]

    def page(
        self, t: Transaction, query: PageQuery, by: str, where: str, *parameters: object
    ) -> Page[Row]:
        """Return a page of the rows that meet a condition, in the order of a text column."""
        rows = self.select(
            t,
            f"({where}) AND {by} > ? ORDER BY {by} LIMIT ?",
            *(*parameters, query.after or "", query.limit + 1),
        )
        return paged(rows, query.limit, lambda row: getattr(row, by))

    def add(self, t: Transaction, row: Row) -> None:
        """Insert a row unless it exists, as a transaction may run twice."""
        values = [self._to_sql(name, getattr(row, name)) for name in self._columns]
        into = f"{self.name} ({', '.join(self._columns)}) VALUES ({', '.join('?' * len(values))})"
        t.rows(f"INSERT INTO {into} ON CONFLICT DO NOTHING", *values)

    def update(self, t: Transaction, where: Mapping[str, object], **values: Any) -> None:
        """Set columns of the rows in which other columns have the values of `where`."""
        stored = [self._to_sql(name, value) for name, value in values.items()]
        assignments = ", ".join(f"{name} = ?" for name in values)
        t.rows(
            f"UPDATE {self.name} SET {assignments} WHERE {_equalities(where)}",  # noqa: S608
            *(*stored, *where.values()),
        )

    def delete(self, t: Transaction, **where: object) -> None:
        """Delete the rows in which columns have these values."""
        t.rows(f"DELETE FROM {self.name} WHERE {_equalities(where)}", *where.values())  # noqa: S608

    def _to_sql(self, name: str, value: Any) -> object:
        kind, _, nullable = self._columns[name]
        if kind is object and not (nullable and value is None):
            return json.dumps(msgspec.to_builtins(value))
        return int(value) if kind is bool else value

    def _from_sql(self, row: Iterable[Any]) -> Row:
        fields = {}
        for value, (name, (kind, hint, nullable)) in zip(row, self._columns.items(), strict=True):
            if kind is object and not (nullable and value is None):
                fields[name] = msgspec.convert(json.loads(value), hint)
            else:
                fields[name] = bool(value) if kind is bool else value
        return self.row(**fields)


@dataclass(frozen=True)
class Schema:
    """The tables and indexes of one feature."""

    part: str
    tables: tuple[TableOf[Any], ...] = ()
    indexes: tuple[str, ...] = ()


class Storage:
    """Transactions on the database of a ledger."""

    def __init__(self, ledger: Ledger) -> None:
        """Use the ledger's connections."""
        self._store = ledger.store

    def prepare(self, schemas: Iterable[Schema]) -> None:
        """Create the tables of all features that are not there yet.

        Raises:
            StorageError: if another version of quiltwork wrote them.
        """

        def work(tables: Log) -> None:
            transaction = Transaction(tables)
            transaction.rows(_VERSIONS)
            for schema in schemas:
                _create(transaction, schema)

        self._store.begin(work)

    def read(self, work: Callable[[Transaction], Result]) -> Result:
        """Run `work` on one committed state; it never waits for a writer."""
        return self._store.read(lambda tables: work(Transaction(tables)))

    def write(self, work: Callable[[Transaction], Result]) -> Result:
        """Run `work` exclusively and commit it; any exception rolls it back.

        After a lost connection the commit is in doubt and `work` runs again, so it must be
        idempotent: take identifiers from outside, insert with ON CONFLICT DO NOTHING or after a
        check. It must not begin another write: the ledger's own writes have their own transaction.
        """
        identity = secrets.token_hex(16)
        return self._store.write(lambda tables: work(Transaction(tables, identity)))


def _create(transaction: Transaction, schema: Schema) -> None:
    row = transaction.row("SELECT version FROM curator_schema WHERE part = ?", schema.part)
    if row is None:
        for statement in (*(table.created for table in schema.tables), *schema.indexes):
            transaction.rows(statement)
        transaction.rows(
            "INSERT INTO curator_schema (part, version) VALUES (?, ?)", schema.part, VERSION
        )
    elif int(row[0]) != VERSION:
        raise StorageError(
            f"The curator's tables for {schema.part!r} have version {row[0]}, and this release "
            f"reads version {VERSION} only. Start the quiltwork that wrote them, or a new database."
        )
