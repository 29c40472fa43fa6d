"""One server process for each database: a second one would delete files that the first needs.

For SQLite a file beside the database is locked; in PostgreSQL an open connection holds an advisory
lock. Both locks end with the process, however it ends.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from typing import IO

from quiltwork.budget.ledger.databases import Database
from quiltwork.budget.ledger.sqlite import SqliteDatabase
from quiltwork.budget.ledger.urls import database_at
from quiltwork.errors import StorageError
from quiltwork.files import OWNER_ONLY

_ADVISORY = (
    "SELECT pg_try_advisory_lock(hashtext('quiltwork serve'), hashtext(current_schema()::text))"
)


@contextmanager
def single_server(url: str) -> Iterator[None]:
    """Hold the lock of a database's only server during a block.

    Raises:
        StorageError: if another server holds it.
    """
    database = database_at(url)
    if isinstance(database, SqliteDatabase):
        path = f"{os.path.realpath(database.path)}-serving"
        try:
            file = os.fdopen(os.open(path, os.O_RDWR | os.O_CREAT, OWNER_ONLY), "r+b")
        except OSError as error:
            raise StorageError(f"{path!r} cannot be written: {error.strerror}.") from None
        with file:
            if not _locked(file):
                raise _already_running(url)
            yield
        return
    with _advisory_lock(database) as acquired:
        if not acquired:
            raise _already_running(database.url)
        yield


@contextmanager
def _advisory_lock(database: Database) -> Iterator[bool]:
    """Hold a connection that took the advisory lock; yields whether it could."""
    try:
        connection = database.connect()
        acquired = connection.execute(_ADVISORY).fetchall()[0][0]
    except database.errors as error:
        raise database.readable(error) from None
    try:
        yield bool(acquired)
    finally:
        database.close(connection)


def _locked(file: IO[bytes]) -> bool:
    """Lock a file until it is closed; return whether that succeeded."""
    try:
        if sys.platform == "win32":  # pragma: no cover
            import msvcrt

            msvcrt.locking(file.fileno(), msvcrt.LK_NBLCK, 1)
        else:
            import fcntl

            fcntl.flock(file.fileno(), fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError:
        return False
    return True


def _already_running(url: str) -> StorageError:
    return StorageError(
        f"Another curator is running on {url!r}, and a database has one server. Stop it first, or "
        "give another --database and --data."
    )
