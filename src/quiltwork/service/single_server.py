"""One server for one database: a second would answer beside the first, and clean up its files.

A file beside an SQLite database is locked; in PostgreSQL a connection that stays open holds an
advisory lock. Either goes with the process, however it ends.
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
    """Be the one server of a database during a block.

    Raises:
        StorageError: if there is another.
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
                raise _second(url)
            yield
        return
    with _connected(database) as held:
        if not held:
            raise _second(database.url)
        yield


@contextmanager
def _connected(database: Database) -> Iterator[bool]:
    """Hold a connection with the advisory lock; say whether it was to be had."""
    try:
        connection = database.connect()
        held = connection.execute(_ADVISORY).fetchall()[0][0]
    except database.errors as error:
        raise database.sentence(error) from None
    try:
        yield bool(held)
    finally:
        database.close(connection)


def _locked(file: IO[bytes]) -> bool:
    """Lock a file until it is closed; whether nobody else has."""
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


def _second(url: str) -> StorageError:
    return StorageError(
        f"Another curator is running on {url!r}. One process serves a database: stop it first, or "
        "name another --database and --data."
    )
