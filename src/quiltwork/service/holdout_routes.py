"""Routes of holdouts: registering, opening, asking, scores, standings and the final ranking."""

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
from quiltwork.service.structs import Document, Page, PageQuery, copy_fields
from quiltwork.service.vault import overwrite

_Label = Annotated[str, Meta(max_length=1000)]


_ALL, _ONE = "/v1/holdouts", "/v1/holdouts/{holdout}"
FEATURE = Feature(
    holdouts.SCHEMA,
    {"holdout": HOLDOUTS.is_own},
    lambda t: [
        *HOLDOUTS.files(t, *SIDES),
        *(row.file for row in holdouts.PREDICTIONS.select(t, "1 = 1")),
    ],
)


class SideRows(Document, frozen=True):
    """An uploaded table, and its number of rows."""

    name: str
    side: str
    rows: int


class ScoreRequest(Document, frozen=True):
    """Predictions to score, one for every id of the tables."""

    predictions: Annotated[dict[_Label, _Label], Meta(min_length=1)]
    metric: MetricName = "accuracy"


class MetricQuery(Document, frozen=True):
    """The metric to score a file by."""

    metric: MetricName = "accuracy"


class Choice(Document, frozen=True):
    """The number of the submission that counts in the final ranking."""

    number: Annotated[int, Meta(ge=1)]


class Standings(Document, frozen=True):
    """Scores of one holdout."""

    name: str
    items: list[Score]


class ScoreFile(Document, frozen=True):
    """Scores as a CSV file."""

    name: str
    media_type: str
    content: str


def _holdout_record(call: Call, t: Transaction, stored: holdouts.HoldoutRecord) -> Holdout:
    transcript, spec = holdouts.transcript_of(call.service, stored), stored.spec
    deleted = "deleted" in stored.state
    ready = stored.state.keys() >= set(holdouts.sides_of(spec.mode))
    state, used, remaining = "ready to open" if ready else "waiting for tables", 0, spec.budget
    attempts, status, promise = spec.attempts, None, None
    if transcript is not None:
        state, used, remaining = (
            "ended" if transcript.ended else "open",
            len(transcript.entries),
            transcript.remaining,
        )
        if spec.attempts is not None:
            attempts = max(0, spec.attempts - attempts_used(transcript, call.member))
        status, promise = status_of(transcript), promise_of(transcript)
    if deleted:
        state, remaining, status, promise = "deleted", 0, None, None
    return copy_fields(
        Holdout,
        spec,
        owner=stored.owner,
        attempts_left=attempts,
        metrics=sorted(spec.metrics),
        state=state,
        created=jobs.as_iso(stored.created),
        remaining=remaining,
        asked=used,
        rows=None if status is None else status.asked_rows,
        final_rows=None if status is None else status.final_rows,
        announcements_left=None if status is None else status.announcements_left,
        chosen=None if status is None else status.named.get(call.member),
        promise=None
        if promise is None
        else HoldoutPromise(promise.questions, promise.width, promise.confidence, promise.epsilon),
        admitted=HOLDOUTS.admitted(t, stored, call.caller),
    )


@FEATURE.at("POST", _ALL, "holdout.create", request=NewHoldout, status=201)
def _register_holdout(call: Call, t: Transaction) -> Holdout:
    """Register a holdout: the roles of its columns, and how often it may answer."""
    holdouts.check_spec(call.body)
    HOLDOUTS.create(t, call.body.name, call.member, call.body)
    return _holdout_record(call, t, HOLDOUTS.current(t, call.body.name))


@FEATURE.at("GET", _ONE, "holdout.read")
def _show_holdout(call: Call) -> Holdout:
    """Show the rounds that are left, and the promised accuracy."""
    name = call.path["holdout"]
    return call.service.read(lambda t: _holdout_record(call, t, HOLDOUTS.current(t, name)))


@FEATURE.at("GET", _ALL, "holdout.list", query=PageQuery)
def _list_holdouts(call: Call, t: Transaction) -> Page[Holdout]:
    """List the holdouts that you may use."""
    return HOLDOUTS.listed(call, t).map(lambda stored: _holdout_record(call, t, stored))


@FEATURE.at("PUT", f"{_ONE}/access/{{member}}", "holdout.admit")
def _admit_to_holdout(call: Call) -> Holdout:
    """Give an analyst access."""
    call.service.write(lambda t: HOLDOUTS.admit(call, t))
    return _show_holdout(call)


@FEATURE.at("DELETE", f"{_ONE}/access/{{member}}", "holdout.admit", status=204)
def _dismiss_from_holdout(call: Call, t: Transaction) -> None:
    """Withdraw an analyst's access; her answers stay."""
    HOLDOUTS.dismiss(call, t)


@FEATURE.at("PUT", f"{_ONE}/tables/{{side}}", "holdout.give", upload=True, free=("side",))
def _give_side(call: Call) -> SideRows:
    """Upload the table `train` or `holdout`, as CSV."""
    side, stored, upload = call.path["side"], HOLDOUTS.requested(call), call.file
    if side not in SIDES:
        raise not_found()
    if upload.suffix != ".csv":
        raise InvalidInputError("Upload the tables of a holdout as CSV.")
    spec = stored.spec
    with upload.table() as path:
        _, rows = read_table(str(path))
        used = filter(None, (spec.id_column, spec.target, spec.group))
        content = upload.with_columns(path, list(dict.fromkeys(used)))

    def work(t: Transaction, file: str) -> list[str]:
        now = HOLDOUTS.current(t, stored.name)
        holdouts.refuse_deleted(now)
        if "transcript" in now.state:
            raise InvalidInputError("The holdout is open, so its tables can no longer change.")
        if side not in holdouts.sides_of(now.spec.mode):
            raise InvalidInputError(
                "Only mode 'rounds' takes a training table. Upload the holdout only."
            )
        HOLDOUTS.update(t, now, **{side: file})
        t.note("act", f"gave the {side} table of holdout {stored.name}", stored.owner)
        return [now.state[side]] if side in now.state else []

    call.service.store_file(content, work)
    return SideRows(name=stored.name, side=side, rows=len(rows))


@FEATURE.at("DELETE", f"{_ONE}/tables", "holdout.delete", status=204)
def _delete_tables(call: Call) -> None:
    """Delete the tables for good; answers, transcript and ledger stay."""
    service, stored = call.service, HOLDOUTS.requested(call)
    dataset = holdouts.dataset_of(stored)
    with service.lock_for("holdout", stored.name):
        # Retries keep their stored answers, recognized by a key that is independent of the rows.
        requests = {}
        if "transcript" in stored.state and "deleted" not in stored.state:
            requests["requests"] = holdouts.board_of(service, stored).request_key
        if dataset in {status.dataset for status in service.ledger.datasets()}:
            retire(service, str(dataset), "its rows were deleted", call.member)

        def work(t: Transaction) -> list[str]:
            now = HOLDOUTS.current(t, stored.name)
            files = [now.state[side] for side in SIDES if side in now.state]
            for row in holdouts.PREDICTIONS.select(t, "name = ?", now.name):
                files.append(row.file)
                holdouts.PREDICTIONS.delete(t, name=row.name, number=row.number)
            rest = {name: value for name, value in now.state.items() if name not in SIDES}
            HOLDOUTS.write(t, now.name, now.spec, {"deleted": jobs.now(), **requests, **rest})
            t.note("act", f"deleted the tables of holdout {stored.name}", call.member)
            return files

        service.delete_files(work)
        now = HOLDOUTS.requested(call)
        if "transcript" in now.state:  # with the log's secret, guesses of rows could be verified
            overwrite(secret_path(holdouts.path_of(service, now)))
        holdouts.forget_rows()


@FEATURE.at("DELETE", _ONE, "holdout.delete", status=204)
def _withdraw_holdout(call: Call) -> None:
    """Withdraw a holdout that was never opened: its tables are deleted and its name is free."""
    service, stored = call.service, HOLDOUTS.requested(call)

    def work(t: Transaction) -> list[str]:
        now = HOLDOUTS.current(t, stored.name)
        if "transcript" in now.state or "deleted" in now.state:
            raise InvalidInputError(
                "The holdout was opened and cannot be withdrawn. Delete its tables instead."
            )
        HOLDOUTS.withdraw(t, now, call.member)
        return [now.state[side] for side in SIDES if side in now.state]

    with service.lock_for("holdout", stored.name):
        service.delete_files(work)


@FEATURE.at("POST", f"{_ONE}/opening", "holdout.open")
def _open_holdout(call: Call) -> Holdout:
    """Open a holdout: its tables are checked and can no longer change."""
    holdouts.open_holdout(call.service, HOLDOUTS.requested(call))
    return _show_holdout(call)


@FEATURE.at("POST", f"{_ONE}/questions", "holdout.ask", request=ScoreRequest, spends=True)
def _ask_holdout(call: Call) -> Score:
    """Score predictions, once for each Idempotency-Key."""
    return _ask(call, call.body.metric, call.body.predictions)


@FEATURE.at("PUT", f"{_ONE}/questions", "holdout.ask", query=MetricQuery, spends=True, upload=True)
def _ask_holdout_by_file(call: Call) -> Score:
    """Score a CSV file of ids and predictions."""
    stored = HOLDOUTS.requested(call)
    if call.file.suffix != ".csv":
        raise Problem(415, "unsupported-media", "Send predictions as text/csv.")
    with call.file.table() as path:
        predictions = read_predictions(str(path), stored.spec.id_column)
    return _ask(call, call.query.metric, predictions)


def _ask(call: Call, metric: str, predictions: Mapping[str, str]) -> Score:
    stored = HOLDOUTS.requested(call)
    return holdouts.ask(call.service, stored, call.member, call.key, metric, predictions)


@FEATURE.at("PUT", f"{_ONE}/choice", "holdout.ask", request=Choice)
def _choose_submission(call: Call) -> Holdout:
    """Choose your submission for the final ranking; it can be changed until the end."""
    holdouts.choose(call.service, HOLDOUTS.requested(call), call.member, call.body.number)
    return _show_holdout(call)


@FEATURE.at("POST", f"{_ONE}/end", "holdout.finish")
def _finish_holdout(call: Call) -> Holdout:
    """End the competition: each member's chosen submission is scored once on held-back rows."""
    holdouts.finish(call.service, HOLDOUTS.requested(call))
    return _show_holdout(call)


@FEATURE.at("GET", f"{_ONE}/ranking", "holdout.standings")
def _show_ranking(call: Call, t: Transaction) -> FinalRanking:
    """Show the final ranking, with the members who cannot be distinguished."""
    transcript = holdouts.transcript_of(call.service, HOLDOUTS.current(t, call.path["holdout"]))
    if transcript is None or transcript.ranking is None:
        raise InvalidInputError("There is no ranking until the competition has ended.")
    return ranking_from_body(transcript.ranking)


@FEATURE.at("GET", f"{_ONE}/ranking/file", "holdout.standings")
def _show_ranking_file(call: Call, t: Transaction) -> ScoreFile:
    """Return the final ranking as CSV text in a JSON document."""
    header, rows = _show_ranking(call, t).table()
    name = call.path["holdout"]
    return ScoreFile(name=name, media_type="text/csv", content=csv_text([header, *rows]))


@FEATURE.at("GET", f"{_ONE}/standings", "holdout.standings")
def _show_standings(call: Call, t: Transaction) -> Standings:
    """Show each member's best answers."""
    stored = HOLDOUTS.current(t, call.path["holdout"])
    return Standings(name=stored.name, items=holdouts.standings(call.service, stored))


@FEATURE.at("GET", f"{_ONE}/scores", "holdout.scores")
def _show_scores(call: Call, t: Transaction) -> Standings:
    """Show your own answers in order; the owner sees everybody's."""
    stored = HOLDOUTS.current(t, call.path["holdout"])
    member = None if call.member == stored.owner else call.member
    return Standings(name=stored.name, items=holdouts.scores(call.service, stored, member))


@FEATURE.at("GET", f"{_ONE}/scores/file", "holdout.scores")
def _show_score_file(call: Call, t: Transaction) -> ScoreFile:
    """Return the same answers as CSV text in a JSON document."""
    scores = _show_scores(call, t)
    names = ("number", "member", "metric", "value", "overfit", "at")
    lines = [[getattr(score, name) for name in names] for score in scores.items]
    return ScoreFile(name=scores.name, media_type="text/csv", content=csv_text([names, *lines]))
