"""Asking: what an answer would cost and how far off it would be, then the answer."""

from __future__ import annotations

from itertools import product
from typing import Any

from quiltwork.report import Estimate, IntervalChart
from quiltwork.service.dashboard.rendering import cell
from quiltwork.service.dashboard.web import (
    Shown,
    Visit,
    filled,
    fresh_key,
    read_problem,
    whole_form,
    whole_number,
)
from quiltwork.service.problems import Problem

KINDS = {
    "histogram": "how often each state occurs",
    "frequencies": "the share of each state",
    "count": "how often one state occurs",
    "transitions": "how often one state follows another",
    "most_common": "the most common state",
}
_MOST_CELLS = 30
_TITLE = "What it could look like"
_PEOPLE = 1_000
_FORM = {"kind": "histogram", "state": "", "start": "", "stop": "", "epsilon": "0.1", "by[]": ""}


def answer(visit: Visit) -> Any:
    """Ask, once for each form that was shown."""
    whole_form(visit, "kind", "epsilon")
    form = filled(visit, _FORM)
    asked = {"query": _query(visit, form), "epsilon": form["epsilon"].strip()}
    return visit.ask("ask", visit.path, asked, key=visit.form["key"])


def _query(visit: Visit, form: dict[str, str]) -> dict[str, Any]:
    """Return the query that the fields of a form name."""
    if form["kind"] == "table":
        where = {
            name.removeprefix("where-"): [text]
            for name, text in visit.form.items()
            if name.startswith("where-") and text
        }
        return {"kind": "table", "by": form["by[]"].splitlines(), "where": where}
    query: dict[str, Any] = {"kind": form["kind"]}
    if form["kind"] == "count":
        query["state"] = _state(visit, form["state"])
    if form["start"].strip() or form["stop"].strip():
        stop = form["stop"].strip()
        first = whole_number(form["start"].strip() or "1", "The first time point")
        query["window"] = [first, whole_number(stop, "The last time point") if stop else None]
    return query


def _state(visit: Visit, text: str) -> Any:
    """Return the state that a form names, as the belief has it."""
    states = visit.ask("show_dataset", {"dataset": visit.path["dataset"]}).states or []
    return next((one for one in states if str(one) == text), text)


def ask(visit: Visit, refused: Problem | None = None) -> Shown:
    """Show the form with a preview of its question; nothing is spent."""
    name = {"dataset": visit.path["dataset"]}
    found = visit.ask("show_dataset", name)
    form = filled(visit, _FORM)
    if found.kind == "counts":
        form |= {"kind": "table", "by[]": form["by[]"] or next(iter(found.columns))}
    if found.states and not form["state"]:
        form["state"] = str(found.states[0])
    looked, wrong = read_problem(lambda: _looked(visit, found, form))
    seen, chart = looked or (None, None)
    values = {
        "heading": f"Ask {found.name}",
        "one": found,
        "form": form,
        "where": visit.form,
        "kinds": KINDS,
        "key": visit.form.get("key") or fresh_key(),
        "seen": seen,
        "chart": chart,
        "price": max(0.0, (seen.spent_after or 0) - seen.spent_before) if seen else 0.0,
        "refused": refused or wrong,
    }
    return Shown("ask.html", values, part="ask_part.html")


def _looked(visit: Visit, found: Any, form: dict[str, str]) -> tuple[Any, IntervalChart | None]:
    query = _query(visit, form)
    asked = {"query": query, "epsilon": form["epsilon"].strip()}
    seen = visit.ask("preview", {"dataset": found.name}, asked)
    if found.kind == "counts":
        return seen, _even(found, query["by"], seen)
    return seen, _simulated(seen.example)


def _simulated(example: Any) -> IntervalChart | None:
    """Draw an answer about a series that was made up; None for a label, and for too many cells."""
    if example is None or example.intervals is None or len(example.cells) > _MOST_CELLS:
        return None
    rows = zip(example.cells, example.values, example.intervals, strict=True)
    return IntervalChart(
        _TITLE,
        "An answer about a series that was made up from the belief, with the error bars that "
        "yours would have. No row was looked at.",
        "",
        tuple(Estimate(cell(label), value, *ends) for label, value, ends in rows),
    )


def _even(found: Any, by: list[str], seen: Any) -> IntervalChart | None:
    cells = list(product(*(found.columns[name] for name in by)))
    if not 0 < len(cells) <= _MOST_CELLS:
        return None
    share = round(_PEOPLE / len(cells))
    estimates = tuple(
        Estimate(", ".join(labels), share, share - seen.half_width, share + seen.half_width)
        for labels in cells
    )
    return IntervalChart(
        _TITLE,
        f"{_PEOPLE:,} people who were made up, in even shares, with the error bars that yours "
        "would have. No row was looked at.",
        "people",
        estimates,
    )
