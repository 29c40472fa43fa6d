"""What a holdout is made from, checked: two sets of rows, beliefs, settings; and its questions."""

from __future__ import annotations

import hmac
from collections.abc import Iterator
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

import numpy as np
from numpy.typing import NDArray

from quiltwork.beliefs import Belief, Clusters
from quiltwork.errors import InvalidInputError
from quiltwork.exact import shortened, to_fraction
from quiltwork.holdout import rows as _rows
from quiltwork.holdout.algorithm import Question, Settings, mean_question, number_question

_LARGEST_THRESHOLD = 10**6
"""In units of rows·sensitivity; anything above 1 already lets the training set answer always."""


@dataclass(frozen=True)
class Prepared:
    """A statistic that has been evaluated on the training rows, where its mistakes show.

    Attributes:
        statistic: what is asked.
        sensitivity: how far one row can move its number; None for one value per row.
        known: its training value, or the sums of its values by column, in steps.
        columns: how many there are; None for one value per row, or a number.
    """

    statistic: _rows.Statistic
    sensitivity: Fraction | None
    known: tuple[int | Fraction, ...]
    columns: int | None = None


def prepare(
    settings: Settings,
    public: _rows.Data,
    statistic: _rows.Statistic,
    sensitivity: Fraction | None,
) -> Prepared:
    """Evaluate a statistic on the training rows only.

    Raises:
        InvalidInputError: whatever is wrong with it.
    """
    if not callable(statistic):
        raise InvalidInputError(
            f"A statistic is a function from rows to values in [0, 1], not {shortened(statistic)}."
        )
    if sensitivity is not None:
        return Prepared(statistic, sensitivity, (_rows.number_in_public(statistic, public),))
    sums, columns = _rows.sums_in_public(statistic, public, settings.bits)
    return Prepared(statistic, None, tuple(sums), columns)


def questions_of(
    settings: Settings, private: _rows.Data, asked: Prepared, train_rows: int
) -> list[Question]:
    """Evaluate a prepared statistic on the holdout, where it cannot fail."""
    if asked.sensitivity is not None:
        known = Fraction(asked.known[0])
        hidden = _rows.number_in_private(asked.statistic, private)
        # A statistic that fails there breaks its promise; its training value says nothing more.
        value = known if hidden is None else hidden
        return [number_question(settings, value, known, asked.sensitivity)]
    sums = _rows.sums_in_private(asked.statistic, private, settings.bits, asked.columns)
    return [
        mean_question(settings, hidden, int(known), train_rows)
        for hidden, known in zip(sums, asked.known, strict=True)
    ]


def two_sets(train: Any, holdout: Any) -> tuple[_rows.Data, _rows.Data]:
    """Read training set and holdout: of one kind, and not the same rows."""
    public, private = _rows.read_rows(train, "train"), _rows.read_rows(holdout, "holdout")
    _rows.check_alike(public, private)
    if _rows.same_rows(public, private):
        raise InvalidInputError(
            "train and holdout are the same rows; the holdout must be independent of the training "
            "set."
        )
    return public, private


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


def not_negative(threshold: object) -> Fraction:
    """Read a threshold."""
    value = to_fraction(threshold, "threshold")
    if value < 0:
        raise InvalidInputError(f"threshold must be at least 0, not {shortened(threshold)}.")
    if value > _LARGEST_THRESHOLD:
        raise InvalidInputError(
            f"threshold is {shortened(threshold)}; means of values in [0, 1] differ by at most 1."
        )
    return value


def check_text(text: object, name: str) -> None:
    """Refuse what cannot be written to the transcript, before anything is asked."""
    if not isinstance(text, str):
        raise InvalidInputError(f"{name} must be text, not {shortened(text)}.")
    try:
        text.encode()
    except UnicodeEncodeError:
        raise InvalidInputError(
            f"{name} is {shortened(text)}, which has half of a surrogate pair and cannot be "
            "written; remove it."
        ) from None


def several(statistics: Any) -> Iterator[_rows.Statistic]:
    """Go through statistics."""
    try:
        return iter(statistics)
    except TypeError:
        raise InvalidInputError(
            f"ask_many takes a statistic or a list of statistics, not {shortened(statistics)}."
        ) from None


def commitment(key: str, *datasets: _rows.Data) -> str:
    """Return a keyed digest of datasets: other rows, another order or another type change it.

    Without the key, which is kept in a file of its own, no guess of the rows can be tried.
    """
    digest = hmac.new(bytes.fromhex(key), digestmod="sha256")
    for data in datasets:
        for part in data if isinstance(data, tuple) else (data,):
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
