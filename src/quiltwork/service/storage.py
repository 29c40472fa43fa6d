"""The curator's own tables, in the ledger's database and in its transactions.

Every part brings its tables as migrations: statements from nothing to version 1, from 1 to 2, and
so on, in the SQL that SQLite and PostgreSQL share (TEXT, BIGINT, `?` for parameters, no blobs).
Writing waits for the ledger's lock, so that what a part decides rests on the last committed state,
and may be noted in the ledger's chain in the same transaction.
"""

from __future__ import annotations

import secrets
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from itertools import count
from typing import Any, TypeVar

from quiltwork.budget import Ledger
from quiltwork.budget.ledger.notes import noted
from quiltwork.budget.ledger.tables import Tables
from quiltwork.errors import StorageError

Result = TypeVar("Result")

_VERSIONS = """CREATE TABLE IF NOT EXISTS curator_schema (
    part TEXT NOT NULL PRIMARY KEY,
    version BIGINT NOT NULL
)"""


@dataclass(frozen=True)
class Schema:
    """The tables of one part, version by version."""

    part: str
    migrations: tuple[tuple[str, ...], ...]


class Transaction:
    """The curator's tables within one transaction of the ledger's database."""

    def __init__(self, tables: Tables, identity: str = "") -> None:
        """Use the ledger's transaction; its notes are known by `identity`, should it run twice."""
        self._tables = tables
        self._identities = (f"{identity}-{number}" for number in count())

    @property
    def tables(self) -> Tables:
        """The ledger's own tables in this transaction, for answers that are stored with others."""
        return self._tables

    def rows(self, statement: str, *parameters: object) -> list[Any]:
        """Run one statement with `?` for parameters; return the rows of a SELECT."""
        return self._tables.execute(statement, *parameters)

    def row(self, statement: str, *parameters: object) -> Any:
        """Return the first row of a SELECT, None without any."""
        return next(iter(self.rows(statement, *parameters)), None)

    def insert(self, table: str, **values: object) -> None:
        """Add a row, unless it is there: a transaction may run twice."""
        places = ", ".join("?" * len(values))
        self.rows(
            f"INSERT INTO {table} ({', '.join(values)}) VALUES ({places}) ON CONFLICT DO NOTHING",  # noqa: S608
            *values.values(),
        )

    def update(self, table: str, where: Mapping[str, object], **values: object) -> None:
        """Change some columns of the rows in which others have these values."""
        changed = ", ".join(f"{name} = ?" for name in values)
        self.rows(
            f"UPDATE {table} SET {changed} WHERE {_all(where)}",  # noqa: S608
            *(*values.values(), *where.values()),
        )

    def delete(self, table: str, **where: object) -> None:
        """Delete the rows in which columns have these values."""
        self.rows(f"DELETE FROM {table} WHERE {_all(where)}", *where.values())  # noqa: S608

    def note(self, kind: str, text: str, who: str = "", dataset: str | None = None) -> None:
        """Append to the audit log, in the ledger's chain: it is there if and only if this commits.

        Kinds are "act", "read" and "refusal"; the text never holds a value from the data.
        """
        identity = next(self._identities)
        if self._tables.with_id(identity) is None:
            self._tables.append(noted(identity, kind, text, dataset, who))


def _all(where: Mapping[str, object]) -> str:
    return " AND ".join(f"{name} = ?" for name in where)


class Storage:
    """Transactions on the database of a ledger."""

    def __init__(self, ledger: Ledger) -> None:
        """Use the ledger's connections."""
        self._store = ledger.store

    def prepare(self, schemas: Iterable[Schema]) -> None:
        """Create the tables of all parts, or bring them to their present version."""

        def work(tables: Tables) -> None:
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
    version, newest = (0 if found is None else int(found[0])), len(schema.migrations)
    if version > newest:
        raise StorageError(
            f"The curator's tables of {schema.part!r} have version {version}, written by a newer "
            f"quiltwork; this release knows {newest}. Upgrade quiltwork."
        )
    for statements in schema.migrations[version:]:
        for statement in statements:
            transaction.rows(statement)
    transaction.rows(
        "INSERT INTO curator_schema (part, version) VALUES (?, ?) "
        "ON CONFLICT (part) DO UPDATE SET version = excluded.version",
        *(schema.part, newest),
    )
