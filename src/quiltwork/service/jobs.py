"""Long work as rows: who asked for it, who is at it, how far it is, and who may still write.

A worker leases a job: it gets the next fencing number, and must be heard of before the lease ends.
Whatever it writes is written in a transaction that first looks whether that number is still the
job's (`fenced`), so a worker that was thought dead and comes back can write nothing. A job whose
worker was not heard of in time is leased once more; if that ends in the same way it has failed, as
it may be the job that kills its workers. Writers alternate as in the ledger, so a look and the
change that rests on it are one step on both databases.

What a job spends it pays for under its own mark, so nobody pays twice for it whoever does it.
"""

from __future__ import annotations

import secrets
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from typing import Any, Literal, TypeAlias

from quiltwork.client.records import Job
from quiltwork.exact import counted
from quiltwork.service.rights import Caller
from quiltwork.service.routes import Call, Feature, Service
from quiltwork.service.storage import Schema, Storage, TableOf, Transaction
from quiltwork.service.structs import Page, PageQuery, paged, shown_as

State: TypeAlias = Literal["queued", "running", "done", "failed", "cancelled"]

_MOST_ATTEMPTS = 2
_AHEAD = 600_000
"""Milliseconds: what is said to be later than that was written before the clock was set back."""
_LAST = 2**62
_TWICE = (
    "The worker ended twice while it was at this, without a word: it was killed, or there was not "
    "enough memory. Nothing was published; make the work smaller or give the worker more memory."
)


class LeaseLostError(Exception):
    """The job is somebody else's by now, or over: nothing may be written for it."""


class StoppedError(Exception):
    """The worker is told to leave."""


class CancelledError(Exception):
    """The job's owner wants it to stop."""


@dataclass
class Progress:
    """How far a job is; calling it raises where the work is to stop."""

    done: int = 0
    total: int = 0
    reason: Exception | None = None

    def __call__(self, done: int, total: int) -> None:
        """Tell how much is done, and stop here if there is a reason to."""
        self.done, self.total = int(done), int(total)
        if self.reason is not None:
            raise self.reason


@dataclass(frozen=True)
class Outcome:
    """What came of a job, and what is to be written with it in one transaction."""

    result: Mapping[str, Any]
    also: Callable[[Transaction], None] = field(default=lambda t: None)


@dataclass(frozen=True)
class StoredJob:
    """One piece of long work; times are milliseconds since 1970.

    `number` is its place among all jobs ever, `id` its name and the key under which it pays, `mark`
    what it was submitted once for, `kind` tells which function carries it out, `subject` the table
    or schedule that it is about. A worker must still hold `fence` to write; `beat` is when it was
    last heard of. `total` is 0 while nobody knows.
    """

    number: int
    id: str
    mark: str
    kind: str
    owner: str
    subject: str
    body: dict[str, Any]
    created: int
    state: State = "queued"
    attempts: int = 0
    fence: int = 0
    cancel: bool = False
    done: int = 0
    total: int = 0
    worker: str = ""
    beat: int = 0
    lease: int = 0
    started: int | None = None
    finished: int | None = None
    error: str = ""
    result: dict[str, Any] = field(default_factory=dict)


@dataclass(frozen=True)
class KnownWorker:
    """A worker, and when it was last heard of."""

    id: str
    started: int
    beat: int


Work: TypeAlias = "Callable[[Service, StoredJob, Progress], Outcome]"
WORKS: dict[str, Work] = {}
"""By kind of job, the function that carries it out."""
JOBS = TableOf("curator_jobs", StoredJob, "number", unique=("id", "mark"))
WORKERS = TableOf("curator_workers", KnownWorker, "id")
_OPEN = "state IN ('queued', 'running')"
_INDEX = f"CREATE INDEX curator_open_jobs ON curator_jobs (number) WHERE {_OPEN}"
FEATURE = Feature(Schema("jobs", (JOBS, WORKERS), (_INDEX,)))


def now() -> int:
    """Return the time in milliseconds since 1970."""
    return time.time_ns() // 1_000_000


def written(moment: int) -> str:
    """Write a moment as ISO 8601 in UTC."""
    return datetime.fromtimestamp(moment / 1000, UTC).isoformat(timespec="seconds")


def new_id() -> str:
    """Return a name for a job, fit for a path."""
    return secrets.token_hex(12)


def submit(
    t: Transaction,
    kind: str,
    owner: str,
    subject: str,
    body: Mapping[str, Any],
    mark: str,
    identity: str,
) -> str:
    """Put a job at the end of the queue, once for each `mark`; return its id."""
    known = JOBS.one(t, mark=mark)
    if known is not None:
        return known.id
    last = t.row("SELECT MAX(number) FROM curator_jobs")
    number = (last[0] or 0) + 1
    JOBS.add(t, StoredJob(number, identity, mark, kind, owner, subject, dict(body), now()))
    return identity


def claim(
    storage: Storage, worker: str, seconds: float, only: str | None = None
) -> StoredJob | None:
    """Lease the oldest job that waits or was abandoned, or `only` that one; None without any.

    A job that was abandoned as often as may be is failed on the way.
    """

    def oldest(t: Transaction) -> StoredJob | None:
        found = JOBS.all(
            t,
            f"{_OPEN} AND (state = 'queued' OR lease < ? OR lease > ?) "
            f"AND {'1 = 1' if only is None else 'id = ?'} ORDER BY number LIMIT 1",
            *(now(), now() + _AHEAD, *([] if only is None else [only])),
        )
        return found[0] if found else None

    if storage.read(oldest) is None:
        return None  # looking takes no lock from those who spend

    def work(t: Transaction) -> StoredJob | None:
        while (job := oldest(t)) is not None:
            if job.cancel or job.attempts >= _MOST_ATTEMPTS:
                _end(t, job, "cancelled" if job.cancel else "failed", error=_TWICE)
                continue
            JOBS.update(
                t,
                {"id": job.id},
                state="running",
                attempts=job.attempts + 1,
                fence=job.fence + 1,
                worker=worker,
                beat=now(),
                lease=now() + int(1000 * seconds),
                started=job.started or now(),
            )
            return JOBS.named(t, id=job.id)
        return None

    return storage.write(work)


def fenced(t: Transaction, lease: StoredJob) -> StoredJob:
    """Return the job as it is, if the lease still holds; the first step of all that is written."""
    job = JOBS.one(t, id=lease.id)
    if job is None or (job.state, job.fence) != ("running", lease.fence):
        raise LeaseLostError(lease.id)
    return job


def beat(storage: Storage, lease: StoredJob, done: int, total: int, seconds: float) -> bool:
    """Let it be known that the work goes on, and how far it is; return whether it is to stop."""

    def work(t: Transaction) -> bool:
        job = fenced(t, lease)
        until = now() + int(1000 * seconds)
        JOBS.update(t, {"id": job.id}, beat=now(), lease=until, done=done, total=total)
        return job.cancel

    return storage.write(work)


def worker_beat(storage: Storage, worker: str, started: int) -> None:
    """Let it be known that a worker is there, and forget those that are long gone."""

    def work(t: Transaction) -> None:
        t.rows("DELETE FROM curator_workers WHERE beat < ?", now() - 86_400_000)
        WORKERS.add(t, KnownWorker(worker, started, now()))
        WORKERS.update(t, {"id": worker}, beat=now())

    storage.write(work)


def worker_left(storage: Storage, worker: str) -> None:
    """Let it be known that a worker has stopped in good order."""
    storage.write(lambda t: WORKERS.delete(t, id=worker))


def finish(storage: Storage, lease: StoredJob, outcome: Outcome, total: int = 0) -> None:
    """End a job; what it has to write is written with it, or not at all; `total` was to be done."""

    def work(t: Transaction) -> None:
        job = fenced(t, lease)
        outcome.also(t)
        _end(t, replace(job, done=total, total=total), "done", result=outcome.result)

    storage.write(work)


def fail(storage: Storage, lease: StoredJob, state: State, error: str) -> None:
    """End a job without a result."""
    storage.write(lambda t: _end(t, fenced(t, lease), state, error=error))


def give_back(storage: Storage, lease: StoredJob) -> None:
    """Put a job back to its place, as by a worker that stops in good order; it does not count."""

    def work(t: Transaction) -> None:
        fenced(t, lease)
        attempts = lease.attempts - 1
        JOBS.update(t, {"id": lease.id}, state="queued", attempts=attempts, done=0)

    storage.write(work)


def cancel(t: Transaction, identity: str) -> StoredJob:
    """Cancel a job: at once while it waits, else at the next point where its worker looks."""
    job = JOBS.named(t, id=identity)
    if job.state in ("queued", "running"):
        JOBS.update(t, {"id": identity}, cancel=True)
    if job.state == "queued":
        _end(t, job, "cancelled")
    return JOBS.named(t, id=identity)


def _end(
    t: Transaction,
    job: StoredJob,
    state: State,
    error: str = "",
    result: Mapping[str, Any] | None = None,
) -> None:
    JOBS.update(
        t,
        {"id": job.id},
        state=state,
        finished=now(),
        error="" if state == "cancelled" else error,
        result=dict(result or {}),
        done=job.done,
        total=job.total,
    )


_NO_WORKER = 60
"""Seconds without a sign of life after which nobody is said to be at work."""


def shown(t: Transaction, job: StoredJob) -> Job:
    """Describe a job as it is now: while it waits with how many are before it, running ones too."""
    ahead, heard = None, job.beat
    if job.state == "queued":
        before = f"SELECT COUNT(*) FROM curator_jobs WHERE {_OPEN} AND number < ?"  # noqa: S608
        (ahead,) = t.row(before, job.number)
    if job.state != "running":
        (heard,) = t.row("SELECT MAX(beat) FROM curator_workers WHERE beat < ?", now() + _AHEAD)
    age = None if not heard else max(0, now() - heard) / 1000
    return shown_as(
        Job,
        job,
        place=ahead,
        worker_age=None if job.finished else age,
        waiting_for=_waiting_for(job, ahead, age),
        cancel_requested=job.cancel,
        created=written(job.created),
        started=None if job.started is None else written(job.started),
        finished=None if job.finished is None else written(job.finished),
    )


def _waiting_for(job: StoredJob, ahead: int | None, age: float | None) -> str:
    if job.state == "running":
        if job.cancel:
            return "its worker, to stop where it can"
        quiet = age is not None and age > _NO_WORKER
        return "another worker to take over: the one at it is silent" if quiet else "its worker"
    if job.state != "queued":
        return ""
    if age is None or age > _NO_WORKER:
        return "a worker: none is running; start one with `quiltwork worker`"
    return f"{counted(ahead, 'job')} before it" if ahead else "a worker, which looks every second"


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
    """Show where a job is, how far, and when its worker was last heard of."""
    return shown(t, JOBS.named(t, id=call.path["job"]))


@FEATURE.at("POST", "/v1/jobs/{job}/cancellation", "job.cancel")
def _cancel_job(call: Call, t: Transaction) -> Job:
    """Cancel a job: at once while it waits, else where its worker next looks."""
    found = cancel(t, call.path["job"])
    t.note("act", f"cancelled job {found.id} at {written(now())}", call.who)
    return shown(t, found)
