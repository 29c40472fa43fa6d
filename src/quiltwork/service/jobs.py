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
from quiltwork.service.structs import Page, PageQuery, copy_fields, paged

State: TypeAlias = Literal["queued", "running", "done", "failed", "cancelled"]

_MOST_ATTEMPTS = 2
_LAST = 2**62
_DIED_TWICE = (
    "The publishing process died twice without an error message: it was killed, or memory ran "
    "out. Nothing was published. Use a smaller table or give the server more memory."
)


class LeaseLostError(Exception):
    """The job has ended or belongs to a later attempt, so this one may write nothing."""


@dataclass(frozen=True)
class StoredJob:
    """A job as it is stored; times are milliseconds since 1970.

    `number` counts all jobs ever, `id` is the public name, `subject` the table to publish.
    `attempts` counts how often the job was started; `total` is 0 until the amount of work is known.
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


def as_iso(moment: int) -> str:
    """Return a time as ISO 8601 in UTC."""
    return datetime.fromtimestamp(moment / 1000, UTC).isoformat(timespec="seconds")


def new_id() -> str:
    """Return a random name for a job."""
    return secrets.token_hex(12)


def submit(t: Transaction, owner: str, subject: str, identity: str) -> None:
    """Append a job to the queue, once for each identity."""
    if JOBS.find(t, id=identity) is None:
        (last,) = t.row("SELECT MAX(number) FROM curator_jobs")
        JOBS.add(t, StoredJob((last or 0) + 1, identity, owner, subject, now()))


def start_next(storage: Storage) -> StoredJob | None:
    """Start the oldest queued job and return it; None if the queue is empty."""

    def work(t: Transaction) -> StoredJob | None:
        for job in JOBS.select(t, "state = 'queued' ORDER BY number LIMIT 1"):
            started = replace(
                job, state="running", attempts=job.attempts + 1, started=job.started or now()
            )
            JOBS.update(
                *(t, {"id": job.id}),
                state=started.state,
                attempts=started.attempts,
                started=started.started,
            )
            return started
        return None

    if not storage.read(lambda t: t.row("SELECT 1 FROM curator_jobs WHERE state = 'queued'")):
        return None  # a read takes no lock, so an idle queue never delays a debit
    return storage.write(work)


def requeue_interrupted(storage: Storage) -> None:
    """Requeue or fail a job that was running: its process died, or the server was killed."""

    def work(t: Transaction) -> None:
        for job in JOBS.select(t, "state = 'running'"):
            if job.attempts < _MOST_ATTEMPTS:
                JOBS.update(t, {"id": job.id}, state="queued", done=0, total=0)
            else:
                _end(t, job, "failed", _DIED_TWICE)

    if storage.read(lambda t: t.row("SELECT 1 FROM curator_jobs WHERE state = 'running'")):
        storage.write(work)


def return_to_queue(storage: Storage, job: StoredJob) -> None:
    """Requeue a job because the server shuts down; the attempt does not count."""

    def work(t: Transaction) -> None:
        if _is_current(t, job):
            JOBS.update(t, {"id": job.id}, state="queued", attempts=job.attempts - 1, done=0)

    storage.write(work)


def is_running(storage: Storage, job: StoredJob) -> bool:
    """Whether an attempt may continue: the job was neither cancelled nor started again."""
    return storage.read(lambda t: _is_current(t, job))


def _is_current(t: Transaction, job: StoredJob) -> bool:
    current = JOBS.find(t, id=job.id)
    return current is not None and (current.state, current.attempts) == ("running", job.attempts)


def _fenced(storage: Storage, job: StoredJob, work: Callable[[Transaction], None]) -> None:
    """Write on behalf of an attempt; raise `LeaseLostError` if it is no longer the current one."""

    def checked(t: Transaction) -> None:
        if not _is_current(t, job):
            raise LeaseLostError(job.id)
        work(t)

    storage.write(checked)


def note_progress(storage: Storage, job: StoredJob, done: int, total: int) -> None:
    """Store the progress of a job."""
    _fenced(storage, job, lambda t: JOBS.update(t, {"id": job.id}, done=done, total=total))


def finish(storage: Storage, job: StoredJob, store: Callable[[Transaction], None]) -> None:
    """End a job and store its result, in one transaction."""

    def work(t: Transaction) -> None:
        store(t)
        _end(t, JOBS.get(t, id=job.id), "done")

    _fenced(storage, job, work)


def fail(storage: Storage, job: StoredJob, error: str) -> None:
    """End a job with an error instead of a result."""
    _fenced(storage, job, lambda t: _end(t, job, "failed", error))


def cancel(t: Transaction, identity: str) -> StoredJob:
    """Cancel a job at once; its process can write nothing more and will be killed."""
    job = JOBS.get(t, id=identity)
    if job.state in ("queued", "running"):
        _end(t, job, "cancelled")
    return JOBS.get(t, id=identity)


def _end(t: Transaction, job: StoredJob, state: State, error: str = "") -> None:
    done = {"done": job.total} if state == "done" else {}
    JOBS.update(t, {"id": job.id}, state=state, finished=now(), error=error, **done)


def job_record(t: Transaction, job: StoredJob) -> Job:
    """Return a job's record; while it is queued, with the number of jobs before it."""
    ahead = None
    if job.state == "queued":
        before = f"SELECT COUNT(*) FROM curator_jobs WHERE {_OPEN} AND number < ?"  # noqa: S608
        (ahead,) = t.row(before, job.number)
    return copy_fields(
        Job,
        job,
        place=ahead,
        created=as_iso(job.created),
        started=None if job.started is None else as_iso(job.started),
        finished=None if job.finished is None else as_iso(job.finished),
    )


def job_is_own(service: Service, caller: Caller, name: str) -> bool | None:
    """Whether the caller started a job."""
    job = service.read(lambda t: JOBS.find(t, id=name))
    return None if job is None else job.owner == caller.member


FEATURE.ownership["job"] = job_is_own


@FEATURE.at("GET", "/v1/jobs", "job.list", query=PageQuery)
def _list_jobs(call: Call, t: Transaction) -> Page[Job]:
    """List the jobs that you started."""
    after = call.query.after
    before = int(after) if after and after.isdecimal() and len(after) < 16 else _LAST
    where = "owner = ? AND number < ? ORDER BY number DESC LIMIT ?"
    jobs = JOBS.select(t, where, call.member, before, call.query.limit + 1)
    return paged(jobs, call.query.limit, lambda job: job.number).map(lambda job: job_record(t, job))


@FEATURE.at("GET", "/v1/jobs/{job}", "job.read")
def _show_job(call: Call, t: Transaction) -> Job:
    """Show the state and progress of a job."""
    return job_record(t, JOBS.get(t, id=call.path["job"]))


@FEATURE.at("POST", "/v1/jobs/{job}/cancellation", "job.cancel")
def _cancel_job(call: Call, t: Transaction) -> Job:
    """Cancel a job at once."""
    job = cancel(t, call.path["job"])
    t.note("act", f"cancelled job {job.id} at {as_iso(now())}", call.member)
    return job_record(t, job)
