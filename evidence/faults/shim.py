"""A layer below SQLite that sees every write and sync, and can record, stop or fail them.

SQLite's own file functions do the work; `watch` is told about each call before it happens and may
raise, or end the process. APSW brings the SQLite that lets Python take this place; the ledger runs
on it unchanged.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from urllib.parse import quote

import apsw

from quiltwork.budget import Ledger
from quiltwork.budget.ledger.sqlite import SqliteDatabase
from quiltwork.budget.ledger.store import Store

NAME = "quiltwork-faults"


@dataclass(frozen=True)
class Call:
    """One call that changes what is stored: a write, truncate, sync or delete of a file."""

    kind: str
    path: str
    offset: int = 0
    data: bytes = b""


Watch = Callable[[Call], None]


class _File(apsw.VFSFile):
    def __init__(self, name: Any, flags: list[int], watch: Watch) -> None:
        self._path = str(name.filename() if isinstance(name, apsw.URIFilename) else name)
        self._watch = watch
        super().__init__("", name, flags)

    def xWrite(self, data: bytes, offset: int) -> None:  # noqa: N802
        self._watch(Call("write", self._path, offset, bytes(data)))
        super().xWrite(data, offset)

    def xTruncate(self, newsize: int) -> None:  # noqa: N802
        self._watch(Call("truncate", self._path, newsize))
        super().xTruncate(newsize)

    def xSync(self, flags: int) -> None:  # noqa: N802
        self._watch(Call("sync", self._path))
        super().xSync(flags)


class _Layer(apsw.VFS):
    def __init__(self, watch: Watch) -> None:
        self._watch = watch
        super().__init__(NAME, base="")

    def xOpen(self, name: Any, flags: list[int]) -> _File:  # noqa: N802
        return _File(name, flags, self._watch)

    def xDelete(self, filename: str, syncdir: bool) -> None:  # noqa: N802
        self._watch(Call("delete", filename))
        super().xDelete(filename, syncdir)


class WatchedDatabase(SqliteDatabase):
    """An SQLite ledger whose every write and sync is told to `watch` first.

    The write-ahead log is copied back every few pages, so that short runs meet checkpoints too.
    """

    errors = (apsw.Error,)

    def __init__(self, path: Path, watch: Watch) -> None:
        super().__init__(path)
        self._watch = watch
        self._layer = _Layer(watch)

    def open(self) -> Any:
        flags = apsw.SQLITE_OPEN_READWRITE | apsw.SQLITE_OPEN_CREATE | apsw.SQLITE_OPEN_URI
        connection = apsw.Connection(
            f"file:{quote(str(self.path))}?mode=rwc&vfs={NAME}", flags=flags
        )
        connection.set_busy_timeout(1000)
        connection.execute("PRAGMA wal_autocheckpoint=12")
        return connection

    def _code(self, error: BaseException) -> str:
        """Name APSW's errors as the standard library does."""
        code = getattr(error, "extendedresult", 0)
        plain = apsw.mapping_result_codes.get(code, "")
        return str(apsw.mapping_extended_result_codes.get(code, plain))


def watched_ledger(path: Path, watch: Watch) -> Ledger:
    """A ledger on the watched layer."""
    return Ledger(Store(WatchedDatabase(path, watch)))
