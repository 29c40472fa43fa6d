"""Asking: what an answer would cost and how far off it would be, then the answer."""

from __future__ import annotations

from itertools import product
from typing import Any

from quiltwork.report import Estimate, IntervalChart
from quiltwork.service.dashboard.rendering import cell
from quiltwork.service.dashboard.web import (
    PageRequest,
    PageView,
    attempted,
    filled,
    fresh_key,
    require_fields,
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
_PEOPLE = 1_000
_FORM = {"kind": "histogram", "state": "", "start": "", "stop": "", "epsilon": "0.1", "by[]": ""}


def answer(visit: PageRequest) -> Any:
    """Ask, once for each form that was shown."""
    require_fields(visit, "kind", "epsilon")
    form = filled(visit, _FORM)
    asked = {"query": _query(visit, form), "epsilon": form["epsilon"].strip()}
    return visit.ask("ask", visit.path, asked, key=visit.form["key"])


def _query(visit: PageRequest, form: dict[str, str]) -> dict[str, Any]:
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


def _state(visit: PageRequest, text: str) -> Any:
    """Return the state that a form names, as the belief has it."""
    states = visit.ask("show_dataset", {"dataset": visit.path["dataset"]}).states or []
    return next((one for one in states if str(one) == text), text)


def ask(visit: PageRequest, refused: Problem | None = None) -> PageView:
    """Show the form with a preview of its question; nothing is spent."""
    name = {"dataset": visit.path["dataset"]}
    found = visit.ask("show_dataset", name)
    form = filled(visit, _FORM)
    if found.kind == "counts":
        form |= {"kind": "table", "by[]": form["by[]"] or next(iter(found.columns))}
    if found.states and not form["state"]:
        form["state"] = str(found.states[0])
    looked, wrong = attempted(lambda: _looked(visit, found, form))
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
    return PageView("ask.html", values, part="ask_part.html")


def _looked(
    visit: PageRequest, found: Any, form: dict[str, str]
) -> tuple[Any, IntervalChart | None]:
    """Preview a question, and draw an answer about made-up data; none of labels, and of many."""
    query = _query(visit, form)
    asked = {"query": query, "epsilon": form["epsilon"].strip()}
    seen = visit.ask("preview", {"dataset": found.name}, asked)
    bars: list[Estimate] = []
    what, unit = "An answer about a series that was made up from the belief", ""
    if found.kind == "counts":
        cells = list(product(*(found.columns[name] for name in query["by"])))
        share, off = round(_PEOPLE / max(1, len(cells))), seen.half_width
        bars = [Estimate(", ".join(one), share, share - off, share + off) for one in cells]
        what, unit = f"{_PEOPLE:,} people who were made up, in even shares", "people"
    elif seen.example is not None and seen.example.intervals is not None:
        example = seen.example
        rows = zip(example.cells, example.values, example.intervals, strict=True)
        bars = [Estimate(cell(label), value, *ends) for label, value, ends in rows]
    if not 0 < len(bars) <= _MOST_CELLS:
        return seen, None
    said = f"{what}, with the error bars that yours would have. No row was looked at."
    return seen, IntervalChart("What it could look like", said, unit, tuple(bars))
