"""Frames and sparse matrices as rows: a statistic gets them as what they are, columns by name.

What is kept shares no memory with what was given. A statistic is given a view that pandas or
Polars copy before they write, or a sparse matrix over bytes that nothing makes writable; where
pandas is older than 3, a copy.
"""

from __future__ import annotations

import sys
from dataclasses import dataclass
from datetime import date, time, timedelta
from decimal import Decimal
from typing import Any

import numpy as np
from numpy.typing import NDArray

from quiltwork.errors import InvalidInputError

_UNCHANGING = (str, bytes, int, float, complex, date, time, timedelta, Decimal, np.generic)


@dataclass(frozen=True, eq=False)
class Frame:
    """Rows of a frame of pandas or Polars, or of a sparse matrix, which nobody else has."""

    kind: str
    kept: Any

    def __len__(self) -> int:
        return int(self.kept.shape[0])

    @property
    def shape(self) -> tuple[int, ...]:
        """As of an array."""
        return tuple(self.kept.shape)

    @property
    def ndim(self) -> int:
        """Always 2."""
        return 2

    @property
    def names(self) -> tuple[str, ...]:
        """The names of columns, or how many a sparse matrix has."""
        if self.kind == "sparse":
            return (f"{self.shape[1]} sparse",)
        return tuple(map(str, self.kept.columns))

    def shown(self) -> Any:
        """Return what a statistic is given."""
        if self.kind == "pandas":
            return self.kept.copy(deep=not _copies_on_write())
        if self.kind == "polars":
            return self.kept.clone()
        kept = self.kept
        return type(kept)((kept.data, kept.indices, kept.indptr), shape=kept.shape, copy=False)

    def take(self, rows: Any) -> Any:
        """Return some of the rows, as a statistic is given them."""
        return self.kept.iloc[rows] if self.kind == "pandas" else self.kept[rows]

    def columns(self) -> list[NDArray[Any]]:
        """Return the columns as arrays, or what a sparse matrix is made of."""
        if self.kind == "sparse":
            return [self.kept.data, self.kept.indices, self.kept.indptr]
        if self.kind == "pandas":
            return [np.asarray(self.kept.iloc[:, at]) for at in range(self.shape[1])]
        return [np.asarray(column.to_numpy()) for column in self.kept.get_columns()]


def as_frame(data: Any, name: str) -> Frame | None:
    """Keep a frame or a sparse matrix apart from what was given; None for anything else."""
    kind = _kind(data)
    if kind is None:
        return None
    if kind == "sparse":
        found = Frame(kind, _frozen_matrix(data))
    else:
        found = Frame(kind, data.copy(deep=True) if kind == "pandas" else data.clone())
        if len(set(found.names)) < len(found.names):
            raise InvalidInputError(f"{name} has two columns of one name; name each differently.")
        for title, column in zip(found.names, found.columns(), strict=True):
            _check_cells(column, title, name)
    if not len(found) or not found.shape[1]:
        raise InvalidInputError(f"{name} has no rows; give an array with one row per sample.")
    return found


def _kind(data: Any) -> str | None:
    room = type(data).__module__.partition(".")[0]
    if room in ("pandas", "polars") and type(data).__name__ == "DataFrame":
        return room
    sparse = sys.modules.get("scipy.sparse")  # without it nothing is a sparse matrix
    return "sparse" if sparse is not None and sparse.issparse(data) else None


def _check_cells(column: NDArray[Any], title: str, name: str) -> None:
    """Refuse objects that a statistic could change."""
    if column.dtype != object:
        return
    kinds = {type(cell) for cell in column.tolist() if cell is not None}
    missing = ("NAType", "NaTType")  # of pandas
    if any(not issubclass(one, _UNCHANGING) and one.__name__ not in missing for one in kinds):
        raise InvalidInputError(
            f"Column {title!r} of {name} holds objects that a statistic could change; give "
            "numbers, text or dates."
        )


def _frozen_matrix(data: Any) -> Any:
    found = data.tocsr(copy=True)
    found.sum_duplicates()
    made = (np.frombuffer(part.tobytes(), part.dtype) for part in (found.data, found.indices))
    pointers = np.frombuffer(found.indptr.tobytes(), found.indptr.dtype)
    return type(found)((*made, pointers), shape=found.shape, copy=False)


def _copies_on_write() -> bool:
    import pandas

    return int(pandas.__version__.partition(".")[0]) >= 3
