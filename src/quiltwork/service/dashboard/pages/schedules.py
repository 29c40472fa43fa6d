"""Schedules, priced as a whole before they are made, where their runs are, and jobs."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import Any

from quiltwork.report import Line, LineChart
from quiltwork.report.charts import level
from quiltwork.service.dashboard.pages.asking import KINDS
from quiltwork.service.dashboard.rendering import answer_chart, answer_of
from quiltwork.service.dashboard.web import (
    Shown,
    Visit,
    filled,
    fresh_key,
    read_problem,
    sent,
    whole_form,
)
from quiltwork.service.problems import Problem

EVERY = {"day": "every day", "week": "every week", "month": "every month"}
_MISSED = {"catch-up": "publish them late", "skip": "leave them out"}


def make(visit: Visit) -> Any:
    """Make a schedule: all its runs are debited at once, or none."""
    whole_form(visit, "dataset", "kind", "epsilon", "every", "at", "first", "runs")
    name, key = {"dataset": visit.form["dataset"]}, visit.form["key"]
    return visit.ask("make_schedule", name, _asked(visit), key=key)


def schedule(visit: Visit) -> Shown:
    """Show one schedule with its runs."""
    found = visit.ask("show_schedule", visit.path)
    done = sum(run.state == "done" for run in found.runs)
    values = {"heading": said(found), "one": found, "done": done}
    return Shown("schedule.html", values)


def run(visit: Visit) -> Shown:
    """Show the answer of one run."""
    found = visit.ask("show_run", visit.path)
    answer = answer_of(found.release)
    values = {
        "heading": f"Run {found.run}",
        "schedule": found.schedule,
        "chart": answer_chart(answer),
        "text": answer.explain(),
    }
    return Shown("run.html", values)


def jobs(visit: Visit) -> Shown:
    """Show the long work that somebody asked for."""
    found = visit.ask("list_jobs", query={"limit": 50})
    values = {"heading": "Jobs", "jobs": found.items, "more": found.next}
    return Shown("jobs.html", values, part="jobs_part.html")


def said(found: Any) -> str:
    """Say in a line what a schedule does."""
    kind = str(found.asked["question"].get("kind", "")).replace("_", " ")
    return f"{kind.capitalize()} of {found.dataset}, {EVERY[found.asked['every']]}"


def schedules(visit: Visit, refused: Problem | None = None) -> Shown:
    """Show all schedules, and a form for another with its price; nothing is spent."""
    visit.must("schedule.list")
    series = [one for one in visit.everything("list_datasets") if one.kind == "series"]
    found = [
        made for one in series for made in visit.everything("list_schedules", {"dataset": one.name})
    ]
    form = filled(visit, _usual(visit, series))
    wanted = visit.may("schedule.preview") and bool(visit.form)
    seen, wrong = None, None
    if wanted:
        of = {"dataset": form["dataset"]}
        seen, wrong = read_problem(lambda: visit.ask("preview_schedule", of, _asked(visit)))
    one = next((one for one in series if one.name == form["dataset"]), None)
    values = {
        "heading": "Schedules",
        "schedules": [(made, said(made), _progress(made)) for made in found],
        "series": [one.name for one in series],
        "form": form,
        "one": one,
        "kinds": KINDS,
        "every": EVERY,
        "missed": _MISSED,
        "seen": seen,
        "price": max(0.0, seen.after - seen.before) if seen else 0.0,
        "chart": _chart(seen) if seen else None,
        "key": visit.form.get("key") or fresh_key(),
        "refused": refused or wrong,
        "opened": bool(visit.form) or "dataset" in visit.query,
    }
    return Shown("schedules.html", values, part="schedule_part.html")


def _usual(visit: Visit, series: list[Any]) -> dict[str, str]:
    """Return what a schedule usually is."""
    tomorrow = datetime.now(UTC).date() + timedelta(days=1)
    return {
        "dataset": visit.query.get("dataset") or (series[0].name if series else ""),
        "kind": "histogram",
        "state": "",
        "epsilon": "0.5",
        "every": "day",
        "at": "02:00",
        "zone": "UTC",
        "first": str(tomorrow),
        "runs": "7",
        "missed": "catch-up",
        "begins": "",
        "step": "",
    }


def _asked(visit: Visit) -> dict[str, Any]:
    asked = sent(visit, _usual(visit, []), "runs", "step")
    asked.pop("dataset", None)
    question, state = {"kind": asked.pop("kind", "")}, asked.pop("state", "")
    if question["kind"] == "count":
        question["state"] = state
    return {**asked, "question": question}


def _progress(made: Any) -> dict[str, Any]:
    waiting = next((run for run in made.runs if run.state in ("waiting", "queued")), None)
    done = sum(run.state == "done" for run in made.runs)
    return {"done": done, "next": waiting.due if waiting and made.state != "ended" else None}


def _chart(seen: Any) -> LineChart:
    told = Line("told", tuple((float(at), one.total) for at, one in enumerate(seen.by)))
    return LineChart(
        "What will have been told by when",
        f"Everything released from the dataset, from {seen.by[0].day} to {seen.by[-1].day}; the "
        f"budget is {seen.budget:.4g}.",
        "",
        "ε",
        (told, level(f"budget {seen.budget:.4g}", seen.budget, [told])),
        x_names=tuple(one.day for one in seen.by),
    )
