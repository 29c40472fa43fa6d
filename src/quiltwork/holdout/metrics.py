"""Metrics that are functions of means over rows, each with a proven confidence width.

A metric maps the true and predicted value of each row to one or more values in [0, 1], so replacing
a row moves each mean by at most 1/n, which is all that the guarantees need. Its score is a function
of these means, monotone in each, so means within w put the score between its values at two corners.
Scores are shares of the way from the worst to the best value, clipped to the metric's range.

Theorem: docs/theory/metrics.md
"""

from __future__ import annotations

import hashlib
import math
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from fractions import Fraction
from typing import Any, Literal, TypeAlias, get_args

import numpy as np
from numpy.typing import NDArray

from quiltwork.errors import InvalidInputError, UnsupportedError
from quiltwork.exact import parse_stored_fraction, shortened, to_fraction
from quiltwork.holdout.concentration import Concentration
from quiltwork.results import Interval
from quiltwork.wording import argument

RowMetric: TypeAlias = Callable[[NDArray[Any], NDArray[Any]], NDArray[Any]]
Combine: TypeAlias = Callable[[Sequence[float]], float]
Fractions: TypeAlias = Callable[..., list[tuple[float, float]]]
_WIDEST = 10**100
"""Largest limit of a target: its square is still a float."""
CLIP = 0.001
"""Log loss clips probabilities to between this and 1 − this."""
_NAMED = 8
"""Number of classes listed in a message."""
_NOT_A_MEAN = "is not a function of a few means over rows"
_NOT_BOUNDED = "is unbounded: one row can move it arbitrarily far"
_AVERAGES = ("_micro", "_macro", "_weighted", "_samples", "_ovr", "_ovo")
_REFUSED = {
    "average_precision": "average precision ranks all rows and " + _NOT_A_MEAN,
    "matthews_corrcoef": "the correlation is not monotone in its means",
    "explained_variance": "explained variance is not monotone in its means; take r2",
    "mean_squared_log_error": "an error of logarithms " + _NOT_BOUNDED,
    "mean_absolute_percentage_error": "an error relative to the target " + _NOT_BOUNDED,
    "median_absolute_error": "a median " + _NOT_A_MEAN,
    "max_error": "a largest error " + _NOT_A_MEAN,
}
_Error: TypeAlias = Literal[
    "neg_mean_absolute_error",
    "neg_mean_squared_error",
    "neg_root_mean_squared_error",
    "r2",
]
_Ratio: TypeAlias = Literal["f1", "precision", "recall", "balanced_accuracy", "roc_auc"]
MetricName: TypeAlias = Literal["accuracy", "neg_brier_score", "neg_log_loss", _Error, _Ratio]
_ERRORS, _RATIOS = get_args(_Error), get_args(_Ratio)
NAMES: tuple[str, ...] = get_args(MetricName)


@dataclass(frozen=True)
class Metric:
    """A metric by name.

    Attributes:
        name: as in scikit-learn.
        values: (true, predicted) → one value in [0, 1] per row, or one column for each mean.
        predicts: the estimator's method that it needs.
        signs: for each mean, 1 if the score rises with it and -1 if it falls.
        combine: from the means to the score, a share of the way from worst to best.
        spread: from a width of the means to a width of the score, wherever the means are.
        worst: the value at score 0; larger is better, as in scikit-learn.
        best: the value at score 1.
        pairs: whether a row is a pair of rows, so that true and predicted have two columns.
        labels: whether it compares labels; otherwise it takes numbers.
        classes: the labels that may be predicted; None for any.
    """

    name: str
    values: RowMetric
    predicts: str = "predict"
    signs: tuple[int, ...] = (1,)
    combine: Combine = lambda means: means[0]
    spread: Callable[[float], float] = lambda width: width
    worst: float = 0.0
    best: float = 1.0
    pairs: bool = False
    labels: bool = False
    classes: tuple[str, ...] | None = None

    def score(self, means: Sequence[float]) -> float:
        """Return the score, a share of the way from the worst to the best value."""
        inside = [min(max(float(mean), 0.0), 1.0) for mean in means]
        return min(max(self.combine(inside), 0.0), 1.0)

    def shown(self, score: float) -> float:
        """Return the metric's own value for a score, within its range."""
        return self.worst + (self.best - self.worst) * min(max(score, 0.0), 1.0)

    def value(self, means: Sequence[float]) -> float:
        """Return the metric's own value for these means."""
        return self.shown(self.score(means))

    def interval(self, means: Sequence[float], width: float) -> Interval:
        """Return the metric's range if every mean is within `width` of the truth.

        Theorem: docs/theory/metrics.md

        >>> rmse = parse_metric("neg_root_mean_squared_error", (0, 10))
        >>> [round(end, 3) for end in rmse.interval([0.04], 0.01)]
        [-2.236, -1.732]
        """
        ends = [
            [mean + side * sign * width for mean, sign in zip(means, self.signs, strict=True)]
            for side in (-1, 1)
        ]
        return Interval(self.value(ends[0]), self.value(ends[1]))


MEAN = Metric("mean", lambda _, predicted: predicted)
"""The mean of row values, for statistics that score rows themselves."""


def true_score_interval(
    metric: Metric, bound: Concentration, rows: int, exponent: float, low: float, high: float
) -> Interval:
    """Return a confidence interval for the true score, observed between `low` and `high`.

    It fails with probability 2·e^(−exponent) at most for each mean of the metric. For one mean both
    ends go through the binomial tail; for several, through the metric's spread.

    Theorem: docs/theory/metrics.md, docs/theory/concentration.md
    """
    low, high = max(low, 0.0), min(high, 1.0)
    if len(metric.signs) > 1:
        width = metric.spread(bound.width_at(rows, exponent))
        return Interval(max(low - width, 0.0), min(high + width, 1.0))
    rises = metric.signs[0] > 0
    ends = _means_between(metric, low, high)
    means = bound.lower(rows, ends[0], exponent), bound.upper(rows, ends[1], exponent)
    return Interval(*(metric.score([mean]) for mean in (means if rises else means[::-1])))


def _means_between(metric: Metric, low: float, high: float) -> tuple[float, float]:
    """Return the least and largest mean whose score lies in the range, rounded outwards."""

    def last(holds: Callable[[float], bool]) -> float:
        """Return the upper end of the means for which the condition holds, from 0 on."""
        inside, outside = 0.0, 1.0
        if holds(1.0):
            return 1.0
        for _ in range(48):
            middle = (inside + outside) / 2
            inside, outside = (middle, outside) if holds(middle) else (inside, middle)
        return outside

    if metric.signs[0] > 0:
        least = last(lambda mean: metric.score([mean]) < low)
        return max(least - 2.0**-40, 0.0), last(lambda mean: metric.score([mean]) <= high)
    # A falling score: the roles of both ends are exchanged.
    least = last(lambda mean: metric.score([mean]) > high)
    return max(least - 2.0**-40, 0.0), last(lambda mean: metric.score([mean]) >= low)


@dataclass(frozen=True)
class Scoring:
    """How predictions are scored, as plain data.

    Attributes:
        metric: its name.
        limits: the public ends (low, high) of the target, for errors and R²; values outside are
            clipped.
        positive: the label of the positive class, for F1, precision, recall and balanced accuracy.
        variance: of the target on training rows, for R².
        floor: a public lower bound on the share of rows (or pairs) in a denominator.
        classes: the public labels that may be predicted; `("*",)` for any text.

    >>> Scoring("accuracy", classes=("no", "yes")).read().name
    'accuracy'
    """

    metric: str = "accuracy"
    limits: tuple[Any, Any] | None = None
    positive: str = "1"
    variance: Any = None
    floor: Any = None
    classes: tuple[str, ...] | None = None

    def body(self) -> dict[str, Any]:
        """Return it as JSON values; numbers as exact fractions."""
        numbers = {name: _written(getattr(self, name)) for name in ("variance", "floor")}
        ends = None if self.limits is None else [_written(end) for end in self.limits]
        classes = None if self.classes is None else list(self.classes)
        return {**asdict(self), **numbers, "limits": ends, "classes": classes}

    def read(self) -> Metric:
        """Return the metric."""
        metric = parse_metric(self.metric, self.limits, self.positive, self.variance, self.floor)
        if self.classes is None:
            return metric
        return replace(metric, classes=_classes(metric, self.classes, self.positive))


def scoring_from_body(body: Mapping[str, Any]) -> Scoring:
    """Parse what `Scoring.body` wrote."""
    if not isinstance(body, Mapping) or set(body) | {"classes"} != set(Scoring().body()):
        raise InvalidInputError("scoring must be an object that names the metric.")
    classes = body.get("classes")  # absent in boards of older versions
    if classes is not None and not isinstance(classes, list):
        raise InvalidInputError("classes must be a list of labels.")
    ends = body["limits"]
    if ends is not None and (not isinstance(ends, list) or len(ends) != 2):
        raise InvalidInputError("limits must be two numbers.")
    numbers = {
        name: None if body[name] is None else parse_stored_fraction(body[name], name)
        for name in ("variance", "floor")
    }
    limits = None if ends is None else tuple(parse_stored_fraction(end, "limits") for end in ends)
    labels = None if classes is None else tuple(classes)
    scoring = Scoring(**{**body, **numbers, "limits": limits, "classes": labels})
    if not isinstance(scoring.metric, str) or not isinstance(scoring.positive, str):
        raise InvalidInputError("metric and positive must be text.")
    scoring.read()
    return scoring


ANY_LABEL = "*"
"""Stands for classes where any text may be predicted, such as answers to questions."""
_WHOLE = re.compile(r"([+-]?(?:0|[1-9][0-9]*))\.0*")


def plain_label(text: str) -> str:
    """Return the canonical form of a label or an id: whole numbers lose a trailing `.0`.

    >>> plain_label("1.0"), plain_label("02410"), plain_label("1.5")
    ('1', '02410', '1.5')
    """
    # Only with a point: "007" and "7" may be two ids.
    whole = _WHOLE.fullmatch(text) if "." in text else None
    return text if whole is None else whole[1]


def _classes(metric: Metric, classes: Any, positive: str) -> tuple[str, ...] | None:
    """Validate the classes of a metric that compares labels; None where any label is allowed."""
    listed = isinstance(classes, Sequence) and not isinstance(classes, str)
    if not listed or not all(isinstance(label, str) and label.strip() for label in classes):
        raise InvalidInputError(
            f"classes must be a list of labels as text, not {shortened(classes)}."
        )
    if not metric.labels:
        raise InvalidInputError(f"{metric.name} takes numbers and has no classes; leave them out.")
    labels = tuple(dict.fromkeys(map(plain_label, classes)))
    is_ratio = len(metric.signs) > 1
    if labels == (ANY_LABEL,) and not is_ratio:
        return None
    if len(labels) < 2:
        raise InvalidInputError(
            "Give at least two classes; with one class there is nothing to predict."
        )
    if is_ratio and positive not in labels:
        raise InvalidInputError(
            f"The positive class {shortened(positive)} is not among the classes: "
            f"{class_names_text(labels)}."
        )
    return labels


def class_names_text(classes: Sequence[str]) -> str:
    """List the first few classes for a message."""
    shown = ", ".join(map(shortened, classes[:_NAMED]))
    return shown if len(classes) <= _NAMED else f"{shown} and {len(classes) - _NAMED:,} more"


def _written(number: Any) -> str | None:
    return None if number is None else str(to_fraction(number, "scoring"))


def parse_metric(
    metric: Any,
    limits: tuple[Any, Any] | None = None,
    positive: Any = 1,
    variance: Any = None,
    floor: Any = None,
) -> Metric:
    """Return a metric by name, or from a function (true, predicted) → values in [0, 1].

    The other arguments are those of `Scoring`.

    >>> parse_metric("max_error")
    Traceback (most recent call last):
        ...
    quiltwork.errors.UnsupportedError: max_error is refused: a largest error is not a function of
    ...
    """
    if callable(metric):
        return Metric(getattr(metric, "__name__", "custom"), metric)
    if not isinstance(metric, str):
        raise InvalidInputError(
            f"metric must be one of {', '.join(NAMES)}, or a function (true, predicted) → one "
            f"value in [0, 1] per row; not {shortened(metric)}."
        )
    reason = _REFUSED.get(_family(metric))
    if _family(metric) in (*_RATIOS, "jaccard") and metric not in NAMES:
        reason = reason or "averages over classes are refused; name one class by `positive`"
    if reason is not None:
        raise UnsupportedError(
            f"{metric} is refused: {reason}, and no useful bound is proven for it. Use one of "
            f"{', '.join(NAMES)}."
        )
    if metric == "accuracy":
        return Metric("accuracy", lambda true, predicted: true == predicted, labels=True)
    if metric in ("neg_brier_score", "neg_log_loss"):
        return _probability_error(metric)
    if metric in _ERRORS:
        return _error(metric, _limits(metric, limits), variance)
    if metric in _RATIOS:
        return _ratio(metric, positive, _floor(floor))
    raise InvalidInputError(f"No metric {shortened(metric)}; there are: {', '.join(NAMES)}.")


def _family(metric: str) -> str:
    """Return a metric's name without its sign and kind of average."""
    name = metric.removeprefix("neg_")
    for average in _AVERAGES:
        name = name.removesuffix(average)
    return name


def _falling(means: Sequence[float]) -> float:
    return 1 - means[0]


def _probability_error(metric: str) -> Metric:
    """Return an error of the predicted probability of the second class, coded 1 (or True)."""
    largest = -math.log(CLIP)

    def squared(true: NDArray[Any], predicted: NDArray[Any]) -> NDArray[Any]:
        return np.asarray((np.asarray(true, dtype=float) - np.clip(predicted, 0, 1)) ** 2)

    def logarithmic(true: NDArray[Any], predicted: NDArray[Any]) -> NDArray[Any]:
        inside = np.clip(np.asarray(predicted, dtype=float), CLIP, 1 - CLIP)
        likelihood = np.where(np.asarray(true, dtype=float) == 1, inside, 1 - inside)
        return np.asarray(np.minimum(-np.log(likelihood) / largest, 1.0))

    values, worst = (squared, -1.0) if metric == "neg_brier_score" else (logarithmic, -largest)
    return Metric(metric, values, "predict_proba", (-1,), _falling, worst=worst, best=0.0)


def _error(metric: str, ends: tuple[float, float], variance: Any) -> Metric:
    low, high = ends
    power = 1 if metric == "neg_mean_absolute_error" else 2

    def error(true: NDArray[Any], predicted: NDArray[Any]) -> NDArray[Any]:
        gap = np.clip(true, low, high) - np.clip(predicted, low, high)
        return np.asarray(np.abs(gap / (high - low)) ** power)

    if metric == "neg_root_mean_squared_error":
        return Metric(
            *(metric, error, "predict", (-1,), lambda means: 1 - math.sqrt(means[0])),
            *(math.sqrt, low - high, 0.0),
        )
    if metric == "r2":
        times = (high - low) ** 2 / _variance(variance)
        return Metric(
            *(metric, error, "predict", (-1,), lambda means: 1 - times * means[0]),
            lambda width: times * width,
        )
    worst = -((high - low) ** power)
    return Metric(metric, error, "predict", (-1,), _falling, worst=worst, best=0.0)


_FRACTIONS: dict[str, tuple[tuple[str, ...], tuple[int, ...], Fractions]] = {
    "f1": (("hit", "false", "missed"), (1, -1, -1), lambda h, f, m: [(2 * h, 2 * h + f + m)]),
    "precision": (("hit", "false"), (1, -1), lambda h, f: [(h, h + f)]),
    "recall": (("hit", "missed"), (1, -1), lambda h, m: [(h, h + m)]),
    "balanced_accuracy": (
        ("hit", "missed", "passed", "false"),
        (1, -1, 1, -1),
        lambda h, m, p, f: [(h, h + m), (p, p + f)],
    ),
    "roc_auc": ((), (1, -1), lambda right, wrong: [(right, right + wrong)]),
}
"""Row classes that are counted, the sign of each mean, and the fractions that are averaged."""


def _ratio(metric: str, positive: Any, floor: float) -> Metric:
    """Return a metric that divides one mean by others; each class of rows is one mean."""
    names, signs, fractions = _FRACTIONS[metric]

    def combine(means: Sequence[float]) -> float:
        parts = [(above, max(below, floor)) for above, below in fractions(*means)]
        # A class without rows has no ratio: it counts as 0, never as an error about the rows.
        return sum(above / below if below > 0 else 0.0 for above, below in parts) / len(parts)

    def row_classes(true: NDArray[Any], predicted: NDArray[Any]) -> NDArray[Any]:
        is_one, predicted_one = np.asarray(true == positive), np.asarray(predicted == positive)
        membership = {
            "hit": is_one & predicted_one,
            "false": ~is_one & predicted_one,
            "missed": is_one & ~predicted_one,
            "passed": ~is_one & ~predicted_one,
        }
        return np.stack([membership[name] for name in names], axis=1)

    def pair_order(true: NDArray[Any], predicted: NDArray[Any]) -> NDArray[Any]:
        targets = np.asarray(true, dtype=float)
        agreement = (targets[:, 0] - targets[:, 1]) * np.sign(predicted[:, 0] - predicted[:, 1])
        differ = targets[:, 0] != targets[:, 1]
        concordant = np.where(agreement > 0, 1.0, np.where(agreement < 0, 0.0, 0.5)) * differ
        return np.stack([concordant, differ - concordant], axis=1)

    spread = _per(2 if metric == "f1" else 1, floor)
    if metric == "roc_auc":
        return Metric(metric, pair_order, "predict_proba", signs, combine, spread, pairs=True)
    return Metric(metric, row_classes, "predict", signs, combine, spread, labels=True)


def _per(times: int, floor: float) -> Callable[[float], float]:
    return lambda width: times * width / floor if floor else math.inf


def _floor(floor: Any) -> float:
    if floor is None:
        return 0.0
    share = to_fraction(floor, "floor")
    if not 0 < share <= 1:
        raise InvalidInputError(f"floor must lie between 0 and 1, not {shortened(floor)}.")
    return float(share)


def _variance(variance: Any) -> float:
    exact = Fraction(0) if variance is None else to_fraction(variance, "variance")
    if exact <= 0:
        raise InvalidInputError(
            "r2 is measured against the variance of the target on training rows, which is public: "
            f"give it as {argument('variance')}, above 0, not {shortened(variance)}."
        )
    return float(exact)


def _limits(metric: str, limits: tuple[Any, Any] | None) -> tuple[float, float]:
    if limits is None:
        raise InvalidInputError(
            f"{metric} is bounded only if the target is: give its public limits, such as "
            f"{argument('limits', (0, 100))}; values outside are clipped."
        )
    pair = isinstance(limits, Sequence) and not isinstance(limits, str) and len(limits) == 2
    ends = [to_fraction(end, "limits") for end in limits] if pair else [Fraction(0)] * 2
    if not -_WIDEST < ends[0] < ends[1] < _WIDEST:
        raise InvalidInputError(
            f"limits must be (low, high) with low < high, not {shortened(limits)}."
        )
    return float(ends[0]), float(ends[1])


def pair_rows(groups: Any, rows: int, key: str) -> tuple[NDArray[Any], NDArray[Any]]:
    """Return random disjoint pairs of rows from different groups, and which are dependent.

    Groups, and the rows of each, are ordered by the secret key alone, whatever their names and the
    order of the file. Neighbouring groups make a couple, and the i-th row of one is paired with the
    i-th of the other. Without groups every row is one. Labels are never read.

    Theorem: docs/theory/metrics.md

    >>> pairs, couples = pair_rows(list("aabb"), 4, "00" * 32)
    >>> sorted(pairs.ravel().tolist()), couples.tolist()
    ([0, 1, 2, 3], [0, 0])
    """
    names = np.arange(rows)
    if groups is not None:
        names = np.unique(np.asarray(groups), return_inverse=True)[1]
    sizes = np.bincount(names)
    if len(sizes) < 2:
        raise InvalidInputError(
            "AUC compares pairs of rows from different groups; give at least two groups."
        )
    if sizes.min() < sizes.max():
        raise InvalidInputError(
            f"AUC needs groups of one size, and these have {sizes.min():,} to {sizes.max():,} "
            "rows: pairs of unequal groups would not weigh rows as AUC does. Keep one row of each "
            "group, or take neg_brier_score, neg_log_loss or balanced_accuracy."
        )
    stream = hashlib.shake_256(b"pairs" + bytes.fromhex(key)).digest(16 * rows)
    of_rows, of_groups = np.frombuffer(stream, "<u8").reshape(2, rows)
    order = np.lexsort((of_rows, names, of_groups[names])).reshape(len(sizes), -1)
    couples = order[: len(sizes) // 2 * 2].reshape(-1, 2, sizes[0])
    return couples.transpose(0, 2, 1).reshape(-1, 2), np.repeat(np.arange(len(couples)), sizes[0])
