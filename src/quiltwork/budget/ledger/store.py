"""Transactions on a ledger's database: one writer at a time in a process, readers beside it.

What threads ask while another one writes waits in a queue, and is done by the next of them in one
transaction, with one wait for the disk: each request has its own result or error. Nothing is
reported until it is durable, other writers' commits included, because a commit is visible to others
only when it is on the disk.

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
from dataclasses import dataclass, field
from typing import Any, TypeVar

from quiltwork.budget.ledger.databases import Connection, Database
from quiltwork.budget.ledger.entries import Head
from quiltwork.budget.ledger.log import Log, has_tables, make_tables
from quiltwork.errors import StorageError
from quiltwork.wording import either

Result = TypeVar("Result")

_PAUSES = (0.05, 0.5, 2.0)
"""Seconds before each new attempt after a lost connection."""
_LOOK_AGAIN = 0.01
"""Seconds after which a fork looks again whether all is given back."""
_MOST_IDLE = 4
"""How many connections are kept open while nobody uses them."""


class _Borrowed(threading.local):
    """What this thread has of the store: its transaction, and how many connections."""

    log: Log | None = None
    connections = 0


class _Held(threading.local):
    """How many connections this thread has, of all stores."""

    connections = 0


_held = _Held()


@dataclass(frozen=True)
class _Access:
    """How a transaction uses the log: as a writer, whether in a `new` ledger if there is none."""

    write: bool = False
    new: bool = False
    ledger_id: str | None = None


@dataclass(eq=False)
class _Request:
    """Work that waits for a transaction, and later its result or error."""

    work: Callable[[Log], Any]
    tried: bool = False  # by a thread that was interrupted, perhaps after its commit
    done: bool = False
    result: Any = None
    error: Exception | None = None

    def do(self, log: Log, lost: tuple[type[BaseException], ...]) -> None:
        """Do the work; its own error is nobody else's, if nothing was written before."""
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
class _Turn:
    """Whose turn it is to write: a thread, by its number."""

    changed: threading.Condition
    owner: int | None = None
    waiting: list[_Request] = field(default_factory=list)

    def take(self, seconds: float, request: _Request | None) -> bool:
        """Wait for the turn, or until a request is done; False if neither comes in time."""
        with self.changed:
            free = self.changed.wait_for(
                lambda: self.owner is None or (request is not None and request.done), seconds
            )
            if free and self.owner is None:
                self.owner = threading.get_ident()
            return free

    @property
    def is_free_for_this_thread(self) -> bool:
        """Whether no other thread has it."""
        return self.owner in (None, threading.get_ident())

    def give_up(self) -> None:
        """Let the next one have it; nothing, if this thread has not, or no longer, its turn."""
        with self.changed:
            if self.owner == threading.get_ident():
                self.owner = None
                self.changed.notify_all()


class Store:
    """The log in a database, created by the first write that begins one."""

    def __init__(self, database: Database, pauses: tuple[float, ...] = _PAUSES) -> None:
        """Open nothing yet; `pauses` are made before each new attempt after a lost connection."""
        self.database = database
        self._pauses = pauses
        self._lock = threading.RLock()
        self._shared = threading.Condition(self._lock)
        self._turn = _Turn(self._shared)
        self._idle: list[Connection] = []
        self._lent = 0
        self._is_forking = False
        self._own = _Borrowed()
        self._seen: Head | None = None  # where the log ended, whoever wrote it
        _STORES.add(self)
        weakref.finalize(self, _close_all, self._idle, database)

    def read(self, work: Callable[[Log], Result]) -> Result:
        """Do `work` on one committed state of the log; within other work, on what that sees.

        Raises:
            StorageError: if there is no ledger, or it cannot be read.
        """
        if self._own.log is not None:
            return work(self._own.log)
        self._let_fork()
        return self._attempt(work, _Access(), None)

    def write(self, work: Callable[[Log], Result]) -> Result:
        """Do `work` alone and commit it; what it raises undoes it.

        After a lost connection `work` runs again, so it must first look for its own entry.

        Raises:
            StorageError: if there is no ledger, or the outcome could not be made durable.
        """
        return self._alone(work, _Access(write=True))

    def begin(self, work: Callable[[Log], Result], ledger_id: str | None = None) -> Result:
        """Do `work` as `write` does, in a new ledger if there is none."""
        return self._alone(work, _Access(write=True, new=True, ledger_id=ledger_id))

    def write_together(self, work: Callable[[Log], Result]) -> Result:
        """Do `work` as `write` does, in one transaction with what other threads ask meanwhile.

        What it raises before it has written anything undoes nothing of theirs.
        """
        self.check_writable()
        self._let_fork()
        mine, end = _Request(work), time.monotonic() + self.database.timeout
        try:
            with self._shared:
                self._turn.waiting.append(mine)
            while not mine.done:
                with self._my_turn(end, mine) as wait:
                    if not mine.done:
                        self._do_waiting(mine, wait)
        finally:
            with self._shared, suppress(ValueError):
                self._turn.waiting.remove(mine)
        if mine.error is not None:
            raise mine.error
        result: Result = mine.result
        return result

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

    def _alone(self, work: Callable[[Log], Result], access: _Access) -> Result:
        self.check_writable()
        self._let_fork()
        with self._my_turn(time.monotonic() + self.database.timeout, None) as wait:
            found = self._attempt(work, access, wait)
            self._turn.give_up()
            return found

    def _do_waiting(self, mine: _Request, wait: float) -> None:
        """Do everything that waits, in one transaction; alone, if something fails half-way."""
        with self._shared:
            taken, self._turn.waiting = self._turn.waiting, []
        finished: list[_Request] = []
        try:
            finished = self._done_together(taken, wait)
        finally:
            with self._shared:
                for one in finished:
                    one.done = True
                left = [one for one in taken if not one.done and one is not mine]
                self._turn.waiting = left + self._turn.waiting  # if this thread was interrupted
            self._turn.give_up()

    def _done_together(self, requests: list[_Request], wait: float) -> list[_Request]:
        def work(log: Log) -> None:
            for one in requests:
                one.do(log, self.database.errors)

        again = any(one.tried for one in requests)
        for one in requests:
            one.tried = True
        try:
            self._attempt(work, _Access(write=True), wait, again=again)
        except StorageError as error:
            for one in requests:
                one.error = StorageError(str(error))
        except Exception as error:
            if len(requests) == 1:
                requests[0].error = error
            else:
                for one in requests:
                    self._done_together([one], wait)
        return requests

    def _attempt(
        self,
        work: Callable[[Log], Result],
        access: _Access,
        wait: float | None,
        *,
        again: bool = False,
    ) -> Result:
        """Do the work, again after a lost connection; any other error becomes a sentence."""
        for pause in (*self._pauses, None):
            try:
                with self._borrowed(access) as connection:
                    result = self._transact(connection, work, wait, again=again)
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
    def _my_turn(self, end: float, request: _Request | None) -> Iterator[float]:
        """Let one thread write at a time, or wait until another has done its `request`.

        Gives up the turn wherever it is interrupted. Yields the seconds that it may still wait for
        other processes. A request that somebody is at is waited for to its end.
        """
        try:
            while not self._turn.take(max(end - time.monotonic(), 0.0), request):
                with self._shared:
                    if request is None or request in self._turn.waiting:
                        raise StorageError(
                            f"The ledger {self.database.url!r} was used by other threads for "
                            f"{self.database.timeout:g} seconds. Nothing was granted; ask again."
                        )
                    end = time.monotonic() + self.database.timeout
            yield max(end - time.monotonic(), 0.0)
        finally:
            self._turn.give_up()

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
                _held.connections -= lent
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
        """Begin, look that all is in place, work, and commit."""
        seen = self._seen  # before it begins, and sees all that was committed then
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
        """Return a new connection, with tables behind it."""
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
        """Roll back what may have begun; False if that fails, and the connection is of no use."""
        try:
            connection.execute("ROLLBACK")
        except self.database.errors as error:
            return "no transaction is active" in str(error)
        return True

    def _no_ledger(self) -> StorageError:
        return StorageError(
            f"There is no ledger at {self.database.url!r}; check the URL, or begin one with "
            + either("create(dataset, beliefs, length, budget).", "`quiltwork ledger create`.")
        )

    def _let_fork(self) -> None:
        """Begin nothing new while a fork waits, or it would wait for ever while others read."""
        with self._lock:
            while self._is_forking and not _held.connections:
                self._shared.wait()

    def _hold(self) -> bool:
        """Keep other threads from everything, if all have given back their connections."""
        self._shared.acquire()
        if self._lent <= self._own.connections and self._turn.is_free_for_this_thread:
            return True
        self._shared.release()
        return False

    def _let_go(self) -> None:
        self._shared.release()

    def _after_fork(self, *, in_child: bool) -> None:
        self._is_forking = False
        if in_child:  # where those who wait are not
            self._turn.waiting.clear()
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
