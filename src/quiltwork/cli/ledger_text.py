"""Text and JSON of `quiltwork ledger`: datasets, debits, and the schedules of plans."""

from __future__ import annotations

import math
import re
from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any

import click

from quiltwork.beliefs.zones import DAY
from quiltwork.budget.persons import PEOPLE
from quiltwork.cli.output import note, text_table
from quiltwork.cli.series_options import read_query
from quiltwork.exact import format_down, format_up

if TYPE_CHECKING:
    from quiltwork.budget import Debit, Planned, Status
    from quiltwork.series.reading.clock import TimePoints

_DATE = re.compile(r"\d{4}-\d\d")


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
    calendar_kinds: Mapping[str, str | None],
    times: TimePoints | None,
    earliest: str | None = None,
) -> tuple[Planned, ...]:
    """Parse planned releases: queries with windows, or those of a calendar year.

    Args:
        queries: typed queries with windows.
        status: the dataset.
        year: the calendar year.
        calendar_kinds: a query for each of daily, weekly and monthly, or None.
        times: the dates of the time points; None if unknown.
        earliest: a date; releases whose windows begin before it are left out.

    Raises:
        click.UsageError: for neither or both, and for dates where those of the series are unknown.
    """
    from quiltwork.budget import calendar

    kinds = {kind: text for kind, text in calendar_kinds.items() if text}
    if bool(queries) == bool(kinds):
        raise click.UsageError("give either --ask, or --year with --daily, --weekly or --monthly")
    if kinds and year is None:
        raise click.UsageError(f"--{min(kinds)} goes with --year")
    if year is not None and kinds:
        known = _known(times)
        states = status.beliefs[0].states
        planned = calendar(
            year,
            DAY // known.step,
            **{kind: read_query(text, states, None) for kind, text in kinds.items()},
            timezone=None if known.clock.local else known.clock.zone,
            begins=known.clock.shown(known.start),
            length=known.count,
        )
        months = sum(item.kind == "monthly" for item in planned)
        if "monthly" in kinds and months < 12:
            note(
                f"{months} of the 12 months of {year} are wholly in the series, which is from "
                f"{known.clock.written(known.start)} to "
                f"{known.clock.written(known.start + known.step * known.count)}; the others are "
                "left out, and --ask histogram@2026-03 asks about the part of one."
            )
    else:
        planned = tuple(item for text in queries for item in _parse_planned(text, status, times))
    if earliest is None:
        return planned
    known = _known(times)
    span = known.span(earliest.strip())
    if span is None:
        raise click.UsageError(f"cannot read --from {earliest!r}: give a date such as 2026-04-01")
    first = -((known.start - span[0]) // known.step) + 1
    later = [item for item in planned if item.query.window(known.count)[0] >= first]
    if not later:
        raise click.UsageError(f"no planned release begins at {earliest} or later")
    return tuple(later)


def _known(times: TimePoints | None) -> TimePoints:
    """Return the dates of the time points.

    Raises:
        click.UsageError: if they are unknown.
    """
    if times is None:
        raise click.UsageError(
            "dates need the time of the first time point, which neither the beliefs nor a "
            "registered file say: give --begins, such as --begins 2026-01-01T00:00, and "
            "--points-per-day where the beliefs do not say how long a time point is; or register "
            "the file first"
        )
    return times


def _parse_planned(text: str, status: Status, times: TimePoints | None) -> tuple[Planned, ...]:
    """Parse QUERY, QUERY@SIZE, QUERY@SIZE/STEP, QUERY@START:STOP or QUERY@DATES."""
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
    if _DATE.match(window):
        query = read_query(name, states, None)
        return (Planned(query.on_runs(_known(times).windows(window)), kind=text),)
    return (Planned(read_query(name, states, window), kind=text),)
