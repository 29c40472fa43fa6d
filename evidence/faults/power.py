"""Power loss: everything that could be on the disk after the current fails at any moment.

A run is recorded call by call. Whatever was synced is on the disk. Of the writes since a file's
last sync any may be there or not, in any order, the last one perhaps torn in two; a new or deleted
file may or may not have its name changed in the folder. Every such disk must hold an intact ledger
with all that had been granted and shown by then.
"""

from __future__ import annotations

import random
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path

from evidence.faults.outcome import Outcome
from evidence.faults.shim import Call, watched_ledger
from evidence.faults.work import Mark, check_after_crash, run_work, scratch
from quiltwork.budget.ledger import snapshots


@dataclass
class _File:
    """What is surely on the disk (None: no such file) and what may be."""

    durable: bytearray | None = None
    pending: list[Call] = field(default_factory=list)


def record(folder: Path) -> tuple[list[Call | Mark], list[str]]:
    """Run the usual work on a watched ledger; return what happened and the log's hashes."""
    happened: list[Call | Mark] = []
    usual, snapshots.TAIL = snapshots.TAIL, 2  # so that the current fails around snapshots, too
    hashes = run_work(lambda path: watched_ledger(path, happened.append), folder, happened.append)
    snapshots.TAIL = usual
    return happened, hashes


def replay(stride: int = 1, subsets: int = 4, seed: int = 0) -> Outcome:
    """Crash after every `stride`-th call, on every disk that is possible there."""
    outcome = Outcome("power loss at every write and sync")
    with scratch() as home:
        happened, hashes = record(Path(home))
        calls = [at for at, one in enumerate(happened) if isinstance(one, Call)]
        chance = random.Random(seed)  # noqa: S311
        for at in calls[::stride]:
            marks = [one for one in happened[:at] if isinstance(one, Mark)]
            for name, disk in _disks(happened[:at], subsets, chance):
                with scratch() as folder:
                    for path, content in disk.items():
                        (Path(folder) / Path(path).name).write_bytes(content)
                    problem = check_after_crash(Path(folder), marks, hashes)
                outcome.add(problem and f"after call {at}, {name}: {problem}")
    return outcome


def _disks(
    happened: list[Call | Mark], subsets: int, chance: random.Random
) -> Iterator[tuple[str, dict[str, bytes]]]:
    files = _files([one for one in happened if isinstance(one, Call)])
    most = max((len(file.pending) for file in files.values()), default=0)
    yield "nothing unsynced", _disk(files, lambda _, i, n: False)
    yield "everything", _disk(files, lambda _, i, n: True)
    yield "the last write torn", _disk(files, lambda _, i, n: True, torn=True)
    for k in range(most):
        yield f"all but unsynced write {k}", _disk(files, lambda _, i, n, k=k: i != k)
        yield f"only unsynced write {k}", _disk(files, lambda _, i, n, k=k: i == k)
        yield f"the first {k} unsynced writes", _disk(files, lambda _, i, n, k=k: i < k)
    for _ in range(subsets if most else 0):
        yield "any of them", _disk(files, lambda _, i, n: chance.random() < 0.5)
    for name in files:
        yield f"only {Path(name).suffix}", _disk(files, lambda path, i, n, name=name: path == name)


def _files(calls: list[Call]) -> dict[str, _File]:
    """What each file has durable and pending after these calls."""
    files: dict[str, _File] = {}
    for call in calls:
        file = files.setdefault(call.path, _File())
        if call.kind != "sync":
            file.pending.append(call)
            continue
        is_new = file.durable is None
        file.durable = _applied(file.durable, file.pending)
        file.pending = []
        if is_new:  # SQLite then syncs the folder, and with it the names of all files
            _sync_folder(files)
    return files


def _sync_folder(files: dict[str, _File]) -> None:
    for file in files.values():
        while any(call.kind == "delete" for call in file.pending):
            call = file.pending.pop(0)
            if call.kind == "delete":
                file.durable = None


def _disk(files: dict[str, _File], keep, torn: bool = False) -> dict[str, bytes]:
    found = {}
    for path, file in files.items():
        kept = [c for i, c in enumerate(file.pending) if keep(path, i, len(file.pending))]
        if torn and kept and kept[-1].kind == "write":
            last = kept[-1]
            kept[-1] = Call("write", last.path, last.offset, last.data[: len(last.data) // 2])
        content = _applied(file.durable, kept)
        if content is not None:
            found[path] = bytes(content)
    return found


def _applied(content: bytearray | None, calls: list[Call]) -> bytearray | None:
    result = None if content is None else bytearray(content)
    for call in calls:
        if call.kind == "delete":
            result = None
            continue
        result = bytearray() if result is None else result
        if call.kind == "truncate":
            del result[call.offset :]
            result.extend(bytes(call.offset - len(result)))
        else:
            result.extend(bytes(max(0, call.offset - len(result))))
            result[call.offset : call.offset + len(call.data)] = call.data
    return result
