"""Transactions on a ledger's database: one writer at a time in a process, readers beside it.

Who has committed lets the next one write, and only then waits for the disk: so one wait does for
all who have committed meanwhile. Nothing is told before it is on the disk, also of what others
have written.

Each transaction borrows a connection, so that whoever reads waits for nobody who writes or waits
to write. Connections are closed before a fork and opened again on both sides, because neither
SQLite nor PostgreSQL lets two processes share one. When a server hangs up, the work is done again
from the start: it must therefore recognise what it may already have done, by the identity of its
entry.
"""

from __future__ import annotations

import os
import threading
import time
import weakref
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from typing import TypeVar

from quiltwork.budget.ledger.databases import Connection, Database
from quiltwork.budget.ledger.entries import Head
from quiltwork.budget.ledger.log_tables import Tables, prepare, schema_version
from quiltwork.budget.ledger.schema import VERSION
from quiltwork.errors import StorageError

Result = TypeVar("Result")

_PAUSES = (0.05, 0.5, 2.0)
"""Seconds before each new attempt after a lost connection."""
_LOOK_AGAIN = 0.01
"""Seconds after which a fork looks again whether all is given back."""
_MOST_IDLE = 4
"""How many connections are kept open while nobody uses them."""


class _Borrowed(threading.local):
    """What this thread has of the store: its transaction, and how many connections."""

    tables: Tables | None = None
    connections = 0


class _Held(threading.local):
    """How many connections this thread has, of all stores."""

    connections = 0


_held = _Held()


@dataclass(frozen=True)
class _Access:
    """How a transaction uses the log: as a writer, whether in a `new` ledger if there is none, and
    whether somebody is told what it finds."""

    write: bool = False
    tells: bool = True
    new: bool = False
    ledger_id: str | None = None
    about: str | None = None


class Store:
    """The log in a database, created by the first write that begins one."""

    def __init__(self, database: Database, pauses: tuple[float, ...] = _PAUSES) -> None:
        """Open nothing yet; `pauses` are made before each new attempt after a lost connection."""
        self.database = database
        self._pauses = pauses
        self._writer = threading.RLock()
        self._lock = threading.RLock()
        self._shared = threading.Condition(self._lock)
        self._idle: list[Connection] = []
        self._lent = 0
        self._is_forking = False
        self._own = _Borrowed()
        self._seen: Head | None = None  # so many entries are on the disk, whoever wrote them
        self._commits = self._flushed = 0  # of this process
        _STORES.add(self)
        weakref.finalize(self, _close_all, self._idle, database)

    def read(self, work: Callable[[Tables], Result]) -> Result:
        """Do `work` on one committed state of the log; within other work, on what that sees.

        Raises:
            StorageError: if there is no ledger, or it cannot be read.
        """
        if self._own.tables is not None:
            return work(self._own.tables)
        self._let_fork()
        return self._attempt(work, _Access())

    def look(self, work: Callable[[Tables], Result]) -> Result:
        """Do `work` as `read` does, without waiting for the disk: nobody may be told of it."""
        self._let_fork()
        return self._attempt(work, _Access(tells=False))

    def write(self, work: Callable[[Tables], Result], about: str | None = None) -> Result:
        """Do `work`, which is `about` a dataset, alone and commit it; what it raises undoes it.

        After a lost connection `work` runs again, so it must first look for its own entry.

        Raises:
            StorageError: if there is no ledger, or the outcome could not be made durable.
        """
        return self._written(work, _Access(write=True, about=about))

    def begin(self, work: Callable[[Tables], Result], ledger_id: str | None = None) -> Result:
        """Do `work` as `write` does, in a new ledger if there is none."""
        return self._written(work, _Access(write=True, new=True, ledger_id=ledger_id))

    def close(self) -> None:
        """Let go of the database; the next use opens it again."""
        with self._lock:
            _close_all(self._idle, self.database)

    def check_writable(self) -> None:
        """Refuse to write to a ledger that was opened for reading only.

        Raises:
            StorageError: if it was.
        """
        if self.database.read_only:
            raise StorageError(
                f"The ledger {self.database.url!r} was opened for reading only; nothing can be "
                "written to it. Open it without read_only."
            )

    def _written(self, work: Callable[[Tables], Result], access: _Access) -> Result:
        self.check_writable()
        self._let_fork()
        return self._attempt(work, access)

    def _attempt(self, work: Callable[[Tables], Result], access: _Access) -> Result:
        """Do the work again after a lost connection; any other error becomes a sentence."""
        again = False
        for pause in (*self._pauses, None):
            try:
                with self._turn(access) as wait, self._borrowed(access) as connection:
                    tables, result = self._transact(connection, work, access, wait, again=again)
                    self._end_turn(access)
                    self._wait_for_disk(connection, tables, access)
                    self.database.check_in_place(connection)
                    return result
            except self.database.errors as error:
                self.close()  # the others will hardly be better
                lost, sentence = self.database.is_lost(error), self.database.sentence(error)
            if pause is None or not lost:
                raise sentence  # not from the error, which may hold the connection's password
            time.sleep(pause)
            again = True
        raise AssertionError("unreachable")

    @contextmanager
    def _turn(self, access: _Access) -> Iterator[float | None]:
        """Let one thread write at a time, until `_end_turn`, or wherever it is interrupted.

        Yields the seconds that it may still wait for other processes.
        """
        end = time.monotonic() + self.database.timeout
        try:
            if access.write and not self._writer.acquire(timeout=self.database.timeout):
                raise StorageError(
                    f"The ledger {self.database.url!r} was used by other threads for "
                    f"{self.database.timeout:g} seconds. Nothing was granted; ask again."
                )
            yield max(end - time.monotonic(), 0.0) if access.write else None
        finally:
            self._end_turn(access)

    def _end_turn(self, access: _Access) -> None:
        with suppress(RuntimeError):  # which says that this thread has not, or no longer, its turn
            if access.write:
                self._writer.release()

    @contextmanager
    def _borrowed(self, access: _Access) -> Iterator[Connection]:
        """Lend a connection; one that failed, or did not end its transaction, is closed."""
        connection, lent, intact = None, 0, False
        try:
            with self._lock:  # which nothing interrupts before all is counted, and taken
                lent = 1
                self._lent += 1
                self._own.connections += 1
                _held.connections += 1
                if self._idle:
                    connection = self._idle[-1]
                    del self._idle[-1]
            if connection is None:
                connection = self._open(new=access.new, ledger_id=access.ledger_id)
            yield connection
            intact = True
        except self.database.errors:
            raise
        except BaseException:
            intact = connection is not None and self._undone(connection)
            raise
        finally:
            with self._lock:
                self._lent -= lent
                self._own.connections -= lent
                _held.connections -= lent
                if intact and connection is not None and len(self._idle) < _MOST_IDLE:
                    self._idle.append(connection)
                elif connection is not None:
                    _close_all([connection], self.database)
                self._shared.notify_all()

    def _transact(
        self,
        connection: Connection,
        work: Callable[[Tables], Result],
        access: _Access,
        wait: float | None,
        *,
        again: bool,
    ) -> tuple[Tables, Result]:
        """Begin, look that all is in place, work, and commit."""
        tables = Tables(
            *(self.database, connection),
            wait=wait,
            again=again,
            seen=self._seen,  # before it begins, and sees all that was committed then
            about=access.about,
        )
        self.database.check_in_place(connection)
        try:
            self._own.tables = tables
            result = work(tables)
        finally:
            self._own.tables = None
        tables.commit()
        with self._lock:
            self._commits += access.write
        return tables, result

    def _wait_for_disk(self, connection: Connection, tables: Tables, access: _Access) -> None:
        """Wait until all that was written or seen is on the disk, if it may not be and is told.

        Only then it must be there for good: a server that fails before may forget it.
        """
        commits, head, seen = self._commits, tables.head, self._seen
        known = seen is not None and head.count <= seen.count
        if not access.tells or (known and commits <= self._flushed):
            return
        if not (access.write and self.database.commit_flushes):
            self.database.flush(connection)
        with self._lock:
            self._flushed = max(self._flushed, commits)
            if self._seen is None or self._seen.count < head.count:
                self._seen = head

    def _open(self, *, new: bool, ledger_id: str | None) -> Connection:
        """Return a new connection, with tables of the present version behind it."""
        if not new and not self.database.exists():
            raise self._no_ledger()
        connection = self.database.connect()
        try:
            version = schema_version(self.database, connection)
            if not new and version == 0:
                raise self._no_ledger()
            if version != VERSION:
                self._migrate(connection, version, ledger_id)
        except BaseException:
            self.database.close(connection)
            raise
        return connection

    def _migrate(self, connection: Connection, version: int, ledger_id: str | None) -> None:
        if self.database.read_only:
            raise StorageError(
                f"The ledger {self.database.url!r} has schema version {version}, and this release "
                f"reads {VERSION}: open it once for writing, which brings it there."
            )
        self.database.begin(connection, wait=self.database.timeout)
        prepare(self.database, connection, ledger_id)
        connection.execute("COMMIT")

    def _undone(self, connection: Connection) -> bool:
        """Roll back what may have begun; False if that fails, and the connection is of no use."""
        try:
            connection.execute("ROLLBACK")
        except self.database.errors as error:
            return "no transaction is active" in str(error)
        return True

    def _no_ledger(self) -> StorageError:
        return StorageError(
            f"There is no ledger at {self.database.url!r}; check the URL, or begin one with "
            "create(dataset, beliefs, length, budget)."
        )

    def _let_fork(self) -> None:
        """Begin nothing new while a fork waits, or it would wait for ever while others read."""
        with self._lock:
            while self._is_forking and not _held.connections:
                self._shared.wait()

    def _hold(self) -> bool:
        """Keep other threads from everything, if all have given back their connections."""
        self._shared.acquire()
        if self._lent <= self._own.connections and self._writer.acquire(blocking=False):
            return True
        self._shared.release()
        return False

    def _let_go(self) -> None:
        self._writer.release()
        self._shared.release()

    def _after_fork(self) -> None:
        self._is_forking = False
        self._shared.notify_all()
        self._let_go()


def _close_all(connections: list[Connection], database: Database) -> None:
    while connections:
        with suppress(*database.errors):
            database.close(connections.pop())


_STORES: weakref.WeakSet[Store] = weakref.WeakSet()
_fork_lock = threading.Lock()
_forking: list[Store] = []


def _before_fork() -> None:
    """Wait until other threads have given back their connections, and close the rest.

    Who has one may use any store, for writing too, before it is given back: so either all stores
    are held, or none.
    """
    _fork_lock.acquire()
    _forking.extend(_STORES)
    for store in _forking:
        store._is_forking = True
    held: list[Store] = []
    while len(held) < len(_forking):
        if _forking[len(held)]._hold():
            held.append(_forking[len(held)])
            continue
        while held:
            held.pop()._let_go()
        time.sleep(_LOOK_AGAIN)
    for store in held:
        store.close()


def _after_fork() -> None:
    for store in _forking:
        store._after_fork()
    _forking.clear()
    _fork_lock.release()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(
        before=_before_fork, after_in_parent=_after_fork, after_in_child=_after_fork
    )
