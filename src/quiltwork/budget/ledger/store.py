"""Transactions on a ledger's database: one connection per process, one at a time.

Threads take turns. Connections are closed before a fork and opened again on both sides, because
neither SQLite nor PostgreSQL lets two processes share one. When a server hangs up, the work is
done again from the start: it must therefore recognise what it may already have done, by the
identity of its entry.
"""

from __future__ import annotations

import os
import threading
import time
import weakref
from collections.abc import Callable
from contextlib import suppress
from typing import TypeVar

from quiltwork.budget.ledger.databases import Connection, Database
from quiltwork.budget.ledger.entries import Head
from quiltwork.budget.ledger.schema import VERSION
from quiltwork.budget.ledger.tables import Tables, prepare, schema_version
from quiltwork.errors import StorageError

Result = TypeVar("Result")

_PAUSES = (0.05, 0.5, 2.0)
"""Seconds before each new attempt after a lost connection."""


class Store:
    """The log in a database, created by the first write that begins one."""

    def __init__(self, database: Database) -> None:
        """Open nothing yet."""
        self.database = database
        self._lock = threading.RLock()
        self._open_connections: list[Connection] = []
        self._seen: Head | None = None
        self._tables: Tables | None = None
        _STORES.add(self)
        weakref.finalize(self, _close_all, self._open_connections, database)

    def read(self, work: Callable[[Tables], Result]) -> Result:
        """Do `work` on one committed state of the log; within other work, on what that sees.

        Raises:
            StorageError: if there is no ledger, or it cannot be read.
        """
        with self._lock:
            if self._tables is not None:
                return work(self._tables)
            return self._attempt(work, write=False)

    def write(self, work: Callable[[Tables], Result]) -> Result:
        """Do `work` alone and commit it; anything it raises undoes it.

        After a lost connection `work` runs again, so it must first look for its own entry.

        Raises:
            StorageError: if there is no ledger, or the outcome could not be made durable.
        """
        return self._attempt(work, write=True)

    def begin(self, work: Callable[[Tables], Result], ledger_id: str | None = None) -> Result:
        """Do `work` as `write` does, in a new ledger if there is none."""
        return self._attempt(work, write=True, new=True, ledger_id=ledger_id)

    def close(self) -> None:
        """Let go of the database; the next use opens it again."""
        with self._lock:
            _close_all(self._open_connections, self.database)

    def _attempt(
        self,
        work: Callable[[Tables], Result],
        *,
        write: bool,
        new: bool = False,
        ledger_id: str | None = None,
    ) -> Result:
        """Do the work again after a lost connection; any other error becomes a sentence."""
        with self._lock:
            for pause in (*_PAUSES, None):
                try:
                    return self._transact(work, write=write, new=new, ledger_id=ledger_id)
                except self.database.errors as error:
                    self.close()
                    lost, sentence = self.database.is_lost(error), self.database.sentence(error)
                if pause is None or not lost:
                    raise sentence  # not from the error, which may hold the connection's password
                time.sleep(pause)
        raise AssertionError("unreachable")

    def _transact(
        self, work: Callable[[Tables], Result], *, write: bool, new: bool, ledger_id: str | None
    ) -> Result:
        """Begin, look that all is in place, work, commit, and look again before telling."""
        connection = self._open(new=new, ledger_id=ledger_id)
        self.database.begin(connection, write=write)
        try:
            self.database.check_in_place()
            tables = Tables(self.database, connection, write=write)
            self._check_not_rewound(tables)
            self._tables = tables
            try:
                result = work(tables)
            finally:
                self._tables = None
            connection.execute("COMMIT")
        except BaseException:
            self._undo(connection)
            raise
        self._seen = tables.head
        self.database.check_in_place()
        return result

    def _open(self, *, new: bool, ledger_id: str | None) -> Connection:
        """Return the connection, with tables of the present version behind it."""
        if self._open_connections:
            return self._open_connections[0]
        if not new and not self.database.exists():
            raise self._no_ledger()
        connection = self.database.connect()
        try:
            version = schema_version(self.database, connection)
            if not new and version == 0:
                raise self._no_ledger()
            if version != VERSION:
                self.database.begin(connection, write=True)
                prepare(self.database, connection, ledger_id)
                connection.execute("COMMIT")
        except BaseException:
            self.database.close(connection)
            raise
        self._open_connections.append(connection)
        return connection

    def _undo(self, connection: Connection) -> None:
        """Roll back; a connection on which that fails is not used again."""
        try:
            connection.execute("ROLLBACK")
        except self.database.errors:
            self.close()

    def _check_not_rewound(self, tables: Tables) -> None:
        """Notice that the file was replaced by an older one while this process was running."""
        seen = self._seen
        if seen is None or tables.head == seen:
            return
        if tables.hash_at(seen.count) != seen.hash:
            raise StorageError(
                f"The ledger {self.database.url!r} was replaced or cut while it was in use: its "
                f"entry {seen.count} is not the one seen before. Nothing was granted; find "
                "out who did it before anything else is released."
            )

    def _no_ledger(self) -> StorageError:
        return StorageError(
            f"There is no ledger at {self.database.url!r}; check the URL, or begin one with "
            "create(dataset, beliefs, length, budget)."
        )

    def _before_fork(self) -> None:
        self._lock.acquire()
        self.close()

    def _after_fork(self) -> None:
        self._lock.release()


def _close_all(connections: list[Connection], database: Database) -> None:
    while connections:
        with suppress(*database.errors):
            database.close(connections.pop())


_STORES: weakref.WeakSet[Store] = weakref.WeakSet()
_fork_lock = threading.Lock()
_forking: list[Store] = []


def _before_fork() -> None:
    _fork_lock.acquire()
    _forking.extend(_STORES)
    for store in _forking:
        store._before_fork()


def _after_fork() -> None:
    for store in _forking:
        store._after_fork()
    _forking.clear()
    _fork_lock.release()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(
        before=_before_fork, after_in_parent=_after_fork, after_in_child=_after_fork
    )
