"""Leaderboards: holdouts that may be asked again and again, and who stands where."""

from __future__ import annotations

from typing import Any

from quiltwork.report import BarChart
from quiltwork.service.dashboard.web import (
    Shown,
    Visit,
    filled,
    fresh_key,
    sent,
    whole_form,
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
    "mode": "rounds",
    "attempts": "",
    "classes": "",
}
_ROUNDS = ("threshold", "noise")


def boards(visit: Visit, refused: Problem | None = None) -> Shown:
    """Show the holdouts that somebody may use, and a form for another."""
    values = {
        "heading": "Leaderboards",
        "boards": visit.everything("list_holdouts"),
        "form": filled(visit, _NEW),
        "refused": refused,
    }
    return Shown("boards.html", values)


def register(visit: Visit) -> Any:
    """Register a holdout without tables."""
    asked = sent(visit, _NEW, "budget", "attempts")
    if asked.get("mode") == "ladder":
        asked = {name: value for name, value in asked.items() if name not in _ROUNDS}
    if "classes" in asked:
        asked["classes"] = [one.strip() for one in asked["classes"].split(",") if one.strip()]
    return visit.ask("register_holdout", None, asked)


def board(visit: Visit, refused: Problem | None = None) -> Shown:
    """Show one holdout with its standings."""
    found = visit.ask("show_holdout", visit.path)
    scored = visit.may("holdout.standings")
    standings = visit.ask("show_standings", visit.path).items if scored else []
    ladder = found.mode == "ladder"
    values = {
        "heading": found.name,
        "one": found,
        "standings": standings,
        "scores": visit.ask("show_scores", visit.path).items if scored else [],
        "ladder": ladder,
        "left": "submission" if ladder else "round",
        "chart": _chart(standings, ladder),
        "key": fresh_key(),
        "refused": refused,
        "mine": found.owner == visit.caller.member,
    }
    return Shown("board.html", values)


def give(visit: Visit) -> None:
    """Give both tables, and open the holdout."""
    for side in sides_of(visit.ask("show_holdout", visit.path).mode):
        visit.send("give_side", {**visit.path, "side": side}, side)
    visit.ask("open_holdout", visit.path)


def ask(visit: Visit) -> None:
    """Score the predictions of a file."""
    whole_form(visit, "metric")
    key, metric = visit.form["key"], {"metric": visit.form["metric"]}
    visit.send("ask_holdout_by_file", visit.path, "predictions", query=metric, key=key)


def _chart(standings: list[Any], ladder: bool) -> BarChart | None:
    shown = [one for one in standings if one.metric == "accuracy"]
    if not shown:
        return None
    return BarChart(
        "Accuracy",
        "What beat the best, rounded to steps."
        if ladder
        else "Every member's best answer. An answer from the training table is exact; one from the "
        "holdout has noise, and uses up a round.",
        "accuracy",
        tuple((one.member, one.value) for one in shown),
    )
