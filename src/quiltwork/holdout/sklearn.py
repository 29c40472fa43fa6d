"""scikit-learn: score models with a holdout that can be reused.

`HoldoutScorer` goes where scikit-learn takes `scoring=`, `split` makes the two sets with whole
groups on one side.
"""

from __future__ import annotations

from typing import Any, NoReturn

import numpy as np
from numpy.typing import NDArray

from quiltwork.beliefs import Clusters
from quiltwork.errors import InvalidInputError, UnsupportedError
from quiltwork.exact import integer, shortened, to_fraction
from quiltwork.holdout.arrays import read_rows
from quiltwork.holdout.questions import Metric, read_metric
from quiltwork.holdout.reusable import ReusableHoldout
from quiltwork.holdout.transcript import Answer

_MOST_ROWS = 10**9

__all__ = ["HoldoutScorer", "split", "whole_training_set"]


class HoldoutScorer:
    """Scores fitted estimators by asking a reusable holdout.

    The holdout must have been made from (X, y) pairs: `ReusableHoldout((X, y), (X_h, y_h), …)`.
    The rows that scikit-learn passes are ignored: every score is a question to the holdout, and
    costs a round if the estimator overfits its training set.

    Args:
        holdout: the holdout.
        metric: "accuracy" (the default), "neg_brier_score", "neg_mean_absolute_error" or
            "neg_mean_squared_error" with `limits`, or a function (true, predicted) → one value in
            [0, 1] per row, larger being better.
        limits: the public ends (low, high) of the target, for the two errors.

    Raises:
        UnsupportedError: for F1, AUC, R² and others that are no means over rows.

    >>> import numpy as np
    >>> from sklearn.dummy import DummyClassifier
    >>> rng = np.random.default_rng(0)
    >>> X, y = rng.normal(size=(2000, 2)), rng.integers(0, 2, 2000)
    >>> h = ReusableHoldout((X[:1000], y[:1000]), (X[1000:], y[1000:]),
    ...                     threshold=0.1, noise=0.01, budget=3)
    >>> scorer = HoldoutScorer(h)
    >>> round(scorer(DummyClassifier().fit(X[:1000], y[:1000])), 1)
    0.5
    """

    def __init__(
        self,
        holdout: ReusableHoldout,
        metric: Any = "accuracy",
        limits: tuple[Any, Any] | None = None,
    ) -> None:
        if not isinstance(holdout, ReusableHoldout):
            raise InvalidInputError(
                f"HoldoutScorer takes a ReusableHoldout, not {type(holdout).__name__}."
            )
        self.holdout = holdout
        self.metric = read_metric(metric, limits)
        self.last: Answer | None = None

    def __call__(self, estimator: Any, X: Any = None, y: Any = None) -> float:  # noqa: N803
        """Return the estimator's score, larger being better; X and y are ignored."""
        name = f"{self.metric.name} of {type(estimator).__name__}"
        self.last = self.holdout.ask(_question(self.metric, estimator), label=name)
        return self.metric.scale * self.last.value

    def __repr__(self) -> str:
        return f"HoldoutScorer({self.holdout!r}, metric={self.metric.name!r})"

    def __copy__(self) -> HoldoutScorer:
        return self

    def __deepcopy__(self, memo: Any) -> HoldoutScorer:
        return self

    def __reduce__(self) -> NoReturn:
        raise UnsupportedError(
            "A holdout cannot be sent to another process, where it would answer with a budget of "
            "its own; use n_jobs=1."
        )


def _array(data: Any, name: str) -> NDArray[Any]:
    rows: NDArray[Any] = read_rows(list(data) if isinstance(data, tuple) else data, name)
    return rows


def _question(metric: Metric, estimator: Any) -> Any:
    def values(rows: Any) -> NDArray[Any]:
        features, target = _pair(rows)
        said = np.asarray(getattr(estimator, metric.predicts)(features))
        if metric.predicts == "predict_proba":
            said = said[:, 1]
        return metric.values(target, said)

    return values


def _pair(rows: Any) -> tuple[NDArray[Any], NDArray[Any]]:
    if not isinstance(rows, tuple) or len(rows) != 2:
        raise InvalidInputError(
            "A scorer needs features and targets: make the holdout from pairs, "
            "ReusableHoldout((X, y), (X_holdout, y_holdout), ...)."
        )
    return rows


def whole_training_set(rows: int) -> list[tuple[NDArray[Any], NDArray[Any]]]:
    """Return the one split for `cv=` that fits on all training rows, once per candidate.

    The holdout replaces cross-validation: `GridSearchCV(model, grid, scoring=HoldoutScorer(h),
    cv=whole_training_set(len(X)))`.

    >>> [(len(fit), len(score)) for fit, score in whole_training_set(5)]
    [(5, 1)]
    """
    if integer(rows, "rows", 1) > _MOST_ROWS:
        raise InvalidInputError(f"rows is {shortened(rows)}; it can be at most {_MOST_ROWS:,}.")
    return [(np.arange(integer(rows, "rows", 1)), np.arange(1))]


def split(
    X: Any,  # noqa: N803
    y: Any,
    groups: Any = None,
    holdout_share: Any = 0.5,
    seed: int = 0,
) -> tuple[tuple[Any, Any], tuple[Any, Any], Clusters | None]:
    """Split rows into ((X, y), (X_h, y_h), beliefs), whole groups on one side as in GroupKFold.

    The belief is `Clusters` of the holdout's groups, or None without groups. `seed` decides who
    is in the holdout, which must not depend on the data; it is no secret.

    Raises:
        InvalidInputError: if one side would be empty, or lengths differ.

    >>> import numpy as np
    >>> train, holdout, beliefs = split(np.eye(6), np.arange(6), groups=list("aabbcc"), seed=1)
    >>> len(holdout[1]), beliefs
    (4, Clusters(4 rows in 2 clusters; largest=2))
    """
    features, target = _array(X, "X"), _array(y, "y")
    names = np.arange(len(features)) if groups is None else _array(groups, "groups")
    if not len(features) == len(target) == len(names):
        raise InvalidInputError(
            f"X has {len(features)} rows, y {len(target)} and groups {len(names)}; they must agree."
        )
    share = to_fraction(holdout_share, "holdout_share")
    if not 0 < share < 1:
        raise InvalidInputError(
            f"holdout_share must lie between 0 and 1, not {shortened(holdout_share)}."
        )
    _, codes, sizes = np.unique(names, return_inverse=True, return_counts=True)
    order = np.random.default_rng(integer(seed, "seed", 0)).permutation(len(sizes))
    chosen = order[: int(np.searchsorted(np.cumsum(sizes[order]), float(share) * len(names))) + 1]
    held = np.isin(codes, chosen)
    if held.all() or not held.any():
        raise InvalidInputError(
            f"{len(sizes)} groups cannot be split so that both sides have some; give another "
            "holdout_share or seed."
        )
    beliefs = None if groups is None else Clusters(names[held].tolist())
    return (features[~held], target[~held]), (features[held], target[held]), beliefs
