"""What can be asked about jobs: where they are, whether anybody is at work; and to stop."""

from __future__ import annotations

from quiltwork.budget.ledger.tables import now
from quiltwork.client.records import Job
from quiltwork.service import jobs
from quiltwork.service.problems import not_found
from quiltwork.service.rights import Caller
from quiltwork.service.routes import Call, Feature, Routes, Service
from quiltwork.service.storage import Transaction
from quiltwork.service.structs import Page, PageQuery, paged, shown_as

_NO_WORKER = 60
"""Seconds without a sign of life after which nobody is said to be at work."""


_routes = Routes()


def shown(t: Transaction, job: jobs.StoredJob) -> Job:
    """Describe a job as it is now."""
    place = jobs.place(t, job)
    heard = job.beat if job.state == "running" else jobs.worker_heard(t)
    age = None if not heard else max(0, jobs.now() - heard) / 1000
    return shown_as(
        Job,
        job,
        place=place,
        worker_age=None if job.finished else age,
        waiting_for=_waiting_for(job, place, age),
        cancel_requested=job.cancel,
        created=jobs.written(job.created),
        started=None if job.started is None else jobs.written(job.started),
        finished=None if job.finished is None else jobs.written(job.finished),
    )


def _waiting_for(job: jobs.StoredJob, place: int | None, age: float | None) -> str:
    if job.state == "running":
        if job.cancel:
            return "its worker, to stop where it can"
        quiet = age is not None and age > _NO_WORKER
        return "another worker to take over: the one at it is silent" if quiet else "its worker"
    if job.state != "queued":
        return ""
    if age is None or age > _NO_WORKER:
        return "a worker: none is running; start one with `quiltwork worker`"
    return f"{place} jobs before it" if place else "a worker, which looks every second"


def job_is_own(service: Service, caller: Caller, name: str) -> bool | None:
    """Whether a job is the caller's: she asked for it."""
    found = service.storage.read(lambda t: jobs.find(t, name))
    return None if found is None else found.owner == caller.member


@_routes.at("GET", "/v1/jobs", "job.list", query=PageQuery)
def _list_jobs(call: Call) -> Page[Job]:
    """List the long work that you asked for."""

    def read(t: Transaction) -> list[Job]:
        after = call.query.after
        before = int(after) if after and after.isdecimal() and len(after) < 16 else None
        found = jobs.jobs_of(t, call.caller.member, before, call.query.limit + 1)
        made.extend(job.number for job in found)
        return [shown(t, job) for job in found]

    made: list[int] = []
    items = call.service.storage.read(read)
    numbers = dict(zip((one.id for one in items), made, strict=True))
    return paged(items, call.query.limit, lambda one: numbers[one.id])


@_routes.at("GET", "/v1/jobs/{job}", "job.read")
def _show_job(call: Call) -> Job:
    """Show where a job is, how far, and when its worker was last heard of."""
    return shown_by_id(call.service, call.path["job"])


def shown_by_id(service: Service, identity: str) -> Job:
    """Describe a job that is there."""

    def read(t: Transaction) -> Job:
        found = jobs.find(t, identity)
        if found is None:
            raise not_found()
        return shown(t, found)

    return service.storage.read(read)


@_routes.at("POST", "/v1/jobs/{job}/cancellation", "job.cancel")
def _cancel_job(call: Call) -> Job:
    """Cancel a job: at once while it waits, else where its worker next looks."""

    def work(t: Transaction) -> Job:
        found = jobs.cancel(t, call.path["job"])
        if found is None:
            raise not_found()
        t.note("act", f"cancelled job {found.id} at {now()}", call.caller.member)
        return shown(t, found)

    return call.service.storage.write(work)


FEATURE = Feature(schema=jobs.SCHEMA, belongs={"job": job_is_own}, routes=tuple(_routes))
