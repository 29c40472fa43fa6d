"""The worker: a process that leases jobs, carries them out and is heard of all the while.

A thread beside the work renews the lease and asks whether the job is to stop; the work learns of it
at its next point of progress. Told to stop, a worker puts its job back and leaves. The server keeps
one worker running (`supervised`); more of them, here or on other machines, share the queue.
"""

from __future__ import annotations

import os
import secrets
import signal
import socket
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from typing import TYPE_CHECKING

from quiltwork.errors import QuiltworkError, StorageError
from quiltwork.service import jobs, schedules
from quiltwork.service.jobs import (
    CancelledError,
    LeaseLostError,
    Progress,
    StoppedError,
    StoredJob,
)

if TYPE_CHECKING:
    from quiltwork.service.routes import Service
    from quiltwork.service.settings import Settings

_FAULT = "A fault of the curator ended this; nothing was published. Tell whoever runs it."
_LONGEST_PAUSE = 30.0
_STOP_SECONDS = 20.0


@dataclass(frozen=True)
class Pace:
    """Seconds: of a lease, between two signs of life, between two looks at the queue."""

    lease: float = 10.0
    beat: float = 2.0
    look: float = 0.5


def carry_out(
    service: Service, lease: StoredJob, pace: Pace, stop: threading.Event | None = None
) -> None:
    """Do a leased job and write how it ended, unless it is somebody else's by then."""
    progress = Progress()
    storage = service.storage
    with _heard_of(service, lease, progress, pace, stop), suppress(LeaseLostError):
        try:
            outcome = jobs.WORKS[lease.kind](service, lease, progress)
            jobs.finish(storage, lease, outcome, progress.total)
        except StoppedError:
            jobs.give_back(storage, lease)
        except CancelledError:
            jobs.fail(storage, lease, "cancelled", "")
        except (LeaseLostError, StorageError):
            raise
        except QuiltworkError as error:
            jobs.fail(storage, lease, "failed", str(error))
        except Exception:
            jobs.fail(storage, lease, "failed", _FAULT)  # what was raised may quote rows


@contextmanager
def _heard_of(
    service: Service, lease: StoredJob, progress: Progress, pace: Pace, stop: threading.Event | None
) -> Iterator[None]:
    def keep(over: threading.Event) -> None:
        while not over.wait(pace.beat):
            with suppress(StorageError):  # perhaps the next one gets through
                try:
                    storage = service.storage
                    if jobs.beat(storage, lease, progress.done, progress.total, pace.lease):
                        progress.reason = CancelledError()
                except LeaseLostError as lost:
                    progress.reason = lost
                    return
            if stop is not None and stop.is_set() and progress.reason is None:
                progress.reason = StoppedError()

    with _beside(keep):
        yield


@contextmanager
def _beside(work: Callable[[threading.Event], None]) -> Iterator[None]:
    """Let a thread work during a block, until its event is set at the end of it."""
    over = threading.Event()
    thread = threading.Thread(target=work, args=(over,), daemon=True)
    thread.start()
    try:
        yield
    finally:
        over.set()
        thread.join()


def work(service: Service, pace: Pace, stop: threading.Event) -> None:
    """Carry out jobs and what is due of schedules, one after the other, until told to stop."""
    name, started = _name(), jobs.now()

    def be_heard() -> None:
        with suppress(StorageError):
            jobs.worker_beat(service.storage, name, started)

    def keep() -> None:
        while not stop.wait(pace.beat):
            be_heard()

    be_heard()
    threading.Thread(target=keep, daemon=True).start()
    while not stop.is_set():
        try:
            schedules.submit_due(service)
            lease = jobs.claim(service.storage, name, pace.lease)
            if lease is not None:
                carry_out(service, lease, pace, stop)
                continue
        except QuiltworkError:
            stop.wait(pace.beat)  # the database is away; leases tell the others
        stop.wait(pace.look)
    with suppress(StorageError):
        jobs.worker_left(service.storage, name)


def finish_waiting(service: Service, pace: Pace) -> None:
    """Carry out what is due and what waits, until nothing does."""
    schedules.submit_due(service)
    while (lease := jobs.claim(service.storage, _name(), pace.lease)) is not None:
        carry_out(service, lease, pace)


def _name() -> str:
    return f"{socket.gethostname()}-{os.getpid()}-{secrets.token_hex(4)}"


def run(service: Service, pace: Pace, *, supervised: bool) -> None:
    """Be a worker until SIGTERM, SIGINT, or, supervised, until the server is gone."""
    stop = threading.Event()
    for one in (signal.SIGTERM, signal.SIGINT):
        signal.signal(one, lambda *_: stop.set())
    if supervised:
        threading.Thread(target=_until_closed, args=(stop,), daemon=True).start()
    work(service, pace, stop)


def _until_closed(stop: threading.Event) -> None:
    while os.read(0, 1):  # a buffered reader could not be closed while this thread waits in it
        pass
    stop.set()


@contextmanager
def supervised(settings: Settings) -> Iterator[None]:
    """Keep a worker process running during a block: it is started again whenever it dies.

    It hears from a pipe when the server is gone, however that ended. The database's URL, which may
    hold a password, goes by the environment.
    """
    environment = {**os.environ, "QUILTWORK_DATABASE": settings.database}
    command = [sys.executable, "-m", "quiltwork", "worker", "--supervised"]
    command += ["--data", str(settings.data.absolute())]

    def keep(stop: threading.Event) -> None:
        pause = 1.0
        while not stop.is_set():
            began = jobs.now()
            process = subprocess.Popen(  # noqa: S603
                command, stdin=subprocess.PIPE, stdout=subprocess.DEVNULL, env=environment
            )
            while process.poll() is None and not stop.wait(0.2):
                pass
            _end(process)
            quick = jobs.now() - began < 1000 * _LONGEST_PAUSE
            stop.wait(pause)
            pause = min(2 * pause, _LONGEST_PAUSE) if quick else 1.0

    with _beside(keep):
        yield


def _end(process: subprocess.Popen[bytes]) -> None:
    """Let a worker put its job back; one that does not answer is killed, and its lease ends."""
    if process.stdin is not None:
        process.stdin.close()
    try:
        process.wait(_STOP_SECONDS)
    except subprocess.TimeoutExpired:
        process.kill()
        process.wait()
