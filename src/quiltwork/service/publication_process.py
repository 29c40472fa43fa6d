"""Publications of tables, each made by a child process of the server, one at a time.

Anonymizing can take minutes and so much memory that the system kills the process, which must not be
the server. The two communicate through the database only (`jobs.py`): the child stores its progress
and, in one transaction, the publication; the server polls whether the job was cancelled and then
kills the child. When the server dies, the child's standard input closes, and the child exits.
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

_FAULT = "Internal error of the curator. Nothing was published. Report it to the operator."
DATABASE = "QUILTWORK_DATABASE"
"""The environment variable that passes the database's URL to a child process."""
_POLL_SECONDS = 0.25
_PROGRESS_SECONDS = 1.0
_RETRY_SECONDS = 2.0
"""The pause before an unreachable database is tried again."""


@contextmanager
def publishing(service: Service) -> Iterator[None]:
    """Make queued publications during a block, also those that a killed server left unfinished."""
    jobs.requeue_interrupted(service.storage)
    stop = threading.Event()
    thread = threading.Thread(target=_keep_publishing, args=(service, stop), daemon=True)
    thread.start()
    try:
        yield
    finally:
        stop.set()
        service.publication_queued.set()
        thread.join()


def _keep_publishing(service: Service, stop: threading.Event) -> None:
    service.publication_queued.set()  # jobs may be waiting since before the start
    while not stop.is_set():
        service.publication_queued.clear()  # before looking, so that no later signal is lost
        try:
            jobs.requeue_interrupted(service.storage)
            job = jobs.start_next(service.storage)
            if job is not None:
                _watch(service, job, stop)
                continue
        except QuiltworkError:
            stop.wait(_RETRY_SECONDS)  # the database is unreachable
            continue
        service.publication_queued.wait()


def _watch(service: Service, job: StoredJob, stop: threading.Event) -> None:
    """Run the child for one job; kill it if the job is cancelled or the server stops."""
    settings, command = service.settings, [sys.executable, "-m", "quiltwork.service"]
    environment = {
        **{name: text for name, text in os.environ.items() if name != KEY},
        **({KEY: settings.key.hex()} if settings.key else {}),
        DATABASE: settings.database,  # may hold a password, so not on the command line
    }
    child = subprocess.Popen(  # noqa: S603
        [*command, str(settings.data.absolute()), job.id],
        stdin=subprocess.PIPE,
        stdout=subprocess.DEVNULL,
        env=environment,
    )
    running = True
    while child.poll() is None and running and not stop.is_set():
        time.sleep(_POLL_SECONDS)
        with suppress(StorageError):  # an unreachable database does not stop the child
            running = jobs.is_running(service.storage, job)
    child.kill()
    child.wait()
    child.stdin.close()  # type: ignore[union-attr]
    shutil.rmtree(_folder(service), ignore_errors=True)  # leftovers of a killed child
    if stop.is_set():
        jobs.return_to_queue(service.storage, job)


def _folder(service: Service) -> Path:
    return service.settings.data / "publishing"


class _StoredProgress:
    """Stores a job's progress once a second; raises `LeaseLostError` once it is cancelled."""

    def __init__(self, service: Service, job: StoredJob) -> None:
        self.done = self.total = 0
        self._store, self._last = partial(jobs.note_progress, service.storage, job), 0.0

    def __call__(self, done: int, total: int) -> None:
        self.done, self.total = int(done), int(total)
        if time.monotonic() >= self._last + _PROGRESS_SECONDS:
            self._last = time.monotonic()
            self._store(self.done, self.total)


def run_job(service: Service, job: StoredJob) -> None:
    """Make the publication of a started job, and store how it ended."""
    progress, folder = _StoredProgress(service, job), _folder(service)
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
            jobs.fail(service.storage, job, _FAULT)  # the error itself may quote rows
        finally:
            shutil.rmtree(folder, ignore_errors=True)


def finish_waiting(service: Service) -> None:
    """Make all queued publications in this process, for demonstrations and tests."""
    while (job := jobs.start_next(service.storage)) is not None:
        run_job(service, job)
