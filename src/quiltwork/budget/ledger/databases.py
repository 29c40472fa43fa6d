"""The interface that SQLite and PostgreSQL share: `Database` and `Connection`.

A `Database` connects, begins transactions, makes the tables and turns driver errors into readable
ones. Everything else about a ledger is the same on both (`log.py`).
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Protocol, TypeAlias

from quiltwork.errors import StorageError

LOCK_SECONDS = 60.0
"""Default seconds that a request waits for other writers before it gives up."""

LEDGER_ROW = "SELECT version, id FROM quiltwork_ledger"

Statement: TypeAlias = tuple[str, Sequence[Any]]
"""SQL text with its parameters."""


class Connection(Protocol):
    """The methods that sqlite3 and psycopg connections share."""

    def execute(self, statement: str, parameters: Sequence[Any] = ..., /) -> Any:
        """Run one statement."""

    def close(self) -> None:
        """Close the connection."""


class Database:
    """One kind of database; optional steps do nothing by default."""

    errors: tuple[type[BaseException], ...]
    url: str
    timeout = LOCK_SECONDS
    """Seconds that a request waits for other writers."""
    read_only = False
    """Whether nothing may be written or created."""
    tables: tuple[str, ...]
    """Statements that make the tables."""

    def exists(self) -> bool:
        """Whether the database exists; False only where connecting would create it."""
        return True

    def connect(self) -> Connection:
        """Open a connection that commits only explicitly."""
        raise NotImplementedError

    def close(self, connection: Connection) -> None:
        """Close a connection without damage to what others have written since."""
        connection.close()

    def has_ledger(self, connection: Connection) -> bool:
        """Whether the tables exist, of any version."""
        raise NotImplementedError

    def begin(self, connection: Connection, *, wait: float | None) -> None:
        """Begin a read transaction, or with a `wait` in seconds for the lock a write one."""
        raise NotImplementedError

    def begin_with(
        self, connection: Connection, statement: Statement, *, wait: float | None
    ) -> tuple[list[Any], list[Any]]:
        """Begin as `begin` does, and run a SELECT statement.

        Returns the ledger's row, and the rows of the statement.
        """
        self.begin(connection, wait=wait)
        ledger_rows = self.rows(connection, LEDGER_ROW)  # after this no lock is in the way
        return ledger_rows, list(connection.execute(*statement).fetchall())

    def rows(self, connection: Connection, statement: str) -> list[Any]:
        """Return the rows of a statement, waiting while others hold a lock."""
        return list(connection.execute(statement).fetchall())

    def run(self, connection: Connection, statements: Sequence[Statement]) -> None:
        """Run statements that return nothing, in order."""
        for statement, parameters in statements:
            connection.execute(statement, parameters)

    def check_in_place(self, connection: Connection) -> None:
        """Check that the connection's database is still the one that the URL names.

        Raises:
            StorageError: if it was moved, replaced or removed.
        """

    def lock_schema(self, connection: Connection) -> None:
        """Keep other processes from creating the tables at the same time."""

    def check_encoding(self, connection: Connection) -> None:
        """Refuse a database that could not store every name.

        Raises:
            StorageError: if it cannot.
        """

    def sql(self, statement: str) -> str:
        """Return a statement with `?` parameters in this SQL dialect."""
        return statement

    def is_lost(self, error: BaseException) -> bool:
        """Whether the connection was lost, so that the outcome of a commit is unknown."""
        return False

    def readable(self, error: BaseException) -> StorageError:
        """Return the error to raise for a driver's error: what happened and what to do."""
        raise NotImplementedError

    def check_pages(self, connection: Connection) -> None:
        """Run the database's own integrity check, where it has one."""
