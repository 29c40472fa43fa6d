"""The overview, and registering a dataset."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

from quiltwork.service.dashboard.pages import boards, tables
from quiltwork.service.dashboard.pages.members import whole
from quiltwork.service.dashboard.web import Go, Shown, Visit, filled, read_problem
from quiltwork.service.problems import Problem

_LEADS = {
    "owner": "What you have registered, and how much of each budget is left.",
    "provider": "Where your rows belong. You see your own, and what is published.",
    "analyst": "What you may ask about, and how much of each budget is left for everybody.",
    "auditor": "Everything that is registered here, and what has been spent.",
}
_NEW = {
    "name": "",
    "text": "",
    "budget": "1",
    "kind": "series",
    "value": "",
    "time": "",
    "every": "",
    "episode": "1",
    "columns": "",
    "subject": "",
    "at_most": "1",
}


def overview(visit: Visit) -> Shown:
    """Show the datasets with their gauges."""
    found = visit.everything("list_datasets")
    values = {
        "heading": "Overview",
        "lead": _LEADS[visit.caller.role],
        "datasets": found,
        "summaries": {one.name: summary(one) for one in found},
        "tables": visit.everything("list_tables") if visit.may("table.list") else [],
        "boards": visit.everything("list_holdouts") if visit.may("holdout.list") else [],
        "states": tables.STATES,
        "board_states": boards.STATES,
    }
    return Shown("overview.html", values)


def summary(one: Any) -> str:
    """Say in a line what a dataset is about."""
    if one.kind == "counts":
        return f"People by {', '.join(one.columns)}."
    return f"{one.length:,} moments in {len(one.states)} states."


def new(visit: Visit, refused: Problem | None = None) -> Shown:
    """Show the form that registers a dataset."""
    visit.must("dataset.create")
    values = {"heading": "Register a dataset", "form": filled(visit, _NEW), "refused": refused}
    return Shown("new.html", values, refused.status if refused else 200)


def register(visit: Visit) -> Shown | Go:
    """Register a dataset as the form says."""
    found, refused = read_problem(lambda: visit.ask("register_dataset", body=_asked(visit)))
    if refused is not None:
        return new(visit, refused)
    return Go(f"/datasets/{found.name}", "registered")


def _asked(visit: Visit) -> dict[str, Any]:
    form = visit.form
    asked: dict[str, Any] = {
        name: form.get(name, "").strip() for name in ("name", "budget", "text")
    }
    if form.get("kind") == "counts":
        about: dict[str, Any] = {"columns": _columns(form.get("columns", ""))}
        _take(about, form, "subject")
        about["at_most"] = whole(form.get("at_most") or "1", "The number of rows")
        return {**asked, "counts": about}
    about = {"belief": _belief(visit), "episode": whole(form.get("episode") or "1", "A secret")}
    for name in ("value", "time", "every"):
        _take(about, form, name)
    return {**asked, "series": about}


def _take(about: dict[str, Any], form: Mapping[str, str], name: str) -> None:
    if text := form.get(name, "").strip():
        about[name] = text


def _belief(visit: Visit) -> dict[str, Any]:
    file = visit.files.get("belief")
    if file is None:
        raise Problem(422, "invalid-input", "Choose the file of a belief.")
    try:
        found = json.loads(file.file.read())
    except (ValueError, RecursionError):
        found = None
    if not isinstance(found, dict):
        raise Problem(422, "invalid-input", "The belief is no JSON document of quiltwork fit.")
    return found


def _columns(text: str) -> dict[str, list[str]]:
    found: dict[str, list[str]] = {}
    for row in filter(None, map(str.strip, text.splitlines())):
        name, colon, labels = row.partition(":")
        if not colon or name.strip() in found:
            raise Problem(
                422,
                "invalid-input",
                "Write each column once, in a line of its own: mode: walk, bicycle, bus.",
            )
        found[name.strip()] = [label.strip() for label in labels.split(",") if label.strip()]
    return found
