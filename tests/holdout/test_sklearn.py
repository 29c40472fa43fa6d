"""scikit-learn: searches, pipelines and groups, with one budget behind them."""

from __future__ import annotations

import pickle

import numpy as np
import pandas as pd
import polars
import pytest
from joblib import parallel_config
from scipy import sparse
from sklearn.base import clone
from sklearn.dummy import DummyClassifier
from sklearn.experimental import enable_halving_search_cv  # noqa: F401
from sklearn.linear_model import LinearRegression, LogisticRegression, SGDClassifier
from sklearn.metrics import f1_score, roc_auc_score
from sklearn.model_selection import GridSearchCV, HalvingGridSearchCV, cross_val_score
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import FunctionTransformer, StandardScaler
from sklearn.tree import DecisionTreeClassifier

import quiltwork as qw
from quiltwork.errors import QuiltworkWarning
from quiltwork.holdout.metrics import parse_metric

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
    assert scorer(model, *TRAIN) == scorer.answers[0].value == pytest.approx(model.score(*TRAIN))
    assert "accuracy" in repr(scorer)
    found = cross_val_score(
        DummyClassifier(), *TRAIN, scoring=scorer, cv=qw.sklearn.whole_training_set(600)
    )
    assert found.shape == (1,)


def test_errors_are_clipped_to_public_limits_and_scaled_back():
    true, said = np.array([0.0, 10.0, 50.0]), np.array([4.0, 10.0, -7.0])
    absolute = parse_metric("neg_mean_absolute_error", (0, 10))
    assert absolute.value([absolute.values(true, said).mean()]) == pytest.approx(-(4 + 0 + 10) / 3)
    squared = parse_metric("neg_mean_squared_error", (0, 10))
    assert squared.value([squared.values(true, said).mean()]) == pytest.approx(-(16 + 100) / 3)


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
    elsewhere = pickle.loads(pickle.dumps(scorer))  # noqa: S301
    with pytest.raises(qw.sklearn.SearchStopped, match="n_jobs=1"):
        elsewhere(DummyClassifier().fit(*TRAIN))
    search = GridSearchCV(DummyClassifier(), {}, scoring=scorer)
    assert clone(search).scoring is scorer


@pytest.mark.parametrize("search", [GridSearchCV, HalvingGridSearchCV])
def test_a_spent_budget_ends_a_search_and_never_becomes_a_score(search):
    """scikit-learn makes NaN of every Exception, and of candidates that are all NaN takes one."""
    h = holdout(queries=1)
    found = search(
        DecisionTreeClassifier(),
        {"max_depth": [1, 2, 3]},
        scoring=qw.sklearn.HoldoutScorer(h, parts=search is HalvingGridSearchCV),
        cv=qw.sklearn.whole_training_set(600),
    )
    with pytest.raises(qw.sklearn.SearchStopped, match="its promise covers no more"):
        found.fit(*TRAIN)
    assert not hasattr(found, "best_params_")
    with pytest.raises(qw.sklearn.SearchStopped):  # in the middle of three means
        qw.sklearn.HoldoutScorer(holdout(queries=2), "f1")(DummyClassifier().fit(*TRAIN))


@pytest.mark.parametrize("jobs", [2, -1])
def test_a_search_in_several_processes_is_stopped_by_a_sentence(jobs):
    h = holdout()
    scorer, whole = qw.sklearn.HoldoutScorer(h), qw.sklearn.whole_training_set(600)
    search = GridSearchCV(
        DecisionTreeClassifier(), {"max_depth": [1, 2, 3]}, scoring=scorer, cv=whole, n_jobs=jobs
    )
    with pytest.raises(qw.sklearn.SearchStopped, match="n_jobs=1, or threads"):
        search.fit(*TRAIN)
    with parallel_config("threading"):
        search.fit(*TRAIN)
    assert h.asked == 3


@pytest.mark.parametrize("rows", [TRAIN, (pd.DataFrame(TRAIN[0]), TRAIN[1])])
def test_a_search_that_forgot_the_whole_training_set_is_stopped_before_it_asks(rows):
    h = holdout()
    scorer = qw.sklearn.HoldoutScorer(h)
    for forgot in (
        lambda: GridSearchCV(DummyClassifier(), {}, scoring=scorer).fit(*rows),
        lambda: cross_val_score(DummyClassifier(), *rows, scoring=scorer, cv=3),
        lambda: HalvingGridSearchCV(
            DecisionTreeClassifier(),
            {"max_depth": [1, 2, 3, 4]},
            scoring=scorer,
            cv=qw.sklearn.whole_training_set(600),
        ).fit(*rows),
    ):
        with pytest.raises(qw.sklearn.SearchStopped, match=r"whole_training_set\(600\)"):
            forgot()
    assert (h.asked, h.remaining) == (0, 8)


def test_a_search_that_catches_what_fails_never_takes_silence_for_a_score():
    """As `study.optimize(objective, catch=(Exception,))` does."""
    h = holdout(queries=3)
    accuracy = qw.guard(lambda model, rows: model.predict(rows[0]) == rows[1], holdout=h)
    scored, failed = [], 0
    for depth in range(1, 9):
        try:
            scored.append(accuracy(DecisionTreeClassifier(max_depth=depth).fit(*TRAIN)))
        except Exception:
            failed += 1
    assert (len(scored), failed) == (3, 5)


def test_features_chosen_on_training_rows_are_praised_by_up_to_the_threshold_and_it_is_said():
    """Nothing predicts these labels. A difference below the threshold is told as it is on the
    training rows, by design; the same rows asked once as a plain holdout praise nothing."""
    rng, n = np.random.default_rng(0), 10_000
    rows, signs = rng.normal(size=(2 * n, 100)), rng.choice([-1, 1], 2 * n)
    train, held = (rows[:n], signs[:n]), (rows[n:], signs[n:])
    plan = qw.plan_holdout(queries=101, overfits=5, samples=n)
    with pytest.warns(QuiltworkWarning, match=r"Too coarse to choose models by.*a Ladder.*plain"):
        h = qw.ReusableHoldout.from_plan(plan, train, held)
    found = h.ask_many(lambda part: (part[0] > 0) == (part[1] > 0)[:, None])
    weights = np.array([one.value - 0.5 for one in found])

    def right(part):
        return np.sign(part[0] @ weights) == part[1]

    told = h.ask(right)
    once = right(held).mean()
    assert not told.overfit
    assert 0.03 < told.value - once <= plan.threshold
    assert abs(once - 0.5) < 0.01
    assert f"overestimated by up to {plan.threshold:.3g}" in plan.explain()


def test_scores_of_several_means_come_with_the_interval_of_their_answers():
    model = LogisticRegression().fit(*TRAIN)
    scorer = qw.sklearn.HoldoutScorer(holdout(threshold=0.2), "f1")
    with pytest.raises(qw.InvalidInputError, match="Nothing has been scored"):
        scorer.interval(0.01)
    score = scorer(model)
    assert score == pytest.approx(f1_score(TRAIN[1], model.predict(TRAIN[0])), abs=1e-6)
    low, high = scorer.interval(0.01)
    assert low < score < high
    assert len(scorer.answers) == 3


def test_auc_is_asked_of_pairs_of_rows():
    groups = np.arange(600) // 2
    train, _ = qw.sklearn.row_pairs(*TRAIN)
    held, beliefs = qw.sklearn.row_pairs(*HELD, groups=groups)
    assert (len(held[1]), beliefs.largest) == (300, 2)
    model = LogisticRegression().fit(*TRAIN)
    pairs = qw.ReusableHoldout(train, held, beliefs, threshold=0.2, noise=0.001, budget=4)
    found = qw.sklearn.HoldoutScorer(pairs, "roc_auc")(model)
    peer = roc_auc_score(TRAIN[1], model.predict_proba(TRAIN[0])[:, 1])
    assert found == pytest.approx(peer, abs=0.06)
    with pytest.raises(qw.InvalidInputError, match="row_pairs"):
        qw.sklearn.HoldoutScorer(holdout(), "roc_auc")(model)


def as_frame(kind, rows):
    names = [f"x{i}" for i in range(5)]
    if kind == "pandas":
        return pd.DataFrame(rows, columns=names)
    return polars.DataFrame(rows, schema=names) if kind == "polars" else sparse.csr_array(rows)


@pytest.mark.parametrize("kind", ["pandas", "polars", "sparse"])
def test_frames_reach_models_as_frames_through_pipelines(kind):
    pick = FunctionTransformer(lambda rows: rows[["x0", "x1"]]) if kind != "sparse" else None
    steps = (pick or "passthrough", StandardScaler(with_mean=False), LogisticRegression())
    model = make_pipeline(*steps)
    train = (as_frame(kind, X[:600]), Y[:600].reshape(-1, 1))
    held = (as_frame(kind, X[600:]), Y[600:].reshape(-1, 1))
    h = qw.ReusableHoldout(train, held, threshold=0.2, noise=0.001, budget=2)
    model.fit(train[0], Y[:600])
    score = qw.sklearn.HoldoutScorer(h)(model)
    assert score == pytest.approx(model.score(train[0], Y[:600]))
    side = qw.sklearn.split(*train, seed=1)[0][0]
    assert type(side) is type(train[0])


def test_the_noise_may_be_given_as_that_of_an_answer():
    h = holdout(noise=None, answer_sd=0.02)
    assert "noise of standard deviation 0.02 " in h.explain()
    answer = h.ask(lambda rows: rows[0][:, 0] < 9)
    assert answer.noise_sd == 0
    assert h.epsilon == pytest.approx(9 * 8 / (4 * 0.02 / (4 * 2**0.5) * 600))
    for wrong in ({"noise": None}, {"answer_sd": 0.02}):
        with pytest.raises(qw.InvalidInputError, match="Give either noise"):
            holdout(**wrong)


def test_early_stopping_and_a_plain_objective_take_a_guarded_score():
    """What Optuna calls `study.optimize(objective)` is a loop over a function of a trial."""
    h = holdout(threshold=0.05, budget=40)
    accuracy = qw.guard(lambda model, rows: model.predict(rows[0]) == rows[1], holdout=h)
    model, best, worse, rounds = SGDClassifier(random_state=0), 0.0, 0, 0
    while worse < 3 and rounds < 30:  # early stopping by the holdout
        model.partial_fit(*TRAIN, classes=[0, 1])
        score, rounds = accuracy(model), rounds + 1
        best, worse = (score, 0) if score > best else (best, worse + 1)
    assert 0.6 < best < 0.85
    assert rounds < 30

    def objective(trial):
        return accuracy(DecisionTreeClassifier(max_depth=trial, random_state=0).fit(*TRAIN))

    assert max([1, 3, 30], key=objective) != 30


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


@pytest.mark.parametrize("metric", [["f1"], None, 5, {}])
def test_metrics_that_are_no_names_are_refused(metric):
    with pytest.raises(qw.InvalidInputError, match="metric must be"):
        parse_metric(metric)


@pytest.mark.parametrize("seed", [-1, "x", 1.5, None])
def test_seeds_that_are_none_are_refused(seed):
    with pytest.raises(qw.InvalidInputError, match="seed"):
        qw.sklearn.split(np.eye(6), np.arange(6), seed=seed)
