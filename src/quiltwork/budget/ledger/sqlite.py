"""A ledger in one SQLite file: write-ahead log, full sync, one writer at a time.

A commit waits until the write-ahead log is on the disk (`synchronous=FULL`), and only then others
see it: so whatever anybody has read survives a power loss. `BEGIN IMMEDIATE` takes the write lock
before anything is read, so that what is decided rests on the last committed state.

An open file stays what it was when its name is given to another one. Then two processes would
debit two files under one name, so every transaction compares the name's file, and those of the
write-ahead log and its index, with the ones that were opened. SQLite writes the log into the file
when the last connection is closed, and removes it by name. A connection whose files are no longer
those of the names would overwrite what others have debited since: it is never closed in that way.
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
from quiltwork.budget.ledger.queueing import TurnsOfProcesses
from quiltwork.budget.ledger.schema import SQLITE_TABLES
from quiltwork.errors import StorageError
from quiltwork.files import OWNER_ONLY, sync_folder

_PRAGMAS = (
    "journal_mode=WAL",
    "synchronous=FULL",
    *(("fullfsync=ON",) if sys.platform == "darwin" else ()),  # which no other system has
)
_LOOK = 0.0001
"""Seconds between two attempts to take the write lock, of the one who is next."""
_LOOK_BESIDES, _PATIENCE = 0.002, 0.1
"""The same of one who is not, which it looks for after so many seconds all the same."""
_NO_CHECKPOINT_ON_CLOSE = 1006  # sqlite3.SQLITE_DBCONFIG_NO_CKPT_ON_CLOSE, from 3.12 on
_SENTENCES = {
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
"""Which file a name stands for; None for no file."""

_opened: list[list[_Identity]] = []
"""Of every connection of this process: which files were opened as the ledger, its log and index.

SQLite keeps one index for all connections of a process to one file. So while it has an older one
open, a new connection would read the new log by the old index.
"""
_turns = threading.RLock()
"""Held by the thread that opens or closes a connection, so that it finds `_opened` as it is."""


def _new_turns() -> None:
    """After a fork: the thread that had its turn is not in the child."""
    global _turns
    _turns = threading.RLock()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_new_turns)


class SqliteDatabase(Database):
    """The file at `path`, which is created by the first write."""

    errors: tuple[type[BaseException], ...] = (sqlite3.Error, UnicodeDecodeError)
    """The second is what a damaged name of a table, which SQLite quotes, makes of its message."""
    tables = SQLITE_TABLES

    def __init__(self, path: Path) -> None:
        """Remember the path; nothing is opened."""
        self.path = path
        self._names = self._found()
        self._opened: dict[int, list[_Identity]] = {}
        self._turns = TurnsOfProcesses()
        self._first: _Identity = None  # the file that was opened first, and then always
        self.url = f"sqlite:///{path}"

    def _found(self) -> list[str]:
        """The names of file, log and index: SQLite keeps those beside the file itself."""
        try:
            place = os.path.realpath(self.path)
        except (OSError, ValueError):  # no such place; whoever opens it says why
            place = str(self.path)
        return [f"{place}{suffix}" for suffix in ("", "-wal", "-shm")]

    def exists(self) -> bool:
        """Whether the file is there and not empty."""
        try:
            return self.path.stat().st_size > 0
        except FileNotFoundError:
            return False
        except (OSError, ValueError) as error:  # no right to search a folder, links in a circle
            raise self._unreachable(error) from None

    def connect(self) -> Connection:
        """Open the file, creating it if need be, with the write-ahead log and full sync.

        A new file is for its owner only; the log and the index beside it get the file's mode.
        """
        with _turns:
            return self._connect()

    def _connect(self) -> Connection:
        """Open the file in one's turn."""
        is_new = not self.read_only and not self.exists()
        if is_new:
            self._create()
        names = self._found()
        if not self._opened:
            self._names = names
        before = self._identities()
        other = self._first not in (None, before[0])
        if other or names != self._names or any(_overlaps(one, before) for one in _opened):
            raise self._replaced()
        left = Path(f"{self.path}-wal")
        if self.path.is_symlink() and left.exists() and left.stat().st_size:
            raise StorageError(
                f"The ledger {str(self.path)!r} is a link, and a log lies beside it: the "
                "file was moved without it, and lacks debits. Put it back in the link's place."
            )
        connection = self.open()
        try:
            for pragma in () if self.read_only else _PRAGMAS:
                self.rows(connection, f"PRAGMA {pragma}")
            self.rows(connection, "SELECT 1 FROM sqlite_master LIMIT 1")  # opens the log
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
        """Let go of the file, writing the log into it only if all three are still in place.

        Otherwise SQLite is told to leave the file alone, from Python 3.12 on. Before that there is
        no way to tell it so, and the connection is given up without being closed: its memory is
        never freed, and the operating system closes its files when the process ends.
        """
        with _turns:
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
                _opened[:] = [one for one in _opened if one is not opened]

    def check_in_place(self, connection: Connection) -> None:
        """Compare file, log and index with those that were opened. Cost: looking at three names.

        A symbolic link may lead elsewhere: then the file is another one, or has several names. One
        that takes the place of the file itself would give newcomers another log beside its target.

        Raises:
            StorageError: if one of them was moved, replaced or removed.
        """
        opened = self._opened[id(connection)]
        try:
            found = os.stat(self.path, follow_symlinks=self._names[0] != str(self.path))
        except (OSError, ValueError):
            raise self._replaced() from None
        moved = found.st_nlink > 1 and self._found() != self._names
        beside = self._names[self._names[0] == str(self.path) :]  # of which one was just looked at
        if (
            moved
            or (found.st_dev, found.st_ino) != opened[0]
            or [_identity(name) for name in beside] != opened[-len(beside) :]
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
            return  # SQLite, which is asked next, says why

    def _unreachable(self, error: Exception) -> StorageError:
        reason = getattr(error, "strerror", None) or error
        return StorageError(
            f"The ledger {str(self.path)!r} cannot be reached: {reason}. Check the path and the "
            "permissions of its folders."
        )

    def open(self) -> Connection:
        """Open the file with the standard library's SQLite, which waits for nobody (`rows`)."""
        return sqlite3.connect(
            f"file:{quote(os.fsencode(self.path))}?mode={'ro' if self.read_only else 'rwc'}",
            uri=True,
            isolation_level=None,
            check_same_thread=False,
            timeout=0,
        )

    def has_ledger(self, connection: Connection) -> bool:
        """Whether the tables are there.

        Raises:
            StorageError: if the file holds another program's tables.
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
        """Take the write lock at once, or only read.

        SQLite itself looks for the lock ever more rarely, up to ten times a second, while a debit
        holds it for less than a millisecond. So it is looked for here: by one process at short
        intervals, while the others sleep.
        """
        if wait is None:
            connection.execute("BEGIN")
            return
        if self._locked(connection, last=False):
            return
        start, file = time.monotonic(), "{}-{}".format(*(self._first or (0, 0)))
        with self._turns.next(file, min(_PATIENCE, wait / 2)) as is_next:
            while not self._locked(connection, last=time.monotonic() > start + wait):
                time.sleep(_LOOK if is_next else _LOOK_BESIDES)

    def rows(self, connection: Connection, statement: str) -> list[Any]:
        """Run a statement that others may be in the way of: while they begin or end the log."""
        deadline = time.monotonic() + self.timeout
        while True:
            try:
                return list(connection.execute(statement).fetchall())
            except self.errors as error:
                busy = self._code(error).startswith("SQLITE_BUSY")
                if not busy or time.monotonic() > deadline:
                    raise
            time.sleep(_LOOK)

    def _locked(self, connection: Connection, *, last: bool) -> bool:
        """Try to take the write lock; the `last` attempt raises SQLite's error."""
        try:
            connection.execute("BEGIN IMMEDIATE")
        except self.errors as error:
            if last or not self._code(error).startswith("SQLITE_BUSY"):
                raise
            return False
        return True

    def _code(self, error: BaseException) -> str:
        """SQLite's name of an error."""
        damaged = isinstance(error, UnicodeDecodeError)
        return "SQLITE_CORRUPT" if damaged else str(getattr(error, "sqlite_errorname", ""))

    def sentence(self, error: BaseException) -> StorageError:
        """Say what SQLite reports."""
        code = self._code(error)
        if self.read_only and code.startswith(("SQLITE_READONLY", "SQLITE_CANTOPEN")):
            return StorageError(
                f"The ledger {str(self.path)!r} cannot be read by this account now: SQLite reads "
                "it by the -wal and -shm files beside it, which are there while somebody has it "
                "open for writing and can be made only with the right to write to its folder."
            )
        known = next((text for name, text in _SENTENCES.items() if code.startswith(name)), None)
        if known is not None:
            known = known.format(timeout=self.timeout)
        else:
            known = f"failed ({error}). Nothing was released; a debit in its history stays spent"
        return StorageError(f"The ledger {str(self.path)!r} {known}.")

    def check_pages(self, connection: Connection) -> None:
        """Run SQLite's own integrity check.

        Raises:
            StorageError: if it finds anything.
        """
        found = [str(row[0]) for row in connection.execute("PRAGMA integrity_check").fetchall()]
        if found != ["ok"]:
            raise StorageError(
                f"The ledger {str(self.path)!r} {_SENTENCES['SQLITE_CORRUPT']}: {found[0]}."
            )


def _identity(name: str) -> _Identity:
    try:
        found = os.lstat(name)
    except (OSError, ValueError):
        return None
    return found.st_dev, found.st_ino


def _overlaps(opened: list[_Identity], found: list[_Identity]) -> bool:
    """Whether a file was opened with another log or index than it has now."""
    return opened[0] == found[0] and opened != found
