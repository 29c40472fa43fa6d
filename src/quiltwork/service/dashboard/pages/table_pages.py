"""Collaborative tables: what providers gave, what is published, who could break what."""

from __future__ import annotations

import csv
import io
from typing import Any

from quiltwork.service.dashboard.rendering import sizes_chart
from quiltwork.service.dashboard.web import PageRequest, PageView, filled, sent
from quiltwork.service.problems import Problem

_FIRST = 8
"""Published rows that are shown on the page."""
_NEW = {
    "name": "",
    "quasi": "",
    "sensitive": "",
    "k": "5",
    "l": "2",
    "m": "1",
    "missing": "error",
    "text": "",
    "method": "provider-aware",
    "hierarchies": "",
}
_METHODS = {
    "provider-aware": "provider by provider where it loses less",
    "baseline": "as if all rows were one provider's",
    "separate": "each provider on its own",
}


def tables(visit: PageRequest, refused: Problem | None = None) -> PageView:
    """Show the tables that somebody may use, and a form for another."""
    values = {
        "heading": "Tables",
        "tables": visit.everything("list_tables"),
        "form": filled(visit, _NEW),
        "methods": _METHODS,
        "refused": refused,
    }
    return PageView("tables.html", values)


def make(visit: PageRequest) -> Any:
    """Make a table without rows."""
    rules = sent(visit, _NEW, "k", "l", "m")
    name, quasi = rules.pop("name", ""), rules.pop("quasi", "")
    rules["quasi_identifiers"] = _listed(quasi)
    rules["text"] = _listed(rules.get("text", ""))
    rules["hierarchies"] = _trees(rules.get("hierarchies", ""))
    return visit.ask("make_table", None, {"name": name, "rules": rules})


def _listed(text: str) -> list[str]:
    return [one.strip() for one in text.split(",") if one.strip()]


def _trees(text: str) -> dict[str, list[list[str]]]:
    """Read trees of labels: a line is a column, a colon, and a leaf with what stands above it."""
    found: dict[str, list[list[str]]] = {}
    for line in filter(None, map(str.strip, text.splitlines())):
        column, colon, labels = line.partition(":")
        if not colon:
            raise Problem(422, "invalid-input", "A line of a hierarchy is: column: leaf, …, root.")
        found.setdefault(column.strip(), []).append(_listed(labels))
    return found


def table(visit: PageRequest, refused: Problem | None = None) -> PageView:
    """Show one table as the caller may see it."""
    found = visit.ask("show_table", visit.path)
    out = found.state == "published"
    report = (
        visit.ask("show_table_report", visit.path) if out and visit.may("table.report") else None
    )
    gave = visit.may("table.check") and any(part.kept for part in found.parts)
    values = {
        "heading": found.name,
        "one": found,
        "promise": promise(**found.rules),
        "report": report,
        "sizes": sizes_chart(report.sizes, found.rules["k"]) if report else None,
        "published": _rows(visit) if out and visit.may("table.published") else None,
        "check": visit.ask("check_own_rows", visit.path) if out and gave else None,
        "refused": refused,
        "mine": found.owner == visit.caller.member,
    }
    return PageView("table.html", values)


def jobs(visit: PageRequest) -> PageView:
    """Show the publications that somebody asked for."""
    found = visit.ask("list_jobs", query={"limit": 50})
    values = {"heading": "Jobs", "jobs": found.items, "more": found.next}
    return PageView("jobs.html", values, part="jobs_part.html")


def promise(sensitive: str, k: int, l: int, m: int, **_: Any) -> str:  # noqa: E741
    """Say what every group withstands."""
    values = f" with {l} values of {sensitive}" if l > 1 else ""
    several = f"any {m} of the providers together"
    against = {0: "outsiders", 1: "any one of the providers"}.get(m, several)
    return f"at least {k} records{values} in every group, against {against}"


def _rows(visit: PageRequest) -> tuple[list[str], list[list[str]]]:
    content = visit.ask("show_publication", visit.path).content
    rows = csv.reader(io.StringIO(content))
    header = next(rows, [])
    return header, [row for row, _ in zip(rows, range(_FIRST), strict=False)]
