"""Whatever is given to a holdout, a board or a plan is taken or refused with a sentence."""

from __future__ import annotations

from decimal import Decimal
from fractions import Fraction

import numpy as np
import pytest
from sklearn.dummy import DummyClassifier

import quiltwork as qw
from evidence.faults.hostile import THINGS, nested, refused

TRAIN, HELD = (np.random.default_rng(seed).random((50, 2)) for seed in (1, 2))
PAIRS = [(rows, (rows[:, 0] > 0.5).astype(int)) for rows in (TRAIN, HELD)]
SETTINGS = {"threshold": 0.5, "noise": 0.01, "budget": 2}
SHORT = tuple(thing[:300] if isinstance(thing, str) else thing for thing in THINGS)
STRANGERS = (*SHORT, None, -(10**400), 10**18, 1e-320, 1e308, Fraction(1, 3), Decimal("1e9999"))
SHAPES = ((), [[1], [1, 2]], np.ones((2, 2, 2)), np.array([np.nan]), np.array(["a"]), nested(2000))


def holdout(**options):
    return qw.ReusableHoldout(TRAIN, HELD, **{**SETTINGS, **options})


def scored():
    return qw.ReusableHoldout(*PAIRS, **SETTINGS)


def board(**options):
    return qw.Ladder(TRAIN[:, 0], **{"submissions": 3, "steps": 5, **options})


def ask(statistic, **options):
    return holdout().ask(statistic, **options)


PLAN = qw.plan_holdout(queries=2, overfits=1, tolerance=0.45)
MODEL = DummyClassifier().fit(*PAIRS[0])
SCORER = qw.sklearn.HoldoutScorer
PLACES = {
    "train": lambda v: qw.ReusableHoldout(v, HELD, **SETTINGS),
    "holdout": lambda v: qw.ReusableHoldout(TRAIN, v, **SETTINGS),
    "threshold": lambda v: holdout(threshold=v),
    "noise": lambda v: holdout(noise=v),
    "budget": lambda v: holdout(budget=v),
    "queries": lambda v: holdout(queries=v),
    "ledger": lambda v: holdout(ledger=v, dataset="d"),
    "beliefs": lambda v: holdout(beliefs=v),
    "plan": lambda v: qw.ReusableHoldout.from_plan(v, TRAIN, HELD),
    "a statistic": ask,
    "its values": lambda v: ask(lambda rows: [v] * len(rows)),
    "its result": lambda v: ask(lambda rows: v),
    "its number": lambda v: ask(lambda rows: v, sensitivity=1),
    "sensitivity": lambda v: ask(lambda rows: float(rows.sum()), sensitivity=v),
    "label": lambda v: ask(lambda rows: rows[:, 0], label=v),
    "many": lambda v: holdout().ask_many(v),
    "one of many": lambda v: holdout().ask_many([v]),
    "guarantee": lambda v: holdout().guarantee(v).explain(),
    "table": lambda v: PLAN.table(v),
    "plan_beliefs": lambda v: qw.plan_holdout(v, 5, 1, 0.3),
    "plan_queries": lambda v: qw.plan_holdout(None, v, 1, 0.3).explain(),
    "plan_overfits": lambda v: qw.plan_holdout(None, 5, v, 0.3).explain(),
    "plan_tolerance": lambda v: qw.plan_holdout(None, 5, 1, v).explain(),
    "plan_samples": lambda v: qw.plan_holdout(None, 5, 1, samples=v).explain(),
    "rows of a board": lambda v: qw.Ladder(v, submissions=3, steps=5),
    "submissions": lambda v: board(submissions=v),
    "steps": lambda v: board(steps=v).explain(),
    "confidence": lambda v: board(confidence=v).explain(),
    "team": lambda v: board().submit(v, lambda rows: rows),
    "submission": lambda v: board().submit("x", v),
    "its score": lambda v: board().submit("x", lambda rows: v),
    "scorer": lambda v: SCORER(v),
    "metric": lambda v: SCORER(scored(), v),
    "limits": lambda v: SCORER(scored(), "neg_mean_absolute_error", v)(MODEL),
    "a limit": lambda v: SCORER(scored(), "neg_mean_absolute_error", (0, v))(MODEL),
    "model": lambda v: SCORER(scored())(v),
    "whole": lambda v: qw.sklearn.whole_training_set(v),
    "split": lambda v: qw.sklearn.split(v, v),
    "groups": lambda v: qw.sklearn.split(*PAIRS[0], v),
    "share": lambda v: qw.sklearn.split(*PAIRS[0], holdout_share=v),
}


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("place", PLACES)
def test_nothing_fails_without_a_sentence(place):
    told = [refused(lambda v=thing: PLACES[place](v), thing) for thing in (*STRANGERS, *SHAPES)]
    assert [one for one in told if one and not one.endswith("was taken")] == []


@pytest.mark.parametrize(
    ("make", "again"),
    [
        (
            lambda path: holdout(path=path),
            lambda path: qw.ReusableHoldout.resume(path, TRAIN, HELD),
        ),
        (lambda path: board(path=path), lambda path: qw.Ladder.resume(path, TRAIN[:, 0])),
    ],
)
def test_no_path_fails_without_a_sentence(make, again, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    for thing in THINGS:
        for place in (make, again):
            told = refused(lambda v=thing, p=place: p(v), thing)
            assert told is None or told.endswith("was taken")
