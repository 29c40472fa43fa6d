"""Sequences of labels as integer codes: from lists, NumPy arrays, pandas and Polars series.

All functions use `factorize`, which turns a sequence into codes and its distinct values, so that a
label is validated once per distinct value and not once per row. Error messages name positions,
never values: more people read a message than may read the data.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from contextlib import suppress
from typing import Any

import numpy as np
from numpy.typing import NDArray

from quiltwork.arguments import hashable, listed
from quiltwork.beliefs.matrices import IntArray
from quiltwork.beliefs.origins import CodedSequence, CodedSequences
from quiltwork.beliefs.states import Label, parse_label, show_labels
from quiltwork.errors import InvalidInputError

_CHUNK = 1 << 20
_PLAIN = {str, int, float, bool, tuple, type(None)}


def split_sequences(data: Any) -> tuple[Any, ...]:
    """Return the sequences in `data`: one sequence or many.

    Many are a dict (its values), or a list or tuple whose every item is itself a list, an array
    or a series. A list of tuples or of text is one sequence, because tuples and text are labels.

    Raises:
        InvalidInputError: for text, empty collections, tables, and lists that mix labels with
            sequences.

    >>> len(split_sequences([["a", "b"], ["b", "b", "a"]])), len(split_sequences(["a", "b"]))
    (2, 1)
    """
    if isinstance(data, CodedSequences):
        return _not_empty(tuple(data.coded.values()))
    if isinstance(data, Mapping):
        return _not_empty(tuple(data.values()))
    if isinstance(data, CodedSequence):
        return (data,)
    if not isinstance(data, (list, tuple)) or set(map(type, data)) <= _PLAIN:
        return (data,)
    nested = [_is_container(item) for item in data]
    if not any(nested):
        return (data,)
    if not all(nested):
        position = nested.index(False) + 1
        raise InvalidInputError(
            f"Item {position} is a single label in a list that also holds whole sequences; give "
            "either one sequence of labels or a list of sequences."
        )
    return _not_empty(tuple(data))


def _not_empty(sequences: tuple[Any, ...]) -> tuple[Any, ...]:
    if not sequences:
        raise InvalidInputError("There is no sequence in the data; give at least one.")
    return sequences


def _is_container(item: Any) -> bool:
    if item is None or isinstance(item, (str, bytes, int, float, tuple, np.generic)):
        return False
    if hasattr(item, "to_numpy"):
        return hasattr(item, "__len__")  # a moment of pandas has the one and not the other
    return isinstance(item, Sequence) or np.ndim(item) > 0


def factorize(sequence: Any) -> tuple[IntArray, list[Any]]:
    """Return (codes, distinct): the sequence is `[distinct[c] for c in codes]`.

    The codes may be the sequence itself: read them, never write to them. O(T) for lists,
    text and integers; O(T log T) for floats.
    """
    if isinstance(sequence, CodedSequence):
        return sequence.factorized()
    values = cells_of(sequence)
    if isinstance(values, list):
        return _factorize_objects(values)
    if values.dtype.kind in "bi" or values.dtype in (np.uint8, np.uint16, np.uint32):
        return _factorize_integers(values.astype(np.int64, copy=False), values.dtype)
    distinct, codes = np.unique(values, return_inverse=True)
    return codes.reshape(-1).astype(np.int64, copy=False), distinct.tolist()


def cells_of(sequence: Any) -> list[Any] | NDArray[Any]:
    """Return the cells of any container in order, without validating them."""
    values = _values(sequence)
    if len(values) == 0:
        raise InvalidInputError("The sequence is empty; give at least one time point.")
    return values


def _values(sequence: Any) -> list[Any] | NDArray[Any]:
    if isinstance(sequence, CodedSequence):
        return sequence  # type: ignore[return-value]  # its length and its cells are all one needs
    if any(hasattr(sequence, name) for name in ("collect_schema", "column_names", "columns")):
        raise InvalidInputError(
            f"A {type(sequence).__name__} is a table; give the column that holds the states, or "
            "read_series(table, 'column').data."
        )
    if isinstance(sequence, (str, bytes)) or (
        not isinstance(sequence, Sequence)
        and np.ndim(sequence) == 0
        and not hasattr(sequence, "to_numpy")
    ):
        is_series = hasattr(sequence, "windows") and hasattr(sequence, "data")  # of read_series
        remedy = "give its .data" if is_series else "write list('aab') for one label per character"
        raise InvalidInputError(
            f"A sequence of states is a list, array or series of labels, not of type "
            f"{type(sequence).__name__}; {remedy}."
        )
    if isinstance(sequence, range):
        return np.arange(sequence.start, sequence.stop, sequence.step)
    if hasattr(sequence, "to_pylist") or hasattr(sequence, "null_count"):
        return _from_columnar(sequence)
    if hasattr(sequence, "to_numpy"):
        sequence = sequence.to_numpy()
    if not isinstance(sequence, np.ndarray):
        return listed(sequence, "A sequence of states")
    if sequence.ndim != 1:
        raise InvalidInputError(
            f"A sequence has one dimension, this table has {sequence.ndim}; give one column, or "
            "list(array) if its rows are separate sequences."
        )
    if sequence.dtype.kind in "OU" or isinstance(sequence, np.ma.MaskedArray):
        return list(sequence.tolist())
    if sequence.dtype.kind not in "biuf":
        raise InvalidInputError(
            f"Labels of type {sequence.dtype} are not supported; convert them to text or numbers."
        )
    return sequence


def _from_columnar(series: Any) -> list[Any] | NDArray[Any]:
    """Return a Polars or Arrow column; one with nulls as a Python list, to keep None."""
    if hasattr(series, "to_pylist"):
        return list(series.to_pylist())
    if series.null_count() == 0:
        values = series.to_numpy()
        if values.dtype.kind in "biuf":
            return np.asarray(values)
    return list(series.to_list())


def _factorize_objects(values: list[Any]) -> tuple[IntArray, list[Any]]:
    try:
        index = {value: code for code, value in enumerate(dict.fromkeys(values))}
        codes = np.fromiter(map(index.__getitem__, values), dtype=np.int64, count=len(values))
    except TypeError:
        position = next(i for i, value in enumerate(values, 1) if not hashable(value))
        raise _no_label(position) from None
    return codes, list(index)


def _factorize_integers(values: IntArray, original: np.dtype[Any]) -> tuple[IntArray, list[Any]]:
    low, high = int(values.min()), int(values.max())
    if high - low > max(1 << 16, 2 * len(values)):
        distinct, codes = np.unique(values, return_inverse=True)
        return codes.reshape(-1).astype(np.int64, copy=False), distinct.tolist()
    shifted = values - low if low else values
    present = np.zeros(high - low + 1, dtype=np.bool_)
    present[shifted] = True
    if present.all():
        return shifted, np.arange(low, high + 1).astype(original).tolist()
    values_present = (np.flatnonzero(present) + low).astype(original)
    return (np.cumsum(present, dtype=np.int64) - 1)[shifted], values_present.tolist()


def first_positions(codes: IntArray, count: int) -> IntArray:
    """Return the first position (0-based) of each code 0..count−1. O(T) at worst."""
    first = np.full(count, -1, dtype=np.int64)
    for begin in range(0, len(codes), _CHUNK):
        chunk = codes[begin : begin + _CHUNK][::-1]
        in_chunk = np.full(count, -1, dtype=np.int64)
        in_chunk[chunk] = np.arange(begin + len(chunk) - 1, begin - 1, -1)
        first = np.where(first < 0, in_chunk, first)
        if (first >= 0).all():
            break
    return first


def factorize_labels(sequence: Any) -> tuple[IntArray, tuple[Label, ...]]:
    """Return codes and distinct labels; InvalidInputError names the position of a bad cell."""
    codes, distinct = factorize(sequence)
    labels: list[Label] = []
    for code, value in enumerate(distinct):
        if value is None or type(value) in (str, int, bool):
            labels.append(value)
            continue
        labels.append(_parse_cell(value, position_of(codes, code)))
    return codes, tuple(labels)


def as_labels(cells: list[Any] | NDArray[Any]) -> list[Any] | NDArray[Any]:
    """Return cells as labels without raising: None for missing and invalid ones."""
    if isinstance(cells, np.ndarray) and (cells.dtype.kind != "f" or not np.isnan(cells).any()):
        return cells
    return [_label_or_none(cell) for cell in cells]


def _label_or_none(value: Any) -> Label:
    if type(value) in _PLAIN and type(value) not in (float, tuple):
        return value  # type: ignore[no-any-return]
    with suppress(Exception):  # objects may raise anything when they are inspected
        return _parse_cell(value, 1)
    return None


def _parse_cell(value: Any, position: int) -> Label:
    if _is_missing(value):
        raise _missing(position)
    with suppress(InvalidInputError):
        return parse_label(value, "A cell")
    raise _no_label(position)


def position_of(codes: IntArray, code: int) -> int:
    """Return the first position (1-based) that holds `code`."""
    return int(np.argmax(codes == code)) + 1


def encode(sequence: Any, states: tuple[Label, ...]) -> IntArray:
    """Return the sequence as indices into `states`."""
    codes, distinct = factorize(sequence)
    index = {label: i for i, label in enumerate(states)}
    translation = np.array([index.get(value, -1) for value in distinct], dtype=np.int64)
    if (translation < 0).any():
        position = int(np.argmax(translation[codes] < 0))
        if _is_missing(distinct[codes[position]]):
            raise _missing(position + 1)
        raise unknown_state_error(position + 1, states)
    if np.array_equal(translation, np.arange(len(translation))):
        return codes.copy()
    return translation[codes]


def unknown_state_error(position: int, states: tuple[Label, ...]) -> InvalidInputError:
    """Return the error of a cell that is no state of the belief."""
    return InvalidInputError(
        f"Position {position} holds none of the belief's states, which are {show_labels(states)}."
    )


def encode_known(sequence: Any, states: tuple[Label, ...], *, quietly: bool = False) -> IntArray:
    """Return the sequence as indices into `states`, and len(states) for any other label."""
    codes, distinct = factorize(sequence)
    index = {label: i for i, label in enumerate(states)}
    translation = np.array([index.get(v, len(states)) for v in distinct], dtype=np.int64)
    for code in np.flatnonzero(translation == len(states)).tolist():
        if not quietly and _is_missing(distinct[code]):
            raise _missing(position_of(codes, code))
    return translation[codes]


def label_array(states: tuple[Label, ...]) -> NDArray[Any]:
    """Return the labels as an array of their own type, or of objects if they are of several."""
    kinds = {type(label) for label in states}
    if len(kinds) == 1 and kinds <= {str, int, float, bool}:
        array = np.array(states)
        if array.tolist() == list(states) and array.dtype.kind != "O":
            return array
    array = np.empty(len(states), dtype=object)
    array[:] = states
    return array


def _is_missing(value: Any) -> bool:
    if value is None or type(value).__name__ in ("NAType", "NaTType"):
        return True
    return isinstance(value, (float, np.floating)) and bool(np.isnan(value))


def _missing(position: int) -> InvalidInputError:
    return InvalidInputError(
        f"Position {position} holds a missing value; fill it, drop it, or make missing values a "
        "state of their own before going on."
    )


def _no_label(position: int) -> InvalidInputError:
    return InvalidInputError(
        f"Position {position} holds a value that cannot be a label; a label is a str of valid "
        "Unicode, an int, float, bool, None or a tuple of them."
    )
