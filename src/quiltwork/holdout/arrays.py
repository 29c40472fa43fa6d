"""Rows as read: arrays that share no memory with what was given, checked, and known by a digest.

No statistic can change a row: it gets views of bytes, which nothing makes writable, or copies of
the objects and what they hold. Frames and sparse matrices stay what they are (`frames`).
"""

from __future__ import annotations

import copy
import hmac
from collections.abc import Iterable, Iterator
from typing import Any, Literal, TypeAlias

import numpy as np
from numpy.typing import NDArray

from quiltwork.beliefs import Belief, Clusters
from quiltwork.errors import InvalidInputError
from quiltwork.holdout.frames import Frame, as_frame

Data: TypeAlias = Any
"""An array or a frame with one row per sample, or a tuple of such, for example (X, y)."""
_KINDS = {"U": "text", "T": "text", "S": "bytes", "O": "objects", "M": "dates", "m": "durations"}
_UNCHANGING = {str, bytes, int, float, complex, bool, type(None)}
_NUMBERS = (int, float, np.number, np.bool_)


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
    return _apart(data) if data.dtype.hasobject else _with_own_type(data)


def take(data: Data, rows: Any) -> Data:
    """Return some of the rows, as a statistic is given them."""
    if isinstance(data, tuple):
        return tuple(take(part, rows) for part in data)
    return data.take(rows) if isinstance(data, Frame) else shown(data[rows])


def _frozen(data: Any, name: str) -> NDArray[Any] | Frame:
    frame = as_frame(data, name)
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
    if array.dtype.hasobject:
        try:
            return _apart(array)
        except Exception as error:  # whatever objects do when they are copied
            raise InvalidInputError(
                f"{name} holds objects that cannot be copied ({type(error).__name__}); give "
                "numbers or text."
            ) from None
    order: Literal["C", "F"] = "F" if array.flags.fnc else "C"
    frozen = np.frombuffer(array.tobytes(order), array.dtype).reshape(array.shape, order=order)
    return _with_own_type(frozen)


def _apart(array: NDArray[Any]) -> NDArray[Any]:
    """Return a copy of an array of objects that shares nothing that can be changed."""
    plain = array.dtype.names is None and set(map(type, array.ravel().tolist())) <= _UNCHANGING
    return array.copy() if plain else _with_own_type(copy.deepcopy(array))


def _with_own_type(array: NDArray[Any]) -> NDArray[Any]:
    """Return a view whose type, in which the names of fields can be changed, is no other's."""
    return array.view() if array.dtype.names is None else array.view(copy.deepcopy(array.dtype))


def _check_alike(one: Data, other: Data) -> None:
    """Refuse rows unless both have as many parts, columns and fields, and text where one has."""
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
    if part.dtype.names is not None:
        return f"the fields {', '.join(part.dtype.names)}"
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
    """Number the clusters instead of naming them: their names may come from the holdout."""
    return tuple(
        Clusters(belief.codes.tolist()) if isinstance(belief, Clusters) else belief
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
        for cells in _cells(part):
            digest.update(cells)
    return digest.hexdigest()


def _cells(part: NDArray[Any]) -> Iterator[bytes]:
    """Yield what an array holds, without the bytes between its fields and behind its pointers."""
    if _is_packed(part.dtype):
        yield np.ascontiguousarray(part).tobytes()
    elif part.dtype.names is None:
        yield repr(part.tolist()).encode(errors="surrogatepass")
    else:
        for name in part.dtype.names:
            yield from (f"{name}{part[name].dtype.str}".encode(), *_cells(part[name]))


def _is_packed(dtype: np.dtype[Any]) -> bool:
    """Whether equal values are equal bytes; extended floats have idle ones too."""
    if dtype.hasobject or dtype.char in "gG":
        return False
    fields = [found[0] for found in (dtype.fields or {}).values()]
    return not fields or (
        all(map(_is_packed, fields)) and sum(one.itemsize for one in fields) == dtype.itemsize
    )
