"""A ledger in PostgreSQL, correct under its default isolation level.

Every write first locks the ledger's one row (`SELECT … FOR UPDATE`). Under READ COMMITTED each
later statement of the transaction sees everything committed before it, hence every debit granted
before the lock was obtained. A connection that breaks during COMMIT leaves the outcome unknown;
the transaction is retried with the same entry identity, behind the same lock (`store.py`). A commit
becomes visible only when it is on the server's disk, whatever the server's default is.
"""

from __future__ import annotations

import warnings
from collections.abc import Sequence
from contextlib import suppress
from functools import cached_property
from typing import TYPE_CHECKING, Any, cast
from urllib.parse import unquote

from quiltwork.budget.ledger.databases import LEDGER_ROW, Connection, Database, Statement
from quiltwork.budget.ledger.schema import POSTGRES_TABLES
from quiltwork.errors import (
    InvalidInputError,
    QuiltworkWarning,
    StorageError,
    UnsupportedError,
)

if TYPE_CHECKING:
    import psycopg

_SCHEMA_LOCK = 0x5157_4C44  # any constant that other programs are unlikely to take
_CONNECT_SECONDS = 10
_STATEMENTS_PER_MESSAGE = 1000
_BEGIN_TO_READ = "BEGIN ISOLATION LEVEL REPEATABLE READ READ ONLY"


class PostgresDatabase(Database):
    """The database at `url`; its tables are created by the first write."""

    tables = POSTGRES_TABLES

    def __init__(self, url: str) -> None:
        """Remember the URL; nothing is opened.

        Raises:
            InvalidInputError: if libpq would refuse it, or parse it in an unintended way.
            UnsupportedError: if psycopg is not installed.
        """
        self._check(url)
        self._full_url = url
        self.url = _without_secrets(url, self._secret_options)
        self.errors: tuple[type[BaseException], ...] = (self._psycopg.Error,)

    def _check(self, url: str) -> None:
        """Refuse a malformed URL, without quoting it: a server's message might show a password."""
        options = None
        with suppress(self._psycopg.Error):  # it quotes the URL, so it must be no error's context
            options = self._psycopg.conninfo.conninfo_to_dict(url)
        if options is None:
            raise InvalidInputError(
                "The ledger's URL cannot be read as PostgreSQL reads it: look for a '%' that is no "
                "code such as %25, an open bracket, or an option that there is not."
            )
        ports = str(options.get("port", "")).replace(",", "")
        if (
            url.count("@") > 1
            or "@" in url.partition("://")[2].partition("/")[2]
            or (ports and not ports.isdecimal())
        ):
            raise InvalidInputError(
                "The ledger's URL cannot be told apart into user, password, host and database: "
                "write postgresql://user@host:port/database, and a '@' or '/' within one of them "
                "as %40 or %2F."
            )

    @property
    def _secret_options(self) -> set[str]:
        """The names of the options that libpq itself does not show: passwords and keys."""
        options = self._psycopg.pq.Conninfo.get_defaults()
        return {option.keyword.decode() for option in options if option.dispchar}

    @cached_property
    def _psycopg(self) -> Any:
        try:
            import psycopg
        except ImportError:
            raise UnsupportedError(
                "A ledger in PostgreSQL needs psycopg: pip install 'quiltwork[postgres]', or use "
                "'sqlite:///budget.db'."
            ) from None
        return psycopg

    def connect(self) -> Connection:
        """Open a connection in autocommit mode.

        It prepares no statement and sets nothing for the session, so a pooler may give every
        transaction another session.
        """
        connection: psycopg.Connection[Any] = self._psycopg.connect(
            self._full_url,
            autocommit=True,
            connect_timeout=_CONNECT_SECONDS,
            prepare_threshold=None,
            client_encoding="UTF8",
        )
        if connection.execute("SHOW fsync").fetchall()[0][0] == "off":
            warnings.warn(
                f"The PostgreSQL server of {self.url!r} runs with fsync=off: a power loss can "
                "make it forget debits. Turn fsync on.",
                QuiltworkWarning,
                stacklevel=2,
            )
        return cast(Connection, connection)

    def has_ledger(self, connection: Connection) -> bool:
        """Whether the tables exist.

        Queries the catalogue itself: `to_regclass` may use a cache that lacks a table which another
        session has just created.
        """
        cursor = connection.execute(
            "SELECT oid FROM pg_catalog.pg_class WHERE relname = 'quiltwork_ledger' "
            "AND relkind = 'r' AND pg_catalog.pg_table_is_visible(oid)"
        )
        return bool(cursor.fetchall())

    def begin(self, connection: Connection, *, wait: float | None) -> None:
        """Begin a read transaction on one snapshot, or with a `wait` a write transaction."""
        connection.execute(_begin_statements(wait))

    def begin_with(
        self, connection: Connection, statement: Statement, *, wait: float | None
    ) -> tuple[list[Any], list[Any]]:
        """Begin, lock the ledger's row for writing, and run a SELECT statement.

        Each later statement sees what was committed before it. All of it is sent as one message,
        since every message costs a round trip to the server.
        """
        select = self._psycopg.ClientCursor(connection).mogrify(*statement)
        row = LEDGER_ROW if wait is None else f"{LEDGER_ROW} FOR UPDATE"
        cursor = connection.execute("; ".join([_begin_statements(wait), row, select]))
        rows: list[list[Any]] = []
        while cursor.nextset():
            rows.append(list(cursor.fetchall()) if cursor.description else [])
        return rows[-2], rows[-1]

    def run(self, connection: Connection, statements: Sequence[Statement]) -> None:
        """Run statements that return nothing, in as few messages as possible."""
        cursor = self._psycopg.ClientCursor(connection)
        for first in range(0, len(statements), _STATEMENTS_PER_MESSAGE):
            batch = statements[first : first + _STATEMENTS_PER_MESSAGE]
            connection.execute("; ".join(cursor.mogrify(*statement) for statement in batch))

    def lock_schema(self, connection: Connection) -> None:
        """Keep other processes from creating the tables at the same time."""
        connection.execute(f"SELECT pg_advisory_xact_lock({_SCHEMA_LOCK})")

    def check_encoding(self, connection: Connection) -> None:
        """Refuse a database in another encoding than UTF-8, which cannot store every name.

        Raises:
            StorageError: if it is not in UTF-8.
        """
        encoding = connection.execute("SHOW server_encoding").fetchall()[0][0]
        if encoding != "UTF8":
            raise StorageError(
                f"The database {self.url!r} is encoded in {encoding}, and names may have any "
                "character; create it with ENCODING 'UTF8' TEMPLATE template0."
            )

    def sql(self, statement: str) -> str:
        """Return a statement with psycopg's placeholders."""
        return statement.replace("?", "%s")

    def is_lost(self, error: BaseException) -> bool:
        """Whether the server closed the connection or is shutting down."""
        state = str(getattr(error, "sqlstate", None) or "")
        no_state = isinstance(error, self._psycopg.OperationalError) and not state
        return no_state or state.startswith(("08", "57P"))

    def readable(self, error: BaseException) -> StorageError:
        """Return the error to raise for PostgreSQL's error."""
        state = str(getattr(error, "sqlstate", None) or "")
        message = " ".join(str(error).split())
        if self.is_lost(error):
            problem = (
                f"cannot be reached ({message}). Nothing was released; a debit that its history "
                "shows stays spent. Check the URL and the server"
            )
        elif state == "55P03":
            problem = (
                f"was locked by another process for {self.timeout:g} seconds. Nothing was "
                "granted; ask again"
            )
        elif state == "25006":
            problem = "cannot be written: the server or the session is read-only"
        elif state == "42501":
            problem = (
                f"cannot be used by this user ({message}). Grant SELECT, INSERT, UPDATE, DELETE"
            )
        elif state == "53100":
            problem = "is on a full disk. Nothing was granted; make room and ask again"
        else:
            problem = f"failed ({message}). Nothing was granted"
        return StorageError(f"The ledger {self.url!r} {problem}.")


def _begin_statements(wait: float | None) -> str:
    """Return the statements that begin a transaction: to read, or with a lock timeout to write."""
    if wait is None:
        return _BEGIN_TO_READ
    return (
        "BEGIN ISOLATION LEVEL READ COMMITTED READ WRITE; "
        f"SET LOCAL lock_timeout = {max(1, int(1000 * wait))}; "
        "SELECT set_config('synchronous_commit', 'on', true) "
        "WHERE current_setting('synchronous_commit') = 'off'"  # a server's default may be weaker
    )


def _without_secrets(url: str, secret_options: set[str]) -> str:
    """Return the URL without its password, as it may be shown, pickled and written.

    >>> _without_secrets("postgresql://ana:one@db/x?password=two&sslmode=require", {"password"})
    'postgresql://ana@db/x?sslmode=require'
    """
    scheme, _, rest = url.partition("://")
    login, at, location = rest.rpartition("@")
    address, _, options = location.partition("?")
    public = [
        option
        for option in options.split("&")
        if option and unquote(option.partition("=")[0]) not in secret_options
    ]
    end = f"?{'&'.join(public)}" if public else ""
    return f"{scheme}://{login.partition(':')[0]}{at}{address}{end}"
