"""Transactions on a ledger's database: one writer at a time per process, readers in parallel.

Requests of threads that arrive while another thread writes wait in a queue; the next thread does
them all in one transaction (a group commit), with one wait for the disk, and each request has its
own result or error. Nothing is reported until it is durable, other writers' commits included,
because a commit becomes visible only when it is on the disk.

Each transaction borrows a connection from a pool, so readers never wait for writers. Connections
are closed before a fork and reopened on both sides, because neither SQLite nor PostgreSQL lets two
processes share one. When a server hangs up, the transaction is retried from the start; its work
must recognize an entry that the first attempt committed, by the entry's identity.
"""

from __future__ import annotations

import os
import threading
import time
import weakref
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from typing import Any, TypeVar

from quiltwork.budget.ledger.databases import Connection, Database
from quiltwork.budget.ledger.entries import Head
from quiltwork.budget.ledger.log import Log
from quiltwork.budget.ledger.schema import has_tables, make_tables
from quiltwork.errors import StorageError
from quiltwork.wording import either

Result = TypeVar("Result")

_PAUSES = (0.05, 0.5, 2.0)
"""Seconds before each new attempt after a lost connection."""
_FORK_POLL = 0.01
"""Seconds between checks of a fork whether all connections were returned."""
_MOST_IDLE = 4
"""Idle connections kept open in the pool."""


class _ThreadUse(threading.local):
    """This thread's use of one store: its open transaction, and its number of connections."""

    log: Log | None = None
    connections = 0


class _ThreadTotal(threading.local):
    """This thread's number of connections, over all stores."""

    connections = 0


_thread_total = _ThreadTotal()


@dataclass(frozen=True)
class _Access:
    """The access that a transaction needs: to `write`, and to create a `new` ledger."""

    write: bool = False
    new: bool = False
    ledger_id: str | None = None


@dataclass(eq=False)
class _Request:
    """A unit of work waiting for a transaction, and later its result or error."""

    work: Callable[[Log], Any]
    tried: bool = False  # by a thread that was interrupted, possibly after its commit
    done: bool = False
    result: Any = None
    error: Exception | None = None

    def do(self, log: Log, lost: tuple[type[BaseException], ...]) -> None:
        """Do the work and record its error, which affects no other request if it wrote nothing."""
        before, self.result, self.error = log.head, None, None
        try:
            self.result = self.work(log)
        except lost:
            raise
        except Exception as error:
            if log.head != before:
                raise
            self.error = error


@dataclass(eq=False)
class _WriteTurn:
    """The exclusive right of one thread to write, and the queue of requests waiting for it."""

    changed: threading.Condition
    owner: int | None = None
    waiting: list[_Request] = field(default_factory=list)

    def take(self, seconds: float, request: _Request | None) -> bool:
        """Wait for the turn, or until a request is done; return False after a timeout."""
        with self.changed:
            in_time = self.changed.wait_for(
                lambda: self.owner is None or (request is not None and request.done), seconds
            )
            if in_time and self.owner is None:
                self.owner = threading.get_ident()
            return in_time

    @property
    def is_free_for_this_thread(self) -> bool:
        """Whether no other thread has the turn."""
        return self.owner in (None, threading.get_ident())

    def release(self) -> None:
        """Release the turn and wake the waiting threads; no effect without the turn."""
        with self.changed:
            if self.owner == threading.get_ident():
                self.owner = None
                self.changed.notify_all()


class Store:
    """The log in a database, created by the first write that begins one."""

    def __init__(self, database: Database, pauses: tuple[float, ...] = _PAUSES) -> None:
        """Open nothing yet; after a lost connection, retry after each of the `pauses`."""
        self.database = database
        self._pauses = pauses
        self._lock = threading.RLock()
        self._shared = threading.Condition(self._lock)
        self._turn = _WriteTurn(self._shared)
        self._idle: list[Connection] = []
        self._lent = 0
        self._is_forking = False
        self._own = _ThreadUse()
        self._seen: Head | None = None  # the last known end of the log, whoever wrote it
        _STORES.add(self)
        weakref.finalize(self, _close_all, self._idle, database)

    def read(self, work: Callable[[Log], Result]) -> Result:
        """Do `work` on one committed state of the log; within a transaction, on what that sees.

        Raises:
            StorageError: if there is no ledger, or it cannot be read.
        """
        if self._own.log is not None:
            return work(self._own.log)
        self._let_fork()
        return self._attempt(work, _Access(), None)

    def write(self, work: Callable[[Log], Result]) -> Result:
        """Do `work` in a transaction of its own; an exception rolls it back.

        After a lost connection `work` runs again, so it must first look for its own entry.

        Raises:
            StorageError: if there is no ledger, or the outcome could not be made durable.
        """
        return self._alone(work, _Access(write=True))

    def begin(self, work: Callable[[Log], Result], ledger_id: str | None = None) -> Result:
        """Do `work` as `write` does, creating the ledger if there is none."""
        return self._alone(work, _Access(write=True, new=True, ledger_id=ledger_id))

    def write_batched(self, work: Callable[[Log], Result]) -> Result:
        """Do `work` as `write` does, in one transaction with the requests of other threads.

        An exception raised before it has written anything rolls back none of theirs.
        """
        self.check_writable()
        self._let_fork()
        own, deadline = _Request(work), time.monotonic() + self.database.timeout
        try:
            with self._shared:
                self._turn.waiting.append(own)
            while not own.done:
                with self._writing(deadline, own) as wait:
                    if not own.done:
                        self._do_waiting(own, wait)
        finally:
            with self._shared, suppress(ValueError):
                self._turn.waiting.remove(own)
        if own.error is not None:
            raise own.error
        result: Result = own.result
        return result

    def close(self) -> None:
        """Close the idle connections; the next use opens new ones."""
        with self._lock:
            _close_all(self._idle, self.database)

    def check_writable(self) -> None:
        """Refuse to write to a ledger that was opened read-only.

        Raises:
            StorageError: if it was.
        """
        if self.database.read_only:
            raise StorageError(
                f"The ledger {self.database.url!r} was opened for reading only; nothing can be "
                "written to it. Open it without read_only."
            )

    def _alone(self, work: Callable[[Log], Result], access: _Access) -> Result:
        self.check_writable()
        self._let_fork()
        with self._writing(time.monotonic() + self.database.timeout, None) as wait:
            result = self._attempt(work, access, wait)
            self._turn.release()
            return result

    def _do_waiting(self, own: _Request, wait: float) -> None:
        """Do all waiting requests in one transaction; one by one if the transaction fails."""
        with self._shared:
            batch, self._turn.waiting = self._turn.waiting, []
        finished: list[_Request] = []
        try:
            finished = self._do_batch(batch, wait)
        finally:
            with self._shared:
                for request in finished:
                    request.done = True
                # Left only if this thread was interrupted: another one will do them.
                left = [item for item in batch if not item.done and item is not own]
                self._turn.waiting = left + self._turn.waiting
            self._turn.release()

    def _do_batch(self, requests: list[_Request], wait: float) -> list[_Request]:
        def work(log: Log) -> None:
            for request in requests:
                request.do(log, self.database.errors)

        again = any(request.tried for request in requests)
        for request in requests:
            request.tried = True
        try:
            self._attempt(work, _Access(write=True), wait, again=again)
        except StorageError as error:
            for request in requests:
                request.error = StorageError(str(error))
        except Exception as error:
            if len(requests) == 1:
                requests[0].error = error
            else:
                for request in requests:
                    self._do_batch([request], wait)
        return requests

    def _attempt(
        self,
        work: Callable[[Log], Result],
        access: _Access,
        wait: float | None,
        *,
        again: bool = False,
    ) -> Result:
        """Do the work, retrying after a lost connection; other errors become a `StorageError`."""
        for pause in (*self._pauses, None):
            try:
                with self._borrowed(access) as connection:
                    result = self._transact(connection, work, wait, again=again)
                    self.database.check_in_place(connection)
                    return result
            except self.database.errors as error:
                self.close()  # other idle connections to the same server are likely lost too
                lost, readable = self.database.is_lost(error), self.database.readable(error)
            if pause is None or not lost:
                raise readable  # not "from error", which may hold the connection's password
            time.sleep(pause)
            again = True
        raise AssertionError("unreachable")

    @contextmanager
    def _writing(self, deadline: float, request: _Request | None) -> Iterator[float]:
        """Hold the write turn, or wait until another thread has done the `request`.

        Releases the turn wherever it is interrupted. Yields the seconds left to wait for other
        processes. A request that another thread has begun is waited for to its end.
        """
        try:
            while not self._turn.take(max(deadline - time.monotonic(), 0.0), request):
                with self._shared:
                    if request is None or request in self._turn.waiting:
                        raise StorageError(
                            f"The ledger {self.database.url!r} was used by other threads for "
                            f"{self.database.timeout:g} seconds. Nothing was granted; ask again."
                        )
                    deadline = time.monotonic() + self.database.timeout
            yield max(deadline - time.monotonic(), 0.0)
        finally:
            self._turn.release()

    @contextmanager
    def _borrowed(self, access: _Access) -> Iterator[Connection]:
        """Lend a connection; close one that failed or whose rollback failed."""
        connection, lent, intact = None, 0, False
        try:
            with self._lock:  # no interrupt may come between counting and taking
                lent = 1
                self._lent += 1
                self._own.connections += 1
                _thread_total.connections += 1
                if self._idle:
                    connection = self._idle[-1]
                    del self._idle[-1]
            if connection is None:
                connection = self._open(access)
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
                _thread_total.connections -= lent
                if intact and connection is not None and len(self._idle) < _MOST_IDLE:
                    self._idle.append(connection)
                elif connection is not None:
                    _close_all([connection], self.database)
                self._shared.notify_all()

    def _transact(
        self,
        connection: Connection,
        work: Callable[[Log], Result],
        wait: float | None,
        *,
        again: bool,
    ) -> Result:
        """Begin, check that the database is still in place, work, and commit."""
        seen = self._seen  # read before the transaction begins, which then sees at least that much
        log = Log(self.database, connection, wait=wait, again=again, seen=seen)
        self.database.check_in_place(connection)
        try:
            self._own.log = log
            result = work(log)
        finally:
            self._own.log = None
        log.commit()
        with self._lock:
            if self._seen is None or self._seen.count < log.head.count:
                self._seen = log.head
        return result

    def _open(self, access: _Access) -> Connection:
        """Return a new connection to a database with the tables."""
        if not access.new and not self.database.exists():
            raise self._no_ledger()
        connection = self.database.connect()
        try:
            if not has_tables(self.database, connection):
                if not access.new:
                    raise self._no_ledger()
                self.database.begin(connection, wait=self.database.timeout)
                make_tables(self.database, connection, access.ledger_id)
                connection.execute("COMMIT")
        except BaseException:
            self.database.close(connection)
            raise
        return connection

    def _undone(self, connection: Connection) -> bool:
        """Roll back an open transaction; return False if that fails and the connection is lost."""
        try:
            connection.execute("ROLLBACK")
        except self.database.errors as error:
            return "no transaction is active" in str(error)
        return True

    def _no_ledger(self) -> StorageError:
        return StorageError(
            f"There is no ledger at {self.database.url!r}; check the URL, or create one with "
            + either("create(dataset, beliefs, length, budget).", "`quiltwork ledger create`.")
        )

    def _let_fork(self) -> None:
        """Wait while a fork is pending, which steady readers would otherwise delay without end."""
        with self._lock:
            while self._is_forking and not _thread_total.connections:
                self._shared.wait()

    def _try_hold(self) -> bool:
        """Lock out other threads, if they have returned their connections."""
        self._shared.acquire()
        if self._lent <= self._own.connections and self._turn.is_free_for_this_thread:
            return True
        self._shared.release()
        return False

    def _unhold(self) -> None:
        self._shared.release()

    def _after_fork(self, *, in_child: bool) -> None:
        self._is_forking = False
        if in_child:  # the waiting threads exist only in the parent
            self._turn.waiting.clear()
        self._shared.notify_all()
        self._unhold()


def _close_all(connections: list[Connection], database: Database) -> None:
    while connections:
        with suppress(*database.errors):
            database.close(connections.pop())


_STORES: weakref.WeakSet[Store] = weakref.WeakSet()
_fork_lock = threading.Lock()
_forking: list[Store] = []


def _before_fork() -> None:
    """Wait until other threads have returned their connections, and close the idle ones.

    A thread with a connection may use any store, for writing too, before it returns it. So to
    avoid a deadlock either all stores are held, or none.
    """
    _fork_lock.acquire()
    _forking.extend(_STORES)
    for store in _forking:
        store._is_forking = True
    held: list[Store] = []
    while len(held) < len(_forking):
        if _forking[len(held)]._try_hold():
            held.append(_forking[len(held)])
            continue
        while held:
            held.pop()._unhold()
        time.sleep(_FORK_POLL)
    for store in held:
        store.close()


def _after_fork(*, in_child: bool) -> None:
    for store in _forking:
        store._after_fork(in_child=in_child)
    _forking.clear()
    _fork_lock.release()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(
        before=_before_fork,
        after_in_parent=lambda: _after_fork(in_child=False),
        after_in_child=lambda: _after_fork(in_child=True),
    )
