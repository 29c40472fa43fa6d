"""The queue of publications, as rows of a table: queued, running, then done, failed or cancelled.

One child process of the server works at a time (`publication_process.py`). The number of its
attempt is its fence: every write first checks that the job is still running under that number, so
a child that was presumed dead, or whose job was cancelled, can write nothing. A job whose child
died is retried once; if the second attempt dies too, the job has failed, since it may itself be
what kills the process.
"""

from __future__ import annotations

import secrets
import time
from collections.abc import Callable
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from typing import Literal, TypeAlias

from quiltwork.client.records import Job
from quiltwork.service.rights import Caller
from quiltwork.service.routes import Call, Feature, Service
from quiltwork.service.storage import Schema, Storage, TableOf, Transaction
from quiltwork.service.structs import Page, PageQuery, paged, shown_as

State: TypeAlias = Literal["queued", "running", "done", "failed", "cancelled"]

_MOST_ATTEMPTS = 2
_LAST = 2**62
_DIED_TWICE = (
    "The process that published it ended twice without a word: it was killed, or there was not "
    "enough memory. Nothing was published; make the table smaller or give the server more memory."
)


class LeaseLostError(Exception):
    """The job is over, or a later attempt's: nothing may be written for it."""


@dataclass(frozen=True)
class StoredJob:
    """One piece of long work; times are milliseconds since 1970.

    `number` is its place among all jobs ever, `id` its name, `subject` the table that it is about.
    `attempts` counts how often it was begun; `total` is 0 while nobody knows.
    """

    number: int
    id: str
    owner: str
    subject: str
    created: int
    state: State = "queued"
    attempts: int = 0
    done: int = 0
    total: int = 0
    started: int | None = None
    finished: int | None = None
    error: str = ""


JOBS = TableOf("curator_jobs", StoredJob, "number", unique=("id",))
_OPEN = "state IN ('queued', 'running')"
_INDEX = f"CREATE INDEX curator_open_jobs ON curator_jobs (number) WHERE {_OPEN}"
FEATURE = Feature(Schema("jobs", (JOBS,), (_INDEX,)))


def now() -> int:
    """Return the time in milliseconds since 1970."""
    return time.time_ns() // 1_000_000


def written(moment: int) -> str:
    """Write a moment as ISO 8601 in UTC."""
    return datetime.fromtimestamp(moment / 1000, UTC).isoformat(timespec="seconds")


def new_id() -> str:
    """Return a name for a job, fit for a path."""
    return secrets.token_hex(12)


def submit(t: Transaction, owner: str, subject: str, identity: str) -> None:
    """Put a job at the end of the queue, once for each identity."""
    if JOBS.one(t, id=identity) is None:
        (last,) = t.row("SELECT MAX(number) FROM curator_jobs")
        JOBS.add(t, StoredJob((last or 0) + 1, identity, owner, subject, now()))


def begin_next(storage: Storage) -> StoredJob | None:
    """Begin the oldest job that waits; None without any."""

    def work(t: Transaction) -> StoredJob | None:
        for job in JOBS.all(t, "state = 'queued' ORDER BY number LIMIT 1"):
            begun = replace(
                job, state="running", attempts=job.attempts + 1, started=job.started or now()
            )
            JOBS.update(
                *(t, {"id": job.id}),
                state=begun.state,
                attempts=begun.attempts,
                started=begun.started,
            )
            return begun
        return None

    if not storage.read(lambda t: t.row("SELECT 1 FROM curator_jobs WHERE state = 'queued'")):
        return None  # looking takes no lock from those who spend
    return storage.write(work)


def take_up_again(storage: Storage) -> None:
    """Put back, or fail, what was running: its process has died, or the server was killed."""

    def work(t: Transaction) -> None:
        for job in JOBS.all(t, "state = 'running'"):
            if job.attempts < _MOST_ATTEMPTS:
                JOBS.update(t, {"id": job.id}, state="queued", done=0, total=0)
            else:
                _end(t, job, "failed", _DIED_TWICE)

    if storage.read(lambda t: t.row("SELECT 1 FROM curator_jobs WHERE state = 'running'")):
        storage.write(work)


def put_back(storage: Storage, job: StoredJob) -> None:
    """Put a job back, as by a server that stops in good order; the attempt does not count."""

    def work(t: Transaction) -> None:
        if _is_current(t, job):
            JOBS.update(t, {"id": job.id}, state="queued", attempts=job.attempts - 1, done=0)

    storage.write(work)


def is_running(storage: Storage, job: StoredJob) -> bool:
    """Whether an attempt at a job is to go on: it was neither cancelled nor taken up again."""
    return storage.read(lambda t: _is_current(t, job))


def _is_current(t: Transaction, job: StoredJob) -> bool:
    found = JOBS.one(t, id=job.id)
    return found is not None and (found.state, found.attempts) == ("running", job.attempts)


def _fenced(storage: Storage, job: StoredJob, work: Callable[[Transaction], None]) -> None:
    """Write for an attempt at a job, or raise `LeaseLostError`."""

    def alone(t: Transaction) -> None:
        if not _is_current(t, job):
            raise LeaseLostError(job.id)
        work(t)

    storage.write(alone)


def note_progress(storage: Storage, job: StoredJob, done: int, total: int) -> None:
    """Write how far a job is."""
    _fenced(storage, job, lambda t: JOBS.update(t, {"id": job.id}, done=done, total=total))


def finish(storage: Storage, job: StoredJob, store: Callable[[Transaction], None]) -> None:
    """End a job; what came of it is stored in the same transaction, or not at all."""

    def work(t: Transaction) -> None:
        store(t)
        _end(t, JOBS.named(t, id=job.id), "done")

    _fenced(storage, job, work)


def fail(storage: Storage, job: StoredJob, error: str) -> None:
    """End a job without a result."""
    _fenced(storage, job, lambda t: _end(t, job, "failed", error))


def cancel(t: Transaction, identity: str) -> StoredJob:
    """Cancel a job, at once: the process that is at it is killed, and can write nothing more."""
    job = JOBS.named(t, id=identity)
    if job.state in ("queued", "running"):
        _end(t, job, "cancelled")
    return JOBS.named(t, id=identity)


def _end(t: Transaction, job: StoredJob, state: State, error: str = "") -> None:
    done = {"done": job.total} if state == "done" else {}
    JOBS.update(t, {"id": job.id}, state=state, finished=now(), error=error, **done)


def shown(t: Transaction, job: StoredJob) -> Job:
    """Describe a job as it is now: while it waits, with how many are before it."""
    ahead = None
    if job.state == "queued":
        before = f"SELECT COUNT(*) FROM curator_jobs WHERE {_OPEN} AND number < ?"  # noqa: S608
        (ahead,) = t.row(before, job.number)
    return shown_as(
        Job,
        job,
        place=ahead,
        created=written(job.created),
        started=None if job.started is None else written(job.started),
        finished=None if job.finished is None else written(job.finished),
    )


def job_is_own(service: Service, caller: Caller, name: str) -> bool | None:
    """Whether a job is the caller's: she asked for it."""
    found = service.read(lambda t: JOBS.one(t, id=name))
    return None if found is None else found.owner == caller.member


FEATURE.belongs["job"] = job_is_own


@FEATURE.at("GET", "/v1/jobs", "job.list", query=PageQuery)
def _list_jobs(call: Call, t: Transaction) -> Page[Job]:
    """List the long work that you asked for."""
    after = call.query.after
    before = int(after) if after and after.isdecimal() and len(after) < 16 else _LAST
    where = "owner = ? AND number < ? ORDER BY number DESC LIMIT ?"
    found = JOBS.all(t, where, call.who, before, call.query.limit + 1)
    page = paged(found, call.query.limit, lambda one: one.number)
    return page.shown(lambda job: shown(t, job))


@FEATURE.at("GET", "/v1/jobs/{job}", "job.read")
def _show_job(call: Call, t: Transaction) -> Job:
    """Show where a job is, and how far."""
    return shown(t, JOBS.named(t, id=call.path["job"]))


@FEATURE.at("POST", "/v1/jobs/{job}/cancellation", "job.cancel")
def _cancel_job(call: Call, t: Transaction) -> Job:
    """Cancel a job, at once."""
    found = cancel(t, call.path["job"])
    t.note("act", f"cancelled job {found.id} at {written(now())}", call.who)
    return shown(t, found)
