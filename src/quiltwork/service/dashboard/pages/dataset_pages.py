"""The overview, registering a dataset, and one dataset: what is left, leaked, released, to whom."""

from __future__ import annotations

import json
from collections import Counter
from typing import Any

from quiltwork.exact import counted
from quiltwork.service.dashboard.rendering import answer_chart, answer_of, leakage_chart, over_time
from quiltwork.service.dashboard.web import PageRequest, PageView, filled, sent
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
_ABOUT = {"series": ("value", "time", "every", "episode"), "counts": ("subject", "at_most")}
_WORDS = {
    "MarkovChain": ("a Markov chain", "Markov chains"),
    "ChainBox": ("a box of chains", "boxes of chains"),
    "CyclicChain": ("a chain with a daily rhythm", "chains with a daily rhythm"),
    "DatedChain": ("a chain with a daily rhythm", "chains with a daily rhythm"),
}
_SHOWN = 2
"""How many of the latest answers are drawn on the page of a dataset."""


def overview(visit: PageRequest) -> PageView:
    """Show the datasets with their gauges."""
    found = visit.everything("list_datasets")
    values = {
        "heading": "Overview",
        "lead": _LEADS[visit.caller.role],
        "datasets": found,
        "summaries": {one.name: summary(one) for one in found},
        "tables": visit.everything("list_tables") if visit.may("table.list") else [],
        "boards": visit.everything("list_holdouts") if visit.may("holdout.list") else [],
    }
    return PageView("overview.html", values)


def summary(one: Any) -> str:
    """Say in a line what a dataset is about."""
    if one.kind == "counts":
        return f"People by {', '.join(one.columns)}."
    return f"{_moments(one)} in {counted(len(one.states), 'state')}."


def _moments(one: Any) -> str:
    """Say for how many moments there are data."""
    return counted(one.length if one.arrived is None else one.arrived, "moment")


def new(visit: PageRequest, refused: Problem | None = None) -> PageView:
    """Show the form that registers a dataset."""
    visit.must("dataset.create")
    values = {
        "heading": "Register a dataset",
        "form": filled(visit, _NEW),
        "refused": refused,
    }
    return PageView("new.html", values)


def register(visit: PageRequest) -> Any:
    """Register a dataset as the form says."""
    form = sent(visit, _NEW, "episode", "at_most")
    asked = {name: form.get(name, "") for name in ("name", "budget", "text")}
    kind = "counts" if form.get("kind") == "counts" else "series"
    about = {name: form[name] for name in _ABOUT[kind] if name in form}
    if kind == "counts":
        about["columns"] = _columns(form.get("columns", ""))
    else:
        about["belief"] = _belief(visit)
    return visit.ask("register_dataset", body={**asked, kind: about})


def _belief(visit: PageRequest) -> dict[str, Any]:
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


def dataset(visit: PageRequest, refused: Problem | None = None) -> PageView:
    """Show everything about one dataset that the caller may see."""
    name = {"dataset": visit.path["dataset"]}
    found = visit.ask("show_dataset", name)
    released = visit.everything("list_releases", name) if visit.may("release.read") else []
    answers = [answer_of(one.document) for one in released]
    latest = list(zip(released, answers, strict=True))[: -_SHOWN - 1 : -1]
    told = found.kind == "series" and found.releases
    runs = visit.ask("show_leakage", name).runs if told else []
    values = {
        "heading": found.name,
        "one": found,
        "summary": found.text or summary(found),
        "facts": _facts(found),
        "leakage": leakage_chart(runs, found.spent, found.budget)
        if runs and not found.delta
        else None,
        "latest": [(one, answer_chart(answer)) for one, answer in latest],
        "compared": over_time(answers),
        "releases": released[::-1],
        "debits": visit.everything("show_ledger", name)[::-1] if visit.may("ledger.read") else [],
        "refused": refused,
        "mine": found.owner == visit.caller.member,
    }
    return PageView("dataset.html", values)


def _facts(found: Any) -> dict[str, str]:
    if found.kind == "counts":
        cells = " · ".join(f"{name} ({len(of)})" for name, of in found.columns.items())
        return {"protects": "every person", "columns": cells}
    secret = "every moment" if found.episode == 1 else f"every {found.episode} moments in a row"
    series = f"{_moments(found)}, {counted(len(found.states), 'state')}"
    facts = {"protects": secret, "series": series}
    if found.length > max(found.episode, found.length if found.arrived is None else found.arrived):
        facts["budget covers"] = counted(found.length, "moment")
    return {**facts, "against": _believed(found.beliefs)}


def _believed(beliefs: list[str]) -> str:
    """Name what an adversary believes in words.

    >>> _believed(["MarkovChain(2 states)"]), _believed(["ChainBox(2)", "ChainBox(3)"])
    ('a Markov chain', '2 boxes of chains')
    """
    kinds = Counter(one.partition("(")[0] for one in beliefs)
    words = {kind: _WORDS.get(kind, (f"a {kind}", f"of {kind}")) for kind in kinds}
    return ", ".join(words[k][0] if n == 1 else f"{n} {words[k][1]}" for k, n in kinds.items())


def release(visit: PageRequest) -> PageView:
    """Show one answer with its error bars, and in words."""
    found = visit.ask("show_release", visit.path)
    values = {
        "heading": f"{found.kind.replace('_', ' ').capitalize()} of {found.dataset}",
        "one": found,
        "chart": answer_chart(answer_of(found.document)),
        "rows": list(zip(found.cells, found.values, found.intervals or [], strict=False)),
    }
    return PageView("release.html", values)
