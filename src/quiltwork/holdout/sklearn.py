"""scikit-learn: score models with a holdout that can be reused.

`HoldoutScorer` goes where scikit-learn takes `scoring=`, `split` makes the two sets with whole
groups on one side.
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
from quiltwork.holdout.arrays import read_rows, take
from quiltwork.holdout.metrics import Metric, pair_rows, read_metric
from quiltwork.holdout.reusable import ReusableHoldout
from quiltwork.holdout.transcript import Answer
from quiltwork.results import Interval

_MOST_ROWS = 10**9

__all__ = ["HoldoutScorer", "SearchStopped", "row_pairs", "split", "whole_training_set"]


class SearchStopped(BaseException):
    """A holdout is spent in the middle of a search, which must not go on.

    scikit-learn turns every `Exception` of a scorer into NaN and chooses among what is left; this
    is none, so it ends the search. Its text is that of the `BudgetExceeded` behind it.
    """


class HoldoutScorer:
    """Scores fitted estimators by asking a reusable holdout.

    The holdout must have been made from (X, y) pairs: `ReusableHoldout((X, y), (X_h, y_h), …)`.
    The rows that scikit-learn passes are ignored: every score is a question to the holdout for
    each mean that the metric is made of, and each costs a round if the estimator overfits its
    training set.

    Args:
        holdout: the holdout.
        metric: one of "accuracy" (the default), "neg_brier_score", "neg_log_loss", "f1",
            "precision", "recall", "balanced_accuracy", "roc_auc" (of a holdout made by
            `row_pairs`); with `limits` "neg_mean_absolute_error", "neg_mean_squared_error",
            "neg_root_mean_squared_error" and "r2"; or a function (true, predicted) → one value in
            [0, 1] per row, larger being better.
        limits: the public ends (low, high) of the target, for errors.
        positive: the label of the positive class.
        variance: of the target on the training rows, for R².
        parts: whether models may be fitted on parts of the training rows, as in halving searches;
            otherwise a search that forgets `cv=whole_training_set(…)` is stopped at once.

    Raises:
        UnsupportedError: for what is no function of a few means over rows.

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
        self.metric = read_metric(metric, limits, positive, variance)
        self.parts = flag(parts, "parts")
        self.answers: tuple[Answer, ...] = ()

    def __call__(self, estimator: Any, X: Any = None, y: Any = None) -> float:  # noqa: N803
        """Return the estimator's score, larger being better; X and y are not scored.

        Raises:
            SearchStopped: once the budget is spent, or ends among the means of this score; and for
                other rows than all training rows, which are those of a fold.
        """
        self._check_rows(X)
        name = f"{self.metric.name} of {type(estimator).__name__}"
        try:
            found = self.holdout.ask_many(_question(self.metric, estimator), label=name)
            if len(found) < len(self.metric.signs):
                raise BudgetExceeded(f"The budget ended among the means of {self.metric.name}.")
        except BudgetExceeded as spent:
            raise SearchStopped(str(spent)) from spent
        self.answers = tuple(found)
        return self.metric.value([one.value for one in found])

    def _check_rows(self, rows: Any) -> None:
        """Stop a search that would ask the holdout once for every fold."""
        expected = self.holdout.transcript.rounds.train_rows
        given = expected if rows is None or self.parts else np.shape(rows)[0]
        if given != expected:
            raise SearchStopped(
                f"scikit-learn passed {given:,} of {expected:,} training rows, a fold of its "
                "cross-validation: the holdout would be asked for every fold. Give the search "
                f"cv=whole_training_set({expected}), or HoldoutScorer parts=True if it fits on "
                "parts of the rows on purpose, as halving searches do. Nothing was asked."
            )

    def interval(self, tolerance: Any) -> Interval:
        """Return where the last score's truth is if every answer was within `tolerance` of its own.

        Theorem: docs/theory/metrics.md
        """
        if not self.answers:
            raise InvalidInputError("Nothing was scored yet.")
        width = float(positive_fraction(tolerance, "tolerance"))
        return self.metric.interval([one.value for one in self.answers], width)

    def __repr__(self) -> str:
        return f"HoldoutScorer({self.holdout!r}, metric={self.metric.name!r})"

    def __copy__(self) -> HoldoutScorer:
        return self

    def __deepcopy__(self, memo: Any) -> HoldoutScorer:
        return self

    def __reduce__(self) -> tuple[type[ScorerElsewhere], tuple[()]]:
        return ScorerElsewhere, ()


class ScorerElsewhere:
    """What becomes of a scorer in another process: it stops the search with a sentence.

    joblib would say of an error while it packs a scorer that the task cannot be pickled, and
    scikit-learn makes NaN of every `Exception` where it is called.
    """

    def __call__(self, *_: Any) -> NoReturn:
        """Stop the search."""
        raise SearchStopped(
            "A holdout cannot be sent to another process, where it would answer with a budget of "
            "its own; use n_jobs=1, or threads: joblib.parallel_config('threading')."
        )


def _question(metric: Metric, estimator: Any) -> Any:
    def predicted(features: Any) -> NDArray[Any]:
        said = np.asarray(getattr(estimator, metric.predicts)(features))
        return said[:, 1] if metric.predicts == "predict_proba" else _flat(said)

    def values(rows: Any) -> NDArray[Any]:
        parts = _parts(rows, 4 if metric.pairs else 2)
        said = [predicted(features) for features in parts[::2]]
        true = [_flat(np.asarray(target)) for target in parts[1::2]]
        if not metric.pairs:
            return metric.values(true[0], said[0])
        return metric.values(np.stack(true, axis=1), np.stack(said, axis=1))

    return values


def _flat(column: NDArray[Any]) -> NDArray[Any]:
    """Return a column as scikit-learn's metrics read it, also if its shape is (n, 1)."""
    return column[:, 0] if column.ndim == 2 and column.shape[1] == 1 else column


def _parts(rows: Any, count: int) -> tuple[Any, ...]:
    if not isinstance(rows, tuple) or len(rows) != count:
        made = "row_pairs(X, y)" if count == 4 else "pairs such as (X, y)"
        raise InvalidInputError(
            f"A scorer needs features and targets: make train and holdout from {made}."
        )
    return rows


def _names(groups: Any) -> NDArray[Any]:
    found = read_rows(list(groups) if isinstance(groups, tuple) else groups, "groups")
    if found.ndim != 1:
        raise InvalidInputError("groups must have one name for each row.")
    return np.asarray(found)


def row_pairs(
    X: Any,  # noqa: N803
    y: Any,
    groups: Any = None,
) -> tuple[tuple[Any, Any, Any, Any], Clusters | None]:
    """Return (X, y, other X, other y) of disjoint pairs of rows, and the belief about pairs.

    AUC is a question about such pairs: `ReusableHoldout(row_pairs(X, y)[0], pairs, beliefs, …)`.
    Rows of one group depend on each other; a pair is of two groups, which must be of one size. The
    pairs are random, new ones in each call: keep them to resume a holdout of theirs.

    Theorem: docs/theory/metrics.md
    """
    features, target = read_rows((X, y), "rows")
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
    features, target = read_rows(X, "X"), read_rows(y, "y")
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
            f"{len(sizes)} groups cannot be split so that both sides have some; give another "
            "holdout_share or seed."
        )
    beliefs = None if groups is None else Clusters(names[held].tolist())
    sides = [np.flatnonzero(~held), np.flatnonzero(held)]
    train, kept = ((take(features, side), take(target, side)) for side in sides)
    return train, kept, beliefs
