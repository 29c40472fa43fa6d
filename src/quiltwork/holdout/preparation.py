"""What a holdout is made from, checked: two sets of rows, beliefs, a ledger; and its questions."""

from __future__ import annotations

import hmac
from collections.abc import Iterator
from fractions import Fraction
from typing import Any

import numpy as np

from quiltwork.beliefs import Belief, Clusters
from quiltwork.errors import InvalidInputError
from quiltwork.exact import to_fraction
from quiltwork.holdout import rows as _rows
from quiltwork.holdout.algorithm import Question, Settings, mean_question, number_question


def evaluate_questions(
    settings: Settings,
    public: _rows.Data,
    private: _rows.Data,
    statistic: _rows.Statistic,
    sensitivity: Fraction | None,
) -> list[Question]:
    """Evaluate on the training rows first, where mistakes show, then on the holdout."""
    if sensitivity is not None:
        known = _rows.number_in_public(statistic, public)
        hidden = _rows.number_in_private(statistic, private)
        # A statistic that fails there breaks its promise; its training value says nothing more.
        return [number_question(settings, known if hidden is None else hidden, known, sensitivity)]
    if not callable(statistic):
        raise InvalidInputError(
            f"A statistic is a function from rows to values in [0, 1], not {statistic!r}."
        )
    sums, columns = _rows.sums_in_public(statistic, public, settings.bits)
    hidden_sums = _rows.sums_in_private(statistic, private, settings.bits, columns)
    count = _rows.count_rows(public)
    return [
        mean_question(settings, hidden, known, count)
        for hidden, known in zip(hidden_sums, sums, strict=True)
    ]


def two_sets(train: Any, holdout: Any) -> tuple[_rows.Data, _rows.Data]:
    """Read training set and holdout: of one kind, and not the same rows."""
    public, private = _rows.read_rows(train, "train"), _rows.read_rows(holdout, "holdout")
    if isinstance(public, tuple) != isinstance(private, tuple):
        raise InvalidInputError(
            "train and holdout must be of the same kind: both arrays, or both tuples such as "
            "(X, y)."
        )
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
        raise InvalidInputError(f"threshold must be at least 0, not {threshold!r}.")
    return value


def check_ledger(ledger: Any, dataset: str | None) -> None:
    """Refuse a ledger without a dataset, and a dataset without a ledger."""
    if (ledger is None) != (dataset is None):
        raise InvalidInputError(
            "Give ledger= and dataset= together, so that it is known whose budget to debit."
        )
    if dataset is not None:
        check_text(dataset, "dataset")


def check_text(text: object, name: str) -> None:
    """Refuse what cannot be written to the transcript, before anything is asked."""
    if not isinstance(text, str):
        raise InvalidInputError(f"{name} must be text, not {text!r}.")
    try:
        text.encode()
    except UnicodeEncodeError:
        raise InvalidInputError(
            f"{name} is {text!r}, which has half of a surrogate pair and cannot be written; "
            "remove it."
        ) from None


def several(statistics: Any) -> Iterator[_rows.Statistic]:
    """Go through statistics."""
    try:
        return iter(statistics)
    except TypeError:
        raise InvalidInputError(
            f"ask_many takes a statistic or a list of statistics, not {statistics!r}."
        ) from None


def named(dataset: str | None) -> str:
    """Name what is debited, for a sentence."""
    return "no ledger" if dataset is None else f"the ledger's dataset {dataset!r}"


def commitment(key: str, public: _rows.Data, private: _rows.Data) -> str:
    """Return a keyed digest of both datasets."""
    digest = hmac.new(bytes.fromhex(key), digestmod="sha256")
    for data in (public, private):
        for part in data if isinstance(data, tuple) else (data,):
            digest.update(f"{part.dtype.str}{part.shape}".encode())
            plain = part.dtype != object
            digest.update(
                np.ascontiguousarray(part).tobytes() if plain else repr(part.tolist()).encode()
            )
    return digest.hexdigest()
