"""Questions as data: predictions by row id, conditions.

People who may not run code here ask about tables: rows are an array of text, one column per column
of a table. Ids are public, so a prediction that is missing is refused before anything is asked; a
row whose target cannot be read counts as wrong, and nothing about a single row is ever said. A
whole number is the same label with `.0` behind it, as programs write it that read a column as
floats.
"""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from quiltwork.errors import InvalidInputError
from quiltwork.exact import shortened
from quiltwork.holdout.arrays import kind_of
from quiltwork.holdout.evaluation import Statistic
from quiltwork.holdout.metrics import Metric

_WHOLE = re.compile(r"([+-]?(?:0|[1-9][0-9]*))\.0*")


def plain_label(text: str) -> str:
    """Return a label or an id as it is compared.

    >>> plain_label("1.0"), plain_label("02410"), plain_label("1.5")
    ('1', '02410', '1.5')
    """
    whole = _WHOLE.fullmatch(text) if "." in text else None
    return text if whole is None else whole[1]


def share_question(tests: Sequence[tuple[int, Callable[[str], bool]]]) -> Statistic:
    """Ask for the share of rows whose columns pass all tests."""

    def values(rows: NDArray[Any]) -> NDArray[Any]:
        passed = np.ones(len(rows), dtype=bool)
        for column, test in tests:
            passed &= np.array([test(str(cell)) for cell in rows[:, column]], dtype=bool)
        return passed

    return values


def prediction_question(
    identity: Sequence[int], target: Sequence[int], predictions: Mapping[str, str], metric: Metric
) -> Statistic:
    """Ask how good predictions are, each given for a row's id as `plain_label` has it.

    There is one column of ids and one of targets, or two where the metric compares pairs. A row
    without a prediction, or whose target cannot be read, gets the worst values.
    """
    worst = np.array([0.0 if sign > 0 else 1.0 for sign in metric.signs])

    def values(rows: NDArray[Any]) -> NDArray[Any]:
        sides = [
            _read(rows[:, i], rows[:, t], predictions, metric)
            for i, t in zip(identity, target, strict=True)
        ]
        found = np.logical_and.reduce([side[0] for side in sides])
        true, said = (
            sides[0][at] if len(sides) == 1 else np.stack([side[at] for side in sides], axis=1)
            for at in (1, 2)
        )
        result = np.tile(worst, (len(rows), 1))
        scored = np.asarray(metric.values(true[found], said[found]))
        result[found] = scored.reshape(len(scored), -1)
        return result if len(worst) > 1 else result[:, 0]

    return values


def _read(
    ids: NDArray[Any], true: NDArray[Any], predictions: Mapping[str, str], metric: Metric
) -> tuple[NDArray[Any], NDArray[Any], NDArray[Any]]:
    """Return which rows can be scored, their targets, and what was predicted."""
    said = [predictions.get(plain_label(str(row))) for row in ids]
    found = np.array([one is not None for one in said], dtype=bool)
    if metric.labels:
        labels = [np.array([plain_label(str(one)) for one in some]) for some in (true, said)]
        return found, labels[0], labels[1]
    read, given = _numbers(true), _numbers([one or "" for one in said])
    return found & np.isfinite(read) & np.isfinite(given), read, given


def among(metric: Metric, statistic: Statistic, member: Statistic) -> tuple[Metric, Statistic]:
    """Score a metric that is one mean among the rows of a group, through two means.

    Theorem: docs/theory/metrics.md
    """
    if len(metric.signs) > 1 or metric.pairs:
        raise InvalidInputError(
            f"{metric.name} is made of several means already; within a group ask for accuracy or "
            "an error."
        )

    def values(rows: NDArray[Any]) -> NDArray[Any]:
        inside = np.asarray(member(rows), dtype=float)
        part = np.asarray(statistic(rows), dtype=float) * inside
        return np.stack([part, inside - part], axis=1)

    def combine(means: Sequence[float]) -> float:
        whole = means[0] + means[1]
        return metric.combine([means[0] / whole if whole > 0 else float(metric.signs[0] < 0)])

    signs = (metric.signs[0], -metric.signs[0])
    return replace(metric, signs=signs, combine=combine), values


def check_ids(known: Iterable[str], predictions: Mapping[str, str], hint: str = "") -> None:
    """Refuse predictions for other rows than there are; which ids there are is public."""
    expected = {plain_label(str(name)) for name in known}
    missing, unknown = len(expected - predictions.keys()), len(predictions.keys() - expected)
    if missing or unknown:
        raise InvalidInputError(
            f"Of {len(expected):,} rows {missing:,} have no prediction, and {unknown:,} of the "
            f"{len(predictions):,} predictions are for ids that no row has. Nothing was asked."
            + hint
        )


def check_readable(predictions: Mapping[str, str], training: NDArray[Any], metric: Metric) -> None:
    """Refuse predictions, or training targets, of which the metric can make nothing.

    Where a metric or the targets are numbers, predictions must be; others must be labels that a
    training row has.
    """
    kind = kind_of_text(training)
    if not metric.labels and kind == "text":
        raise InvalidInputError(
            f"No target of the training rows is a number, and {metric.name} needs numbers. "
            "Nothing was asked."
        )
    numeric = not metric.labels or kind == "numbers"
    labels = {plain_label(str(label)) for label in training}
    for row, said in predictions.items():
        if numeric and not math.isfinite(_number(said)):
            needs = "the targets are" if metric.labels else f"{metric.name} needs some"
            raise InvalidInputError(
                f"The prediction for {row!r} is {shortened(said)}, no number, and {needs}. "
                "Nothing was asked."
            )
        if not numeric and plain_label(said) not in labels:
            raise InvalidInputError(
                f"The prediction for {row!r} is {shortened(said)}, a label that no training row "
                "has. Nothing was asked."
            )


def check_condition(column: str, value: str, training: NDArray[Any]) -> None:
    """Refuse a condition that compares numbers with text."""
    kinds = kind_of_text(training), kind_of_text(np.array([value]))
    if set(kinds) == {"numbers", "text"}:
        raise InvalidInputError(
            f"Column {column!r} has {kinds[0]}, and the condition compares it with {kinds[1]}. "
            "Nothing was asked."
        )


def check_tables(
    header: Sequence[str],
    train: NDArray[Any],
    held: NDArray[Any],
    identity: int,
    target: int | None,
) -> None:
    """Refuse two tables that no question can read alike, by what is public about them."""
    ids = [plain_label(str(name)) for name in (*train[:, identity], *held[:, identity])]
    if len(set(ids)) < len(ids):
        raise InvalidInputError(
            f"An id of column {header[identity]!r} occurs twice, in one table or in both; an id "
            "must name one row, so that it can be predicted."
        )
    for at, name in enumerate(header):
        kinds = kind_of_text(train[:, at]), kind_of_text(held[:, at])
        if at != identity and set(kinds) == {"numbers", "text"}:
            raise InvalidInputError(
                f"Column {name!r} has {kinds[0]} in the training table and {kinds[1]} in the "
                "holdout, so every question about it would seem to overfit; convert one of them."
            )
        if at == target and kinds == ("text", "text") and not set(train[:, at]) & set(held[:, at]):
            raise InvalidInputError(
                f"The labels of column {name!r} in the training table and in the holdout have no "
                "word in common, so nothing could be predicted; write them alike."
            )


def kind_of_text(cells: NDArray[Any]) -> str:
    """Name what a column of a table holds: "numbers", "text", or "objects" for some of each."""
    filled = [text for text in set(cells.tolist()) if text.strip().lower() not in ("", "nan")]
    return kind_of(text if math.isnan(_number(text)) else 0.0 for text in filled)


def _numbers(cells: Iterable[Any]) -> NDArray[np.float64]:
    return np.array([_number(cell) for cell in cells])


def is_number(cell: str) -> bool:
    """Whether a cell is a number that is finite."""
    return math.isfinite(_number(cell))


def _number(cell: Any) -> float:
    try:
        return float(cell)
    except ValueError:
        return math.nan
