"""What `quiltwork ledger plan` is asked, and what it found, as data."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

import click

from quiltwork.cli.series import read_query

if TYPE_CHECKING:
    from quiltwork.budget import Planned, ReleasePlan, Status

_KINDS = ("daily", "weekly", "monthly")


def read_schedule(
    asked: Sequence[str], year: Mapping[str, Any], status: Status
) -> tuple[Planned, ...]:
    """Read the releases to come: queries with windows, or a calendar year.

    Raises:
        click.UsageError: if neither, or both, are asked for.
    """
    from quiltwork.budget import calendar

    kinds = {kind: year[kind] for kind in _KINDS if year[kind]}
    if bool(asked) == bool(kinds):
        raise click.UsageError("give either --ask, or --year with --daily, --weekly or --monthly")
    if kinds and None in (year["year"], year["points_per_day"]):
        raise click.UsageError(f"--{min(kinds)} goes with --year and --points-per-day")
    states = status.beliefs[0].states
    if kinds:
        queries = {kind: read_query(text, states, None) for kind, text in kinds.items()}
        return calendar(year["year"], year["points_per_day"], **queries)
    return tuple(one for text in asked for one in _asked(text, status))


def _asked(text: str, status: Status) -> tuple[Planned, ...]:
    from quiltwork.budget import Planned, repeated

    question, _, window = text.rpartition("@")
    states = status.beliefs[0].states
    if not question:
        return (Planned(read_query(text, states, None), kind=text),)
    if ":" in window or not window.isdigit():
        return (Planned(read_query(question, states, window), kind=text),)
    query = read_query(question, states, None)
    return repeated(query, int(window), status.length or 0, kind=text)


def plan_document(found: ReleasePlan) -> dict[str, Any]:
    """Write a plan: one entry per release."""
    return {
        "budget": str(found.budget),
        "total": found.total,
        "releases": [
            {
                "kind": item.kind,
                "label": item.planned.label,
                "window": [item.spending.start, item.spending.stop],
                "scale": item.scale,
                "expected_error": item.expected_error,
                "signal_range": item.signal_range,
                "verdict": item.verdict,
                "cost_alone": item.cost_alone,
                "naive_scale": item.naive_scale,
                "naive_error": item.naive_error,
            }
            for item in found.items
        ],
    }
