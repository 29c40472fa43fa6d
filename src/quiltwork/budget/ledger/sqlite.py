"""A ledger in one SQLite file: write-ahead log, full sync, one writer at a time.

A commit waits until the write-ahead log (WAL) is on the disk (`synchronous=FULL`), and only then
others see it: so whatever has been read survives a power loss. `BEGIN IMMEDIATE` takes the write
lock before anything is read, so that every decision rests on the last committed state.

An open file keeps its identity when its name is given to another file. Two processes could then
debit two files under one name, so every transaction compares the files now named as database, WAL
and WAL index with those that were opened. SQLite copies the WAL into the database when the last
connection is closed, and removes it by name. A connection whose files are no longer those of the
names would overwrite debits that others made since: it is never closed in that way.
"""

from __future__ import annotations

import ctypes
import os
import sqlite3
import sys
import threading
import time
from pathlib import Path
from typing import Any, TypeAlias
from urllib.parse import quote

from quiltwork.budget.ledger.databases import Connection, Database
from quiltwork.budget.ledger.schema import SQLITE_TABLES
from quiltwork.budget.ledger.writer_election import WriterElection
from quiltwork.errors import StorageError
from quiltwork.files import OWNER_ONLY, sync_folder

_PRAGMAS = (
    "journal_mode=WAL",
    "synchronous=FULL",
    *(("fullfsync=ON",) if sys.platform == "darwin" else ()),  # fsync alone is weaker there
)
_POLL = 0.0001
"""Seconds between two attempts of the elected process to take the write lock."""
_POLL_UNELECTED, _ELECTION_SECONDS = 0.002, 0.1
"""The same for a process that was not elected within so many seconds."""
_NO_CHECKPOINT_ON_CLOSE = 1006  # sqlite3.SQLITE_DBCONFIG_NO_CKPT_ON_CLOSE, from Python 3.12 on
_PROBLEMS = {
    "SQLITE_FULL": "is on a full disk. Nothing was granted; make room and ask again",
    "SQLITE_READONLY": "cannot be written. Check the permissions of the file and its folder",
    "SQLITE_CANTOPEN": "cannot be opened. Check the permissions of the file and its folder",
    "SQLITE_BUSY": "was locked by another process for {timeout:g} seconds. Nothing was granted; "
    "ask again",
    "SQLITE_NOTADB": "is not a ledger, or is damaged beyond reading. Check the path, or restore "
    "a backup",
    "SQLITE_IOERR": "could not be read or written (disk I/O error). Nothing was released; a debit "
    "that its history shows stays spent. Check the disk",
    "SQLITE_CORRUPT": "is damaged. Restore a backup and retire the datasets it may have lost "
    "debits of",
}


_Identity: TypeAlias = tuple[int, int] | None
"""Device and inode of the file with a name; None for no file."""

_opened: list[list[_Identity]] = []
"""For every connection of this process, the identities of database, WAL and WAL index.

SQLite keeps one WAL index for all connections of a process to one file. So while an older one is
open, a new connection would read the new WAL by the old index.
"""
_opening = threading.RLock()
"""Held while a connection is opened or closed, to keep `_opened` consistent."""


def _renew_lock() -> None:
    """Make a new lock after a fork: the thread that held the old one is not in the child."""
    global _opening
    _opening = threading.RLock()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_renew_lock)


class SqliteDatabase(Database):
    """The file at `path`, which is created by the first write."""

    errors: tuple[type[BaseException], ...] = (sqlite3.Error, UnicodeDecodeError)
    """The second is raised for a damaged table name, which SQLite quotes in its message."""
    tables = SQLITE_TABLES

    def __init__(self, path: Path) -> None:
        """Remember the path; nothing is opened."""
        self.path = path
        self._names = self._current_names()
        self._opened: dict[int, list[_Identity]] = {}
        self._election = WriterElection()
        self._first: _Identity = None  # the file opened first: every later one must be the same
        self.url = f"sqlite:///{path}"

    def _current_names(self) -> list[str]:
        """Return the names of database, WAL and WAL index, with symbolic links resolved."""
        try:
            target = os.path.realpath(self.path)
        except (OSError, ValueError):  # opening it will report why
            target = str(self.path)
        return [f"{target}{suffix}" for suffix in ("", "-wal", "-shm")]

    def exists(self) -> bool:
        """Whether the file exists and is not empty."""
        try:
            return self.path.stat().st_size > 0
        except FileNotFoundError:
            return False
        except (OSError, ValueError) as error:  # no permission to search a folder, cyclic links
            raise self._unreachable(error) from None

    def connect(self) -> Connection:
        """Open the file, creating it if needed, with WAL and full sync.

        A new file is readable by its owner only; WAL and WAL index get the file's mode.
        """
        with _opening:
            return self._connect()

    def _connect(self) -> Connection:
        """Open the file; the caller holds `_opening`."""
        is_new = not self.read_only and not self.exists()
        if is_new:
            self._create()
        names = self._current_names()
        if not self._opened:
            self._names = names
        before = self._identities()
        is_other_file = self._first not in (None, before[0])
        is_mixed = any(_mixes_files(files, before) for files in _opened)
        if is_other_file or is_mixed or names != self._names:
            raise self._replaced()
        stray_wal = Path(f"{self.path}-wal")
        if self.path.is_symlink() and stray_wal.exists() and stray_wal.stat().st_size:
            raise StorageError(
                f"The ledger {str(self.path)!r} is a link, and a log lies beside it: the "
                "file was moved without it, and lacks debits. Put it back in the link's place."
            )
        connection = self.open()
        try:
            for pragma in () if self.read_only else _PRAGMAS:
                self.rows(connection, f"PRAGMA {pragma}")
            self.rows(connection, "SELECT 1 FROM sqlite_master LIMIT 1")  # opens the WAL
            opened = self._opened[id(connection)] = self._identities()
            _opened.append(opened)
            if opened[0] != before[0]:
                raise self._replaced()
            self._first = opened[0]
            if os.stat(self._names[0]).st_nlink > 1:
                raise StorageError(
                    f"The ledger {str(self.path)!r} has several names (hard links), and SQLite "
                    "keeps a log for each: two budgets. Keep one name, and copy with a backup."
                )
            if is_new:
                sync_folder(self.path.parent)
        except BaseException as error:
            self.close(connection)
            if isinstance(error, OSError):
                raise self._unreachable(error) from None
            raise
        return connection

    def close(self, connection: Connection) -> None:
        """Close a connection, writing the WAL into the database only if all files are in place.

        Otherwise SQLite is configured not to, from Python 3.12 on. Before that there is no such
        setting, and the connection is leaked on purpose: its memory is never freed, and the
        operating system closes its files when the process ends.
        """
        with _opening:
            opened = self._opened.pop(id(connection), None)
            if opened is not None and self._identities() != opened:
                configure = getattr(connection, "setconfig", None)
                if configure is None:
                    ctypes.pythonapi.Py_IncRef(ctypes.py_object(connection))
                    return
                configure(_NO_CHECKPOINT_ON_CLOSE, True)
            try:
                connection.close()
            finally:
                _opened[:] = [files for files in _opened if files is not opened]

    def check_in_place(self, connection: Connection) -> None:
        """Compare database, WAL and WAL index with those that were opened. Cost: three `stat`s.

        A symbolic link may be changed: then the file is another one, or has several names. One that
        replaces the file itself would give new connections another WAL, beside its target.

        Raises:
            StorageError: if one of them was moved, replaced or removed.
        """
        opened = self._opened[id(connection)]
        try:
            status = os.stat(self.path, follow_symlinks=self._names[0] != str(self.path))
        except (OSError, ValueError):
            raise self._replaced() from None
        is_moved = status.st_nlink > 1 and self._current_names() != self._names
        unchecked = self._names[self._names[0] == str(self.path) :]  # the first was just checked
        if (
            is_moved
            or (status.st_dev, status.st_ino) != opened[0]
            or [_identity(name) for name in unchecked] != opened[-len(unchecked) :]
        ):
            raise self._replaced()

    def _identities(self) -> list[_Identity]:
        return [_identity(name) for name in self._names]

    def _replaced(self) -> StorageError:
        return StorageError(
            f"The ledger {str(self.path)!r}, or the -wal or -shm file beside it, was moved, "
            "replaced or deleted while it was in use, so that others may debit another file. "
            "Nothing is released; a debit just made may be in the file that was moved. Put that "
            "file back, or restore a backup with the newest checkpoint, and start again."
        )

    def _create(self) -> None:
        try:
            os.close(os.open(self.path, os.O_RDWR | os.O_CREAT, OWNER_ONLY))
        except OSError:
            return  # SQLite, called next, reports why

    def _unreachable(self, error: Exception) -> StorageError:
        reason = getattr(error, "strerror", None) or error
        return StorageError(
            f"The ledger {str(self.path)!r} cannot be reached: {reason}. Check the path and the "
            "permissions of its folders."
        )

    def open(self) -> Connection:
        """Open the file with the standard library's SQLite, without its own waiting for locks."""
        return sqlite3.connect(
            f"file:{quote(os.fsencode(self.path))}?mode={'ro' if self.read_only else 'rwc'}",
            uri=True,
            isolation_level=None,
            check_same_thread=False,
            timeout=0,
        )

    def has_ledger(self, connection: Connection) -> bool:
        """Whether the tables exist.

        Raises:
            StorageError: if the file has another program's tables.
        """
        rows = self.rows(connection, "SELECT name FROM sqlite_master WHERE type = 'table'")
        names = {name for (name,) in rows}
        if names and "quiltwork_ledger" not in names:
            raise StorageError(
                f"{str(self.path)!r} is a database of another program (it has a table "
                f"{min(names)!r}); name a new file for the ledger."
            )
        return bool(names)

    def begin(self, connection: Connection, *, wait: float | None) -> None:
        """Begin a read transaction, or with a `wait` in seconds take the write lock.

        SQLite itself polls the lock ever more rarely, down to ten times a second, while a debit
        holds it for less than a millisecond. So it is polled here: by one elected process at short
        intervals, while the others sleep.
        """
        if wait is None:
            connection.execute("BEGIN")
            return
        if self._try_lock(connection, last=False):
            return
        start, file = time.monotonic(), "{}-{}".format(*(self._first or (0, 0)))
        with self._election.elected(file, min(_ELECTION_SECONDS, wait / 2)) as is_elected:
            while not self._try_lock(connection, last=time.monotonic() > start + wait):
                time.sleep(_POLL if is_elected else _POLL_UNELECTED)

    def rows(self, connection: Connection, statement: str) -> list[Any]:
        """Return the rows of a statement, waiting while another process begins or ends the WAL."""
        deadline = time.monotonic() + self.timeout
        while True:
            try:
                return list(connection.execute(statement).fetchall())
            except self.errors as error:
                is_busy = self._code(error).startswith("SQLITE_BUSY")
                if not is_busy or time.monotonic() > deadline:
                    raise
            time.sleep(_POLL)

    def _try_lock(self, connection: Connection, *, last: bool) -> bool:
        """Try to take the write lock; the `last` attempt raises SQLite's error."""
        try:
            connection.execute("BEGIN IMMEDIATE")
        except self.errors as error:
            if last or not self._code(error).startswith("SQLITE_BUSY"):
                raise
            return False
        return True

    def _code(self, error: BaseException) -> str:
        """Return SQLite's name of an error."""
        is_damaged = isinstance(error, UnicodeDecodeError)
        return "SQLITE_CORRUPT" if is_damaged else str(getattr(error, "sqlite_errorname", ""))

    def readable(self, error: BaseException) -> StorageError:
        """Return the error to raise for SQLite's error."""
        code = self._code(error)
        if self.read_only and code.startswith(("SQLITE_READONLY", "SQLITE_CANTOPEN")):
            return StorageError(
                f"The ledger {str(self.path)!r} cannot be read by this account now: SQLite reads "
                "it by the -wal and -shm files beside it, which are there while somebody has it "
                "open for writing and can be made only with the right to write to its folder."
            )
        problem = next((text for name, text in _PROBLEMS.items() if code.startswith(name)), None)
        if problem is not None:
            problem = problem.format(timeout=self.timeout)
        else:
            problem = f"failed ({error}). Nothing was released; a debit in its history stays spent"
        return StorageError(f"The ledger {str(self.path)!r} {problem}.")

    def check_pages(self, connection: Connection) -> None:
        """Run SQLite's own integrity check.

        Raises:
            StorageError: if it reports a problem.
        """
        problems = [str(row[0]) for row in connection.execute("PRAGMA integrity_check").fetchall()]
        if problems != ["ok"]:
            raise StorageError(
                f"The ledger {str(self.path)!r} {_PROBLEMS['SQLITE_CORRUPT']}: {problems[0]}."
            )


def _identity(name: str) -> _Identity:
    try:
        status = os.lstat(name)
    except (OSError, ValueError):
        return None
    return status.st_dev, status.st_ino


def _mixes_files(opened: list[_Identity], current: list[_Identity]) -> bool:
    """Whether one database was opened with another WAL or WAL index than it has now."""
    return opened[0] == current[0] and opened != current
