"""Files that are moved, replaced or removed under running processes.

An older copy of the ledger takes the place of the file, or the file or what SQLite keeps beside it
goes away, while processes debit. Whoever had it open must stop granting: what is acknowledged
afterwards could be spent a second time by those who open what the name stands for now.
"""

from __future__ import annotations

import multiprocessing
import shutil
import time
from collections.abc import Callable
from multiprocessing.synchronize import Event
from pathlib import Path
from typing import Any

from evidence.faults.outcome import Outcome
from evidence.faults.work import FILE, INDEPENDENT, LENGTH, scratch
from quiltwork.budget import Ledger, Spending
from quiltwork.errors import StorageError

PROCESSES = 3
_LEVEL = 1e-5


def _over(folder: Path) -> None:
    (folder / "older.db").replace(folder / FILE)


def _away(folder: Path) -> None:
    (folder / FILE).rename(folder / "elsewhere.db")


def _linked(folder: Path) -> None:
    _away(folder)
    (folder / FILE).symlink_to(folder / "older.db")


def _without(suffix: str) -> Callable[[Path], None]:
    return lambda folder: (folder / f"{FILE}{suffix}").unlink()


WAYS: dict[str, Callable[[Path], None]] = {
    "an older copy in its place": _over,
    "moved": _away,
    "a link in its place": _linked,
    "deleted": _without(""),
    "without its log": _without("-wal"),
    "without its index": _without("-shm"),
}


def under_running_processes(repeats: int = 10) -> Outcome:
    """Replace the file in every way, at some moment; count who goes on granting."""
    outcome = Outcome("files replaced, moved or removed under running processes (sqlite)")
    for number in range(repeats):
        for name, way in WAYS.items():
            outcome.add(_trial(name, way, 0.02 + 0.013 * number))
    return outcome


def _trial(name: str, way: Callable[[Path], None], seconds: float) -> str | None:
    with scratch() as place:
        folder = Path(place)
        with Ledger.open(f"sqlite:///{folder / FILE}") as ledger:
            ledger.create("a", INDEPENDENT, LENGTH, 1)
        shutil.copy(folder / FILE, folder / "older.db")
        context = multiprocessing.get_context("fork")
        replaced, told = context.Event(), context.Queue()
        ready = context.Barrier(PROCESSES + 1)
        workers = [
            context.Process(target=_debit, args=(folder, ready, replaced, told))
            for _ in range(PROCESSES)
        ]
        for worker in workers:
            worker.start()
        ready.wait(60)
        time.sleep(seconds)
        way(folder)
        replaced.set()
        found = [told.get(timeout=60) for _ in workers]
        for worker in workers:
            worker.join(60)
        # one debit may have been told between the look at the files and the replacement
        late = max(granted for granted, _ in found)
        if late > 1:
            return f"{name}: {late} debits were granted after that"
        silent = [end for _, end in found if end != "StorageError"]
        return f"{name}: a process ended with {silent[0]}" if silent else None


def _debit(folder: Path, ready: Any, replaced: Event, told: Any) -> None:
    """Debit until that fails; tell how often it was granted after the replacement."""
    ledger, late, end = Ledger.open(f"sqlite:///{folder / FILE}"), 0, "nothing"
    ledger.debit("a", Spending.dp(_LEVEL, 1, LENGTH))
    ready.wait(60)
    deadline = time.monotonic() + 30
    try:
        while time.monotonic() < deadline and late < 20:
            before = replaced.is_set()
            ledger.debit("a", Spending.dp(_LEVEL, 1, LENGTH))
            late += before
    except StorageError:
        end = "StorageError"
    except Exception as error:  # anything else is a violation, and told as one
        end = repr(error)
    told.put((late, end))
