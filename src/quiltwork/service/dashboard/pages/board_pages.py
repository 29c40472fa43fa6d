"""Leaderboards: holdouts that may be asked again and again, and who stands where."""

from __future__ import annotations

from typing import Any

from quiltwork.report import Estimate, IntervalChart
from quiltwork.service.dashboard.web import (
    PageRequest,
    PageView,
    filled,
    fresh_key,
    require_fields,
    sent,
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


def boards(visit: PageRequest, refused: Problem | None = None) -> PageView:
    """Show the holdouts that somebody may use, and a form for another."""
    values = {
        "heading": "Leaderboards",
        "boards": visit.everything("list_holdouts"),
        "form": filled(visit, _NEW),
        "refused": refused,
    }
    return PageView("boards.html", values)


def register(visit: PageRequest) -> Any:
    """Register a holdout without tables."""
    asked = sent(visit, _NEW, "budget", "attempts", "announcements")
    others = _ROUNDS if asked.get("mode") != "rounds" else ("announcements",)
    asked = {name: value for name, value in asked.items() if name not in others}
    if "classes" in asked:
        asked["classes"] = [one.strip() for one in asked["classes"].split(",") if one.strip()]
    return visit.ask("register_holdout", None, asked)


def board(visit: PageRequest, refused: Problem | None = None) -> PageView:
    """Show one holdout with its standings."""
    found = visit.ask("show_holdout", visit.path)
    scored = visit.may("holdout.standings")
    standings = visit.ask("show_standings", visit.path).items if scored else []
    rounds = found.mode == "rounds"
    over = scored and found.state == "ended" and found.final_rows
    ranking = visit.ask("show_ranking", visit.path) if over else None
    values = {
        "heading": found.name,
        "one": found,
        "standings": standings,
        "scores": visit.ask("show_scores", visit.path).items if scored else [],
        "ladder": not rounds,
        "left": "round" if rounds else "submission",
        "chart": _chart(standings, found),
        "ranking": ranking,
        "final_chart": None if ranking is None else ranking.chart(),
        "key": fresh_key(),
        "refused": refused,
        "mine": found.owner == visit.caller.member,
    }
    return PageView("board.html", values)


def give(visit: PageRequest) -> None:
    """Give both tables, and open the holdout."""
    for side in sides_of(visit.ask("show_holdout", visit.path).mode):
        visit.send("give_side", {**visit.path, "side": side}, side)
    visit.ask("open_holdout", visit.path)


def ask(visit: PageRequest) -> None:
    """Score the predictions of a file."""
    require_fields(visit, "metric")
    key, metric = visit.form["key"], {"metric": visit.form["metric"]}
    visit.send("ask_holdout_by_file", visit.path, "predictions", query=metric, key=key)


def choose(visit: PageRequest) -> None:
    """Name the submission that is scored at the end."""
    number = visit.form.get("number", "").strip()
    if not number.isascii() or not number.isdigit():
        raise Problem(422, "invalid-input", "Give the number of a submission of yours.")
    visit.ask("choose_submission", visit.path, {"number": int(number)})


def _chart(standings: list[Any], board: Any) -> IntervalChart | None:
    metric = board.metrics[0]
    shown = [one for one in standings if one.metric == metric and one.value is not None]
    if not shown:
        return None
    told = (
        "Every member's best answer. An answer from the training table is exact; one from the "
        "holdout has noise, and uses up a round."
        if board.mode == "rounds"
        else "What beat the best, rounded to steps."
    )
    return IntervalChart(
        metric.removeprefix("neg_").replace("_", " ").capitalize(),
        f"{told} Lines are where the truth is.",
        metric.replace("_", " "),
        tuple(Estimate(one.member, one.value, one.low, one.high) for one in shown),
    )
