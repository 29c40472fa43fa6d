"""Where a ledger may live: what its URL says, and what the two kinds of database have in common.

A `Database` knows how to connect, how a transaction begins, how its tables are made and how its
errors read as sentences. Everything else about a ledger is the same on both (`log.py`).
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Protocol, TypeAlias

from quiltwork.errors import StorageError

LOCK_SECONDS = 60.0
"""How long a request waits for the others before it gives up, if nothing else is said."""

LEDGER_ROW = "SELECT version, id FROM quiltwork_ledger"

Statement: TypeAlias = tuple[str, Sequence[Any]]
"""With its parameters."""


class Connection(Protocol):
    """What sqlite3, apsw and psycopg connections share."""

    def execute(self, statement: str, parameters: Sequence[Any] = ..., /) -> Any:
        """Run one statement."""

    def close(self) -> None:
        """Let go of the database."""


class Database:
    """One kind of database; what most kinds have no need to do is done by nothing here."""

    errors: tuple[type[BaseException], ...]
    url: str
    timeout = LOCK_SECONDS
    """How many seconds a request waits for the others."""
    read_only = False
    """Whether nothing may be written or created."""
    tables: tuple[str, ...]
    """Statements that make the tables."""

    def exists(self) -> bool:
        """Whether there is anything to connect to; False only where connecting would create it."""
        return True

    def connect(self) -> Connection:
        """Open a connection that commits only when told to."""
        raise NotImplementedError

    def close(self, connection: Connection) -> None:
        """Let go of a connection, without harm to what others have written since."""
        connection.close()

    def has_ledger(self, connection: Connection) -> bool:
        """Whether the tables are there, of any version."""
        raise NotImplementedError

    def begin(self, connection: Connection, *, wait: float | None) -> None:
        """Begin a transaction: to write, after a `wait` of so many seconds at most, or to read."""
        raise NotImplementedError

    def begin_with(
        self, connection: Connection, question: Statement, *, wait: float | None
    ) -> tuple[list[Any], list[Any]]:
        """Begin, if to write after a `wait` for every other writer to finish, and ask something.

        Returns the ledger's row, and the rows of the answer.
        """
        self.begin(connection, wait=wait)
        ledger = self.rows(connection, LEDGER_ROW)  # from now on nobody is in the way
        return ledger, list(connection.execute(*question).fetchall())

    def rows(self, connection: Connection, statement: str) -> list[Any]:
        """Ask something, waiting while others are in the way."""
        return list(connection.execute(statement).fetchall())

    def run(self, connection: Connection, statements: Sequence[Statement]) -> None:
        """Run statements that return nothing, in order."""
        for statement, parameters in statements:
            connection.execute(statement, parameters)

    def check_in_place(self, connection: Connection) -> None:
        """Check that what is connected to is still what the URL names.

        Raises:
            StorageError: if it was moved, replaced or removed.
        """

    def lock_schema(self, connection: Connection) -> None:
        """Let one process at a time create tables."""

    def check_fit(self, connection: Connection) -> None:
        """Refuse a database that could not hold every name.

        Raises:
            StorageError: if it cannot.
        """

    def sql(self, statement: str) -> str:
        """Write a statement with `?` parameters in this dialect."""
        return statement

    def is_lost(self, error: BaseException) -> bool:
        """Whether the connection is gone, so that the outcome of a commit is unknown."""
        return False

    def sentence(self, error: BaseException) -> StorageError:
        """Say what happened and what to do."""
        raise NotImplementedError

    def check_pages(self, connection: Connection) -> None:
        """Let the database check its own pages, where it can."""
