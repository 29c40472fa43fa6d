"""What can be asked about schedules: their price before they are made, runs and answers."""

from __future__ import annotations

import json
from datetime import UTC, datetime
from fractions import Fraction
from functools import partial
from typing import Annotated, Any, Literal

import msgspec
from msgspec import Meta

from quiltwork.budget import Accountant, Status
from quiltwork.budget.accounting.account import Account
from quiltwork.budget.ledger.shares import refuse_above_cap, refuse_reserved, unused_by_others
from quiltwork.client.records import Schedule, ScheduledRun
from quiltwork.errors import BudgetExceeded, InvalidInputError
from quiltwork.exact import float_up
from quiltwork.service import schedules
from quiltwork.service.dataset_rows import data_clock
from quiltwork.service.datasets import DATASETS, registered
from quiltwork.service.jobs import JOBS, written
from quiltwork.service.occurrences import (
    MOST_RUNS,
    DataClock,
    Every,
    occurrences,
    read_day,
    read_instant,
)
from quiltwork.service.problems import Problem, not_found
from quiltwork.service.rights import Caller
from quiltwork.service.routes import Call, Feature, Service
from quiltwork.service.schedules import SCHEDULES
from quiltwork.service.storage import Transaction
from quiltwork.service.structs import (
    Document,
    Number,
    Page,
    PageQuery,
    exact_number,
    paged,
    shown_as,
)

_Short = Annotated[str, Meta(max_length=100)]


_OF_DATASET = "/v1/datasets/{dataset}/schedules"
_ONE = "/v1/schedules/{schedule}"
FEATURE = Feature(schedules.SCHEMA)


class NewSchedule(Document, frozen=True):
    """Publish the answer to `question` for every day, week or month, on the day after it.

    `epsilon` is what all runs together may tell. `begins` and `step` say when time point 1 is and
    how many seconds follow it to the next; leave them out where the rows came with times.
    """

    question: dict[str, Any]
    epsilon: Number
    every: Every
    at: _Short
    zone: _Short
    first: _Short
    runs: Annotated[int, Meta(ge=1, le=MOST_RUNS)]
    missed: Literal["catch-up", "skip"] = "catch-up"
    begins: _Short | None = None
    step: Annotated[int, Meta(ge=1, le=10**9)] | None = None


class CostBy(Document, frozen=True):
    """What everything released from the dataset will have cost by a day."""

    day: str
    total: float


class Forecast(Document, frozen=True):
    """What a schedule would cost and how good its answers would be; nothing was spent.

    All runs are debited when it is made, `before` to `after`; `by` says what will be out by when.
    """

    runs: int
    first_due: str
    last_due: str
    noise: float
    expected_error: float
    verdict: str
    epsilon_of_one: float
    before: float
    after: float
    budget: float
    fits: bool
    refusal: str | None
    by: list[CostBy]


class RunAnswer(Document, frozen=True):
    """The release of a run, as it is stored."""

    schedule: str
    run: int
    release: dict[str, Any]


class DayQuery(Document, frozen=True):
    """By which day; today, in UTC, if nothing is said."""

    by: _Short = ""


def schedule_is_own(service: Service, caller: Caller, name: str) -> bool | None:
    """Whether a schedule is of a dataset that is the caller's own."""
    found = service.read(lambda t: SCHEDULES.one(t, id=name))
    return None if found is None else service.belongs(caller, "dataset", found.dataset)


FEATURE.belongs["schedule"] = schedule_is_own


def _drafted(call: Call) -> schedules.ScheduleDraft:
    asked, dataset = call.body, call.path["dataset"]
    found = registered(call.service, dataset)
    if found.kind != "series" or found.deleted:
        raise InvalidInputError("A schedule publishes from a series that was not deleted.")
    clock = data_clock(call.service, dataset)
    if clock is not None and (asked.begins is not None or asked.step is not None):
        raise InvalidInputError("The rows came with times; leave begins and step out.")
    if clock is None:
        if asked.begins is None or asked.step is None:
            raise InvalidInputError(
                "The rows do not say when they are: give begins, the instant of time point 1, and "
                "step, the seconds to the next."
            )
        clock = DataClock(read_instant(asked.begins, "begins"), asked.step)
    when = (asked.every, asked.at, asked.zone, asked.first, asked.runs)
    level = exact_number(asked.epsilon, "epsilon")
    return schedules.draft(call.service, dataset, asked.question, level, occurrences(*when, clock))


@FEATURE.at("POST", f"{_OF_DATASET}/preview", "schedule.preview", request=NewSchedule)
def _preview_schedule(call: Call) -> Forecast:
    """Say what a schedule would cost as a whole, and by when; nothing is spent."""
    drafted, ledger, dataset = _drafted(call), call.service.ledger, call.path["dataset"]
    status, history = ledger.status(dataset), ledger.history(dataset)
    account = Accountant(status.beliefs, drafted.length, status.exact_budget, status.episode)
    runs, items = drafted.plan.spendings, drafted.plan.items
    before = [debit.spending for debit in history if debit.analyst == call.who]
    own = account.after(*before, *runs)
    account.record(*(debit.spending for debit in history))
    marks = sorted({(len(runs) * part + 3) // 4 for part in range(1, 5)})
    dues = [one.due for one in drafted.occurrences]
    by = [
        CostBy(day=str(dues[number - 1].date()), total=account.cost_after(*runs[:number]))
        for number in marks
    ]
    refusal = _refusal(status, call.who, account.after(*runs), own)
    return Forecast(
        runs=len(runs),
        first_due=dues[0].isoformat(timespec="minutes"),
        last_due=dues[-1].isoformat(timespec="minutes"),
        noise=drafted.scale,
        expected_error=items[0].expected_error,
        verdict=items[0].verdict,
        epsilon_of_one=max(one.cost_alone for one in items),
        before=account.epsilon(),
        after=by[-1].total,
        budget=status.budget,
        fits=refusal is None,
        refusal=refusal,
        by=by,
    )


def _refusal(status: Status, member: str, whole: Account, own: Account) -> str | None:
    """Say why a ledger would refuse debits: `whole` and `own` are the accounts with them."""
    total, share = whole.total, status.shares.get(member)
    charged = status.charged.get(member, Fraction(0)) + max(Fraction(0), total - status.exact_total)
    kept = unused_by_others(status.shares, status.charged, member)
    try:
        if status.retired is not None:
            return f"The dataset is retired ({status.retired})."
        if not whole.fits(status.exact_budget):
            return f"All runs would raise the total to {float_up(total):.4g}, above the budget."
        refuse_reserved(status.dataset, kept, total, status.exact_budget)
        if share is not None and share.cap is not None:
            refuse_above_cap(member, share.cap, charged, min(total, own.total))
    except BudgetExceeded as refusal:
        return str(refusal)
    return None


@FEATURE.at("POST", _OF_DATASET, "schedule.create", request=NewSchedule, status=201, spends=True)
def _make_schedule(call: Call) -> Schedule:
    """Make a schedule and debit all its runs, or refuse it as a whole."""
    dataset, body = call.path["dataset"], msgspec.to_builtins(call.body)
    drafted = partial(_drafted, call)
    stored = schedules.make(call.service, dataset, call.who, call.key, body, drafted)
    return call.service.read(lambda t: _shown(t, stored))


def _shown(t: Transaction, stored: schedules.StoredSchedule) -> Schedule:
    asked = {name: value for name, value in stored.body.items() if name != "scale"}
    return shown_as(
        Schedule,
        stored,
        created=written(stored.created),
        asked=asked,
        noise=stored.body["scale"],
        runs=[_run(t, stored, run) for run in schedules.runs_of(t, stored.id)],
    )


def _run(
    t: Transaction, stored: schedules.StoredSchedule, run: schedules.StoredRun
) -> ScheduledRun:
    state, error = run.state, ""
    job = JOBS.one(t, id=run.job) if run.job and state in ("queued", "drawing", "lost") else None
    if job is not None:
        state = {"lost": "lost"}.get(run.state, job.state)
        error = job.error
    if state == "waiting" and stored.state == "ended":
        state = "ended"
    return shown_as(
        ScheduledRun,
        run,
        due=written(run.due),
        window=[run.start, run.stop],
        epsilon=float_up(Fraction(run.epsilon)),
        state=state,
        error=error,
    )


@FEATURE.at("GET", _OF_DATASET, "schedule.list", query=PageQuery)
def _list_schedules(call: Call, t: Transaction) -> Page[Schedule]:
    """List the schedules of a dataset."""
    latest = "dataset = ? ORDER BY created DESC, id"
    found = SCHEDULES.all(t, latest, call.path["dataset"])
    ids = [one.id for one in found]
    after = call.query.after
    start = ids.index(after) + 1 if after in ids else 0
    wanted = found[start : start + call.query.limit + 1]
    page = paged(wanted, call.query.limit, lambda one: one.id)
    return page.shown(lambda one: _shown(t, one))


@FEATURE.at("GET", _ONE, "schedule.read")
def _show_schedule(call: Call, t: Transaction) -> Schedule:
    """Show a schedule and where each of its runs is."""
    return _shown(t, SCHEDULES.named(t, id=call.path["schedule"]))


@FEATURE.at("GET", f"{_ONE}/cost", "schedule.read", query=DayQuery)
def _cost_of_schedule(call: Call) -> CostBy:
    """Say what everything debited will have told by a day."""
    by = call.query.by
    day = read_day(by, "by") if by else datetime.now(UTC).date()
    stored = call.service.read(lambda t: SCHEDULES.named(t, id=call.path["schedule"]))
    return CostBy(day=str(day), total=schedules.cost_by(call.service, stored, day))


@FEATURE.at("POST", f"{_ONE}/end", "schedule.end")
def _end_schedule(call: Call, t: Transaction) -> Schedule:
    """Let no further run begin; what was debited stays debited."""
    stored = SCHEDULES.named(t, id=call.path["schedule"])
    if call.who not in (stored.owner, DATASETS.named(t, name=stored.dataset).owner):
        raise Problem(403, "forbidden", "Who made a schedule ends it, or the dataset's owner.")
    schedules.end(t, stored.id, call.who)
    return _show_schedule(call, t)


@FEATURE.at("GET", f"{_ONE}/runs/{{run}}", "release.read", free=("run",))
def _show_run(call: Call, t: Transaction) -> RunAnswer:
    """Show the release of one run."""
    number = call.path["run"]
    if not number.isdecimal() or len(number) > 9:
        raise not_found()
    stored = SCHEDULES.named(t, id=call.path["schedule"])
    run = schedules.RUNS.named(t, schedule=stored.id, number=int(number))
    text = call.service.ledger.answer(stored.dataset, schedules.key_of(run), stored.owner)
    if text is None:
        raise not_found()
    return RunAnswer(schedule=stored.id, run=run.number, release=json.loads(text))
