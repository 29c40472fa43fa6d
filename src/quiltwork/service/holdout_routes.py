"""What can be asked about holdouts: to register, open and ask them, and their standings."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated, Literal

from msgspec import Meta

from quiltwork.exact import float_up
from quiltwork.holdout.transcript import Transcript
from quiltwork.service import holdouts
from quiltwork.service.holdouts import HOLDOUTS, MetricName, NewHoldout, Score
from quiltwork.service.problems import Problem, not_found
from quiltwork.service.rights import Caller
from quiltwork.service.routes import Call, Feature, Routes, Service
from quiltwork.service.storage import Transaction
from quiltwork.service.structs import Document, Page, PageQuery, paged

_Label = Annotated[str, Meta(max_length=1000)]


State = Literal["waiting for tables", "ready to open", "open"]


_ALL, _ONE = "/v1/holdouts", "/v1/holdouts/{holdout}"
_routes = Routes()


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
    admitted: list[str]


class SideRows(Document, frozen=True):
    """How many rows a table has."""

    name: str
    side: str
    rows: int


class ScoreRequest(Document, frozen=True):
    """How good predictions are, one for every id of both tables."""

    predictions: Annotated[dict[_Label, _Label], Meta(min_length=1)]
    metric: MetricName = "accuracy"


class MetricQuery(Document, frozen=True):
    """By which metric."""

    metric: MetricName = "accuracy"


class Standings(Document, frozen=True):
    """Every member's best answer for each metric, best first."""

    name: str
    items: list[Score]


def _described(service: Service, stored: holdouts.Held, caller: Caller) -> Holdout:
    transcript, asked = holdouts.transcript_of(service, stored), stored.asked
    ready = stored.made.keys() >= set(holdouts.SIDES)
    state: State = "ready to open" if ready else "waiting for tables"
    return Holdout(
        name=stored.name,
        owner=stored.owner,
        id_column=asked.id_column,
        target=asked.target,
        group=asked.group,
        metrics=sorted(asked.metrics),
        state=state if transcript is None else "open",
        created=stored.created,
        budget=asked.budget,
        remaining=asked.budget if transcript is None else transcript.remaining,
        asked=0 if transcript is None else len(transcript.entries),
        rows=None if transcript is None else transcript.settings.rows,
        promise=None if transcript is None else _promise(transcript),
        admitted=service.storage.read(lambda t: HOLDOUTS.admitted(t, stored, caller)),
    )


def _promise(transcript: Transcript) -> Promise:
    found = transcript.promise()
    return Promise(
        questions=found.questions,
        tolerance=found.tolerance,
        confidence=found.confidence,
        epsilon=float_up(transcript.settings.epsilon),
    )


@_routes.at("POST", _ALL, "holdout.create", request=NewHoldout, status=201)
def _register_holdout(call: Call) -> Holdout:
    """Register a holdout: which column is what, and how often it may answer."""
    asked, who = call.body, call.caller.member
    holdouts.check_asked(asked)

    def work(t: Transaction) -> holdouts.Held:
        HOLDOUTS.create(t, asked.name, who, asked)
        return HOLDOUTS.current(t, asked.name)

    return _described(call.service, call.service.storage.write(work), call.caller)


@_routes.at("GET", _ONE, "holdout.read")
def _show_holdout(call: Call) -> Holdout:
    """Show how many rounds are left, and what is promised."""
    return _described(call.service, HOLDOUTS.named(call), call.caller)


@_routes.at("GET", _ALL, "holdout.list", query=PageQuery)
def _list_holdouts(call: Call) -> Page[Holdout]:
    """List the holdouts that you may use."""
    found = call.service.storage.read(lambda t: HOLDOUTS.listed(t, call.caller, call.query))
    items = [_described(call.service, one, call.caller) for one in found]
    return paged(items, call.query.limit, lambda one: one.name)


@_routes.at("PUT", f"{_ONE}/access/{{member}}", "holdout.admit")
def _admit_to_holdout(call: Call) -> Holdout:
    """Let an analyst ask."""
    HOLDOUTS.admit(call)
    return _show_holdout(call)


@_routes.at("DELETE", f"{_ONE}/access/{{member}}", "holdout.admit", status=204)
def _dismiss_from_holdout(call: Call) -> None:
    """Take access back; her answers stay."""
    call.service.storage.write(lambda t: HOLDOUTS.dismiss(t, call))


@_routes.at("PUT", f"{_ONE}/tables/{{side}}", "holdout.give", upload=True, free=("side",))
def _give_side(call: Call) -> SideRows:
    """Give the table `train` or `holdout`, as CSV."""
    side = call.path["side"]
    if side not in holdouts.SIDES:
        raise not_found()
    rows = holdouts.put_side(call.service, HOLDOUTS.named(call), side, call.sent)
    return SideRows(name=call.path["holdout"], side=side, rows=rows)


@_routes.at("POST", f"{_ONE}/opening", "holdout.open")
def _open_holdout(call: Call) -> Holdout:
    """Check both tables and let questions in; nothing of them changes afterwards."""
    holdouts.open_holdout(call.service, HOLDOUTS.named(call))
    return _show_holdout(call)


@_routes.at("POST", f"{_ONE}/questions", "holdout.ask", request=ScoreRequest, spends=True)
def _ask_holdout(call: Call) -> Score:
    """Ask how good predictions are; answered at once."""
    return _asked(call, call.body.metric, call.body.predictions)


@_routes.at("PUT", f"{_ONE}/questions", "holdout.ask", query=MetricQuery, spends=True, upload=True)
def _ask_holdout_by_file(call: Call) -> Score:
    """The same with a CSV file of ids and predictions."""
    from quiltwork.holdout.studies import read_predictions

    stored = HOLDOUTS.named(call)
    if call.sent.suffix != ".csv":
        raise Problem(415, "unsupported-media", "Send predictions as text/csv.")
    with call.sent.table() as path:
        said = read_predictions(str(path), stored.asked.id_column)
    return _asked(call, call.query.metric, said)


def _asked(call: Call, metric: str, said: Mapping[str, str]) -> Score:
    stored = HOLDOUTS.named(call)
    return holdouts.ask(call.service, stored, call.caller.member, call.key, metric, said)


@_routes.at("GET", f"{_ONE}/standings", "holdout.standings")
def _show_standings(call: Call) -> Standings:
    """Show every member's best answers."""
    name = HOLDOUTS.named(call).name
    found = call.service.storage.read(lambda t: holdouts.standings(t, name))
    return Standings(name=name, items=found)


FEATURE = Feature(
    schema=holdouts.SCHEMA,
    belongs={"holdout": HOLDOUTS.is_own},
    files=holdouts.files,
    routes=tuple(_routes),
)
