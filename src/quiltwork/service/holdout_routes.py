"""What can be asked about competitions: to register, open and ask them, scores and standings."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated

from msgspec import Meta

from quiltwork.client.records import Holdout, HoldoutPromise, Score
from quiltwork.delimited import csv_text
from quiltwork.errors import InvalidInputError
from quiltwork.exact import float_up
from quiltwork.holdout.board import Board
from quiltwork.holdout.leaderboard import status_of_board
from quiltwork.holdout.metrics import MetricName
from quiltwork.holdout.storage import secret_path
from quiltwork.holdout.studies import read_predictions, read_table
from quiltwork.holdout.transcript import Transcript
from quiltwork.service import holdouts, jobs
from quiltwork.service.datasets import retire
from quiltwork.service.holdouts import HOLDOUTS, SIDES, NewHoldout
from quiltwork.service.problems import Problem, not_found
from quiltwork.service.routes import Call, Feature
from quiltwork.service.storage import Transaction
from quiltwork.service.structs import Document, Page, PageQuery, shown_as
from quiltwork.service.vault import overwrite

_Label = Annotated[str, Meta(max_length=1000)]


_ALL, _ONE = "/v1/holdouts", "/v1/holdouts/{holdout}"
FEATURE = Feature(
    holdouts.SCHEMA,
    {"holdout": HOLDOUTS.is_own},
    lambda t: HOLDOUTS.files(t, *SIDES),
)


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
    """Answers, with the name of the competition."""

    name: str
    items: list[Score]


class ScoreFile(Document, frozen=True):
    """Answers as a file."""

    name: str
    media_type: str
    content: str


def _described(call: Call, t: Transaction, stored: holdouts.Held) -> Holdout:
    told, asked = holdouts.told_by(call.service, stored), stored.asked
    ready = stored.made.keys() >= set(holdouts.sides_of(asked.mode))
    state, used, remaining = "ready to open" if ready else "waiting for tables", 0, asked.budget
    if "deleted" in stored.made:
        state, remaining = "deleted", 0
        used = len(holdouts.scores(t, stored.name))
    elif told is not None:
        state, used, remaining = "open", len(told.labels), told.remaining
    own = holdouts.attempts_of(told, call.who)
    return shown_as(
        Holdout,
        asked,
        owner=stored.owner,
        attempts_left=None if asked.attempts is None else max(0, asked.attempts - own),
        metrics=sorted(asked.metrics),
        state=state,
        created=jobs.written(stored.created),
        remaining=remaining,
        asked=used,
        rows=None if told is None else told.rows,
        promise=None if told is None else _promise(told, asked),
        admitted=HOLDOUTS.admitted(t, stored, call.caller),
    )


def _promise(told: Board | Transcript, asked: NewHoldout) -> HoldoutPromise:
    if isinstance(told, Board):
        board = status_of_board(told)
        return HoldoutPromise(board.submissions, board.width, board.confidence, None)
    found, level = told.promise(), float_up(told.settings.epsilon)
    spreads = [holdouts.measure_of(asked, name).spread for name in asked.metrics]
    widest = max(spread(found.tolerance) for spread in spreads)
    return HoldoutPromise(found.questions, widest, found.confidence, level)


@FEATURE.at("POST", _ALL, "holdout.create", request=NewHoldout, status=201)
def _register_holdout(call: Call, t: Transaction) -> Holdout:
    """Register a holdout: which column is what, and how often it may answer."""
    holdouts.check_asked(call.body)
    HOLDOUTS.create(t, call.body.name, call.who, call.body)
    return _described(call, t, HOLDOUTS.current(t, call.body.name))


@FEATURE.at("GET", _ONE, "holdout.read")
def _show_holdout(call: Call) -> Holdout:
    """Show how many rounds are left, and what is promised."""
    name = call.path["holdout"]
    return call.service.read(lambda t: _described(call, t, HOLDOUTS.current(t, name)))


@FEATURE.at("GET", _ALL, "holdout.list", query=PageQuery)
def _list_holdouts(call: Call, t: Transaction) -> Page[Holdout]:
    """List the holdouts that you may use."""
    return HOLDOUTS.listed(call, t).shown(lambda one: _described(call, t, one))


@FEATURE.at("PUT", f"{_ONE}/access/{{member}}", "holdout.admit")
def _admit_to_holdout(call: Call) -> Holdout:
    """Let an analyst ask."""
    call.service.write(lambda t: HOLDOUTS.admit(call, t))
    return _show_holdout(call)


@FEATURE.at("DELETE", f"{_ONE}/access/{{member}}", "holdout.admit", status=204)
def _dismiss_from_holdout(call: Call, t: Transaction) -> None:
    """Take access back; her answers stay."""
    HOLDOUTS.dismiss(call, t)


@FEATURE.at("PUT", f"{_ONE}/tables/{{side}}", "holdout.give", upload=True, free=("side",))
def _give_side(call: Call) -> SideRows:
    """Give the table `train` or `holdout`, as CSV."""
    side, stored, upload = call.path["side"], HOLDOUTS.named(call), call.sent
    if side not in SIDES:
        raise not_found()
    if upload.suffix != ".csv":
        raise InvalidInputError("The tables of a holdout are uploaded as CSV.")
    asked = stored.asked
    with upload.table() as path:
        _, rows = read_table(str(path))
        used = filter(None, (asked.id_column, asked.target, asked.group))
        kept = upload.only(path, list(dict.fromkeys(used)))

    def work(t: Transaction, file: str) -> list[str]:
        now = HOLDOUTS.current(t, stored.name)
        holdouts.refuse_deleted(now)
        if "transcript" in now.made:
            raise InvalidInputError("The holdout is open, and its tables do not change any more.")
        if side not in holdouts.sides_of(now.asked.mode):
            raise InvalidInputError("A ladder takes no training table; give the holdout only.")
        HOLDOUTS.update(t, now, **{side: file})
        t.note("act", f"gave the {side} table of holdout {stored.name}", stored.owner)
        return [now.made[side]] if side in now.made else []

    call.service.keep(kept, work)
    return SideRows(name=stored.name, side=side, rows=len(rows))


@FEATURE.at("DELETE", f"{_ONE}/tables", "holdout.delete", status=204)
def _delete_tables(call: Call) -> None:
    """Delete both tables, for good; answers, transcript and ledger stay."""
    service, stored = call.service, HOLDOUTS.named(call)
    dataset = holdouts.dataset_of(stored)
    with service.lock_for("holdout", stored.name):
        if dataset in {status.dataset for status in service.ledger.datasets()}:
            retire(service, str(dataset), "its rows were deleted", call.who)

        def work(t: Transaction) -> list[str]:
            now = HOLDOUTS.current(t, stored.name)
            files = [now.made[side] for side in SIDES if side in now.made]
            kept = {name: one for name, one in now.made.items() if name not in SIDES}
            HOLDOUTS.write(t, now.name, now.asked, {"deleted": jobs.now(), **kept})
            t.note("act", f"deleted the tables of holdout {stored.name}", call.who)
            return files

        service.forget(work)
        now = HOLDOUTS.named(call)
        if "transcript" in now.made:  # its secret could tell a guess of the rows from another one
            overwrite(secret_path(holdouts.path_of(service, now)))
        holdouts.forget_rows()


@FEATURE.at("POST", f"{_ONE}/opening", "holdout.open")
def _open_holdout(call: Call) -> Holdout:
    """Check both tables and let questions in; nothing of them changes afterwards."""
    holdouts.open_holdout(call.service, HOLDOUTS.named(call))
    return _show_holdout(call)


@FEATURE.at("POST", f"{_ONE}/questions", "holdout.ask", request=ScoreRequest, spends=True)
def _ask_holdout(call: Call) -> Score:
    """Ask how good predictions are; answered at once."""
    return _asked(call, call.body.metric, call.body.predictions)


@FEATURE.at("PUT", f"{_ONE}/questions", "holdout.ask", query=MetricQuery, spends=True, upload=True)
def _ask_holdout_by_file(call: Call) -> Score:
    """The same with a CSV file of ids and predictions."""
    stored = HOLDOUTS.named(call)
    if call.sent.suffix != ".csv":
        raise Problem(415, "unsupported-media", "Send predictions as text/csv.")
    with call.sent.table() as path:
        said = read_predictions(str(path), stored.asked.id_column)
    return _asked(call, call.query.metric, said)


def _asked(call: Call, metric: str, said: Mapping[str, str]) -> Score:
    stored = HOLDOUTS.named(call)
    return holdouts.ask(call.service, stored, call.who, call.key, metric, said)


@FEATURE.at("GET", f"{_ONE}/standings", "holdout.standings")
def _show_standings(call: Call, t: Transaction) -> Standings:
    """Show every member's best answers."""
    name = call.path["holdout"]
    return Standings(name=name, items=holdouts.standings(t, name))


@FEATURE.at("GET", f"{_ONE}/scores", "holdout.scores")
def _show_scores(call: Call, t: Transaction) -> Standings:
    """Show your own answers, in order; who made it sees everybody's."""
    stored = HOLDOUTS.current(t, call.path["holdout"])
    member = None if call.who == stored.owner else call.who
    return Standings(name=stored.name, items=holdouts.scores(t, stored.name, member))


@FEATURE.at("GET", f"{_ONE}/scores/file", "holdout.scores")
def _show_score_file(call: Call, t: Transaction) -> ScoreFile:
    """The same as CSV."""
    found = _show_scores(call, t)
    names = ("number", "member", "metric", "value", "overfit", "at")
    lines = [[getattr(one, name) for name in names] for one in found.items]
    return ScoreFile(name=found.name, media_type="text/csv", content=csv_text([names, *lines]))
