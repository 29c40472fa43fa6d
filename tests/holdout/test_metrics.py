"""Metrics of a few means: their values beside scikit-learn's, their widths beside enumeration."""

from __future__ import annotations

import itertools
import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from sklearn import metrics as peers

import quiltwork as qw
from quiltwork.holdout.metrics import (
    CLIP,
    NAMES,
    Scoring,
    pair_rows,
    parse_metric,
    scoring_from_body,
)

SETTINGS = {"limits": (0, 10), "variance": 4, "floor": 0.3}
SHARES = st.floats(0, 1)
KEY = "5a" * 32


def metric(name, floor=None):
    return parse_metric(name, SETTINGS["limits"], 1, SETTINGS["variance"], floor)


@pytest.fixture(scope="module")
def world():
    rng = np.random.default_rng(3)
    true = rng.integers(0, 2, 400)
    chance = np.clip(0.3 + 0.4 * true + rng.normal(0, 0.3, 400), 0, 1)
    target = rng.uniform(0, 10, 400)
    return true, chance, target, np.clip(target + rng.normal(0, 2, 400), 0, 10)


@pytest.mark.parametrize(
    ("name", "peer"),
    [
        ("accuracy", lambda y, p, t, s: peers.accuracy_score(y, p > 0.5)),
        ("f1", lambda y, p, t, s: peers.f1_score(y, p > 0.5)),
        ("precision", lambda y, p, t, s: peers.precision_score(y, p > 0.5)),
        ("recall", lambda y, p, t, s: peers.recall_score(y, p > 0.5)),
        ("balanced_accuracy", lambda y, p, t, s: peers.balanced_accuracy_score(y, p > 0.5)),
        ("neg_brier_score", lambda y, p, t, s: -peers.brier_score_loss(y, p)),
        (
            "neg_log_loss",
            lambda y, p, t, s: -peers.log_loss(y, np.clip(p, CLIP, 1 - CLIP)),
        ),
        ("neg_mean_absolute_error", lambda y, p, t, s: -peers.mean_absolute_error(t, s)),
        ("neg_mean_squared_error", lambda y, p, t, s: -peers.mean_squared_error(t, s)),
        (
            "neg_root_mean_squared_error",
            lambda y, p, t, s: -math.sqrt(peers.mean_squared_error(t, s)),
        ),
        ("r2", lambda y, p, t, s: max(0.0, 1 - peers.mean_squared_error(t, s) / 4)),
    ],
)
def test_values_are_those_of_scikit_learn(name, peer, world):
    true, chance, target, said = world
    ours = metric(name)
    given_ = (true, (chance > 0.5).astype(int)) if ours.labels else (true, chance)
    given_ = given_ if ours.labels or ours.predicts == "predict_proba" else (target, said)
    rows = np.asarray(ours.values(*given_), dtype=float).reshape(400, -1)
    assert ((rows >= 0) & (rows <= 1)).all()
    assert ours.value(rows.mean(axis=0)) == pytest.approx(peer(*world), abs=1e-12)


def test_auc_over_all_pairs_is_that_of_scikit_learn_and_pairs_are_disjoint(world):
    true, chance = world[0], np.round(world[1], 1)  # with ties
    every = np.array(list(itertools.combinations(range(400), 2)))
    auc = metric("roc_auc")
    rows = auc.values(true[every], chance[every])
    assert auc.value(rows.mean(axis=0)) == pytest.approx(peers.roc_auc_score(true, chance))
    pairs, couples = pair_rows(None, 401, KEY)
    assert (len(np.unique(pairs)), len(set(couples))) == (400, 200)


@given(st.integers(1, 4), st.integers(1, 9), st.randoms())
def test_pairs_are_of_two_groups_and_couples_share_no_group(size, count, random):
    groups = [name for name in range(count) for _ in range(size)]
    random.shuffle(groups)
    if count == 1:
        with pytest.raises(qw.InvalidInputError, match="two groups"):
            pair_rows(groups, len(groups), KEY)
        return
    pairs, couples = pair_rows(groups, len(groups), KEY)
    names = np.array(groups)
    assert len(np.unique(pairs)) == pairs.size == count // 2 * 2 * size
    assert (names[pairs[:, 0]] != names[pairs[:, 1]]).all()
    owner: dict[int, int] = {}
    for pair, couple in zip(names[pairs].tolist(), couples.tolist(), strict=True):
        assert all(owner.setdefault(name, couple) == couple for name in pair)


def test_every_pair_of_groups_is_as_likely_so_names_and_order_tell_nothing():
    """Six groups of two: each couple of groups has probability 1/5, each pair of rows half that."""
    groups, seen = np.arange(12) // 2, np.zeros((12, 12))
    for key in range(3000):
        pairs, _ = pair_rows(groups, 12, f"{key:064x}")
        seen[pairs[:, 0], pairs[:, 1]] += 1
    expected = np.where(groups[:, None] == groups, 0, 3000 / 20)  # of each order of a pair
    assert np.abs(seen - expected).max() < 6 * math.sqrt(3000 / 20)
    with pytest.raises(qw.InvalidInputError, match="groups of one size, and these have 1 to 2"):
        pair_rows([1, 1, 2], 3, KEY)


@pytest.mark.parametrize("name", NAMES)
@given(st.lists(SHARES, min_size=4, max_size=4), st.floats(0.001, 0.2), st.randoms())
def test_no_point_of_the_box_leaves_the_interval_and_none_is_beyond_the_spread(
    name, shares, width, random
):
    ours = metric(name, SETTINGS["floor"])
    count = len(ours.signs)
    whole = sum(shares[:count]) or 1.0
    means = [one / max(whole, 1.0) for one in shares[:count]]  # classes of rows add up to 1
    low, high = ours.interval(means, width)
    centre = ours.score(means)
    for _ in range(8):
        near = [mean + random.uniform(-width, width) for mean in means]
        assert low - 1e-9 <= ours.value(near) <= high + 1e-9
        assert abs(ours.score(near) - centre) <= ours.spread(width) + 1e-9


@pytest.mark.parametrize("name", ["f1", "neg_root_mean_squared_error", "r2", "roc_auc"])
def test_the_spread_is_reached_so_a_smaller_one_would_be_wrong(name):
    ours, width = metric(name, SETTINGS["floor"]), 0.01
    zero = [0.0] * len(ours.signs)
    edge = [width if sign > 0 else 0.0 for sign in ours.signs]
    start, moved = (zero, [width]) if len(zero) == 1 else (zero, edge)
    assert abs(ours.score(moved) - ours.score(start)) > 0.95 * ours.spread(width)


def test_the_interval_of_f1_covers_the_truth_as_often_as_it_says():
    """Rows of known classes: every count vector with its probability, exactly."""
    ours, n, chance = metric("f1"), 24, (0.3, 0.15, 0.2)
    truth, width = ours.score(chance), 0.15
    missed = wide = 0.0
    for hit, false, lost in itertools.product(range(n + 1), repeat=3):
        rest = n - hit - false - lost
        if rest < 0:
            continue
        ways = math.factorial(n) / math.prod(map(math.factorial, (hit, false, lost, rest)))
        weight = ways * chance[0] ** hit * chance[1] ** false * chance[2] ** lost * 0.35**rest
        means = [hit / n, false / n, lost / n]
        low, high = ours.interval(means, width)
        missed += weight * (not low <= truth <= high)
        wide += weight * any(abs(mean - p) > width for mean, p in zip(means, chance, strict=True))
    assert 0 < wide < 0.2
    assert missed <= wide


def test_scoring_is_read_back_and_other_documents_are_refused():
    for scoring in (
        Scoring(),
        Scoring("f1", None, "yes", None, 0.2, ("no", "yes")),
        Scoring(classes=("*",)),
        Scoring("r2", (0, 9), "1", 4),
    ):
        assert scoring_from_body(scoring.body()).body() == scoring.body()
    for wrong in ({}, {**Scoring().body(), "metric": 5}, {**Scoring().body(), "limits": [1]}, []):
        with pytest.raises(qw.InvalidInputError):
            scoring_from_body(wrong)


@pytest.mark.parametrize(
    ("name", "settings", "words"),
    [
        ("neg_mean_absolute_error", {}, "limits"),
        ("neg_mean_squared_error", {"limits": (5, 5)}, "low < high"),
        ("r2", {"limits": (0, 1)}, "variance"),
        ("f1", {"floor": 2}, "floor must lie"),
        ("cosiness", {}, "No metric"),
    ],
)
def test_what_a_metric_lacks_is_named(name, settings, words):
    with pytest.raises(qw.InvalidInputError, match=words):
        parse_metric(name, **settings)


@pytest.mark.parametrize("name", ["f1_weighted", "roc_auc_ovr", "max_error", "explained_variance"])
def test_refused_metrics_come_with_their_reason(name):
    with pytest.raises(qw.UnsupportedError, match=f"{name} is refused: .*no useful bound"):
        parse_metric(name)
