"""Rows as read: arrays that share no memory with what was given, checked, and known by a digest.

No statistic can change a row: it gets views of bytes, which nothing makes writable, or copies of
arrays of objects, which must be such as do not change. Frames and sparse matrices stay what they
are: it gets a view that pandas or Polars copy before they write, or a sparse matrix over such
bytes; where pandas is older than 3, a copy.
"""

from __future__ import annotations

import hmac
import sys
from collections.abc import Iterable
from dataclasses import dataclass
from datetime import date, time, timedelta
from decimal import Decimal
from typing import Any, Literal, TypeAlias

import numpy as np
from numpy.typing import NDArray

from quiltwork.beliefs import Belief, Clusters
from quiltwork.errors import InvalidInputError

Data: TypeAlias = Any
"""An array or a frame with one row per sample, or a tuple of such, for example (X, y)."""
_KINDS = {"U": "text", "T": "text", "S": "bytes", "O": "objects", "M": "dates", "m": "durations"}
_NUMBERS = (int, float, np.number, np.bool_)


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


def read_rows(data: Any, name: str) -> Data:
    """Return the data as arrays, one row per sample, that share no memory with what was given."""
    if not isinstance(data, tuple):
        return _frozen(data, name)
    parts = tuple(_frozen(part, name) for part in data)
    if not parts or len({len(part) for part in parts}) != 1:
        raise InvalidInputError(
            f"The arrays of {name} have {', '.join(str(len(part)) for part in parts) or 'no'} "
            "rows; give arrays of the same length, such as (X, y)."
        )
    return parts


def two_sets(train: Any, holdout: Any) -> tuple[Data, Data]:
    """Read training set and holdout: of one kind, and not the same rows."""
    public, private = read_rows(train, "train"), read_rows(holdout, "holdout")
    _check_alike(public, private)
    if all(_same(a, b) for a, b in zip(arrays(public), arrays(private), strict=True)):
        raise InvalidInputError(
            "train and holdout are the same rows; the holdout must be independent of the training "
            "set."
        )
    return public, private


def _same(one: Any, other: Any) -> bool:
    if one.shape != other.shape:
        return False
    if isinstance(one, Frame):
        pairs = zip(one.columns(), other.columns(), strict=True)
        return all(a.tolist() == b.tolist() for a, b in pairs)
    return bool(np.all((one == other) | ((one != one) & (other != other))))  # NaN is not itself


def arrays(data: Data) -> tuple[Any, ...]:
    """Return the arrays and frames that rows are made of."""
    return data if isinstance(data, tuple) else (data,)


def count_rows(data: Data) -> int:
    """Return the number of rows."""
    return len(arrays(data)[0])


def shown(data: Data) -> Data:
    """Return what a statistic is given: views of the bytes, which stay as they are, or copies."""
    if isinstance(data, tuple):
        return tuple(shown(part) for part in data)
    if isinstance(data, Frame):
        return data.shown()
    return data.copy() if data.dtype == object else data.view()


def take(data: Data, rows: Any) -> Data:
    """Return some of the rows, as a statistic is given them."""
    if isinstance(data, tuple):
        return tuple(take(part, rows) for part in data)
    return data.take(rows) if isinstance(data, Frame) else shown(data[rows])


def _frozen(data: Any, name: str) -> NDArray[Any] | Frame:
    frame = _as_frame(data, name)
    if frame is not None:
        return frame
    try:
        array = np.asarray(data)
    except (TypeError, ValueError) as error:
        raise InvalidInputError(
            f"{name} cannot be read as an array with one row per sample: {error}."
        ) from None
    if array.ndim == 0 or len(array) == 0:
        raise InvalidInputError(f"{name} has no rows; give an array with one row per sample.")
    if array.dtype.names is not None:
        raise InvalidInputError(
            f"{name} is an array with fields; give a frame of pandas or Polars, which has named "
            "columns too."
        )
    if array.dtype == object:
        _check_cells(array, name)
        return array.copy()
    order: Literal["C", "F"] = "F" if array.flags.fnc else "C"
    return np.frombuffer(array.tobytes(order), array.dtype).reshape(array.shape, order=order)


def _check_alike(one: Data, other: Data) -> None:
    """Refuse rows unless both have as many parts, columns, and text where one has."""
    if isinstance(one, tuple) != isinstance(other, tuple):
        raise InvalidInputError(
            "train and holdout must be of the same kind: both arrays, or both tuples such as "
            "(X, y)."
        )
    parts, others = arrays(one), arrays(other)
    if len(parts) != len(others):
        raise InvalidInputError(
            f"train has {len(parts)} arrays and holdout {len(others)}; give both the same ones."
        )
    for a, b in zip(parts, others, strict=True):
        if getattr(a, "names", None) != getattr(b, "names", None):
            raise InvalidInputError(
                "train and holdout have other columns, or one of them is a frame and the other is "
                "not; give both the same ones, in the same order."
            )
        if a.shape[1:] != b.shape[1:]:
            raise InvalidInputError(
                f"The rows of train have shape {a.shape[1:]} and those of holdout {b.shape[1:]}; "
                "give both the same columns, or every question would seem to overfit."
            )
        for at, (left, right) in enumerate(zip(*_kinds(a, b), strict=True), start=1):
            if left != right and "objects" not in (left, right):
                raise InvalidInputError(
                    f"train has {left} where holdout has {right} (column {at}), so nothing in them "
                    "would compare; convert one of the two."
                )


def _kinds(*parts: Any) -> list[list[str]]:
    """Name what cells hold, column by column where an array holds objects."""
    if isinstance(parts[0], Frame):
        return [[_kind(column) for column in part.columns()] for part in parts]
    if all(part.dtype == object for part in parts):
        tables = [part.reshape(len(part), -1) for part in parts]
        return [[kind_of(column.tolist()) for column in table.T] for table in tables]
    return [[_kind(part)] for part in parts]


def _kind(part: NDArray[Any]) -> str:
    if part.dtype == object:
        return kind_of(part.ravel().tolist())
    return _KINDS.get(part.dtype.kind, "numbers")


def kind_of(cells: Iterable[Any]) -> str:
    """Name what cells hold, as far as comparing with others goes; "objects" may be anything.

    >>> kind_of([1, 2.5, None]), kind_of(["a", "b"]), kind_of([1, "a"])
    ('numbers', 'text', 'objects')
    """
    kinds = {
        "text" if isinstance(cell, str) else "numbers" if isinstance(cell, _NUMBERS) else "objects"
        for cell in cells
        if cell is not None and not (isinstance(cell, float) and cell != cell)
    }
    return kinds.pop() if len(kinds) == 1 else "objects"


def check_length(members: tuple[Belief, ...] | None, count: int) -> None:
    """Refuse beliefs about another number of rows."""
    for belief in members or ():
        if belief.length is not None and belief.length != count:
            raise InvalidInputError(
                f"The belief is about {belief.length:,} rows and the holdout has {count:,}; give "
                "one label (or node) per row of the holdout."
            )


def without_names(members: tuple[Belief, ...]) -> tuple[Belief, ...]:
    """Tell of clusters their sizes alone: names come from the holdout, and an order tells rows."""
    return tuple(
        Clusters(np.repeat(np.arange(len(belief.sizes)), np.sort(belief.sizes)).tolist())
        if isinstance(belief, Clusters)
        else belief
        for belief in members
    )


def commitment(key: str, *datasets: Data) -> str:
    """Return a keyed digest of datasets: other rows, another order or another type change it.

    Without the key, which is kept in a file of its own, no guess of the rows can be tried.
    """
    digest = hmac.new(bytes.fromhex(key), digestmod="sha256")
    found: list[NDArray[Any]] = []
    for part in (part for data in datasets for part in arrays(data)):
        if isinstance(part, Frame):
            digest.update(repr(part.names).encode(errors="surrogatepass"))
        found += part.columns() if isinstance(part, Frame) else [part]
    for part in found:
        digest.update(f"{part.dtype.str}{part.shape}".encode())
        if part.dtype.hasobject or part.dtype.char in "gG":  # extended floats have idle bytes
            digest.update(repr(part.tolist()).encode(errors="surrogatepass"))
        else:
            digest.update(np.ascontiguousarray(part).tobytes())
    return digest.hexdigest()


def _as_frame(data: Any, name: str) -> Frame | None:
    """Keep a frame or a sparse matrix apart from what was given; None for anything else."""
    kind = _maker(data)
    if kind is None:
        return None
    if kind == "sparse":
        found = Frame(kind, _frozen_matrix(data))
    else:
        found = Frame(kind, data.copy(deep=True) if kind == "pandas" else data.clone())
        if len(set(found.names)) < len(found.names):
            raise InvalidInputError(f"{name} has two columns of one name; name each differently.")
        for title, column in zip(found.names, found.columns(), strict=True):
            _check_cells(column, f"Column {title!r} of {name}")
    if not len(found) or not found.shape[1]:
        raise InvalidInputError(f"{name} has no rows; give an array with one row per sample.")
    return found


def _maker(data: Any) -> str | None:
    """Return whose frame it is, or whether it is a sparse matrix."""
    room = type(data).__module__.partition(".")[0]
    if room in ("pandas", "polars") and type(data).__name__ == "DataFrame":
        return room
    sparse = sys.modules.get("scipy.sparse")  # without it nothing is a sparse matrix
    return "sparse" if sparse is not None and sparse.issparse(data) else None


def _check_cells(column: NDArray[Any], what: str) -> None:
    """Refuse objects that a statistic could change."""
    if column.dtype != object:
        return
    kinds = {type(cell) for cell in column.ravel().tolist() if cell is not None}
    missing = ("NAType", "NaTType")  # of pandas
    if any(not issubclass(one, _UNCHANGING) and one.__name__ not in missing for one in kinds):
        raise InvalidInputError(
            f"{what} holds objects that a statistic could change; give numbers, text or dates."
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
