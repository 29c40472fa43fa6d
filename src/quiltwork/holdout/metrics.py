"""Metrics that are means over rows of values in [0, 1], and why others are refused.

A metric maps what is true and what was predicted for each row to a value in [0, 1]; replacing a
row then moves the mean by at most 1/n, which is all the guarantees need.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

from quiltwork.errors import InvalidInputError, UnsupportedError
from quiltwork.exact import shortened, to_fraction

RowMetric: TypeAlias = Callable[[NDArray[Any], NDArray[Any]], NDArray[Any]]


@dataclass(frozen=True)
class Metric:
    """A named metric.

    Attributes:
        name: as in scikit-learn.
        values: (true, predicted) → one value in [0, 1] per row.
        predicts: the estimator's method that it needs.
        score: from the mean to the score, larger being better.
    """

    name: str
    values: RowMetric
    predicts: str
    scale: float = 1.0

    def score(self, mean: float) -> float:
        """Turn the mean of the values into the score, where larger is better."""
        return self.scale * mean


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


def read_metric(metric: Any, limits: tuple[Any, Any] | None = None) -> Metric:
    """Return a metric by name, or from a function (true, predicted) → values in [0, 1].

    `limits` are the public ends (low, high) of the target, for the two errors; values outside
    are clipped.

    Raises:
        UnsupportedError: for metrics without a proven sensitivity, with the reason.
        InvalidInputError: for an unknown name, or missing limits.

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
