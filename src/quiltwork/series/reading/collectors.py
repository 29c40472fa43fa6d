"""Collectors of columns: they keep codes of labels, numbers or their bins, or seconds.

Memory: one to four bytes a row for a label, with each distinct cell once; one byte for a binned
number. Errors name row and column, never the content of a cell.
"""

from __future__ import annotations

import re
from abc import ABC, abstractmethod
from collections.abc import Sequence
from contextlib import suppress
from typing import Any

import numpy as np
from numpy.typing import NDArray

from quiltwork.arguments import hashable
from quiltwork.beliefs.grids import parse_duration
from quiltwork.beliefs.sequences import factorize, position_of
from quiltwork.delimited import Dialect
from quiltwork.errors import InvalidInputError
from quiltwork.series.reading.binning import Bins
from quiltwork.series.reading.streamed import Spilled
from quiltwork.series.reading.times import AwareMoments, TimeReader, named_units
from quiltwork.series.reading.values import as_numbers, as_seconds

GAP = -1
"""The code of a missing value."""

_FINER = 10**11
"""Whole numbers from here on are milliseconds or finer: as seconds they would be after 5000."""
SINCE_1970 = 10**8
"""Whole numbers from here on are seconds since 1970: as those they are after March 1973, as minutes
they would be after the year 2160."""
_HASHABLE = {str, int, float, bool, type(None)}


def smallest(most: int) -> Any:
    """Return the smallest signed integer type for codes below this number."""
    return np.int8 if most <= 127 else np.int16 if most <= 32767 else np.int32


class Collector(ABC):
    """Receives the cells of one column in batches, and keeps an array for each batch."""

    def __init__(self, name: str) -> None:
        self.name = name
        self.dialect = Dialect()
        self.rows = 0
        self.sizes: list[int] = []
        self.parts = Spilled()
        self._mark = (0, 0)

    def mark(self) -> None:
        """Remember the current size, before a file is read."""
        self._mark = (self.rows, len(self.parts))

    def undo(self) -> None:
        """Drop what was added since `mark`."""
        self.rows, parts = self._mark
        self.parts.cut(parts)
        del self.sizes[parts:]

    def _keep(self, part: NDArray[Any]) -> None:
        if len(part):
            self.parts.add(part)
            self.sizes.append(len(part))
            self.rows += len(part)

    @abstractmethod
    def begin(self, dialect: Dialect, sample: Sequence[str]) -> Any:
        """Prepare for a CSV file with such first cells; return the Arrow type to read them as."""

    @abstractmethod
    def add(self, cells: Any) -> None:
        """Add text (a list), or values (a NumPy or Arrow array)."""

    def join(self) -> NDArray[Any]:
        """Concatenate all batches."""
        whole = self.parts[0] if len(self.parts) == 1 else np.concatenate(list(self.parts))
        self.parts, self.sizes = Spilled(), [self.rows]
        self.parts.add(whole)
        return whole


class LabelCollector(Collector):
    """Collects the distinct cells of a column, and a code for each row.

    With `apart`, a cell that cannot be a label is kept as `...`, for others to refuse.
    """

    def __init__(self, name: str, *, apart: bool = False) -> None:
        """Begin with no rows."""
        super().__init__(name)
        self.textual = False
        self._apart = apart
        self._codes: dict[Any, int] = {}

    def begin(self, dialect: Dialect, sample: Sequence[str]) -> Any:
        """Read cells as text."""
        self.dialect, self.textual = dialect, True
        return _arrow_types()[0]

    def add(self, cells: Any) -> None:
        """Add cells."""
        cells = _plain(cells)
        if len(cells) == 0:
            return
        codes, distinct = self._factorized(cells)
        for cell in distinct:
            self._codes.setdefault(cell, len(self._codes))
        table = np.array([self._codes[cell] for cell in distinct], smallest(len(self._codes)))
        self._keep(table[codes])

    def _factorized(self, cells: Any) -> tuple[NDArray[Any], list[Any]]:
        if hasattr(cells, "to_pylist"):
            cells = _arrow_codes(cells)
        if isinstance(cells, tuple):
            return cells
        values = not isinstance(cells, list)
        if values and cells.dtype.kind not in "biuf":
            cells = cells.tolist()
        if isinstance(cells, list) and not set(map(type, cells)) <= _HASHABLE:
            fits = [hashable(cell) for cell in cells]
            if values and self._apart:
                cells = [cell if fit else ... for cell, fit in zip(cells, fits, strict=True)]
            elif not all(fits):
                raise InvalidInputError(
                    f"Row {self.rows + fits.index(False) + 1} of column {self.name!r} holds a "
                    "list or another collection; a cell is one label."
                )
        return factorize(cells)

    @property
    def distinct(self) -> list[Any]:
        """The distinct cells, by their codes."""
        return list(self._codes)


class NumberCollector(Collector):
    """Collects the numbers of a column, NaN where missing; or the codes of their bins.

    With `quietly`, a cell that is not a number is missing too.
    """

    def __init__(self, name: str, bins: Bins | None, *, quietly: bool) -> None:
        """Begin with no rows."""
        super().__init__(name)
        self._bins = bins
        self._quietly = quietly

    def begin(self, dialect: Dialect, sample: Sequence[str]) -> Any:
        """Read numbers with the file's decimal point."""
        self.dialect = dialect
        return _arrow_types()[1]

    def add(self, cells: Any) -> None:
        """Add cells."""
        cells = _plain(cells)
        if hasattr(cells, "to_pylist"):
            kind = str(cells.type)
            plain = kind.startswith(("int", "uint", "float", "double", "halffloat"))
            cells = cells.to_numpy(zero_copy_only=False) if plain else cells.to_pylist()
        numbers = as_numbers(
            cells, self.name, quietly=self._quietly, dialect=self.dialect, before=self.rows
        )
        if self._bins is None:
            self._keep(numbers)
        else:
            self._keep(binned(numbers, self._bins))


def binned(numbers: NDArray[np.float64], bins: Bins) -> NDArray[Any]:
    """Return the bin of each number, `GAP` for NaN."""
    codes = bins.codes(numbers).astype(smallest(len(bins.labels)))
    codes[np.isnan(numbers)] = GAP
    return codes


class TimeCollector(Collector):
    """Collects the times of a column, in whole seconds.

    Attributes:
        date_format: the format of the cells, if it is not ISO 8601.
        aware: whether times are in UTC; None before the first one.
        counted: whether times are whole numbers.
        least: the whole number nearest to 0.
    """

    least = _FINER

    def __init__(self, name: str) -> None:
        """Begin with no rows."""
        super().__init__(name)
        self.date_format: str | None = None
        self.aware: bool | None = None
        self.counted = False
        self._reader: TimeReader | None = None

    def begin(self, dialect: Dialect, sample: Sequence[str]) -> Any:
        """Detect the format of times from the first cells."""
        self._reader = TimeReader.of(sample, dialect.date_format, self.name)
        self.date_format = self._reader.date_format
        return self._reader.arrow_type()

    def add(self, cells: Any) -> None:
        """Add cells."""
        if isinstance(cells, AwareMoments):
            aware: bool | None = True
            seconds = as_seconds(cells.moments, self.name, self.rows)
        elif hasattr(cells, "to_pylist"):
            aware, seconds = self._from_arrow(cells)
        elif isinstance(cells, np.ndarray) and cells.dtype.kind in "biuM":
            aware = cells.dtype.kind != "M"
            self.counted |= aware
            seconds = as_seconds(cells, self.name, self.rows)
        else:
            aware, seconds = self._from_texts(cells)
        if aware is not None and self.aware not in (None, aware):
            raise InvalidInputError(
                f"Column {self.name!r} mixes times with and without an offset from UTC; make them "
                "alike."
            )
        self.aware = aware if self.aware is None else self.aware
        if self.counted:
            for _ in ("milliseconds", "microseconds", "nanoseconds"):
                seconds = np.where(np.abs(seconds) < _FINER, seconds, seconds // 1000)
            self.least = min(self.least, int(np.abs(seconds).min(initial=_FINER)))
        self._keep(seconds)

    def _from_arrow(self, cells: Any) -> tuple[bool | None, NDArray[np.int64]]:
        kind = str(cells.type)
        if cells.null_count:
            row = self.rows + 1 + cells.is_null().to_pylist().index(True)
            raise InvalidInputError(
                f"Row {row} has no time in column {self.name!r}; fill or drop it."
            )
        if kind.startswith(("timestamp", "date")):
            moments = cells.to_numpy(zero_copy_only=False)
            return "tz=" in kind, as_seconds(np.asarray(moments), self.name, self.rows)
        if kind.startswith(("int", "uint")):
            self.counted = True
            return True, cells.to_numpy().astype(np.int64)
        return self._from_texts(cells.to_pylist())

    def _from_texts(self, cells: Sequence[Any]) -> tuple[bool, NDArray[np.int64]]:
        texts = [str(cell) for cell in cells]
        reader = self._reader or TimeReader.of(texts[:200], None, self.name)
        self.counted |= reader.kind == "seconds"
        return reader.seconds(texts, self.rows)


def _plain(cells: Any) -> Any:
    return cells.moments if isinstance(cells, AwareMoments) else cells


def _arrow_types() -> tuple[Any, Any]:
    try:
        import pyarrow as pa
    except ImportError:
        return None, None
    return pa.dictionary(pa.int32(), pa.string()), pa.float64()


def _arrow_codes(cells: Any) -> Any:
    """Return (codes, distinct cells) of an Arrow array of text, and others as a NumPy array."""
    import pyarrow as pa

    if pa.types.is_string(cells.type) or pa.types.is_large_string(cells.type):
        cells = cells.dictionary_encode()
    if not pa.types.is_dictionary(cells.type):
        if cells.null_count == 0 and pa.types.is_primitive(cells.type):
            array = _whole_array(cells)
            if array.dtype.kind in "biuf":
                return array
        objects = np.empty(len(cells), dtype=object)
        objects[:] = cells.to_pylist()
        return objects
    distinct = cells.dictionary.to_pylist()
    if cells.null_count == 0:
        return _whole_array(cells.indices), distinct
    codes = cells.indices.fill_null(len(distinct))
    return _whole_array(codes), [*distinct, None]


def _whole_array(cells: Any) -> NDArray[Any]:
    """Return an Arrow array without missing cells as one of NumPy.

    Arrow's own `to_numpy` imports pandas, which costs more than a release.
    """
    import pyarrow as pa

    if not (pa.types.is_integer(cells.type) or pa.types.is_floating(cells.type)):
        return np.asarray(cells.to_numpy(zero_copy_only=False))
    whole: NDArray[Any] = np.frombuffer(cells.buffers()[1], dtype=cells.type.to_pandas_dtype())
    return whole[cells.offset : cells.offset + len(cells)]


class DurationCollector(LabelCollector):
    """Collects durations of rows: whole seconds, 00:15:00, 15min, or a number of time points."""

    plain = False

    def unit(self) -> str:
        """Return the unit of a plain number, by the column's name."""
        return (*named_units(str(self.name)), "seconds")[0]

    def checked(self, unit: int) -> NDArray[np.int64]:
        """Return the seconds of each cell code; plain numbers are multiplied by `unit`."""
        durations = [_parse_duration(cell) for cell in self.distinct]
        for code, cell in enumerate(self.distinct):
            with suppress(ValueError, OverflowError):
                number = float(cell) * unit
                self.plain, whole = True, number >= 0 and number == int(number)
                durations[code] = int(number) if whole else None
        if None in durations:
            row = position_of(self.join(), durations.index(None))
            raise InvalidInputError(
                f"Row {row} of column {self.name!r} holds no duration; write whole seconds, "
                "00:15:00 or 15min."
            )
        return np.array(durations, dtype=np.int64)


def _parse_duration(cell: Any) -> int | None:
    text = str(cell).strip()
    if clock := re.fullmatch(r"(\d+):(\d\d)(?::(\d\d))?", text):
        return 3600 * int(clock[1]) + 60 * int(clock[2]) + int(clock[3] or 0)
    with suppress(InvalidInputError):
        return parse_duration(text)
    return None
