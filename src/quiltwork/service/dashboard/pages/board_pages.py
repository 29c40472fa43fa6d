"""The pages of leaderboards: the list, and one holdout with scores, standings and ranking."""

from __future__ import annotations

from typing import Any

from quiltwork.report import Estimate, IntervalChart
from quiltwork.service.dashboard.web import (
    PageRequest,
    PageView,
    form_values,
    fresh_key,
    require_fields,
    submitted,
)
from quiltwork.service.holdouts import sides_of
from quiltwork.service.problems import Problem

_NEW = {
    "name": "",
    "id_column": "id",
    "target": "",
    "group": "",
    "threshold": "0.04",
    "noise": "0.01",
    "budget": "20",
    "mode": "ladder",
    "announcements": "20",
    "final": "1/2",
    "attempts": "",
    "classes": "",
}
_ROUNDS = ("threshold", "noise")


def boards(request: PageRequest, refused: Problem | None = None) -> PageView:
    """Show the holdouts that the caller may use, and a form to create one."""
    values = {
        "heading": "Leaderboards",
        "boards": request.list_all("list_holdouts"),
        "form": form_values(request, _NEW),
        "refused": refused,
    }
    return PageView("boards.html", values)


def register(request: PageRequest) -> Any:
    """Register a holdout, still without its tables."""
    spec = submitted(request, _NEW, "budget", "attempts", "announcements")
    unused = _ROUNDS if spec.get("mode") != "rounds" else ("announcements",)
    spec = {name: value for name, value in spec.items() if name not in unused}
    if "classes" in spec:
        labels = map(str.strip, spec["classes"].split(","))
        spec["classes"] = [label for label in labels if label]
    return request.api("register_holdout", None, spec)


def board(request: PageRequest, refused: Problem | None = None) -> PageView:
    """Show one holdout with its standings."""
    holdout = request.api("show_holdout", request.path)
    sees_scores = request.may("holdout.standings")
    standings = request.api("show_standings", request.path).items if sees_scores else []
    rounds = holdout.mode == "rounds"
    has_ranking = sees_scores and holdout.state == "ended" and holdout.final_rows
    ranking = request.api("show_ranking", request.path) if has_ranking else None
    values = {
        "heading": holdout.name,
        "board": holdout,
        "standings": standings,
        "scores": request.api("show_scores", request.path).items if sees_scores else [],
        "ladder": not rounds,
        "left": "round" if rounds else "submission",
        "chart": _standings_chart(standings, holdout),
        "ranking": ranking,
        "final_chart": None if ranking is None else ranking.chart(),
        "key": fresh_key(),
        "refused": refused,
        "mine": holdout.owner == request.caller.member,
    }
    return PageView("board.html", values)


def give(request: PageRequest) -> None:
    """Upload the tables and open the holdout."""
    for side in sides_of(request.api("show_holdout", request.path).mode):
        request.upload("give_side", {**request.path, "side": side}, side)
    request.api("open_holdout", request.path)


def ask(request: PageRequest) -> None:
    """Score an uploaded file of predictions."""
    require_fields(request, "metric")
    key, metric = request.form["key"], {"metric": request.form["metric"]}
    request.upload("ask_holdout_by_file", request.path, "predictions", query=metric, key=key)


def choose(request: PageRequest) -> None:
    """Choose the submission for the final ranking."""
    number = request.form.get("number", "").strip()
    if not number.isascii() or not number.isdigit():
        raise Problem(422, "invalid-input", "Give the number of one of your submissions.")
    request.api("choose_submission", request.path, {"number": int(number)})


def _standings_chart(standings: list[Any], board: Any) -> IntervalChart | None:
    metric = board.metrics[0]
    scores = [score for score in standings if score.metric == metric and score.value is not None]
    if not scores:
        return None
    text = (
        "Each member's best answer. Answers from the training table are exact; answers from the "
        "holdout have noise and use up a round."
        if board.mode == "rounds"
        else "Announced scores, rounded to steps."
    )
    return IntervalChart(
        metric.removeprefix("neg_").replace("_", " ").capitalize(),
        f"{text} Lines are intervals for the true score.",
        metric.replace("_", " "),
        tuple(Estimate(score.member, score.value, score.low, score.high) for score in scores),
    )
