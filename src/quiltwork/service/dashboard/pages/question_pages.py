"""The page that asks a question: a preview of its cost and error, then the answer."""

from __future__ import annotations

from itertools import product
from typing import Any

from quiltwork.report import Estimate, IntervalChart
from quiltwork.service.dashboard.rendering import cell
from quiltwork.service.dashboard.web import (
    PageRequest,
    PageView,
    form_values,
    fresh_key,
    parse_whole_number,
    require_fields,
    try_or_problem,
)
from quiltwork.service.problems import Problem

KINDS = {
    "histogram": "how often each state occurs",
    "frequencies": "the share of each state",
    "count": "how often one state occurs",
    "transitions": "how often one state follows another",
    "most_common": "the most common state",
}
_MAX_CELLS = 30
_PEOPLE = 1_000
"""How many simulated people the example of a table of counts has."""
_FORM = {"kind": "histogram", "state": "", "start": "", "stop": "", "epsilon": "0.1", "by[]": ""}


def answer(request: PageRequest) -> Any:
    """Ask the question of a form; its hidden key makes a form sent twice count once."""
    require_fields(request, "kind", "epsilon")
    form = form_values(request, _FORM)
    question = {"query": _query(request, form), "epsilon": form["epsilon"].strip()}
    return request.api("ask", request.path, question, key=request.form["key"])


def _query(request: PageRequest, form: dict[str, str]) -> dict[str, Any]:
    """Return the query document that a form describes."""
    if form["kind"] == "table":
        where = {
            name.removeprefix("where-"): [text]
            for name, text in request.form.items()
            if name.startswith("where-") and text
        }
        return {"kind": "table", "by": form["by[]"].splitlines(), "where": where}
    query: dict[str, Any] = {"kind": form["kind"]}
    if form["kind"] == "count":
        query["state"] = _state(request, form["state"])
    if form["start"].strip() or form["stop"].strip():
        stop = form["stop"].strip()
        first = parse_whole_number(form["start"].strip() or "1", "The first time point")
        query["window"] = [first, parse_whole_number(stop, "The last time point") if stop else None]
    return query


def _state(request: PageRequest, text: str) -> Any:
    """Return the state with a form's label, in the type that the belief uses."""
    states = request.api("show_dataset", {"dataset": request.path["dataset"]}).states or []
    return next((state for state in states if str(state) == text), text)


def ask(request: PageRequest, refused: Problem | None = None) -> PageView:
    """Show the form with a preview of its question; nothing is spent."""
    dataset = request.api("show_dataset", {"dataset": request.path["dataset"]})
    form = form_values(request, _FORM)
    if dataset.kind == "counts":
        form |= {"kind": "table", "by[]": form["by[]"] or next(iter(dataset.columns))}
    if dataset.states and not form["state"]:
        form["state"] = str(dataset.states[0])
    result, problem = try_or_problem(lambda: _preview(request, dataset, form))
    preview, chart = result or (None, None)
    values = {
        "heading": f"Ask {dataset.name}",
        "dataset": dataset,
        "form": form,
        "where": request.form,
        "kinds": KINDS,
        "key": request.form.get("key") or fresh_key(),
        "preview": preview,
        "chart": chart,
        "price": max(0.0, (preview.spent_after or 0) - preview.spent_before) if preview else 0.0,
        "refused": refused or problem,
    }
    return PageView("ask.html", values, part="ask_part.html")


def _preview(
    request: PageRequest, dataset: Any, form: dict[str, str]
) -> tuple[Any, IntervalChart | None]:
    """Return a preview, and a chart of a simulated answer unless it has labels or many cells."""
    query = _query(request, form)
    question = {"query": query, "epsilon": form["epsilon"].strip()}
    preview = request.api("preview", {"dataset": dataset.name}, question)
    bars: list[Estimate] = []
    data, unit = "Simulated: an answer about a series drawn from the belief", ""
    if dataset.kind == "counts":
        cells = list(product(*(dataset.columns[name] for name in query["by"])))
        share, error = round(_PEOPLE / max(1, len(cells))), preview.half_width
        bars = [
            Estimate(", ".join(labels), share, share - error, share + error) for labels in cells
        ]
        data, unit = f"Simulated: {_PEOPLE:,} people in equal shares", "people"
    elif preview.example is not None and preview.example.intervals is not None:
        example = preview.example
        rows = zip(example.cells, example.values, example.intervals, strict=True)
        bars = [Estimate(cell(label), value, *ends) for label, value, ends in rows]
    if not 0 < len(bars) <= _MAX_CELLS:
        return preview, None
    text = f"{data}, with the intervals that your answer would have. No row was read."
    return preview, IntervalChart("What it could look like", text, unit, tuple(bars))
