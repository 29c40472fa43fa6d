"""scikit-learn: searches, pipelines and groups, with one budget behind them."""

from __future__ import annotations

import pickle

import numpy as np
import pytest
from sklearn.base import clone
from sklearn.dummy import DummyClassifier
from sklearn.linear_model import LinearRegression, LogisticRegression
from sklearn.model_selection import GridSearchCV, cross_val_score
from sklearn.tree import DecisionTreeClassifier

import quiltwork as qw
from quiltwork.holdout.questions import NAMES, read_metric

RNG = np.random.default_rng(0)
X = RNG.normal(size=(1200, 5))
Y = (X[:, 0] + RNG.normal(size=1200) > 0).astype(int)
TRAIN, HELD = (X[:600], Y[:600]), (X[600:], Y[600:])


def holdout(**options):
    return qw.ReusableHoldout(
        TRAIN, HELD, **{"threshold": 0.1, "noise": 0.0005, "budget": 8, **options}
    )


def test_a_search_is_scored_by_the_holdout_and_overfitting_is_seen():
    h = holdout()
    search = GridSearchCV(
        DecisionTreeClassifier(random_state=0),
        {"max_depth": [2, None]},
        scoring=qw.sklearn.HoldoutScorer(h),
        cv=qw.sklearn.whole_training_set(600),
        refit=False,
    )
    search.fit(*TRAIN)
    shallow, deep = search.cv_results_["mean_test_score"]
    truth = DecisionTreeClassifier(random_state=0).fit(*TRAIN).score(*HELD)
    assert search.best_params_ == {"max_depth": 2}
    assert abs(deep - truth) < 4 * 0.0005 * 25
    assert 0.6 < shallow < 0.9
    assert h.asked == 2
    assert h.remaining == 7


def test_a_scorer_is_a_plain_callable_and_remembers_the_last_answer():
    scorer = qw.sklearn.HoldoutScorer(holdout())
    model = LogisticRegression().fit(*TRAIN)
    assert scorer(model, *TRAIN) == scorer.last.value == pytest.approx(model.score(*TRAIN))
    assert "accuracy" in repr(scorer)
    found = cross_val_score(
        DummyClassifier(), *TRAIN, scoring=scorer, cv=qw.sklearn.whole_training_set(600)
    )
    assert found.shape == (1,)


@pytest.mark.parametrize("metric", ["f1", "roc_auc", "r2", "neg_log_loss", "balanced_accuracy"])
def test_metrics_that_are_no_means_over_rows_are_refused_with_the_reason(metric):
    with pytest.raises(qw.UnsupportedError, match=r"refused: .*(no mean over rows|not bounded)"):
        qw.sklearn.HoldoutScorer(holdout(), metric=metric)


def test_unknown_metrics_and_missing_limits_are_named():
    with pytest.raises(qw.InvalidInputError, match="No metric"):
        read_metric("cosiness")
    with pytest.raises(qw.InvalidInputError, match="limits"):
        read_metric("neg_mean_absolute_error")
    with pytest.raises(qw.InvalidInputError, match="low < high"):
        read_metric("neg_mean_squared_error", (5, 5))
    assert "accuracy" in NAMES


def test_errors_are_clipped_to_public_limits_and_scaled_back():
    true, said = np.array([0.0, 10.0, 50.0]), np.array([4.0, 10.0, -7.0])
    absolute = read_metric("neg_mean_absolute_error", (0, 10))
    assert absolute.scale * absolute.values(true, said).mean() == pytest.approx(-(4 + 0 + 10) / 3)
    squared = read_metric("neg_mean_squared_error", (0, 10))
    assert squared.scale * squared.values(true, said).mean() == pytest.approx(-(16 + 100) / 3)


def test_regression_and_probabilities_can_be_scored():
    target = X[:, 0] + 0.1 * RNG.normal(size=1200)
    h = qw.ReusableHoldout(
        (X[:600], target[:600]), (X[600:], target[600:]), threshold=0.1, noise=0.0005, budget=2
    )
    scorer = qw.sklearn.HoldoutScorer(h, "neg_mean_absolute_error", limits=(-4, 4))
    assert -0.3 < scorer(LinearRegression().fit(X[:600], target[:600])) < 0
    brier = qw.sklearn.HoldoutScorer(holdout(), "neg_brier_score")
    assert -0.3 < brier(LogisticRegression().fit(*TRAIN)) < -0.05


def test_a_metric_of_ones_own_is_a_function_of_rows():
    def half_credit(true, said):
        return np.where(true == said, 1.0, 0.5)

    scorer = qw.sklearn.HoldoutScorer(holdout(), half_credit)
    assert 0.8 < scorer(LogisticRegression().fit(*TRAIN)) < 0.9


def test_other_processes_are_refused_and_clones_share_the_budget():
    scorer = qw.sklearn.HoldoutScorer(holdout())
    with pytest.raises(qw.UnsupportedError, match="n_jobs=1"):
        pickle.dumps(scorer)
    search = GridSearchCV(DummyClassifier(), {}, scoring=scorer)
    assert clone(search).scoring is scorer


def test_a_search_warns_of_every_model_that_a_spent_holdout_did_not_score():
    h = qw.ReusableHoldout(TRAIN, HELD, threshold=0.2, noise=0.001, budget=1, queries=1)
    grid = {"max_depth": [1, 2]}
    options = {"scoring": qw.sklearn.HoldoutScorer(h), "cv": qw.sklearn.whole_training_set(600)}
    search = GridSearchCV(DecisionTreeClassifier(), grid, **options)
    with (
        pytest.warns(UserWarning, match="its promise covers no more"),
        pytest.warns(UserWarning, match="non-finite"),
    ):
        search.fit(*TRAIN)
    assert np.isnan(search.cv_results_["mean_test_score"]).tolist() == [False, True]
    with pytest.raises(qw.BudgetExceeded):
        GridSearchCV(DecisionTreeClassifier(), grid, error_score="raise", **options).fit(*TRAIN)


def test_groups_stay_whole_and_become_clusters():
    groups = np.repeat(np.arange(240), 5)
    train, held, beliefs = qw.sklearn.split(X, Y, groups=groups, holdout_share=0.4, seed=3)
    assert len(held[1]) == pytest.approx(480, abs=5)
    assert beliefs.largest == 5
    assert beliefs.length == len(held[1])
    inside = {tuple(row) for row in held[0]}
    for group in range(240):
        members = [tuple(row) in inside for row in X[groups == group]]
        assert len(set(members)) == 1
    assert len(train[1]) + len(held[1]) == 1200
    plain = qw.sklearn.split(X, Y)
    assert plain[2] is None
    qw.ReusableHoldout(train, held, beliefs, threshold=0.1, noise=0.01, budget=1)


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({"groups": [1] * 1200}, "cannot be split"),
        ({"groups": [1, 2]}, "must agree"),
        ({"holdout_share": 1}, "between 0 and 1"),
    ],
)
def test_splits_that_make_no_sense_are_refused(change, words):
    with pytest.raises(qw.InvalidInputError, match=words):
        qw.sklearn.split(X, Y, **change)


def test_a_scorer_needs_pairs_and_a_holdout():
    with pytest.raises(qw.InvalidInputError, match="takes a ReusableHoldout"):
        qw.sklearn.HoldoutScorer("h")
    flat = qw.ReusableHoldout(X[:600], X[600:], threshold=0.1, noise=0.01, budget=1)
    with pytest.raises(qw.InvalidInputError, match="features and targets"):
        qw.sklearn.HoldoutScorer(flat)(DummyClassifier().fit(*TRAIN))


@pytest.mark.parametrize(
    "name", ["f1_weighted", "log_loss", "neg_log_loss", "explained_variance", "roc_auc_ovr", "r2"]
)
def test_refused_metrics_come_with_their_reason(name):
    with pytest.raises(qw.UnsupportedError, match=f"{name} is refused: .*no useful bound"):
        read_metric(name)


@pytest.mark.parametrize("metric", [["f1"], None, 5, {}])
def test_metrics_that_are_no_names_are_refused(metric):
    with pytest.raises(qw.InvalidInputError, match="metric must be"):
        read_metric(metric)


@pytest.mark.parametrize("seed", [-1, "x", 1.5, None])
def test_seeds_that_are_none_are_refused(seed):
    with pytest.raises(qw.InvalidInputError, match="seed"):
        qw.sklearn.split(np.eye(6), np.arange(6), seed=seed)
