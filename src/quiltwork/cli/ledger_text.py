"""Text and JSON of `quiltwork ledger`: datasets, debits, and the schedules of plans."""

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
    """Return a dataset as JSON values, with its exact budget."""
    charged = {name: float(charge) for name, charge in status.charged.items()}
    return {**status.body(), "budget": str(status.exact_budget), "charged": charged}


def status_lines(statuses: Sequence[Status]) -> Iterator[str]:
    """Yield datasets as a table; a single one with its beliefs and shares."""
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
            "accounts for persons: levels are for replacing all rows of one person, and a level "
            "for adding or removing a person is debited twice; use --adjacency replace"
        )
    else:
        yield from (f"belief: {belief.summary()}" for belief in status.beliefs)
    if status.episode > 1:
        yield f"protects every {status.episode} time points in a row"
    if status.pairs is not None:
        pairs = ", ".join(f"{a} from {b}" for a, b in status.pairs)
        yield f"keeps apart {pairs}; other pairs of states are not protected"
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
    """Return a debit as JSON values."""
    spending = {"spending": debit.spending.to_body(), "composes_by": debit.composes_by}
    return {**debit.body(), **spending}


def history_lines(debits: Sequence[Debit]) -> Iterator[str]:
    """Yield debits as a table."""
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
    """Return the level per time point as text: a pure level, or μ of Gaussian noise."""
    spending, level = debit.spending, debit.spending.dp_epsilon
    if spending.composes_by == "squares":
        return f"μ {math.sqrt(spending.square):.6g}"
    return "none" if level is None else f"{float(level):.6g}"


def read_schedule(
    queries: Sequence[str],
    status: Status,
    year: int | None,
    points_per_day: int | None,
    calendar_kinds: Mapping[str, str | None],
    timezone: str | None = None,
) -> tuple[Planned, ...]:
    """Parse planned releases: queries with windows, or a calendar year of a time zone.

    Raises:
        click.UsageError: for neither or both, and if the length of a time point is unknown.
    """
    from quiltwork.budget import calendar

    kinds = {kind: text for kind, text in calendar_kinds.items() if text}
    if bool(queries) == bool(kinds):
        raise click.UsageError("give either --ask, or --year with --daily, --weekly or --monthly")
    if kinds and (year is None or points_per_day is None):
        raise click.UsageError(
            f"--{min(kinds)} goes with --year, and with --points-per-day where the beliefs do not "
            "say how long a time point is"
        )
    states = status.beliefs[0].states
    if year is not None and points_per_day is not None and kinds:
        by_kind = {kind: read_query(text, states, None) for kind, text in kinds.items()}
        return calendar(year, points_per_day, **by_kind, timezone=timezone)
    return tuple(planned for text in queries for planned in _parse_planned(text, status))


def _parse_planned(text: str, status: Status) -> tuple[Planned, ...]:
    """Parse QUERY, QUERY@SIZE, QUERY@SIZE/STEP or QUERY@START:STOP."""
    from quiltwork.budget import Planned, repeated

    name, _, window = text.rpartition("@")
    states, length = status.beliefs[0].states, status.length or 0
    if not name:
        return (Planned(read_query(text, states, None), kind=text),)
    size, slash, step = window.partition("/")
    if size.isdigit() and (step.isdigit() if slash else True):
        query = read_query(name, states, None)
        distance = int(step) if slash else None
        return repeated(query, int(size), length, kind=text, step=distance)
    return (Planned(read_query(name, states, window), kind=text),)
