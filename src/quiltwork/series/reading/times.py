"""Parsing times: whole numbers, ISO 8601, or a date format detected in the first cells."""

from __future__ import annotations

import re
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from quiltwork.errors import InvalidInputError
from quiltwork.wording import argument

_DAYS = ("%d.%m.%Y", "%d.%m.%y", "%Y/%m/%d", "%d/%m/%Y", "%m/%d/%Y", "%d-%m-%Y", "%d-%b-%Y")
_CLOCKS = ("", " %H:%M", " %H:%M:%S", " %I:%M %p", " %I:%M:%S %p", "T%H:%M", "T%H:%M:%S")
_FORMATS = tuple(day + clock for day in _DAYS for clock in _CLOCKS)
_DIGITS = {8: "%Y%m%d", 12: "%Y%m%d%H%M", 14: "%Y%m%d%H%M%S"}
"""Dates without separators, by their number of digits."""

UNITS = {"seconds": 1, "minutes": 60, "hours": 3600, "days": 86_400}
"""The units of whole numbers, in seconds."""
_NAMED = {
    "minutes": r"minut|(?<![a-z])mins?(?![a-z])",
    "hours": r"hour|stunde|(?<![a-z])(h|hrs?)(?![a-z])",
    "seconds": r"second|sekund|(?<![a-z])(s|secs?)(?![a-z])",
}


def named_units(column: str) -> list[str]:
    """Return the units that occur in the name of a column.

    >>> named_units("Dauer (min)"), named_units("minute_of_hour"), named_units("time")
    (['minutes'], ['minutes', 'hours'], [])
    """
    return [unit for unit, spelled in _NAMED.items() if re.search(spelled, column.lower())]


class AmbiguousTimesError(InvalidInputError):
    """Dates in which day and month could be swapped, in all cells that were inspected."""


@dataclass(frozen=True)
class TimeReader:
    """A parser for a column of times.

    Attributes:
        name: the column.
        kind: "seconds" for whole numbers of any unit, "iso" for ISO 8601, or "format".
        date_format: the format, as in `strptime`.
        aware: whether the first times have an offset from UTC.
        fine: whether times have fractions of a second.
    """

    name: str
    kind: Literal["seconds", "iso", "format"]
    date_format: str | None = None
    aware: bool = False
    fine: bool = False

    @classmethod
    def of(cls, sample: Sequence[str], date_format: str | None, name: str) -> TimeReader:
        """Detect the format of a column from its first cells.

        >>> TimeReader.of(["31.03.2026 18:15"], None, "time").date_format
        '%d.%m.%Y %H:%M'
        """
        cells = [cell.strip() for cell in sample if cell.strip()]
        if date_format in UNITS:
            return cls(name, "seconds", aware=True)
        if date_format is not None:
            return cls(name, "format", date_format, "%z" in date_format)
        if cells and _whole(cells[0]):
            digits = _DIGITS.get(len(cells[0]))
            if digits and all(len(c) == len(cells[0]) and _fits(c, digits) for c in cells):
                return cls(name, "format", digits)
            return cls(name, "seconds", aware=True)
        moments = [_iso(cell) for cell in cells]
        if all(moments) or not cells:
            aware = any(moment.tzinfo is not None for moment in moments if moment is not None)
            return cls(name, "iso", None, aware, any("." in cell for cell in cells))
        fitting = [known for known in _FORMATS if all(_fits(cell, known) for cell in cells)]
        if len(fitting) > 1:
            raise AmbiguousTimesError(
                f"The times of column {name!r} fit both {fitting[0]!r} and {fitting[1]!r}; say "
                f"which, with {argument('date_format')}. If time points are missing, also say how "
                f"to treat them, with {argument('missing', 'state')} or "
                f"{argument('missing', 'public')}."
            )
        return cls(name, "format", fitting[0]) if fitting else cls(name, "iso")

    def arrow_type(self) -> Any:
        """Return the Arrow type of these times; None without Arrow."""
        try:
            import pyarrow as pa
        except ImportError:
            return None
        if self.kind == "seconds":
            return pa.int64()
        return pa.timestamp("us" if self.fine else "s", "UTC" if self.aware else None)

    def seconds(self, cells: Sequence[str], before: int = 0) -> tuple[bool, NDArray[np.int64]]:
        """Return whether times have an offset, and their seconds: in UTC then, else local time.

        `before` is the number of rows before these.
        """
        if self.kind == "seconds":
            with suppress(ValueError, OverflowError):
                return True, np.array(list(cells), dtype=np.int64)
            at = next((i for i, cell in enumerate(cells, 1) if not _whole(cell)), 1)
            raise InvalidInputError(
                f"Row {before + at} of column {self.name!r} is not a whole number, as the time in "
                "the first row is."
            )
        kinds: set[bool] = set()
        known: dict[str, int] = {}
        for row, cell in enumerate(cells, before + 1):
            if cell not in known:
                known[cell] = self._moment(cell, row, kinds)
        if len(kinds) > 1:
            raise InvalidInputError(
                f"Column {self.name!r} mixes times with and without an offset from UTC; make them "
                "alike."
            )
        aware = kinds.pop() if kinds else False
        return aware, np.fromiter(map(known.__getitem__, cells), np.int64, len(cells))

    def _moment(self, cell: str, row: int, kinds: set[bool]) -> int:
        moment = _iso(cell) if self.date_format is None else None
        if self.date_format is not None:
            with suppress(ValueError):
                moment = datetime.strptime(cell.strip(), self.date_format)
        if moment is None:
            usual = (
                f"the format {self.date_format!r} of the first rows"
                if self.date_format
                else "whole seconds or ISO 8601 such as 2026-03-01T08:30, or say "
                f"{argument('date_format', '%d.%m.%Y')}"
            )
            raise InvalidInputError(
                f"Row {row} of column {self.name!r} holds no time; use {usual}."
            )
        kinds.add(moment.tzinfo is not None)
        aware = moment if moment.tzinfo is not None else moment.replace(tzinfo=UTC)
        return int(aware.timestamp() // 1)


def _whole(cell: str) -> bool:
    return cell.strip().lstrip("+-").isdecimal()


def _iso(cell: str) -> datetime | None:
    text = cell.strip()
    with suppress(ValueError):
        return datetime.fromisoformat(text[:-4] + "Z" if text.endswith(" UTC") else text)
    return None


def _fits(cell: str, date_format: str) -> bool:
    try:
        datetime.strptime(cell, date_format)
    except ValueError:
        return False
    return True


class AwareMoments:
    """The times of a column with a zone, in UTC."""

    def __init__(self, moments: Any) -> None:
        """Keep an array of datetime64."""
        self.moments = moments
