"""What is kept of a column: codes of labels, numbers or their bins, and seconds.

A label takes one to four bytes a row and each distinct cell is kept once; a number that is binned
takes one. Errors name rows and columns, never what a cell holds, nor do the errors behind them.
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
from quiltwork.series.reading.columns import AwareMoments
from quiltwork.series.reading.streamed import Spilled
from quiltwork.series.reading.times import TimeReader, named_units
from quiltwork.series.reading.values import as_numbers, as_seconds

GAP = -1
"""The code of a missing value."""

_MOST = 10**11
"""Whole numbers from here on are finer: as seconds they would be after the year 5000."""
SINCE_1970 = 10**8
"""Whole numbers from here on are seconds since 1970: as those they are after March 1973, as minutes
after the year 2160."""
_HASHABLE = {str, int, float, bool, type(None)}


def smallest(most: int) -> Any:
    """Return the smallest signed type for codes below this number."""
    return np.int8 if most <= 127 else np.int16 if most <= 32767 else np.int32


class Collector(ABC):
    """Takes the cells of one column, and keeps an array for each batch of them."""

    def __init__(self, name: str) -> None:
        self.name = name
        self.dialect = Dialect()
        self.rows = 0
        self.sizes: list[int] = []
        self.parts = Spilled()
        self._mark = (0, 0)

    def mark(self) -> None:
        """Remember how much there is before a file."""
        self._mark = (self.rows, len(self.parts))

    def undo(self) -> None:
        """Go back to where that was."""
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
        """Prepare for a CSV file with such cells; return the Arrow type to read them as."""

    @abstractmethod
    def add(self, cells: Any) -> None:
        """Take text (a list), or values (a NumPy or Arrow array)."""

    def join(self) -> NDArray[Any]:
        """Put all of them in one array."""
        whole = self.parts[0] if len(self.parts) == 1 else np.concatenate(list(self.parts))
        self.parts, self.sizes = Spilled(), [self.rows]
        self.parts.add(whole)
        return whole


class LabelCollector(Collector):
    """The distinct cells of a column, and the code of each row.

    With `apart` what cannot be a label stays one that cannot.
    """

    def __init__(self, name: str, *, apart: bool = False) -> None:
        """Begin with no rows."""
        super().__init__(name)
        self.textual = False
        self._apart = apart
        self._codes: dict[Any, int] = {}

    def begin(self, dialect: Dialect, sample: Sequence[str]) -> Any:
        """Texts are read as they are."""
        self.dialect, self.textual = dialect, True
        return _arrow_types()[0]

    def add(self, cells: Any) -> None:
        """Take cells."""
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
        """The cells that differ, by their codes."""
        return list(self._codes)


class NumberCollector(Collector):
    """The numbers of a column, NaN where there is none; or the codes of their bins.

    `quietly`, a cell that is no number is NaN too.
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
        """Take cells."""
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
    """The moments of a column, in whole seconds.

    Attributes:
        date_format: how they are written, where that is not ISO 8601.
        aware: whether they are known to be in UTC; None as long as there are none.
        counted: whether they are whole numbers, of which `least` is nearest to 0.
    """

    least = _MOST

    def __init__(self, name: str) -> None:
        """Begin with no rows."""
        super().__init__(name)
        self.date_format: str | None = None
        self.aware: bool | None = None
        self.counted = False
        self._reader: TimeReader | None = None

    def begin(self, dialect: Dialect, sample: Sequence[str]) -> Any:
        """Find how times are written, by the first of them."""
        self._reader = TimeReader.of(sample, dialect.date_format, self.name)
        self.date_format = self._reader.date_format
        return self._reader.arrow_type()

    def add(self, cells: Any) -> None:
        """Take cells."""
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
                seconds = np.where(np.abs(seconds) < _MOST, seconds, seconds // 1000)
            self.least = min(self.least, int(np.abs(seconds).min(initial=_MOST)))
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
    """How long rows hold: whole seconds, 00:15:00, 15min, or a number of time points."""

    plain = False

    def unit(self) -> str:
        """Return what a plain number counts, by the column's name."""
        return (*named_units(str(self.name)), "seconds")[0]

    def checked(self, unit: int) -> NDArray[np.int64]:
        """Return whole seconds, or the number, by codes; plain ones are in a unit of so many."""
        read = [_lasting(cell) for cell in self.distinct]
        for place, cell in enumerate(self.distinct):
            with suppress(ValueError, OverflowError):
                number = float(cell) * unit
                self.plain, whole = True, number >= 0 and number == int(number)
                read[place] = int(number) if whole else None
        if None in read:
            row = position_of(self.join(), read.index(None))
            raise InvalidInputError(
                f"Row {row} of column {self.name!r} holds no duration; write whole seconds, "
                "00:15:00 or 15min."
            )
        return np.array(read, dtype=np.int64)


def _lasting(cell: Any) -> int | None:
    text = str(cell).strip()
    if clock := re.fullmatch(r"(\d+):(\d\d)(?::(\d\d))?", text):
        return 3600 * int(clock[1]) + 60 * int(clock[2]) + int(clock[3] or 0)
    with suppress(InvalidInputError):
        return parse_duration(text)
    return None
