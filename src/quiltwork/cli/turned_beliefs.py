"""Beliefs about the time of day, turned to when a series begins, as a ledger keeps them."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import UTC, datetime
from typing import TYPE_CHECKING

from quiltwork.errors import InvalidInputError

if TYPE_CHECKING:
    from quiltwork.beliefs import Belief
    from quiltwork.beliefs.calendars import Calendar

_DAY = 86_400


def turned_beliefs(
    beliefs: Sequence[Belief], begins: Sequence[str], timezone: str | None, source: str
) -> list[Belief]:
    """Return beliefs for series that begin at these times; those without a time of day stay.

    Args:
        beliefs: the beliefs.
        begins: times of day such as 08:00, or moments such as 2026-03-01T08:00.
        timezone: the zone whose clock changes are followed; None takes that of each belief.
        source: what to call the beliefs in a message.
    """
    from quiltwork.beliefs import CyclicChain

    turned: dict[Belief, None] = {}
    for belief in beliefs:
        if not isinstance(belief, CyclicChain):
            turned[belief] = None
            continue
        step = None if belief.grid is None else belief.grid.step
        if step is None or belief.anchor is None:
            raise InvalidInputError(
                f"{source} does not say when its first phase is; fit it on data with times, or "
                "turn it in Python with starting(phases)."
            )
        calendar = belief.calendar
        if timezone is not None and (calendar is None or calendar.zone != timezone):
            calendar = _calendar(timezone, begins)
        dated = all("-" in text for text in begins)
        if calendar is not None and timezone != "none" and dated:
            moments = (_utc(text, calendar) for text in begins)
            turned.update((belief.beginning(moment, calendar), None) for moment in moments)
            continue
        if timezone not in (None, "none"):
            raise InvalidInputError(
                "Whether clocks change in a series depends on its day: give --begins a moment such "
                "as 2026-03-01T08:00."
            )
        seconds = [_seconds(text, belief.period * step) for text in begins]
        phases = {(second - belief.anchor) // step % belief.period for second in seconds}
        turned.update((belief.starting(phase), None) for phase in sorted(phases))
    return list(turned)


def followed_zones(beliefs: Sequence[Belief]) -> list[str]:
    """Return the zones whose clock beliefs follow without knowing when a series begins."""
    from quiltwork.beliefs import CyclicChain, DatedChain

    zones = {
        belief.calendar.zone
        for belief in beliefs
        if isinstance(belief, CyclicChain)
        and not isinstance(belief, DatedChain)
        and belief.calendar is not None
    }
    return sorted(zone for zone in zones if zone is not None)


def _calendar(zone: str, begins: Sequence[str]) -> Calendar | None:
    """Return the clock changes of a zone around these moments; None without a zone or a day."""
    from quiltwork.beliefs.calendars import Calendar

    if zone == "none" or not all("-" in text for text in begins):
        return None
    moments = [_seconds(text, 0) for text in begins]
    return Calendar.of(zone, min(moments), max(moments))


def _utc(text: str, calendar: Calendar) -> int:
    """Read a moment as clocks of a zone show it the first time, unless it has an offset."""
    try:
        moment = datetime.fromisoformat(text)
    except ValueError:
        raise InvalidInputError(
            f"Cannot read when {text!r} is; give a moment such as 2026-03-01T08:00."
        ) from None
    if moment.tzinfo is not None:
        return int(moment.timestamp())
    return calendar.moment(int(moment.replace(tzinfo=UTC).timestamp()))


def _seconds(text: str, cycle: int) -> int:
    """Read a time of day, or a moment, in seconds of the clock that beliefs keep."""
    try:
        if "-" not in text and cycle == _DAY:
            return int(datetime.fromisoformat(f"1970-01-01T{text}+00:00").timestamp())
        moment = datetime.fromisoformat(text)
    except ValueError:
        day = "a time of day such as 08:00, or " if cycle == _DAY else ""
        raise InvalidInputError(
            f"Cannot read when {text!r} is; give {day}a moment such as 2026-03-01T08:00."
        ) from None
    return int((moment if moment.tzinfo else moment.replace(tzinfo=UTC)).timestamp())
