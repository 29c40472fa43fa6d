"""When the time points of a ledger's dataset are: by its beliefs, its registered data, or typed."""

from __future__ import annotations

from datetime import datetime
from typing import TYPE_CHECKING

import click

from quiltwork.beliefs.zones import DAY, parse_zone

if TYPE_CHECKING:
    from quiltwork.budget import Ledger, Status
    from quiltwork.series.reading.clock import Clock, TimePoints


def dataset_times(
    opened: Ledger,
    status: Status,
    begins: str | None = None,
    timezone: str | None = None,
    points_per_day: int | None = None,
) -> TimePoints | None:
    """Return the dates of a dataset's time points; None if its beginning or step is unknown.

    Raises:
        click.UsageError: for a `begins` that cannot be read, or is not that of the dataset.
    """
    from quiltwork.series.reading.clock import TimePoints, series_clock

    grids = [belief.grid for belief in status.beliefs if belief.grid is not None]
    step = next((grid.step for grid in grids if grid.step), None)
    if points_per_day is not None:
        step, rest = divmod(DAY, points_per_day)
        if rest:
            raise click.UsageError(
                f"--points-per-day {points_per_day} does not divide the {DAY:,} seconds of a day"
            )
    zone = _zone(opened, status, timezone)
    clock = series_clock(zone, step)
    stored = _beginning(opened, status)
    if begins is not None:
        try:
            start = _seconds(datetime.fromisoformat(begins), clock)
        except ValueError:
            raise click.UsageError(
                f"cannot read --begins {begins!r}: give a moment such as 2026-03-01T00:00"
            ) from None
        if stored is not None and _seconds(stored, clock) != start:
            raise click.UsageError(
                f"dataset {status.dataset!r} begins at {stored.isoformat(timespec='minutes')}: "
                "leave out --begins"
            )
    elif stored is None:
        return None
    else:
        start = _seconds(stored, clock)
    return None if step is None else TimePoints(start, step, status.length or 1, clock)


def dated_window(opened: Ledger, status: Status, text: str) -> tuple[int, int]:
    """Return the time points of one run of dates.

    Raises:
        click.UsageError: if the dates of the dataset are unknown, or there are several runs.
    """
    times = dataset_times(opened, status)
    if times is None:
        raise click.UsageError(
            f"when is {text!r}? Neither the beliefs nor a registered file say when the series "
            "begins: give positions START:STOP"
        )
    first, *others = times.windows(text)
    if others:
        raise click.UsageError(f"{text!r} is {len(others) + 1} windows, and one is needed here")
    return first


def _beginning(opened: Ledger, status: Status) -> datetime | None:
    """Return the beginning that the beliefs fix, else that of the registered data."""
    from quiltwork.beliefs import DatedChain
    from quiltwork.series.registration import registered_beginning

    for belief in status.beliefs:
        if isinstance(belief, DatedChain):
            return datetime.fromtimestamp(belief.begins, parse_zone(belief.calendar.zone))
    text = registered_beginning(opened, status.dataset)
    return None if text is None else datetime.fromisoformat(text)


def _seconds(moment: datetime, clock: Clock) -> int:
    if clock.local or moment.tzinfo is None:
        return clock.seconds(moment.replace(tzinfo=None))
    return int(moment.timestamp())


def _zone(opened: Ledger, status: Status, typed: str | None) -> str | None:
    """Return the time zone of a dataset: as typed, as registered, or of its beliefs."""
    from quiltwork.beliefs import DatedChain
    from quiltwork.series.registration import registered_reading

    if typed is not None:
        return None if typed == "none" else typed
    if zone := registered_reading(opened, status.dataset).get("timezone"):
        return str(zone)
    dated = [belief for belief in status.beliefs if isinstance(belief, DatedChain)]
    zones = {belief.calendar.zone for belief in dated}
    return zones.pop() if len(zones) == 1 else None
