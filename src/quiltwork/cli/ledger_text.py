"""What `quiltwork ledger` is asked and what it shows: datasets, debits, plans, as text and JSON."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any

import click

from quiltwork.budget.persons import PEOPLE
from quiltwork.cli.output import text_table
from quiltwork.cli.series_options import read_query
from quiltwork.exact import format_down, format_up

if TYPE_CHECKING:
    from quiltwork.budget import Debit, Planned, Status


def status_document(status: Status) -> dict[str, Any]:
    """Write a dataset; the budget is exact."""
    charged = {name: float(charge) for name, charge in status.charged.items()}
    return {**status.body(), "budget": str(status.exact_budget), "charged": charged}


def status_lines(statuses: Sequence[Status]) -> Iterator[str]:
    """Show datasets as a table; a single one with its beliefs and shares."""
    rows = [
        [
            s.dataset,
            "any" if s.length is None or s.beliefs == (PEOPLE,) else s.length,
            s.debits,
            f"{s.total:.6g}",
            f"{s.budget:.6g}" + (f", δ {s.delta:g}" if s.delta else ""),
            format_down(100 * s.remaining, 6) + " %" if s.delta else f"{s.remaining:.6g}",
            "open" if s.retired is None else f"retired: {s.retired}",
        ]
        for s in statuses
    ]
    header = ["dataset", "length", "debits", "total", "budget", "left", "state"]
    yield from text_table(header, rows)
    if len(statuses) != 1:
        return
    (status,) = statuses
    yield ""
    if status.beliefs == (PEOPLE,):
        yield (
            "accounts for persons, each replaced as a whole; an epsilon for adding or removing one "
            "is debited twice, which --adjacency replace avoids"
        )
    else:
        yield from (f"belief: {belief!r}" for belief in status.beliefs)
    if status.episode > 1:
        yield f"protects every stretch of {status.episode} time points"
    if status.pairs is not None:
        kept = ", ".join(f"{a} from {b}" for a, b in status.pairs)
        yield f"keeps apart {kept}; other pairs of states are not protected"
    if status.delta:
        yield (
            f"{format_up(100 * status.used, 6)} % of the squares that a time point may spend is "
            "used where most is; ε and δ are claimed whole from the first release on"
        )
    for name in sorted({*status.shares, *status.charged}):
        share = status.shares.get(name)
        cap = "none" if share is None or share.cap is None else f"{float(share.cap):.6g}"
        reserved = 0.0 if share is None else float(share.reserved)
        charged = float(status.charged.get(name, 0))
        yield f"analyst {name}: charged {charged:.6g}, cap {cap}, reserved {reserved:.6g}"


def debit_document(debit: Debit) -> dict[str, Any]:
    """Write a debit."""
    told = {"spending": debit.spending.to_body(), "composes_by": debit.composes_by}
    return {**debit.body(), **told}


def history_lines(debits: Sequence[Debit]) -> Iterator[str]:
    """Show debits as a table."""
    if not debits:
        yield "No debits yet."
        return
    rows = [
        [
            debit.number,
            debit.at,
            f"{debit.spending.start}..{debit.spending.stop}",
            _level(debit),
            debit.spending.label or debit.mechanism,
            debit.composes_by,
            debit.state,
            debit.analyst or "",
            debit.key or "",
        ]
        for debit in debits
    ]
    header = ["entry", "at", "window", "DP level", "mechanism", "composes by", "state"]
    yield from text_table([*header, "analyst", "key"], rows)


def _level(debit: Debit) -> str:
    """What it spends per time point: a pure level, or μ of Gaussian noise."""
    spending, level = debit.spending, debit.spending.dp_epsilon
    if spending.composes_by == "squares":
        return f"μ {math.sqrt(spending.square):.6g}"
    return "none" if level is None else f"{float(level):.6g}"


def read_schedule(
    asked: Sequence[str],
    status: Status,
    year: int | None,
    points_per_day: int | None,
    calendar_kinds: Mapping[str, str | None],
    timezone: str | None = None,
) -> tuple[Planned, ...]:
    """Read the releases to come: queries with windows, or a calendar year of a zone.

    Raises:
        click.UsageError: if neither, or both, are asked for.
    """
    from quiltwork.budget import calendar

    kinds = {kind: text for kind, text in calendar_kinds.items() if text}
    if bool(asked) == bool(kinds):
        raise click.UsageError("give either --ask, or --year with --daily, --weekly or --monthly")
    if kinds and (year is None or points_per_day is None):
        raise click.UsageError(
            f"--{min(kinds)} goes with --year, and with --points-per-day where the beliefs do not "
            "say how long a time point is"
        )
    states = status.beliefs[0].states
    if year is not None and points_per_day is not None and kinds:
        queries = {kind: read_query(text, states, None) for kind, text in kinds.items()}
        return calendar(year, points_per_day, **queries, timezone=timezone)
    return tuple(one for text in asked for one in _asked(text, status))


def _asked(text: str, status: Status) -> tuple[Planned, ...]:
    from quiltwork.budget import Planned, repeated

    question, _, window = text.rpartition("@")
    states = status.beliefs[0].states
    if not question:
        return (Planned(read_query(text, states, None), kind=text),)
    size, rolling, step = window.partition("/")
    if rolling and size.isdigit() and step.isdigit():
        query = read_query(question, states, None)
        return repeated(query, int(size), status.length or 0, kind=text, step=int(step))
    if ":" in window or not window.isdigit():
        return (Planned(read_query(question, states, window), kind=text),)
    query = read_query(question, states, None)
    return repeated(query, int(window), status.length or 0, kind=text)
