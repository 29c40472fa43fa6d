"""scikit-learn integration: score models with a reusable holdout.

`HoldoutScorer` is passed as `scoring=`; `split` makes training set and holdout with whole groups on
one side; `whole_training_set` is passed as `cv=`, because the holdout replaces cross-validation.
"""

from __future__ import annotations

from secrets import token_hex
from typing import Any, NoReturn

import numpy as np
from numpy.typing import NDArray

from quiltwork.arguments import flag
from quiltwork.beliefs import Clusters
from quiltwork.errors import BudgetExceeded, InvalidInputError
from quiltwork.exact import integer, positive_fraction, proper_fraction
from quiltwork.holdout.arrays import freeze_rows, take
from quiltwork.holdout.metrics import Metric, pair_rows, parse_metric
from quiltwork.holdout.reusable import ReusableHoldout
from quiltwork.holdout.transcript import Answer
from quiltwork.results import Interval

_MOST_ROWS = 10**9

__all__ = ["HoldoutScorer", "SearchStopped", "row_pairs", "split", "whole_training_set"]


class SearchStopped(BaseException):
    """Raised when a holdout's budget is spent during a search.

    Not an `Exception`, because scikit-learn turns every `Exception` of a scorer into NaN and
    chooses among the other candidates. Its text is that of the `BudgetExceeded` behind it.
    """


class HoldoutScorer:
    """A scikit-learn scorer that asks a reusable holdout.

    The holdout must have been made from (X, y) pairs: `ReusableHoldout((X, y), (X_h, y_h), …)`. The
    rows that scikit-learn passes are ignored: every score is a question to the holdout for each
    mean of the metric, and each costs a round if the estimator overfits its training set.

    Args:
        holdout: the holdout.
        metric: one of "accuracy" (the default), "neg_brier_score", "neg_log_loss", "f1",
            "precision", "recall", "balanced_accuracy", "roc_auc" (for a holdout made by
            `row_pairs`); with `limits` "neg_mean_absolute_error", "neg_mean_squared_error",
            "neg_root_mean_squared_error" and "r2"; or a function (true, predicted) → one value in
            [0, 1] per row, larger being better.
        limits: the public ends (low, high) of the target, for errors.
        positive: the label of the positive class.
        variance: of the target on the training rows, for R².
        parts: whether models may be fitted on parts of the training rows, as in halving searches;
            otherwise a search without `cv=whole_training_set(…)` is stopped at once.

    Raises:
        UnsupportedError: for a metric that is not a function of a few means over rows.

    >>> import numpy as np
    >>> from sklearn.dummy import DummyClassifier
    >>> rng = np.random.default_rng(0)
    >>> X, y = rng.normal(size=(2000, 2)), rng.integers(0, 2, 2000)
    >>> h = ReusableHoldout((X[:1000], y[:1000]), (X[1000:], y[1000:]),
    ...                     threshold=0.1, noise=0.01, budget=3)
    >>> scorer = HoldoutScorer(h)
    >>> round(scorer(DummyClassifier().fit(X[:1000], y[:1000])), 1)
    0.5

    Theorem: docs/theory/metrics.md
    """

    def __init__(
        self,
        holdout: ReusableHoldout,
        metric: Any = "accuracy",
        limits: tuple[Any, Any] | None = None,
        positive: Any = 1,
        variance: Any = None,
        parts: bool = False,
    ) -> None:
        if not isinstance(holdout, ReusableHoldout):
            raise InvalidInputError(
                f"HoldoutScorer takes a ReusableHoldout, not {type(holdout).__name__}."
            )
        self.holdout = holdout
        self.metric = parse_metric(metric, limits, positive, variance)
        self.parts = flag(parts, "parts")
        self.answers: tuple[Answer, ...] = ()

    def __call__(self, estimator: Any, X: Any = None, y: Any = None) -> float:  # noqa: N803
        """Return the estimator's score, larger being better; X and y are not scored.

        Raises:
            SearchStopped: once the budget is spent, or ends among the means of this score; also if
                X is not the whole training set, as in a fold of cross-validation.
        """
        self._check_rows(X)
        name = f"{self.metric.name} of {type(estimator).__name__}"
        try:
            answers = self.holdout.ask_many(_question(self.metric, estimator), label=name)
            if len(answers) < len(self.metric.signs):
                raise BudgetExceeded(f"The budget ended among the means of {self.metric.name}.")
        except BudgetExceeded as spent:
            raise SearchStopped(str(spent)) from spent
        self.answers = tuple(answers)
        return self.metric.value([answer.value for answer in answers])

    def _check_rows(self, rows: Any) -> None:
        """Stop a cross-validation, which would ask the holdout once per fold."""
        expected = self.holdout.transcript.rounds.train_rows
        count = expected if rows is None or self.parts else np.shape(rows)[0]
        if count != expected:
            raise SearchStopped(
                f"scikit-learn passed {count:,} of {expected:,} training rows: a fold of its "
                "cross-validation, which would ask the holdout once per fold. Give the search "
                f"cv=whole_training_set({expected}); or, if it fits on parts of the rows on "
                "purpose, as halving searches do, give HoldoutScorer parts=True. Nothing was asked."
            )

    def interval(self, tolerance: Any) -> Interval:
        """Return the range of the last score if every answer is within `tolerance` of the truth.

        Theorem: docs/theory/metrics.md
        """
        if not self.answers:
            raise InvalidInputError("Nothing has been scored yet.")
        width = float(positive_fraction(tolerance, "tolerance"))
        return self.metric.interval([answer.value for answer in self.answers], width)

    def __repr__(self) -> str:
        return f"HoldoutScorer({self.holdout!r}, metric={self.metric.name!r})"

    # scikit-learn copies scorers with their estimators; all must share one budget.
    def __copy__(self) -> HoldoutScorer:
        return self

    def __deepcopy__(self, memo: Any) -> HoldoutScorer:
        return self

    def __reduce__(self) -> tuple[type[ScorerElsewhere], tuple[()]]:
        return ScorerElsewhere, ()


class ScorerElsewhere:
    """A scorer after pickling: in another process it stops the search with an explanation.

    Raising while pickling would make joblib report a task that cannot be pickled, and an
    `Exception` in the scorer would become NaN in scikit-learn.
    """

    def __call__(self, *_: Any) -> NoReturn:
        """Stop the search."""
        raise SearchStopped(
            "A holdout cannot be sent to another process, because each copy would have the whole "
            "budget. Use n_jobs=1, or threads: joblib.parallel_config('threading')."
        )


def _question(metric: Metric, estimator: Any) -> Any:
    def predicted(features: Any) -> NDArray[Any]:
        predictions = np.asarray(getattr(estimator, metric.predicts)(features))
        return predictions[:, 1] if metric.predicts == "predict_proba" else _flat(predictions)

    def values(rows: Any) -> NDArray[Any]:
        parts = _parts(rows, 4 if metric.pairs else 2)
        predictions = [predicted(features) for features in parts[::2]]
        targets = [_flat(np.asarray(target)) for target in parts[1::2]]
        if not metric.pairs:
            return metric.values(targets[0], predictions[0])
        return metric.values(np.stack(targets, axis=1), np.stack(predictions, axis=1))

    return values


def _flat(column: NDArray[Any]) -> NDArray[Any]:
    """Return a column vector of shape (n, 1) as an array of shape (n,)."""
    return column[:, 0] if column.ndim == 2 and column.shape[1] == 1 else column


def _parts(rows: Any, count: int) -> tuple[Any, ...]:
    if not isinstance(rows, tuple) or len(rows) != count:
        constructor = "row_pairs(X, y)" if count == 4 else "pairs such as (X, y)"
        raise InvalidInputError(
            f"A scorer needs features and targets: make train and holdout from {constructor}."
        )
    return rows


def _names(groups: Any) -> NDArray[Any]:
    names = freeze_rows(list(groups) if isinstance(groups, tuple) else groups, "groups")
    if names.ndim != 1:
        raise InvalidInputError("groups must have one name for each row.")
    return np.asarray(names)


def row_pairs(
    X: Any,  # noqa: N803
    y: Any,
    groups: Any = None,
) -> tuple[tuple[Any, Any, Any, Any], Clusters | None]:
    """Return (X, y, other X, other y) of disjoint random pairs of rows, and the belief about pairs.

    AUC is a question about such pairs: `ReusableHoldout(row_pairs(X, y)[0], pairs, beliefs, …)`.
    Rows of one group depend on each other; a pair is from two groups, which must be of one size.
    Every call draws new pairs: keep them to resume their holdout.

    Theorem: docs/theory/metrics.md
    """
    features, target = freeze_rows((X, y), "rows")
    names = None if groups is None else _names(groups)
    if names is not None and len(names) != len(target):
        raise InvalidInputError(f"groups has {len(names)} names for {len(target)} rows.")
    pairs, couples = pair_rows(names, len(target), token_hex(32))
    sides = [(take(features, pairs[:, at]), take(target, pairs[:, at])) for at in (0, 1)]
    beliefs = None if groups is None else Clusters(couples.tolist())
    return (*sides[0], *sides[1]), beliefs


def whole_training_set(rows: int) -> list[tuple[NDArray[Any], NDArray[Any]]]:
    """Return the one split for `cv=` that fits on all training rows, once per candidate.

    The holdout replaces cross-validation: `GridSearchCV(model, grid, scoring=HoldoutScorer(h),
    cv=whole_training_set(len(X)))`.

    >>> [(len(fit), len(score)) for fit, score in whole_training_set(5)]
    [(5, 5)]
    """
    every = np.arange(integer(rows, "rows", 1, _MOST_ROWS))
    return [(every, every)]  # halving searches take parts of both


def split(
    X: Any,  # noqa: N803
    y: Any,
    groups: Any = None,
    holdout_share: Any = 0.5,
    seed: int = 0,
) -> tuple[tuple[Any, Any], tuple[Any, Any], Clusters | None]:
    """Split rows into ((X, y), (X_h, y_h), beliefs), keeping groups whole as GroupKFold does.

    The belief is `Clusters` of the holdout's groups, or None without groups. `seed` decides which
    rows are in the holdout; it must not depend on the data, and is no secret.

    Raises:
        InvalidInputError: if one side would be empty, or lengths differ.

    >>> import numpy as np
    >>> train, holdout, beliefs = split(np.eye(6), np.arange(6), groups=list("aabbcc"), seed=1)
    >>> len(holdout[1]), beliefs
    (4, Clusters(4 rows in 2 clusters; largest=2))
    """
    features, target = freeze_rows(X, "X"), freeze_rows(y, "y")
    names = np.arange(len(features)) if groups is None else _names(groups)
    if not len(features) == len(target) == len(names):
        raise InvalidInputError(
            f"X has {len(features)} rows, y {len(target)} and groups {len(names)}; they must agree."
        )
    share = proper_fraction(holdout_share, "holdout_share")
    _, codes, sizes = np.unique(names, return_inverse=True, return_counts=True)
    order = np.random.default_rng(integer(seed, "seed", 0)).permutation(len(sizes))
    chosen = order[: int(np.searchsorted(np.cumsum(sizes[order]), float(share) * len(names))) + 1]
    held = np.isin(codes, chosen)
    if held.all() or not held.any():
        raise InvalidInputError(
            f"{len(sizes)} groups cannot be split so that both sides have some; choose another "
            "holdout_share or seed."
        )
    beliefs = None if groups is None else Clusters(names[held].tolist())
    sides = [np.flatnonzero(~held), np.flatnonzero(held)]
    train, kept = ((take(features, side), take(target, side)) for side in sides)
    return train, kept, beliefs
