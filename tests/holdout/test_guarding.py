"""Guarded evaluations: scores that stay true, and a budget that ends in an error."""

from __future__ import annotations

import numpy as np
import pytest

import quiltwork as qw


def right(voters, rows):
    """Accuracy of a majority of linear voters, on rows whose last column is the label."""
    votes = np.sign(rows[:, :-1] @ voters.T).sum(axis=1)
    return (votes > 0) == (rows[:, -1] > 0)


def climb(score, steps, rng):
    """Boost: keep the voters that score above the half, and submit their majority at last."""
    praised = []
    for voter in rng.normal(size=(steps, 1, 40)):
        try:
            if score(voter) > 0.5:
                praised.append(voter[0])
        except qw.BudgetExceeded:
            break
    try:
        return score(np.array(praised or [np.ones(40)]))
    except qw.BudgetExceeded:
        return 0.5


@pytest.mark.filterwarnings("ignore:Too coarse")
@pytest.mark.parametrize("kind", ["holdout", "board"])
def test_a_climber_is_told_no_more_than_the_promise(kind):
    """Nothing predicts these labels, so the truth of every candidate is ½."""
    rng = np.random.default_rng(4)
    train, held = (rng.normal(size=(1500, 41)) for _ in range(2))
    plain = climb(lambda voters: float(right(voters, held).mean()), 299, rng)
    if kind == "holdout":
        plan = qw.plan_holdout(queries=300, overfits=3, samples=1500, mechanism="counting")
        guarded, width = qw.ReusableHoldout.from_plan(plan, train, held), plan.tolerance
    else:
        guarded = qw.Ladder(held, submissions=300)
        width = guarded.width
    told = climb(qw.guard(right, holdout=guarded), 299, rng)
    assert plain > 0.55  # the attack works on a board that shows every score
    assert told <= 0.5 + width
    assert kind == "holdout" or told < plain - 0.03


def test_a_spent_budget_is_an_error_and_never_a_score():
    rng = np.random.default_rng(0)
    board = qw.Ladder(rng.random((50, 2)), submissions=1)
    score = qw.guard(lambda power, rows: rows[:, 0] ** power, holdout=board)
    assert 0 < score(1) < 1
    with pytest.raises(qw.BudgetExceeded):
        score(2)


@pytest.mark.parametrize(("evaluate", "holdout"), [(None, "board"), (right, "no board")])
def test_what_cannot_be_guarded_is_refused(evaluate, holdout):
    board = qw.Ladder(np.zeros((9, 1)), submissions=3) if holdout == "board" else holdout
    with pytest.raises(qw.InvalidInputError):
        qw.guard(evaluate, holdout=board)
