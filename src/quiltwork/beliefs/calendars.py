"""`Calendar`: the offset changes of a time zone, stored with a belief.

Time-zone tables differ between machines and years. So a belief about the time of day stores the
changes it was made with, a dataset stores its beliefs, and the machine's table is not read again.
"""

from __future__ import annotations

from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any
from zoneinfo import ZoneInfo

import numpy as np
from numpy.typing import NDArray

from quiltwork.beliefs.documents import field
from quiltwork.beliefs.zones import DAY, parse_zone
from quiltwork.errors import InvalidInputError
from quiltwork.exact import integer

FAR = 10**11
"""Seconds since 1970 beyond which no moment is accepted: some 3,000 years."""
_AHEAD = 10
"""Years after the last moment for which changes are stored, for series that grow."""


@dataclass(frozen=True)
class Calendar:
    """The offsets of a zone from UTC over a span of time.

    Attributes:
        zone: the name of the zone.
        begin: the first moment covered, in seconds since 1970.
        end: the first moment no longer covered.
        offset: the offset at `begin`, in seconds.
        changes: (moment, offset from then on), in order.
    """

    zone: str
    begin: int
    end: int
    offset: int
    changes: tuple[tuple[int, int], ...]

    def __post_init__(self) -> None:
        """Raise InvalidInputError if the changes are not in order."""
        moments = [moment for moment, _ in self.changes]
        if moments != sorted(set(moments)) or not self.begin < self.end:
            raise InvalidInputError(
                "The changes of a calendar must be in order, with one change per moment."
            )

    @classmethod
    def of(cls, zone: str, begin: int, end: int) -> Calendar:
        """Return the calendar of this machine's table, for these years and ten more.

        >>> year = Calendar.of("Europe/Berlin", 1767225600, 1767225600)
        >>> year.changes[:2]
        ((1743296400, 7200), (1761440400, 3600))
        """
        tz = parse_zone(zone)
        if tz is None:
            raise InvalidInputError("A calendar needs the name of a time zone.")
        first = int(datetime(_year(begin) - 1, 1, 1, tzinfo=UTC).timestamp())
        last = int(datetime(min(_year(end) + _AHEAD, 9999), 1, 1, tzinfo=UTC).timestamp())
        days = range(first, last + DAY, DAY)
        offsets = [_offset(tz, day) for day in days]
        changes: list[tuple[int, int]] = []
        for day, before, after in zip(days, offsets, offsets[1:], strict=False):
            if before != after:
                changes += _changes_on(tz, day, before)
        return cls(zone, first, last, offsets[0], tuple(changes))

    def shown(self, moments: NDArray[np.int64]) -> NDArray[np.int64]:
        """Return the local times of UTC moments, both in seconds since 1970.

        Raises:
            InvalidInputError: for moments outside the calendar.
        """
        if len(moments) and not self.begin <= int(moments.min()) <= int(moments.max()) < self.end:
            first, last = (f"{datetime.fromtimestamp(end, UTC):%Y-%m-%d}" for end in self.known)
            raise InvalidInputError(
                f"The belief's calendar of {self.zone} covers {first} to before {last}, and the "
                "series goes beyond it. Make a belief for the time of the series."
            )
        offsets = np.array([self.offset, *(offset for _, offset in self.changes)])
        period = np.searchsorted([moment for moment, _ in self.changes], moments, side="right")
        local: NDArray[np.int64] = moments + offsets[period]
        return local

    def moment(self, shown: int) -> int:
        """Return the first UTC moment with this local time, in seconds since 1970.

        A local time that is skipped in spring counts as after the change.

        Raises:
            InvalidInputError: for a moment outside the calendar.
        """
        offsets = sorted({self.offset, *(offset for _, offset in self.changes)}, reverse=True)
        moments = np.array([shown - offset for offset in offsets], dtype=np.int64)
        matching = np.flatnonzero(self.shown(moments) == shown)
        return int(moments[matching[0] if len(matching) else -1])

    @property
    def known(self) -> tuple[int, int]:
        """The span covered: (begin, end)."""
        return self.begin, self.end

    def covers(self, begin: int, end: int) -> bool:
        """Return whether the calendar covers all moments between two."""
        return self.begin <= begin and end <= self.end

    def changes_between(self, begin: int, end: int) -> list[int]:
        """Return the moments of changes in the interval (begin, end]."""
        return [moment for moment, _ in self.changes if begin < moment <= end]

    def to_document(self) -> dict[str, Any]:
        """Return the calendar as JSON values."""
        return {
            "zone": self.zone,
            "known": list(self.known),
            "offset": self.offset,
            "changes": [list(change) for change in self.changes],
        }

    @classmethod
    def from_document(cls, document: Any) -> Calendar | None:
        """Return the calendar that `to_document` wrote; None for None."""
        if document is None:
            return None
        try:
            zone, (begin, end) = str(field(document, "zone")), field(document, "known")
            changes = tuple((_second(a), _second(b)) for a, b in field(document, "changes"))
            return cls(zone, _second(begin), _second(end), _second(document["offset"]), changes)
        except (InvalidInputError, TypeError, ValueError, KeyError):
            raise InvalidInputError(
                "The calendar in a belief's document is damaged; make the belief again."
            ) from None


def _second(value: Any) -> int:
    return integer(value, "A moment of a calendar", -FAR, FAR)


def _year(moment: int) -> int:
    return datetime.fromtimestamp(moment, UTC).year


def _offset(tz: ZoneInfo, moment: int) -> int:
    offset = datetime.fromtimestamp(moment, tz).utcoffset()
    return 0 if offset is None else int(offset.total_seconds())


def _changes_on(tz: ZoneInfo, day: int, before: int) -> list[tuple[int, int]]:
    """Return the changes within a day to the second, at most one per quarter of an hour."""
    changes, offset = [], before
    for quarter in range(day, day + DAY, 900):
        if _offset(tz, quarter + 900) == offset:
            continue
        low, high = quarter, quarter + 900
        while high - low > 1:
            middle = (low + high) // 2
            low, high = (middle, high) if _offset(tz, middle) == offset else (low, middle)
        offset = _offset(tz, high)
        changes.append((high, offset))
    return changes
