"""Collaborative tables: what providers gave, what is published, who could break what."""

from __future__ import annotations

import csv
import io
from collections.abc import Callable
from typing import Any

from starlette.responses import Response

from quiltwork.service.dashboard.charts import sizes_chart
from quiltwork.service.dashboard.pages.members import whole
from quiltwork.service.dashboard.rendering import HEADERS
from quiltwork.service.dashboard.web import Go, Shown, Visit, done, filled, read_problem
from quiltwork.service.problems import Problem

STATES = {"collecting": "warn", "publishing": "busy", "published": "good"}
_FIRST = 8
"""Published rows that are shown on the page."""
_NEW = {"name": "", "quasi": "", "sensitive": "", "k": "5", "l": "2", "m": "1"}


def tables(visit: Visit, refused: Problem | None = None) -> Shown:
    """Show the tables that somebody may use, and a form for another."""
    values = {
        "heading": "Tables",
        "tables": visit.everything("list_tables"),
        "states": STATES,
        "form": filled(visit, _NEW),
        "refused": refused,
    }
    return Shown("tables.html", values, refused.status if refused else 200)


def make(visit: Visit) -> Shown | Go:
    """Make a table without rows."""
    made, refused = read_problem(lambda: visit.ask("make_table", None, _asked(visit)))
    return tables(visit, refused) if refused else Go(f"/tables/{made.name}", "created")


def table(visit: Visit, refused: Problem | None = None) -> Shown:
    """Show one table as the caller may see it."""
    found = visit.ask("show_table", visit.path)
    out = found.state == "published"
    report = (
        visit.ask("show_table_report", visit.path) if out and visit.may("table.report") else None
    )
    gave = found.parts if visit.may("table.check") else []
    values = {
        "heading": found.name,
        "one": found,
        "states": STATES,
        "promise": promise(found.rules),
        "report": report,
        "sizes": sizes_chart(report.sizes, found.rules.k) if report else None,
        "published": _rows(visit) if out and visit.may("table.published") else None,
        "check": visit.ask("check_own_rows", visit.path) if out and gave else None,
        "refused": refused,
        "mine": found.owner == visit.caller.member,
    }
    return Shown("table.html", values, refused.status if refused else 200)


def promise(rules: Any) -> str:
    """Say what every group withstands."""
    values = f" with {rules.l} values of {rules.sensitive}" if rules.l > 1 else ""
    several = f"any {rules.m} of the providers together"
    against = {0: "outsiders", 1: "any one of the providers"}.get(rules.m, several)
    return f"at least {rules.k} records{values} in every group, against {against}"


def admit(visit: Visit) -> Shown | Go:
    """Let a provider give rows, or an analyst read what is published."""
    path = {**visit.path, "member": visit.form.get("member", "").strip()}
    return _done(visit, "shared", lambda: visit.ask("admit_to_table", path))


def dismiss(visit: Visit) -> Shown | Go:
    """Take access back."""
    return _done(visit, "shared", lambda: visit.ask("dismiss_from_table", visit.path))


def give(visit: Visit) -> Shown | Go:
    """Give the rows of a file."""
    return _done(visit, "submitted", lambda: visit.send("give_rows", visit.path, "rows"))


def publish(visit: Visit) -> Shown | Go:
    """Publish; a large table in the background."""
    return _done(visit, "queued", lambda: visit.ask("publish_table", visit.path))


def download(visit: Visit) -> Response:
    """Send the published table as a file."""
    found = visit.ask("show_publication", visit.path)
    named = {"Content-Disposition": f'attachment; filename="{found.name}.csv"'}
    return Response(found.content, headers=HEADERS | named, media_type="text/csv; charset=utf-8")


def _rows(visit: Visit) -> tuple[list[str], list[list[str]]]:
    content = visit.ask("show_publication", visit.path).content
    rows = csv.reader(io.StringIO(content))
    header = next(rows, [])
    return header, [row for row, _ in zip(rows, range(_FIRST), strict=False)]


def _asked(visit: Visit) -> dict[str, Any]:
    form = filled(visit, _NEW)
    rules: dict[str, Any] = {
        "quasi_identifiers": [one.strip() for one in form["quasi"].split(",") if one.strip()],
        "sensitive": form["sensitive"].strip(),
    }
    for name in ("k", "l", "m"):
        rules[name] = whole(form[name].strip(), f"The number {name}")
    return {"name": form["name"].strip(), "rules": rules}


def _done(visit: Visit, told: str, work: Callable[[], Any]) -> Shown | Go:
    address = f"/tables/{visit.path['table']}"
    return done(work, address, told, lambda refused: table(visit, refused))
