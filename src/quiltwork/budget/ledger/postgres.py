"""A ledger in PostgreSQL, right under its default isolation.

Every write first locks the ledger's one row (`SELECT … FOR UPDATE`). Under READ COMMITTED each
later statement of the transaction sees everything committed before it, hence every debit granted
before the lock was obtained. A connection that breaks during COMMIT leaves the outcome unknown;
the caller asks again with the same entry identity, behind the same lock (`store.py`). A commit is
seen by others only when it is on the server's disk, whatever the server's default is.
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
_MOST_TOGETHER = 1000
"""Statements in one message."""
_BEGIN_TO_READ = "BEGIN ISOLATION LEVEL REPEATABLE READ READ ONLY"


class PostgresDatabase(Database):
    """The database at `url`; its tables are created by the first write."""

    tables = POSTGRES_TABLES

    def __init__(self, url: str) -> None:
        """Remember the URL; nothing is opened.

        Raises:
            InvalidInputError: if PostgreSQL's programs would not read it, or not as it was meant.
            UnsupportedError: if psycopg is not installed.
        """
        self._check(url)
        self._full_url = url
        self.url = _without_secrets(url, self._secret_options)
        self.errors: tuple[type[BaseException], ...] = (self._psycopg.Error,)

    def _check(self, url: str) -> None:
        """Refuse, without quoting it, a URL that a server's message might quote in parts."""
        read = None
        with suppress(
            self._psycopg.Error
        ):  # which quotes the URL, and so must be no error's context
            read = self._psycopg.conninfo.conninfo_to_dict(url)
        if read is None:
            raise InvalidInputError(
                "The ledger's URL cannot be read as PostgreSQL reads it: look for a '%' that is no "
                "code such as %25, an open bracket, or an option that there is not."
            )
        ports = str(read.get("port", "")).replace(",", "")
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
        """The names of the options that libpq itself would not show: passwords and keys."""
        known = self._psycopg.pq.Conninfo.get_defaults()
        return {option.keyword.decode() for option in known if option.dispchar}

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
        """Open a connection; statements outside a transaction commit by themselves.

        No statement is prepared and nothing is set for the session, so that poolers which hand
        every transaction to another session do no harm.
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
        """Whether the tables are there.

        Asks the catalogue itself: `to_regclass` may answer from a cache that does not yet know
        what another session has just created.
        """
        found = connection.execute(
            "SELECT oid FROM pg_catalog.pg_class WHERE relname = 'quiltwork_ledger' "
            "AND relkind = 'r' AND pg_catalog.pg_table_is_visible(oid)"
        )
        return bool(found.fetchall())

    def begin(self, connection: Connection, *, wait: float | None) -> None:
        """Begin; a read sees one state throughout."""
        connection.execute(_beginning(wait))

    def begin_with(
        self, connection: Connection, question: Statement, *, wait: float | None
    ) -> tuple[list[Any], list[Any]]:
        """Begin, lock the ledger's row if to write, and ask something.

        Each later statement sees what was committed by then. All in one message: each takes as
        long as the server is far away.
        """
        asked = self._psycopg.ClientCursor(connection).mogrify(*question)
        row = LEDGER_ROW if wait is None else f"{LEDGER_ROW} FOR UPDATE"
        found = connection.execute("; ".join([_beginning(wait), row, asked]))
        rows: list[list[Any]] = []
        while found.nextset():
            rows.append(list(found.fetchall()) if found.description else [])
        return rows[-2], rows[-1]

    def run(self, connection: Connection, statements: Sequence[Statement]) -> None:
        """Run statements that return nothing, in one message or a few."""
        writing = self._psycopg.ClientCursor(connection)
        for begin in range(0, len(statements), _MOST_TOGETHER):
            some = statements[begin : begin + _MOST_TOGETHER]
            connection.execute("; ".join(writing.mogrify(*one) for one in some))

    def lock_schema(self, connection: Connection) -> None:
        """Keep other processes from creating the tables at the same time."""
        connection.execute(f"SELECT pg_advisory_xact_lock({_SCHEMA_LOCK})")

    def check_fit(self, connection: Connection) -> None:
        """Refuse a database in another encoding, which lacks characters or mixes them up.

        Raises:
            StorageError: if it is not in UTF-8.
        """
        found = connection.execute("SHOW server_encoding").fetchall()[0][0]
        if found != "UTF8":
            raise StorageError(
                f"The database {self.url!r} is encoded in {found}, and names may have any "
                "character; create it with ENCODING 'UTF8' TEMPLATE template0."
            )

    def sql(self, statement: str) -> str:
        """Write parameters as psycopg wants them."""
        return statement.replace("?", "%s")

    def is_lost(self, error: BaseException) -> bool:
        """Whether the server hung up or is shutting down."""
        state = str(getattr(error, "sqlstate", None) or "")
        no_state = isinstance(error, self._psycopg.OperationalError) and not state
        return no_state or state.startswith(("08", "57P"))

    def sentence(self, error: BaseException) -> StorageError:
        """Say what PostgreSQL reports."""
        state = str(getattr(error, "sqlstate", None) or "")
        first = " ".join(str(error).split())
        if self.is_lost(error):
            known = (
                f"cannot be reached ({first}). Nothing was released; a debit that its history "
                "shows stays spent. Check the URL and the server"
            )
        elif state == "55P03":
            known = (
                f"was locked by another process for {self.timeout:g} seconds. Nothing was "
                "granted; ask again"
            )
        elif state == "25006":
            known = "cannot be written: the server or the session is read-only"
        elif state == "42501":
            known = f"cannot be used by this user ({first}). Grant SELECT, INSERT, UPDATE, DELETE"
        elif state == "53100":
            known = "is on a full disk. Nothing was granted; make room and ask again"
        else:
            known = f"failed ({first}). Nothing was granted"
        return StorageError(f"The ledger {self.url!r} {known}.")


def _beginning(wait: float | None) -> str:
    """What begins a transaction to read, or one that waits so many seconds for a lock."""
    if wait is None:
        return _BEGIN_TO_READ
    return (
        "BEGIN ISOLATION LEVEL READ COMMITTED READ WRITE; "
        f"SET LOCAL lock_timeout = {max(1, int(1000 * wait))}; "
        "SELECT set_config('synchronous_commit', 'on', true) "
        "WHERE current_setting('synchronous_commit') = 'off'"  # a weaker default of the server
    )


def _without_secrets(url: str, secret_options: set[str]) -> str:
    """Return the URL as it may be shown, pickled and written.

    >>> _without_secrets("postgresql://ana:one@db/x?password=two&sslmode=require", {"password"})
    'postgresql://ana@db/x?sslmode=require'
    """
    scheme, _, rest = url.partition("://")
    login, at, place = rest.rpartition("@")
    address, _, options = place.partition("?")
    kept = [
        option
        for option in options.split("&")
        if option and unquote(option.partition("=")[0]) not in secret_options
    ]
    end = f"?{'&'.join(kept)}" if kept else ""
    return f"{scheme}://{login.partition(':')[0]}{at}{address}{end}"
