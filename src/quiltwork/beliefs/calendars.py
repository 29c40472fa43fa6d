"""Calendars: when the clocks of a zone change, as it was known when a belief was made.

Tables of time zones differ between machines and years. So a belief about the time of day keeps the
changes that it was made with, a dataset keeps its beliefs, and neither asks a machine again.
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
_AHEAD = 10


@dataclass(frozen=True)
class Calendar:
    """The offsets of a zone from UTC, from one moment to another.

    Attributes:
        zone: its name.
        begin: the first moment that is known, in seconds since 1970 …
        end: … and the first that is not.
        offset: that of `begin`, in seconds.
        changes: (moment, offset from then on), in order.
    """

    zone: str
    begin: int
    end: int
    offset: int
    changes: tuple[tuple[int, int], ...]

    def __post_init__(self) -> None:
        """Check that changes are in order."""
        moments = [moment for moment, _ in self.changes]
        if moments != sorted(set(moments)) or not self.begin < self.end:
            raise InvalidInputError("The changes of a calendar are in order, each at its moment.")

    @classmethod
    def of(cls, zone: str, begin: int, end: int) -> Calendar:
        """Read the table of this machine, for the years of these moments and ten more.

        >>> year = Calendar.of("Europe/Berlin", 1767225600, 1767225600)
        >>> year.changes[:2]
        ((1743296400, 7200), (1761440400, 3600))
        """
        place = parse_zone(zone)
        if place is None:
            raise InvalidInputError("A calendar needs the name of a time zone.")
        first = int(datetime(_year(begin) - 1, 1, 1, tzinfo=UTC).timestamp())
        last = int(datetime(min(_year(end) + _AHEAD, 9999), 1, 1, tzinfo=UTC).timestamp())
        days = range(first, last + DAY, DAY)
        offsets = [_offset(place, day) for day in days]
        changes: list[tuple[int, int]] = []
        for day, before, after in zip(days, offsets, offsets[1:], strict=False):
            if before != after:
                changes += _changes_on(place, day, before)
        return cls(zone, first, last, offsets[0], tuple(changes))

    def shown(self, moments: NDArray[np.int64]) -> NDArray[np.int64]:
        """Return what clocks show at moments of UTC, in seconds since 1970.

        Raises:
            InvalidInputError: for moments that the calendar does not know.
        """
        if len(moments) and not self.begin <= int(moments.min()) <= int(moments.max()) < self.end:
            first, last = (f"{datetime.fromtimestamp(one, UTC):%Y-%m-%d}" for one in self.known)
            raise InvalidInputError(
                f"The belief knows when clocks of {self.zone} change from {first} to before "
                f"{last}, and the series goes beyond that; make a belief with that time in it."
            )
        offsets = np.array([self.offset, *(offset for _, offset in self.changes)])
        places = np.searchsorted([moment for moment, _ in self.changes], moments, side="right")
        found: NDArray[np.int64] = moments + offsets[places]
        return found

    def moment(self, shown: int) -> int:
        """Return the moment of UTC when clocks show this, the first time they do.

        A time that is skipped in spring is read as after the change.

        Raises:
            InvalidInputError: for a moment that the calendar does not know.
        """
        offsets = sorted({self.offset, *(offset for _, offset in self.changes)}, reverse=True)
        moments = np.array([shown - offset for offset in offsets], dtype=np.int64)
        right = np.flatnonzero(self.shown(moments) == shown)
        return int(moments[right[0] if len(right) else -1])

    @property
    def known(self) -> tuple[int, int]:
        """From when on, and before when, changes are known."""
        return self.begin, self.end

    def covers(self, begin: int, end: int) -> bool:
        """Whether all changes between two moments are known."""
        return self.begin <= begin and end <= self.end

    def changes_between(self, begin: int, end: int) -> list[int]:
        """Return when clocks change after one moment and up to another."""
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
        """Read what `to_document` wrote; nothing for nothing."""
        if document is None:
            return None
        try:
            zone, (begin, end) = str(field(document, "zone")), field(document, "known")
            changes = tuple((_second(a), _second(b)) for a, b in field(document, "changes"))
            return cls(zone, _second(begin), _second(end), _second(document["offset"]), changes)
        except (InvalidInputError, TypeError, ValueError, KeyError):
            raise InvalidInputError("The calendar of a belief is damaged.") from None


def _second(value: Any) -> int:
    return integer(value, "A moment of a calendar", -FAR, FAR)


def _year(moment: int) -> int:
    return datetime.fromtimestamp(moment, UTC).year


def _offset(place: ZoneInfo, moment: int) -> int:
    found = datetime.fromtimestamp(moment, place).utcoffset()
    return 0 if found is None else int(found.total_seconds())


def _changes_on(place: ZoneInfo, day: int, before: int) -> list[tuple[int, int]]:
    """Return the changes within a day, to the second; two of one day are a quarter hour apart."""
    found, offset = [], before
    for quarter in range(day, day + DAY, 900):
        if _offset(place, quarter + 900) == offset:
            continue
        low, high = quarter, quarter + 900
        while high - low > 1:
            middle = (low + high) // 2
            low, high = (middle, high) if _offset(place, middle) == offset else (low, middle)
        offset = _offset(place, high)
        found.append((high, offset))
    return found
