"""Publications: each is made in a child process of the server, one after the other.

Anonymizing takes minutes and much memory, and may be killed for it; the server must not. All that
the two tell each other is in the database (`jobs.py`): the child writes how far it is and, in one
transaction, what it made; the server looks whether the job was cancelled, and kills the child then.
A child whose server is gone, however that ended, finds its standard input closed and ends at once.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from functools import partial
from pathlib import Path

from quiltwork.errors import QuiltworkError, StorageError
from quiltwork.service import jobs
from quiltwork.service.collaborative_tables import published_from
from quiltwork.service.jobs import LeaseLostError, StoredJob
from quiltwork.service.routes import Service
from quiltwork.service.settings import KEY, private_folder

_FAULT = "A fault of the curator ended this; nothing was published. Tell whoever runs it."
DATABASE = "QUILTWORK_DATABASE"
"""The environment variable that tells a child which database it is about."""
_BETWEEN_LOOKS = 0.25
_BETWEEN_NOTES = 1.0
_AWAY = 2.0
"""Seconds until a database that cannot be reached is tried again."""


@contextmanager
def publishing(service: Service) -> Iterator[None]:
    """Carry out publications during a block; what a server that was killed left is taken up."""
    jobs.take_up_again(service.storage)
    stop = threading.Event()
    thread = threading.Thread(target=_keep_publishing, args=(service, stop), daemon=True)
    thread.start()
    try:
        yield
    finally:
        stop.set()
        service.queued.set()
        thread.join()


def _keep_publishing(service: Service, stop: threading.Event) -> None:
    service.queued.set()  # perhaps something waits already
    while not stop.is_set():
        service.queued.clear()
        try:
            jobs.take_up_again(service.storage)
            job = jobs.begin_next(service.storage)
            if job is not None:
                _watch(service, job, stop)
                continue
        except QuiltworkError:
            stop.wait(_AWAY)  # the database is away
            continue
        service.queued.wait()


def _watch(service: Service, job: StoredJob, stop: threading.Event) -> None:
    """Let a child make one publication; kill it if the job is cancelled or the server stops."""
    settings, command = service.settings, [sys.executable, "-m", "quiltwork.service"]
    environment = {
        **{name: text for name, text in os.environ.items() if name != KEY},
        **({KEY: settings.key.hex()} if settings.key else {}),
        DATABASE: settings.database,  # which may hold a password: on no command line
    }
    child = subprocess.Popen(  # noqa: S603
        [*command, str(settings.data.absolute()), job.id],
        stdin=subprocess.PIPE,
        stdout=subprocess.DEVNULL,
        env=environment,
    )
    running = True
    while child.poll() is None and running and not stop.is_set():
        time.sleep(_BETWEEN_LOOKS)
        with suppress(StorageError):  # while the database is away the child goes on
            running = jobs.is_running(service.storage, job)
    child.kill()
    child.wait()
    child.stdin.close()  # type: ignore[union-attr]
    shutil.rmtree(_folder(service), ignore_errors=True)  # what a killed one has left
    if stop.is_set():
        jobs.put_back(service.storage, job)


def _folder(service: Service) -> Path:
    return service.settings.data / "publishing"


class _NotedProgress:
    """Tells the database now and then how far a job is; raises once it was cancelled."""

    def __init__(self, service: Service, job: StoredJob) -> None:
        self.done = self.total = 0
        self._note, self._noted = partial(jobs.note_progress, service.storage, job), 0.0

    def __call__(self, done: int, total: int) -> None:
        self.done, self.total = int(done), int(total)
        if time.monotonic() >= self._noted + _BETWEEN_NOTES:
            self._noted = time.monotonic()
            self._note(self.done, self.total)


def carry_out(service: Service, job: StoredJob) -> None:
    """Make the publication of a job that was begun, and write how it ended."""
    progress, folder = _NotedProgress(service, job), _folder(service)
    shutil.rmtree(folder, ignore_errors=True)
    with suppress(LeaseLostError):
        try:
            store = published_from(service, job.subject, private_folder(folder), progress)
            jobs.note_progress(service.storage, job, progress.total, progress.total)
            jobs.finish(service.storage, job, store)
        except (LeaseLostError, StorageError):
            raise
        except QuiltworkError as error:
            jobs.fail(service.storage, job, str(error))
        except Exception:
            jobs.fail(service.storage, job, _FAULT)  # what was raised may quote rows
        finally:
            shutil.rmtree(folder, ignore_errors=True)


def finish_waiting(service: Service) -> None:
    """Make all publications that wait, in this process: for demonstrations."""
    while (job := jobs.begin_next(service.storage)) is not None:
        carry_out(service, job)
