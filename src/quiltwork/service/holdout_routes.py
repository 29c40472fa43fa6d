"""What can be asked about holdouts: to register, open and ask them, and their standings."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated, Literal

import msgspec
from msgspec import Meta

from quiltwork.exact import float_up, to_fraction, typed_fraction
from quiltwork.holdout.transcript import Transcript
from quiltwork.service import holdout_rows, holdouts
from quiltwork.service.admission import admit, listed, own
from quiltwork.service.jobs import written
from quiltwork.service.members import paged
from quiltwork.service.problems import Problem, not_found
from quiltwork.service.routes import Call, Part, Route, Service
from quiltwork.service.storage import Transaction
from quiltwork.service.structs import Document, Name, Number, Page, PageQuery, exact_number
from quiltwork.service.tables import told_without

_Column = Annotated[str, Meta(min_length=1, max_length=200)]
_Label = Annotated[str, Meta(max_length=1000)]
Metric = Literal["accuracy", "neg_brier_score", "neg_mean_absolute_error", "neg_mean_squared_error"]


State = Literal["waiting for tables", "ready to open", "open"]


class NewHoldout(Document, frozen=True):
    """A holdout to register; `metrics` names those that may be asked, errors with public ends."""

    name: Name
    id_column: _Column
    target: _Column
    threshold: Number
    noise: Number
    budget: Annotated[int, Meta(ge=1, le=10**6)]
    group: _Column | None = None
    metrics: Annotated[dict[Metric, tuple[Number, Number] | None], Meta(min_length=1)] = (
        msgspec.field(default_factory=lambda: {"accuracy": None})
    )


class Promise(Document, frozen=True):
    """With probability `confidence` every answer is within `tolerance` of the truth."""

    questions: int
    tolerance: float
    confidence: float
    epsilon: float


class Holdout(Document, frozen=True):
    """A holdout: how many rounds are left, and what is promised for so many questions."""

    name: str
    owner: str
    id_column: str
    target: str
    group: str | None
    metrics: list[str]
    state: State
    created: str
    budget: int
    remaining: int
    asked: int
    rows: int | None
    promise: Promise | None


class Holdouts(Page, frozen=True, kw_only=True):
    """A page of holdouts."""

    items: list[Holdout]


class SideRows(Document, frozen=True):
    """How many rows a table has."""

    name: str
    side: str
    rows: int


class Question(Document, frozen=True):
    """How good predictions are, one for every id of both tables."""

    predictions: Annotated[dict[_Label, _Label], Meta(min_length=1)]
    metric: Metric = "accuracy"


class MetricQuery(Document, frozen=True):
    """By which metric."""

    metric: Metric = "accuracy"


class Score(Document, frozen=True):
    """An answer; larger is better. `overfit` says that it came from the holdout, with noise."""

    member: str
    metric: str
    number: int
    value: float
    overfit: bool
    remaining: int
    at: str


class Standings(Document, frozen=True):
    """Every member's best answer for each metric, best first."""

    name: str
    items: list[Score]


def _found(call: Call) -> holdout_rows.Stored:
    found = call.service.storage.read(lambda t: holdout_rows.find(t, call.path["holdout"]))
    if found is None:
        raise not_found()
    return found


def _described(service: Service, stored: holdout_rows.Stored) -> Holdout:
    transcript, rules = holdouts.transcript_of(service, stored), stored.rules
    state: State = "ready to open" if stored.train and stored.holdout else "waiting for tables"
    return Holdout(
        name=stored.name,
        owner=stored.owner,
        id_column=rules.identity,
        target=rules.target,
        group=rules.group,
        metrics=sorted(rules.metrics),
        state=state if transcript is None else "open",
        created=written(stored.created),
        budget=rules.budget,
        remaining=rules.budget if transcript is None else transcript.remaining,
        asked=0 if transcript is None else len(transcript.entries),
        rows=None if transcript is None else transcript.settings.rows,
        promise=None if transcript is None else _promise(transcript),
    )


def _promise(transcript: Transcript) -> Promise:
    found = transcript.promise()
    return Promise(
        questions=found.questions,
        tolerance=found.tolerance,
        confidence=found.confidence,
        epsilon=float_up(transcript.settings.epsilon),
    )


def _register(call: Call) -> Holdout:
    asked, who = call.body, call.caller.member
    rules = holdout_rows.Rules(
        identity=asked.id_column,
        target=asked.target,
        group=asked.group,
        threshold=str(exact_number(asked.threshold, "threshold")),
        noise=str(exact_number(asked.noise, "noise")),
        budget=asked.budget,
        metrics={name: _ends(ends) for name, ends in asked.metrics.items()},
    )
    holdouts.check_metrics(rules)
    call.service.storage.write(lambda t: holdout_rows.create(t, asked.name, who, rules))
    stored = call.service.storage.read(lambda t: holdout_rows.current(t, asked.name))
    return _described(call.service, stored)


def _ends(ends: tuple[int | float | str, int | float | str] | None) -> tuple[str, str] | None:
    """Write the public ends of a target exactly; the lower one is often 0 or below."""
    if ends is None:
        return None
    low, high = (typed_fraction(end) if isinstance(end, str) else end for end in ends)
    return str(to_fraction(low, "limits")), str(to_fraction(high, "limits"))


def _read(call: Call) -> Holdout:
    return _described(call.service, _found(call))


def _list(call: Call) -> Holdouts:
    def read(t: Transaction) -> list[holdout_rows.Stored]:
        names = listed(t, "holdout", call.caller, call.query)
        return [holdout_rows.current(t, name) for name in names]

    items = [_described(call.service, one) for one in call.service.storage.read(read)]
    return Holdouts(**paged(items, call.query.limit, lambda one: one.name))


def _admit(call: Call) -> Holdout:
    stored, member = _found(call), call.path["member"]
    call.service.storage.write(lambda t: admit(t, "holdout", stored.name, member, stored.owner))
    return _described(call.service, stored)


def _put_side(call: Call) -> SideRows:
    side = call.path["side"]
    if side not in holdouts.SIDES:
        raise not_found()
    rows = holdouts.put_side(call.service, _found(call), side, call.sent)
    return SideRows(name=call.path["holdout"], side=side, rows=rows)


def _open(call: Call) -> Holdout:
    holdouts.open_holdout(call.service, _found(call))
    return _read(call)


def _ask(call: Call) -> Score:
    return _scored(call, call.body.metric, call.body.predictions)


def _ask_by_file(call: Call) -> Score:
    from quiltwork.holdout.studies import read_predictions

    stored = _found(call)
    if call.sent.suffix != ".csv":
        raise Problem(415, "unsupported-media", "Send predictions as text/csv.")
    with call.sent.table() as path, told_without(path):
        said = read_predictions(str(path), stored.rules.identity)
    return _scored(call, call.query.metric, said)


def _scored(call: Call, metric: str, said: Mapping[str, str]) -> Score:
    found = holdouts.ask(call.service, _found(call), call.caller.member, call.key, metric, said)
    return _score(found)


def _score(found: holdout_rows.Score) -> Score:
    fields = {n: v for n, v in vars(found).items() if n != "created"}
    return Score(**fields, at=written(found.created))


def _standings(call: Call) -> Standings:
    name = _found(call).name
    found = call.service.storage.read(lambda t: holdout_rows.standings(t, name))
    return Standings(name=name, items=[_score(one) for one in found])


_ALL, _ONE = "/v1/holdouts", "/v1/holdouts/{holdout}"

PART = Part(
    schema=holdout_rows.SCHEMA,
    belongs={"holdout": own("holdout")},
    files=holdout_rows.files,
    routes=(
        Route(
            *("register_holdout", "POST", _ALL, "holdout.create", _register),
            "Register a holdout: which column is what, and how often it may answer.",
            request=NewHoldout,
            response=Holdout,
            status=201,
        ),
        Route(
            *("list_holdouts", "GET", _ALL, "holdout.list", _list),
            "List the holdouts that you may use.",
            response=Holdouts,
            query=PageQuery,
        ),
        Route(
            *("show_holdout", "GET", _ONE, "holdout.read", _read),
            "Show how many rounds are left, and what is promised.",
            response=Holdout,
        ),
        Route(
            *("admit_to_holdout", "PUT", f"{_ONE}/access/{{member}}", "holdout.admit", _admit),
            "Let an analyst ask.",
            response=Holdout,
        ),
        Route(
            *("give_side", "PUT", f"{_ONE}/tables/{{side}}", "holdout.give", _put_side),
            "Give the table `train` or `holdout`, as CSV.",
            response=SideRows,
            upload=True,
            free=("side",),
        ),
        Route(
            *("open_holdout", "POST", f"{_ONE}/opening", "holdout.open", _open),
            "Check both tables and let questions in; nothing of them changes afterwards.",
            response=Holdout,
        ),
        Route(
            *("ask_holdout", "POST", f"{_ONE}/questions", "holdout.ask", _ask),
            "Ask how good predictions are; answered at once.",
            request=Question,
            response=Score,
            spends=True,
        ),
        Route(
            *("ask_holdout_by_file", "PUT", f"{_ONE}/questions", "holdout.ask", _ask_by_file),
            "The same with a CSV file of ids and predictions.",
            response=Score,
            query=MetricQuery,
            spends=True,
            upload=True,
        ),
        Route(
            *("show_standings", "GET", f"{_ONE}/standings", "holdout.standings", _standings),
            "Show every member's best answers.",
            response=Standings,
        ),
    ),
)
