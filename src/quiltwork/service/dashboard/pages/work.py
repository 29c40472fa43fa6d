"""Jobs: where they are, how far, and whether anybody is at work."""

from __future__ import annotations

from quiltwork.service.dashboard.web import Go, Shown, Visit

_KINDS = {
    "done": "good",
    "running": "busy",
    "queued": "warn",
    "failed": "bad",
    "cancelled": "",
}
"""How a state is coloured."""


def jobs(visit: Visit) -> Shown:
    """Show the long work that somebody asked for."""
    found = visit.ask("list_jobs", query={"limit": 50})
    values = {"heading": "Jobs", "jobs": found.items, "more": found.next, "kinds": _KINDS}
    return Shown("jobs.html", values, part="jobs_part.html")


def cancel(visit: Visit) -> Go:
    """Cancel a job."""
    visit.ask("cancel_job", visit.path)
    return Go("/jobs", "cancelled")
