"""The pages of collaborative tables: rows given, the published table and its risk; jobs."""

from __future__ import annotations

import csv
import io
from collections.abc import Mapping
from typing import Any

from quiltwork.service.dashboard.rendering import sizes_chart
from quiltwork.service.dashboard.web import PageRequest, PageView, form_values, submitted
from quiltwork.service.problems import Problem

_PREVIEW_ROWS = 8
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
    "provider-aware": "splits by provider where that loses less",
    "baseline": "ignores which provider a row is from",
    "separate": "anonymizes each provider's rows on their own",
}


def tables(request: PageRequest, refused: Problem | None = None) -> PageView:
    """Show the tables that the caller may use, and a form to create one."""
    values = {
        "heading": "Tables",
        "tables": request.list_all("list_tables"),
        "form": form_values(request, _NEW),
        "methods": _METHODS,
        "refused": refused,
    }
    return PageView("tables.html", values)


def make(request: PageRequest) -> Any:
    """Create a table, still without rows."""
    rules = submitted(request, _NEW, "k", "l", "m")
    name, quasi = rules.pop("name", ""), rules.pop("quasi", "")
    rules["quasi_identifiers"] = _listed(quasi)
    rules["text"] = _listed(rules.get("text", ""))
    rules["hierarchies"] = _trees(rules.get("hierarchies", ""))
    return request.api("make_table", None, {"name": name, "rules": rules})


def _listed(text: str) -> list[str]:
    return [part.strip() for part in text.split(",") if part.strip()]


def _trees(text: str) -> dict[str, list[list[str]]]:
    """Parse hierarchies: on each line a column, a colon, and the labels from a leaf to the root."""
    trees: dict[str, list[list[str]]] = {}
    for line in filter(None, map(str.strip, text.splitlines())):
        column, colon, labels = line.partition(":")
        if not colon:
            raise Problem(
                422, "invalid-input", "Write each line of a hierarchy as: column: leaf, …, root."
            )
        trees.setdefault(column.strip(), []).append(_listed(labels))
    return trees


def table(request: PageRequest, refused: Problem | None = None) -> PageView:
    """Show one table as the caller may see it."""
    described = request.api("show_table", request.path)
    published = described.state == "published"
    report = (
        request.api("show_table_report", request.path)
        if published and request.may("table.report")
        else None
    )
    has_rows = request.may("table.check") and any(part.kept for part in described.parts)
    values = {
        "heading": described.name,
        "table": described,
        "promise": guarantee(**described.rules),
        "report": report,
        "sizes": sizes_chart(report.sizes, described.rules["k"]) if report else None,
        "published": _first_rows(request) if published and request.may("table.published") else None,
        "check": request.api("check_own_rows", request.path) if published and has_rows else None,
        "refused": refused,
        "mine": described.owner == request.caller.member,
    }
    return PageView("table.html", values)


def jobs(request: PageRequest) -> PageView:
    """Show the caller's publications, the latest first."""
    page = request.api("list_jobs", query={"limit": 50})
    values = {"heading": "Jobs", "jobs": page.items, "more": page.next}
    return PageView("jobs.html", values, part="jobs_part.html")


def guarantee(
    sensitive: str,
    k: int,
    l: int,  # noqa: E741
    m: int,
    levels: Mapping[str, int] | None = None,
    **_: Any,
) -> str:
    """Return the guarantee of every published group in words."""
    level = (levels or {}).get(sensitive)
    kind = "values" if level is None else f"level-{level} labels"
    values = f" with {l} {kind} of {sensitive}" if l > 1 else ""
    several = f"any {m} of the providers together"
    against = {0: "outsiders", 1: "any one of the providers"}.get(m, several)
    return f"at least {k} records{values} in every group, against {against}"


def _first_rows(request: PageRequest) -> tuple[list[str], list[list[str]]]:
    content = request.api("show_publication", request.path).content
    rows = csv.reader(io.StringIO(content))
    header = next(rows, [])
    return header, [row for row, _ in zip(rows, range(_PREVIEW_ROWS), strict=False)]
