"""Full and read-only disks: nothing is granted that was not stored, and nothing breaks."""

from __future__ import annotations

import os
import resource
import signal
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path

import apsw

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
from quiltwork.budget import Ledger, Spending
from quiltwork.errors import StorageError


def full_at_every_write(stride: int = 1) -> Outcome:
    """The disk is full from the n-th write on; later there is room again."""
    outcome = Outcome("disk full at every write")
    number, failed = 1, True
    while failed:
        with scratch() as folder:
            _prepare(Path(folder))
            marks: list[Mark] = []
            failed = _fills(Path(folder), number, marks.append)
            problem = check_after_crash(Path(folder), marks, None)
            outcome.add(problem and f"full from write {number}: {problem}")
        number += stride
    return outcome


def _fills(folder: Path, number: int, mark: Callable[[Mark], None]) -> bool:
    """Whether a release failed, as it should with a sentence, for want of room."""
    count = 0

    def watch(call: Call) -> None:
        nonlocal count
        count += call.kind == "write"
        if call.kind == "write" and count >= number:
            raise apsw.FullError("no room")

    ledger = watched_ledger(folder / FILE, watch)
    try:
        keyed_releases(ledger, "a", range(3), mark)
    except StorageError:
        return True
    finally:
        ledger.close()
    return False


def small_files(steps: int = 12) -> Outcome:
    """The operating system refuses to let files grow (RLIMIT_FSIZE), in a real process."""
    outcome = Outcome("files that may not grow")
    for step in range(steps):
        with scratch() as folder:
            _prepare(Path(folder))
            size = (Path(folder) / FILE).stat().st_size
            ended = in_child(lambda n=size + 4096 * step, f=folder: _limited(Path(f), n))
            outcome.add(_wrongly_limited(Path(folder), ended, step))
    return outcome


def _limited(folder: Path, size: int) -> int:
    """How many releases were made before there was no room, said with a sentence."""
    signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
    resource.setrlimit(resource.RLIMIT_FSIZE, (size, size))
    ledger = Ledger.open(f"sqlite:///{folder / FILE}")
    made = 0
    with suppress(StorageError):
        for _ in range(8):
            ledger.debit("a", Spending.dp(0.01, 1, LENGTH)).complete("x" * 3000)
            made += 1
    return made


def _wrongly_limited(folder: Path, made: int, step: int) -> str | None:
    with Ledger.open(f"sqlite:///{folder / FILE}") as ledger:
        states = [debit.state for debit in ledger.history("a")]
        ledger.verify()
    if made < 0 or states.count("released") != made or len(states) > made + 1:
        return f"{step} more pages: {made} shown, {states} stored"
    return None


def read_only() -> Outcome:
    """Neither a file nor a folder that may not be written grants anything."""
    outcome = Outcome("read-only files and folders")
    for file_mode, folder_mode in ((0o444, 0o755), (0o444, 0o555), (0o644, 0o555)):
        with scratch() as folder:
            _prepare(Path(folder))
            (Path(folder) / FILE).chmod(file_mode)
            Path(folder).chmod(folder_mode)
            refused = in_child(lambda f=folder: _refused(Path(f))) == 1
            Path(folder).chmod(0o755)
            (Path(folder) / FILE).chmod(0o644)
            problem = None if refused else "a debit was granted, or the error was no sentence"
            outcome.add(problem or check_after_crash(Path(folder), [Mark("dataset", "a")], None))
    return outcome


def _refused(folder: Path) -> bool:
    if os.geteuid() == 0:
        os.setgroups([])
        os.setgid(65534)
        os.setuid(65534)  # root may write everything; nobody may not
    try:
        Ledger.open(f"sqlite:///{folder / FILE}").debit("a", Spending.dp(0.1, 1, LENGTH))
    except StorageError as error:
        return "permissions" in str(error)
    return False


def _prepare(folder: Path) -> None:
    with Ledger.open(f"sqlite:///{folder / FILE}") as ledger:
        ledger.create("a", INDEPENDENT, LENGTH, 1)


def in_child(work: Callable[[], int]) -> int:
    """What `work` returns in a process of its own (0..99), or −1 if it fails."""
    child = os.fork()
    if child == 0:
        try:
            os._exit(int(work()))
        except BaseException:
            os._exit(100)
    _, status = os.waitpid(child, 0)
    code = os.waitstatus_to_exitcode(status)
    return code if 0 <= code < 100 else -1
