"""Schedules: releases that are planned, priced and paid for as a whole before the first of them.

All runs get noise of one scale, such that together they tell at most the schedule's epsilon
(`plan`), and all are debited in one step when the schedule is made. So an accepted schedule can
never be refused half way for want of budget, whatever others spend in between: what their releases
and its runs cost together is priced with all runs in it. (A reserve could not promise that, since
costs of releases that take turns do not add up.) The price is that nothing comes back: runs of a
schedule that is ended early stay paid for.

A run is one job under one mark. Its answer is stored with its debit, under the lease's fence, in
the transaction that ends the job. A worker that dies after it began to draw leaves a run that is
lost: drawing again would be choosing (docs/theory/ledger.md).
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from datetime import UTC, date, datetime, timedelta
from fractions import Fraction
from functools import partial
from typing import TYPE_CHECKING, Any, Literal, TypeAlias

from quiltwork.budget import Accountant, Planned, ReleasePlan, Request, Spending, plan
from quiltwork.budget.ledger.debits import stored_answer
from quiltwork.budget.ledger.records import Receipt
from quiltwork.errors import (
    InvalidInputError,
    NotPrivateError,
    QuiltworkError,
    StorageError,
)
from quiltwork.queries.document import from_document, to_document
from quiltwork.series.releases.paid_ahead import check_planned, release_planned
from quiltwork.service import jobs
from quiltwork.service.dataset_rows import have_arrived, reaching, series_of
from quiltwork.service.occurrences import Occurrence
from quiltwork.service.storage import Schema, TableOf, Transaction

if TYPE_CHECKING:
    from quiltwork.service.routes import Service

Missed: TypeAlias = Literal["catch-up", "skip"]


@dataclass(frozen=True)
class StoredSchedule:
    """A schedule as it was made."""

    id: str
    dataset: str
    owner: str
    state: str
    missed: Missed
    body: dict[str, Any]
    created: int


@dataclass(frozen=True)
class StoredRun:
    """One run: waiting, queued, drawing, done, skipped or lost."""

    schedule: str
    number: int
    due: int
    day: str
    start: int
    stop: int
    epsilon: str
    state: str
    debit: int
    job: str


SCHEDULES = TableOf("curator_schedules", StoredSchedule, "id")
RUNS = TableOf("curator_runs", StoredRun, "schedule, number")
SCHEMA = Schema(
    "schedules",
    (SCHEDULES, RUNS),
    (
        "CREATE INDEX curator_schedules_of ON curator_schedules (dataset, created)",
        "CREATE INDEX curator_runs_due ON curator_runs (due) WHERE state = 'waiting'",
    ),
)


def runs_of(t: Transaction, name: str) -> list[StoredRun]:
    """Return the runs of a schedule, in order."""
    return RUNS.all(t, "schedule = ? ORDER BY number", name)


_DAY = 86_400_000
_FARTHEST = 3653
"""Days: a schedule lets the series be as long as its last run, for everybody who asks about it."""
_SETTLE_AFTER = 60_000
"""Milliseconds after which the worker finishes what a server that ended began to make."""
_LOST = (
    "The worker ended after it had begun to draw this run and before its answer was stored. "
    "Drawing again would be choosing between answers, so the run is lost; it stays paid for."
)


@dataclass(frozen=True)
class ScheduleDraft:
    """A schedule that is planned and not made: what each run is, and its noise."""

    occurrences: tuple[Occurrence, ...]
    plan: ReleasePlan
    length: int

    @property
    def scale(self) -> float:
        """The noise of every run."""
        return self.plan.items[0].scale


def draft(
    service: Service, dataset: str, question: Any, epsilon: Any, found: tuple[Occurrence, ...]
) -> ScheduleDraft:
    """Plan all runs of a schedule; nothing is spent and no row is read."""
    query = check_planned(from_document(question))
    if "window" in question:
        raise InvalidInputError("A schedule sets the window of each run itself; leave it out.")
    status = service.ledger.status(dataset)
    if found[-1].due > datetime.now(UTC) + timedelta(days=_FARTHEST):
        raise InvalidInputError("A schedule ends within ten years from now.")
    length = max(status.length or 1, found[-1].stop)
    asked = [Planned(query.on(one.start, one.stop), label=str(one.day)) for one in found]
    planned = plan(
        status.beliefs, length=length, budget=epsilon, queries=asked, episode=status.episode
    )
    return ScheduleDraft(found, planned, length)


def identity(owner: str, key: str) -> str:
    """Return the id of the schedule that somebody makes under a key: asking again finds it."""
    return hashlib.sha256(json.dumps(["schedule", owner, key]).encode()).hexdigest()[:24]


def make(
    service: Service,
    dataset: str,
    owner: str,
    key: str,
    body: Mapping[str, Any],
    drafted: Callable[[], ScheduleDraft],
) -> StoredSchedule:
    """Make a schedule under a key of its owner, and debit all its runs, or nothing of it.

    A key that was used before finds what it made, and finishes what was begun.
    """
    name, at = identity(owner, key), jobs.now()
    known = service.read(lambda t: SCHEDULES.one(t, id=name))
    if known is not None:
        same = {**body, "scale": known.body["scale"]} == known.body
        if known.dataset != dataset or not same:
            raise InvalidInputError("This Idempotency-Key made another schedule; use a new one.")
        return _paid(service, name)
    asked = drafted()

    def insert(t: Transaction) -> None:
        if SCHEDULES.one(t, id=name) is not None:
            return  # by another request under the same key
        whole = {**body, "scale": asked.scale}
        made = StoredSchedule(name, dataset, owner, "making", body["missed"], whole, at)
        SCHEDULES.add(t, made)
        for one, item in zip(asked.occurrences, asked.plan.items, strict=True):
            when = (one.number, _milliseconds(one.due), str(one.day), one.start, one.stop)
            level = str(Fraction(item.cost_alone))
            RUNS.add(t, StoredRun(name, *when, level, "unpaid", debit=0, job=""))

    service.write(insert)
    return _paid(service, name)


def _paid(service: Service, name: str) -> StoredSchedule:
    """Debit the runs of a schedule, if they are not yet, and let it begin.

    Whoever does this a second time, a client or the worker, finds the debits by their keys.
    """
    stored, runs = service.read(lambda t: (SCHEDULES.named(t, id=name), runs_of(t, name)))
    if stored.state not in ("making", "refused"):
        return stored
    ledger, dataset = service.ledger, stored.dataset
    try:
        if (ledger.status(dataset).length or 0) < runs[-1].stop:
            ledger.extend(dataset, runs[-1].stop)
        receipts = ledger.debit_all(
            dataset,
            [_request(stored, run) for run in runs],
            stored.owner,
            [key_of(run) for run in runs],
        )
    except StorageError:
        raise  # perhaps it was debited: whoever asks next finds out
    except QuiltworkError:
        unmade = {"id": name, "state": "making"}
        service.write(lambda t: SCHEDULES.update(t, unmade, state="refused"))
        raise

    def begin(t: Transaction) -> StoredSchedule:
        if SCHEDULES.named(t, id=name).state in ("making", "refused"):
            SCHEDULES.update(t, {"id": name}, state="active")
            for run, receipt in zip(runs, receipts, strict=True):
                unpaid = {"schedule": name, "number": run.number, "state": "unpaid"}
                RUNS.update(t, unpaid, state="waiting", debit=receipt.number)
            t.note("act", f"made schedule {name} of {len(runs)} runs", stored.owner, dataset)
        return SCHEDULES.named(t, id=name)

    return service.write(begin)


def end(t: Transaction, name: str, who: str) -> None:
    """End a schedule: no further run begins. What was debited stays debited."""
    stored = SCHEDULES.named(t, id=name)
    if stored.state == "active":
        SCHEDULES.update(t, {"id": name}, state="ended")
        t.note("act", f"ended schedule {name}", who, stored.dataset)


def cost_by(service: Service, stored: StoredSchedule, day: date) -> float:
    """Return what everything debited so far tells, without the schedule's runs after a day."""
    runs = service.read(lambda t: runs_of(t, stored.id))
    limit = _milliseconds(datetime.combine(day, datetime.max.time(), UTC))
    later = {run.debit for run in runs if run.due > limit}
    status = service.ledger.status(stored.dataset)
    account = Accountant(status.beliefs, status.length, None, status.episode)
    history = service.ledger.history(stored.dataset)
    return account.cost_after(*(one.spending for one in history if one.number not in later))


def submit_due(service: Service) -> None:
    """Queue the runs that are due and whose data are there; skip what is missed and to be skipped.

    A run waits for every subject, and after half the time to the next run for none that is behind.
    With "skip", a run that has not begun when the next one is due is not made up for. A schedule
    of a retired dataset ends. Cost: one look at the runs that are due.
    """
    at = jobs.now()
    due = service.read(
        lambda t: t.rows(
            "SELECT r.schedule, r.number, r.due, r.stop, s.created, s.dataset, s.owner, s.missed, "
            "(SELECT MIN(n.due) FROM curator_runs n WHERE n.schedule = r.schedule "
            "AND n.number > r.number) FROM curator_runs r "
            "JOIN curator_schedules s ON s.id = r.schedule "
            "WHERE r.state = 'waiting' AND r.due <= ? AND s.state = 'active' ORDER BY r.due",
            at,
        )
    )
    for schedule, number, since, stop, created, dataset, owner, missed, following in due:
        patience = _DAY // 2 if following is None else (following - since) // 2
        if service.ledger.status(dataset).retired is not None:
            service.write(partial(end, name=schedule, who="the worker"))
        elif missed == "skip" and following is not None and following <= at:
            run = {"schedule": schedule, "number": number, "state": "waiting"}
            service.write(partial(RUNS.update, where=run, state="skipped"))
        elif have_arrived(service, dataset, stop, late=at >= max(since, created) + patience):
            _queue(service, schedule, number, owner)
    unsettled = service.read(
        lambda t: t.rows(
            "SELECT id FROM curator_schedules WHERE state = 'making' AND created < ?",
            at - _SETTLE_AFTER,
        )
    )
    for (name,) in unsettled:
        try:
            _paid(service, name)
        except StorageError:
            raise
        except QuiltworkError:
            continue  # and it says so: its state is "refused"


def _queue(service: Service, schedule: str, number: int, owner: str) -> None:
    identity = jobs.new_id()

    def work(t: Transaction) -> None:
        run = RUNS.named(t, schedule=schedule, number=number)
        if run.state == "waiting":
            body = {"schedule": schedule, "run": number}
            job = jobs.submit(t, "run", owner, schedule, body, key_of(run), identity)
            RUNS.update(t, {"schedule": schedule, "number": number}, state="queued", job=job)

    service.write(work)


def carry_out(service: Service, lease: jobs.StoredJob, progress: jobs.Progress) -> jobs.Outcome:
    """Draw one run and store its answer with its debit; the work of a job of kind "run".

    It is lost if an earlier worker had begun to draw it, and did not store an answer.
    """
    name, number = str(lease.body["schedule"]), int(lease.body["run"])
    own = {"schedule": name, "number": number}
    stored, run = service.read(lambda t: (SCHEDULES.named(t, id=name), RUNS.named(t, **own)))
    # all that can fail comes before the first draw
    data = reaching(series_of(service, stored.dataset), run.stop)
    query = from_document(stored.body["question"]).on(run.start, run.stop)
    status = service.ledger.status(stored.dataset)
    if status.retired is not None:
        raise InvalidInputError("The dataset is retired: nothing more is released from it.")
    progress(0, 1)

    def begin(t: Transaction) -> str:
        jobs.fenced(t, lease)
        after = "lost" if RUNS.named(t, **own).state == "drawing" else "drawing"
        RUNS.update(t, own, state=after)
        return after

    if service.write(begin) == "lost":
        raise NotPrivateError(_LOST)
    answer = release_planned(
        data,
        query,
        status.beliefs,
        _request(stored, run).spending,
        stored.body["scale"],
        Fraction(run.epsilon),
        stored.dataset,
        status.episode,
    )
    text, identity = answer.to_json(), jobs.new_id()
    receipt = Receipt(stored.dataset, run.debit, answer.spending)

    def store(t: Transaction) -> None:
        stored_answer(t.tables, receipt, identity, text)
        RUNS.update(t, own, state="done")
        t.note("act", f"ran {number} of {name}", stored.owner, stored.dataset)

    return jobs.Outcome({"schedule": name, "run": number}, store)


jobs.WORKS["run"] = carry_out


def _request(stored: StoredSchedule, run: StoredRun) -> Request:
    """What a run debits; the same whenever it is asked."""
    query = from_document(stored.body["question"]).on(run.start, run.stop)
    spending = Spending.of_query(query, stored.body["scale"], run.stop, label=f"run of {run.day}")
    document = {"schedule": stored.id, "run": run.number, "query": to_document(query)}
    return Request(spending, query.mechanism, document)


def key_of(run: StoredRun) -> str:
    """Return the key of a run's debit, and the mark of its job."""
    return f"schedule {run.schedule} run {run.number}"


def _milliseconds(moment: datetime) -> int:
    return int(moment.timestamp() * 1000)
