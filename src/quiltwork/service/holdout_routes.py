"""What can be asked about competitions: to register, open and ask them, scores and standings."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated

from msgspec import Meta

from quiltwork.client.records import Holdout, HoldoutPromise, Score
from quiltwork.delimited import csv_text
from quiltwork.errors import InvalidInputError
from quiltwork.holdout.board import attempts_used, promise_of, status_of
from quiltwork.holdout.final_ranking import FinalRanking, ranking_from_body
from quiltwork.holdout.metrics import MetricName
from quiltwork.holdout.prediction_tables import read_predictions, read_table
from quiltwork.holdout.sealed_log import secret_path
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
    lambda t: [*HOLDOUTS.files(t, *SIDES), *(one.file for one in holdouts.KEPT.all(t, "1 = 1"))],
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


class Choice(Document, frozen=True):
    """Which submission of one's own is scored at the end."""

    number: Annotated[int, Meta(ge=1)]


class Standings(Document, frozen=True):
    """Answers, with the name of the competition."""

    name: str
    items: list[Score]


class ScoreFile(Document, frozen=True):
    """Answers as a file."""

    name: str
    media_type: str
    content: str


def _described(call: Call, t: Transaction, stored: holdouts.HoldoutRecord) -> Holdout:
    told, asked = holdouts.transcript_of(call.service, stored), stored.asked
    deleted = "deleted" in stored.made
    ready = stored.made.keys() >= set(holdouts.sides_of(asked.mode))
    state, used, remaining = "ready to open" if ready else "waiting for tables", 0, asked.budget
    attempts, status, promise = asked.attempts, None, None
    if told is not None:
        state, used, remaining = (
            "ended" if told.ended else "open",
            len(told.entries),
            told.remaining,
        )
        if asked.attempts is not None:
            attempts = max(0, asked.attempts - attempts_used(told, call.who))
        status, promise = status_of(told), promise_of(told)
    if deleted:
        state, remaining, status, promise = "deleted", 0, None, None
    return shown_as(
        Holdout,
        asked,
        owner=stored.owner,
        attempts_left=attempts,
        metrics=sorted(asked.metrics),
        state=state,
        created=jobs.written(stored.created),
        remaining=remaining,
        asked=used,
        rows=None if status is None else status.asked_rows,
        final_rows=None if status is None else status.final_rows,
        announcements_left=None if status is None else status.announcements_left,
        chosen=None if status is None else status.named.get(call.who),
        promise=None
        if promise is None
        else HoldoutPromise(promise.questions, promise.width, promise.confidence, promise.epsilon),
        admitted=HOLDOUTS.admitted(t, stored, call.caller),
    )


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
            raise InvalidInputError("Only rounds take a training table; give the holdout only.")
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
        requests = {}  # what was answered stays known, by a key that tells nothing of the rows
        if "transcript" in stored.made and "deleted" not in stored.made:
            requests["requests"] = holdouts.board_of(service, stored).request_key
        if dataset in {status.dataset for status in service.ledger.datasets()}:
            retire(service, str(dataset), "its rows were deleted", call.who)

        def work(t: Transaction) -> list[str]:
            now = HOLDOUTS.current(t, stored.name)
            files = [now.made[side] for side in SIDES if side in now.made]
            files += [one.file for one in holdouts.KEPT.all(t, "name = ?", now.name)]
            for one in holdouts.KEPT.all(t, "name = ?", now.name):
                holdouts.KEPT.delete(t, name=one.name, number=one.number)
            kept = {name: one for name, one in now.made.items() if name not in SIDES}
            HOLDOUTS.write(t, now.name, now.asked, {"deleted": jobs.now(), **requests, **kept})
            t.note("act", f"deleted the tables of holdout {stored.name}", call.who)
            return files

        service.forget(work)
        now = HOLDOUTS.named(call)
        if "transcript" in now.made:  # its secret could tell a guess of the rows from another one
            overwrite(secret_path(holdouts.path_of(service, now)))
        holdouts.forget_rows()


@FEATURE.at("DELETE", _ONE, "holdout.delete", status=204)
def _withdraw_holdout(call: Call) -> None:
    """Take back a holdout that was never opened: its tables go, and its name is free again."""
    service, stored = call.service, HOLDOUTS.named(call)

    def work(t: Transaction) -> list[str]:
        now = HOLDOUTS.current(t, stored.name)
        if "transcript" in now.made or "deleted" in now.made:
            raise InvalidInputError("It was opened, so its name stays; delete its tables instead.")
        HOLDOUTS.withdraw(t, now, call.who)
        return [now.made[side] for side in SIDES if side in now.made]

    with service.lock_for("holdout", stored.name):
        service.forget(work)


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


@FEATURE.at("PUT", f"{_ONE}/choice", "holdout.ask", request=Choice)
def _choose_submission(call: Call) -> Holdout:
    """Name the submission that is scored for you at the end; until then it may change."""
    holdouts.choose(call.service, HOLDOUTS.named(call), call.who, call.body.number)
    return _show_holdout(call)


@FEATURE.at("POST", f"{_ONE}/end", "holdout.finish")
def _finish_holdout(call: Call) -> Holdout:
    """End the competition: every member's submission is scored once on the rows kept apart."""
    holdouts.finish(call.service, HOLDOUTS.named(call))
    return _show_holdout(call)


@FEATURE.at("GET", f"{_ONE}/ranking", "holdout.standings")
def _show_ranking(call: Call, t: Transaction) -> FinalRanking:
    """Show how it ended: who is ahead, and who cannot be told apart."""
    told = holdouts.transcript_of(call.service, HOLDOUTS.current(t, call.path["holdout"]))
    if told is None or told.ranking is None:
        raise InvalidInputError("The competition has not ended, so there is no ranking yet.")
    return ranking_from_body(told.ranking)


@FEATURE.at("GET", f"{_ONE}/ranking/file", "holdout.standings")
def _show_ranking_file(call: Call, t: Transaction) -> ScoreFile:
    """The same as CSV."""
    header, rows = _show_ranking(call, t).table()
    name = call.path["holdout"]
    return ScoreFile(name=name, media_type="text/csv", content=csv_text([header, *rows]))


@FEATURE.at("GET", f"{_ONE}/standings", "holdout.standings")
def _show_standings(call: Call, t: Transaction) -> Standings:
    """Show every member's best answers."""
    stored = HOLDOUTS.current(t, call.path["holdout"])
    return Standings(name=stored.name, items=holdouts.standings(call.service, stored))


@FEATURE.at("GET", f"{_ONE}/scores", "holdout.scores")
def _show_scores(call: Call, t: Transaction) -> Standings:
    """Show your own answers, in order; who made it sees everybody's."""
    stored = HOLDOUTS.current(t, call.path["holdout"])
    member = None if call.who == stored.owner else call.who
    return Standings(name=stored.name, items=holdouts.scores(call.service, stored, member))


@FEATURE.at("GET", f"{_ONE}/scores/file", "holdout.scores")
def _show_score_file(call: Call, t: Transaction) -> ScoreFile:
    """The same as CSV."""
    found = _show_scores(call, t)
    names = ("number", "member", "metric", "value", "overfit", "at")
    lines = [[getattr(one, name) for name in names] for one in found.items]
    return ScoreFile(name=found.name, media_type="text/csv", content=csv_text([names, *lines]))
