"""kill -9 at every step: before and after every statement, and at every write and sync.

A child process does keyed releases and says on a pipe what it was granted and what it shows; it
is killed at one point after the other. Whatever was shown must then be stored and debited, and
the ledger must go on working.
"""

from __future__ import annotations

import json
import os
import re
import shutil
import signal
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

from evidence.faults.outcome import Outcome
from evidence.faults.shim import Call, watched_ledger
from evidence.faults.work import (
    FILE,
    INDEPENDENT,
    LENGTH,
    Mark,
    check_after_crash,
    keyed_releases,
    scratch,
)
from quiltwork.budget import Ledger
from quiltwork.budget.ledger import snapshots

RELEASES = 3
CALLS = "pwrite64,fdatasync,fsync,ftruncate,unlink,write,pwritev"


def at_every_statement(stride: int = 1) -> Outcome:
    """Die before or after the n-th statement to the database, the commits among them."""
    outcome = Outcome("kill -9 before and after every statement")
    for after in (False, True):
        _until_it_lives(outcome, lambda n, after=after: _dying_ledger(n, after), stride)
    return outcome


def at_every_write(stride: int = 1) -> Outcome:
    """Die at the n-th write or sync that SQLite asks for."""
    outcome = Outcome("kill -9 at every write and sync below SQLite")
    _until_it_lives(outcome, _dying_files, stride)
    return outcome


def at_every_system_call(stride: int = 1, most: int = 1000) -> Outcome:
    """Die at the n-th system call that writes or syncs, in an ordinary process under strace."""
    outcome = Outcome("kill -9 at every write and sync system call")
    if not can_trace():
        outcome.note = "strace is missing or may not trace here"
        return outcome
    for number in range(1, most, stride):
        with scratch() as folder:
            _prepare(Path(folder))
            shown, code = _traced(Path(folder), number)
            outcome.add(_problem(Path(folder), shown, number))
        if code == 0:
            break
    return outcome


def can_trace() -> bool:
    """Whether strace is there and may be used."""
    if not shutil.which("strace"):
        return False
    tried = subprocess.run(["strace", "-qq", "-o", os.devnull, "true"], capture_output=True)
    return tried.returncode == 0


def _until_it_lives(
    outcome: Outcome, opened: Callable[[int], Callable[[Path], Ledger]], stride: int
) -> None:
    """Kill at points 1, 1 + stride, … until the child gets through."""
    number, code = 1, -1
    while code != 0:
        with scratch() as folder:
            _prepare(Path(folder))
            shown, code = _forked(Path(folder), opened(number))
            outcome.add(_problem(Path(folder), shown, number))
        number += stride


def _prepare(folder: Path) -> None:
    with Ledger.open(f"sqlite:///{folder / FILE}") as ledger:
        ledger.create("a", INDEPENDENT, LENGTH, 1)


def _problem(folder: Path, shown: list[Mark], number: int) -> str | None:
    found = check_after_crash(folder, [Mark("dataset", "a"), *shown], None)
    return found and f"killed at point {number}: {found}"


def _forked(folder: Path, opened: Callable[[Path], Ledger]) -> tuple[list[Mark], int]:
    """What a child has shown before it ended, and how it ended."""
    reading, writing = os.pipe()
    child = os.fork()
    if child == 0:
        os.close(reading)
        try:
            _child(opened(folder / FILE), writing)
            os._exit(0)
        except BaseException:
            os._exit(1)
    os.close(writing)
    with os.fdopen(reading) as pipe:
        shown = list(_marks(pipe.read()))
    _, status = os.waitpid(child, 0)
    code = os.waitstatus_to_exitcode(status)
    if code not in (0, -signal.SIGKILL):
        raise RuntimeError(f"the child ended with {code}")
    return shown, code


def _child(ledger: Ledger, pipe: int) -> None:
    snapshots.TAIL = 1  # so that some deaths are between an entry and its snapshot

    def tell(mark: Mark) -> None:
        os.write(pipe, (json.dumps([mark.kind, mark.name, mark.answer]) + "\n").encode())

    keyed_releases(ledger, "a", range(RELEASES), tell)
    ledger.close()


def _marks(text: str) -> Iterator[Mark]:
    yield from (Mark(*json.loads(line)) for line in text.splitlines() if line.endswith("]"))


def _die() -> None:
    os.kill(os.getpid(), signal.SIGKILL)


def _dying_ledger(number: int, after: bool) -> Callable[[Path], Ledger]:
    """A ledger whose n-th statement is its last."""
    count = 0

    class Dying:
        def __init__(self, connection: Any) -> None:
            self._connection = connection

        def execute(self, *arguments: Any) -> Any:
            nonlocal count
            count += 1
            if count == number and not after:
                _die()
            result = self._connection.execute(*arguments)
            if count == number:
                _die()
            return result

        def close(self) -> None:
            self._connection.close()

    def opened(path: Path) -> Ledger:
        ledger = Ledger.open(f"sqlite:///{path}")
        database: Any = ledger._store.database
        usual = database.open
        database.open = lambda: Dying(usual())
        return ledger

    return opened


def _dying_files(number: int) -> Callable[[Path], Ledger]:
    """A ledger whose n-th write or sync never happens."""
    count = 0

    def watch(_: Call) -> None:
        nonlocal count
        count += 1
        if count == number:
            _die()

    return lambda path: watched_ledger(path, watch)


def _traced(folder: Path, number: int) -> tuple[list[Mark], int]:
    """Run the child under strace, which kills it at its n-th call; marks go to a file."""
    told = folder / "told"
    names = [
        folder / FILE,
        folder / f"{FILE}-wal",
        folder / f"{FILE}-shm",
        folder / f"{FILE}-journal",
    ]
    paths = [text for name in names for text in ("-P", str(name))]
    inject = f"inject={CALLS}:signal=SIGKILL:when={number}"
    strace = ["strace", "-f", "-qq", "-o", os.devnull, *paths, "-e", f"trace={CALLS}", "-e", inject]
    ran = subprocess.run(
        [*strace, sys.executable, "-m", "evidence.faults.crash", str(folder), str(told)],
        cwd=Path(__file__).resolve().parents[2],
        capture_output=True,
        text=True,
    )
    if ran.returncode not in (0, -signal.SIGKILL, 128 + signal.SIGKILL):
        raise RuntimeError(re.sub(r"\s+", " ", ran.stderr)[-300:])
    text = told.read_text() if told.exists() else ""
    told.unlink(missing_ok=True)
    return list(_marks(text)), ran.returncode


if __name__ == "__main__":
    sink = os.open(sys.argv[2], os.O_WRONLY | os.O_CREAT | os.O_APPEND)
    _child(Ledger.open(f"sqlite:///{Path(sys.argv[1]) / FILE}"), sink)
