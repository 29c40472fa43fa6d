"""Private copies of the data: validated, read-only arrays and frames, identified by a keyed digest.

A statistic cannot change a row: it gets views of immutable bytes, or copies of object arrays, whose
cells must be immutable. Frames and sparse matrices keep their type: the statistic gets a view that
pandas or Polars copies before writing, or a sparse matrix over immutable bytes; with pandas older
than 3, a copy.
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
    """A private copy of a pandas or Polars frame, or of a sparse matrix."""

    kind: str
    kept: Any

    def __len__(self) -> int:
        return int(self.kept.shape[0])

    @property
    def shape(self) -> tuple[int, ...]:
        """The shape, as of an array."""
        return tuple(self.kept.shape)

    @property
    def ndim(self) -> int:
        """Always 2."""
        return 2

    @property
    def names(self) -> tuple[str, ...]:
        """The column names, or the number of columns of a sparse matrix."""
        if self.kind == "sparse":
            return (f"{self.shape[1]} sparse",)
        return tuple(map(str, self.kept.columns))

    def shown(self) -> Any:
        """Return the read-only view or copy for a statistic."""
        if self.kind == "pandas":
            return self.kept.copy(deep=not _copies_on_write())
        if self.kind == "polars":
            return self.kept.clone()
        kept = self.kept
        return type(kept)((kept.data, kept.indices, kept.indptr), shape=kept.shape, copy=False)

    def take(self, rows: Any) -> Any:
        """Return a selection of rows for a statistic."""
        return self.kept.iloc[rows] if self.kind == "pandas" else self.kept[rows]

    def columns(self) -> list[NDArray[Any]]:
        """Return the columns as arrays, or the arrays of a sparse matrix."""
        if self.kind == "sparse":
            return [self.kept.data, self.kept.indices, self.kept.indptr]
        if self.kind == "pandas":
            return [np.asarray(self.kept.iloc[:, at]) for at in range(self.shape[1])]
        return [np.asarray(column.to_numpy()) for column in self.kept.get_columns()]


def freeze_rows(data: Any, name: str) -> Data:
    """Return private copies of the data as arrays or frames, one row per sample."""
    if not isinstance(data, tuple):
        return _frozen(data, name)
    parts = tuple(_frozen(part, name) for part in data)
    if not parts or len({len(part) for part in parts}) != 1:
        raise InvalidInputError(
            f"The arrays of {name} have {', '.join(str(len(part)) for part in parts) or 'no'} "
            "rows; give arrays of the same length, such as (X, y)."
        )
    return parts


def freeze_train_and_holdout(train: Any, holdout: Any) -> tuple[Data, Data]:
    """Copy training set and holdout, which must be of one kind and not be the same rows."""
    public, private = freeze_rows(train, "train"), freeze_rows(holdout, "holdout")
    _check_alike(public, private)
    if all(_same(a, b) for a, b in zip(arrays(public), arrays(private), strict=True)):
        raise InvalidInputError(
            "train and holdout are the same rows; the holdout must be independent of the training "
            "set."
        )
    return public, private


def _same(left: Any, right: Any) -> bool:
    """Whether two arrays or frames are equal; NaN equals NaN."""
    if left.shape != right.shape:
        return False
    if isinstance(left, Frame):
        pairs = zip(left.columns(), right.columns(), strict=True)
        return all(a.tolist() == b.tolist() for a, b in pairs)
    return bool(np.all((left == right) | ((left != left) & (right != right))))  # NaN is not itself


def arrays(data: Data) -> tuple[Any, ...]:
    """Return the arrays and frames that the rows consist of."""
    return data if isinstance(data, tuple) else (data,)


def count_rows(data: Data) -> int:
    """Return the number of rows."""
    return len(arrays(data)[0])


def shown(data: Data) -> Data:
    """Return read-only views of the rows, or copies of objects, for a statistic."""
    if isinstance(data, tuple):
        return tuple(shown(part) for part in data)
    if isinstance(data, Frame):
        return data.shown()
    return data.copy() if data.dtype == object else data.view()


def take(data: Data, rows: Any) -> Data:
    """Return a selection of the rows for a statistic."""
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
    # The memory order is kept: a statistic reads columns as fast as before.
    order: Literal["C", "F"] = "F" if array.flags.fnc else "C"
    return np.frombuffer(array.tobytes(order), array.dtype).reshape(array.shape, order=order)


def _check_alike(train: Data, holdout: Data) -> None:
    """Refuse rows unless both have as many parts, columns, and text where one has."""
    if isinstance(train, tuple) != isinstance(holdout, tuple):
        raise InvalidInputError(
            "train and holdout must be of the same kind: both arrays, or both tuples such as "
            "(X, y)."
        )
    parts, holdout_parts = arrays(train), arrays(holdout)
    if len(parts) != len(holdout_parts):
        raise InvalidInputError(
            f"train has {len(parts)} arrays and holdout {len(holdout_parts)}; give both the same "
            "ones."
        )
    for left_part, right_part in zip(parts, holdout_parts, strict=True):
        if getattr(left_part, "names", None) != getattr(right_part, "names", None):
            raise InvalidInputError(
                "train and holdout have different columns, or only one of them is a frame; give "
                "both the same columns, in the same order."
            )
        if left_part.shape[1:] != right_part.shape[1:]:
            raise InvalidInputError(
                f"The rows of train have shape {left_part.shape[1:]} and those of holdout "
                f"{right_part.shape[1:]}; give both the same columns, or every question would seem "
                "to overfit."
            )
        for at, (left, right) in enumerate(
            zip(*_kinds(left_part, right_part), strict=True), start=1
        ):
            if left != right and "objects" not in (left, right):
                raise InvalidInputError(
                    f"Column {at} holds {left} in train and {right} in holdout, so the two cannot "
                    "be compared; convert one of them."
                )


def _kinds(*parts: Any) -> list[list[str]]:
    """Name the kinds of cells, column by column where an array holds objects."""
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
    """Name the kind of cells, for comparisons: "numbers", "text", or "objects" for anything else.

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
    """Refuse beliefs about another number of rows than the holdout has."""
    for belief in members or ():
        if belief.length is not None and belief.length != count:
            raise InvalidInputError(
                f"The belief is about {belief.length:,} rows and the holdout has {count:,}; give "
                "one label (or node) per row of the holdout."
            )


def without_names(members: tuple[Belief, ...]) -> tuple[Belief, ...]:
    """Reduce clusters to their sizes, sorted: their names and order may reveal rows."""
    return tuple(
        Clusters(np.repeat(np.arange(len(belief.sizes)), np.sort(belief.sizes)).tolist())
        if isinstance(belief, Clusters)
        else belief
        for belief in members
    )


def commitment(key: str, *datasets: Data) -> str:
    """Return a keyed digest of datasets; other values, another order or another type change it.

    Without the key, which is kept in a file of its own, nobody can test a guess of the rows.
    """
    digest = hmac.new(bytes.fromhex(key), digestmod="sha256")
    columns: list[NDArray[Any]] = []
    for part in (part for data in datasets for part in arrays(data)):
        if isinstance(part, Frame):
            digest.update(repr(part.names).encode(errors="surrogatepass"))
        columns += part.columns() if isinstance(part, Frame) else [part]
    for part in columns:
        digest.update(f"{part.dtype.str}{part.shape}".encode())
        if part.dtype.hasobject or part.dtype.char in "gG":  # extended floats have idle bytes
            digest.update(repr(part.tolist()).encode(errors="surrogatepass"))
        else:
            digest.update(np.ascontiguousarray(part).tobytes())
    return digest.hexdigest()


def _as_frame(data: Any, name: str) -> Frame | None:
    """Copy a frame or a sparse matrix; None for anything else."""
    kind = _frame_library(data)
    if kind is None:
        return None
    if kind == "sparse":
        frame = Frame(kind, _frozen_matrix(data))
    else:
        frame = Frame(kind, data.copy(deep=True) if kind == "pandas" else data.clone())
        if len(set(frame.names)) < len(frame.names):
            raise InvalidInputError(f"{name} has two columns of one name; name each differently.")
        for title, column in zip(frame.names, frame.columns(), strict=True):
            _check_cells(column, f"Column {title!r} of {name}")
    if not len(frame) or not frame.shape[1]:
        raise InvalidInputError(f"{name} has no rows; give an array with one row per sample.")
    return frame


def _frame_library(data: Any) -> str | None:
    """Return the library of a frame, or "sparse" for a sparse matrix; else None."""
    library = type(data).__module__.partition(".")[0]
    if library in ("pandas", "polars") and type(data).__name__ == "DataFrame":
        return library
    sparse = sys.modules.get("scipy.sparse")  # if SciPy was never imported, data cannot be sparse
    return "sparse" if sparse is not None and sparse.issparse(data) else None


def _check_cells(column: NDArray[Any], label: str) -> None:
    """Refuse mutable objects, which a statistic could change."""
    if column.dtype != object:
        return
    kinds = {type(cell) for cell in column.ravel().tolist() if cell is not None}
    missing = ("NAType", "NaTType")  # of pandas
    if any(
        not issubclass(cell_type, _UNCHANGING) and cell_type.__name__ not in missing
        for cell_type in kinds
    ):
        raise InvalidInputError(
            f"{label} holds mutable objects, which a statistic could change; give numbers, text or "
            "dates."
        )


def _frozen_matrix(data: Any) -> Any:
    matrix = data.tocsr(copy=True)
    matrix.sum_duplicates()
    parts = (np.frombuffer(part.tobytes(), part.dtype) for part in (matrix.data, matrix.indices))
    pointers = np.frombuffer(matrix.indptr.tobytes(), matrix.indptr.dtype)
    return type(matrix)((*parts, pointers), shape=matrix.shape, copy=False)


def _copies_on_write() -> bool:
    import pandas

    return int(pandas.__version__.partition(".")[0]) >= 3
