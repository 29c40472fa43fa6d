"""Questions as data: metrics that are means over rows, predictions by row id, conditions.

A metric maps what is true and what was predicted for each row to a value in [0, 1]; replacing a row
then moves the mean by at most 1/n, which is all the guarantees need.

People who may not run code here ask about tables: rows are an array of text, one column per column
of a table. Ids are public, so a prediction that is missing is refused before anything is asked; a
row whose target cannot be read counts as wrong, and nothing about a single row is ever said. A
whole number is the same label with `.0` behind it, as programs write it that read a column as
floats.
"""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

from quiltwork.errors import InvalidInputError, UnsupportedError
from quiltwork.exact import shortened, to_fraction
from quiltwork.holdout.arrays import kind_of
from quiltwork.holdout.evaluation import Statistic

RowMetric: TypeAlias = Callable[[NDArray[Any], NDArray[Any]], NDArray[Any]]
_WIDEST = 10**100
"""Squares of it are floats."""
_NOT_A_MEAN = "is no mean over rows: replacing one row can change what every other row counts for"
_NOT_BOUNDED = "is not bounded: one row can move it as far as one likes"
_AVERAGES = ("_micro", "_macro", "_weighted", "_samples", "_ovr", "_ovo")
_REFUSED = {
    "f1": "F1 is a ratio of counts that " + _NOT_A_MEAN,
    "jaccard": "the Jaccard score is a ratio of counts that " + _NOT_A_MEAN,
    "precision": "precision divides by the number of predicted positives and " + _NOT_A_MEAN,
    "recall": "recall divides by the number of true positives and negatives and " + _NOT_A_MEAN,
    "balanced_accuracy": "balanced accuracy divides by class counts and " + _NOT_A_MEAN,
    "roc_auc": "AUC compares pairs of rows and " + _NOT_A_MEAN,
    "average_precision": "average precision ranks all rows and " + _NOT_A_MEAN,
    "matthews_corrcoef": "the correlation " + _NOT_A_MEAN,
    "r2": "R² divides by the variance of all rows, which may be as small as one likes, and "
    + _NOT_A_MEAN,
    "explained_variance": "explained variance divides by the variance of all rows and "
    + _NOT_A_MEAN,
    "log_loss": "log loss " + _NOT_BOUNDED,
    "mean_squared_log_error": "an error of logarithms " + _NOT_BOUNDED,
    "mean_absolute_percentage_error": "an error relative to the target " + _NOT_BOUNDED,
    "root_mean_squared_error": "the root of a mean " + _NOT_A_MEAN,
    "median_absolute_error": "a median " + _NOT_A_MEAN,
    "max_error": "a largest error " + _NOT_A_MEAN,
}
NAMES = ("accuracy", "neg_brier_score", "neg_mean_absolute_error", "neg_mean_squared_error")
_WHOLE = re.compile(r"([+-]?(?:0|[1-9][0-9]*))\.0*")


@dataclass(frozen=True)
class Metric:
    """A named metric.

    Attributes:
        name: as in scikit-learn.
        values: (true, predicted) → one value in [0, 1] per row.
        predicts: the estimator's method that it needs.
        scale: times the mean, the score, larger being better.
    """

    name: str
    values: RowMetric
    predicts: str
    scale: float = 1.0


def read_metric(metric: Any, limits: tuple[Any, Any] | None = None) -> Metric:
    """Return a metric by name, or from a function (true, predicted) → values in [0, 1].

    `limits` are the public ends (low, high) of the target, for the two errors; values outside
    are clipped.

    >>> read_metric("roc_auc")
    Traceback (most recent call last):
        ...
    quiltwork.errors.UnsupportedError: roc_auc is refused: AUC compares pairs of rows and is no ...
    """
    if callable(metric):
        return Metric(getattr(metric, "__name__", "custom"), metric, "predict")
    if not isinstance(metric, str):
        raise InvalidInputError(
            f"metric must be one of {', '.join(NAMES)}, or a function (true, predicted) → one "
            f"value in [0, 1] per row; not {shortened(metric)}."
        )
    reason = _REFUSED.get(_family(metric))
    if reason is not None:
        raise UnsupportedError(
            f"{metric} is refused: {reason}, and no useful bound on that is proven. Use "
            f"one of {', '.join(NAMES)}."
        )
    if metric == "accuracy":
        return Metric("accuracy", lambda true, said: true == said, "predict")
    if metric == "neg_brier_score":
        return Metric("neg_brier_score", _brier, "predict_proba", -1.0)
    if metric not in NAMES:
        raise InvalidInputError(f"No metric {shortened(metric)}; there are: {', '.join(NAMES)}.")
    low, high = _limits(metric, limits)
    power = 2 if metric == "neg_mean_squared_error" else 1

    def error(true: NDArray[Any], said: NDArray[Any]) -> NDArray[Any]:
        gap = np.clip(true, low, high) - np.clip(said, low, high)
        return np.asarray(np.abs(gap / (high - low)) ** power)

    return Metric(metric, error, "predict", -((high - low) ** power))


def _family(metric: str) -> str:
    """Return a metric's name without its sign and its kind of average."""
    name = metric.removeprefix("neg_")
    for average in _AVERAGES:
        name = name.removesuffix(average)
    return name


def _brier(true: NDArray[Any], probability: NDArray[Any]) -> NDArray[Any]:
    """Return the squared error of the probability of the second class, coded 1 (or True)."""
    return np.asarray((np.asarray(true, dtype=float) - probability) ** 2)


def _limits(metric: str, limits: tuple[Any, Any] | None) -> tuple[float, float]:
    if limits is None:
        raise InvalidInputError(
            f"{metric} is bounded only if the target is: give its public limits, such as "
            "limits=(0, 100); values outside are clipped."
        )
    pair = isinstance(limits, Sequence) and not isinstance(limits, str) and len(limits) == 2
    ends = [to_fraction(end, "limits") for end in limits] if pair else [Fraction(0)] * 2
    if not -_WIDEST < ends[0] < ends[1] < _WIDEST:
        raise InvalidInputError(
            f"limits must be (low, high) with low < high, not {shortened(limits)}."
        )
    return float(ends[0]), float(ends[1])


def plain_label(text: str) -> str:
    """Return a label or an id as it is compared.

    >>> plain_label("1.0"), plain_label("02410"), plain_label("1.5")
    ('1', '02410', '1.5')
    """
    whole = _WHOLE.fullmatch(text)
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
    identity: int, target: int, predictions: Mapping[str, str], metric: Metric
) -> Statistic:
    """Ask how good predictions are, each given for a row's id as `plain_label` has it.

    A row without a prediction gets the worst value: 0 for scores, 1 for errors.
    """
    worst = 0.0 if metric.scale > 0 else 1.0
    numeric = metric.name != "accuracy"

    def values(rows: NDArray[Any]) -> NDArray[Any]:
        said = [predictions.get(plain_label(str(row))) for row in rows[:, identity]]
        found = np.array([one is not None for one in said], dtype=bool)
        given = np.array([one or "" for one in said], dtype=object)
        true = rows[:, target]
        result = np.full(len(rows), worst)
        if numeric:
            read, shown = _numbers(true), _numbers(given)
            found &= np.isfinite(read) & np.isfinite(shown)
            shown = np.clip(shown, 0, 1) if metric.predicts == "predict_proba" else shown
            result[found] = metric.values(read[found], shown[found])
        else:
            pairs = zip(true[found], given[found], strict=True)
            result[found] = [plain_label(str(a)) == plain_label(str(b)) for a, b in pairs]
        return result

    return values


def check_covered(
    rows: NDArray[Any], identity: int, predictions: Mapping[str, str], kind: str
) -> None:
    """Refuse predictions that miss a row; which ids there are is public."""
    missing = [
        place
        for place, name in enumerate(rows[:, identity], start=1)
        if plain_label(str(name)) not in predictions
    ]
    if missing:
        raise InvalidInputError(
            f"There is no prediction for row {missing[0]:,} of the {kind} set ({len(missing):,} "
            "are missing); give one for every id of the training set and the holdout."
        )


def check_readable(predictions: Mapping[str, str], training: NDArray[Any], metric: Metric) -> None:
    """Refuse predictions, or training targets, of which the metric can make nothing.

    Where a metric or the targets are numbers, predictions must be; others must be labels that a
    training row has.
    """
    kind = kind_of_text(training)
    if metric.name != "accuracy" and kind == "text":
        raise InvalidInputError(
            f"No target of the training rows is a number, and {metric.name} needs numbers. "
            "Nothing was asked."
        )
    numeric = metric.name != "accuracy" or kind == "numbers"
    labels = {plain_label(str(label)) for label in training}
    for row, said in predictions.items():
        if numeric and not math.isfinite(_number(said)):
            needs = "the targets are" if metric.name == "accuracy" else f"{metric.name} needs some"
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


def _numbers(cells: NDArray[Any]) -> NDArray[np.float64]:
    return np.array([_number(cell) for cell in cells])


def _number(cell: Any) -> float:
    try:
        return float(cell)
    except ValueError:
        return math.nan
