"""The pages of datasets: overview, registration, one dataset, one release."""

from __future__ import annotations

import json
import math
from typing import Any

from quiltwork.exact import counted
from quiltwork.service.dashboard.rendering import (
    answer_chart,
    answer_of,
    leakage_chart,
    moment,
    number,
    over_time,
    window,
)
from quiltwork.service.dashboard.web import PageRequest, PageView, form_values, submitted
from quiltwork.service.problems import Problem

_LEADS = {
    "owner": "Your datasets, tables and leaderboards, with the budgets that are left.",
    "provider": "The datasets and tables that you upload rows for.",
    "analyst": "The datasets that you may ask about, with the budgets that are left.",
    "auditor": "All datasets, tables and leaderboards, with their budgets.",
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
_ABOUT = {"series": ("value", "time", "every", "episode"), "counts": ("subject", "at_most")}
_BELIEFS = 3
_CHARTS = 2
"""How many of the latest answers have a chart on the page of a dataset."""


def overview(request: PageRequest) -> PageView:
    """Show all datasets, tables and leaderboards of the caller."""
    datasets = request.list_all("list_datasets")
    values = {
        "heading": "Overview",
        "lead": _LEADS[request.caller.role],
        "datasets": datasets,
        "summaries": {dataset.name: summary(dataset) for dataset in datasets},
        "tables": request.list_all("list_tables") if request.may("table.list") else [],
        "boards": request.list_all("list_holdouts") if request.may("holdout.list") else [],
    }
    return PageView("overview.html", values)


def summary(dataset: Any) -> str:
    """Return a line that describes a dataset."""
    if dataset.kind == "counts":
        return f"People by {', '.join(dataset.columns)}."
    return f"{_points(dataset)} in {counted(len(dataset.states), 'state')}."


def _points(dataset: Any) -> str:
    """Return how many time points have data, with the noun."""
    arrived = dataset.length if dataset.arrived is None else dataset.arrived
    return counted(arrived, "time point")


def new(request: PageRequest, refused: Problem | None = None) -> PageView:
    """Show the form that registers a dataset."""
    request.require("dataset.create")
    values = {
        "heading": "Register a dataset",
        "form": form_values(request, _NEW),
        "refused": refused,
    }
    return PageView("new.html", values)


def register(request: PageRequest) -> Any:
    """Register the dataset that a form describes."""
    form = submitted(request, _NEW, "episode", "at_most")
    common = {name: form.get(name, "") for name in ("name", "budget", "text")}
    kind = "counts" if form.get("kind") == "counts" else "series"
    about = {name: form[name] for name in _ABOUT[kind] if name in form}
    if kind == "counts":
        about["columns"] = _columns(form.get("columns", ""))
    else:
        about["belief"] = _belief(request)
    return request.api("register_dataset", body={**common, kind: about})


def _belief(request: PageRequest) -> dict[str, Any]:
    file = request.files.get("belief")
    if file is None:
        raise Problem(
            422, "invalid-input", "Choose the file of a belief, as written by quiltwork fit."
        )
    try:
        document = json.loads(file.file.read())
    except (ValueError, RecursionError):
        document = None
    if not isinstance(document, dict):
        raise Problem(
            422, "invalid-input", "The file is not a belief: quiltwork fit writes one as JSON."
        )
    return document


def _columns(text: str) -> dict[str, list[str]]:
    columns: dict[str, list[str]] = {}
    for line in filter(None, map(str.strip, text.splitlines())):
        name, colon, labels = line.partition(":")
        if not colon or name.strip() in columns:
            raise Problem(
                422,
                "invalid-input",
                "Write each column once, on its own line, such as: mode: walk, bicycle, bus.",
            )
        columns[name.strip()] = [label.strip() for label in labels.split(",") if label.strip()]
    return columns


def dataset(request: PageRequest, refused: Problem | None = None) -> PageView:
    """Show everything about one dataset that the caller may see."""
    name = {"dataset": request.path["dataset"]}
    described = request.api("show_dataset", name)
    released = request.list_all("list_releases", name) if request.may("release.read") else []
    answers = [answer_of(record.document) for record in released]
    latest = list(zip(released, answers, strict=True))[: -_CHARTS - 1 : -1]
    has_leakage = described.kind == "series" and described.releases and not described.delta
    runs = request.api("show_leakage", name).runs if has_leakage else []
    values = {
        "heading": described.name,
        "dataset": described,
        "summary": described.text or summary(described),
        "facts": _facts(described),
        "leakage": leakage_chart(runs, described.spent, described.budget) if runs else None,
        "latest": [(record, answer_chart(answer)) for record, answer in latest],
        "compared": over_time(answers),
        "releases": released[::-1],
        "debits": request.list_all("show_ledger", name)[::-1] if request.may("ledger.read") else [],
        "refused": refused,
        "mine": described.owner == request.caller.member,
    }
    return PageView("dataset.html", values)


def _facts(dataset: Any) -> dict[str, str]:
    if dataset.kind == "counts":
        cells = " · ".join(f"{name} ({len(of)})" for name, of in dataset.columns.items())
        return {"protects": "every person", "columns": cells}
    single = dataset.episode == 1
    secret = "every time point" if single else f"every {dataset.episode} time points in a row"
    series = f"{_points(dataset)}, {counted(len(dataset.states), 'state')}"
    facts = {"protects": secret, "series": series}
    arrived = dataset.length if dataset.arrived is None else dataset.arrived
    if dataset.length > max(dataset.episode, arrived):
        facts["budget covers"] = counted(dataset.length, "time point")
    return {**facts, "against": _listed(dataset.beliefs)}


def _listed(beliefs: list[str]) -> str:
    """Return the first few beliefs, and how many more there are."""
    more = len(beliefs) - _BELIEFS
    return "; ".join(beliefs[:_BELIEFS]) + (f"; and {more} more" if more > 0 else "")


def _release_facts(record: Any) -> dict[str, str]:
    """Return the facts shown above an answer: its level, also as odds, window and dates."""
    level = f"ε = {number(record.epsilon)}"
    facts = {"privacy level": level, "odds change by at most": odds_factor(record.epsilon)}
    facts["protects"] = f"every {record.protects.replace('moment', 'time point')}"
    if record.kind != "table":
        facts["time points"] = window(record.query)
    if period := record.document.get("period"):
        start, end = (text.replace("T", " ").replace("+00:00", " UTC") for text in period)
        facts["period"] = f"{start} to {end}"
    return {**facts, "released": moment(record.at), "asked by": record.analyst or "–"}


def odds_factor(epsilon: float) -> str:
    """Return the factor by which an answer can change an adversary's odds about a secret.

    >>> odds_factor(0.5), odds_factor(30)
    ('a factor of 1.65', 'a factor of over 1,000')
    """
    factor = math.exp(min(epsilon, 100))
    return f"a factor of {factor:.3g}" if factor < 1000 else "a factor of over 1,000"


def release(request: PageRequest) -> PageView:
    """Show one answer with its intervals, and in words."""
    record = request.api("show_release", request.path)
    values = {
        "heading": f"{record.kind.replace('_', ' ').capitalize()} of {record.dataset}",
        "release": record,
        "facts": _release_facts(record),
        "chart": answer_chart(answer_of(record.document)),
        "rows": list(zip(record.cells, record.values, record.intervals or [], strict=False)),
    }
    return PageView("release.html", values)
